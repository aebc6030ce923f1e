// The stage of a case of sessions, in Node: its sessions, its cells in flight and its host functions.
//
// In: a case of parse.mjs. Out: sessions that are open, cells that were started.

import { AsyncLocalStorage } from 'node:async_hooks';

import { Runtime, Session } from '../../isolation.mjs';
import { hostFunctions } from '../host.node.mjs';
import { untag } from '../tags.node.mjs';

const cellName = new AsyncLocalStorage();

export class Stage {
  /** The handles of cells with a name. */
  cells = new Map();
  /** The case's own runtime, if it has one. */
  runtime;
  functions;
  #one;
  #sessions = new Map();
  #last;
  #asked = new Map();
  #later = [];

  constructor(one) {
    this.#one = one;
    if (one.runtime) this.runtime = new Runtime(untag(one.runtime, {}));
    this.functions = {
      ...hostFunctions(() => this.#last),
      ask: (key) => {
        const call = this.asked(key);
        call.arrive();
        return call.answer;
      },
      run: async (source) => {
        const { status, result } = await this.#sessions.get('main').run(source);
        return status === 'success' ? { status, result } : { status };
      },
      who: () => cellName.getStore() ?? null,
    };
  }

  /** Opens the session of the case; throws for misuse. */
  open() {
    const { modules } = this.#one;
    const options = withReport(untag(this.#one.options ?? {}, this.functions));
    if (Object.keys(modules).length > 0) options.modules = { ...options.modules, ...modules };
    this.add('main', this.runtime ? this.runtime.session(options) : new Session(options));
  }

  /** Gives a session, or the promise of one, its name. */
  add(name, session) {
    this.#sessions.set(name, session);
  }

  async session(name = 'main') {
    return this.#sessions.get(name);
  }

  /** Starts a cell; throws for misuse. */
  start(session, { act, options: { as, in: _, ...tagged }, language, source, name, args }) {
    const options = withReport(untag(tagged, this.functions));
    if (act === 'cell' && language !== 'typescript') options.language ??= language;
    const call = () => {
      if (act === 'cell') return session.run(source, options);
      return session.call(Object.keys(options).length > 0 ? { name, ...options } : name, ...untag(args, this.functions));
    };
    this.#last = cellName.run(as ?? null, call);
    if (as !== undefined) this.cells.set(as, this.#last);
    return this.#last;
  }

  /** The call of `ask` with this key, whether it has arrived yet or not. */
  asked(key) {
    if (!this.#asked.has(key)) this.#asked.set(key, askedCall());
    return this.#asked.get(key);
  }

  /** Has a check wait for the end of the case. */
  later(check) {
    check.catch(() => {});
    this.#later.push(check);
  }

  async settleLater() {
    for (const check of this.#later) await check;
  }

  async clear() {
    for (const session of this.#sessions.values()) {
      await Promise.resolve(session).then((open) => open.close()).catch(() => {});
    }
    await this.runtime?.close();
  }
}

function withReport(options) {
  if (options.report === true) options.report = () => undefined;
  return options;
}

function askedCall() {
  const call = {};
  call.arrival = new Promise((resolve) => {
    call.arrive = resolve;
  });
  call.answer = new Promise((resolve, reject) => {
    call.resolve = resolve;
    call.reject = reject;
  });
  call.answer.catch(() => {});
  return call;
}
