// The types of `isolane/environment`, as a user's compiler sees them.

import { Runtime } from 'isolane';
import {
  EXECUTION_EXIT_STATES,
  EXECUTION_STATES,
  ProcessError,
  ProcessService,
  TypeScriptEnvironment,
  type EnvironmentBindings,
  type EnvironmentModule,
  type ExecutionExitState,
  type ExecutionInput,
  type ExecutionState,
  type ProcessList,
  type ProcessRecord,
  type ToolInfo,
} from 'isolane/environment';

const isA = <T,>(_: T): void => {};

isA<readonly ExecutionState[]>(EXECUTION_STATES);
isA<readonly ExecutionExitState[]>(EXECUTION_EXIT_STATES);
isA<'queued'>(EXECUTION_STATES[0]);

const environment = new TypeScriptEnvironment({
  runtime: new Runtime(),
  concurrency: 1,
  memoryLimitBytes: 1e8,
  defaultTimeoutMs: 5,
  globals: { a: 1 },
  imports: { a: { b: () => 1 } },
  modules: { './a.js': '' },
});
new TypeScriptEnvironment({ isolation: 'process' });
// @ts-expect-error
new TypeScriptEnvironment({ isolation: 'container' });
isA<EnvironmentModule>(environment);

class Own implements EnvironmentModule {
  async execute(input: ExecutionInput, bindings: EnvironmentBindings): Promise<ExecutionExitState> {
    bindings.setState(input.eid, 'running');
    // @ts-expect-error
    bindings.setState(input.eid, 'idle');
    bindings.stdout(input.eid, new Uint8Array());
    bindings.stderr(input.eid, 'text');
    bindings.output(input.eid, { a: 1 });
    bindings.error(input.eid, new Error('no'));
    bindings.error(input.eid, { message: 'no', line: 1 });
    isA<unknown>(await bindings.invokeTool(input.eid, 'a.b', {}));
    isA<number | undefined>(input.options?.timeoutMs);
    return 'success';
  }

  async kill(_eid: number): Promise<void> {}
}

const service = new ProcessService({ environment: new Own(), defaultTimeoutMs: null, backstopMs: null, maxQueued: 1 });
new ProcessService();
// @ts-expect-error
new ProcessService({ environment: {} });

service.tool('a', 'b', { description: '', inputSchema: {} }, async ({ owner }, { eid, signal }) => {
  isA<number>(eid);
  isA<AbortSignal>(signal);
  return owner;
});
isA<ToolInfo[]>(service.tools());
isA<string>(service.toolTypes());
isA<Promise<string>>(service.toolDocs('a', 'b'));

isA<ProcessRecord>(await service.create({ code: '', timeoutMs: 5, autorun: false }));
// @ts-expect-error
await service.create({});
isA<ProcessList>(await service.list({ state: 'idle', exitState: 'failed', limit: 1, before: 2 }));
isA<ProcessRecord>(await service.wait(1, 5));
isA<ProcessRecord>(await service.run(1, { force: true }));
isA<ProcessRecord>(await service.kill(1));
isA<void>(await service.delete(1));
isA<string>(await service.stdout(1));
isA<Record<string, unknown>>(await service.output(1));
for await (const event of service.events(1, { after: 2 })) {
  if (event.event === 'stdout') isA<string>(event.data.text);
  if (event.event === 'exit') isA<ExecutionExitState | null>(event.data.exitState);
}
for await (const change of service.events()) isA<ProcessRecord>(change.data);
await service.shutdown();
isA<string>(new ProcessError('not-found', 'no').code);
