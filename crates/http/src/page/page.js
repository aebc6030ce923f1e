'use strict';
// The page's program. All texts of processes become text nodes: nothing of theirs is ever markup.
(() => {
  const place = (id) => document.getElementById(id);
  const MOST_TEXT = 1 << 20;
  // The time between two looks for processes that were deleted, of which no event tells.
  const LOOK_MS = 5000;
  let token = sessionStorage.getItem('isolane-token') ?? '';
  let processes = new Map();
  // When each process changed by an event, by a clock that counts.
  let changed = new Map();
  let clock = 0;
  let next = null;
  let selected = null;
  // Ends the streams of before, when the token or the selection changes.
  let listing = new AbortController();
  let reading = new AbortController();

  class Refused extends Error {
    constructor(status, message) {
      super(message);
      this.status = status;
    }
  }

  async function request(path, { method = 'GET', signal, headers = {} } = {}) {
    const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(path, { method, signal, cache: 'no-store', headers: { ...headers, ...authorization } });
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({}));
    throw new Refused(response.status, problem.detail ?? `the server answered ${response.status}`);
  }

  function notice(text) {
    place('notice').textContent = text;
  }

  // Reads server-sent events until the stream ends; the id of the last one.
  async function read(path, after, signal, receive, opened) {
    const headers = after === null ? {} : { 'last-event-id': String(after) };
    const response = await request(path, { signal, headers });
    opened?.();
    if (response.status === 204) return { after, isOver: true };
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let isOver = false;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (rest + value).split('\n\n');
        rest = parts.pop();
        for (const part of parts) {
          const fields = new Map(part.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]));
          if (!fields.has('data')) continue;
          after = fields.get('id');
          isOver = fields.get('event') === 'exit';
          receive(fields.get('event'), JSON.parse(fields.get('data')));
        }
      }
    } catch (error) {
      // A connection that breaks may be resumed.
      if (signal.aborted) throw error;
    }
    return { after, isOver };
  }

  // Reads, and resumes where a stream breaks.
  async function follow(path, signal, receive, opened) {
    let after = null;
    for (;;) {
      try {
        const end = await read(path, after, signal, receive, opened);
        if (end.isOver) return;
        after = end.after;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused) throw error;
        notice('The server cannot be reached; trying again …');
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
      if (signal.aborted) return;
    }
  }

  function element(name, text, className) {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function time(text) {
    return text === null ? '' : new Date(text).toLocaleString();
  }

  function row(record) {
    const made = document.createElement('tr');
    made.setAttribute('aria-selected', String(record.pid === selected));
    const name = document.createElement('td');
    const open = element('button', String(record.pid));
    open.type = 'button';
    name.append(open);
    made.append(name, element('td', record.state, record.state), element('td', record.exitState ?? '', record.exitState ?? ''), element('td', time(record.createdAt)));
    made.addEventListener('click', () => select(record.pid));
    return made;
  }

  let isDue = false;
  // At most once a frame, however many events come.
  function show() {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const pids = [...processes.keys()].sort((one, other) => other - one);
      place('processes').replaceChildren(...pids.map((pid) => row(processes.get(pid))));
      place('empty').hidden = pids.length > 0;
      place('older').hidden = next === null;
      facts();
    });
  }

  function facts() {
    const record = processes.get(selected);
    place('process').hidden = record === undefined;
    if (record === undefined) return;
    place('process-title').textContent = `Process ${record.pid}`;
    place('kill').disabled = record.state === 'idle' || record.state === 'terminating';
    place('error').hidden = record.error === null;
    place('error').textContent = record.error ?? '';
    const list = [['State', record.state], ['Exit', record.exitState ?? ''], ['Created', time(record.createdAt)], ['Started', time(record.startedAt)], ['Finished', time(record.finishedAt)]];
    place('facts').replaceChildren(...list.flatMap(([name, text]) => [element('dt', name), element('dd', text)]));
  }

  function keep(record) {
    changed.set(record.pid, ++clock);
    processes.set(record.pid, { ...processes.get(record.pid), ...record });
    show();
  }

  function add(id, text) {
    const target = place(id);
    const isAtEnd = target.scrollTop + target.clientHeight >= target.scrollHeight - 4;
    target.append(document.createTextNode(text));
    while (target.textContent.length > MOST_TEXT && target.firstChild !== target.lastChild) target.firstChild.remove();
    if (isAtEnd) target.scrollTop = target.scrollHeight;
  }

  function select(pid) {
    reading.abort();
    reading = new AbortController();
    const { signal } = reading;
    selected = pid;
    for (const id of ['stdout', 'stderr', 'output', 'code']) place(id).textContent = '';
    show();
    let output = {};
    const receive = (kind, data) => {
      if (signal.aborted) return;
      if (kind === 'stdout' || kind === 'stderr') add(kind, data.text);
      else if (kind === 'output') {
        output = Object.assign(Object.create(null), output, data);
        place('output').textContent = JSON.stringify(output, null, 2);
      } else if (kind === 'exit') keep(data);
    };
    request(`/processes/${pid}/code`, { signal }).then((response) => response.text()).then((code) => { if (!signal.aborted) place('code').textContent = code; }).catch(refused);
    follow(`/processes/${pid}/events`, signal, receive).catch((error) => {
      if (error.status === 404) forget(pid);
      refused(error);
    });
  }

  function forget(pid) {
    processes.delete(pid);
    changed.delete(pid);
    if (pid === selected) reading.abort();
    show();
  }

  function refused(error) {
    if (error.name === 'AbortError') return;
    if (error.status === 401) return ask(token === '' ? '' : error.message);
    notice(error.message);
  }

  async function page(before) {
    const asked = ++clock;
    const list = await (await request(`/processes?limit=50${before === null ? '' : `&before=${before}`}`)).json();
    next = list.next;
    merge(list, before, asked);
  }

  // Looks again at the newest processes.
  async function look() {
    const asked = ++clock;
    merge(await (await request('/processes?limit=200')).json(), null, asked);
  }

  // Takes in a list that was asked for at that time. An event that came meanwhile is newer.
  function merge(list, before, asked) {
    const isOlder = (pid) => (changed.get(pid) ?? 0) < asked;
    for (const record of list.items) if (isOlder(record.pid)) processes.set(record.pid, record);
    const there = new Set(list.items.map((record) => record.pid));
    const last = list.next ?? 0;
    const isGone = (pid) => pid >= last && (before === null || pid < before) && !there.has(pid) && isOlder(pid);
    for (const pid of [...processes.keys()].filter(isGone)) forget(pid);
    show();
  }

  function ask(text) {
    listing.abort();
    reading.abort();
    place('main').hidden = true;
    place('forget').hidden = true;
    place('login').hidden = false;
    place('token').focus();
    notice(text === '' ? 'This server needs a token.' : text);
  }

  async function open() {
    listing.abort();
    listing = new AbortController();
    const { signal } = listing;
    processes = new Map();
    changed = new Map();
    try {
      await page(null);
    } catch (error) {
      return refused(error);
    }
    place('login').hidden = true;
    place('main').hidden = false;
    place('forget').hidden = token === '';
    // Listed again as soon as the stream is open, or changes between would be lost.
    const opened = () => page(null).then(() => notice('Live.')).catch(refused);
    follow('/events', signal, (_kind, record) => keep(record), opened).catch(refused);
    // A server that cannot be reached is noticed by the stream.
    const looking = setInterval(() => { if (!document.hidden) look().catch(() => undefined); }, LOOK_MS);
    signal.addEventListener('abort', () => clearInterval(looking));
  }

  place('login').addEventListener('submit', (event) => {
    event.preventDefault();
    token = place('token').value;
    place('token').value = '';
    sessionStorage.setItem('isolane-token', token);
    open();
  });
  place('forget').addEventListener('click', () => {
    sessionStorage.removeItem('isolane-token');
    token = '';
    ask('');
  });
  place('older').addEventListener('click', () => page(next).catch(refused));
  place('kill').addEventListener('click', () => {
    place('kill').disabled = true;
    // Its effect comes as events, which may be faster than this answer.
    request(`/processes/${selected}/kill`, { method: 'POST' }).catch(refused);
  });
  open();
})();
