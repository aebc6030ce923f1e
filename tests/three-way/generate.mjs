// Prints random cases, one line of JSON each: `node generate.mjs <seed> <from> <to>`.

import process from 'node:process';

import { randomCase } from './cases.mjs';

const [seed, from, to] = process.argv.slice(2).map(Number);
const lines = [];
for (let number = from; number < to; number += 1) lines.push(`${JSON.stringify(randomCase(seed, number))}\n`);
process.stdout.write(lines.join(''));
