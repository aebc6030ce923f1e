// The host functions that one sandbox has received.
//
// In: functions of the host, and functions that are answered in Rust. Out: the numbers under which they cross, and
// the function of a number. The same function has the same number for as long as the sandbox can have it.

import { types } from 'node:util';

import { bridge, native } from '../addon/connection.js';
import type { NativeFunction, NativeTable } from '../addon/native.js';
import { ASYNC_FUNCTION, REPORT_SINK } from '../addon/wire.js';

/** Characters of a name that messages show. */
const SHOWN_NAME = 80;

interface Entry {
  readonly fn: Function;
  /** The name under which the function first crossed. */
  readonly name: string;
  /** The place of the cell to which alone it was given; 0 for a run, or where a session has it. */
  cell: number;
}

export class HostFunctions {
  private readonly numbers = new Map<Function | NativeFunction, number>();
  /** By their numbers without {@link ASYNC_FUNCTION}. */
  private readonly functions = new Map<number, Entry>();
  private given = 0;
  private native: Natives | undefined;

  /** Has the functions of another sandbox, of which this one is a copy, under their numbers. */
  continues(other: HostFunctions): void {
    for (const [place, { fn, name }] of other.functions) this.functions.set(place, { fn, name, cell: 0 });
    this.given = other.given;
    for (const [fn, number] of other.numbers) this.numbers.set(fn, number);
    if (other.native !== undefined) this.native = { table: other.native.table, functions: new Map(other.native.functions) };
  }

  /** Whether there is one whose calls reach JavaScript. */
  get hasFunctions(): boolean {
    return this.functions.size > 0;
  }

  /** The functions that are answered in Rust, if there are any. */
  get natives(): NativeTable | undefined {
    return this.native?.table;
  }

  /** The number of a host function, which crosses under that name to that cell. */
  number(fn: Function, name: string, cell: number): number {
    const known = this.numbers.get(fn);
    if (known !== undefined) {
      const entry = this.functions.get(known % ASYNC_FUNCTION);
      if (entry !== undefined && entry.cell !== cell) entry.cell = 0;
      return known;
    }
    const place = this.given;
    this.given += 1;
    this.functions.set(place, { fn, name, cell });
    const number = isAsync(fn) ? place + ASYNC_FUNCTION : place;
    this.numbers.set(fn, number);
    return number;
  }

  /** Forgets the functions that were given to such cells alone: the sandbox has them no more. */
  lose(isLost: (cell: number) => boolean): void {
    for (const [place, { fn, cell }] of this.functions) {
      if (cell === 0 || !isLost(cell)) continue;
      this.functions.delete(place);
      this.numbers.delete(fn);
    }
  }

  /** The number of a function that is answered in Rust, in the run or session with that number, if it has started. */
  nativeNumber(fn: NativeFunction, run: number | undefined): number {
    const known = this.numbers.get(fn);
    if (known !== undefined) return known;
    this.native ??= { table: new native.NativeTable(), functions: new Map() };
    const number = run === undefined ? this.native.table.number(fn) : native.nativeNumber(bridge(), run, fn);
    this.numbers.set(fn, number);
    this.native.functions.set(number % ASYNC_FUNCTION, fn);
    return number;
  }

  /** The function with that number whose calls reach JavaScript. */
  fn(number: number): Function | undefined {
    return this.functions.get(number)?.fn;
  }

  /** The name of the function with that number, for messages. */
  nameOf(number: number): string {
    if (number === REPORT_SINK) return 'report';
    return this.functions.get(number)?.name.slice(0, SHOWN_NAME) || 'a host function';
  }

  /** The function of either kind with that number, which has come back from the sandbox. */
  known(number: number): Function {
    return this.functions.get(number)?.fn ?? (this.native?.functions.get(number) as Function);
  }
}

interface Natives {
  readonly table: NativeTable;
  readonly functions: Map<number, NativeFunction>;
}

/** Whether every call of the function returns a promise. */
function isAsync(fn: Function): boolean {
  return types.isAsyncFunction(fn) && !types.isGeneratorFunction(fn);
}
