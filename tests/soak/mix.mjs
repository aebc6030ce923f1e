// The mix of runs: the inputs, the treatment and the expected result of each kind.
//
// In: `mix.json`, which `mix.py` reads too, a seed and the number of a run. Out: the run's source and options, made
// anew for it, and a check of its result. `README.md` explains the fields.

import { readFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

const KINDS = JSON.parse(readFileSync(new URL('mix.json', import.meta.url), 'utf8'));
const TOTAL = KINDS.reduce((sum, { weight }) => sum + weight, 0);
const ROWS = Array.from({ length: 1_000 }, (_, id) => ({ id, text: 'x'.repeat(id % 60), more: [1.5, true, null] }));

export const NAMES = KINDS.map(({ name }) => name);
export const SOON_MS = 30;

/** Random numbers from 0 to 1 that depend on the seed alone; `mix.py` has the same. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Run number `n` of that seed: its kind, and the times of events during it. */
export function pick(seed, n) {
  const next = random(Math.imul(seed, 0x9e3779b1) + n);
  let place = next() * TOTAL;
  const kind = KINDS.findIndex(({ weight }) => (place -= weight) < 0);
  return { kind, next };
}

export class Case {
  /** A forbidden event that the host saw. */
  wrong = '';
  over = false;
  handle;
  options = {};
  #reported = [];

  constructor(kind, n, next) {
    const { name, ...fields } = filled(KINDS[kind], n);
    Object.assign(this, { name, n, next, fields, source: fields.source });
    const { execute, modules, imports, functions = [], rows, report, memory } = fields;
    if (execute !== undefined) this.options.execute = execute;
    if (modules !== undefined) this.options.modules = modules;
    if (memory !== undefined) this.options.memoryLimitBytes = memory;
    if (imports !== undefined) {
      this.options.imports = Object.fromEntries(Object.entries(imports).map(([key, names]) => [key, this.#functions(names)]));
    }
    if (functions.length > 0 || rows) this.options.globals = { ...this.#functions(functions), ...(rows && { rows: ROWS }) };
    if (report !== undefined) this.options.report = this.#sink(report);
  }

  /** The differences of a result from the expected one, or nothing. */
  check({ status, result, error, reports, logs }) {
    this.over = true;
    const { fields } = this;
    const statuses = [fields.status ?? 'success'].flat();
    if (!statuses.includes(status)) return `status ${status} (${error?.name}: ${error?.message}), not ${statuses}`;
    if (status === 'success' && fields.result !== null) {
      const expected = fields.result === 'rows' ? ROWS : fields.result;
      if (!isDeepStrictEqual(result, expected)) return `the result ${JSON.stringify(result)?.slice(0, 200)}`;
    } else if (status !== 'success') {
      const [errorName, message] = fields.error ?? (status === 'terminated' ? ['Terminated', `enough ${this.n}`] : [null, null]);
      if ((errorName !== null && error.name !== errorName) || (message !== null && !error.message.startsWith(message))) {
        return `the error ${error.name}: ${error.message}`;
      }
    }
    if (fields.logs !== null && logs.length !== (fields.logs ?? 0)) return `${logs.length} logs`;
    if (fields.reports !== null && !isDeepStrictEqual(reports, fields.reports ?? [])) return `the reports ${JSON.stringify(reports)}`;
    if (fields.report !== undefined && this.#reported.length > reports.length) return 'a report that is not in the result';
    return this.wrong;
  }

  terminate() {
    this.handle.terminate(`enough ${this.n}`);
  }

  #functions(names) {
    return Object.fromEntries(names.map((name) => [name, this.#alive(name, HOST[name])]));
  }

  /** A host function that notes when it is called after its run has settled. */
  #alive(name, fn) {
    return (...args) => {
      if (this.over) this.wrong = `${name} was called after the end`;
      return fn(this, ...args);
    };
  }

  #sink(what) {
    return this.#alive('the sink', (_, value) => {
      this.#reported.push(value);
      if (what === 'throw') throw new Error('the sink is full');
      return this.#reported.length;
    });
  }
}

/** The functions that programs of the mix may call. */
const HOST = {
  add: (_, a, b) => a + b,
  same: (_, value) => value,
  fail: (_, message) => {
    throw new Error(message);
  },
  later: async (_, value) => value,
  late: async ({ next }, value) => {
    await after(next() * SOON_MS);
    return value;
  },
  never: () => new Promise(() => {}),
  twice: async (_, fn, value) => {
    await fn(0);
    return fn(value);
  },
  stop: (self) => self.terminate(),
  stopLater: (self, value) => {
    setImmediate(() => self.terminate());
    return value;
  },
  after: (self) => {
    self.wrong = 'it went on after it was told to end';
  },
};

const filledIn = KINDS.map((kind) => JSON.stringify(kind));

function filled(kind, n) {
  const text = filledIn[KINDS.indexOf(kind)];
  return JSON.parse(text.replaceAll('"$n"', n).replaceAll('"$m"', n + 1).replaceAll('$n', n).replaceAll('$m', n + 1));
}
