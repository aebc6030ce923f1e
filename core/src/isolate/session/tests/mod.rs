//! Sessions against a host that remembers what it is asked.

mod host;

use self::host::{Cells, Outcome};
use crate::{
    binding::host::ASYNC_FUNCTION,
    data::cell::{SessionState, ValueFrom},
    isolate::faults,
    modules::session_request::{SessionRequest, UpdateRequest},
};

fn texts(cells: &mut Cells, sources: &[(&str, &str)]) {
    for (source, expected) in sources {
        assert_eq!(cells.text(source), *expected, "{source}");
    }
}

#[test]
fn cells_find_what_earlier_ones_declared() {
    let mut cells = Cells::open();
    texts(
        &mut cells,
        &[
            ("let a = 1, [b, { c = 3 }] = [2, {}]; a + b + c", "6"),
            ("const d = 4; var e = 5; a = 10; a + d + e", "19"),
            ("function f() { return a + typeof g } class K { static n = 7 }", "undefined"),
            ("f() + K.n + f.name + K.name", "10undefined7fK"),
            ("let g = 'g'; f()", "10string"),
            ("let a = 'anew'; f()", "anewstring"),
            ("enum E { A, B } namespace N { export const x = 8 }", "undefined"),
            ("E.B + N.x", "9"),
            ("({ a })", "{ a: 'anew' }"),
            ("{ a: 1 }", "{ a: 1 }"),
            ("return 5; 6", "5"),
            ("export default 3; 4", "3"),
            ("await Promise.resolve(12)", "12"),
            ("Promise.resolve(13)", "13"),
            ("const h = () => 1; h.name", "h"),
            ("if (a) 'yes'; else 'no'", "yes"),
            ("'e' in globalThis", "false"),
        ],
    );
}

#[test]
fn a_value_says_where_it_is_from() {
    let mut cells = Cells::open();
    for (source, expected) in [
        ("1", Some(ValueFrom::Expression)),
        ("return 1", Some(ValueFrom::Return)),
        ("export default 1", Some(ValueFrom::Default)),
        ("if (true) 1", Some(ValueFrom::Completion)),
        ("let x", None),
    ] {
        assert_eq!(cells.run(source).value_from(), expected, "{source}");
    }
    let shown = cells.run("class Order {} new Order()");
    assert_eq!(shown.text().as_deref(), Some("Order {}"));
    assert_eq!(shown.uncloned().as_deref(), Some("result: an instance of Order cannot be cloned"));
}

#[test]
fn what_a_cell_did_not_come_to_has_no_value() {
    let mut cells = Cells::open();
    cells.text("let a = 1; const k = 1; function old() {} var v = 1");
    let failed = cells.run("var w; function f() { return 1 } throw new Error('x'); let a = 2");
    assert_eq!(failed.error(), "Error: x");
    assert_eq!(failed.state, SessionState::Kept);
    texts(
        &mut cells,
        &[("w", "undefined"), ("f()", "1"), ("var v; v", "1"), ("var old; typeof old", "function")],
    );
    assert_eq!(cells.run("a").error(), "ReferenceError: a is not initialized");
    assert_eq!(cells.run("k = 2").error().split(':').next(), Some("TypeError"));
    texts(&mut cells, &[("let k = 5; k = 6; k", "6"), ("let a = 3; a", "3")]);
    assert_eq!(cells.run("let q; let q;").status(), "link_error");
    assert_eq!(cells.run("let a = 4; import { x } from 'no'").status(), "link_error");
    texts(&mut cells, &[("a", "3")]);
}

#[test]
fn a_cell_that_is_ended_is_undone() {
    let mut cells = Cells::open();
    cells.text("let n = 1; const list = [1]; globalThis.mark = 1");
    for _ in 0..3 {
        let ended = cells.run_ended("n = 2; list.push(2); var other = 1; mark = 2; for (;;);");
        assert_eq!((ended.status(), ended.state), ("ended", SessionState::RolledBack));
        texts(&mut cells, &[("[n, list.length, typeof other, mark]", "[ 1, 1, 'undefined', 1 ]")]);
    }
    let ended = cells.run("n = 3; const all = []; for (;;) all.push(new Array(1e5).fill(1))");
    assert_eq!((ended.status(), ended.state), ("memory", SessionState::RolledBack));
    texts(&mut cells, &[("n", "1"), ("n = 5", "5"), ("n", "5")]);
    assert_eq!(cells.names(), ["n let number", "list const Array 1"]);
}

#[test]
fn cells_of_which_nothing_lives_leave_nothing() {
    let mut cells = Cells::open();
    cells.text("let x = 0; function add(n) { x = x + n; return () => n }");
    let mut early = 0;
    for round in 1..=3_000 {
        let text = match round % 4 {
            0 => "x = x + 1".to_owned(),
            1 => format!("add(1); add(1); // {round}"),
            2 => "(function around() { const self = { around }; around.self = self; x += 1 })()"
                .to_owned(),
            _ => "try { null.x } catch { x += 1 }".to_owned(),
        };
        cells.run(&text);
        if round == 500 {
            early = cells.isolate.peak_bytes(0);
        }
    }
    let late = cells.isolate.peak_bytes(0);
    texts(&mut cells, &[("x", "3750")]);
    assert!(late < early + (100 << 10), "{early} {late}");
}

#[test]
fn long_cells_of_which_nothing_lives_leave_room_for_more() {
    let mut request = host::request(&[], &[("./m.js", "export const one = 1")]);
    request.memory_limit_bytes = Some(16.0 * 1024.0 * 1024.0);
    let mut cells = Cells::with(request);
    let long = "x".repeat(100 << 10);
    cells.text("let n = 0; let f");
    for round in 0..300 {
        let text = match round % 4 {
            0 => format!("n += 1; '{long}'.length"),
            1 => format!("import {{ one }} from './m.js'; n += one; '{long}'.length"),
            2 => format!("f = () => '{long}'.length; n += 1; f()"),
            _ => format!("try {{ throw new Error('{long}') }} catch {{ n += 1 }} {}", long.len()),
        };
        assert_eq!(cells.text(&text), long.len().to_string(), "{round}");
    }
    texts(&mut cells, &[("n", "300"), ("f()", &long.len().to_string())]);
}

#[test]
fn words_of_modules_in_texts_keep_no_cell() {
    let mut cells = Cells::open();
    cells.text("let n = 0");
    let filler = "x".repeat(4_000);
    let words = ["metadata", "arguments", "\\u0041", "=>", "<!--", "-->"];
    let mut early = 0;
    for round in 0..600 {
        let word = words[round % words.len()];
        cells.text(&format!("n += '{word} {round} {filler}'.length > 0 ? 1 : 0"));
        if round == 100 {
            early = cells.isolate.peak_bytes(0);
        }
    }
    let late = cells.isolate.peak_bytes(0);
    texts(&mut cells, &[("n", "600")]);
    assert!(late < early + (200 << 10), "{early} {late}");
}

#[test]
fn a_name_that_is_declared_anew_leaves_nothing() {
    let mut cells = Cells::open();
    let name = "n".repeat(1_000);
    let mut early = 0;
    for round in 0..600 {
        let kind = ["let", "const", "var"][round % 3];
        cells.text(&format!("{kind} {name} = {round}"));
        if round == 100 {
            early = cells.isolate.peak_bytes(0);
        }
    }
    let late = cells.isolate.peak_bytes(0);
    texts(&mut cells, &[(&name, "599")]);
    assert!(late < early + (100 << 10), "{early} {late}");
}

#[test]
fn a_cell_waits_for_its_own_imports_however_many_cells_came_before() {
    // The engine has room for a number of 15 bits.
    const CELLS: usize = 1 << 15;
    let mut request = host::functions(&[("load", ASYNC_FUNCTION | 1)]);
    let modules = [
        ("./slow.js", "await load()"),
        ("./bad.js", "throw new Error('bad')"),
        ("./other.js", "await load(); export const quick = 1"),
    ];
    let modules = modules.map(|(key, text)| (key.to_owned(), host::source(text)));
    request.modules = modules.into_iter().collect();
    let mut cells = Cells::with(request);
    assert_eq!(cells.text("import './slow.js'; import './bad.js'"), "Error: bad");
    let slow = cells.started();
    for _ in 1..CELLS {
        cells.run("0");
    }
    cells.begin("import { quick } from './other.js'; quick");
    let other = cells.started();
    cells.answer(&slow, "slow");
    assert!(cells.go_on().is_none(), "the module of another cell has been evaluated");
    cells.answer(&other, "other");
    assert_eq!(cells.go_on().expect("the end of the cell").text().as_deref(), Some("1"));
}

#[test]
fn cells_in_flight_share_the_tables_that_did_not_change() {
    let functions = [("load", ASYNC_FUNCTION | 1), ("keep", 2)];
    let request = SessionRequest { interleave: true, ..host::functions(&functions) };
    let mut cells = Cells::with(request);
    assert!(!cells.begin_as(1, "for (let i = 0; i < 20_000; i += 1) keep(() => i)"));
    for number in 2..=202 {
        assert!(cells.begin_as(number, "await load(() => 1)"));
    }
    let bytes = cells.in_flight.bytes();
    assert!((1..48 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn states_of_cells_in_flight_count() {
    let functions = [("load", ASYNC_FUNCTION | 1)];
    let request = SessionRequest { interleave: true, ..host::functions(&functions) };
    let mut cells = Cells::with(request);
    assert!(!cells.begin_as(1, "const bytes = new Uint8Array(12_000_000)"));
    // The limit is 64 MB: each of them leaves its own state to the next one.
    let waits = (2..=8)
        .map(|number| cells.begin_as(number, &format!("bytes.fill({number}); await load()")));
    let waits: Vec<bool> = waits.collect();
    assert_eq!(waits, [true, true, true, true, true, false, false]);
    let bytes = cells.in_flight.bytes();
    assert!((48_000_000..64_000_000).contains(&bytes), "{bytes}");
    cells.isolate.reset();
    assert_eq!(cells.in_flight.bytes(), 0);
}

#[test]
fn a_long_name_is_cut_in_a_list() {
    let mut cells = Cells::open();
    let exact = "é".repeat(256);
    let long = "é".repeat(257);
    cells.text(&format!("let {exact} = 1; const {long} = 2"));
    let cut = format!("{}…", "é".repeat(255));
    assert_eq!(cells.names(), [format!("{exact} let number"), format!("{cut} const number")]);
}

#[test]
fn a_module_that_the_engine_refuses_is_refused_again() {
    let modules = [
        ("./a.js", "import './b.js'; export const a = 1"),
        ("./b.js", "export const r = /(?<x>a)\\k<y>/"),
    ];
    let mut cells = Cells::with(host::request(&[], &modules));
    for _ in 0..3 {
        assert_eq!(cells.run("import { a } from './a.js'; a").status(), "link_error");
        let failed = cells.run("await import('./a.js')").error();
        assert_eq!(failed.split(':').next(), Some("SyntaxError"), "{failed}");
    }
}

#[test]
fn a_loop_of_a_module_ends_at_its_next_step() {
    let text = "export const spin = () => { const all = new Array(2e5).fill(1); for (;;) all.toSorted(); };";
    let mut cells = Cells::with(host::request(&[], &[("./spin.js", text)]));
    cells.text("import { spin } from './spin.js'");
    let started = std::time::Instant::now();
    let ended = cells.run_ended("spin()");
    // Left to the engine, 10,000 steps would come first, which take many minutes.
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_mins(2), "{took:?}");
    assert_eq!((ended.status(), ended.state), ("ended", SessionState::RolledBack));
}

#[test]
fn without_a_checkpoint_the_session_begins_again() {
    let request =
        SessionRequest { checkpoint_bytes: Some(0.0), ..host::request(&[("answer", 42)], &[]) };
    let mut cells = Cells::with(request);
    cells.text("let n = answer");
    let ended = cells.run_ended("n = 2; for (;;);");
    assert_eq!(ended.state, SessionState::Reset);
    texts(&mut cells, &[("typeof n + answer", "undefined42")]);
    cells.isolate.reset();
    texts(&mut cells, &[("typeof n + answer", "undefined42")]);
}

#[test]
fn the_first_cell_is_undone_to_the_beginning() {
    let mut cells = Cells::with(host::request(&[("answer", 42)], &[]));
    let ended = cells.run_ended("let n = answer; for (;;);");
    assert_eq!(ended.state, SessionState::RolledBack);
    texts(&mut cells, &[("typeof n + answer", "undefined42")]);
}

#[test]
fn a_cell_that_is_ended_early_leaves_a_session_that_answers() {
    let mut cells = Cells::open();
    cells.text("const map = new Map([[1, 2]])");
    let ended = cells.run_ended_early("map.clear()");
    assert_eq!((ended.status(), ended.state), ("ended", SessionState::Kept));
    // Some of them poll.
    for question in 0..20_000 {
        assert_eq!(cells.names(), ["map const Map 1"], "{question}");
    }
    texts(&mut cells, &[("map.size", "1")]);
}

#[test]
fn a_cell_that_is_ended_when_it_has_been_loaded_leaves_a_session_that_is_copied_as_it_is() {
    let mut cells = Cells::with(host::request(&[("one", 1)], &[]));
    cells.text("let n = one");
    cells.isolate.update(host::globals(&[("two", 2)]));
    let ended = cells.run_ended_when_loaded("n = 5");
    assert_eq!((ended.status(), ended.state), ("ended", SessionState::Kept));
    let mut fork = cells.fork();
    texts(&mut fork, &[("n + two", "3"), ("n + one + two", "4")]);
    let ended = fork.run_ended("n = 6; for (;;);");
    assert_eq!(ended.state, SessionState::RolledBack);
    texts(&mut fork, &[("n + two", "3")]);
    texts(&mut cells, &[("n + two", "3")]);
}

#[test]
fn names_are_listed_without_running_code() {
    let mut cells = Cells::with(host::request(
        &[],
        &[("./m.js", "export let x = 1; export default 2; export const inc = () => ++x")],
    ));
    cells.text(
        "import d, { x, inc } from './m.js'; import * as ns from './m.js';
        class Order {} const order = new Order(), bare = Object.create(null), nil = null;
        let map = new Map([[1, 2]]), set = new Set([1]), text = 'four', big = 1n, sym = Symbol();
        const proxy = new Proxy([], { get() { throw 1 } }), bytes = new Uint8Array(9);
        var fn = () => 1, later = Promise.resolve(), no; enum E { A }
        Object.defineProperty(Order.prototype, 'constructor', { get() { throw 2 } });
        throw 0; let never",
    );
    assert_eq!(
        cells.names(),
        [
            "d import number",
            "x import number",
            "inc import function",
            "ns import Object",
            "Order class function",
            "order const Object",
            "bare const Object",
            "nil const null",
            "map let Map 1",
            "set let Set 1",
            "text let string 4",
            "big let bigint",
            "sym let symbol",
            "proxy const Proxy",
            "bytes const Uint8Array 9",
            "fn var function",
            "later var Promise",
            "no var undefined",
            "E enum Object",
            "never let uninitialized",
        ]
    );
    texts(&mut cells, &[("inc(); x + d", "4")]);
    assert_eq!(cells.run("x = 1").error().split(':').next(), Some("TypeError"));
}

#[test]
fn a_list_of_names_is_bounded() {
    let mut cells = Cells::open();
    let names: Vec<String> = (0..10_001).map(|number| format!("n{number}")).collect();
    cells.text(&format!("let {}", names.join(",")));
    let listed = cells.names();
    assert_eq!((listed.len(), &*listed[9_999]), (10_000, "n9999 let undefined"));
}

#[test]
fn modules_are_evaluated_once_and_anew_after_an_update() {
    let modules = [
        ("./a.js", "import { b } from './b.js'; export const a = b + 1"),
        ("./b.js", "globalThis.count = (globalThis.count ?? 0) + 1; export const b = 1"),
    ];
    let mut cells = Cells::with(host::request(&[], &modules));
    texts(
        &mut cells,
        &[("import { a } from './a.js'; a", "2"), ("import { b } from './b.js'; b + count", "2")],
    );
    cells.isolate.update(UpdateRequest {
        modules: vec![(
            "./b.js".to_owned(),
            host::source("globalThis.count = 10; export const b = 5"),
        )],
        ..UpdateRequest::default()
    });
    texts(
        &mut cells,
        &[
            ("a + count", "3"),
            ("import { a } from './a.js'; a + count", "16"),
            ("(await import('./b.js')).b", "5"),
        ],
    );
    cells.isolate.update(UpdateRequest {
        removed_modules: vec!["./b.js".to_owned()],
        ..UpdateRequest::default()
    });
    assert_eq!(cells.run("import './a.js'").status(), "link_error");
    texts(&mut cells, &[("a", "6")]);
}

#[test]
fn globals_come_change_and_go() {
    let mut cells = Cells::with(host::request(&[("one", 1), ("two", 2)], &[]));
    texts(&mut cells, &[("one + two", "3"), ("let two = 20; one + two", "21")]);
    cells.isolate.update(host::globals(&[("one", 100), ("two", 200), ("three", 300)]));
    texts(&mut cells, &[("one + two + three", "420")]);
    assert_eq!(cells.run("one = 1").error().split(':').next(), Some("TypeError"));
    cells.isolate.update(UpdateRequest {
        removed_globals: vec!["one".to_owned(), "two".to_owned()],
        ..UpdateRequest::default()
    });
    texts(&mut cells, &[("typeof one + two + three", "undefined20300")]);
    cells.isolate.reset();
    texts(&mut cells, &[("typeof one + typeof two + three", "undefinedundefined300")]);
}

#[test]
fn host_calls_are_answered_between_cells() {
    let mut cells = Cells::with(host::functions(&[("load", ASYNC_FUNCTION | 1), ("add", 2)]));
    cells.text("const page = load(1); let got = 'nothing'; page.then(value => got = value); 0");
    assert_eq!(cells.isolate.unanswered(&[]), 1);
    assert!(cells.isolate.fork().is_none() || cells.isolate.unanswered(&[]) == 1);
    cells.answer_started("page one");
    let ended = cells.run_ended("await page; for (;;);");
    assert_eq!(ended.state, SessionState::RolledBack);
    texts(&mut cells, &[("await page", "page one"), ("got", "page one")]);
    assert_eq!(cells.isolate.unanswered(&[]), 0);
    texts(&mut cells, &[("add(1, 2)", "called 2")]);
}

#[test]
fn functions_that_the_host_holds_are_cells() {
    let mut cells = Cells::with(host::functions(&[("give", 3)]));
    cells.text("let n = 1; give(x => { n += x; return n })");
    let function = cells.host.exported().expect("a function");
    assert_eq!(cells.held(function, 5), Ok("6".to_owned()));
    texts(&mut cells, &[("n", "6")]);
    cells.run_ended("give(x => x); for (;;);");
    let undone = cells.host.exported().expect("a function");
    assert_ne!(function, undone);
    assert!(cells.held(undone, 1).is_err());
    assert_eq!(cells.held(function, 5), Ok("11".to_owned()));
}

#[test]
fn calls_find_what_cells_declared() {
    let mut cells = Cells::open();
    cells
        .text("let n = 1; const add = async (x) => n += x; const no = 1; throw 0; const never = 1");
    assert_eq!(cells.call("add", 2).text().as_deref(), Some("3"));
    assert_eq!(cells.call("add", 2).value_from(), Some(ValueFrom::Return));
    assert_eq!(cells.call("no", 2).error(), "TypeError: 'no' is not a function");
    let missing = cells.call("nothing", 2);
    assert_eq!(missing.status(), "link_error");
    assert_eq!(cells.call("never", 2).error(), "ReferenceError: never is not initialized");
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut cells = Cells::open();
    cells.text("let n = 1; const f = () => n; console.count('x')");
    let mut fork = cells.fork();
    texts(&mut cells, &[("n = 2; f()", "2")]);
    texts(&mut fork, &[("f()", "1"), ("n = 3; const only = 1; f()", "3")]);
    texts(&mut cells, &[("f() + typeof only", "2undefined")]);
    let ended = fork.run_ended("n = 4; for (;;);");
    assert_eq!(ended.state, SessionState::RolledBack);
    texts(&mut fork, &[("f()", "3")]);
    drop(cells);
    texts(&mut fork, &[("f() + only", "4")]);
}

#[test]
fn stacks_name_their_own_cell() {
    let mut cells = Cells::open();
    cells.text("let x = 1;\nfunction deep() {\n  throw new Error('deep')\n}");
    let failed = cells.run("const y: number = 1;\n  deep()");
    let Outcome::Failed(_, error) = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!(
        error.stack.as_deref(),
        Some("Error: deep\n    at deep (<cell 1>:3:13)\n    at <anonymous> (<cell 2>:2:3)")
    );
    assert_eq!(
        (error.filename.as_deref(), error.line, error.column),
        (Some("<cell 1>"), Some(3), Some(13))
    );
    texts(
        &mut cells,
        &[
            (
                "try { deep() } catch (e) { e.stack }",
                "Error: deep\n    at deep (<cell 1>:3:13)\n    at <anonymous> (<cell 3>:1:7)",
            ),
            ("import.meta.url", "sandbox:<cell 4>"),
            ("deep.toString()", "function deep() {\n  throw new Error('deep')\n}"),
        ],
    );
    let failed = cells.run("let a = 1;\nlet a = 2");
    let Outcome::Failed(_, error) = &failed.outcome else { panic!("{failed:?}") };
    assert_eq!((error.filename.as_deref(), error.line), (Some("<cell 6>"), Some(2)));
}

#[test]
fn tampering_changes_no_declaration() {
    let mut cells = Cells::with(host::request(
        &[],
        &[("./m.js", "export let live = 1; export const Map = 'mine'")],
    ));
    cells.text(
        "Object.defineProperty(Object.prototype, 'x', { set() { throw 'set' }, get() { return 'get' }, configurable: true });
        Object.defineProperty(globalThis, 'y', { get() { throw 'y' }, set() { throw 'set y' }, configurable: true });
        Array.prototype[Symbol.iterator] = () => { throw 'iterator' };
        Object.prototype[1] = 'one'; 0",
    );
    texts(
        &mut cells,
        &[("let x = 1, y = 2; x + y", "3"), ("x + y", "3"), ("function z() { return x } z()", "1")],
    );
    texts(
        &mut cells,
        &[("import { live, Map } from './m.js'; live + Map", "1mine"), ("live + Map", "1mine")],
    );
    cells.text("Object.freeze(globalThis); Object.setPrototypeOf; 0");
    texts(&mut cells, &[("import { live as alive } from './m.js'; alive", "1"), ("alive", "1")]);
}

#[test]
fn unhandled_rejections_belong_to_the_cell_that_sees_them() {
    let mut cells = Cells::open();
    cells.text("Promise.reject(new Error('lost')); 1");
    assert_eq!(cells.host.logs(), ["Uncaught (in promise) Error: lost"]);
    cells.text("2");
    assert_eq!(cells.host.logs(), Vec::<String>::new());
}

#[test]
fn reports_exist_where_the_cell_has_them() {
    let mut cells = Cells::open();
    texts(&mut cells, &[("typeof report", "undefined")]);
    cells.report = true;
    texts(&mut cells, &[("report(1); typeof report", "function")]);
    cells.report = false;
    texts(&mut cells, &[("typeof report", "undefined")]);
}

#[test]
fn explanations_know_the_names_of_earlier_cells() {
    let mut cells = Cells::with(host::request(&[("total", 1)], &[]));
    cells.text("const order = { items: [1] }; let nothing");
    let sources = [
        "order.itms.length",
        "orders",
        "nothing.x",
        "order = 1",
        "total = 1",
        "later; let later = 1",
        "order()",
    ];
    assert_eq!(
        sources.map(|source| cells.text(source)),
        [
            "TypeError: cannot read property 'length' of undefined (order.itms is undefined; order has: items; did you mean 'items'?)",
            "ReferenceError: orders is not defined; did you mean 'order'?",
            "TypeError: cannot read property 'x' of undefined (nothing is undefined)",
            "TypeError: 'order' is read-only (it is a constant)",
            "TypeError: 'total' is read-only (it is a global of this sandbox)",
            "ReferenceError: later is not initialized (it is declared on line 1)",
            "TypeError: order is not a function (it is an object)",
        ]
    );
}

#[test]
fn a_refused_request_anywhere_undoes_the_cell() {
    let mut cells =
        Cells::with(host::request(&[("given", 1)], &[("./m.js", "export let m = [1]")]));
    cells.text("let n = 1; const list = [1, 2, 3]");
    let source = "import { m } from './m.js'; let fresh = list.map(x => ({ x })); n = fresh.length; \
        enum E { A } class C extends Map {} console.log(new C()); await null; `${n}`.repeat(1e5).length + m.length";
    let mut undone = 0;
    for request in 1.. {
        let (settled, seen) = faults::with(faults::Plan::Once(request), || cells.run(source));
        if seen.refused == 0 {
            assert_eq!(settled.text().as_deref(), Some("100001"));
            break;
        }
        assert_eq!(settled.state, SessionState::RolledBack, "request {request}");
        undone += 1;
        assert_eq!(cells.text("typeof fresh + typeof m + n + list.length"), "undefinedundefined13");
    }
    assert!(undone > 5, "{undone} requests");
    assert_eq!(cells.text("fresh.length + m.length + E.A"), "4");
}

/// Not a test: prints the costs. `cargo test --lib session::tests::costs -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn costs() {
    let timed = |what: &str, times: u32, work: &mut dyn FnMut()| {
        let mut samples: Vec<f64> = (0..times)
            .map(|_| {
                let start = std::time::Instant::now();
                work();
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        samples.sort_by(f64::total_cmp);
        println!("{what:<40} p50 {:>9.1} µs", samples[samples.len() / 2]);
    };
    let mut cells = Cells::open();
    cells.text("let x = 1");
    timed("x + 1", 1000, &mut || drop(cells.text("x + 1")));
    timed("let y = x", 1000, &mut || drop(cells.text("let y = x")));
    cells.text("const data = []; for (let i = 0; i < 100000; i++) data.push({ i, s: 'n' + i }); 0");
    timed("x + 1 with 10 MB", 300, &mut || drop(cells.text("x + 1")));
    timed("x++ with 10 MB", 300, &mut || drop(cells.text("x++")));
    timed("a fork", 100, &mut || drop(cells.fork()));
    let mut cells = Cells::open();
    cells.text("let x = 1");
    timed("a small fork", 300, &mut || drop(cells.fork()));
    timed("open, first cell, close", 100, &mut || drop(Cells::open().text("1 + 1")));
}

#[test]
fn a_state_is_read_by_a_copy_of_its_slot_alone() {
    let mut cells = Cells::open();
    cells.text("let n: number = 1; const f = () => n; import('./no').catch(() => 0); f()");
    let bytes = cells.written();
    assert!(!Cells::is_read(&bytes, false), "another slot has taken it");
    assert!(!Cells::is_read(&bytes, true), "addresses of another slot were taken");
    // Reading ends, with any bytes that a worker writes in their place.
    for end in (0..bytes.len()).step_by(4999).chain(bytes.len() - 20..bytes.len()) {
        assert!(!Cells::is_read(&bytes[..end], true), "{end}");
    }
    let mut random = 1_u64;
    for _ in 0..100 {
        let mut broken = bytes.clone();
        for _ in 0..4 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(random >> 33).expect("31 bits") % broken.len().min(4096);
            broken[at] = u8::try_from(random >> 56).expect("8 bits");
        }
        assert!(!Cells::is_read(&broken, true));
    }
}
