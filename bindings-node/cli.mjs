#!/usr/bin/env node
// The program `isolane`, for `npx isolane`.
//
// In: the words of the command line, the standard streams. Out: an exit code. The addon runs the command on this thread,
// and reads and writes the streams itself.

// `process` is the global one: an import of `node:process` opens the standard streams, and they would no longer block.
import { loadNative } from './dist/addon/native.js';

const { native, folder } = loadNative();
// The command handles these signals, and then calls the handler from before: Node's first one would raise the signal
// again, and again. With listeners there is another one, which only notes it.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
process.exit(native.runCommand(['isolane', ...process.argv.slice(2)], folder));
