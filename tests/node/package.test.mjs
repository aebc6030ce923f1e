// The published packages: installed from two tarballs into an empty folder, offline and without a compiler, they run.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const addon = readdirSync(join(root, 'bindings-node')).find((name) => name.endsWith('.node'));
const triple = addon?.split('.')[1];
const CEILING_MS = 120_000;
let folder;

const npm = (cwd, ...args) => execFileSync('npm', [...args, '--offline', '--no-audit', '--no-fund', '--loglevel=error'], { cwd, encoding: 'utf8', shell: process.platform === 'win32' });
const node = (cwd, program, ...flags) => execFileSync(process.execPath, [...flags, '-e', program], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'isolane-package-'));
});

after(() => rmSync(folder, { recursive: true, force: true }));

/** The package of this platform, in the layout of `bindings-node/platform.mjs`. */
function platformPackage() {
  const home = join(folder, triple);
  execFileSync(process.execPath, [join(root, 'bindings-node', 'platform.mjs'), home]);
  return home;
}

function pack(from) {
  const [{ filename, files }] = JSON.parse(npm(from, 'pack', '--json', '--ignore-scripts', '--pack-destination', folder));
  return { tarball: join(folder, filename.replace('@', '').replace('/', '-')), files: files.map(({ path }) => path) };
}

test('two tarballs are all that an empty folder needs', { timeout: CEILING_MS, skip: addon === undefined && 'no addon was built' }, () => {
  const main = pack(root);
  assert.ok(main.files.every((path) => !path.endsWith('.node') && !path.endsWith('isolane-worker') && !path.endsWith('.rs') && !path.includes('tests/')), main.files.join('\n'));
  const platform = pack(platformPackage());
  const home = join(folder, 'empty');
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), '{ "private": true }');
  npm(home, 'install', '--ignore-scripts', main.tarball, platform.tarball);
  assert.deepStrictEqual(readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.')).sort(), ['isolane', `isolane-${triple}`]);
  const use = `runCode('export default f(1)', { globals: { f: (n) => n + 41 } }).then((r) => console.log(r.result))`;
  assert.equal(node(home, `const { runCode } = require('isolane'); ${use}`), '42');
  const program = join(home, 'node_modules', '.bin', 'isolane');
  assert.equal(execFileSync(program, ['run', '-', '--isolation', 'process'], { input: 'export default 42', encoding: 'utf8' }), '42\n');
  assert.equal(node(home, `import { runCode } from 'isolane'; ${use}`, '--input-type=module'), '42');
  const tool = `const kit = new Kit({ state: true }); kit.runTool('await state.set("n", 42); return state.get("n")').then((r) => console.log(r.result)).finally(() => kit.close())`;
  assert.equal(node(home, `const { Kit } = require('isolane/kit'); ${tool}`), '42');
  assert.equal(node(home, `import { Kit } from 'isolane/kit'; ${tool}`, '--input-type=module'), '42');
  const loop = `const model = new ScriptedModel(); model.pushText('It is 42.'); new CodeLoop({ model, executor: new IsolateCodeExecutor() }).run('Say it.').then((r) => console.log(r.text))`;
  const names = '{ CodeLoop, IsolateCodeExecutor, ScriptedModel }';
  assert.equal(node(home, `const ${names} = require('isolane/executors'); ${loop}`), 'It is 42.');
  assert.equal(node(home, `import ${names} from 'isolane/executors'; ${loop}`, '--input-type=module'), 'It is 42.');
  const work = `const service = new ProcessService(); service.create({ code: 'return 42' }).then(({ pid }) => service.wait(pid)).then((r) => console.log(r.output.result))`;
  assert.equal(node(home, `const { ProcessService } = require('isolane/environment'); ${work}`), '42');
  assert.equal(node(home, `import { ProcessService } from 'isolane/environment'; ${work}`, '--input-type=module'), '42');
  const cells = `const notebook = new Notebook(); notebook.execute({ cells: [{ language: 'js', code: '6 * 7' }] }).then((r) => console.log(r.content[0].text)).finally(() => notebook.close())`;
  assert.equal(node(home, `const { Notebook } = require('isolane/notebook'); ${cells}`), '42');
  assert.equal(node(home, `import { Notebook } from 'isolane/notebook'; ${cells}`, '--input-type=module'), '42');
  if (process.platform !== 'win32') {
    assert.equal(node(home, `const runtime = new (require('isolane').Runtime)({ isolation: 'process' }); const { runCode } = runtime; ${use}.then(() => runtime.close())`), '42');
  }
});

test('without its worker the error names the remedy', { timeout: CEILING_MS, skip: process.platform === 'win32' || addon === undefined }, () => {
  const home = join(folder, 'empty');
  const place = join(home, 'node_modules', `isolane-${triple}`);
  rmSync(join(place, 'isolane-worker'));
  const message = node(home, `try { new (require('isolane').Runtime)({ isolation: 'process' }); } catch (error) { console.log(error.name, error.message); }`);
  assert.equal(message, `TypeError isolation 'process' needs the executable isolane-worker, and there is none in ${realpathSync(place)}; build or install it, or name it with the option 'worker' or the environment variable ISOLANE_WORKER`);
});

test('without the platform’s package the error names the remedy', { timeout: CEILING_MS, skip: addon === undefined && 'no addon was built' }, () => {
  const home = join(folder, 'empty');
  assert.ok(existsSync(home), 'the test before has installed the package');
  rmSync(join(home, 'node_modules', `isolane-${triple}`), { recursive: true });
  assert.throws(() => node(home, `require('isolane')`), ({ stderr }) => {
    assert.match(stderr, new RegExp(`isolane has no compiled part for .*${triple}`));
    assert.match(stderr, /npm install isolane/);
    return true;
  });
});
