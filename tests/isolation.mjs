// The package, with isolates where ISOLANE_ISOLATION says: `thread`, or `process` for those tests that
// hold of both.
//
// In: the environment. Out: what `isolane` exports, but with runs and runtimes of that isolation.

import process from 'node:process';

import { Runtime as Any, runCode as inThreads } from 'isolane';

export * from 'isolane';

export const isolation = process.env.ISOLANE_ISOLATION ?? 'thread';

export class Runtime extends Any {
  constructor(options) {
    super({ isolation, ...options });
  }
}

let shared;
// Only where it is used: its workers would be among those of another runtime.
const inProcesses = (...call) => (shared ??= new Runtime()).runCode(...call);
export const runCode = isolation === 'thread' ? inThreads : inProcesses;

/** The reason to skip a test that is about threads of a runtime. */
export const ofThreads = isolation === 'process' && 'there are no such threads under isolation by process';
