// The types of `isolane/kit`, as a user's compiler sees them.

import { Runtime } from 'isolane';
import {
  Kit,
  KitError,
  type BrowserProxy,
  type KitCall,
  type KitCellResult,
  type KitOptions,
  type KitSession,
  type Library,
  type SqlResult,
  type ToolExecution,
  type ToolResult,
} from 'isolane/kit';
import { chromium, type BrowserContext, type Page } from 'playwright-core';

const isA = <T,>(_: T): void => {};

const all: KitOptions = {
  agent: 'a',
  file: 'state.db',
  state: { maxKeyBytes: 1 },
  libraries: true,
  db: { file: 'data.db', readOnly: true, maxRows: 10 },
  fetch: { allow: ['x.org', { url: 'https://y.org/*', methods: ['GET'] }], allowAddresses: ['10.0.0.0/8'], ca: 'PEM' },
  secrets: { KEY: { value: 'correct horse', hosts: ['x.org'], in: ['header'] }, PLAIN: { value: 'plain value', reveal: true } },
  web: false,
  timers: { maxPending: 5 },
  runtime: new Runtime(),
  timeoutMs: 1_000,
  memoryLimitBytes: 2 ** 24,
  maxCalls: 10,
  maxRecordedCalls: 5,
};
new Kit();
new Kit({ fetch: 'public' });
new Kit({ fetch: ['x.org'] });
// @ts-expect-error there is no such option
new Kit({ network: true });
// @ts-expect-error all or a list
new Kit({ fetch: 'all' });
// @ts-expect-error a part of a request
new Kit({ secrets: { KEY: { value: 'x', hosts: ['x.org'], in: ['cookie'] } } });
// @ts-expect-error a secret has a value
new Kit({ secrets: { KEY: { hosts: ['x.org'] } } });

declare const page: Page;
declare const context: BrowserContext;
new Kit({ browser: page });
new Kit({ browser: context });
new Kit({ browser: { page, allow: ['x.org'], timeoutMs: 5_000 } });
new Kit({ browser: { context: async () => context } });
new Kit({
  browser: async (proxy) => {
    isA<BrowserProxy>(proxy);
    const browser = await chromium.launch({ proxy });
    return browser.newPage();
  },
});
// @ts-expect-error a page is no path
new Kit({ browser: '/usr/bin/chromium' });

await using kit = new Kit(all);
const running: ToolExecution = kit.runTool('return args.a', {
  args: { a: 1 },
  globals: { b: 2 },
  report: (value) => void value,
  language: 'javascript',
  filename: 'a.js',
  signal: AbortSignal.timeout(5),
});
running.terminate('enough');
const done: ToolResult = await running;
isA<string | undefined>(done.json);
isA<KitCall[]>(done.calls);
isA<number>(done.callsDropped);
isA<string | undefined>(done.calls[0]?.error);
// @ts-expect-error a tool has no imports
kit.runTool('', { imports: {} });
interface Todo {
  id: number;
}
const todo: Todo = { id: 1 };
kit.runTool('', { args: todo, globals: { todo } });
// @ts-expect-error args is an object
kit.runTool('', { args: [] });

const module = await kit.runCode('export default 1', { execute: { fn: 'default' }, timeoutMs: 5 });
isA<KitCall[]>(module.calls);
// @ts-expect-error a module has no JSON text
module.json;

const session: KitSession = kit.session({ cells: 'interleave' });
const cell: KitCellResult = await session.run('1');
isA<number>(cell.calls.length);
isA<KitCall[]>(cell.calls);
isA<KitCellResult>(await session.call('f', 1));
isA<KitSession>(await session.fork());

await kit.state.set('k', { a: [1] });
isA<unknown>(await kit.state.get('k'));
isA<string[]>(await kit.state.keys());
const result: SqlResult = await kit.db.sql('SELECT ?', [1]);
isA<unknown[][] | undefined>(result.rows);
await kit.db.sql('SELECT :a', { a: 1 });
isA<SqlResult[]>(await kit.db.batch([['SELECT 1'], ['SELECT ?', [1]]]));
isA<string[]>((await kit.db.schema()).tables.map((table) => table.name));
await kit.libraries.create('a', 'exports.a = 1', { language: 'javascript' });
isA<Library | null>(await kit.libraries.get('a'));
kit.secrets.set('KEY', { value: 'another value', hosts: ['x.org'] });
isA<string[]>(kit.secrets.names());
isA<string>(await kit.describe());
isA<BrowserProxy>(await kit.proxy());
isA<Promise<void>>(kit.close());

const error: unknown = undefined;
if (error instanceof KitError) isA<string | undefined>(error.code);
