//! The extension of realms, on threads and in processes.
//!
//! This program is both sides. Started by cargo it runs the tests. Started by a runtime, it is its worker, with the same
//! extension.

mod host;

use std::{
    env,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::{
    CellRequest, ErrorKind, ExecutionResult, Extension, ExtensionFunction, ExtensionRequest,
    ExtensionReturns, Isolation, Language, LogLevel, Request, Runtime, RuntimeOptions,
    SessionHandle, SessionRequest, SessionState, Shape, SourceText, Status, check_library,
    install_extension,
};
use serde_json::{Value as Json, json};

use self::host::{cell, fork, request, request_with, reset, run, session};

static EXTENSION: Extension = Extension {
    name: "tested",
    source: include_str!("extension.js"),
    names: &["answer", "later", "api"],
    properties: &["Point"],
    natives: &[
        ExtensionFunction::new("missing", ExtensionReturns::Value),
        ExtensionFunction::new("tests.later", ExtensionReturns::Promise),
    ],
};

static OTHER: Extension =
    Extension { name: "other", source: "() => ({})", names: &[], properties: &[], natives: &[] };

type Test = fn(&Runtime);

const TESTS: [(&str, Test); 17] = [
    ("a run has the names and properties", names),
    ("nothing of a run is in the next one", pristine),
    ("a run that does not ask sees nothing", unseen),
    ("code that tampers hurts itself alone", tampered),
    ("a body is run by the extension", bodies),
    ("libraries are functions with places of their own", libraries),
    ("libraries are refused at their first error", refused_libraries),
    ("libraries of sessions live as cells do", session_libraries),
    ("a run that is idle gets more to do", idle),
    ("endless work of an idle run ends", endless),
    ("the host of the extension", host_functions),
    ("its functions look like the language's own", disguise),
    ("an extension that throws fails its run", fails),
    ("a run ends after its time", timeouts),
    ("sessions see it", sessions),
    ("sessions are rolled back, reset and copied with it", session_states),
    ("misuse", misuse),
];

fn main() -> ExitCode {
    // A host starts it with a version and other numbers.
    if env::args().nth(1).is_some_and(|word| word.parse::<u32>().is_ok()) {
        install_extension(&EXTENSION).expect("the first one");
        return isolane::worker_main();
    }
    let only = env::args().nth(1).filter(|word| !word.starts_with('-'));
    nothing_is_installed();
    install_extension(&EXTENSION).expect("the first one");
    for isolation in [Isolation::Thread, Isolation::Process] {
        let worker = (isolation == Isolation::Process).then(|| env::current_exe().expect("this"));
        let options = RuntimeOptions { isolation, worker, ..RuntimeOptions::default() };
        let runtime = Runtime::new(&options).expect("a runtime");
        for (name, test) in TESTS {
            if only.as_ref().is_none_or(|only| name.contains(only)) {
                test(&runtime);
                println!("test {isolation:?}: {name} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}

fn value(result: &ExecutionResult) -> Json {
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    result.result.as_ref().expect("a value").deserialize().expect("data")
}

fn of(runtime: &Runtime, source: &str) -> Json {
    value(&run(runtime, request(source)))
}

/// The name and the message of the error.
fn error(result: &ExecutionResult) -> (Status, &str, &str) {
    let error = result.error.as_ref().expect("an error");
    (result.status, &error.name, &error.message)
}

fn logs(result: &ExecutionResult) -> Vec<(LogLevel, Json)> {
    let logs = result.logs.iter();
    logs.map(|log| (log.level, log.args.deserialize().expect("data"))).collect()
}

fn names(runtime: &Runtime) {
    let source = "import { seen } from './m.js';
        const own = Object.getOwnPropertyDescriptor(globalThis, 'Point');
        export default [answer, mine, typeof api, 'api' in globalThis, own.enumerable, own.writable,
            own.configurable, new Point(1).x, await later(1), seen]";
    let mut asked = request(source);
    asked.modules.push(("./m.js".to_owned(), "export const seen = answer".to_owned().into()));
    let expected = json!([42, 7, "object", false, false, true, true, 1, 1, 42]);
    assert_eq!(value(&run(runtime, asked)), expected);
    let shadows = "const api = 1; export default [api, answer]";
    assert_eq!(of(runtime, shadows), json!([1, 42]));
    let result = run(runtime, request("answr"));
    let (_, name, message) = error(&result);
    assert_eq!((name, message.contains("answer")), ("ReferenceError", true), "{message}");
}

fn pristine(runtime: &Runtime) {
    for _ in 0..3 {
        let source = "export default [api.openings(), globalThis.left, Point.left]";
        assert_eq!(of(runtime, source), json!([1, null, null]));
        let leaves = "globalThis.left = Point.left = 1; api.onIdle(() => {}); export default 1";
        assert_eq!(of(runtime, leaves), json!(1));
    }
}

fn unseen(runtime: &Runtime) {
    let source = "export default [typeof api, typeof Point, 'Point' in globalThis]";
    for _ in 0..3 {
        assert_eq!(of(runtime, "export default answer"), json!(42));
        let result = run(runtime, Request::new(source.to_owned().into()));
        assert_eq!(value(&result), json!(["undefined", "undefined", false]));
    }
    let waits = Request::new("await new Promise(() => {})".to_owned().into());
    assert_eq!(error(&run(runtime, waits)).1, "SafetyCap");
}

fn tampered(runtime: &Runtime) {
    let source = "
        Reflect.apply = Array.prototype.push = Promise.prototype.then = Object.freeze = () => { throw 1 };
        Object.defineProperty(Object.prototype, 'idle', { get() { throw 2 } });
        Object.defineProperty(Array.prototype, 0, { set() { throw 3 }, configurable: true });
        let resolve;
        const idle = new Promise((r) => { resolve = r });
        api.onIdle(() => resolve('was idle'));
        export default await idle";
    assert_eq!(of(runtime, source), json!("was idle"));
    assert_eq!(of(runtime, "export default [].idle === undefined"), json!(true));
    // At every depth of a full stack, and near the limit.
    let deep = "let found = new Set();
        const attempt = (act) => { try { act() } catch (error) { found.add(error.name) } };
        const dive = () => { attempt(() => api.calls(() => api.onIdle(() => {}))); dive() };
        attempt(dive);
        export default [...found]";
    assert_eq!(of(runtime, deep), json!(["RangeError"]));
    let large =
        "const kept = []; for (;;) { kept.push(new Array(1000).fill(0)); api.onIdle(kept) }";
    let asked = Request { memory_limit_bytes: Some(1e7), ..request(large) };
    assert_eq!(run(runtime, asked).status, Status::Memory);
}

fn bodies(runtime: &Runtime) {
    let body = |source: &str| Request { shape: Shape::Body, ..request(source) };
    let run_body = |source: &str| value(&run(runtime, body(source)));
    let cases = [
        ("await later(2) + answer", json!({ "names": ["answer", "later"], "ran": 44 })),
        ("return 1", json!({ "names": [], "ran": null, "returned": 1 })),
        ("if (mine) return; 5", json!({ "names": [], "ran": null, "returned": null })),
        ("{ a: 1 }", json!({ "names": [], "ran": { "a": 1 } })),
        ("", json!({ "names": [], "ran": null })),
        ("const later = 1; later", json!({ "names": [], "ran": 1 })),
        ("((answer) => answer)(2)", json!({ "names": [], "ran": 2 })),
        ("typeof api", json!({ "names": ["api"], "ran": "object" })),
        ("\\u0061nswer", json!({ "names": ["answer"], "ran": 42 })),
        (
            "let x: number = 1; x++; var y = x; function f() { return y } class A { b = f() } new A().b",
            json!({ "names": [], "ran": 2 }),
        ),
        (
            "enum E { A = 3 } namespace N { export const b = E.A } N.b",
            json!({ "names": [], "ran": 3 }),
        ),
        (
            "g(); function g() { return 1 } const { a, ...b } = { a: 1, c: 2 }; [a, b]",
            json!({ "names": [], "ran": [1, { "c": 2 }] }),
        ),
        ("for (var i = 0; i < 3; i++) { i } // last", json!({ "names": [], "ran": 2 })),
        ("try { throw 1 } catch (e) { var e = 2; e }", json!({ "names": [], "ran": 2 })),
        ("this", json!({ "names": [], "ran": null })),
        (
            "[typeof x, typeof globalThis.x]; var x = 1",
            json!({ "names": [], "ran": ["undefined", "undefined"] }),
        ),
        ("for await (const a of [later(1)]) a", json!({ "names": ["later"], "ran": 1 })),
        ("#!/usr/bin/env node\n7", json!({ "names": [], "ran": 7 })),
    ];
    for (source, expected) in cases {
        assert_eq!(run_body(source), expected, "{source}");
    }
    let result = run(runtime, body("\n  throw new RangeError('as it wants')"));
    assert_eq!(error(&result), (Status::Error, "RangeError", "as it wants"));
    let failed = result.error.as_ref().expect("an error");
    assert_eq!((failed.line, failed.column), (Some(2), Some(13)), "{failed:?}");
    let stack = failed.stack.as_deref().unwrap_or_default();
    assert!(!stack.contains("default") && !stack.contains("export"), "{stack}");
    let stalls = "await new Promise(() => {})";
    assert_eq!(error(&run(runtime, body(stalls))).1, "SafetyCap");
    let refused = [
        ("import a from 'b'", 1, "'import' is not available here: use require('b')"),
        (
            "1\nexport const a = 1",
            2,
            "'export' is not available here: return the value; require('name') loads a library",
        ),
        (
            "1;\n\nexport default 1",
            3,
            "'export' is not available here: return the value; require('name') loads a library",
        ),
        (
            "import a = require('b')",
            1,
            "'import =' is not available here: use const a = require('b')",
        ),
        (
            "import.meta.url",
            1,
            "'import.meta' is not available here: require('name') loads a library",
        ),
    ];
    for (source, line, message) in refused {
        let result = run(runtime, body(source));
        assert_eq!(error(&result), (Status::LinkError, "SyntaxError", message), "{source}");
        assert_eq!(result.error.as_ref().and_then(|error| error.line), Some(line), "{source}");
    }
    for source in
        ["let a; let a", "}; api; async () => {", "let await", "break", "return) (", "1 +"]
    {
        let result = run(runtime, body(source));
        let (status, name, _) = error(&result);
        assert_eq!((status, name), (Status::LinkError, "SyntaxError"), "{source}");
    }
    let result = run(runtime, body("await import('x')"));
    let text = "import() is not available here: use require('x')";
    assert_eq!(error(&result), (Status::Error, "Error", text));
}

/// Code that loads a library, and goes on.
fn with(library: &str, rest: &str) -> String {
    let library = json!(library).to_string();
    format!(
        "const load = (text, language = 'typescript', hidden = []) => {{
                const module = {{ exports: {{}} }};
                const compiled = api.compile(text, 'library:a', language, hidden);
                compiled.call(module.exports, module.exports, module, (name) => 'required ' + name);
                return module.exports;
            }};
            const library = load({library});
            {rest}"
    )
}

fn libraries(runtime: &Runtime) {
    let run_library = |library: &str, rest: &str| of(runtime, &with(library, rest));
    let cases = [
        (
            "exports.a = 1 as number; this.b = require('x')",
            "export default library",
            json!({ "a": 1, "b": "required x" }),
        ),
        ("module.exports = () => 2", "export default library()", json!(2)),
        ("if (true) return; exports.a = 1", "export default library", json!({})),
        ("#!bang\nexports.a = 1 // c", "export default library", json!({ "a": 1 })),
        ("", "export default library", json!({})),
        ("// only", "export default library", json!({})),
        ("exports.f = async () => await 3", "export default await library.f()", json!(3)),
        ("enum E { A } exports.e = E.A", "export default library", json!({ "e": 0 })),
        (
            "exports.s = (function () { return this === undefined })()",
            "export default library",
            json!({ "s": true }),
        ),
        (
            "exports.t = [typeof load, typeof answer]",
            "export default library.t",
            json!(["undefined", "number"]),
        ),
        (
            "",
            "export default load('exports.t = typeof answer', 'javascript', ['answer'])",
            json!({ "t": "undefined" }),
        ),
        (
            "",
            "export default load('const answer = 1; exports.t = answer', 'javascript', ['answer'])",
            json!({ "t": 1 }),
        ),
    ];
    for (library, rest, expected) in cases {
        assert_eq!(run_library(library, rest), expected, "{library}");
    }
}

fn refused_libraries(runtime: &Runtime) {
    let located = [
        ("1;\n  )", "Unexpected token; no '(' is open here (library:a:2:3)"),
        (
            "exports.a = 1\nawait 1",
            "'await' is not available at the top of a library: export an async function, and await it after require() (library:a:2:1)",
        ),
        (
            "for await (const a of []) ;",
            "'await' is not available at the top of a library: export an async function, and await it after require() (library:a:1:1)",
        ),
        ("import a from 'b'", "'import' is not available here: use require('b') (library:a:1:1)"),
        (
            "export const a = 1",
            "'export' is not available here: set 'exports.name'; require('name') loads a library (library:a:1:1)",
        ),
        (
            "exports.m = import.meta",
            "'import.meta' is not available here: require('name') loads a library (library:a:1:13)",
        ),
    ];
    for (library, message) in located {
        let rest = "";
        let source = format!(
            "let failed; try {{ {} }} catch (e) {{ failed = [e.name, e.message] }}; export default failed",
            with(library, rest)
        );
        assert_eq!(of(runtime, &source), json!(["SyntaxError", message]), "{library}");
    }
    let text = SourceText::from("1;\n  await 1".to_owned());
    let refused = check_library("library:b", &text, Language::TypeScript).expect_err("an error");
    let place = (refused.filename.as_deref(), refused.line, refused.column);
    assert_eq!((&*refused.name, place), ("SyntaxError", (Some("library:b"), Some(2), Some(3))));
    let fine = SourceText::from("exports.a = require('b') as string".to_owned());
    assert_eq!(check_library("library:b", &fine, Language::TypeScript), Ok(()));
    for library in
        ["})() })(", "}, exports.a = 1, () => {", "let exports.a", "with (a) b", "a: { break b }"]
    {
        let source = format!(
            "let failed; try {{ {} }} catch (e) {{ failed = e.name }}; export default failed",
            with(library, "")
        );
        assert_eq!(of(runtime, &source), json!("SyntaxError"), "{library}");
    }
    let result = run(
        runtime,
        request(&with("exports.f = () => {\n  throw new Error('there')\n}", "library.f()")),
    );
    let failed = result.error.as_ref().expect("an error");
    let place = (failed.filename.as_deref(), failed.line, failed.column);
    assert_eq!(place, (Some("library:a"), Some(2), Some(13)), "{failed:?}");
    let result = run(runtime, request(&with("exports.f = () => import('x')", "await library.f()")));
    assert_eq!(error(&result).2, "import() is not available here: use require('x')");
    let large = with(
        "",
        "export default api.compile('/*' + 'x'.repeat(20e6) + '*/', 'library:b', 'typescript', [])",
    );
    let asked = Request { memory_limit_bytes: Some(60e6), ..request(&large) };
    assert_eq!(run(runtime, asked).status, Status::Memory);
    let wrong =
        "const fails = (...args) => { try { api.compile(...args) } catch (e) { return e.name } };
        export default [fails(), fails(1, 2, 3, 4), fails('a', 'b')]";
    assert_eq!(of(runtime, wrong), json!(["TypeError", "TypeError", "TypeError"]));
}

fn session_libraries(runtime: &Runtime) {
    let opened = session(runtime);
    let load = |text: &str| {
        let text = json!(text).to_string();
        format!("api.compile({text}, 'library:a', 'typescript', [])")
    };
    let define = format!(
        "const cellName = 1; const old = {{}}; {}.call(old, old)",
        load("\nexports.f = () => { throw new Error(typeof cellName + typeof answer) }")
    );
    assert_eq!(cell(&opened, &define).status, Status::Success);
    let copy = fork(&opened);
    let replace = format!(
        "const fresh = {{}}; {}.call(fresh, fresh)",
        load("exports.f = () => { throw new Error('new') }")
    );
    assert_eq!(cell(&opened, &replace).status, Status::Success);
    let place = |session: &SessionHandle, source: &str| {
        let result = cell(session, source);
        let error = result.error.expect("an error");
        (error.message, error.filename, error.line, error.column)
    };
    let file = || Some("library:a".to_owned());
    for _ in 0..3 {
        let old = ("undefinednumber".to_owned(), file(), Some(2), Some(31));
        assert_eq!(place(&opened, "old.f()"), old);
        assert_eq!(place(&copy, "old.f()"), old);
        let fresh = ("new".to_owned(), file(), Some(1), Some(31));
        assert_eq!(place(&opened, "fresh.f()"), fresh);
    }
    let undone = format!("old.g = {}; for (;;) {{ await new Promise(() => {{}}) }}", load("1"));
    assert_eq!(cell(&opened, &undone).status, Status::Terminated);
    assert_eq!(value(&cell(&opened, "typeof old.g")), json!("undefined"));
    for _ in 0..50 {
        assert_eq!(cell(&opened, &load("exports.x = 1")).status, Status::Success);
    }
    assert_eq!(place(&opened, "old.f()").2, Some(2));
}

fn idle(runtime: &Runtime) {
    let source = "const order = [];
        let resolve;
        const done = new Promise((r) => { resolve = r });
        api.onIdle(() => order.push('first', api.pending()));
        api.onIdle(() => { later(5).then(() => order.push('later')); order.push(api.pending()) });
        api.onIdle(() => resolve(order));
        export default await done";
    assert_eq!(of(runtime, source), json!(["first", 0, 1, "later"]));
    let result = run(
        runtime,
        request("api.onIdle(() => { throw new TypeError('idle') }); await new Promise(() => {})"),
    );
    assert_eq!(error(&result), (Status::Error, "TypeError", "idle"));
}

fn endless(runtime: &Runtime) {
    let source = "const again = () => api.onIdle(again); again(); await new Promise(() => {})";
    let asked = Request { timeout_ms: Some(100.0), ..request(source) };
    let result = run(runtime, asked);
    assert_eq!(error(&result), (Status::Terminated, "Timeout", "the run took longer than 100 ms"));
}

fn host_functions(runtime: &Runtime) {
    let source = "
        const before = api.pending();
        const promise = later(1);
        const during = api.pending();
        await promise;
        api.warn('careful');
        api.warn(1);
        api.uncaught(new TypeError('lost'));
        export default [before, during, api.pending(), Object.isFrozen(api.host)]";
    let result = run(runtime, request(source));
    assert_eq!(value(&result), json!([0, 1, 0, true]));
    let expected = [
        (LogLevel::Warn, json!(["careful"])),
        (LogLevel::Error, json!(["Uncaught TypeError: lost"])),
    ];
    assert_eq!(logs(&result), expected);
}

fn disguise(runtime: &Runtime) {
    let source = "let stack;
        const fails = () => { stack = new Error('x').stack };
        const outer = () => api.calls(fails);
        outer();
        export default [stack.split('\\n').map((line) => line.trim()), String(api.calls), Point.toString()]";
    let found = of(runtime, source);
    let text = found[1].as_str().expect("a text");
    assert_eq!(text, "function calls() {\n    [native code]\n}");
    assert_eq!(found[2], "function Point() {\n    [native code]\n}");
    let frames: Vec<&str> =
        found[0].as_array().expect("lines").iter().filter_map(Json::as_str).collect();
    assert_eq!(frames[2], "at calls (native)", "{frames:?}");
    assert!(frames[1].starts_with("at fails (<runCode>:2:"), "{frames:?}");
    assert!(frames[3].starts_with("at outer (<runCode>:3:"), "{frames:?}");
    let result = run(runtime, request("\n  api.calls(1)"));
    let failed = result.error.as_ref().expect("an error");
    assert_eq!((failed.name.as_str(), failed.line), ("TypeError", Some(2)), "{failed:?}");
}

fn fails(runtime: &Runtime) {
    let result = run(runtime, request_with("export default 1", true));
    assert_eq!(error(&result), (Status::Error, "TypeError", "it does not open"));
    let small = Request { memory_limit_bytes: Some(1.0), ..request("export default 1") };
    assert_eq!(run(runtime, small).status, Status::Memory);
}

fn timeouts(runtime: &Runtime) {
    for source in ["for (;;);", "await later(60_000)", "await new Promise(() => {})"] {
        let asked = Request { timeout_ms: Some(50.0), ..request(source) };
        let started = Instant::now();
        let result = run(runtime, asked);
        let expected = (Status::Terminated, "Timeout", "the run took longer than 50 ms");
        assert_eq!(error(&result), expected, "{source}");
        assert!(started.elapsed() >= Duration::from_millis(50), "{source}");
    }
    let plain = Request { timeout_ms: Some(50.0), ..Request::new("for (;;);".to_owned().into()) };
    assert_eq!(error(&run(runtime, plain)).1, "Timeout");
    let quick = Request { timeout_ms: Some(60_000.0), ..request("export default await later(1)") };
    assert_eq!(value(&run(runtime, quick)), json!(1));
}

fn sessions(runtime: &Runtime) {
    let session = session(runtime);
    let first = cell(&session, "let kept = [answer, mine, new Point(1).x, await later(3)]; kept");
    assert_eq!(value(&first), json!([42, 7, 1, 3]));
    assert_eq!(value(&cell(&session, "[api.openings(), kept.length]")), json!([1, 4]));
    let modules = "import { seen } from './m.js'; import { value } from 'bridge'; [seen, value]";
    assert_eq!(value(&cell(&session, modules)), json!([["object", 42, 7, 3], 9]));
    let idle = "let resolve; const done = new Promise((r) => { resolve = r });
        api.onIdle(() => resolve('idle')); await done";
    assert_eq!(value(&cell(&session, idle)), json!("idle"));
    assert_eq!(value(&cell(&session, "const answer = 1; answer")), json!(1));
}

fn session_states(runtime: &Runtime) {
    let opened = session(runtime);
    let state = |result: &ExecutionResult| result.cell.as_ref().map(|cell| cell.session);
    let ended =
        cell(&opened, "Point.left = 1; for (;;) { await later(1); await new Promise(() => {}) }");
    assert_eq!(state(&ended), Some(SessionState::RolledBack), "{ended:?}");
    let seen = "[api.openings(), Point.left ?? null, answer, await later(2)]";
    assert_eq!(value(&cell(&opened, seen)), json!([1, null, 42, 2]));
    assert_eq!(value(&cell(&opened, "Point.left = 2")), json!(2));
    let ended = cell(&opened, "Point.left = 3; await new Promise(() => {})");
    assert_eq!(state(&ended), Some(SessionState::RolledBack), "{ended:?}");
    assert_eq!(value(&cell(&opened, seen)), json!([1, 2, 42, 2]));
    let idle = "let resolve; const done = new Promise((r) => { resolve = r });
        api.onIdle(() => resolve('idle')); 1";
    assert_eq!(value(&cell(&opened, idle)), json!(1));
    let copy = fork(&opened);
    for session in [&copy, &opened] {
        assert_eq!(value(&cell(session, "await done")), json!("idle"));
        assert_eq!(value(&cell(session, seen)), json!([1, 2, 42, 2]));
    }
    reset(&opened);
    assert_eq!(value(&cell(&opened, seen)), json!([1, null, 42, 2]));
    assert_eq!(value(&cell(&copy, "Point.left")), json!(2));
}

fn misuse(runtime: &Runtime) {
    let refused = |request: Request| request.check().expect_err("misuse").message().to_owned();
    let taken = Request { globals: vec!["api".to_owned()], ..request("1") };
    assert_eq!(refused(taken), "globals.api: this name is taken already");
    let with = |name: &str| {
        let names = vec![name.to_owned()];
        let extension = Some(Arc::new(ExtensionRequest { names, properties: Vec::new() }));
        refused(Request { extension, ..request("1") })
    };
    assert_eq!(with("console"), "extension: 'tested' has no 'console'");
    let body = Request { shape: Shape::Body, ..Request::new("1".to_owned().into()) };
    assert_eq!(refused(body), "shape: a body needs the extension");
    let late = Request { timeout_ms: Some(0.5), ..request("1") };
    assert_eq!(refused(late), "timeout_ms must be a safe integer of at least 1, got 0.5");
    let globals = vec!["later".to_owned()];
    let extension = ExtensionRequest { names: globals.clone(), properties: Vec::new() };
    let extension = Some(Arc::new(extension));
    let open = SessionRequest { globals, extension, ..SessionRequest::default() };
    assert_eq!(open.check().expect_err("misuse").kind(), ErrorKind::Type);
    let error = install_extension(&OTHER).expect_err("a second one");
    assert_eq!(error.message(), "this process has the extension 'tested' already");
    let opened = session(runtime);
    let request = CellRequest { timeout_ms: Some(0.0), ..CellRequest::new("1".to_owned().into()) };
    assert_eq!(request.check().expect_err("misuse").kind(), ErrorKind::Range);
    assert_eq!(value(&cell(&opened, "1")), json!(1));
}

/// Before there is an extension, nobody can ask for it.
fn nothing_is_installed() {
    let error = request("1").check().expect_err("misuse");
    assert_eq!(error.message(), "extension: the process has none");
}
