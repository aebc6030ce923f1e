// The executor of JavaScript and TypeScript: each call is a cell in an isolate of Isolane.
//
// In: options as the caller wrote them, and inputs of calls. Out: promises of results. The values that code sees are
// written once, when the executor is made.

import { type Bag, EMPTY, object, option, refuseUnknownNames } from '../crossing/options.js';
import { Door } from '../door/door.js';
import { HostSessions } from '../door/host-sessions.js';
import { ignore } from '../run/sandbox-functions.js';
import { readContext } from './data.js';
import { call } from './door-call.js';
import { LibraryExecutor } from './library.js';

const OF_SESSION = ['language', 'globals', 'imports', 'modules', 'memoryLimitBytes', 'report'];
const OWN = ['timeoutMs', 'retryAttempts', 'outputLimitBytes', 'stateful', 'showValue'];
const NAMES = [...OF_SESSION, 'runtime', 'isolation', ...OWN];

export class IsolateCodeExecutor extends LibraryExecutor {
  constructor(options?: unknown) {
    const bag: Bag = options === undefined ? EMPTY : object(options, 'options');
    refuseUnknownNames(bag, NAMES);
    const [runtime, isolation] = [option(bag, 'runtime'), option(bag, 'isolation')];
    super(new Door('isolate-executor', { options: given(bag, OWN), isolation }, runtime, new HostSessions(given(bag, OF_SESSION))));
  }

  close(): Promise<void> {
    return call(this.door, 'close', () => [], ignore, readContext(undefined));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get [Symbol.toStringTag](): string {
    return 'IsolateCodeExecutor';
  }
}

/** The options of those names that are given. */
function given(bag: Bag, names: string[]): Record<string, unknown> {
  // From no polluted prototype: neither an option nor a `toJSON`.
  const found = { __proto__: null } as unknown as Record<string, unknown>;
  for (const name of names) {
    const value = option(bag, name);
    if (value !== undefined) found[name] = value;
  }
  return found;
}
