// A model that writes a program, sees it fail, mends it, and answers. The model is scripted; put your own in its place.

import assert from 'node:assert/strict';

import { CodeLoop, IsolateCodeExecutor, ScriptedModel } from 'isolane/executors';

const ORDERS = 'city,euros\nOslo,120\nLima,80\nOslo,n/a\nBern,45\n';

const FIRST = String.raw`The file has the columns 'city' and 'euros'. I sum them up.
~~~ts
import { readText } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\n').map((line) => line.split(','));
const total = rows.reduce((sum, [, euros]) => sum + BigInt(euros), 0n);
console.log('total', total);
~~~
The total is 1,000 euros.`;

const SECOND = String.raw`One row has no amount. I leave it out, and say so.
~~~ts
import { readText, write } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\n').map((line) => line.split(','));
const valid = rows.filter(([, euros]) => /^\d+$/.test(euros));
console.warn(rows.length - valid.length, 'of', rows.length, 'rows left out');
const totals = new Map<string, number>();
for (const [city, euros] of valid) totals.set(city, (totals.get(city) ?? 0) + Number(euros));
write('totals.json', JSON.stringify(Object.fromEntries(totals)));
totals
~~~`;

const ANSWER = 'Oslo spent 120 euros, Lima 80 and Bern 45. One order of Oslo has no amount.';

/** Models write fences of backticks, which a template of JavaScript cannot hold. */
const fenced = (text) => text.replaceAll('~~~', '```');

function show(event) {
  const { stdout } = process;
  if (event.type === 'turn') stdout.write(`\n=== turn ${event.turn}\n`);
  else if (event.type === 'text') stdout.write(event.text);
  else if (event.type === 'output') stdout.write((event.stream === 'stderr' ? '! ' : '') + event.text);
  else if (event.type === 'code') stdout.write(`\n--- a program in ${event.language}\n`);
  else if (event.type === 'retry') stdout.write(`--- again: ${event.error}\n`);
  else if (event.type === 'result') stdout.write(`--- ${event.outcome} in ${event.durationMs.toFixed(1)} ms\n`);
  else stdout.write(`\n=== ${event.reason}\n`);
}

const model = new ScriptedModel();
// In pieces, as models stream. The model invents the text behind the code, and nobody sees it.
model.pushStream(fenced(FIRST).split(' ').map((word) => `${word} `));
model.pushText(fenced(SECOND));
model.pushText(ANSWER);
const loop = new CodeLoop({
  model,
  // For code of strangers: `isolation: 'process'`.
  executor: new IsolateCodeExecutor(),
  instruction: 'Solve problems by writing and running TypeScript.',
  files: [{ name: 'orders.csv', content: new TextEncoder().encode(ORDERS), mimeType: 'text/csv' }],
});
const stream = loop.stream('How much did each city spend?');
for await (const event of stream) show(event);

const { reason, turns, files, contents } = stream.result;
const [totals] = files;
const text = new TextDecoder().decode(totals.content);
console.log(`\n${totals.name}: ${text}`);
assert.deepStrictEqual([reason, turns], ['answered', 3]);
assert.equal(text, '{"Oslo":120,"Lima":80,"Bern":45}');
const said = JSON.stringify(contents);
assert.ok(!said.includes('1,000'), said);
assert.ok(said.includes('invalid BigInt literal'), said);
