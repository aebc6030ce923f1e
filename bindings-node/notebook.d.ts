/**
 * A notebook runs a model's cells, of Python and JavaScript mixed, in kernels that keep their state, and returns a tool
 * result.
 */

import type { ProgramConfinement } from './executors.js';
import type { AbortSignalLike, Runtime } from './index.js';
import type { Kit } from './kit.js';

export type { ProgramConfinement } from './executors.js';

/** The language of a cell, and so its kernel. */
export type Language = 'py' | 'js';

/** A cell, as a model sends it. */
export interface CellInput {
  language: Language;
  code: string;
  /** A short label. */
  title?: string;
  /** Seconds, 1 to 600. Default `limits.timeoutSeconds`. */
  timeout?: number;
  /** Gives the cell an empty kernel of its language. */
  reset?: boolean;
}

/** The argument object of the model's tool call. An unknown key is a `TypeError`. */
export interface Args {
  cells: CellInput[];
}

/** The options of a {@link Notebook}. An unknown key is a `TypeError`. */
export interface NotebookOptions {
  /** JavaScript cells; `false` switches them off. */
  js?: boolean | JsOptions;
  /** Python cells; `false` switches them off. */
  py?: boolean | PyOptions;
  /**
   * The name of the session. Default: a fresh one. Notebooks that name the same one in a registry share its kernels. It has the
   * `js`, `py`, `files` and `env` of the notebook that opened it; whoever joins leaves them out, or gives the same.
   */
  sessionId?: string;
  /** Where the session is. Default: the registry of this process. */
  registry?: Registry;
  /** The variables that cells have with `env`, in Python beside our own `HOME`, `TMPDIR`, `PATH`, `LANG`, `TZ`. */
  env?: Record<string, string>;
  /** The files that cells may use with `read` and its like; Python cells have the folder as their working directory. */
  files?: FilesOptions;
  /** The folder for what is too long for a result. */
  artifacts?: ArtifactsOptions;
  /** Functions that cells call as `tool.<name>(args)`: in JavaScript a promise, in Python a call that waits. */
  tools?: Record<string, ToolFunction | CellTool>;
  /** The function behind `llm(prompt, { model, system, schema })`. The clock of a cell stands still while it works. */
  llm?: (prompt: string, options: LlmOptions) => unknown;
  /**
   * The function behind `agent(prompt, { agentType, model, context, label, schema })`: has a subagent do a task. The clock of
   * a cell stands still while it works.
   */
  agent?: (prompt: string, options: AgentOptions) => unknown;
  limits?: Limits;
}

/** The options of a {@link Registry}. An unknown key is a `TypeError`. */
export interface RegistryOptions {
  /** The most kernels of Python. Beyond them the one that was used least recently ends, if no cell runs in it. Default 4. */
  maxKernels?: number;
  /** The most kernels of Python that run at once, those with cells too. Beyond them a cell fails. Default 16. */
  maxRunningKernels?: number;
  /** The time without a cell after which a kernel of Python ends; 0: never. Default 300,000. */
  idleTimeoutMs?: number;
  /** The time between two looks at kernels. Default 30,000. */
  sweepMs?: number;
  /**
   * The time between two heartbeats of a kernel of Python: one without a cell that misses two is dead. Its memory is looked at
   * in the same time. Default 5,000.
   */
  heartbeatMs?: number;
}

/** The sessions of notebooks by their names, and the bounds of their kernels. */
export class Registry {
  constructor(options?: RegistryOptions);
  /** The name of the class. */
  readonly [Symbol.toStringTag]: string;
}

/** The options of {@link Notebook.child}. An option that is left out is as in the notebook; `false` is no function. */
export interface ChildOptions {
  tools?: Record<string, ToolFunction | CellTool> | false;
  llm?: ((prompt: string, options: LlmOptions) => unknown) | false;
  agent?: ((prompt: string, options: AgentOptions) => unknown) | false;
  /** A folder of its own. */
  artifacts?: ArtifactsOptions;
  limits?: Limits;
}

/**
 * A function behind a tool. Its arguments and its answer cross as values of a run do: dates, bytes, bigints, Maps, no functions.
 * Of a tool result, `{ content, details?, isError? }`, cells get the text, and its images are displayed. Errors that it throws
 * are thrown in the cell.
 */
export interface ToolFunction {
  (args: any, context: CallContext): unknown;
  /** As each function has it. It gives `call` of a {@link CellTool} the types of its parameters. */
  call(args: any, context: CallContext): unknown;
}

/** A tool with a description. */
export interface CellTool {
  call: ToolFunction;
  /** For the model. */
  description?: string;
  /** The JSON Schema of the arguments: they are checked, and its defaults are filled in. */
  input?: Record<string, any>;
  /** Whether the clock of a cell stands still while a call is unanswered. Default false. */
  stopsClock?: boolean;
}

/** A call of a function by a cell. */
export interface CallContext {
  /** Aborted when the cell is ended. */
  signal: AbortSignal;
}

/** The options of a call of `llm`. */
export interface LlmOptions extends CallContext {
  /** `'smol'`, `'default'`, `'slow'`, or any name. */
  model: string;
  system?: string;
  /** The JSON Schema of the answer, which is then a value or JSON text. */
  schema?: Record<string, any>;
}

/** The options of a call of `agent`. */
export interface AgentOptions extends CallContext {
  /** `'task'` if the cell gives none. */
  agentType: string;
  model?: string;
  /** Anything that the subagent should know. */
  context?: unknown;
  /** A short name of the task. */
  label?: string;
  /** The JSON Schema of the answer, which is then a value or JSON text. */
  schema?: Record<string, any>;
  /** 1 for an agent that a cell of your own notebook calls, 2 for one that a cell of that agent calls, and so on. */
  depth: number;
  sessionId: string;
  /** A notebook for the subagent, with the state and the functions of the one whose cell calls. Its calls end with `signal`. */
  readonly notebook: Notebook;
}

/** The files of a notebook: those below one folder. */
export interface FilesOptions {
  /** The folder, which must be there. No path, and no link, leads out of it. */
  root: string;
  /** Whether cells may write. Default false. */
  write?: boolean;
  /** The bytes that one `read` or `diff` gives. Default 16 MiB. */
  maxReadBytes?: number;
  /** The bytes that one `write` or `append` takes. Default 16 MiB. */
  maxWriteBytes?: number;
  /** The entries of one `tree`. Default 2,000. */
  maxTreeEntries?: number;
}

/** The artifacts of a notebook. */
export interface ArtifactsOptions {
  /** The folder, for artifacts alone: cells read them by their names. It is made if it is not there. */
  dir: string;
  /** The bytes of one file; the rest is dropped and counted. Default 256 MiB. */
  maxBytes?: number;
}

/** The options of JavaScript cells. */
export interface JsOptions {
  /** The runtime of the session. Default: that of the kit, else that of the process. */
  runtime?: Runtime;
  /** Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** The memory of the session. Default: that of the kit, else 128 MiB. */
  memoryLimitBytes?: number;
  /** The largest state that is kept for rolling back. Default 64 MiB. */
  checkpointBytes?: number;
  /** Names that every cell sees. Functions among them are asynchronous inside. */
  globals?: Record<string, any>;
  /** Bridged modules: bare specifier → named exports. */
  imports?: Record<string, Record<string, any>>;
  /** Modules that cells may import, by a relative specifier. */
  modules?: Record<string, string>;
  /**
   * Capabilities of cells: `fetch`, `state`, timers, for example. Its secrets are taken out of all that a cell shows. The
   * clocks are the notebook's: the kit's `timeoutMs` does not count.
   */
  kit?: Kit;
  /** The time without a cell after which the session ends; 0: never. Default 0. */
  idleTimeoutMs?: number;
}

/** The protections of a confined kernel that can be required. */
export type RequiredItem = 'privileges' | 'network' | 'fileSystem' | 'systemCalls' | 'processes' | 'resources';

/** The options of Python cells. Those from `required` to `scratchBytes` are for kernels that are confined. */
export interface PyOptions {
  /** The interpreter, 3.10 or newer. Default: that of `VIRTUAL_ENV`, else `python3`. */
  interpreter?: string;
  /** `'per-call'`: one kernel for each cell. Default `'session'`. */
  mode?: 'session' | 'per-call';
  /**
   * `'confined'`, on Linux: a kernel has its own folders, those that it is shown, and the network if it is given. `'none'`: the
   * rights of this process. Default `'confined'`.
   */
  isolation?: 'confined' | 'none';
  /** The protections without which no cell runs. Default `['fileSystem', 'network']`, with `network` `['fileSystem']`. */
  required?: RequiredItem[];
  /** Whether a kernel has the network of this machine, unfiltered. Default false. */
  network?: boolean;
  /** Whether a kernel may start processes. Default true. */
  processes?: boolean;
  /** The most processes and threads of a kernel. Default 256. */
  maxProcesses?: number;
  /** Files and folders that a kernel may read, beside its interpreter, `path` and the system's folders. */
  readable?: string[];
  /** The bytes of a kernel's own folders. Default 256 MiB. */
  scratchBytes?: number;
  /** Folders that are added to `sys.path`. */
  path?: string[];
  /** Default 2 GiB. */
  memoryLimitBytes?: number;
  /** The longest frame of a kernel. Default 64 MiB. */
  frameBytes?: number;
  /** Default 30,000. */
  startTimeoutMs?: number;
  /** The time that an interrupted cell has to end before its kernel is killed. Default 2,000. */
  interruptGraceMs?: number;
  /** Default 2,000. */
  shutdownGraceMs?: number;
  /** How often a kernel that died by itself is replaced. Default 1. */
  restarts?: number;
}

/** The limits of calls and cells. */
export interface Limits {
  /** Default 30. */
  timeoutSeconds?: number;
  /** Default 600. */
  maxTimeoutSeconds?: number;
  /** Wall time that ends any cell. Default 3,600. */
  maxCellSeconds?: number;
  /** Default 64. */
  maxCells?: number;
  /** Default 1 MiB. */
  codeBytes?: number;
  /** The bytes of the text block. Default 50 KB. */
  outputBytes?: number;
  /** The lines of the text block. Default 3,000. */
  outputLines?: number;
  /** The part of a long text that is shown. Default `'tail'`. */
  window?: 'tail' | 'head' | 'ends';
  /** The bytes of the text of an update. Default 100 KB. */
  liveBytes?: number;
  /** Default 50. */
  updateIntervalMs?: number;
  /** The bytes of one display in the text. Default 8,000. */
  displayBytes?: number;
  /** The bytes of the JSON values of a cell. Default 1 MiB. */
  jsonBytes?: number;
  /** The bytes of an image. Default 5 MiB. */
  imageBytes?: number;
  /** The images of a call. Default 16. */
  images?: number;
  /** The status events of a cell that are kept, the newest. Default 1,000. */
  statusEvents?: number;
  /** The calls of host functions that one cell has at work at once; more wait. Default 64. */
  hostCalls?: number;
  /** The calls of `llm` in one cell. Default 200. */
  llmCalls?: number;
  /** The calls of `agent` in one cell. Default 50. */
  agentCalls?: number;
  /** The agents above one another. Default 3. */
  agentDepth?: number;
  /** The functions that `parallel` and `pipeline` run at once, unless their cell says otherwise. Default 4. */
  concurrency?: number;
  /** The most that a cell may say. Default 16. */
  maxConcurrency?: number;
}

/** A text block. */
export interface TextContent {
  type: 'text';
  text: string;
}

/** An image in Base64. */
export interface ImageContent {
  type: 'image';
  data: string;
  mimeType: string;
}

/** A part of a cell's output, in order. */
export type Output =
  | { type: 'stream'; name: 'stdout' | 'stderr'; text: string }
  | { type: 'text' | 'markdown'; text: string }
  | { type: 'json'; value: unknown }
  | ImageContent
  | { type: 'error'; name: string; message: string };

/** Why a cell failed. */
export interface CellError {
  name: string;
  message: string;
  stack?: string;
  filename?: string;
  /** From 1. */
  line?: number;
  /** From 1. */
  column?: number;
}

/** A call of a helper by a cell. `ok` tells whether it succeeded. */
export type StatusEvent =
  | { op: 'tool'; name: string; ok: boolean; ms: number }
  | { op: 'llm'; model: string; ok: boolean; ms: number }
  | { op: 'agent'; id: string; label: string; status: 'running' | 'complete' | 'error'; ms: number; artifact?: string | null }
  | { op: 'read' | 'write' | 'append'; path: string; bytes?: number; ok: boolean; ms: number }
  | { op: 'tree'; path: string; entries?: number; ok: boolean; ms: number }
  | { op: 'diff'; paths: [string, string]; bytes?: number; ok: boolean; ms: number }
  | { op: 'output'; ids: string[]; bytes?: number; ok: boolean; ms: number }
  | { op: 'sort' | 'uniq'; lines: number }
  | { op: 'counter'; items: number }
  | { op: 'env'; variables?: number; key?: string; set?: boolean };

/** A cell of a call. */
export interface CellResult {
  index: number;
  title?: string;
  language: Language;
  code: string;
  /** `<cell 7>`, as in stacks: the count of its kernel. */
  name?: string;
  status: 'pending' | 'running' | 'complete' | 'error';
  /** The text of streams, displays and value, as it is shown. */
  output: string;
  outputs: Output[];
  /** Wall time. */
  durationMs: number;
  /** Time on the cell's clock. */
  workMs: number;
  /** Absent if the cell was ended from outside. */
  exitCode?: 0 | 1;
  statusEvents: StatusEvent[];
  /** Whether a part of the output is markdown. */
  markdown: boolean;
  error?: CellError;
  /** The effect of the cell on the state. */
  state?: 'kept' | 'rolledBack' | 'reset';
}

/** A text that was cut. */
export interface Truncation {
  window: 'tail' | 'head' | 'ends';
  totalBytes: number;
  totalLines: number;
  shownBytes: number;
  shownLines: number;
  /** The file with all of it, if there is a folder for artifacts. */
  artifact?: Artifact;
}

/** A file with what was too long for a result. */
export interface Artifact {
  /** `artifact://eval-3`: cells read it with `output('eval-3')`. */
  uri: string;
  path: string;
  bytes: number;
  /** Bytes beyond `artifacts.maxBytes`, or after a fault of the disk. */
  droppedBytes: number;
}

/** Everything about a call that is not for the model. */
export interface Details {
  cells: CellResult[];
  /** The first language. */
  language: Language;
  /** All, in the order of their first use. */
  languages: Language[];
  /** The JSON values; in place of one over its limit `{ truncated, bytes, artifact }`, with the URI of its file. */
  jsonOutputs: unknown[];
  statusEvents: StatusEvent[];
  /** About kernels that were replaced. */
  notice?: string;
  meta: { truncation?: Truncation };
  /** In updates only. */
  isError?: boolean;
  /** In updates only. */
  images?: ImageContent[];
}

/** The result of a call: for the model `content`, one text block and then images. */
export interface ToolResult {
  content: [TextContent, ...ImageContent[]];
  details: Details;
  /** Whether a cell failed or was ended from outside. */
  isError: boolean;
}

/** The result so far. */
export type Update = Omit<ToolResult, 'isError'>;

/** The options of {@link Notebook.execute}. An unknown key is a `TypeError`. */
export interface ExecuteOptions {
  /** Ends the call when it is aborted. */
  signal?: AbortSignalLike;
  /** Receives the result so far: at once, then at most every `limits.updateIntervalMs`, and before the call settles. */
  onUpdate?: (update: Update) => unknown;
}

/** A call: awaitable, and never rejecting. */
export interface Execution extends PromiseLike<ToolResult> {
  /** Ends the cell that runs; later ones do not run. The first reason counts. */
  terminate(reason?: unknown): void;
  /** Whether the call has not settled yet. */
  readonly running: boolean;
  /** As `Promise.prototype.catch`; there is nothing to catch. */
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<ToolResult | T>;
  /** As `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<ToolResult>;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: string;
}

/** The tool as a model sees it. */
export interface Tool {
  name: 'eval';
  description: string;
  /** The JSON Schema of {@link Args}. */
  inputSchema: Record<string, unknown>;
}

/** A backend. */
export interface Backend {
  ok: boolean;
  version?: string;
  /** The path of the interpreter. */
  path?: string;
  /** Why it cannot run cells. */
  reason?: string;
}

/** The backends of a notebook. */
export interface Available {
  js: Backend;
  py: Backend;
}

/** The kernels of a notebook. */
export interface Stats {
  /** The protections of Python kernels, once a kernel has started or `available` has tried. `null` before, and for `'none'`. */
  confinement: ProgramConfinement | null;
  kernels: {
    sessionId: string;
    language: Language;
    busy: boolean;
    /** Milliseconds since its last cell; 0 while it is busy. */
    idleMs: number;
    /** The memory of its process, where the system tells it. */
    rssBytes: number | null;
    /** How often it was replaced since the last reset. */
    restarts: number;
  }[];
}

/** Runs a model's cells in kernels that keep their state. An idle notebook keeps no process alive. */
export class Notebook {
  /** Opens a notebook. Throws a `TypeError` or a `RangeError` with `path` for options that are not valid. */
  constructor(options?: NotebookOptions);
  /**
   * Runs the cells of a tool call when the calls before it are done. Throws a `TypeError` or a `RangeError` with `path` for
   * misuse, before anything starts.
   */
  execute(args: Args, options?: ExecuteOptions): Execution;
  /** The name, the description and the schema of the tool. */
  tool(): Tool;
  /** Which backends can run cells. */
  available(): Promise<Available>;
  /** Ends the cells that run in a kernel, those of children too, and gives the next one an empty kernel. */
  reset(language: Language): Promise<void>;
  /** The kernels. */
  stats(): Stats;
  /**
   * A notebook for a subagent, with the same kernels, and so the same state. Its calls run while a cell of this notebook waits
   * for a function of the host. It ends with this notebook. Throws as the constructor does.
   */
  child(options?: ChildOptions): Notebook;
  /** Ends all calls, children and kernels; of a child its calls and its own children. A second call gives the same promise. */
  close(): Promise<void>;
  /** As {@link Notebook.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A result, or an update of a call that runs; a copy of one by way of JSON is as good. Only its `details.cells` are needed. */
export type Rendered = Pick<ToolResult, 'details'> | Pick<Update, 'details'>;

/** The options of {@link renderTerminal} and {@link renderCall}. An unknown key is a `TypeError`. */
export interface TerminalOptions {
  /** The columns of a line, 20 to 10,000. Default 80. */
  width?: number;
  /** Whether there are colours. Default 'auto': if stdout is a terminal, and `NO_COLOR` is not set. */
  color?: 'auto' | 'always' | 'never';
  /** Whether long texts are shown whole. Default false. */
  expanded?: boolean;
  /** The lines of a longer text that are shown: the first of a code, the last of an output. Default 10. */
  previewLines?: number;
  /** A line above all. */
  title?: string;
}

/** The options of {@link renderHtml}. An unknown key is a `TypeError`. */
export interface HtmlOptions {
  /** The title of the page. Default `Notebook`. */
  title?: string;
  /** Its colours. Default 'auto': as the reader's system has it. */
  theme?: 'auto' | 'light' | 'dark';
  /** Whether long texts and values are open from the start. Default false. */
  expanded?: boolean;
  /** The lines of a longer text that show while it is folded. Default 10. */
  previewLines?: number;
}

/**
 * The cells of a call before it runs, for a terminal. Throws a `TypeError` or a `RangeError` with `path` for what are no
 * arguments. No text of a cell has an escape sequence, here and in {@link renderTerminal}.
 */
export function renderCall(args: Args, options?: TerminalOptions): string;
/** A result for a terminal: lines no wider than `width`. Throws a `TypeError` with `path` for what is no result. */
export function renderTerminal(result: Rendered, options?: TerminalOptions): string;
/**
 * A result as a page of HTML: one file without scripts, which loads nothing. Nothing of a cell is markup. Throws a
 * `TypeError` with `path` for what is no result.
 */
export function renderHtml(result: Rendered, options?: HtmlOptions): string;
/**
 * Results in order as the text of a notebook of Jupyter (nbformat 4.5): of Python if any cell is, else of TypeScript. Throws a
 * `TypeError` with `path` for what is no result.
 */
export function toIpynb(results: readonly Rendered[]): string;
