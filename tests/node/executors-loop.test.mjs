// The cases of the loop, which the runners of all languages share, with models and executors of JavaScript.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';

import { CodeExecutionResult, CodeLoop, ExecutorError } from 'isolane/executors';

const CEILING_MS = 120_000;
const cases = JSON.parse(readFileSync(new URL('../../crates/executors/tests/cases/loop.json', import.meta.url), 'utf8'));

/** Rejects when the signal is aborted, and not before. Keeps the process alive. */
const hang = (signal) =>
  new Promise((_, reject) => {
    signal.throwIfAborted();
    const alive = setInterval(() => {}, 1000);
    signal.addEventListener('abort', () => {
      clearInterval(alive);
      reject(new Error('aborted'));
    });
  });

class CaseModel {
  requests = [];

  constructor(replies) {
    this.replies = [...replies];
  }

  async generate({ instruction, contents, signal }) {
    this.requests.push({ instruction, contents });
    const reply = this.replies.shift();
    if ('hang' in reply) await hang(signal);
    if ('stream' in reply) return this.stream(reply);
    if ('error' in reply) throw new Error(reply.error);
    return reply.parts ?? reply.text;
  }

  async *stream({ stream, error }) {
    for (const part of stream) {
      await turn();
      yield part;
    }
    if (error !== undefined) throw new Error(error);
  }
}

class CaseExecutor {
  inputs = [];

  constructor({ calls, stateful = false, attempts = 2, timeoutMs = 30_000 }) {
    this.calls = [...calls];
    this.stateful = stateful;
    this.errorRetryAttempts = attempts;
    this.timeoutMs = timeoutMs;
  }

  async executeCode(ctx, input) {
    this.inputs.push({
      code: input.code,
      language: input.language,
      input_files: input.inputFiles.map(plainFile),
      execution_id: input.executionId,
      turn: ctx.turn,
      attempt: ctx.attempt,
    });
    const call = this.calls.shift();
    for (const [stream, data] of call.live ?? []) ctx[stream](typeof data === 'string' ? data : new Uint8Array(data));
    if ('takesMs' in call) await sleep(call.takesMs);
    if ('hang' in call) await hang(ctx.signal);
    if ('panics' in call) throw new Error('a bug');
    if ('error' in call) throw new ExecutorError(call.error.kind, call.error.message ?? '');
    return CodeExecutionResult.fromJSON(call.result);
  }
}

function plainFile({ name, content, mimeType }) {
  return { name, content: Buffer.from(content).toString('base64'), mime_type: mimeType };
}

function plainEvent(event) {
  if (event.type !== 'result') return event;
  const { durationMs, ...plain } = event;
  assert.equal(typeof durationMs, 'number');
  return { ...plain, result: plain.result.toJSON() };
}

const plainResult = ({ reason, text, files, turns }) => ({ reason, text, files: files.map(plainFile), turns });

async function outcome({ model: replies, executor: settings, options, input = 'go', cancel }) {
  const [model, executor] = [new CaseModel(replies), new CaseExecutor(settings)];
  let stream;
  try {
    stream = new CodeLoop({ model, executor, ...options }).stream(input);
  } catch (error) {
    assert.ok(error instanceof TypeError || error instanceof RangeError, error);
    return { misuse: error.message };
  }
  if (cancel === 0) stream.cancel();
  const events = [];
  let failed = null;
  try {
    for await (const event of stream) {
      events.push(plainEvent(event));
      if (cancel === events.length) stream.cancel();
    }
  } catch (error) {
    failed = error.message;
  }
  const { result } = stream;
  return {
    events,
    result: result === undefined ? null : plainResult(result),
    contents: result?.contents ?? null,
    error: failed,
    inputs: executor.inputs,
    requests: model.requests,
  };
}

/** Events in which outputs that follow one another are one: how many there are is a matter of time. */
function joined(events) {
  const result = [];
  for (const event of events) {
    const last = result.at(-1);
    const isSame = last?.type === 'output' && event.type === 'output' && ['turn', 'index', 'stream'].every((name) => last[name] === event[name]);
    if (isSame) result[result.length - 1] = { ...last, text: last.text + event.text };
    else result.push(event);
  }
  return result;
}

/** The parts of an outcome that a case expects. */
function expectedPart(actual, expected) {
  if (typeof expected !== 'object' || expected === null || Array.isArray(expected)) return actual;
  return Object.fromEntries(
    Object.entries(expected).map(([name, wanted]) => {
      const had = actual?.[name];
      const isList = (name === 'inputs' || name === 'requests') && Array.isArray(had);
      return [name, isList ? had.map((one, index) => (index < wanted.length ? expectedPart(one, wanted[index]) : one)) : had];
    }),
  );
}

test('there are cases', () => assert.ok(cases.length >= 118, String(cases.length)));

for (const one of cases) {
  test(one.name, { timeout: CEILING_MS }, async () => {
    const actual = await outcome(one);
    const { expect } = one;
    assert.ok(Object.keys(expect).length > 0);
    if (expect.events !== undefined) {
      expect.events = joined(expect.events);
      actual.events = joined(actual.events ?? []);
    }
    assert.deepStrictEqual(expectedPart(actual, expect), expect);
  });
}

for (const length of [1, 3]) {
  test(`the pieces of a stream make no difference (${length})`, { timeout: CEILING_MS }, async () => {
    let count = 0;
    for (const one of cases) {
      if ('cancel' in one || JSON.stringify(one.executor.calls).includes('hang')) continue;
      const replies = one.model.map((reply) => {
        const letters = [...(typeof reply.text === 'string' ? reply.text : '')];
        if (letters.length === 0) return reply;
        const stream = [];
        for (let at = 0; at < letters.length; at += length) stream.push(letters.slice(at, at + length).join(''));
        return { stream };
      });
      if (replies.every((reply, index) => reply === one.model[index])) continue;
      const [whole, streamed] = [await outcome(one), await outcome({ ...one, model: replies })];
      for (const field of ['contents', 'result', 'inputs']) assert.deepStrictEqual(streamed[field], whole[field], one.name);
      count += 1;
    }
    assert.ok(count > 30, String(count));
  });
}
