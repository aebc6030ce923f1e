// The types of `isolane/notebook`, as a user's compiler sees them.

import { Runtime } from 'isolane';
import { Notebook, type Args, type Execution, type NotebookOptions, type Output, type Tool, type ToolResult } from 'isolane/notebook';

const isA = <T,>(_: T): void => {};

const options: NotebookOptions = {
  js: { runtime: new Runtime(), globals: { scale: (n: number) => n }, language: 'javascript' },
  py: { interpreter: 'python3', isolation: 'none', mode: 'per-call', path: ['lib'] },
  env: { KEY: 'value' },
  limits: { outputBytes: 1000, window: 'ends' },
};
const notebook = new Notebook(options);
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
const tool: Tool = notebook.tool();
isA<'eval'>(tool.name);
isA<boolean>((await notebook.available()).py.ok);
isA<number | null | undefined>(notebook.stats().kernels[0]?.rssBytes);
await notebook.reset('js');
await notebook.close();

// @ts-expect-error: there is no such language
notebook.execute({ cells: [{ language: 'rb', code: '1' }] });
// @ts-expect-error: there is no such option
new Notebook({ limit: {} });
// @ts-expect-error: confinement is not there yet
new Notebook({ py: { isolation: 'confined' } });
