// The package with the isolation that ISOLANE_ISOLATION names, `thread` or `process`, for tests that hold for both.
//
// In: the environment. Out: the exports of `isolane`, with runs and runtimes of that isolation.

import process from 'node:process';

import { Runtime as Any, Session as InThreads, runCode as inThreads } from 'isolane';

export * from 'isolane';

export const isolation = process.env.ISOLANE_ISOLATION ?? 'thread';

export class Runtime extends Any {
  constructor(options) {
    super({ isolation, ...options });
  }
}

let shared;
// Made on first use, because its workers would be counted among those of another runtime.
const ofProcesses = () => (shared ??= new Runtime());
const inProcesses = (...call) => ofProcesses().runCode(...call);
export const runCode = isolation === 'thread' ? inThreads : inProcesses;

class InProcesses {
  constructor(...options) {
    return ofProcesses().session(...options);
  }

  static [Symbol.hasInstance](value) {
    return value instanceof InThreads;
  }
}
export const Session = isolation === 'thread' ? InThreads : InProcesses;

/** The reason to skip a test of a runtime's threads. */
export const ofThreads = isolation === 'process' && 'there are no such threads under isolation by process';
