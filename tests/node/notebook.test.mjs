// Notebooks through Node.js: the table of cases, and what only Node.js sees of them.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

import { Runtime } from 'isolane';
import { Kit } from 'isolane/kit';
import { Notebook, Registry } from 'isolane/notebook';

const ROOT = new URL('../..', import.meta.url);
const CEILING = { timeout: 120_000 };
const table = (name) => JSON.parse(readFileSync(new URL(`../../crates/notebook/tests/cases/${name}`, import.meta.url), 'utf8'));
const cases = [...table('cells.json'), ...table('files.json')];

/** The report of a notebook on a kernel with that isolation. */
async function backend(isolation) {
  const probe = new Notebook({ py: { isolation } });
  const { py } = await probe.available();
  await probe.close();
  return py;
}

// Kernels are confined where this machine can do that.
const [confined, open] = [await backend('confined'), await backend('none')];
const isolation = confined.ok ? 'confined' : 'none';
const skip = open.ok ? false : `there is no Python: ${open.reason}`;
const skipConfined = confined.ok ? false : `Python is not confined here: ${confined.reason}`;
const pyOptions = { isolation, interruptGraceMs: 60_000, startTimeoutMs: 60_000 };

const js = (code, more) => ({ language: 'js', code, ...more });
const python = (code, more) => ({ language: 'py', code, ...more });
const textOf = async (notebook, ...cells) => (await notebook.execute({ cells })).content[0].text;

/** The value at a path, `null` if there is none. */
const at = (value, path) => path.split('.').reduce((inner, key) => inner?.[key], value) ?? null;

/** The tools, the `llm` and the `agent` of cases with `host`. */
const host = {
  tools: {
    echo: (args) => args,
    'add-up': {
      description: 'Adds.',
      input: {
        type: 'object',
        properties: { numbers: { type: 'array', items: { type: 'number' } }, label: { type: 'string', default: 'sum' } },
        required: ['numbers'],
      },
      call: async ({ numbers, label }) => `${label}: ${numbers.reduce((sum, n) => sum + n, 0)}`,
    },
    fail() {
      throw new TypeError('no such row');
    },
    picture: () => ({
      content: [{ type: 'text', text: 'a chart' }, { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }],
      details: 1,
    }),
    refuse: () => ({ content: [{ type: 'text', text: 'not today' }], isError: true }),
    nothing() {},
    'odd-picture': () => ({
      content: [{ type: 'text', text: 'a chart' }, { type: 'image', data: 'AQID', mimeType: 'text/plain' }],
    }),
    grüße: () => 'hallo',
    never: { call: () => new Promise(() => {}), stopsClock: true },
  },
  llm(prompt, { model, system, schema }) {
    if (schema !== undefined) return '{"n": 1}';
    return prompt === '' ? '' : `${model}: ${prompt}${system === undefined ? '' : ` (${system})`}`;
  },
  async agent(prompt, { agentType, model = '-', context, label = '-', schema, depth, notebook }) {
    if (schema !== undefined) return '{"n": 1}';
    if (prompt === '') return '';
    const [, language, timeout, code] = /^(js|py)(\d*):(.*)$/s.exec(prompt) ?? [];
    if (language === undefined) {
      return `${agentType} ${model} ${label} ${depth}: ${prompt}${context === undefined ? '' : ` ${JSON.stringify(context)}`}`;
    }
    return textOf(notebook, { language, code, ...(timeout !== '' && { timeout: Number(timeout) }) });
  },
};

/** The folder of a case, and its options with it. */
function prepared({ folder, links = {}, artifacts, options = {} }) {
  const place = mkdtempSync(join(tmpdir(), 'isolane-notebook-'));
  const given = { ...options };
  if (folder !== undefined) {
    const root = join(place, 'root');
    mkdirSync(root);
    for (const [name, text] of Object.entries(folder)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), text);
    }
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
    given.files = { ...options.files, root };
  }
  if (artifacts) given.artifacts = { ...options.artifacts, dir: join(place, 'artifacts') };
  return { place, given };
}

for (const { name, needs, host: hasHost, kit, calls, ...more } of cases) {
  test(name, { ...CEILING, skip: needs === 'python' && skip }, async (t) => {
    const { place, given } = prepared(more);
    t.after(() => rmSync(place, { recursive: true }));
    if (kit !== undefined) given.js = { ...given.js, kit: new Kit(kit) };
    await using(new Notebook({ ...given, py: { isolation, ...given.py }, ...(hasHost && host) }), async (notebook) => {
      for (const { cells, text, status, state, error = false, images = 0, details = {} } of calls) {
        const result = await notebook.execute({ cells });
        if (text !== undefined) assert.equal(withoutCarets(result.content[0].text), withoutCarets(text));
        assert.deepEqual(result.details.cells.map((cell) => cell.status), status);
        if (state !== undefined) assert.deepEqual(result.details.cells.map((cell) => cell.state), state);
        assert.equal(result.isError, error);
        assert.equal(result.content.length - 1, images);
        for (const [path, value] of Object.entries(details)) {
          const meta = path === 'meta.truncation' ? result.details.meta.truncation : at(result.details, path);
          assert.deepEqual(meta, value);
        }
      }
    });
  });
}

/** A text without the carets of Python, which differ between its versions. */
const withoutCarets = (text) => text.replaceAll(/^ +[ ~^]*\^[ ~^]*\n/gm, '');

/** A cell that starts a process with that text in its command line, which outlives the cell. */
const leave = (mark) => `import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 1000; : ${mark}'])\nprint('begun')\n`;

/** Whether a process with that text in its command line is there. */
function isThere(mark) {
  const line = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      return '';
    }
  };
  return existsSync('/proc') && readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && line(pid).includes(`: ${mark}`));
}

async function using(notebook, act) {
  try {
    return await act(notebook);
  } finally {
    await notebook.close();
  }
}

test('misuse throws at once, with its path', CEILING, async () => {
  const table = [
    [() => new Notebook({ limit: {} }), TypeError, 'limit', "limit: unknown option 'limit'; did you mean 'limits'?"],
    [() => new Notebook(1), TypeError, 'options', 'options must be an object, got a number'],
    [() => new Notebook({ limits: { images: 1.5 } }), RangeError, 'limits.images', 'limits.images must be a whole number from 0 to 1000, got 1.5'],
    [() => new Notebook({ js: { kit: {} } }), TypeError, 'js.kit', 'js.kit must be a Kit, got an object'],
    [() => new Notebook({ js: { kit: new Kit({ state: true }), globals: { state: 1 } } }), TypeError, 'js.globals.state', "js.globals.state: the name is the kit's: choose another name"],
    [() => new Notebook({ sessionId: 'a\ud800' }), TypeError, 'sessionId', 'sessionId has a lone surrogate'],
    [() => new Notebook({ js: { runtime: {} } }), TypeError, 'js.runtime', 'js.runtime must be a Runtime, got an object'],
    [() => new Notebook({ limits: { window: () => 1 } }), TypeError, 'limits.window', 'limits.window must be data, got a function'],
    [() => new Notebook({ js: { globals: { console: 1 } } }), TypeError, 'js.globals.console', "js.globals.console: the name is the notebook's: choose another name"],
    [() => new Notebook({ js: { globals: { display: 1 } } }), TypeError, 'js.globals.display', "js.globals.display: the name is the notebook's: choose another name"],
    [() => new Notebook({ tools: [] }), TypeError, 'tools', 'tools must be an object, got an array'],
    [() => new Notebook({ tools: new Map([['a', () => 1]]) }), TypeError, 'tools', 'tools must be an object, got a Map'],
    [() => new Notebook({ tools: { a: 1 } }), TypeError, 'tools.a', 'tools.a must be a function or an object, got a number'],
    [() => new Notebook({ tools: { a: {} } }), TypeError, 'tools.a.call', 'tools.a.call must be a function, got undefined'],
    [() => new Notebook({ tools: { a: { call() {}, stopClock: true } } }), TypeError, 'tools.a.stopClock', "tools.a.stopClock: unknown option 'stopClock'; did you mean 'stopsClock'?"],
    [() => new Notebook({ py: { required: ['file_system'] } }), TypeError, 'py.required[0]', "py.required[0] must be 'privileges' or 'network' or 'fileSystem' or 'systemCalls' or 'processes' or 'resources', got 'file_system'"],
    [() => new Notebook({ py: { isolation: 'process' } }), TypeError, 'py.isolation', "py.isolation must be 'confined' or 'none', got 'process'"],
    [() => new Notebook({ py: { readable: ['/'] } }), TypeError, 'py.readable[0]', "py.readable[0]: a kernel cannot be shown '/'"],
    [() => new Notebook({ agent: false }), TypeError, 'agent', 'agent must be a function, got a boolean'],
    [() => new Notebook({ limits: { agentDepth: -1 } }), RangeError, 'limits.agentDepth', 'limits.agentDepth must be a whole number of at least 0, got -1'],
    [(notebook) => notebook.child({ js: false }), TypeError, 'js', "js: unknown option 'js'; valid options are tools, llm, agent, artifacts, limits"],
    [(notebook) => notebook.child({ llm: 1 }), TypeError, 'llm', 'llm must be a function, got a number'],
    [() => new Notebook({ llm: 1 }), TypeError, 'llm', 'llm must be a function, got a number'],
    [(notebook) => notebook.execute(), TypeError, 'args', 'args must be an object, got null'],
    [(notebook) => notebook.execute({ cells: [js('1', { timeout: 0 })] }), RangeError, 'cells[0].timeout', 'cells[0].timeout must be a whole number from 1 to 600, got 0'],
    [(notebook) => notebook.execute({ cells: [js('1')] }, { onUpdates: 1 }), TypeError, 'onUpdates', "onUpdates: unknown option 'onUpdates'; did you mean 'onUpdate'?"],
    [(notebook) => notebook.execute({ cells: [js('1')] }, { onUpdate: 1 }), TypeError, 'onUpdate', 'onUpdate must be a function, got a number'],
  ];
  await using(new Notebook(), (notebook) => {
    for (const [act, Class, path, message] of table) {
      assert.throws(() => act(notebook), (error) => {
        assert.deepEqual([error.constructor, error.path, error.message], [Class, path, message]);
        return true;
      });
    }
  });
  const closed = new Notebook();
  await closed.close();
  assert.throws(() => closed.execute({ cells: [js('1')] }), { name: 'TypeError', message: 'notebook is closed', path: 'notebook' });
  await assert.rejects(closed.reset('js'), { name: 'TypeError', message: 'notebook is closed' });
});

test('cells see what the host hands over', CEILING, async () => {
  const options = {
    globals: { scale: async (n) => n * 10, table: { rows: [1, 2] }, when: new Date(0), bytes: new Uint8Array([7]) },
    imports: { prices: { kettle: () => 24 } },
    modules: { './double.js': 'export const double = (n) => 2 * n;' },
  };
  await using(new Notebook({ js: options }), async (notebook) => {
    const code = `import { kettle } from 'prices'; import { double } from './double.js';
      [await scale(table.rows.length), await kettle(), double(4), when.getTime(), bytes[0]]`;
    assert.equal(await textOf(notebook, js(code)), '[20,24,8,0,7]');
  });
});

test('the end of a cell aborts the signals of its calls', CEILING, async () => {
  for (const cell of skip ? [js('await tool.wait({})')] : [js('await tool.wait({})'), python('tool.wait()'), python("llm('?')")]) {
    let execution;
    const aborted = new Promise((resolve) => {
      const wait = (_args, { signal }) => {
        signal.addEventListener('abort', () => resolve(signal.aborted));
        execution.terminate('enough');
        return new Promise(() => {});
      };
      const notebook = new Notebook({ py: pyOptions, tools: { wait: { call: wait, stopsClock: true } }, llm: wait });
      execution = notebook.execute({ cells: [cell] });
      execution.finally(() => notebook.close());
    });
    assert.equal(await aborted, true);
    const { content } = await execution;
    assert.match(content[0].text, /^Command aborted: enough\nCell aborted\./);
  }
});

test('a kit that was closed is misuse, and ends the cells', CEILING, async () => {
  const kit = new Kit({ state: true });
  await using(new Notebook({ js: { kit } }), async (notebook) => {
    assert.match(notebook.tool().description, /no file system, no network and no `require`\.\nJavaScript also has `setTimeout`.*, `state`\./);
    await kit.state.set('n', 1);
    assert.equal(await textOf(notebook, js("await state.get('n')")), '1');
    const closing = notebook.execute({ cells: [js("print('begun'); await new Promise((done) => setTimeout(done, 60_000))")] }, {
      onUpdate({ content }) {
        if (content[0].text.includes('begun')) void kit.close();
      },
    });
    assert.equal((await closing).content[0].text, 'begun\nCommand aborted: the kit is closed\nCell aborted.\nJavaScript state was lost.');
    assert.equal(await textOf(notebook, js('1')), 'the kit is closed\nCell failed (exit code 1).');
  });
  assert.throws(() => new Notebook({ js: { kit } }), { name: 'TypeError', message: 'js.kit is closed', path: 'js.kit' });
});

test('cells with a kit may run in a process', CEILING, async () => {
  const kit = new Kit({ state: true, secrets: { KEY: { value: 'sesame-0123', reveal: true } } });
  const runtime = new Runtime({ isolation: 'process' });
  await using(new Notebook({ js: { kit, runtime }, tools: { echo: (args) => args } }), async (notebook) => {
    const code = `await state.set('n', 2); tool.echo({}); print(secrets.KEY); await new Promise((done) => setTimeout(done, 1)); await state.get('n')`;
    const text = '[secret KEY]\nthe promise of echo (<cell 1>:1:31) was never awaited\n2';
    assert.equal(await textOf(notebook, js(code)), text);
  });
  await runtime.close();
  await kit.close();
});

test('a runtime of the caller runs the cells', CEILING, async () => {
  const runtime = new Runtime();
  await using(new Notebook({ js: { runtime } }), async (notebook) => {
    assert.equal(await textOf(notebook, js('1 + 1')), '2');
    assert.equal(runtime.stats().sessions, 1);
  });
  await runtime.close();
});

test('terminate and a signal end a call', CEILING, async () => {
  await using(new Notebook(), async (notebook) => {
    const begun = (end) =>
      new Promise((resolve) => {
        let hasEnded = false;
        const options = {
          onUpdate({ content }) {
            if (hasEnded || !content[0].text.includes('begun')) return;
            hasEnded = true;
            end(execution, controller);
          },
        };
        const controller = new AbortController();
        const loop = { cells: [js("print('begun'); for (;;);")] };
        const execution = notebook.execute(loop, { ...options, signal: controller.signal });
        resolve(execution);
      });
    const tail = 'Cell aborted.\nJavaScript state is as it was before this cell.';
    const terminated = await begun((execution) => execution.terminate('enough'));
    assert.equal(terminated.content[0].text, `begun\nCommand aborted: enough\n${tail}`);
    assert.equal(terminated.isError, true);
    const aborted = await begun((_, controller) => controller.abort('too slow'));
    assert.equal(aborted.content[0].text, `begun\nCommand aborted: too slow\n${tail}`);
    assert.equal(aborted.details.cells[0].exitCode, undefined);
  });
});

test('a signal that is aborted already lets nothing start', CEILING, async () => {
  await using(new Notebook(), async (notebook) => {
    for (const cells of [[js("print('ran')")], [python("print('ran')"), js('1')]]) {
      const { content, details, isError } = await notebook.execute({ cells }, { signal: AbortSignal.abort('too late') });
      const tail = cells.length === 1 ? 'Cell aborted.' : 'Cell 1 of 2 aborted.\nCell 2 did not run.';
      const head = cells.length === 1 ? '' : '[1/2]\n';
      assert.equal(content[0].text, `${head}Command aborted: too late\n${tail}`);
      assert.deepEqual([isError, details.cells[0].name, details.cells[0].workMs], [true, undefined, 0]);
    }
    assert.deepEqual(notebook.stats().kernels, []);
    assert.throws(() => notebook.execute({ cells: [js('1')] }, { signal: 1 }), { name: 'TypeError', message: /^signal must be an AbortSignal/ });
  });
});

test('a tool may be an instance of a class', CEILING, async () => {
  class Search {
    #pages = 3;
    index = new Map();
    get description() {
      return 'Finds pages.';
    }
    get input() {
      return { type: 'object', properties: { limit: { type: 'integer', default: 2 } } };
    }
    async call({ limit }) {
      return this.#pages * limit;
    }
  }
  await using(new Notebook({ tools: { search: new Search() } }), async (notebook) => {
    assert.match(notebook.tool().description, /- tool\.search\(\{ limit\?: integer \}\): Finds pages\./);
    assert.equal(await textOf(notebook, js('await tool.search()')), '6');
  });
});

test('updates have the result so far', CEILING, async () => {
  await using(new Notebook(), async (notebook) => {
    const updates = [];
    const onUpdate = (update) => updates.push(update);
    const result = await notebook.execute({ cells: [js("print('a')"), js("display({ b: 1 })")] }, { onUpdate });
    assert.deepEqual(updates[0].details.cells.map(({ status }) => status), ['pending', 'pending']);
    assert.deepEqual([updates[0].isError, updates[0].details.isError, updates[0].details.images], [undefined, false, []]);
    assert.equal(updates.at(-1).content[0].text, result.content[0].text);
    const thrower = () => {
      throw new Error('no screen');
    };
    const { details } = await notebook.execute({ cells: [js('1')] }, { onUpdate: thrower });
    assert.equal(details.notice, 'the receiver of updates failed and was not called again: no screen');
  });
});

test('the tool, the backends and the kernels', CEILING, async () => {
  await using(new Notebook({ py: false }), async (notebook) => {
    const { name, description, inputSchema } = notebook.tool();
    assert.equal(name, 'eval');
    assert.match(description, /`python -c` or `node -e`/);
    assert.deepEqual(inputSchema.properties.cells.items.properties.language.enum, ['js']);
    const available = await notebook.available();
    assert.equal(available.js.ok, true);
    assert.deepEqual(available.py, { ok: false, reason: 'it is switched off' });
    await textOf(notebook, js('1'));
    const [{ sessionId, idleMs, ...kernel }] = notebook.stats().kernels;
    assert.deepEqual(kernel, { language: 'js', busy: false, rssBytes: null, restarts: 0 });
    assert.deepEqual([typeof sessionId, typeof idleMs], ['string', 'number']);
    await notebook.reset('js');
    assert.deepEqual(notebook.stats().kernels, []);
  });
});

test('an idle notebook keeps no process alive, and its kernel ends with it', { ...CEILING, skip }, async () => {
  const mark = `idle-${process.pid}`;
  const program = `
    import { Notebook, Registry } from 'isolane/notebook';
    globalThis.notebook = new Notebook({ py: ${JSON.stringify(pyOptions)} });
    const cells = [{ language: 'py', code: ${JSON.stringify(leave(mark))} }, { language: 'js', code: '1' }];
    const { content } = await notebook.execute({ cells });
    console.log(content[0].text);`;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', timeout: 60_000, cwd: ROOT });
  assert.deepEqual([stdout, status], ['[1/2]\nbegun\n\n[2/2]\n1\n', 0]);
  while (isThere(mark)) await turn();
});

test('a kernel that computes ends with a host that is killed', { ...CEILING, skip: skip || process.platform !== 'linux' }, async () => {
  const mark = `killed-${process.pid}`;
  const program = `
    import { Notebook, Registry } from 'isolane/notebook';
    const code = ${JSON.stringify(`${leave(mark)}while True: pass`)};
    const onUpdate = ({ content }) => console.log(content[0].text);
    await new Notebook({ py: ${JSON.stringify(pyOptions)} }).execute({ cells: [{ language: 'py', code }] }, { onUpdate });`;
  const host = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'], cwd: ROOT });
  let text = '';
  for await (const chunk of host.stdout) {
    text += chunk;
    if (text.includes('begun')) {
      assert.equal(isThere(mark), true);
      host.kill('SIGKILL');
      break;
    }
  }
  while (isThere(mark)) await turn();
});

test('a kernel is confined, and the notebook tells how', { ...CEILING, skip: skipConfined }, async () => {
  const secret = new URL('../../package.json', import.meta.url).pathname;
  const read = python(`open(${JSON.stringify(secret)}).read(1)`);
  await using(new Notebook(), async (notebook) => {
    assert.equal(notebook.stats().confinement, null);
    assert.match(await textOf(notebook, read), /FileNotFoundError/);
    const { fileSystem, network, processes, memory } = notebook.stats().confinement;
    assert.deepEqual([fileSystem, network, processes, ['group', 'process'].includes(memory)], [true, true, true, true]);
  });
  await using(new Notebook({ py: { readable: [secret], required: ['fileSystem', 'systemCalls'] } }), async (notebook) => {
    assert.equal(await textOf(notebook, read), "'{'");
  });
  await using(new Notebook({ py: { isolation: 'none' } }), async (notebook) => {
    assert.equal(await textOf(notebook, read), "'{'");
    assert.equal(notebook.stats().confinement, null);
  });
});

test('Python and JavaScript cells in one call', { ...CEILING, skip }, async () => {
  await using(new Notebook({ py: pyOptions }), async (notebook) => {
    assert.equal(await textOf(notebook, python('x = 20'), js('const y = 1'), python('x + 1'), js('y')), '[1/4]\n\n[2/4]\n\n[3/4]\n21\n\n[4/4]\n1');
  });
});

test('options and arguments that cannot cross, or nest too deeply, are misuse with a path', () => {
  const deep = {};
  for (let at = deep, count = 0; count < 5000; count += 1) at = at.a = {};
  const table = [
    [{ files: { root: new URL('file:///tmp') } }, 'files.root'],
    [{ env: process.env }, 'env'],
    [{ limits: { timeoutSeconds: NaN } }, 'limits.timeoutSeconds'],
    [{ limits: deep }, 'options'],
    [{ registry: {} }, 'registry'],
    [{ sessionId: '' }, 'sessionId'],
  ];
  for (const [options, path] of table) {
    assert.throws(() => new Notebook(options), (error) => error.path === path && error.message.startsWith(path));
  }
  const notebook = new Notebook({ py: false });
  assert.throws(() => notebook.execute({ cells: [{ language: 'js', code: new URL('file:///tmp') }] }), { path: 'cells[0].code' });
  assert.throws(() => notebook.execute({ cells: deep }), { path: 'args' });
  assert.throws(() => new Registry({ maxKernels: 0 }), { path: 'maxKernels' });
});

test('notebooks of a registry that name a session share its kernels', CEILING, async () => {
  const registry = new Registry({ maxKernels: 1 });
  const [first, second] = ['a', 'a'].map((sessionId) => new Notebook({ registry, sessionId, py: false }));
  const run = async (notebook, code) => (await notebook.execute({ cells: [{ language: 'js', code }] })).content[0].text;
  assert.equal(await run(first, 'let x = 1; x'), '1');
  assert.equal(await run(second, 'x + 1'), '2');
  assert.equal(second.stats().kernels[0].sessionId, 'a');
  await first.close();
  assert.equal(await run(second, 'x'), '1');
  assert.throws(() => new Notebook({ registry, sessionId: 'a' , js: { memoryLimitBytes: 1 << 25 } }), { path: 'js' });
  await second.close();
});

/** The notice of the next call of Python. */
const noticeOf = async (notebook, cell = python("'x' in globals()")) => {
  const { content, details } = await notebook.execute({ cells: [cell] });
  return [content[0].text, details.notice];
};

/** Waits until no kernel of the notebook is there. */
const ended = async (notebook) => {
  while (notebook.stats().kernels.length > 0) await turn();
};

test('of too many kernels the one that was used least recently ends', { ...CEILING, skip }, async () => {
  const registry = new Registry({ maxKernels: 1 });
  const [first, second] = ['a', 'b'].map((sessionId) => new Notebook({ registry, sessionId, js: false, py: pyOptions }));
  for (const notebook of [first, second]) await textOf(notebook, python('x = 1'));
  assert.deepEqual([first, second].map((notebook) => notebook.stats().kernels.length), [0, 1]);
  const notice = 'Python was ended to make room for the kernels of other sessions; its state was lost.';
  assert.deepEqual(await noticeOf(first), [`${notice}\n\nFalse`, notice]);
  await Promise.all([first.close(), second.close()]);
});

test('a kernel without cells ends after its time', { ...CEILING, skip }, async () => {
  const registry = new Registry({ idleTimeoutMs: 1, sweepMs: 1 });
  await using(new Notebook({ registry, js: { idleTimeoutMs: 1 }, py: pyOptions }), async (notebook) => {
    await textOf(notebook, python('x = 1'), js('let x = 1'));
    await ended(notebook);
    const notice = 'Python was ended after 1 ms without a cell; its state was lost.';
    assert.deepEqual(await noticeOf(notebook), [`${notice}\n\nFalse`, notice]);
  });
});

test('beyond the kernels that may run at once a cell fails', { ...CEILING, skip }, async () => {
  const registry = new Registry({ maxRunningKernels: 1 });
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const called = new Promise((resolve) => {
    const wait = () => {
      resolve();
      return released;
    };
    void using(new Notebook({ registry, py: pyOptions, tools: { wait: { call: wait, stopsClock: true } } }), (notebook) =>
      textOf(notebook, python('tool.wait()')));
  });
  await called;
  await using(new Notebook({ registry, py: pyOptions }), async (notebook) => {
    const full = await notebook.execute({ cells: [python('1')] });
    assert.deepEqual([full.isError, full.details.cells[0].status], [true, 'error']);
    assert.match(full.content[0].text, /^Python backend is unavailable: a kernel runs already, and no more may$/m);
    release();
    let text = '';
    while ((text = await textOf(notebook, python('1'))) !== '1') assert.match(text, /a kernel runs already/);
  });
});

test('a kernel without a cell that does not answer is dead', { ...CEILING, skip }, async () => {
  const registry = new Registry({ heartbeatMs: 500 });
  await using(new Notebook({ registry, py: pyOptions }), async (notebook) => {
    // No thread of the kernel runs from then on.
    await textOf(notebook, python('import asyncio\nasyncio.get_running_loop().call_soon(sum, range(10**15)); None'));
    await ended(notebook);
    const notice = 'Python ended unexpectedly (no heartbeat); its state was lost.';
    assert.deepEqual(await noticeOf(notebook), [`${notice}\n\nFalse`, notice]);
    assert.equal(notebook.stats().kernels[0].restarts, 1);
  });
});

test('a child has artifacts of its own', CEILING, async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'isolane-notebook-'));
  t.after(() => rmSync(place, { recursive: true }));
  const [dir, childDir] = [join(place, 'own'), join(place, 'of-child')];
  await using(new Notebook({ py: false, artifacts: { dir }, limits: { outputLines: 2 } }), async (notebook) => {
    const child = notebook.child({ artifacts: { dir: childDir } });
    const print = js("for (let line = 1; line <= 5; line += 1) print(line)");
    const { details } = await child.execute({ cells: [print] });
    const { artifact } = details.meta.truncation;
    assert.deepEqual([artifact.path, readdirSync(childDir)], [join(childDir, 'eval-1.txt'), ['eval-1.txt']]);
    assert.equal(readFileSync(artifact.path, 'utf8'), '1\n2\n3\n4\n5\n');
    assert.deepEqual(readdirSync(dir), []);
    assert.equal(await textOf(child, js("await output('eval-1', { limit: 1 })")), '1');
    assert.match(await textOf(notebook, js("await output('eval-1')")), /there is no artifact|no artifact/);
  });
});
