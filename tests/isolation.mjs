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

export const runCode = isolation === 'thread' ? inThreads : new Runtime().runCode;

/** The reason to skip a test that is about threads of a runtime. */
export const ofThreads = isolation === 'process' && 'there are no such threads under isolation by process';
