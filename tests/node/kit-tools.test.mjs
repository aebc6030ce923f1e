// The tables of tools (crates/kit/tests/cases) in Node.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { Kit, KitError } from 'isolane/kit';

import { Runtime } from '../isolation.mjs';

/** The parts of requests: their lines, headers and bodies. */
const seen = [];

/** The bytes of a text that is percent-encoded. */
const unescaped = (text) => Buffer.from(text.replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1');

/** The server that the tables describe. */
const serve = async (request, response) => {
  const chunks = await request.toArray();
  const { method, url: path, headers } = request;
  const [place, query] = path.split(/\?(.*)/s);
  const [, kind, count, hold] = place.split('/');
  const body = Buffer.concat(chunks).toString();
  if (kind !== 'seen') seen.push(`${method} ${path} ${JSON.stringify(headers)} ${body}`);
  const json = { 'content-type': 'application/json' };
  const answer = (status, text, given = {}) => response.writeHead(status, given).end(text);
  switch (place) {
    case '/json':
      return answer(200, '{"a":1}', json);
    case '/echo':
      return answer(200, JSON.stringify({ method, path, body, headers }), json);
    case '/status':
      return answer(404, 'no');
    case '/redirect':
      return answer(302, '', { location: '/json' });
    case '/loop':
      return answer(302, '', { location: '/loop' });
    case '/large':
      return answer(200, 'x'.repeat(100_000));
    case '/bytes':
      return answer(200, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
    case '/seen':
      return answer(200, `${seen.filter((text) => text.includes(query)).length}`);
    default:
      break;
  }
  if (kind === 'gzip') return answer(200, gzipSync('x'.repeat(Number(count))), { 'content-encoding': 'gzip' });
  if (kind !== 'raw') return undefined;
  const { socket } = request;
  socket.write(unescaped(query));
  socket.write('x'.repeat(Number(count ?? 0)));
  return hold === 'hold' ? undefined : socket.end();
};
const servers = [createServer(serve), createServer(serve)];
const origins = await Promise.all(servers.map(async (server) => {
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return `http://127.0.0.1:${server.address().port}`;
}));
const [origin, other] = origins;
const runtime = new Runtime();
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

const USUAL = {
  state: true,
  libraries: true,
  db: true,
  fetch: { allow: [origin], allowAddresses: ['127.0.0.1'] },
  secrets: {
    KEY: { value: 'correct horse battery', hosts: [origin] },
    PLAIN: { value: 'plain secret value', reveal: true },
  },
};

const LANGUAGES = { ts: 'typescript', js: 'javascript' };

/** The cases of a table. */
function cases(name) {
  const table = readFileSync(new URL(`../../crates/kit/tests/cases/${name}.md`, import.meta.url), 'utf8');
  const [, ...sections] = table.replaceAll('{origin}', origin).replaceAll('{other}', other).split('\n## ');
  return sections.map((section) => {
    const [heading] = section.split('\n', 1);
    const read = { heading, libraries: [], kit: {}, options: {} };
    for (const [, info, content] of section.matchAll(/^```(.+)\n([^]*?)\n```$/gm)) {
      const [kind, name] = info.split(' ');
      if (kind === 'json') read[name] = JSON.parse(content);
      else if (name === undefined) Object.assign(read, { source: content, language: LANGUAGES[kind] });
      else read.libraries.push([name, content, { language: LANGUAGES[kind] }]);
    }
    return read;
  });
}

/** The values of the secrets that all cases have. */
const SECRETS = /correct horse battery|plain secret value/;

/** Compares; `{ "$has": text }` is a text with that part, and an error has the fields that are given. */
function same(key, expected, seen) {
  if (typeof expected?.$has === 'string') assert.ok(typeof seen === 'string' && seen.includes(expected.$has), `${key}: ${seen}`);
  else if (key === 'error') for (const [field, value] of Object.entries(expected)) same(field, value, seen?.[field]);
  else if (Array.isArray(expected) && Array.isArray(seen) && expected.length === seen.length) {
    expected.forEach((one, index) => same(key, one, seen[index]));
  } else assert.deepStrictEqual(seen, expected, key);
}

const all = ['tools', 'exfiltration', 'fetch'].flatMap(cases);
test('the tables have their cases', () => assert.ok(all.length >= 260, `${all.length} cases`));

for (const { heading, source, language, libraries, kit: changes, options, result: expected, misuse } of all) {
  test(heading, async () => {
    const given = Object.fromEntries(Object.entries({ ...USUAL, ...changes }).filter(([, value]) => value !== null));
    const kit = new Kit({ runtime, ...given });
    try {
      for (const library of libraries) await kit.libraries.create(...library);
      const run = () => kit.runTool(source, { language, ...options });
      if (misuse !== undefined) {
        assert.throws(run, { message: misuse });
        return;
      }
      const result = await run();
      assert.ok(!SECRETS.test(JSON.stringify(result)), 'a secret leaves');
      const seen = {
        status: result.status,
        error: result.error,
        logs: result.logs.map(({ level, args }) => [level, ...args]),
        calls: result.calls.map(({ name, summary, ok, error }) => {
          assert.equal(ok, error === undefined);
          return ok ? [name, summary] : [name, summary, error];
        }),
      };
      if (result.json !== undefined) {
        seen.value = JSON.parse(result.json);
        seen.json = result.json;
        assert.deepStrictEqual(result.result, seen.value, 'the result is the JSON');
      }
      for (const [key, value] of Object.entries({ status: 'success', ...expected })) same(key, value, seen[key]);
    } finally {
      await kit.close();
    }
  });
}

const groups = readFileSync(new URL('../../crates/kit/tests/cases/calls.md', import.meta.url), 'utf8').split('\n## ').slice(1);
test('the table of calls has its cases', () => assert.ok(groups.length >= 4, `${groups.length} groups`));

for (const text of groups) {
  test(`calls: ${text.split('\n', 1)[0]}`, async () => {
    const kit = new Kit({ runtime, state: true, db: true, libraries: true });
    try {
      const [, fence] = text.split(/^```.*\n/m);
      for (const [name, args, ...expected] of JSON.parse(fence)) {
        const [group, method] = name.split('.');
        const seen = await kit[group][method](...args).then(
          (value) => [value ?? null],
          (error) => {
            const isOfLanguage = error instanceof TypeError || error instanceof RangeError;
            assert.ok(isOfLanguage || error instanceof KitError, `${name}: ${error}`);
            return [error.name, error.message];
          },
        );
        assert.deepStrictEqual(seen, expected, JSON.stringify([name, args]));
      }
    } finally {
      await kit.close();
    }
  });
}

const refusals = readFileSync(new URL('../../crates/kit/tests/cases/misuse.md', import.meta.url), 'utf8').split('\n## ').slice(1);
test('the table of misuse has its cases', () => assert.ok(refusals.length >= 8, `${refusals.length} groups`));

for (const text of refusals) {
  test(`misuse: ${text.split('\n', 1)[0]}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'isolane-misuse-'));
    try {
      writeFileSync(join(folder, 'text.db'), 'no database, but a text that is as long as a page\n'.repeat(100));
      const [, fence] = text.split(/^```.*\n/m);
      for (const [options, name, message] of JSON.parse(fence.replaceAll('{folder}', folder))) {
        assert.throws(() => new Kit(options), { name, message }, JSON.stringify(options));
      }
      assert.deepStrictEqual(readdirSync(folder), ['text.db']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
