// Samples, figures and tables of the benchmarks.
//
// In: a function, and the time for its repetitions. Out: the median, and rows in Markdown. `--quick` takes a tenth of
// the time.

import { parseArgs } from 'node:util';

import { runCode } from 'isolane';

export const { values: { quick } } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });

/** The time of one measurement in milliseconds. */
const BUDGET_MS = quick ? 60 : 800;
const FEWEST = 3;

export const median = (samples) => samples.toSorted((a, b) => a - b)[samples.length >> 1];

/** The duration of `act` in milliseconds. */
export async function clock(act) {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

/**
 * The median duration of `act` in milliseconds; a tenth of the time is warm-up. Excludes `prepare`, which makes its
 * argument.
 */
export async function time(act, prepare = () => undefined) {
  const samples = [];
  const began = performance.now();
  let warm = 0;
  for (;;) {
    const count = warm + samples.length;
    const prepared = prepare(count);
    const took = await clock(() => act(count, prepared));
    const passed = performance.now() - began;
    if (passed < BUDGET_MS / 10) warm += 1;
    else samples.push(took);
    if (passed > BUDGET_MS && samples.length >= FEWEST) return median(samples);
  }
}

/** The rate of `act` per second, with so many at once. */
export async function rate(lanes, act) {
  await Promise.all(Array.from({ length: lanes }, act));
  let done = 0;
  const began = performance.now();
  const lane = async () => {
    while (performance.now() - began < BUDGET_MS) {
      await act();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return done / ((performance.now() - began) / 1e3);
}

/** Runs a program that must succeed. */
export async function succeed(source, options, run = runCode) {
  const outcome = await run(source, options);
  if (outcome.status !== 'success') throw new Error(`${outcome.status}: ${outcome.error.message}`);
  return outcome;
}

/** Records with so many bytes as JSON. */
export function records(bytes) {
  const record = (id) => ({ id, name: `record ${id}`, tags: ['a', 'b'], score: id * 1.5 });
  const length = Math.ceil(bytes / JSON.stringify(record(1e3)).length);
  return Array.from({ length }, (_, id) => record(id));
}

/** The bytes that the process holds after a garbage collection. */
export function held() {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

export function digits(value) {
  if (value < 100) return value.toFixed(value < 10 ? 2 : 1);
  return Math.round(value).toLocaleString('en');
}

export const micros = (ms) => `${digits(ms * 1e3)} µs`;
export const perSecond = (count) => `${digits(count)} runs/s`;
export const kib = (bytes) => `${digits(bytes / 1024)} KiB`;

/** A row: its name, its figure, the reference by name, its figure, and the ratio. */
export function row(what, cost, reference, cost0, unit = micros) {
  return `| ${what} | ${unit(cost)} | ${reference} | ${unit(cost0)} | ${(cost / cost0).toFixed(2)} |`;
}

export const HEAD = '| what | figure | reference | figure | ratio |\n|---|--:|---|--:|--:|';
