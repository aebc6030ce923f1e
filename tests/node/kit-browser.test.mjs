// `browser` on pages of Chromium, through Playwright, and the proxy of the kit in front of them.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import { after, before, test } from 'node:test';

import { Kit } from 'isolane/kit';
import { chromium } from 'playwright-core';

import { Runtime } from '../isolation.mjs';

const executablePath = process.env.ISOLANE_CHROMIUM ?? '/usr/bin/chromium';
// Continuous integration has it.
const skip = !existsSync(executablePath) && process.env.CI === undefined ? 'there is no Chromium here' : false;

const runtime = new Runtime();
const PAGE = `<!doctype html><title>a page</title><body><p>one</p><p>two</p>
  <button onclick="this.textContent = 'clicked'">button</button><input value="before">
  <script>window.shared = { day: new Date(0), list: [1, 2n] }</script></body>`;
let server;
let browser;
let requests = [];
// Called when the server is asked for something that takes for ever.
let asked;

before(async () => {
  if (skip) return;
  server = createServer((request, response) => {
    requests.push(`${request.headers.host.split(':')[0]}${request.url}`);
    if (request.url === '/away') response.writeHead(302, { location: `http://127.0.0.1:${port()}/forbidden` }).end();
    else if (request.url === '/elsewhere') response.writeHead(302, { location: `http://localhost:${port()}/hang` }).end();
    else if (request.url === '/silent') {
      requests.push('silent');
      asked?.();
    }
    else if (request.url === '/hang') {
      // The document is there, and is never done.
      asked?.();
      response.setHeader('content-type', 'text/html');
      response.write('<title>hangs</title><p>begun</p>'.padEnd(4_096));
    } else if (request.url === '/slow') {
      setTimeout(() => response.setHeader('content-type', 'text/html').end(PAGE), 6_000);
    } else if (request.url === '/hello') response.end('the value is hunter2-hunter2');
    else if (request.url === '/probe') {
      response.setHeader('content-type', 'text/html');
      response.end(`<title>probe</title><img src="http://127.0.0.2:${port()}/private"><img src="http://127.0.0.1:${port()}/a/picture">`);
    } else {
      response.setHeader('content-type', 'text/html');
      response.end(PAGE);
    }
  });
  // 127.0.0.2 is an address of the same host that no kit here lets through.
  await new Promise((done) => server.listen(0, '0.0.0.0', done));
  browser = await chromium.launch({ executablePath });
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

const port = () => server.address().port;
const at = (path = '/') => `http://127.0.0.1:${port()}${path}`;

/** Runs `act` with a kit that may use the server, and with its page. */
async function withKit(options, act) {
  const page = await browser.newPage();
  const fetch = { allow: [`http://127.0.0.1:${port()}/*`], allowAddresses: ['127.0.0.1'] };
  const kit = new Kit({ runtime, browser: page, fetch, ...options });
  requests = [];
  try {
    return await act(kit, page);
  } finally {
    await kit.close();
    await page.close().catch(() => {});
  }
}

async function value(kit, source, options) {
  const result = await kit.runTool(source, options);
  assert.equal(result.status, 'success', JSON.stringify(result.error));
  return result.result;
}

const FAILS = 'const fails = async (call) => { try { return await call } catch (e) { return [e.name, e.message] } };';

test('code uses the page that the host uses', { skip }, () =>
  withKit({}, async (kit, page) => {
    const tool = `
      const arrived = await browser.navigate(args.url);
      await browser.click('button');
      await browser.type('input', ' after');
      const added = await browser.evaluate("document.querySelector('input').value");
      await browser.type('input', 'anew', { clear_first: true });
      const shot = await browser.screenshot();
      return {
        arrived, added,
        anew: await browser.evaluate("return document.querySelector('input').value"),
        shared: await browser.evaluate('() => window.shared'),
        text: await browser.extractText('p'),
        body: (await browser.extractText()).includes('clicked'),
        html: await browser.extractHtml('p'), outer: await browser.extractHtml('p', { outer: true }),
        shot: [shot.image.startsWith('iVBORw0KGgo'), shot.width, shot.height],
        part: (await browser.screenshot({ selector: 'button' })).width < shot.width,
      }`;
    const got = await value(kit, tool, { args: { url: at() } });
    assert.deepStrictEqual(got, {
      arrived: { url: at(), title: 'a page', status: 200 },
      added: 'before after',
      anew: 'anew',
      shared: { day: '1970-01-01T00:00:00.000Z', list: [1, 2] },
      text: 'one',
      body: true,
      html: 'one',
      outer: '<p>one</p>',
      shot: [true, 1280, 720],
      part: true,
    });
    assert.equal(page.url(), at());
    assert.equal(await page.textContent('button'), 'clicked');
    await page.setContent('<p>by the host</p>');
    assert.equal(await value(kit, "return await browser.extractText('p')"), 'by the host');
  }));

test('a navigation that takes too long is stopped, and judged where it has come to', { skip }, async () => {
  const page = await browser.newPage();
  try {
    await withKit({ browser: { page, timeoutMs: 10_000 } }, async (kit) => {
      const tool = `${FAILS} return [await fails(browser.navigate(args.url)), await browser.extractText()]`;
      const late = ['BrowserTimeout', 'the browser took longer than 10000 ms'];
      assert.deepStrictEqual(await value(kit, tool, { args: { url: at('/hang') } }), [late, 'begun']);
      assert.equal(page.url(), at('/hang'));
      assert.deepStrictEqual(await value(kit, tool, { args: { url: at('/elsewhere') } }), [late, '']);
      assert.equal(page.url(), 'about:blank');
      assert.ok(requests.includes('localhost/hang'));
      // The same if the run ends with it.
      const ended = await kit.runTool('await browser.navigate(args.url)', { args: { url: at('/elsewhere') } });
      assert.equal(ended.error.name, 'BrowserTimeout');
      assert.equal(await value(kit, 'return await browser.extractText()'), '');
      assert.equal(page.url(), 'about:blank');
    });
  } finally {
    await page.close();
  }
});

test('a navigation without an answer leaves the page as it was', { skip }, async () => {
  const page = await browser.newPage();
  try {
    await withKit({ browser: { page, timeoutMs: 10_000 } }, async (kit) => {
      const tool = `${FAILS} await browser.navigate(args.url);
        const [late] = await fails(browser.navigate(args.url + 'silent'));
        return [late, await browser.evaluate('location.href'), await browser.extractText('p')]`;
      const { result, calls, error } = await kit.runTool(tool, { args: { url: at() } });
      assert.deepStrictEqual(result, ['BrowserTimeout', at(), 'one'], JSON.stringify(error));
      assert.deepStrictEqual(calls.map(({ error: name }) => name), [undefined, 'BrowserTimeout', undefined, undefined]);
      assert.ok(requests.includes('silent'));
    });
  } finally {
    await page.close();
  }
});

test('a page that was closed is followed by another one', { skip }, async () => {
  const context = await browser.newContext();
  for (const source of [await context.newPage(), () => browser.newPage()]) {
    await withKit({ browser: source }, async (kit) => {
      await value(kit, "await browser.extractText(); await browser.close()");
      assert.equal((await value(kit, `return await browser.navigate(args.url)`, { args: { url: at() } })).status, 200);
    });
  }
  await context.close();
});

test('a page without a context of its own cannot be followed', { skip }, () =>
  withKit({}, async (kit, page) => {
    await value(kit, 'await browser.close()');
    assert.ok(page.isClosed());
    const [name] = await value(kit, `${FAILS} return await fails(browser.extractText())`);
    assert.equal(name, 'BrowserError');
  }));

test('of a context the newest page is used, or a new one', { skip }, async () => {
  const context = await browser.newContext();
  await withKit({ browser: { context } }, async (kit) => {
    assert.equal(await value(kit, `await browser.navigate(args.url); return await browser.evaluate('1 + 1')`, { args: { url: at() } }), 2);
    assert.equal(context.pages().length, 1);
    const newest = await context.newPage();
    await newest.setContent('<p>newest</p>');
    assert.equal(await value(kit, "return await browser.extractText('p')"), 'newest');
  });
  await context.close();
});

test('navigation obeys the rules, also where it arrives', { skip }, () =>
  withKit({ browser: { page: () => browser.newPage(), allow: [`http://127.0.0.1:${8}`] } }, async (kit) => {
    const message = await value(kit, `${FAILS} return await fails(browser.navigate(args.url))`, { args: { url: at() } });
    assert.deepStrictEqual(message, ['BrowserBlocked', 'port ' + port() + ' is not allowed']);
    assert.deepStrictEqual(requests, []);
  }));

test('a redirect to elsewhere leaves the page', { skip }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, allow: [`http://127.0.0.1:${port()}/away`] } }, async (kit) => {
    const [name] = await value(kit, `${FAILS} return await fails(browser.navigate(args.url))`, { args: { url: at('/away') } });
    assert.equal(name, 'BrowserBlocked');
    assert.equal(page.url(), 'about:blank');
  });
});

test('time limits hold in a page that never rests', { skip }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, timeoutMs: 700 } }, async (kit) => {
    const waits = await value(kit, `${FAILS} return [await fails(browser.click('#none')), await fails(browser.evaluate('for (;;) ;'))]`);
    assert.deepStrictEqual(waits, [1, 2].map(() => ['BrowserTimeout', 'the browser took longer than 700 ms']));
  });
});

test('a run that ends does not wait for its page, and neither does the host', { skip, timeout: 120_000 }, async () => {
  const page = await browser.newPage();
  // The click alone would take ten minutes.
  await withKit({ browser: { page, timeoutMs: 600_000 } }, async (kit) => {
    const ended = await kit.runTool("await browser.click('#none')", { timeoutMs: 300 });
    assert.equal(ended.error.name, 'Timeout');
    assert.equal(await page.evaluate('1 + 1'), 2);
  });
  await page.close();
});

/** The commands that take for ever, with the moment at which each one is under way. */
async function endless(page) {
  let begun;
  await page.exposeFunction('begun', () => begun());
  return ['navigate(args.silent)', "evaluate('begun(); return new Promise(() => {})')", "evaluate('begun(); for (;;) ;')"].map(
    (call) => ({ call, begins: () => new Promise((resolve) => ((begun = resolve), (asked = resolve))) }),
  );
}

test('a run that is ended from outside leaves its page to the next one', { skip, timeout: 240_000 }, async () => {
  const page = await browser.newPage();
  // Each command alone would take an hour.
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    const args = { silent: at('/silent') };
    for (const { call, begins } of await endless(page)) {
      for (const end of ['terminate', 'signal']) {
        await page.goto(at());
        const begun = begins();
        const aborting = new AbortController();
        const run = kit.runTool(`await browser.${call}`, { args, signal: aborting.signal });
        await begun;
        if (end === 'terminate') run.terminate();
        else aborting.abort();
        assert.equal((await run).status, 'terminated');
        assert.equal(await value(kit, "return await browser.extractText('p')"), 'one', call);
      }
      const session = kit.session();
      const source = `await browser.${call.replace('args.silent', `'${args.silent}'`)}`;
      assert.equal((await session.run(source, { timeoutMs: 500 })).status, 'terminated');
      assert.equal((await session.run("await browser.extractText('p')")).result, 'one', call);
      await session.close();
    }
  });
  await page.close();
});

test('a click that waits does not happen after the end of its run', { skip, timeout: 120_000 }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    await page.setContent('<p>one</p>');
    for (const call of ["click('button')", "type('input', 'x', { clear_first: true })", "type('input', 'x')"]) {
      const ended = await kit.runTool(`await browser.${call}`, { timeoutMs: 300 });
      assert.equal(ended.error.name, 'Timeout');
    }
    await page.evaluate("document.body.innerHTML = `<button onclick='this.textContent = 1'>0</button><input><b>0</b>`");
    // A click or a key of these runs would come before these two.
    await page.click('b');
    await page.fill('input', '');
    assert.deepEqual(await page.evaluate("[document.querySelector('button').textContent, document.querySelector('input').value]"), ['0', '']);
  });
  await page.close();
});

/** A control, the state that keeps a command waiting for it, and the end of that state. */
const LATE_CONTROLS = [
  ["click('button')", '<button disabled>0</button>', "document.querySelector('button').disabled = false"],
  ["click('button')", "<button>0</button><div style='position: fixed; inset: 0'></div>", "document.querySelector('div').remove()"],
  ["type('input', 'x', { clear_first: true })", '<input readonly>', "document.querySelector('input').readOnly = false"],
];
/** Notes what happens to the page's controls. A command that waits for them looks at them before each frame. */
const NOTES = `<script>
  window.seen = [];
  for (const kind of ['click', 'input']) addEventListener(kind, () => seen.push(kind), true);
  window.frames_later = async (left) => { while (left-- > 0) await new Promise(requestAnimationFrame); return seen.length };
</script>`;

test('a command that waits for a control ends with its run', { skip, timeout: 240_000 }, async () => {
  for (const end of ['terminate', 'close', 'time limit', 'BrowserTimeout']) {
    for (const [call, control, ready] of LATE_CONTROLS) {
      const page = await browser.newPage();
      await page.setContent(control + NOTES);
      let begin;
      const begun = new Promise((resolve) => (begin = resolve));
      await page.exposeFunction('begun', begin);
      await withKit({ browser: { page, timeoutMs: end === 'BrowserTimeout' ? 1_000 : 3_600_000 } }, async (kit) => {
        const run = kit.runTool(`await browser.evaluate('begun()'); await browser.${call}`, end === 'time limit' ? { timeoutMs: 1_000 } : {});
        // The time of a slow machine may be over before.
        await Promise.race([begun, run]);
        // Playwright finds the control not ready by then.
        await page.evaluate('frames_later(40)');
        if (end === 'terminate') run.terminate();
        if (end === 'close') await kit.close();
        const { status, error } = await run;
        assert.notEqual(status, 'success');
        if (end === 'BrowserTimeout') assert.equal(error.name, end);
        await page.evaluate(ready);
        assert.equal(await page.evaluate('frames_later(120)'), 0, `${end}: ${call}`);
      });
      await page.close();
    }
  }
});

test('keys are not typed on after the end of their run', { skip, timeout: 120_000 }, async () => {
  for (const end of ['terminate', 'close']) {
    const page = await browser.newPage();
    await page.setContent('<input>' + NOTES);
    await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
      const run = kit.runTool("await browser.type('input', 'x'.repeat(100_000))");
      await page.waitForFunction('seen.length > 10');
      if (end === 'terminate') run.terminate();
      else await kit.close();
      assert.equal((await run).status, 'terminated');
      const typed = await page.evaluate('seen.length');
      assert.equal(await page.evaluate('frames_later(30)'), typed, end);
    });
    await page.close();
  }
});

test("the host's navigation right after the end of a run arrives", { skip, timeout: 240_000 }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    const args = { silent: at('/silent') };
    for (let round = 0; round < 25; round += 1) {
      const begun = new Promise((resolve) => (asked = resolve));
      const run = kit.runTool('await browser.navigate(args.silent)', { args });
      await begun;
      run.terminate();
      await run;
      assert.equal((await page.goto(at(`/${round}`))).status(), 200);
      // The kit is done with the page by then.
      assert.equal(await value(kit, 'return 1'), 1);
      assert.equal(page.url(), at(`/${round}`));
    }
    // A navigation of the host's that takes longer than a page at rest may.
    const begun = new Promise((resolve) => (asked = resolve));
    const run = kit.runTool('await browser.navigate(args.silent)', { args });
    await begun;
    run.terminate();
    await run;
    assert.equal((await page.goto(at('/slow'), { timeout: 60_000 })).status(), 200);
    assert.equal(await value(kit, "return await browser.extractText('p')"), 'one');
    assert.equal(page.url(), at('/slow'));
  });
  await page.close();
});

test("the host's navigation arrives beside a document that was arriving", { skip, timeout: 240_000 }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    for (let round = 0; round < 20; round += 1) {
      await page.goto('about:blank');
      await page.goto(at());
      const begun = new Promise((resolve) => (asked = resolve));
      const run = kit.runTool('await browser.navigate(args.url)', { args: { url: at('/hang') } });
      await begun;
      run.terminate();
      await run;
      assert.equal((await page.goto(at(`/${round}`))).status(), 200);
      assert.equal(page.url(), at(`/${round}`));
    }
  });
  await page.close();
});

test('the page is usable once the kit is closed', { skip, timeout: 120_000 }, async () => {
  const page = await browser.newPage();
  await page.goto(at());
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    const begun = new Promise((resolve) => (asked = resolve));
    const run = kit.runTool('await browser.navigate(args.url)', { args: { url: at('/silent') } });
    await begun;
    await kit.close();
    assert.equal((await run).error.message, 'kit closed');
    assert.equal(await page.evaluate('1 + 1'), 2);
    assert.equal((await page.goto(at())).status(), 200);
  });
  await page.close();
});

test('a page that computes for ever is left, and its kit is closed', { skip, timeout: 120_000 }, async () => {
  const context = await browser.newContext();
  await withKit({ browser: { context, timeoutMs: 2_000 } }, async (kit) => {
    await value(kit, "await browser.navigate(args.url); await browser.evaluate('setInterval(() => { for (;;) ; })')", { args: { url: at() } });
    const ended = await kit.runTool('await browser.extractText()');
    assert.equal(ended.error.name, 'BrowserTimeout');
    assert.equal(await value(kit, 'return await browser.extractText()'), '');
    assert.equal(context.pages()[0].url(), 'about:blank');
    await value(kit, "await browser.navigate(args.url); await browser.evaluate('setInterval(() => { for (;;) ; })')", { args: { url: at() } });
    const last = kit.runTool('await browser.extractText()');
    await kit.close();
    assert.equal((await last).error.message, 'kit closed');
    // Nobody waited for it, so it computes on until it is closed.
    await context.pages()[0].close();
  });
  await context.close();
});

/** What a page changes so that a text without a bound would leave it. No page can have Chromium's own part give one. */
const HOSTILE = [
  "JSON.stringify = () => '\\u0001'.repeat(95e6)",
  "JSON.stringify = () => ({ a: 1 })",
  "Promise.prototype.then = (done) => done('\\u0001'.repeat(95e6)); 1",
  "Object.defineProperty(Promise.prototype, 'constructor', { get() { throw 1 } }); 1",
  "window.String = () => '\\u0001'.repeat(95e6); throw 1",
  "throw { toString: () => '\\u0001'.repeat(95e6) }",
  "throw Object.defineProperty(new Error(''), 'message', { get: () => '\\u0001'.repeat(95e6) })",
  "Error.prepareStackTrace = () => '\\u0001'.repeat(95e6); ) (",
  "Error.prepareStackTrace = () => '\\u0001'.repeat(95e6); throw new Error('x')",
];

test('nothing that a page changes has more leave it than the limit', { skip, timeout: 240_000 }, async () => {
  for (const code of HOSTILE) {
    await withKit({}, async (kit) => {
      const tool = `${FAILS} await browser.navigate(args.url);
        const first = await fails(browser.evaluate(args.code));
        return [first, await fails(browser.evaluate(args.code)), await browser.navigate(args.url)]`;
      const [first, again, arrived] = await value(kit, tool, { args: { url: at(), code } });
      assert.ok(JSON.stringify([first, again]).length < 10_000, code);
      assert.equal(arrived.title, 'a page', code);
    });
  }
  await withKit({}, async (kit) => {
    const tool = `${FAILS} await browser.navigate(args.url);
      await browser.evaluate("window.String = () => ({ a: 1 }); document.title = 'x'.repeat(2e6); 1");
      const text = await browser.extractText('p');
      await browser.evaluate("Object.defineProperty(HTMLElement.prototype, 'innerText', { get: () => '\\u0001'.repeat(95e6) }); 1");
      const long = await fails(browser.extractText('p'));
      await browser.evaluate("Object.defineProperty(HTMLElement.prototype, 'innerText', { get() { throw { toString: () => '\\u0001'.repeat(95e6) } } }); 1");
      return [text, long[0], await browser.extractText('p'), (await browser.navigate(args.url + '#there')).title];`;
    assert.deepStrictEqual(await value(kit, tool, { args: { url: at() } }), ['one', 'BrowserLimit', '', '']);
  });
});

test('code is an expression or a body, and is asked for once', { skip }, () =>
  withKit({}, async (kit) => {
    await value(kit, 'await browser.navigate(args.url)', { args: { url: at() } });
    const given = {
      'document.title;': 'a page',
      'const x = 5; x': 5,
      'window.times = (window.times ?? 0) + 1': 1,
      'window.times;': 1,
      '{ a: 1 }': { a: 1 },
      "'a text';": 'a text',
      'for (const x of [1]) if (x) return x': 1,
      'window.shared.list.length // of it': 2,
    };
    for (const [code, expected] of Object.entries(given)) {
      assert.deepStrictEqual(await value(kit, 'return await browser.evaluate(args.code)', { args: { code } }), expected, code);
    }
    const [name, message] = await value(kit, `${FAILS} return await fails(browser.evaluate('1 +'))`);
    assert.deepStrictEqual([name, message.startsWith('SyntaxError: ')], ['BrowserError', true], message);
  }));

test('a place that cannot be reached says so, and the next navigation arrives', { skip, timeout: 120_000 }, async () => {
  const closed = createServer();
  await new Promise((done) => closed.listen(0, '127.0.0.1', done));
  const dead = `http://127.0.0.1:${closed.address().port}/`;
  await new Promise((done) => closed.close(done));
  const page = await browser.newPage();
  const fetch = { allow: ['http://127.0.0.1:*/*'], allowAddresses: ['127.0.0.1'] };
  await withKit({ browser: page, fetch }, async (kit) => {
    for (let round = 0; round < 10; round += 1) {
      const tool = `${FAILS} return [await fails(browser.navigate(args.dead)), await fails(browser.navigate(args.dead)), (await browser.navigate(args.url)).status]`;
      const refused = ['BrowserError', `net::ERR_CONNECTION_REFUSED at ${dead}`];
      assert.deepStrictEqual(await value(kit, tool, { args: { dead, url: at(`/${round}`) } }), [refused, refused, 200]);
    }
  });
  await page.close();
});

test('a navigation that a click began is stopped with its run', { skip, timeout: 120_000 }, async () => {
  for (const end of ['run', 'host', 'close']) {
    const page = await browser.newPage();
    await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
      await page.goto(at());
      await page.setContent(`<p>one</p><a href="${at('/silent')}">go</a>`);
      const begun = new Promise((resolve) => (asked = resolve));
      const going = page.waitForRequest(at('/silent'));
      const run = kit.runTool("await browser.click('a')");
      await Promise.all([begun, going]);
      run.terminate();
      assert.equal((await run).status, 'terminated');
      if (end === 'close') await kit.close();
      if (end === 'run') assert.equal(await value(kit, "return await browser.extractText('p')"), 'one');
      else assert.equal(await page.evaluate("document.querySelector('p').textContent"), 'one');
    });
    await page.close();
  }
});

test('a script that computes is ended before the host hears of the end of its run', { skip, timeout: 240_000 }, async () => {
  const page = await browser.newPage();
  await withKit({ browser: { page, timeoutMs: 3_600_000 } }, async (kit) => {
    let begun;
    await page.exposeFunction('begun', () => begun());
    for (let round = 0; round < 3; round += 1) {
      await page.goto(at());
      const begins = new Promise((resolve) => (begun = resolve));
      const run = kit.runTool("await browser.evaluate('begun(); for (;;) ;')");
      await begins;
      run.terminate();
      await run;
      assert.equal((await page.goto(at('/host'))).status(), 200);
      assert.equal(await value(kit, "return await browser.extractText('p')"), 'one');
    }
  });
  await page.close();
});

test('WebRTC does not pass the proxy by', { skip, timeout: 120_000 }, async () => {
  const datagrams = [];
  const udp = createSocket('udp4');
  udp.on('message', (message) => datagrams.push(message));
  await new Promise((bound) => udp.bind(0, '127.0.0.1', bound));
  let launched;
  const launch = async (proxy) => {
    launched = await chromium.launch({ executablePath, proxy, args: proxy.args });
    return launched.newPage();
  };
  await withKit({ browser: launch }, async (kit) => {
    const turn = JSON.stringify({ urls: `turn:127.0.0.1:${udp.address().port}`, username: 'stolen', credential: 'c' });
    const tool = `return await browser.evaluate(args.code)`;
    // Every way was tried once all candidates are known.
    const code = `const connection = new RTCPeerConnection({ iceServers: [${turn}] });
      connection.createDataChannel('x');
      const all = new Promise((done) => (connection.onicegatheringstatechange = () => connection.iceGatheringState === 'complete' && done('all')));
      await connection.setLocalDescription(await connection.createOffer());
      return await all`;
    assert.equal(await value(kit, tool, { args: { code } }), 'all');
  });
  await launched.close();
  udp.close();
  assert.deepStrictEqual(datagrams, []);
});

test('secrets do not reach a page, and do not come back from one', { skip }, () =>
  withKit({ secrets: { KEY: { value: 'hunter2-hunter2', hosts: [`http://127.0.0.1:${port()}`] } } }, async (kit) => {
    const tool = `${FAILS}
      await browser.navigate(args.url);
      return [await browser.extractText() === 'the value is ' + secrets.KEY, await fails(browser.type('input', secrets.KEY)),
        await browser.evaluate('document.body.innerText.length')]`;
    const [same, refused, length] = await value(kit, tool, { args: { url: at('/hello') } });
    assert.equal(same, true);
    assert.deepStrictEqual(refused, ['BrowserBlocked', "secret 'KEY' is not for the browser"]);
    assert.equal(length, 'the value is hunter2-hunter2'.length);
  }));

test('cells use the page', { skip }, () =>
  withKit({}, async (kit) => {
    const session = kit.session();
    await session.run(`const arrived = await browser.navigate('${at()}')`);
    const { result } = await session.run("[arrived.title, await browser.extractText('p')]");
    assert.deepStrictEqual(result, ['a page', 'one']);
    await session.close();
  }));

test('behind the proxy a page reaches only what is allowed', { skip }, async () => {
  let launched;
  let given;
  const launch = async (proxy) => {
    given = proxy;
    launched = await chromium.launch({ executablePath, proxy, args: proxy.args });
    return launched.newPage();
  };
  await withKit({ browser: launch }, async (kit) => {
    const result = await value(kit, "return await browser.navigate(args.url, { wait_until: 'networkidle' })", { args: { url: at('/probe') } });
    assert.deepStrictEqual(result, { url: at('/probe'), title: 'probe', status: 200 });
    assert.ok(requests.includes('127.0.0.1/a/picture'), requests.join());
    assert.ok(!requests.some((request) => request.startsWith('127.0.0.2')), requests.join());
    assert.deepStrictEqual(await kit.proxy(), given);
  });
  await launched.close();
});

test('without the proxy it is the affair of the browser', { skip }, () =>
  withKit({}, async (kit) => {
    await value(kit, "await browser.navigate(args.url, { wait_until: 'networkidle' })", { args: { url: at('/probe') } });
    assert.ok(requests.includes('127.0.0.2/private'), requests.join());
  }));

test('a function that gives no page fails the call, and is called again', { skip }, async () => {
  let calls = 0;
  const warnings = [];
  const warned = (warning) => warnings.push(warning.message);
  process.on('warning', warned);
  const page = await browser.newPage();
  const source = () => {
    calls += 1;
    if (calls === 1) throw new Error('no browser in /root/secret');
    return calls === 2 ? 1 : page;
  };
  await withKit({ browser: source }, async (kit) => {
    const got = await value(kit, `${FAILS} return [await fails(browser.extractText()), await fails(browser.extractText()), await browser.extractText()]`);
    assert.deepStrictEqual(got, [
      ['BrowserError', 'the function of the option browser failed'],
      ['BrowserError', 'the function of the option browser must give a page or a context of Playwright'],
      '',
    ]);
  });
  process.off('warning', warned);
  assert.deepStrictEqual(warnings, ['the function of the option browser failed: no browser in /root/secret']);
});

test('what is no page is misuse', () => {
  const page = { goto: async () => {}, locator: () => {}, isClosed: () => false };
  const context = { newPage: async () => {}, pages: () => [] };
  const wrong = [
    [1, /^browser must be a page or a context of Playwright, or a function that gives one, got/],
    [{}, /^browser must be a page or a context/],
    [{ page, context }, /^browser has both page and context/],
    [{ page: context }, /^browser\.page must be a page of Playwright/],
    [{ context: page }, /^browser\.context must be a context of Playwright/],
    [{ ...context, contexts: () => [] }, /^browser must be a page or a context, got a Browser of Playwright/],
    [{ context: { ...context, contexts: () => [] } }, /^browser\.context must be a page or a context, got a Browser/],
    [{ page, timeout: 1 }, /browser\.timeout/],
    [{ page, allow: 'all' }, /^browser\.allow must be/],
  ];
  for (const [browser, message] of wrong) {
    assert.throws(() => new Kit({ runtime, browser }), (error) => error instanceof TypeError && message.test(error.message), String(message));
  }
  assert.throws(() => new Kit({ runtime, browser: { page, timeoutMs: 0 } }), RangeError);
});
