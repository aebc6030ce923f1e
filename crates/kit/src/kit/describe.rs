//! The description of a kit, for a prompt.
//!
//! In: the options and the libraries. Out: what code sees, in TypeScript, with the rules that types do not tell.

use std::fmt::Write;

use super::{AllowOption, CallError, Inner, Kit, KitOptions, amend::number};
use crate::store::LibrarySummary;

/// The longest description of a library that is shown, characters.
const MOST_DESCRIPTION: usize = 500;

const TOOL: &str = "\
// Strict TypeScript or JavaScript with top-level `await` and `return`. There is no import, eval, process or file system.
// The result of a tool is the value of `resolve(value)`, of `return`, or of the last expression, as JSON.
declare const args: Record<string, any>; // the tool's arguments, if it has any
declare function resolve(value: any): void; // in tools only
declare const console: { log(...args: any[]): void; warn(...args: any[]): void; error(...args: any[]): void };
";

const UTILITIES: &str = "
declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number; // ms: at most {maxDelay}
declare function setInterval(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(id: number): void;
declare function clearInterval(id: number): void;
declare function btoa(data: string): string;
declare function atob(data: string): string;
// Rows are arrays of strings; with `header`, objects by the names of the first row.
declare function parseCSV(text: string, options?: { header?: boolean; delimiter?: string }): any[];
";

const FETCH: &str = "
declare function fetch(url: string | URL, options?: {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  headers?: Record<string, string> | [string, string][];
  body?: string | ArrayBuffer | Uint8Array | URLSearchParams;
  timeout?: number; // ms, at most {timeout}
  redirect?: 'follow' | 'error' | 'manual';
  signal?: AbortSignal;
}): Promise<{
  ok: boolean; status: number; statusText: string; url: string; redirected: boolean; bodyUsed: boolean;
  headers: Record<string, string>; // names in lower case
  text(): Promise<string>; json(): Promise<any>; arrayBuffer(): Promise<ArrayBuffer>; bytes(): Promise<Uint8Array>;
}>;
";

const STATE: &str = "
// Values that stay from one run to the next, as JSON.
declare const state: {
  get(key: string): Promise<any | null>;
  set(key: string, value: any): Promise<void>;
  delete(key: string): Promise<boolean>; // whether there was one
  keys(prefix?: string): Promise<string[]>;
};
";

const DB: &str = "
// A SQLite database. One statement a call; no BEGIN or COMMIT: `batch` is one transaction.
type Param = string | number | bigint | boolean | null | Date | Uint8Array | ArrayBuffer | object;
type Params = Param[] | Record<string, Param>; // for `?` and `?1`, or for `:name`
type QueryResult = { columns: string[]; rows: any[][]; row_count: number; truncated: boolean }; // at most {rows} rows
type WriteResult = { changes: number; last_insert_rowid: number };
declare const db: {
  sql(sql: string, params?: Params): Promise<QueryResult | WriteResult>;
  batch(statements: [sql: string, params?: Params][]): Promise<(QueryResult | WriteResult)[]>;
  schema(): Promise<{
    tables: { name: string; columns: { name: string; type: string; notnull: boolean; pk: boolean }[]; row_count: number | null }[];
  }>;
};
";

const BROWSER: &str = "
// The page of a browser. Selectors take the first match and wait for it.
declare const browser: {
  navigate(url: string, options?: { wait_until?: 'load' | 'domcontentloaded' | 'networkidle' }): Promise<{ url: string; title: string; status: number }>;
  screenshot(options?: { selector?: string; full_page?: boolean }): Promise<{ image: string; width: number; height: number }>; // PNG in Base64
  click(selector: string): Promise<void>;
  type(selector: string, text: string, options?: { clear_first?: boolean }): Promise<void>;
  extractText(selector?: string): Promise<string>;
  extractHtml(selector?: string, options?: { outer?: boolean }): Promise<string>;
  evaluate(code: string | (() => any)): Promise<any>; // runs in the page; gives JSON
  close(): Promise<void>;
};
";

const WEB: &str = "
// As in browsers.
declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string; protocol: string; username: string; password: string; host: string; hostname: string; port: string;
  pathname: string; search: string; hash: string; readonly origin: string; readonly searchParams: URLSearchParams;
  toString(): string; toJSON(): string;
}
declare class URLSearchParams {
  constructor(init?: string | URLSearchParams | Record<string, string> | Iterable<[string, string]>);
  readonly size: number;
  append(name: string, value: string): void; set(name: string, value: string): void; delete(name: string, value?: string): void;
  get(name: string): string | null; getAll(name: string): string[]; has(name: string, value?: string): boolean;
  sort(): void; toString(): string; forEach(callback: (value: string, name: string, params: URLSearchParams) => void): void;
  keys(): IterableIterator<string>; values(): IterableIterator<string>; entries(): IterableIterator<[string, string]>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array;
}
declare class TextDecoder { // UTF-8, UTF-16, windows-1252
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string; readonly fatal: boolean; readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}
declare const crypto: { randomUUID(): string; getRandomValues<T extends ArrayBufferView>(array: T): T };
declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string; readonly target: EventTarget | null; readonly cancelable: boolean; readonly defaultPrevented: boolean;
  preventDefault(): void; stopImmediatePropagation(): void;
}
type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };
declare class EventTarget {
  addEventListener(type: string, listener: Listener | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: Listener | null): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  static abort(reason?: any): AbortSignal; static timeout(ms: number): AbortSignal; static any(signals: AbortSignal[]): AbortSignal;
  readonly aborted: boolean; readonly reason: any; onabort: ((event: Event) => void) | null; throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}
";

impl Kit {
    /// The declarations that code sees, in TypeScript, for a prompt: the functions with their limits, the names of secrets, and the
    /// libraries with their descriptions. Without values of secrets.
    ///
    /// # Errors
    /// The libraries cannot be read in time, or the kit is closed.
    pub async fn describe(&self) -> Result<String, CallError> {
        self.check_open()?;
        let libraries = match self.libraries() {
            Ok(libraries) => libraries.list().await?,
            Err(_) => Vec::new(),
        };
        let described = describe(&self.inner, &libraries);
        Ok(self.inner.secrets.snapshot().outputs.text(&described).into_owned())
    }
}

fn describe(kit: &Inner, libraries: &[LibrarySummary]) -> String {
    let options = &kit.options;
    let mut text = TOOL.to_owned();
    if options.fetch.is_some() {
        describe_fetch(options, &mut text);
    }
    if options.state.is_some() {
        text.push_str(STATE);
    }
    if let Some(db) = &options.db {
        text.push_str(&DB.replace("{rows}", &db.limits.max_rows.to_string()));
        if db.read_only {
            text.push_str("// The database is read-only.\n");
        }
    }
    if options.libraries.is_some() {
        describe_libraries(libraries, &mut text);
    }
    if options.browser.is_some() {
        text.push_str(BROWSER);
    }
    if options.secrets.is_some() {
        describe_secrets(kit, &mut text);
    }
    let delay = options.timers.max_delay_ms.to_string();
    text.push_str(&UTILITIES.replace("{maxDelay}", &delay));
    if options.web {
        text.push_str(WEB);
    }
    let seconds = number(options.timeout_ms) / 1e3;
    let mebibytes = options.memory_limit_bytes >> 20;
    // Writing to a text does not fail.
    let _ = write!(text, "\n// A run may take {seconds} s and {mebibytes} MiB of memory.\n");
    text
}

fn describe_fetch(options: &KitOptions, text: &mut String) {
    let Some(fetch) = &options.fetch else { return };
    text.push_str(&FETCH.replace("{timeout}", &fetch.limits.timeout_ms.to_string()));
    match &fetch.allow {
        AllowOption::Public => text.push_str("// `fetch` reaches all public addresses.\n"),
        AllowOption::List(entries) => {
            text.push_str("// `fetch` reaches these alone:\n");
            for entry in entries {
                let methods = entry.methods.as_ref().map(|methods| methods.join(", "));
                let methods = methods.map(|methods| format!(" ({methods})")).unwrap_or_default();
                let _ = writeln!(text, "//   {}{methods}", line(&entry.url));
            }
        }
    }
}

fn describe_libraries(libraries: &[LibrarySummary], text: &mut String) {
    text.push_str("\n// Loads a library by its name. There are no other packages.\n");
    text.push_str("declare function require(name: string): any;\n");
    if libraries.is_empty() {
        text.push_str("// There are no libraries yet.\n");
    }
    for library in libraries {
        let shown = line(&library.description);
        let description = if shown.is_empty() { shown } else { format!(": {shown}") };
        let _ = writeln!(text, "//   require('{}'){description}", library.name);
    }
}

fn describe_secrets(kit: &Inner, text: &mut String) {
    text.push_str("\n// Secrets, frozen. Most are placeholders, which `fetch` replaces in requests to the hosts that they are for.\n");
    let names = kit.secrets.names();
    let members: Vec<String> = names.iter().map(|name| format!("{name}: string")).collect();
    let _ = writeln!(text, "declare const secrets: {{ {} }};", members.join("; "));
}

/// A text in one line of a comment.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(MOST_DESCRIPTION).collect()
}
