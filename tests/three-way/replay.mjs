// Runs cases through Node: reads a line for each case from standard input and writes a line with its result.

import process from 'node:process';
import { createInterface } from 'node:readline';

import { runCode } from '../isolation.mjs';

import { hostFunctions } from '../contract/host.node.mjs';
import { untag } from '../contract/tags.node.mjs';
import { canonical, text } from './canonical.mjs';

const AT_ONCE = 8;
const cases = createInterface({ input: process.stdin, crlfDelay: Infinity })[Symbol.asyncIterator]();

await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let next = await cases.next(); !next.done; next = await cases.next()) {
      const one = JSON.parse(next.value);
      process.stdout.write(`${line(one.number, await outcome(one))}\n`);
    }
  }),
);

async function outcome({ source, modules, options: tagged }) {
  let handle;
  const functions = hostFunctions(() => handle);
  const options = untag(tagged, functions);
  if (options.report === true) options.report = () => undefined;
  if (Object.keys(modules).length > 0) options.modules = { ...options.modules, ...modules };
  try {
    handle = runCode(source, options);
  } catch ({ name, message }) {
    return { misuse: record({ name: text(name), message: text(message) }) };
  }
  const { status, result, reports, logs, error } = await handle;
  return {
    status: text(status),
    ...(status === 'success' ? { result: canonical(result) } : {}),
    reports: `[${reports.map((report) => canonical(report)).join(',')}]`,
    logs: `[${logs.map(({ level, args }) => `[${text(level)},${canonical(args)}]`).join(',')}]`,
    ...(error === undefined ? {} : { error: failure(error) }),
  };
}

function failure({ name, message, stack, specifier, filename, line: row, column }) {
  const texts = Object.entries({ name, message, stack, specifier, filename }).map(([key, value]) => [key, value === undefined ? undefined : text(value)]);
  return record({ ...Object.fromEntries(texts), line: row, column });
}

function line(number, fields) {
  return record({ number, ...fields });
}

function record(fields) {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `{${entries.map(([key, value]) => `"${key}":${value}`).join(',')}}`;
}
