// A model at work in steps: a session over a year of support tickets. One step loops for ever and is undone, and at last
// two forks try two ways, of which the better one is kept.

import { readFileSync } from 'node:fs';

import { Session } from 'isolane';

const csv = readFileSync(new URL('agent/data/tickets.csv', import.meta.url), 'utf8');
const session = new Session({ globals: { csv }, memoryLimitBytes: 64 * 1024 * 1024 });

// The model's part is played here: each step is what it would write next.
await step(`
  const rows = csv.trim().split('\\n').slice(1);
  const tickets = rows.map((row) => ({ id: row.split(',')[0], customer: row.split(',')[3] }));
  tickets.length`);
await step(`
  const load = new Map<string, number>();
  for (const { customer } of tickets) load.set(customer, (load.get(customer) ?? 0) + 1);
  load.size`);
await step(`
  const queue = [...load];
  while (queue.length > 0) load.clear();`);
await step(`Math.max(...load.values())`);
await step(`
  const teams = Array.from({ length: 7 }, () => ({ tickets: 0, customers: 0 }));
  function give(team: number, tickets: number) {
    teams[team].tickets += tickets;
    teams[team].customers += 1;
  }
  function unfairness() {
    const loads = teams.map((team) => team.tickets);
    return Math.max(...loads) - Math.min(...loads);
  }`);

const ways = {
  'in turn': `[...load.values()].forEach((tickets, index) => give(index % teams.length, tickets)); unfairness()`,
  'largest first': `
    for (const tickets of [...load.values()].sort((a, b) => b - a)) {
      const loads = teams.map((team) => team.tickets);
      give(loads.indexOf(Math.min(...loads)), tickets);
    }
    unfairness()`,
};
const tried = await Promise.all(
  Object.entries(ways).map(async ([way, code]) => {
    const fork = await session.fork();
    return { way, fork, unfairness: (await fork.run(code)).result };
  }),
);
for (const { way, unfairness } of tried) console.log(`${way}: ${unfairness} tickets between the teams`);
const [better, worse] = tried.sort((a, b) => a.unfairness - b.unfairness);
console.log(`Kept: ${better.way}.`, (await better.fork.run('teams[0]')).text);
await Promise.all([better.fork, worse.fork, session].map((open) => open.close()));
if (better.way !== 'largest first') throw new Error('the better way lost');

/** One step of the model, and what it is told of it. */
async function step(code) {
  const { status, text, error, session: state } = await session.run(code, { timeoutMs: 500 });
  console.log(status === 'success' ? (text ?? 'done') : `${error.name}: ${error.message} (the session is ${state})`);
}
