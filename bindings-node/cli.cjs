#!/usr/bin/env node
// The program `isolane`, for `npx isolane`.
//
// In: the words of the command line, the standard streams. Out: an exit code, 1 without the compiled part, whose loader says
// why. The addon runs the command on this thread, and reads and writes the streams itself. The file is CommonJS: a package
// manager that keeps packages in archives teaches Node.js to find those, but not as the program that it starts.

'use strict';

// `process` is the global one: an import of `node:process` opens the standard streams, and they would no longer block.
const { native, folder } = loaded();
// The command handles these signals, and then calls the handler from before: Node's first one would raise the signal
// again, and again. With listeners there is another one, which only notes it.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
process.exit(native.runCommand(['isolane', ...process.argv.slice(2)], folder));

function loaded() {
  try {
    return require('./dist/addon/native.js').loadNative();
  } catch (error) {
    console.error(`error: ${error.message}`);
    return process.exit(1);
  }
}
