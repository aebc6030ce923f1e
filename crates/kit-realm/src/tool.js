// The run of a tool. In: its body, compiled as a function whose parameter gets `p[0]`, the names of the extension that
// the source refers to, `p[1]`, its completion value, and `p[2]`, the value of a top-level `return`. Out: the value of the first
// `resolve(value)`, else that of `return`, else the completion value: its JSON text, and what that reads as.

// The JSON text of the run's value, which is `null` if it has none.
const resultText = (value) => {
  const text = jsonForm(value, 'result');
  return text === undefined ? 'null' : text;
};

// The first `resolve` of the run: an outcome with a text or an error, or a promise of one, which is never rejected.
let resolved;
// Ends the wait for a `resolve` after the body.
let stopWaiting;

// Awaits a value once. The outcome is a record, so that a rejection is no unhandled one while the body goes on.
const outcomeOf = async (value) => {
  try {
    return { __proto__: null, value: await value };
  } catch (error) {
    return { __proto__: null, error };
  }
};

const textOutcomeOf = async (value) => {
  const outcome = await outcomeOf(value);
  if ('error' in outcome) return outcome;
  try {
    return { __proto__: null, text: resultText(outcome.value) };
  } catch (error) {
    return { __proto__: null, error };
  }
};

const { resolve } = {
  resolve(value) {
    if (resolved !== undefined) return;
    const isThenable = isObject(value) && typeof value.then === 'function';
    const outcome = isThenable ? textOutcomeOf(value) : { __proto__: null, text: resultText(value) };
    // A getter or a `toJSON` of the value may have called it.
    if (resolved !== undefined) return;
    resolved = outcome;
    if (stopWaiting !== undefined) stopWaiting();
  },
};

const namesResolve = (names) => {
  if (names === undefined) return false;
  for (let at = 0; at < names.length; at += 1) {
    if (names[at] === 'resolve') return true;
  }
  return false;
};

const isWaiting = () => stopWaiting !== undefined;

// Waits until `resolve` is called, or nothing can call it any more.
const waitForResolve = () =>
  new Promise((done) => {
    stopWaiting = () => {
      stopWaiting = undefined;
      done();
    };
    armTimers();
  });

const run = async (body) => {
  const p = { __proto__: null };
  await body(p);
  let standing;
  if (resolved === undefined) {
    standing = outcomeOf(2 in p ? p[2] : p[1]);
    if (namesResolve(p[0]) && p[2] === undefined) await waitForResolve();
  }
  const outcome = await (resolved ?? standing);
  if ('error' in outcome) throw outcome.error;
  const text = 'text' in outcome ? outcome.text : resultText(outcome.value);
  // What it inherits from could have a `then`.
  const pair = newList();
  pair[0] = text;
  pair[1] = parseJson(text);
  return pair;
};

// Nothing can resume the run. Returns whether it goes on: without a `resolve`, the completion value stands.
const idle = () => {
  if (!isWaiting()) return false;
  stopWaiting();
  return true;
};
