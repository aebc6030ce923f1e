// The compiled half of the package.
//
// In: the platform this process runs on. Out: the addon, from the package of that platform, or from
// a local build next to this folder, and where that is: the executable of worker processes lies beside
// it. Nothing is downloaded and nothing is compiled here.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';

/** What a call was refused for, to be thrown as an exception of the right class. */
export interface Misuse {
  readonly kind: 'type' | 'range' | 'serialization' | 'unavailable' | 'internal';
  readonly message: string;
  /** What it was made out of; `number` is the system's, 0 where it is none of the system's. */
  readonly cause?: { readonly message: string; readonly number: number };
}

/** A set of options. */
export type OptionSet = 'run' | 'execute' | 'runtime';

/** An option, as the core declares it. */
export interface NativeOption {
  readonly name: string;
  /** What it has to be; empty where only its reader knows. */
  readonly type: 'number' | 'string' | '';
  /** The texts that it may be; empty for any. */
  readonly choices: readonly string[];
  /** The words for those. */
  readonly expected: string;
}

/** Counts of a runtime, as the core keeps them. */
export type NativeStats = Readonly<Record<string, unknown>>;

/** A runtime of the core. */
export interface NativeRuntime {
  stats(): NativeStats;
}

/** A function that is answered in Rust; only the addon makes such. */
export interface NativeFunction {
  readonly name: string;
}

/** The functions of a run that are answered in Rust, until it starts. */
export interface NativeTable {
  number(fn: NativeFunction): number;
}

/** How a completion is handed over: whether it is a value, and the message in the first `length` bytes. */
type Completion = [ok: boolean, frame: Uint8Array, length: number, blobs: Uint8Array[] | undefined];

type Blobs = Uint8Array[] | undefined;

/**
 * What the addon exports. `bridge` is the number of this environment's bridge; a frame is in the
 * first `length` bytes of its array.
 */
export interface Native {
  /** Opens this environment's bridge; `receive` is called once for all events until the next drain. */
  openBridge(receive: () => void): number;
  /**
   * Writes the next waiting events into `inbox`, or, if they do not fit, returns them. The number of bytes; without
   * events 0, or -1 if it is not worth it to look for some any more.
   */
  drain(bridge: number, inbox: Uint8Array): number | Uint8Array;
  /** While polled, the bridge wakes no one. Says whether events are waiting. */
  poll(bridge: number, polls: boolean): boolean;
  /** An event is expected soon. `start` and `reply` say so themselves. */
  expect(bridge: number): void;
  /** The blobs of the frame handed over last, in order. */
  blobs(bridge: number): Uint8Array[];
  /** The nodes of a large message, once. */
  largeNodes(bridge: number, large: number): Uint8Array<ArrayBuffer>;
  /** The next blobs of a large message, in order; none after the last. */
  largeBlobs(bridge: number, large: number): Uint8Array[];
  dropLarge(bridge: number, large: number): void;
  /** The events of a run go on, after a large message of it. */
  resume(bridge: number, run: number): void;
  /** Whether a run has not settled, as far as the core knows. */
  running(bridge: number, run: number): boolean;
  /** The next part of what a run that has settled reported and logged. */
  told(bridge: number, run: number): Uint8Array;
  start(bridge: number, runtime: NativeRuntime | null, frame: Uint8Array, length: number, blobs: Blobs, natives: NativeTable | undefined): number | Misuse;
  reply(bridge: number, call: number, ...completion: Completion): void;
  settlePromise(bridge: number, run: number, promise: number, ...completion: Completion): void;
  callFunction(bridge: number, run: number, fn: number, call: number, frame: Uint8Array, length: number, blobs: Blobs): void;
  releaseFunction(bridge: number, run: number, fn: number, times: number): void;
  terminate(bridge: number, run: number, reason: string | undefined): void;
  /**
   * The reports from `index` on, up to the first one that is too large to be read at once: their number, then
   * messages. Their blobs are in `blobs()`.
   */
  reportsSince(bridge: number, run: number, index: number): Uint8Array;
  close(bridge: number, runtime: NativeRuntime, number: number): void;
  NativeTable: new () => NativeTable;
  /** The function of the kit with that name. */
  kitFunction(name: string): NativeFunction;
  /** The number under which such a function crosses into a run that goes on. */
  nativeNumber(bridge: number, run: number, fn: NativeFunction): number;
  openRuntime(options: Record<string, number | string>, workerFolder: string): NativeRuntime | Misuse;
  /** All options of a set. */
  optionDeclarations(set: OptionSet): NativeOption[];
  /** The core's words for an option of the wrong type. */
  wrongType(option: string, expected: string, got: string): string;
  /** The core's words for an option that does not exist. */
  unknownOption(set: OptionSet, key: string): string;
}

const ABIS: Readonly<Record<string, readonly string[]>> = {
  linux: ['-gnu', '-musl'],
  win32: ['-msvc'],
  darwin: [''],
};

/** Loads the addon, and says where it is; throws an error that says what to do when there is none. */
export function loadNative(): { native: Native; folder: string } {
  const require = createRequire(__filename);
  const failures: unknown[] = [];
  const names = (ABIS[process.platform] ?? ['']).map((abi) => `${process.platform}-${process.arch}${abi}`);
  for (const name of names) {
    for (const place of [`isolane-${name}`, `../isolane.${name}.node`]) {
      try {
        return { native: require(place) as Native, folder: dirname(require.resolve(place)) };
      } catch (failure) {
        failures.push(failure);
      }
    }
  }
  throw new Error(
    `isolane has no compiled part for ${names.join(' or ')}. ` +
      `Install its package (npm install isolane, without --omit=optional or --no-optional), ` +
      `or, in a checkout of the project, build it: npm run build.`,
    { cause: new AggregateError(failures, 'each place that was tried') },
  );
}
