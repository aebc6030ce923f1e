// Agents and children of notebooks, as only Node.js sees them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Notebook } from 'isolane/notebook';

const CEILING = { timeout: 120_000 };

const probe = new Notebook();
const { py } = await probe.available();
await probe.close();
const languages = py.ok ? ['js', 'py'] : ['js'];

const textOf = async (notebook, language, code) => (await notebook.execute({ cells: [{ language, code }] })).content[0].text;

test('an agent gets a notebook with the same state, whose children have functions of their own', CEILING, async () => {
  const seen = [];
  const agent = async (prompt, { notebook, signal, ...options }) => {
    assert.ok(notebook instanceof Notebook && signal instanceof AbortSignal);
    seen.push([prompt, options]);
    const child = notebook.child({ tools: { inner: ({ n }) => n + 1 }, agent: false });
    const text = await textOf(child, 'js', `rows.push(await tool.inner({ n: 1 })); try { await agent('x') } catch (e) { print(e.message) }; 1`);
    return `${text}\n${await textOf(notebook, 'js', `await tool.outer({ n: rows[0] })`)}`;
  };
  const notebook = new Notebook({ agent, tools: { outer: ({ n }) => n * 10 } });
  const code = `const rows = []; print(await agent('go', { label: 'l', context: { a: 1 } })); rows`;
  assert.equal(await textOf(notebook, 'js', code), 'agent is not available in this notebook\n1\n20\n[2]');
  const [{ sessionId }] = notebook.stats().kernels;
  assert.deepEqual(seen, [['go', { agentType: 'task', context: { a: 1 }, label: 'l', depth: 1, sessionId }]]);
  await notebook.close();
});

test('the end of a cell aborts the signal of its agent, and ends the calls of its notebook', CEILING, async () => {
  for (const language of languages) {
    let execution;
    const ended = new Promise((resolve) => {
      const agent = async (_prompt, { notebook, signal }) => {
        const aborted = new Promise((abort) => signal.addEventListener('abort', abort));
        const loop = language === 'js' ? "print('begun'); for (;;);" : "print('begun')\nwhile True: pass";
        const onUpdate = ({ content }) => content[0].text.includes('begun') && execution.terminate('enough');
        const { content } = await notebook.execute({ cells: [{ language, code: loop }] }, { onUpdate });
        await aborted;
        resolve(content[0].text);
        return 'late';
      };
      const notebook = new Notebook({ agent, py: { interruptGraceMs: 60_000 } });
      execution = notebook.execute({ cells: [{ language, code: language === 'js' ? "await agent('a')" : "agent('a')" }] });
      execution.finally(() => notebook.close());
    });
    assert.match(await ended, /^begun\nCommand aborted: the cell that called the agent was ended\n/);
    assert.match((await execution).content[0].text, /^Command aborted: enough\nCell aborted\./);
  }
});

test('an error of an agent is thrown in the cell, and updates tell of agents', CEILING, async () => {
  const agent = (prompt) => {
    if (prompt === 'fail') throw new RangeError('no model');
    return prompt;
  };
  const notebook = new Notebook({ agent });
  const states = new Set();
  const onUpdate = ({ details }) => details.statusEvents.forEach(({ id, status }) => states.add(`${id} ${status}`));
  const code = `try { await agent('fail') } catch (e) { print(e.name, e.message) }; await agent('well')`;
  const { content, details } = await notebook.execute({ cells: [{ language: 'js', code }] }, { onUpdate });
  assert.equal(content[0].text, 'RangeError no model\nwell');
  assert.deepEqual(details.statusEvents.map(({ op, id, label, status }) => [op, id, label, status]), [
    ['agent', 'agent-1', 'task', 'error'],
    ['agent', 'agent-2', 'task', 'complete'],
  ]);
  assert.ok(states.has('agent-1 error') && states.has('agent-2 complete'));
  await notebook.close();
});

test('a child ends with its parent, and alone', CEILING, async () => {
  const parent = new Notebook({ llm: () => 'yes' });
  const [child, other] = [parent.child(), parent.child({ llm: false })];
  assert.equal(await textOf(child, 'js', `const x = 1; await llm('?')`), 'yes');
  await child.close();
  assert.throws(() => child.execute({ cells: [{ language: 'js', code: '1' }] }), { name: 'TypeError', message: 'notebook is closed', path: 'notebook' });
  assert.equal(await textOf(other, 'js', `x`), '1');
  assert.equal(await textOf(parent, 'js', `x`), '1');
  await parent.close();
  assert.throws(() => other.execute({ cells: [{ language: 'js', code: '1' }] }), { message: 'notebook is closed' });
  assert.throws(() => parent.child(), { message: 'notebook is closed' });
});
