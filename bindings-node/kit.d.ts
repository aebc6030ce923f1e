/**
 * Ready-made capabilities for code that a model wrote: requests, state, a database, libraries, secrets, a browser. They
 * are answered in Rust; none of them crosses into JavaScript, except `browser`.
 */

import type {
  AbortSignalLike,
  CellExecution,
  CellExecutionResult,
  CellOptions,
  CallOptions,
  CodeExecutionOptions,
  CodeExecutionResult,
  Runtime,
  Session,
  SessionOptions,
} from './index.js';

/** The options of a {@link Kit}. A capability that is not given does not exist inside. An unknown key is a `TypeError`. */
export interface KitOptions {
  /** The owner of state and libraries. Agents never see each other's. Default `'default'`. */
  agent?: string;
  /** The SQLite file of state and libraries. It is made if it is missing. Default: in memory. */
  file?: string | URL;
  /** Gives code `state`. */
  state?: true | StateLimits;
  /** Gives code `require`. */
  libraries?: true | LibraryLimits;
  /** Gives code `db`; `true` is a database in memory. */
  db?: true | DatabaseOptions;
  /** Gives code `fetch`. `'public'`: http and https to public addresses. A list: the requests that are allowed. */
  fetch?: 'public' | Allowed[] | FetchOptions;
  /** Gives code `secrets`. */
  secrets?: Record<string, Secret>;
  /** Gives code `browser`: a page that the host's own tools may use, too. */
  browser?: BrowserSource | BrowserOptions;
  /** Gives code the classes of the web, such as `URL`, as properties of `globalThis`. Default `true`. */
  web?: boolean;
  /** The limits of timers. */
  timers?: TimerLimits;
  /** The runtime of the runs. Default: that of the process. */
  runtime?: Runtime;
  /** The milliseconds after which a run ends as `'terminated'`, with the name `Timeout`. Default 30,000. */
  timeoutMs?: number;
  /** The limit of runs that give none, in bytes. Default 128 MiB. */
  memoryLimitBytes?: number;
  /** The calls of capabilities in one run; more throw a `CallLimit`. Default 10,000. */
  maxCalls?: number;
  /** The calls that a result lists. Default 1,000. */
  maxRecordedCalls?: number;
}

/** A pattern of URLs, `[scheme://]host[:port][/path]`, with the methods that it allows. Default: all methods. */
export type Allowed = string | { url: string; methods?: string[] };

/** The options of `fetch`. All limits but the first three count for one run. */
export interface FetchOptions {
  /** The requests that are allowed. */
  allow: 'public' | Allowed[];
  /** Addresses (CIDRs) that may be reached although they are not public. */
  allowAddresses?: string[];
  /** Certificates in PEM, of authorities that are trusted beside Mozilla's. */
  ca?: string;
  /** The time of one request, milliseconds. Default 30,000. */
  timeoutMs?: number;
  /** The redirects of one request. Default 10. */
  maxRedirects?: number;
  /** The bytes of one request. Default 10 MiB. */
  maxRequestBytes?: number;
  /** The bytes of one answer, without compression. Default 10 MiB. */
  maxResponseBytes?: number;
  /** The requests at a time; others wait. Default 10. */
  maxInFlight?: number;
  /** The requests. Default 100. */
  maxCalls?: number;
  /** The bytes of all requests and answers. Default 100 MiB. */
  maxTotalBytes?: number;
}

/** The limits of `state`. */
export interface StateLimits {
  /** The bytes of a key. Default 1 KiB. */
  maxKeyBytes?: number;
  /** The bytes of a value. Default 1 MiB. */
  maxValueBytes?: number;
  /** The bytes of all keys and values. Default 64 MiB. */
  maxTotalBytes?: number;
}

/** The limits of libraries. */
export interface LibraryLimits {
  /** The depth of libraries that require others. Default 10. */
  maxDepth?: number;
  /** The bytes of a source. Default 256 KiB. */
  maxSourceBytes?: number;
  /** The libraries of an agent. Default 1,000. */
  maxCount?: number;
}

/** The options of `db`. */
export interface DatabaseOptions {
  /** The SQLite file. It is made if it is missing. Default: in memory. */
  file?: string | URL;
  /** Whether every write fails. */
  readOnly?: boolean;
  /** The time of one statement, milliseconds. Default 5,000. */
  timeoutMs?: number;
  /** The rows that a read gives. Default 1,000. */
  maxRows?: number;
  /** The bytes that a read gives. Default 16 MiB. */
  maxResultBytes?: number;
  /** The bytes of a value. Default 16 MiB. */
  maxValueBytes?: number;
  /** The memory of one statement, bytes. Default 64 MiB. */
  maxStatementBytes?: number;
  /** The bytes of the file. Default 256 MiB. */
  maxFileBytes?: number;
}

/** A page of Playwright. */
export interface BrowserPage {
  goto(...args: any[]): Promise<any>;
  locator(...args: any[]): any;
  isClosed(): boolean;
}

/** A context of Playwright: code uses its newest page, or a new one. */
export interface BrowserContext {
  newPage(...args: any[]): Promise<any>;
  pages(): any[];
}

/** The option `proxy` of Playwright, from `kit.proxy()`. */
export interface BrowserProxy {
  /** `http://127.0.0.1:PORT`. */
  server: string;
  username: string;
  /** It is random. */
  password: string;
  /** The switches that Chromium needs beside it, for Playwright's `args`: without them WebRTC passes it by. */
  args: string[];
}

/** A page or a context, or a function that gives one. The function is called when code uses `browser` for the first time. */
export type BrowserSource<Found = BrowserPage | BrowserContext> = Found | ((proxy: BrowserProxy) => Found | Promise<Found>);

/** The options of `browser`. */
export interface BrowserOptions {
  /** The page. Either this or `context`. */
  page?: BrowserSource<BrowserPage>;
  /** The context. */
  context?: BrowserSource<BrowserContext>;
  /** Where code may go. Default: as `fetch`; without `fetch` `'public'`. */
  allow?: 'public' | Allowed[];
  /** The time of one call, milliseconds, from its turn on: calls on a page wait for each other. Default 30,000. */
  timeoutMs?: number;
  /** The bytes of an answer. Default 16 MiB. */
  maxResultBytes?: number;
}

/** The limits of timers. */
export interface TimerLimits {
  /** The longest delay, milliseconds; longer ones are cut. Default 30,000. */
  maxDelayMs?: number;
  /** The timers that wait at a time; more are a `RangeError`. Default 1,000. */
  maxPending?: number;
}

/** A secret. With `hosts` code sees a placeholder, which becomes the value in requests to them. */
export interface Secret {
  /** 8 to 8,192 bytes. */
  value: string;
  /** Patterns of the hosts that may see the value. */
  hosts?: string[];
  /** The parts of a request in which the value may stand. Default: all. */
  in?: ('url' | 'header' | 'body')[];
  /** Whether code sees the value itself. Default `false`. */
  reveal?: boolean;
}

/** The options of a tool. All are optional; an unknown key is a `TypeError`. */
export interface ToolOptions {
  /** A plain object that the tool sees as `args`. It is cloned. */
  args?: Record<string, any> & { [Symbol.iterator]?: never };
  /** As in {@link CodeExecutionOptions}. */
  globals?: Record<string, any>;
  /** As in {@link CodeExecutionOptions}; values are redacted. */
  report?: (value: unknown) => void;
  /** As in {@link CodeExecutionOptions}. */
  language?: 'javascript' | 'typescript';
  /** The label of the source in stacks and errors. Default `'<tool>'`. */
  filename?: string;
  /** As in {@link CodeExecutionOptions}. Default: that of the kit. */
  memoryLimitBytes?: number;
  /** As in {@link KitOptions}. Default: that of the kit. */
  timeoutMs?: number;
  /** Ends the run when it is aborted. */
  signal?: AbortSignalLike;
}

/** The options of {@link Kit.runCode}. */
export interface KitCodeOptions extends CodeExecutionOptions {
  /** As in {@link ToolOptions}. */
  timeoutMs?: number;
  /** As in {@link ToolOptions}. */
  signal?: AbortSignalLike;
}

/** A call that a run made of a capability. */
export interface KitCall {
  /** The name, such as `'db.sql'`. */
  name: string;
  /** Epoch milliseconds. */
  started: number;
  durationMs: number;
  ok: boolean;
  /** The bytes both ways. */
  bytes: number;
  /** For a person, at most 1 KiB: `GET https://y.org/v1/items 200`. Without queries, parameters and typed text. */
  summary: string;
  /** The name of the error; `'Aborted'` at the end of the run. */
  error?: string;
}

/** The fields of every result of a kit. Values of secrets are replaced by `[secret NAME]` in all of it. */
export interface KitPart {
  /** The calls of capabilities, in order. */
  calls: KitCall[];
  /** The number of calls beyond `maxRecordedCalls`. */
  callsDropped: number;
}

/** The result of {@link Kit.runCode}. */
export type KitCodeResult = CodeExecutionResult & KitPart;

/** The result of a cell of {@link Kit.session}. */
export type KitCellResult = CellExecutionResult & KitPart;

/** The result of a tool. `result` is the value in JSON form. */
export type ToolResult = CodeExecutionResult & KitPart & {
  /** On success, the JSON text of the value. */
  json?: string;
};

/** A run: awaitable, and never rejecting. */
export interface KitExecution<Result> extends PromiseLike<Result> {
  /** Ends the run, and all that it began, within 50 ms. */
  terminate(reason?: string): void;
  /** Whether the run has not settled yet. */
  readonly running: boolean;
  /** The reports so far, in the order of the calls: at each read a new array of the same values. */
  readonly reports: readonly unknown[];
  /** As `Promise.prototype.catch`; there is nothing to catch. */
  catch<T = never>(onRejected?: ((reason: unknown) => T | PromiseLike<T>) | null): Promise<Result | T>;
  /** As `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<Result>;
  /** The name of the class. */
  readonly [Symbol.toStringTag]: string;
}

/** A run of a tool. */
export type ToolExecution = KitExecution<ToolResult>;

/** A session whose cells have the capabilities of a kit. */
export interface KitSession extends Omit<Session, 'run' | 'call' | 'fork'> {
  /** As {@link Session.run}. */
  run(source: string, options?: CellOptions): KitExecution<KitCellResult>;
  /** As {@link Session.call}. */
  call(name: string | CallOptions, ...args: unknown[]): KitExecution<KitCellResult>;
  /** As {@link Session.fork}. */
  fork(): Promise<KitSession>;
}

/** An agent's values by name, as code has them. Errors are a {@link KitError}. */
export interface KitState {
  /** The value, or `null` if there is none. */
  get(key: string): Promise<unknown>;
  /** Keeps a value in JSON form. */
  set(key: string, value: unknown): Promise<void>;
  /** Forgets a value. Resolves to whether there was one. */
  delete(key: string): Promise<boolean>;
  /** The keys that begin so, in the order of their bytes. */
  keys(prefix?: string): Promise<string[]>;
}

/** Values of SQL parameters. */
export type Params = readonly unknown[] | Readonly<Record<string, any>>;

/** The result of a statement: that of a read, that of a write, or with `RETURNING` both. */
export interface SqlResult {
  columns?: string[];
  rows?: unknown[][];
  /** The number of `rows`. */
  row_count?: number;
  /** Whether there were more than `maxRows` rows or `maxResultBytes` bytes. */
  truncated?: boolean;
  /** The rows that the statement changed. */
  changes?: number;
  last_insert_rowid?: number | bigint;
}

/** The database, as code has it. Errors are a {@link KitError}. */
export interface KitDatabase {
  /** Runs one statement. */
  sql(sql: string, params?: Params): Promise<SqlResult>;
  /** Runs statements in one transaction: all or none. */
  batch(statements: readonly (readonly [sql: string, params?: Params])[]): Promise<SqlResult[]>;
  /** The tables with their columns. */
  schema(): Promise<{
    tables: {
      name: string;
      columns: { name: string; type: string; notnull: boolean; pk: boolean }[];
      /** `null` if the table cannot be read, such as a virtual table over one that was dropped. */
      row_count: number | null;
    }[];
  }>;
}

/** A library without its source. */
export interface LibrarySummary {
  name: string;
  language: 'javascript' | 'typescript';
  description: string;
  /** The time of its last change, as ISO text in UTC. */
  modifiedOn: string;
}

/** A library. */
export interface Library extends LibrarySummary {
  source: string;
}

/** The options of a library besides its name and source. */
export interface LibraryOptions {
  /** Default `'typescript'`. */
  language?: 'javascript' | 'typescript';
  /** For {@link Kit.describe}. Default: none. */
  description?: string;
}

/** The libraries that code can `require`. Errors are a {@link KitError}. */
export interface KitLibraries {
  /** Adds a library. Rejects if there is one of that name, or if the source does not parse. */
  create(name: string, source: string, options?: LibraryOptions): Promise<void>;
  /** Changes a library; what is not given stays. Rejects if there is none of that name. */
  update(name: string, source?: string, options?: LibraryOptions): Promise<void>;
  /** Removes a library. Resolves to whether there was one. */
  delete(name: string): Promise<boolean>;
  /** A library, or `null` if there is none of that name. */
  get(name: string): Promise<Library | null>;
  /** All libraries by name, without sources. */
  list(): Promise<LibrarySummary[]>;
}

/** The secrets of a kit. Requests see a change at once; names change with the next run or session. */
export interface KitSecrets {
  /** Gives a secret, or another one of that name. */
  set(name: string, secret: Secret): void;
  /** Takes a secret away. Returns whether there was one. It stays redacted. */
  delete(name: string): boolean;
  /** The names. */
  names(): string[];
}

/** Capabilities for runs. An open kit keeps no thread and no process alive. */
export class Kit {
  /**
   * Opens a kit. Throws a `TypeError` or a `RangeError` for options that are not valid, and an `Error` that names a file
   * that is no database.
   */
  constructor(options?: KitOptions);
  /**
   * Runs a tool: TypeScript or JavaScript with top-level `await` and `return`. Throws for misuse before anything starts.
   */
  runTool(source: string, options?: ToolOptions): ToolExecution;
  /** Runs a module, as `runCode` does, with the capabilities of the kit. */
  runCode(source: string, options?: KitCodeOptions): KitExecution<KitCodeResult>;
  /** Opens a session whose cells have the capabilities of the kit. */
  session(options?: SessionOptions): KitSession;
  /** The agent's values. A `TypeError` if the kit has none. */
  readonly state: KitState;
  /** The database. A `TypeError` if the kit has none. */
  readonly db: KitDatabase;
  /** The libraries. A `TypeError` if the kit has none. */
  readonly libraries: KitLibraries;
  /** The secrets. */
  readonly secrets: KitSecrets;
  /** The TypeScript declarations of all that code sees, for a prompt. */
  describe(): Promise<string>;
  /**
   * A proxy on loopback for a browser, in the form of Playwright's option `proxy`. It judges every request of the pages as
   * `browser.navigate` is judged; over https it judges origins alone. It ends with the kit.
   */
  proxy(): Promise<BrowserProxy>;
  /**
   * Refuses new runs, ends live ones with the reason `kit closed`, and closes its sessions and files. Resolves when the page
   * of `browser` is the host's again. A second call gives the same promise.
   */
  close(): Promise<void>;
  /** As {@link Kit.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** An error of a capability, when the host uses it. `name` is that which code sees. */
export class KitError extends Error {
  /** That of a `DbError`: SQLite's, such as `SQLITE_CONSTRAINT`. */
  readonly code?: string;
  /** The file of the position, such as `library:utils`, if a source does not parse. */
  readonly filename?: string;
  /** From 1. */
  readonly line?: number;
  /** From 1, in UTF-16 code units. */
  readonly column?: number;
}
