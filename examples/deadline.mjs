// A deadline is up to the caller: start a run, set a timer, terminate. The event loop stays free meanwhile, because the
// code runs on another thread.

import { runCode } from 'isolane';

const run = runCode('for (;;);', { language: 'javascript' });
const deadline = setTimeout(() => run.terminate('out of time'), 100);
const ticks = setInterval(() => console.log('still running:', run.running), 25);

const result = await run;
clearTimeout(deadline);
clearInterval(ticks);
console.log(result.status, '·', result.error.message, '·', `${result.durationMs.toFixed(0)} ms`);

// A run that waits for its host is ended as well, and not only one that computes.
const waiting = runCode('export default await forever()', { globals: { forever: () => new Promise(() => {}) } });
setTimeout(() => waiting.terminate('nobody answers'), 50);
const { status, error } = await waiting;
console.log(status, '·', error.message);

process.exitCode = result.status === 'terminated' && status === 'terminated' ? 0 : 1;
