// The types of `isolane/notebook`, as a user's compiler sees them.

import { Runtime } from 'isolane';
import { Kit } from 'isolane/kit';
import {
  Notebook,
  Registry,
  renderCall,
  renderHtml,
  renderTerminal,
  toIpynb,
  type Args,
  type Execution,
  type HtmlOptions,
  type NotebookOptions,
  type Output,
  type TerminalOptions,
  type Tool,
  type ToolResult,
  type Update,
} from 'isolane/notebook';

const isA = <T,>(_: T): void => {};

const options: NotebookOptions = {
  js: { runtime: new Runtime(), kit: new Kit({ state: true }), globals: { scale: (n: number) => n }, language: 'javascript' },
  py: { interpreter: 'python3', isolation: 'confined', required: ['fileSystem'], network: true, readable: ['data'], mode: 'per-call', path: ['lib'] },
  env: { KEY: 'value' },
  files: { root: '/tmp', write: true, maxReadBytes: 1000, maxWriteBytes: 1000, maxTreeEntries: 10 },
  artifacts: { dir: '/tmp/artifacts', maxBytes: 1000 },
  limits: { outputBytes: 1000, window: 'ends', agentCalls: 5, agentDepth: 1 },
  agent: async (prompt, { agentType, depth, notebook, signal }) => {
    isA<[string, string, number, Notebook, AbortSignal]>([prompt, agentType, depth, notebook, signal]);
    return (await notebook.execute({ cells: [] })).content[0].text;
  },
};
const registry = new Registry({ maxKernels: 1, maxRunningKernels: 2, idleTimeoutMs: 0, sweepMs: 1000, heartbeatMs: 1000 });
const notebook = new Notebook({ ...options, registry, sessionId: 'a' });
const args: Args = { cells: [{ language: 'py', code: '1', title: 'one', timeout: 5, reset: true }] };
const execution: Execution = notebook.execute(args, {
  signal: AbortSignal.timeout(1000),
  onUpdate: ({ content, details }) => isA<[string, boolean | undefined]>([content[0].text, details.isError]),
});
execution.terminate('enough');
isA<boolean>(execution.running);
const result: ToolResult = await execution;
for (const output of result.details.cells.flatMap((cell): Output[] => cell.outputs)) {
  if (output.type === 'json') isA<unknown>(output.value);
  else if (output.type === 'stream') isA<'stdout' | 'stderr'>(output.name);
}
isA<string | undefined>(result.details.meta.truncation?.artifact?.uri);
const tool: Tool = notebook.tool();
isA<'eval'>(tool.name);
isA<boolean>((await notebook.available()).py.ok);
isA<boolean | undefined>(notebook.stats().confinement?.fileSystem);
isA<number | null | undefined>(notebook.stats().kernels[0]?.rssBytes);
await notebook.reset('js');
const terminal: TerminalOptions = { width: 100, color: 'never', expanded: true, previewLines: 3, title: 'Run' };
const html: HtmlOptions = { title: 'Run', theme: 'dark', expanded: true, previewLines: 3 };
const update: Update = result;
isA<string[]>([renderCall(args, terminal), renderTerminal(update, terminal), renderHtml(result, html), toIpynb([result, update])]);
isA<string>(renderHtml(JSON.parse('{}')));
new Notebook({
  tools: {
    search: { description: 'Search', call: async ({ query }, { signal }) => `${query} ${signal.aborted}` },
    size: { call: (args: { path: string }, context) => isA<[string, AbortSignal]>([args.path, context.signal]) },
    double: ({ n }) => n * 2,
  },
});
const child: Notebook = notebook.child({ tools: { one: () => 1 }, llm: false, agent: false, limits: { maxCells: 1 } });
isA<Tool>(child.tool());
await notebook.close();

// @ts-expect-error: there is no such language
notebook.execute({ cells: [{ language: 'rb', code: '1' }] });
// @ts-expect-error: a child has the kernels of its parent
notebook.child({ js: false });
// @ts-expect-error: there is no such option
new Notebook({ limit: {} });
// @ts-expect-error: there is no such item
new Notebook({ py: { required: ['files'] } });
// @ts-expect-error: there is no such theme
renderHtml(result, { theme: 'blue' });
// @ts-expect-error: several results are a list
toIpynb(result);
