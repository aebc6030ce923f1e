// The same types for `require`.

import isolane = require('isolane');

const result: PromiseLike<isolane.CodeExecutionResult> = isolane.runCode('export default 1');
const runtime: isolane.Runtime = new isolane.Runtime();
void [result, runtime, isolane.SerializationError];
