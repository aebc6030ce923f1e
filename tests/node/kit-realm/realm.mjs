// A realm with the kit's extension, in Node's engine. In: the natives of a test and code of a tool. Out: its outcome and
// what the host saw. Time is the test's: it goes on when nothing else does.
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const folder = new URL('../../../crates/kit-realm/src/', import.meta.url);

const parts = readFileSync(new URL('lib.rs', folder), 'utf8').matchAll(/include_str!\("(.*)"\)/g);
const texts = [...parts].map(([, name]) => readFileSync(new URL(name, folder), 'utf8'));
const extension = new vm.Script(`((host) => {\n'use strict';\n${texts.join('')}})`, { filename: 'extension.js' });

// Parts of the engine of the sandbox that older versions of Node lack.
const LACKING = `{
  const { given } = globalThis;
  if (!Uint8Array.prototype.toBase64) {
    Uint8Array.prototype.toBase64 = function () { return given.base64(this); };
    Uint8Array.prototype.toHex = function () { return given.hex(this); };
  }
  globalThis.Iterator ??= function Iterator() {};
  if (!Iterator.prototype.next) Iterator.prototype = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
  Date.now = () => given.clock.now;
}`;

const NAMES = [
  'setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'atob', 'btoa', 'parseCSV', 'fetch', 'state', 'db',
  'require', 'secrets', 'browser', 'resolve',
];
const PARTS = [
  'href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash',
];

const partsOf = (url) => Object.fromEntries(PARTS.map((part) => [part, url[part]]));

// As the kit's own: of well-formed texts.
const base64 = (name) => (...args) => {
  if (args.length !== 1 || typeof args[0] !== 'string' || !args[0].isWellFormed()) throw new TypeError(`${name}: ${args}`);
  try {
    return globalThis[name](args[0]);
  } catch {
    throw named('InvalidCharacterError', `${name} refuses it`);
  }
};

const turn = () => new Promise((done) => setImmediate(done));

export const named = (name, message) => Object.assign(new Error(message), { name });

export const openRealm = (given = {}) => {
  const clock = { now: 1_000 };
  const context = vm.createContext({});
  const run = (source) => vm.runInContext(source, context);
  context.given = {
    clock,
    base64: (bytes) => Buffer.from(bytes).toString('base64'),
    hex: (bytes) => Buffer.from(bytes).toString('hex'),
  };
  run(LACKING);
  delete context.given;
  const seen = { uncaught: [], delays: [], cancelled: [], aborted: [], requests: [], set: [], libraries: [] };
  let pending = 0;
  // A promise of the realm, as the engine's answers are.
  const promise = run('(Promise => (start) => new Promise((fulfil, reject) => start(fulfil, reject)))(Promise)');
  const { then } = run('Promise.prototype');
  const later = (start) => {
    pending += 1;
    return promise((fulfil, reject) => {
      const answered = (settle) => (value) => {
        pending -= 1;
        settle(value);
      };
      start(answered(fulfil), answered(reject));
    });
  };
  const host = {
    pending: () => pending,
    uncaught: (error) => seen.uncaught.push(`${error}`),
    warn: () => {},
    compile: (text, filename, language) => {
      seen.libraries.push([filename, language]);
      return run(`(function (exports, module, require) { 'use strict'; ${text}\n})`);
    },
  };
  const delays = new Map();
  const answer = (respond) => (...args) => later((fulfil, reject) => {
    Promise.resolve().then(() => respond(...args)).then(fulfil, reject);
  });
  const rows = new Map(Object.entries(given.state ?? {}));
  const libraries = given.libraries ?? {};
  const natives = {
    delay: (ms, id) => later((fulfil, reject) => {
      seen.delays.push(ms);
      delays.set(id, { due: clock.now + ms, fulfil, reject });
    }),
    cancel: (id) => {
      seen.cancelled.push(id);
      delays.get(id)?.fulfil(true);
      delays.delete(id);
    },
    atob: base64('atob'), btoa: base64('btoa'),
    parseCSV: (text) => text.split('\n'),
    random: (count) => run(`new Uint8Array(${count}).map((_, at) => at * 7 + 1)`),
    url: (input, base) => {
      try {
        return partsOf(new URL(input, base));
      } catch {
        return null;
      }
    },
    urlSet: (href, part, value) => {
      const url = new URL(href);
      url[part] = value;
      return partsOf(url);
    },
    decodeUtf8: (bytes, isFatal) => {
      try {
        return new TextDecoder('utf-8', { fatal: isFatal, ignoreBOM: true }).decode(bytes);
      } catch {
        return null;
      }
    },
    encodeUtf8: (text) => run('(bytes) => new Uint8Array(bytes)')([...new TextEncoder().encode(text)]),
    fetch: (request) => {
      seen.requests.push(request);
      return answer(given.fetch ?? (() => new Promise(() => {})))(request);
    },
    abort: (id) => seen.aborted.push(id),
    library: (name, refusal) => {
      if (refusal !== undefined) throw named('RequireError', refusal);
      if (!Object.hasOwn(libraries, name)) throw named('RequireError', `Cannot find library '${name}'`);
      return { source: libraries[name], language: 'javascript' };
    },
    // Its texts are read by the engine.
    'state.get': answer((key) => {
      if (typeof key !== 'string') throw new TypeError('state.get takes a key, a well-formed string, first');
      return rows.has(key) ? JSON.parse(rows.get(key)) : null;
    }),
    'state.set': answer((key, text) => {
      seen.set.push([key, text]);
      rows.set(key, text);
    }),
    'state.delete': answer((key) => rows.delete(key)),
    'state.keys': answer((prefix) => [...rows.keys()].filter((key) => key.startsWith(prefix))),
    'db.sql': answer((sql) => sql),
    'db.batch': answer((list) => list),
    'db.schema': answer(() => ({ tables: [] })),
    'browser.evaluate': answer((code) => code),
    'browser.close': answer(() => undefined),
    ...given.natives,
  };
  const input = {
    maxDelayMs: 30_000, maxPending: 1_000, maxDepth: 10, isSession: false, secrets: { KEY: 'sealed' }, ...given.config,
  };
  const made = extension.runInContext(context)({ ...host, natives });
  const values = { ...made.names, ...made.open(input) };
  for (const [name, value] of Object.entries(made.properties)) {
    Object.defineProperty(context, name, { value, writable: true, configurable: true });
  }

  // Goes on until the promise is settled. Returns its outcome, or `undefined` if nothing can settle it.
  const settled = async (awaited) => {
    let outcome;
    Reflect.apply(then, awaited, [(value) => { outcome = { value }; }, (error) => { outcome = { error }; }]);
    for (;;) {
      for (let turns = 0; turns < 3 && outcome === undefined; turns += 1) await turn();
      if (outcome !== undefined) return outcome;
      if (delays.size > 0) {
        const [id, { due, fulfil }] = [...delays].reduce((a, b) => (b[1].due < a[1].due ? b : a));
        clock.now = Math.max(clock.now, due);
        delays.delete(id);
        fulfil();
      } else if (!made.idle()) {
        return undefined;
      }
    }
  };

  // Runs a tool whose source sets what a compiled body sets: `p`.
  const tool = (source) => {
    const body = run(`(({ ${NAMES.join(', ')} }) => async (p) => { 'use strict'; ${source}\n})`)(values);
    return settled(made.run(body));
  };
  return { context, clock, delays, seen, tool, settled, values, rows };
};

// The value of a tool, or the name and message of its error, or that it stalls.
export const outcomeOf = async (source, given) => {
  const realm = openRealm(given);
  const outcome = await realm.tool(source);
  if (outcome === undefined) return { stalls: true, ...realm };
  if ('error' in outcome) return { error: `${outcome.error?.name}: ${outcome.error?.message}`, ...realm };
  const { 0: text, 1: value } = outcome.value;
  return { text, value: JSON.parse(JSON.stringify(value)), ...realm };
};
