//! Module graphs: files, names, their imports, and the label of the entry.
//!
//! In: choices. Out: nothing, after two runs of one graph, the second with everything already compiled: they must have
//! the same result.

use std::fmt::Write;

use arbitrary::Unstructured;
use isolane::{ExecutionResult, Language, Request, SourceText, Status, value};

use crate::run::{self, PATIENCE};

const KEYS: &[&str] = &[
    "./a.js",
    "./b.ts",
    "./c.mjs",
    "./dir/d.js",
    "./dir/../e.js",
    "./é.ts",
    "./a",
    "./dir/index.js",
    "./.ts",
    "./a.js?x",
    "./%61.js",
    "../up.js",
    "bare.js",
    "./dir/",
    "./__proto__",
];

const BRIDGES: &[&str] =
    &["host", "node:fs", "@scope/name", "a.js", "__proto__", "http:", "", "constructor", "host/x"];

const SPECIFIERS: &[&str] = &[
    "./a.js",
    "./b.ts",
    "./b.js",
    "./c.mjs",
    "./dir/d.js",
    "../a.js",
    "./d.js",
    "./e.js",
    "./main.ts",
    "host",
    "node:fs",
    "@scope/name",
    "a.js",
    "/a.js",
    "http://x/y",
    "",
    ".",
    "..",
    "./",
    "a\\0b",
    "\\ud800",
    "./é.ts",
    "__proto__",
    "./__proto__",
    "./nowhere.js",
];

const FILENAMES: &[&str] = &[
    "main.ts",
    "./main.ts",
    "a.js",
    "/abs/main.js",
    "dir/",
    "..",
    "é 😀.ts",
    "http://x/main.ts",
    "<x>",
];

const NAMES: &[&str] =
    &["default", "a", "b", "c", "then", "__proto__", "é", "'quoted'", "await", "missing"];

/// Statements: `$s` is a specifier, `$n` and `$m` a name, `$i` a unique number.
const STATEMENTS: &[&str] = &[
    "import '$s';",
    "import v$i from '$s';",
    "import { $n as v$i } from '$s';",
    "import { type $n as v$i, $m as w$i } from '$s';",
    "import * as v$i from '$s'; report(Object.keys(v$i));",
    "import type { $n as v$i } from '$s';",
    "import v$i, * as w$i from '$s';",
    "export { $n as $m } from '$s';",
    "export * from '$s';",
    "export * as $n from '$s';",
    "const v$i = await import('$s'); report(Object.keys(v$i));",
    "import('$s').then((m) => report(m.$n), (e) => report(e.name));",
    "const v$i = $i; export { v$i as $n };",
    "export let a = $i;",
    "export function b() { return a; }",
    "export class c {}",
    "export default $i;",
    "export default function () { return $i; }",
    "export type a = number;",
    "export interface b { x: 1 }",
    "export enum c { A = $i }",
    "throw new Error('$n');",
    "await 0;",
    "import { a as v$i } from '$s' with { type: 'json' };",
    "import v$i = require('$s');",
    "report(import.meta.url);",
    "report(typeof v1);",
    "syntax error",
];

/// Runs one graph.
///
/// # Panics
/// If the run has a forbidden result, or another one the second time.
pub fn check(data: &[u8]) {
    let mut choices = Unstructured::new(data);
    let request = graph(&mut choices);
    let first = run::run(request.clone(), PATIENCE);
    let second = run::run(request, PATIENCE);
    if let (Some(first), Some(second)) = (first, second) {
        // The progress of a terminated run depends on time.
        if ![first.status, second.status].contains(&Status::Terminated) {
            assert_eq!(outcome(&first), outcome(&second), "once compiled it runs differently");
        }
        run::check_pristine_after(data);
    }
}

fn outcome(result: &ExecutionResult) -> String {
    let ExecutionResult { status, result, reports, error, .. } = result;
    format!("{status:?} {result:?} {reports:?} {error:?}")
}

fn pick(choices: &mut Unstructured<'_>, texts: &[&str]) -> String {
    if choices.ratio(1, 16).unwrap_or(false) {
        return choices.arbitrary::<&str>().unwrap_or("x").chars().take(20).collect();
    }
    choices.choose(texts).map_or_else(|_| texts[0].to_owned(), |text| (*text).to_owned())
}

fn graph(choices: &mut Unstructured<'_>) -> Request {
    let entry = module(choices);
    let mut request = Request::new(SourceText::from(entry));
    for _ in 0..choices.int_in_range(0..=5).unwrap_or(0) {
        let key = pick(choices, KEYS);
        request.modules.push((key, SourceText::from(module(choices))));
    }
    for _ in 0..choices.int_in_range(0..=2).unwrap_or(0) {
        let key = pick(choices, BRIDGES);
        let count = choices.int_in_range(0..=3).unwrap_or(0);
        request.imports.push((key, (0..count).map(|_| pick(choices, NAMES)).collect()));
    }
    if choices.arbitrary().unwrap_or(false) {
        request.filename = Some(pick(choices, FILENAMES));
    }
    if choices.arbitrary().unwrap_or(false) {
        request.function = Some(pick(choices, NAMES));
    }
    if choices.arbitrary().unwrap_or(false) {
        request.language = Language::JavaScript;
    }
    // A value for each export, as every binding promises.
    let exports: usize = request.imports.iter().map(|(_, names)| names.len()).sum();
    let mut inputs = value::Writer::new();
    inputs.array(u32::try_from(exports + 1).unwrap_or_default());
    for number in 0..exports {
        inputs.int(i32::try_from(number).unwrap_or_default());
    }
    inputs.array(0);
    request.inputs = inputs.finish();
    request.memory_limit_bytes = Some(8e6);
    request
}

fn module(choices: &mut Unstructured<'_>) -> String {
    let mut text = String::new();
    for number in 0..choices.int_in_range(0..=6).unwrap_or(0) {
        let statement = choices.choose(STATEMENTS).map_or("", |statement| *statement);
        let mut pieces = statement.split('$');
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            match piece.as_bytes().first() {
                Some(b's') => text.push_str(&pick(choices, SPECIFIERS)),
                Some(b'n' | b'm') => text.push_str(&pick(choices, NAMES)),
                _ => {
                    let _ = write!(text, "{number}");
                }
            }
            text.push_str(piece.get(1..).unwrap_or_default());
        }
        text.push('\n');
    }
    text
}
