// The types of `isolane/executors`, as a user's compiler sees them.

import { Runtime } from 'isolane';
import {
  CodeExecutionResult,
  CodeLoop,
  ConfinedCodeExecutor,
  ContainerCodeExecutor,
  ExecutorError,
  IsolateCodeExecutor,
  LocalCodeExecutor,
  ScriptedModel,
  type CodeExecutionJson,
  type CodeExecutor,
  type Content,
  type ExecFile,
  type ExecutorErrorCode,
  type LoopEvent,
  type LoopResult,
  type LoopStream,
  type Model,
  type Outcome,
  type Part,
  type ProgramConfinement,
} from 'isolane/executors';

const isA = <T,>(_: T): void => {};

const local = new LocalCodeExecutor({
  interpreter: 'node',
  args: ['-'],
  timeoutMs: null,
  retryAttempts: 1,
  env: { A: 'b' },
  inheritEnv: true,
  outputLimitBytes: 1,
});
new LocalCodeExecutor();
new LocalCodeExecutor({ env: process.env });
new ConfinedCodeExecutor({ env: process.env });
// @ts-expect-error there is no such option
new LocalCodeExecutor({ timeout: 1 });
// @ts-expect-error a variable is a text
new LocalCodeExecutor({ env: { A: 1 } });

const container = new ContainerCodeExecutor({ image: 'i', argv: ['sh'], memory: '1g', cpus: 0.5, pidsLimit: 5, user: '1:1', dropCapabilities: false, extraArgs: [], engine: 'podman', outputFiles: true });
new ContainerCodeExecutor('python:3.12-slim');
isA<string[]>(container.buildRunArgs('n'));
isA<string[]>(container.buildRunArgsStaged('n', '/f'));
isA<Promise<void>>(container.prepare());

const confined = new ConfinedCodeExecutor({ required: ['fileSystem', 'systemCalls'], readable: ['/srv'], memory: '1g', pidsLimit: 3 });
// @ts-expect-error it is spelled in camel case
new ConfinedCodeExecutor({ required: ['file_system'] });
const had: ProgramConfinement = await confined.confinement();
isA<boolean>(had.systemCalls);
isA<'group' | 'process'>(had.memory);

await using isolate = new IsolateCodeExecutor({
  language: 'javascript',
  globals: { f: async () => 1 },
  imports: { m: { a: 1 } },
  modules: { './a.js': '' },
  memoryLimitBytes: 1e8,
  runtime: new Runtime(),
  timeoutMs: 5,
  stateful: true,
  report: (value) => void value,
  showValue: false,
});
new IsolateCodeExecutor({ isolation: 'process' });
// @ts-expect-error a thread or a process
new IsolateCodeExecutor({ isolation: 'none' });
isA<Promise<void>>(isolate.close());

const done: CodeExecutionResult = await local.executeCode(undefined, { code: '1' });
await local.executeCode(null, { code: '1', language: 'python', executionId: null, inputFiles: [{ name: 'a', content: new Uint8Array() }] });
await isolate.executeCode({ signal: AbortSignal.timeout(5), stdout: (bytes) => isA<Uint8Array>(bytes), turn: 1 }, { code: '1' });
// @ts-expect-error there is no such field
await local.executeCode({ stdOut: () => {} }, { code: '1' });
// @ts-expect-error code is a text
await local.executeCode(null, { code: 1 });
isA<number | null>(done.exitCode);
isA<ExecFile[]>(done.outputFiles);
isA<string | null | undefined>(done.outputFiles[0]?.mimeType);
isA<boolean>(done.isSuccess());
isA<string>(done.combinedOutput());
isA<CodeExecutionJson>(done.toJSON());
isA<CodeExecutionResult>(CodeExecutionResult.fromJSON(done.toJSON()));
new CodeExecutionResult({ stdout: 'a', outputFiles: [{ name: 'a', content: 'AA==' }] });

const error: unknown = undefined;
if (error instanceof ExecutorError) isA<ExecutorErrorCode>(error.code);
new ExecutorError('spawn', 'busy', { cause: 1 });
// @ts-expect-error there is no such code
new ExecutorError('busy', 'busy');

const model: Model = {
  async *generate({ instruction, contents, signal }) {
    isA<string>(instruction);
    isA<Content[]>(contents);
    isA<AbortSignal>(signal);
    yield 'a';
    yield { text: 'b', thought: true };
    yield [{ executableCode: { language: 'PYTHON', code: '1' } }];
  },
};
const plain: Model = { generate: () => 'Done.' };
const parts: Model = { generate: async () => [{ text: 'a' }, { inlineData: { mimeType: 'image/png', data: '' } }] };

// The shapes of an SDK are interfaces.
enum Language {
  Python = 'PYTHON',
}
interface SdkPart {
  text?: string;
  thought?: boolean;
  executableCode?: { code?: string; language?: Language };
  functionCall?: { name?: string };
}
const sdk: SdkPart[] = [{ text: 'a' }];
const ofSdk: Model = { generate: async () => sdk };
const streamOfSdk: Model = {
  async *generate() {
    yield* sdk;
  },
};
const iterable: Model = { generate: () => new Set(['a']) };
// @ts-expect-error a number is no part
const wrong: Model = { generate: () => 5 };
void [iterable, wrong];

const own: CodeExecutor = {
  stateful: false,
  timeoutMs: null,
  codeBlockDelimiters: [['<', '>']],
  async executeCode(ctx, input) {
    ctx.stdout('text');
    ctx.stderr(new Uint8Array());
    ctx.stderr(new ArrayBuffer(1));
    isA<AbortSignal>(ctx.signal);
    // The library's executors take the same context and input.
    return local.executeCode(ctx, { ...input, code: `${input.code}\n` });
  },
};
const code = new CodeLoop({ model, executor: own, instruction: 'i', maxTurns: 3, files: [{ name: 'a', content: new Uint8Array() }], executionId: 'x' });
new CodeLoop({ model: plain, executor: local, codeBlocks: [['a', 'b']], resultDelimiters: ['a', 'b'], asText: 'auto', maxOutputBytes: 5 });
new CodeLoop({ model: parts, executor: isolate, resultDelimiters: [['a', 'b']], asText: true });
new CodeLoop({ model, executor: (_, input) => ({ stdout: input.code, exitCode: 0 }) });
// @ts-expect-error a loop has an executor
new CodeLoop({ model });
// @ts-expect-error a model has a method
new CodeLoop({ model: () => 'x', executor: local });

const result: LoopResult = await code.run('go', { signal: AbortSignal.timeout(5) });
await code.run([{ role: 'user', parts: [{ text: 'a' }] }]);
await code.run([{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: '' } }] }]);
await code.run([{ role: 'user', parts: sdk }]);
await code.run(result.contents);
// @ts-expect-error a text is a string
await code.run([{ role: 'user', parts: [{ text: 1 }] }]);
new CodeLoop({ model: ofSdk, executor: local });
new CodeLoop({ model: streamOfSdk, executor: local });
isA<'answered' | 'max_turns' | 'cancelled'>(result.reason);
isA<Part | undefined>(result.contents[0]?.parts[0]);

await using stream: LoopStream = code.stream('go');
for await (const event of stream) {
  isA<LoopEvent>(event);
  isA<number>(event.turn);
  if (event.type === 'result') isA<[CodeExecutionResult, number, Outcome]>([event.result, event.durationMs, event.outcome]);
  if (event.type === 'output') isA<'stdout' | 'stderr'>(event.stream);
}
stream.cancel();
isA<LoopResult | undefined>(stream.result);

const scripted = new ScriptedModel();
scripted.pushText('a');
scripted.pushCode('python', '1');
scripted.pushParts([{ text: 'a' }]);
scripted.pushParts(sdk);
scripted.pushStream(['a', { text: 'b' }], new Error('broken'));
scripted.pushError('broken');
isA<string | undefined>(scripted.requests()[0]?.instruction);
new CodeLoop({ model: scripted, executor: local });
