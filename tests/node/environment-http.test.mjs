// A process service over HTTP, as a user of the package has it: its server, and the page in a real Chromium. The requests
// and their answers are tests of `crates/http`.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import process from 'node:process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { ProcessService, TypeScriptEnvironment } from 'isolane/environment';
import { chromium } from 'playwright-core';

import { Runtime } from '../isolation.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const executablePath = process.env.ISOLANE_CHROMIUM ?? '/usr/bin/chromium';
// Continuous integration has it.
const skip = !existsSync(executablePath) && process.env.CI === undefined ? 'there is no Chromium here' : false;

const TOKEN = 'a token of the test';

/** Calls `act` with a service and its server. */
async function listening(options, act) {
  const service = new ProcessService({ environment: new TypeScriptEnvironment({ runtime: new Runtime() }) });
  const server = await service.listen({ port: 0, ...options });
  try {
    return await act(server, service);
  } finally {
    await server.close();
    await service.shutdown();
  }
}

/** Posts code; the answer and its JSON. */
async function post({ url }, body, { wait = '', headers } = {}) {
  const answer = await fetch(`${url}/processes${wait}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return [answer, await answer.json()];
}

test('a client posts code, waits for it, and reads what it wrote', () =>
  listening({}, async (server, service) => {
    service.tool('shop', 'orders', { description: 'Orders of a user.' }, ({ user }) => [`${user}#1`]);
    const code = `import { orders } from 'shop'; console.log('working'); return await orders({ user: 'ada' })`;
    const [answer, record] = await post(server, { code }, { wait: '?wait=60000' });
    assert.deepEqual([answer.status, answer.headers.get('location')], [201, '/processes/1']);
    assert.deepEqual([record.exitState, record.output], ['success', { result: ['ada#1'] }]);
    const stdout = await fetch(`${server.url}/processes/1/stdout`);
    assert.equal(await stdout.text(), 'working\n');
    assert.match(await (await fetch(`${server.url}/tools.d.ts`)).text(), /orders/);
    const events = await (await fetch(`${server.url}/processes/1/events`)).text();
    assert.match(events, /event: exit\n/);
  }));

test('problems have types, and a token is asked for', () =>
  listening({ token: TOKEN.replaceAll(' ', '-') }, async (server) => {
    const [refused, problem] = await post(server, { code: '1' });
    assert.equal(refused.headers.get('content-type'), 'application/problem+json');
    assert.deepEqual([problem.type, problem.status], ['urn:isolane:unauthorized', 401]);
    const headers = { authorization: `Bearer ${TOKEN.replaceAll(' ', '-')}` };
    const [, unknown] = await post(server, { code: '1', timeoutMS: 5 }, { headers });
    assert.equal(unknown.type, 'urn:isolane:bad-request');
    assert.match(unknown.detail, /did you mean 'timeoutMs'/);
  }));

test('misuse of an option rejects with its name', async () => {
  const service = new ProcessService();
  const environment = 5;
  assert.throws(() => new ProcessService({ environment }), { message: 'environment must have the methods execute and kill' });
  for (const [options, kind, message] of [
    [{ port: 70_000 }, RangeError, /^port must be/],
    [{ port: 'x' }, TypeError, /^port must be/],
    [{ prot: 1 }, TypeError, /did you mean 'port'/],
    [{ token: 'short' }, RangeError, /^token must have at least 16 characters/],
    [{ host: '0.0.0.0', port: 0 }, TypeError, /token/],
  ]) {
    await assert.rejects(service.listen(options), (error) => error instanceof kind && message.test(error.message));
  }
  await service.shutdown();
  await assert.rejects(service.listen({ port: 0 }), { message: 'the service is shutting down' });
});

test('a server that listens keeps the program alive, and a closed one does not', () => {
  const program = `
    import { ProcessService } from 'isolane/environment';
    const service = new ProcessService();
    const server = await service.listen({ port: 0 });
    const again = await service.listen({ port: 0 });
    await fetch(again.url + '/healthz').then((answer) => answer.json()).then(({ status }) => console.log(status));
    await again.close();
    setTimeout(async () => { console.log('still here'); await server.close(); console.log('closed'); }, 50).unref();`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.deepEqual([stdout, stderr, status], ['ok\nstill here\nclosed\n', '', 0]);
});

test('the page asks for the token, shows processes live and as text, and kills', { skip }, async () => {
  const token = TOKEN.replaceAll(' ', '-');
  await listening({ token }, async (server, service) => {
    service.tool('test', 'wait', { description: 'Never answers.' }, () => new Promise(() => {}));
    const headers = { authorization: `Bearer ${token}` };
    const send = async (code) => (await post(server, { code, timeoutMs: 600_000 }, { headers }))[1];
    const hostile = `console.log('<img src=x onerror="document.title = 1">'); return 1`;
    await send(hostile);
    await send(`throw new TypeError('<b>no</b> such row')`);
    const browser = await chromium.launch({ executablePath });
    try {
      const page = await browser.newPage();
      const problems = [];
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('request', (request) => {
        if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) problems.push(request.url());
      });
      await page.goto(`${server.url}/`);
      await page.fill('#token', 'wrong-wrong-wrong-wrong');
      await page.click('#login button');
      await page.waitForFunction(() => document.getElementById('notice').textContent.includes('not valid'));
      await page.fill('#token', token);
      await page.click('#login button');
      await page.waitForSelector('#processes tr');
      const live = await send(`import { wait } from 'test'; for (let i = 0; i < 3; i++) console.log('line ' + i); await wait({})`);
      await page.waitForFunction((pid) => document.querySelector('#processes tr button')?.textContent === String(pid), live.pid);
      await page.click('#processes tr:first-child button');
      await page.waitForFunction(() => document.getElementById('stdout').textContent.startsWith('line 0\nline 1\nline 2\n'));
      await page.click('#kill');
      await page.waitForFunction(() => document.querySelector('#processes tr:first-child').textContent.includes('canceled'));
      await page.click('#processes tr:nth-child(3) button');
      await page.waitForFunction(() => document.getElementById('stdout').textContent.includes('<img'));
      await page.click('#processes tr:nth-child(2) button');
      await page.waitForFunction(() => document.getElementById('error').textContent.includes('<b>no</b>'));
      assert.equal(await page.locator('img').count(), 0);
      assert.deepEqual(problems, []);
    } finally {
      await browser.close();
    }
  });
});
