// The table of cases of the process service, through Node.js and over HTTP.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { ProcessError, ProcessService, TypeScriptEnvironment } from 'isolane/environment';

import { Runtime } from '../isolation.mjs';

const CEILING = { timeout: 120_000 };
const file = new URL('../../crates/environment/tests/cases/processes.json', import.meta.url);
const cases = JSON.parse(readFileSync(file, 'utf8'));
const runtime = new Runtime();

/** The fields of a step that are no call. */
const EXPECTED = ['gives', 'fails', 'force', 'after'];

const query = {
  anyOf: [0, 1].map(() => ({
    type: 'object',
    properties: { and: { type: 'array', items: { $ref: '#/$defs/query' } }, eq: { type: 'number' } },
    additionalProperties: false,
  })),
};
const numbers = { type: 'array', items: { type: 'number' } };
const schema = (properties, more) => ({ type: 'object', properties, required: Object.keys(properties), ...more });

function addTools(service) {
  const add = (name, inputSchema, call) => service.tool(...name.split('.'), { description: '', inputSchema }, call);
  add('math.add-all', schema({ numbers }), (args) => args.numbers.reduce((sum, n) => sum + n, 0));
  add('math.fail', undefined, () => {
    throw Object.assign(new RangeError('no such row'), { code: 404 });
  });
  add('shop.echo', undefined, (args) => args);
  add('shop.find', schema({ query: { $ref: '#/$defs/query' } }, { $defs: { query } }), () => 'found');
}

/** The calls of a service. */
const direct = (service) => ({
  create: (process) => service.create(process),
  wait: (pid) => service.wait(pid),
  get: (pid) => service.get(pid),
  run: (pid, { force }) => service.run(pid, { force }),
  kill: (pid) => service.kill(pid),
  delete: (pid) => service.delete(pid),
  code: (pid) => service.code(pid),
  stdout: (pid) => service.stdout(pid),
  stderr: (pid) => service.stderr(pid),
  output: (pid) => service.output(pid),
  list: (given) => service.list(given),
  async events(pid, { after }) {
    const seen = [];
    for await (const { event, data } of service.events(pid, { after })) seen.push([event, data]);
    return seen;
  },
});

/** The same calls over HTTP. */
function overHttp(url) {
  const ask = async (method, path, body) => {
    const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { method, ...json });
    const text = await answer.text();
    if (answer.ok) return { text, status: answer.status };
    const { type, detail } = JSON.parse(text);
    throw new ProcessError(type.replace('urn:isolane:', ''), detail);
  };
  const json = async (...request) => {
    const { text } = await ask(...request);
    return text === '' ? undefined : JSON.parse(text);
  };
  const text = async (pid, part) => (await ask('GET', `/processes/${pid}/${part}`)).text;
  return {
    create: (process) => json('POST', '/processes', process),
    wait: (pid) => json('GET', `/processes/${pid}?wait=60000`),
    get: (pid) => json('GET', `/processes/${pid}`),
    run: (pid, { force = false }) => json('POST', `/processes/${pid}/run`, { force }),
    kill: (pid) => json('POST', `/processes/${pid}/kill`),
    delete: (pid) => json('DELETE', `/processes/${pid}`),
    code: (pid) => text(pid, 'code'),
    stdout: (pid) => text(pid, 'stdout'),
    stderr: (pid) => text(pid, 'stderr'),
    output: (pid) => json('GET', `/processes/${pid}/output`),
    list: (given) => json('GET', `/processes?${new URLSearchParams(given)}`),
    async events(pid, { after = 0 }) {
      const { text: frames } = await ask('GET', `/processes/${pid}/events?after=${after}`);
      return [...frames.matchAll(/event: (.*)\ndata: (.*)\n/g)].map(([, event, data]) => [event, JSON.parse(data)]);
    },
  };
}

for (const { name, options, limit, tools, steps } of cases) {
  for (const [way, isHttp] of [['', false], [', over HTTP', true]]) {
    test(`${name}${way}`, CEILING, async () => {
      const environment = new TypeScriptEnvironment({ runtime, memoryLimitBytes: limit });
      const service = new ProcessService({ ...options, environment });
      if (tools) addTools(service);
      const server = isHttp ? await service.listen({ port: 0, rateLimit: null }) : undefined;
      try {
        const calls = isHttp ? overHttp(server.url) : direct(service);
        calls.ran = async (code) => calls.wait((await calls.create({ code })).pid);
        for (const step of steps) await play(calls, step);
      } finally {
        await server?.close();
        await service.shutdown();
      }
    });
  }
}

async function play(calls, step) {
  const [call] = Object.keys(step).filter((key) => !EXPECTED.includes(key));
  const about = JSON.stringify(step);
  let answer;
  try {
    answer = await calls[call](step[call], step);
  } catch (error) {
    if (!(error instanceof ProcessError)) throw error;
    const [code, message = error.message] = step.fails ?? [];
    assert.deepEqual([error.code, error.message], [code, message.replaceAll(/\{(\w+)\}/g, '$1')], about);
    return;
  }
  assert.equal(step.fails, undefined, about);
  if ('gives' in step) assert.ok(fits(answer, step.gives), `${about}\n${JSON.stringify(answer)}`);
}

/** Whether a value is as expected; of an object only the fields that are expected count. */
function fits(value, expected) {
  if (Array.isArray(expected)) {
    return Array.isArray(value) && value.length === expected.length && expected.every((item, at) => fits(value[at], item));
  }
  if (typeof expected === 'object' && expected !== null) {
    return Object.entries(expected).every(([key, item]) => fits(value?.[key], item));
  }
  if (typeof expected === 'string' && expected.endsWith('…')) {
    return typeof value === 'string' && value.startsWith(expected.slice(0, -1));
  }
  return value === expected;
}
