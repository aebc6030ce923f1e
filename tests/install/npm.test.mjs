// The packages of npm, as a user gets them: installed from a registry into an empty folder, without scripts, a compiler or
// cargo, they run; and if the native package is missing, the error says why.
//
// In: `target/packages`, which `npm run package` makes; in `ISOLANE_NODES` the executables of Node.js, with `:` between
// them, or nothing for the one that runs the test. Out: a test for each thing that a user does first.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';

import { find } from '../../packaging/targets.mjs';
import { blocks } from '../docs/markdown.mjs';
import { hostProgram } from '../docs/programs.mjs';
import { serve } from './registry.mjs';
import { CEILING_MS, Machine, packagesOf } from './user.mjs';

/** A package for a platform that this machine is not. */
const OTHER = { name: 'isolane-linux-x64-other', version: '0.1.0', main: 'main.js', os: ['linux'], cpu: ['x64'], libc: ['other'] };
const NODES = process.env.ISOLANE_NODES?.split(delimiter) ?? [process.execPath];
const timeout = CEILING_MS;
/** For each module that has a part which Windows lacks: names, a program that prints the error, and the error. */
const ABSENT = {
  '': [
    '{ Runtime }',
    `try { new Runtime({ isolation: 'process' }); } catch (error) { console.log(String(error)); }`,
    /^Error: isolation 'process' needs the executable isolane-worker, and there is none in Z:\\.*\\isolane-win32-x64; the packages for Windows come without it\. Build it from a clone, or name it /,
  ],
  '/executors': [
    '{ ConfinedCodeExecutor }',
    `new ConfinedCodeExecutor().executeCode(null, { code: 'print(1)' }).catch((error) => console.log(String(error)))`,
    /programs are confined on Linux alone/,
  ],
  '/notebook': [
    '{ Notebook }',
    `const notebook = new Notebook(); notebook.execute({ cells: [{ language: 'py', code: '1' }] }).then((r) => console.log(r.content[0].text)).finally(() => notebook.close())`,
    /Python backend is unavailable: it needs Linux or macOS/,
  ],
};

for (const node of NODES) describe(node, () => userOf(node));

/** The target of an executable of Node.js, which can be for another processor and, on Linux, has either C library. */
function targetOf(node) {
  const here = 'process.platform, process.arch, process.report.getReport().header.glibcVersionRuntime';
  const [platform, arch, glibc] = JSON.parse(execFileSync(node, ['-p', `JSON.stringify([${here}])`], { encoding: 'utf8' }));
  return find(`${platform}-${arch}${platform !== 'linux' ? '' : glibc ? '-gnu' : '-musl'}`);
}

function userOf(node) {
  const target = targetOf(node);
  const hasWorker = target.worker !== undefined;
  const native = `isolane-${target.name}`;
  const machine = new Machine(node);
  const modules = join(machine.home, 'project', 'node_modules');
  let registry;
  let home;

  const cjs = (program) => machine.node(home, program);
  const esm = (program) => machine.node(home, program, '--input-type=module');

  before(async () => {
    registry = await serve(packagesOf('.tgz'), [OTHER]);
    home = machine.folder('project');
    writeFileSync(join(home, 'package.json'), '{ "private": true }');
    // npm runs in a process of its own, and this one must answer meanwhile.
    await install();
  }, { timeout });

  after(() => {
    registry?.close();
    machine.remove();
  });

  async function install() {
    const output = await machine.npmBeside(home, 'install', 'isolane', `--registry=${registry.url}`);
    assert.equal(output.code, 0, output.text);
  }

  test('one native package is installed, and npm asks for no other', { timeout }, () => {
    assert.deepEqual(readdirSync(modules).filter((name) => !name.startsWith('.')).sort(), ['isolane', native].sort());
    const tree = JSON.parse(machine.npm(home, 'ls', '--all', '--json'));
    assert.deepEqual(Object.keys(tree.dependencies), ['isolane']);
    assert.deepEqual(Object.keys(tree.dependencies.isolane.dependencies).filter((name) => tree.dependencies.isolane.dependencies[name].version), [native]);
    const tarballs = registry.asked.filter((path) => path.includes('/-/')).map((path) => path.slice(1).split('/-/')[0]);
    assert.deepEqual(tarballs.sort(), ['isolane', native].sort());
  });

  test('no source and no other build is in the packages', () => {
    const files = readdirSync(join(modules, 'isolane'), { recursive: true });
    assert.deepEqual(files.filter((path) => /\.(node|rs|whl|map)$|isolane-worker|tests/.test(path)), []);
    assert.deepEqual(readdirSync(join(modules, native)).sort(), ['LICENSE', 'LICENSES.txt', 'README.md', `isolane.${target.name}.node`, ...(hasWorker ? [target.worker] : []), 'package.json'].sort());
  });

  test('there is no compiler and no cargo', () => {
    for (const program of ['cc', 'gcc', 'cargo', 'python3']) {
      assert.equal(cjs(`console.log(require('node:child_process').spawnSync('${program}').error?.code)`), 'ENOENT');
    }
  });

  const [block] = blocks('README.md').filter(({ tag }) => tag === 'js run');
  test('the first example of the README runs as an ECMAScript module', { timeout }, () => {
    assert.equal(esm(`${hostProgram(block)}; process.stdout.write('ran')`), 'ran');
  });
  test('the first example of the README runs as CommonJS', { timeout }, () => {
    const program = hostProgram(block).replaceAll(/import (\S+|\{[^}]*\}) from ('[^']+');/g, 'const $1 = require($2);');
    assert.ok(!program.includes('import '), program);
    assert.equal(cjs(`(async () => {${program}\n})().then(() => process.stdout.write('ran'))`), 'ran');
  });

  test('a session keeps its names', { timeout }, () => {
    const program = `const session = new Session(); await session.run('const n = 41'); console.log((await session.run('n + 1')).result); await session.close();`;
    assert.equal(esm(`import { Session } from 'isolane'; ${program}`), '42');
  });

  const use = `runCode('export default f(1)', { globals: { f: (n) => n + 41 } }).then((r) => console.log(r.result))`;
  if (hasWorker) test('a run in a process finds the worker of the package', { timeout }, () => {
    assert.equal(cjs(`const runtime = new (require('isolane').Runtime)({ isolation: 'process' }); const { runCode } = runtime; ${use}.then(() => runtime.close())`), '42');
  });
  test('a worker thread of Node.js loads the package, too', { timeout }, () => {
    const inner = `const { runCode } = require('isolane'); ${use}`;
    assert.equal(cjs(`require('isolane'); const { Worker } = require('node:worker_threads'); new Worker(${JSON.stringify(inner)}, { eval: true })`), '42');
  });

  test('the command runs a file, in a worker process, too, where there are any', { timeout }, () => {
    // npm writes a file for Windows' own shell there.
    const program = hasWorker ? './node_modules/.bin/isolane' : 'node_modules\\\\.bin\\\\isolane.cmd';
    const options = hasWorker ? ['run', '-', '--isolation', 'process'] : ['run', '-'];
    const command = `execFileSync('${program}', ${JSON.stringify(options)}, { input: 'export default 6 * 7', shell: ${!hasWorker} })`;
    assert.equal(cjs(`const { execFileSync } = require('node:child_process'); process.stdout.write(${command})`), '42');
  });

  const programs = {
    kit: [`{ Kit }`, `const kit = new Kit({ state: true }); kit.runTool('await state.set("n", 42); return state.get("n")').then((r) => console.log(r.result)).finally(() => kit.close())`, '42'],
    executors: ['{ CodeLoop, IsolateCodeExecutor, ScriptedModel }', `const model = new ScriptedModel(); model.pushText('It is 42.'); new CodeLoop({ model, executor: new IsolateCodeExecutor() }).run('Say it.').then((r) => console.log(r.text))`, 'It is 42.'],
    environment: ['{ ProcessService }', `const service = new ProcessService(); service.create({ code: 'return 42' }).then(({ pid }) => service.wait(pid)).then((r) => console.log(r.output.result))`, '42'],
    notebook: ['{ Notebook }', `const notebook = new Notebook(); notebook.execute({ cells: [{ language: 'js', code: '6 * 7' }] }).then((r) => console.log(r.content[0].text)).finally(() => notebook.close())`, '42'],
  };
  for (const [part, [names, program, output]] of Object.entries(programs)) {
    test(`isolane/${part} is there for both kinds of modules`, { timeout }, () => {
      assert.equal(cjs(`const ${names} = require('isolane/${part}'); ${program}`), output);
      assert.equal(esm(`import ${names} from 'isolane/${part}'; ${program}`), output);
    });
  }

  describe('an error says which part is missing', () => {
    const failure = (before = '') => cjs(`${before}; try { require('isolane'); } catch (error) { console.log(error.message); }`);
    const place = join(modules, native);
    const causes = `Usual causes:
- a lock file or a node_modules that was made on another platform: delete both, and run npm install here;
- an install without optional dependencies (--omit=optional, --no-optional): install with them (npm install --include=optional);
- a bundler that put isolane into its bundle, or a copy of single files: mark isolane as external, and deploy node_modules.`;

    if (hasWorker) test('the worker', { timeout }, () => {
      renameSync(join(place, 'isolane-worker'), join(place, 'elsewhere'));
      const message = cjs(`try { new (require('isolane').Runtime)({ isolation: 'process' }); } catch (error) { console.log(error.name, error.message); }`);
      assert.equal(message, `TypeError isolation 'process' needs the executable isolane-worker, and there is none in ${place}; install isolane again, or build it in a clone, or name it with the option 'worker' or the environment variable ISOLANE_WORKER`);
      renameSync(join(place, 'elsewhere'), join(place, 'isolane-worker'));
    });

    if (hasWorker) test('the mode of the worker', { timeout }, () => {
      chmodSync(join(place, 'isolane-worker'), 0o644);
      const message = esm(`import { Runtime } from 'isolane'; console.log((await new Runtime({ isolation: 'process' }).runCode('export default 0')).error.message);`);
      assert.equal(message, `no worker could be started: ${join(place, 'isolane-worker')}: Permission denied (os error 13); the file must be executable (chmod +x), on a file system without noexec`);
      chmodSync(join(place, 'isolane-worker'), 0o755);
    });

    if (!hasWorker) for (const [part, [names, program, message]] of Object.entries(ABSENT)) {
      test(`${part}, which Windows lacks`, { timeout }, () => {
        assert.match(esm(`import ${names} from 'isolane${part}'; ${program}`), message);
      });
    }

    test('the native package', { timeout }, () => {
      renameSync(place, join(home, 'elsewhere'));
      assert.equal(failure(), `isolane has no compiled part for ${target.name}: the package ${native} is not installed. ${causes}`);
    });

    test('the native package, of which the command tells in its message alone', { timeout }, () => {
      const program = `const { status, stdout, stderr } = require('node:child_process').spawnSync(process.execPath, ['node_modules/isolane/bindings-node/cli.cjs', 'doctor'], { encoding: 'utf8' }); process.stdout.write(JSON.stringify([status, stdout, stderr]))`;
      assert.deepEqual(JSON.parse(cjs(program)), [1, '', `error: isolane has no compiled part for ${target.name}: the package ${native} is not installed. ${causes}\n`]);
    });

    test('the native package, with another platform’s in its place', { timeout }, () => {
      const path = join(modules, 'isolane', 'package.json');
      const manifest = readFileSync(path, 'utf8');
      writeFileSync(path, manifest.replace('"optionalDependencies": {', `$&"${OTHER.name}": "${OTHER.version}",`));
      mkdirSync(join(modules, OTHER.name));
      writeFileSync(join(modules, OTHER.name, 'package.json'), JSON.stringify(OTHER));
      writeFileSync(join(modules, OTHER.name, 'main.js'), '');
      assert.equal(failure(), `isolane has no compiled part for ${target.name}: the package ${native} is not installed. Installed is ${OTHER.name}, for another platform. ${causes}`);
      rmSync(join(modules, OTHER.name), { recursive: true });
      writeFileSync(path, manifest);
    });

    test('the package of a bundle, which has no manifest', { timeout }, () => {
      renameSync(join(modules, 'isolane', 'package.json'), join(home, 'manifest'));
      assert.equal(failure(`require = (name) => module.require('./node_modules/isolane/bindings-node/dist/index.js')`), `isolane has no compiled part for ${target.name}: the package ${native} is not installed. ${causes}`);
      renameSync(join(home, 'manifest'), join(modules, 'isolane', 'package.json'));
      renameSync(join(home, 'elsewhere'), place);
    });

    test('the native package of this version, where another one is', { timeout }, () => {
      const path = join(place, 'package.json');
      const manifest = readFileSync(path, 'utf8');
      const { version } = JSON.parse(manifest);
      writeFileSync(path, JSON.stringify({ ...JSON.parse(manifest), version: '0.0.9' }));
      assert.match(failure(), new RegExp(`^isolane ${version} cannot use its compiled part, ${native} 0\\.0\\.9: both must have one version\\.`));
      writeFileSync(path, manifest);
    });

    test('a platform without a package', { timeout }, () => {
      const listed = Object.keys(JSON.parse(readFileSync(join(modules, 'isolane', 'package.json'), 'utf8')).optionalDependencies);
      const message = failure(`Object.defineProperty(process, 'platform', { value: 'sunos' }); Object.defineProperty(process, 'arch', { value: 'ia32' })`);
      assert.equal(message, `isolane has no compiled part for sunos-ia32: unsupported platform. There are the packages ${listed.join(', ')}.`);
    });

    test('a file that was cut off', { timeout }, () => {
      const file = join(place, `isolane.${target.name}.node`);
      const { size } = statSync(file);
      truncateSync(file, size - 1);
      assert.match(failure(), new RegExp(`^isolane cannot load its compiled part, ${native}: the file has ${size - 1} bytes of ${size}\\. `));
      truncateSync(file, size);
    });

    test('a file that the system cannot load', { timeout }, () => {
      const file = join(place, `isolane.${target.name}.node`);
      writeFileSync(file, Buffer.alloc(statSync(file).size, 'no addon '));
      assert.match(failure(), new RegExp(`^isolane cannot load its compiled part, ${native}: .+\\. The file is there, and it is not for this system, or it is damaged\\.`));
    });

    test('the same through npm: an install without optional packages', { timeout }, async () => {
      rmSync(modules, { recursive: true });
      const output = await machine.npmBeside(home, 'install', '--omit=optional', `--registry=${registry.url}`);
      assert.equal(output.code, 0, output.text);
      assert.match(failure(), new RegExp(`the package ${native} is not installed`));
      const remedy = await machine.npmBeside(home, 'install', '--include=optional', `--registry=${registry.url}`);
      assert.equal(remedy.code, 0, remedy.text);
      assert.equal(cjs(`const { runCode } = require('isolane'); ${use}`), '42');
    });
  });
}
