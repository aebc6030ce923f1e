// Timers. In: `setTimeout`, `setInterval` and their ends; the native `delay(ms, id)`, which `cancel(id)` fulfils at
// once, with `true`. Out: calls in the order of due time, then of number, one after each answer of the host, so that all jobs of one
// are done before the next. One delay is outstanding, that of the earliest timer, and none without a timer.

// The timers in their order, in a ring whose first and last are reached from here.
const ring = { __proto__: null, id: 0, due: 0, previous: undefined, next: undefined };
ring.previous = ring;
ring.next = ring;

// By their numbers.
const timersById = new Map();
let lastId = 0;
// How many of them are timeouts, which a run that waits for `resolve` waits for.
let timeouts = 0;

// The outstanding delay, and how many have no answer, with those that were cancelled.
let delay;
let lastDelay = 0;
let unanswered = 0;
// Delays that failed one after another: the host has ended them.
let failures = 0;
const MOST_FAILURES = 3;

const insertTimer = (timer) => {
  let before = ring.previous;
  while (before !== ring && before.due > timer.due) before = before.previous;
  timer.previous = before;
  timer.next = before.next;
  before.next.previous = timer;
  before.next = timer;
};

const unlinkTimer = (timer) => {
  timer.previous.next = timer.next;
  timer.next.previous = timer.previous;
};

const removeTimer = (timer) => {
  unlinkTimer(timer);
  mapDelete(timersById, timer.id);
  if (timer.kind === 'timeout') timeouts -= 1;
};

const cancelDelay = () => {
  if (delay === undefined) return;
  const { id } = delay;
  delay = undefined;
  natives.cancel(id);
};

// Has the host wait for the earliest timer. Intervals alone do not keep a run from its end that waits for `resolve`.
const armTimers = () => {
  const first = ring.next;
  const isNeeded = first !== ring && (!isWaiting() || timeouts > 0 || host.pending() > unanswered);
  if (!isNeeded) return cancelDelay();
  if (delay !== undefined && delay.due <= first.due) return undefined;
  cancelDelay();
  delay = { __proto__: null, id: (lastDelay += 1), due: first.due };
  awaitDelay(delay);
  return undefined;
};

const awaitDelay = async (awaited) => {
  unanswered += 1;
  const ms = max(0, awaited.due - now());
  // A signal may be due after the longest delay, and is waited for in parts.
  let isOver = ms <= config.maxDelayMs;
  try {
    // One that was cancelled in a cell that was undone is awaited still.
    if ((await natives.delay(min(ms, config.maxDelayMs), awaited.id)) === true) isOver = false;
    failures = 0;
  } catch {
    isOver = false;
    failures += 1;
  }
  unanswered -= 1;
  if (delay !== awaited) return;
  delay = undefined;
  if (failures >= MOST_FAILURES) return;
  callTimer(isOver ? max(awaited.due, now()) : now());
  armTimers();
};

// Calls the first timer if it is due.
const callTimer = (moment) => {
  const timer = ring.next;
  if (timer === ring || timer.due > moment) return;
  if (timer.kind === 'interval') {
    unlinkTimer(timer);
    timer.due = now() + max(1, timer.ms);
    insertTimer(timer);
  } else {
    removeTimer(timer);
  }
  try {
    apply(timer.callback, undefined, timer.args);
  } catch (error) {
    host.uncaught(error);
  }
};

const addTimer = (kind, callback, ms, args) => {
  const id = (lastId += 1);
  const timer = { __proto__: null, id, kind, callback, args, ms, due: now() + ms, previous: undefined, next: undefined };
  mapSet(timersById, id, timer);
  insertTimer(timer);
  if (kind === 'timeout') timeouts += 1;
  failures = 0;
  armTimers();
  return id;
};

const timerOfRun = (kind, name, callback, ms, args) => {
  if (typeof callback !== 'function') throw new TypeError(join('', name, ' takes a function first'));
  if (mapSize(timersById) >= config.maxPending) {
    throw new RangeError(join('more than ', config.maxPending, ' timers are pending'));
  }
  return addTimer(kind, callback, trunc(min(max(+ms, 0), config.maxDelayMs)) || 0, args);
};

const clearTimer = (id) => {
  const timer = mapGet(timersById, isObject(id) || typeof id === 'symbol' ? undefined : +id);
  if (timer === undefined || timer.kind === 'signal') return;
  removeTimer(timer);
  armTimers();
};

const { setTimeout, setInterval, clearTimeout, clearInterval } = {
  setTimeout(callback, ms = 0, ...args) {
    return timerOfRun('timeout', 'setTimeout', callback, ms, args);
  },
  setInterval(callback, ms = 0, ...args) {
    return timerOfRun('interval', 'setInterval', callback, ms, args);
  },
  clearTimeout(id) {
    clearTimer(id);
  },
  clearInterval(id) {
    clearTimer(id);
  },
};
