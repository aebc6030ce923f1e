// The same types for `require`.

import isolane = require('isolane');

const result: PromiseLike<isolane.CodeExecutionResult> = isolane.runCode('export default 1');
const runtime: isolane.Runtime = new isolane.Runtime();
const value: PromiseLike<number> = result.then((settled) => isolane.unwrap<number>(settled));
void [result, runtime, value, isolane.SerializationError, isolane.StatusError, isolane.UncaughtError];
