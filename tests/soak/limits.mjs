// The soak in processes with tight limits of the system: descriptors, threads, addresses.
//
// In: `--quick` for the short ones; `ISOLANE_ISOLATION=process` for workers, which get the same limits. Out: the result
// of each, and a non-zero exit code if one crashed, hung, or lost a run. A run without a thread for it is refused with
// an exception when it is started; nothing else may be.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PYTHON = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url));
const NODE = process.execPath;
const CEILING_MS = 300_000;
const soak = ['--runs', '2000', '--width', '32'];
const few = ['--runs', '2000', '--width', '8'];
const cases = [
  ['64 descriptors, Node.js', 'ulimit -n 64', [NODE, `${HERE}soak.mjs`, ...soak]],
  ['64 descriptors, Python', 'ulimit -n 64', [PYTHON, `${HERE}soak.py`, ...soak]],
  ['1.5 GiB of addresses, Python', 'ulimit -v 1572864', [PYTHON, `${HERE}soak.py`, ...few]],
  ['1 GiB of addresses, Python', 'ulimit -v 1048576', [PYTHON, `${HERE}threads.py`]],
  ...[0, 1, 2, 4].map((more) => [`${more} more threads, Python`, ':', [PYTHON, `${HERE}threads.py`, `${more}`]]),
];

const ofThreads = (command) => command[1].endsWith('threads.py');
const inProcesses = process.env.ISOLANE_ISOLATION === 'process';
const { values: { quick } } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
let failed = 0;
for (const [name, limit, command] of cases) {
  if (inProcesses ? ofThreads(command) : quick && !ofThreads(command)) continue;
  const options = { encoding: 'utf8', timeout: CEILING_MS, killSignal: 'SIGKILL' };
  const { status, signal, stdout, stderr } = spawnSync('sh', ['-c', `${limit} && exec "$@"`, 'sh', ...command], options);
  const fine = status === 0;
  failed += fine ? 0 : 1;
  const said = stdout.trim().split('\n').filter((line) => /^lost|^threads|^ {2}/.test(line)).join(' ') || stdout.slice(-300);
  console.log(`${fine ? 'fine  ' : 'FAILED'} ${name}: ${fine ? said : `${signal ?? status} ${said} ${stderr.slice(-600)}`}`);
}
process.exitCode = failed === 0 ? 0 : 1;
