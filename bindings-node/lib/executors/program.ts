// Executors of programs: subprocesses, containers, confined subprocesses.
//
// In: options as the caller wrote them, and inputs of calls. Out: promises of results. The native side checks all options
// and words all messages.

import type { ProgramConfinement as Confinement } from '../../executors.js';
import { type Bag, EMPTY, object, option, refuseUnknownNames } from '../crossing/options.js';
import { Door } from '../door/door.js';
import { ignore } from '../run/sandbox-functions.js';
import { type Context, readContext } from './data.js';
import { call } from './door-call.js';
import { LibraryExecutor } from './library.js';

export class LocalCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    super(new Door('local-executor', read(options)));
  }

  get [Symbol.toStringTag](): string {
    return 'LocalCodeExecutor';
  }
}

export class ContainerCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    super(new Door('container-executor', typeof options === 'string' ? { image: options } : read(options)));
  }

  buildRunArgs(name: unknown): string[] {
    return this.door.ask<string[]>('build_run_args', [name]);
  }

  buildRunArgsStaged(name: unknown, folder: unknown): string[] {
    return this.door.ask<string[]>('build_run_args', [name, folder]);
  }

  prepare(options?: unknown): Promise<void> {
    return call(this.door, 'prepare', () => [], ignore, onlySignal(options));
  }

  get [Symbol.toStringTag](): string {
    return 'ContainerCodeExecutor';
  }
}

export class ConfinedCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    super(new Door('confined-executor', read(options)));
  }

  confinement(options?: unknown): Promise<Confinement> {
    return call(this.door, 'confinement', () => [], (had: Confinement) => had, onlySignal(options));
  }

  get [Symbol.toStringTag](): string {
    return 'ConfinedCodeExecutor';
  }
}

function read(options: unknown): Bag {
  const bag = options === undefined ? EMPTY : object(options, 'options');
  // The prototype of `process.env` is its own, with which it does not cross.
  return bag['env'] === process.env ? { ...bag, env: { ...process.env } } : bag;
}

/** The options of a call that has a signal and nothing else. */
function onlySignal(options: unknown): Context {
  const bag = read(options);
  refuseUnknownNames(bag, ['signal']);
  return readContext({ signal: option(bag, 'signal') });
}
