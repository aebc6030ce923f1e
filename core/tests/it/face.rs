//! The Rust face: values in both directions, closures, futures, handles.

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use isolane::{
    Completion, ErrorKind, Execute, ExecutionOptions, ExecutionResult, HostError, HostFunction,
    HostPromise, Input, Inputs, Report, Runtime, RuntimeOptions, SandboxFunction, SandboxPromise,
    Status, Value, run_code, value::Writer,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

fn with(globals: Inputs) -> ExecutionOptions {
    ExecutionOptions { globals, ..ExecutionOptions::default() }
}

fn run(source: &str, options: ExecutionOptions) -> ExecutionResult {
    run_code(source, options).wait().expect("no misuse")
}

/// The export of `source`, with those globals.
fn eval<T: DeserializeOwned>(source: &str, globals: Inputs) -> T {
    let result = run(source, with(globals));
    let Some(value) = result.result else { panic!("{source}: {:?}", result.error) };
    value.deserialize().expect(source)
}

/// The text of the exception that `expression` throws.
fn thrown(expression: &str, globals: Inputs) -> String {
    let source = format!(
        "let caught = 'nothing'; try {{ await {expression}; }} catch (e) {{ caught = `${{e.name}}: ${{e.message}}`; }} export default caught;"
    );
    eval(&source, globals)
}

fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park_timeout(Duration::from_secs(10)),
        }
    }
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    Value::serialize(value).expect("written").deserialize().expect("read")
}

/// A value as JavaScript sees it.
fn seen(value: impl Serialize) -> String {
    eval(
        "const show = (v) => v === undefined ? 'undefined' : v === null ? 'null'
            : typeof v === 'bigint' ? `${v}n`
            : typeof v === 'string' ? `'${v}'`
            : Object.is(v, -0) ? '-0'
            : Array.isArray(v) ? `[${v.map(show).join(', ')}]`
            : v instanceof Map ? `Map{${[...v].map(([k, x]) => show(k) + '=>' + show(x)).join(', ')}}`
            : v instanceof Date ? `Date(${+v})`
            : ArrayBuffer.isView(v) ? `${v.constructor.name}(${[...v]})`
            : typeof v === 'object' ? `{${Object.entries(v).map(([k, x]) => k + ': ' + show(x)).join(', ')}}`
            : String(v);
        export default show(input);",
        Inputs::new().with("input", value),
    )
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
enum Shape {
    Unit,
    New(u8),
    Tuple(u8, String),
    Struct { a: Option<bool>, b: char },
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Default)]
#[serde(default)]
struct Row {
    id: u64,
    name: String,
    tags: Vec<String>,
    parent: Option<Box<Row>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tree {
    Leaf(u8),
    Node { only: Box<Tree> },
}

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

#[test]
fn rust_types_come_back_as_they_were() {
    let row = Row {
        id: 7,
        name: "é😀".into(),
        tags: vec!["a".into(), String::new()],
        parent: Some(Box::new(Row::default())),
    };
    assert_eq!(round_trip(&row), row);
    let shapes = vec![
        Shape::Unit,
        Shape::New(3),
        Shape::Tuple(1, "x".into()),
        Shape::Struct { a: None, b: 'ß' },
        Shape::Struct { a: Some(true), b: 'b' },
    ];
    assert_eq!(round_trip(&shapes), shapes);
    let map: BTreeMap<i32, Vec<u8>> = [(-1, vec![1]), (2, vec![])].into();
    assert_eq!(round_trip(&map), map);
    let map: HashMap<String, Option<f64>> = [("a".into(), None), ("b".into(), Some(0.5))].into();
    assert_eq!(round_trip(&map), map);
    for number in [0, 1, -1, i128::from(i64::MIN), i128::MIN, i128::MAX, 1 << 53, -(1 << 53)] {
        assert_eq!(round_trip(&number), number);
    }
    assert_eq!(round_trip(&u128::MAX), u128::MAX);
    assert_eq!(round_trip(&(u64::MAX, i64::MIN, u8::MAX)), (u64::MAX, i64::MIN, u8::MAX));
    assert_eq!(round_trip(&(-0.0f64)).to_bits(), (-0.0f64).to_bits());
    assert!(round_trip(&f64::NAN).is_nan());
    assert_eq!(round_trip(&Bytes(vec![0, 255])).0, [0, 255]);
    assert_eq!(round_trip(&((), Some(1), None::<u8>, true)), ((), Some(1), None, true));
    let long: Vec<u32> = (0..100_000).collect();
    assert_eq!(round_trip(&long), long);
}

#[test]
fn the_sandbox_sees_rust_types_as_its_own() {
    assert_eq!(seen((1u8, -5i64, 0.5f32, -0.0)), "[1, -5, 0.5, -0]");
    assert_eq!(
        seen((9_007_199_254_740_991u64, 1u64 << 53)),
        "[9007199254740991, 9007199254740992n]"
    );
    assert_eq!(seen((i64::MIN, u128::MAX)), format!("[{}n, {}n]", i64::MIN, u128::MAX));
    assert_eq!(seen(((), None::<u8>, Some('x'))), "[undefined, null, 'x']");
    assert_eq!(seen(Bytes(vec![1, 2])), "Uint8Array(1,2)");
    assert_eq!(seen(BTreeMap::from([(1, "a"), (2, "b")])), "Map{1=>'a', 2=>'b'}");
    assert_eq!(seen(BTreeMap::from([("b", 1), ("c", 2)])), "{b: 1, c: 2}");
    assert_eq!(seen(BTreeMap::<u8, u8>::new()), "{}");
    let shape = Shape::Struct { a: None, b: 'x' };
    assert_eq!(
        seen((Shape::Unit, Shape::New(1), shape)),
        "['Unit', {New: 1}, {Struct: {a: null, b: 'x'}}]"
    );
    assert_eq!(seen(Shape::Tuple(1, "y".into())), "{Tuple: [1, 'y']}");
    assert_eq!(seen(Input::date(5.0)), "Date(5)");
    assert_eq!(
        seen(Input::array([Input::undefined(), Input::null(), 1.into()])),
        "[undefined, null, 1]"
    );
    assert_eq!(
        seen(Input::object([("z", Input::from("s")), ("a", true.into())])),
        "{z: 's', a: true}"
    );
    assert_eq!(seen(Input::bytes(vec![9])), "Uint8Array(9)");
    assert_eq!(seen(vec![Value::serialize(&[1]).expect("written"); 2]), "[[1], [1]]");
}

#[test]
fn values_of_the_sandbox_read_as_rust_types() {
    let none = Inputs::new;
    assert_eq!(eval::<Vec<u32>>("export default new Set([1, 2])", none()), [1, 2]);
    assert_eq!(eval::<Vec<f64>>("export default new Float32Array([0.5, 2])", none()), [0.5, 2.0]);
    assert_eq!(eval::<Vec<i16>>("export default new Int16Array([-1, 2]).subarray(1)", none()), [2]);
    assert_eq!(
        eval::<Vec<u8>>("export default new Uint8Array([1, 2, 3]).buffer", none()),
        [1, 2, 3]
    );
    assert_eq!(
        eval::<Vec<u64>>("export default new BigUint64Array([2n ** 64n - 1n])", none()),
        [u64::MAX]
    );
    assert_eq!(
        eval::<Bytes>("export default new Uint8Array([1, 2, 3]).subarray(1)", none()).0,
        [2, 3]
    );
    assert_eq!(eval::<f64>("export default new Date(1500)", none()).to_string(), "1500");
    assert!(eval::<f64>("export default new Date(NaN)", none()).is_nan());
    assert_eq!(eval::<String>("export default /a+/gi", none()), "/a+/gi");
    assert_eq!(eval::<String>(r"export default 'a\ud800b'", none()), "a\u{FFFD}b");
    assert_eq!(eval::<u64>("export default 2n ** 60n", none()), 1 << 60);
    assert_eq!(eval::<i128>("export default -(2n ** 127n)", none()), i128::MIN);
    assert_eq!(eval::<u64>("export default 2 ** 52", none()), 1 << 52);
    assert_eq!(eval::<Option<u8>>("export default undefined", none()), None);
    assert_eq!(
        eval::<Vec<Option<u8>>>("export default [1, , undefined, null]", none()),
        [Some(1), None, None, None]
    );
    assert_eq!(
        eval::<Vec<Option<u8>>>("const a = []; a[3] = 1; a.length = 5; export default a", none()),
        [None, None, None, Some(1), None]
    );
    assert_eq!(eval::<(u8, u8)>("export default [1, 2]", none()), (1, 2));
    let map: BTreeMap<u8, Vec<bool>> =
        eval("export default new Map([[2, [true]], [1, []]])", none());
    assert_eq!(map, BTreeMap::from([(1, vec![]), (2, vec![true])]));
    let row: Row = eval(
        "export default { id: 3, extra: { deep: [1, { a: /x/ }] }, name: undefined, tags: ['x'] }",
        none(),
    );
    assert_eq!(row, Row { id: 3, tags: vec!["x".into()], ..Row::default() });
    let error: BTreeMap<String, String> =
        eval("const e = new RangeError('m'); e.code = 'C'; export default e", none());
    assert_eq!(error["name"], "RangeError");
    assert_eq!(error["message"], "m");
    let twice: Vec<Row> =
        eval("const row = { id: 1 }; export default [row, { id: 2, parent: row }, row]", none());
    assert_eq!(twice.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(twice[1].parent.as_ref().map(|row| row.id), Some(1));
    let json: serde_json::Value =
        eval("export default { a: [1, 0.5, 'x', null, 1e12], b: { c: true } }", none());
    assert_eq!(
        json,
        serde_json::json!({ "a": [1, 0.5, "x", null, 1_000_000_000_000_u64], "b": { "c": true } })
    );
}

#[test]
fn what_does_not_fit_says_where() {
    let fails = |source: &str| {
        let value = run(source, ExecutionOptions::default()).result.expect("a result");
        let error = value.deserialize::<BTreeMap<String, Vec<Row>>>().expect_err("misfit");
        assert_eq!(error.kind(), ErrorKind::Serialization);
        error.message().to_owned()
    };
    assert_eq!(
        fails("export default { rows: [{}, { id: 'x' }] }"),
        "value.rows[1].id: invalid type: string \"x\", expected u64"
    );
    assert_eq!(
        fails("export default { 'a b': [{ id: -1 }] }"),
        "value[\"a b\"][0].id: invalid value: integer `-1`, expected u64"
    );
    assert_eq!(
        fails("export default { a: 1 }"),
        "value.a: invalid type: integer `1`, expected a sequence"
    );
    assert_eq!(
        fails("const a = []; a.push(a); export default { a }"),
        "value.a[0]: a cycle cannot be read"
    );
    let value = run("export default 2n ** 200n", ExecutionOptions::default()).result.expect("it");
    let error = value.deserialize::<u128>().expect_err("too big");
    assert_eq!(error.message(), "value: the bigint is too big for any integer type");
}

#[test]
fn hostile_values_are_refused_in_bounded_time() {
    let refused = |source: &str| {
        let value = run(source, ExecutionOptions::default()).result.expect("a result");
        let error = value.deserialize::<serde_json::Value>().expect_err("refused");
        error.message().rsplit(": ").next().unwrap_or_default().to_owned()
    };
    let too_often = "the value repeats shared objects or holes too often";
    assert_eq!(
        refused("let a = []; for (let i = 0; i < 60; i++) a = [a, a]; export default a"),
        too_often
    );
    assert_eq!(refused("const a = []; a[4e9] = 1; export default a"), too_often);
    let deep = "let a = []; for (let i = 0; i < 100000; i++) a = [a]; export default ";
    assert_eq!(refused(&format!("{deep} a")), "nests deeper than 128");
    let row: Row = eval(&format!("{deep} {{ id: 1, ignored: a }}"), Inputs::new());
    assert_eq!(row.id, 1);
    let shared: Vec<Value> = eval(&format!("{deep} [a]"), Inputs::new());
    assert_eq!(shared.len(), 1);
    // A hundred levels of the most expensive kind of type fit on the stack of a test.
    let tree: Tree = eval(
        "let a = 1; for (let i = 0; i < 100; i++) a = { only: a }; export default a",
        Inputs::new(),
    );
    let mut depth = 0;
    let mut at = &tree;
    while let Tree::Node { only } = at {
        depth += 1;
        at = only;
    }
    assert!(matches!(at, Tree::Leaf(1)));
    assert_eq!(depth, 100);
}

#[test]
fn parts_of_a_value_are_values() {
    #[derive(Deserialize)]
    struct Parts {
        left: Value,
        right: Value,
    }
    let source = "const s = { n: 1, k: 'v' }; s.me = s; const b = new Uint8Array([1, 2, 3]);
        export default { left: [s, s, b], right: [s, b.buffer, b, new Error('e'), , 2n] }";
    let parts: Parts = eval(source, Inputs::new());
    let check = "export default [
        left[0] === left[1], left[0].me === left[0], left[2][2],
        right[0].me === right[0], right[1] === right[2].buffer, right[3].message, 4 in right, right[5],
    ].join()";
    let globals = Inputs::new().with("left", parts.left).with("right", &parts.right);
    assert_eq!(eval::<String>(check, globals), "true,true,3,true,true,e,false,2");
    assert!(parts.right.deserialize::<serde_json::Value>().is_err());
}

#[test]
fn a_value_is_plain_data_to_other_serializers() {
    let value = run(
        "const s = [1]; export default { s, t: s, u: undefined, d: new Date(5), m: new Map([['k', 'v']]), e: new TypeError('x'), n: NaN, f: 0.5, h: [, 1] }",
        ExecutionOptions::default(),
    );
    let json = serde_json::to_string(&value.result.expect("it")).expect("json");
    assert_eq!(
        json,
        r#"{"s":[1],"t":[1],"d":5,"m":{"k":"v"},"e":{"name":"TypeError","message":"x"},"n":null,"f":0.5,"h":[null,1]}"#
    );
    assert!(serde_json::to_string(&HostFunction::new(|| ())).is_err());
    assert!(serde_json::from_str::<Value>("1").is_err());
    assert!(serde_json::from_str::<HostFunction>("1").is_err());
    let error = Value::serialize(&HostFunction::new(|| ())).expect_err("no data");
    assert_eq!(error.message(), "value: a function or a promise needs an `Input` to cross");
}

#[test]
fn closures_are_functions() {
    let globals = || {
        Inputs::new()
            .with("add", HostFunction::new(|a: f64, b: f64| a + b))
            .with("nothing", HostFunction::new(|| ()))
            .with("greet", HostFunction::new(|name: Option<String>| format!("hi {name:?}")))
            .with("row", HostFunction::new(|row: Row| row))
            .with("echo", HostFunction::new(|value: Value| value))
            .with("raw", HostFunction::raw(Ok))
            .with(
                "all",
                HostFunction::new(|a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8| {
                    [a, b, c, d, e, f, g, h]
                }),
            )
    };
    assert_eq!(eval::<u8>("export default add(1, 2)", globals()), 3);
    assert!(eval::<bool>("export default nothing() === undefined", globals()));
    assert_eq!(eval::<String>("export default greet()", globals()), "hi None");
    assert_eq!(eval::<String>("export default greet('x', 2, 3)", globals()), "hi Some(\"x\")");
    assert_eq!(eval::<u64>("export default row({ id: 4 }).id", globals()), 4);
    assert!(eval::<bool>(
        "const x = { s: new Set([1]) }; x.x = x; const y = echo(x); export default y.x === y && y.s.has(1)",
        globals()
    ));
    assert!(eval::<bool>(
        "export default echo(echo) === echo && raw(echo, 1)[0] === echo",
        globals()
    ));
    assert!(eval::<bool>(
        "const f = () => 1; export default echo(f) === f && raw(f)[0] === f",
        globals()
    ));
    assert_eq!(
        eval::<Vec<u8>>("export default all(1, 2, 3, 4, 5, 6, 7, 8, 9)", globals()),
        [1, 2, 3, 4, 5, 6, 7, 8]
    );
    assert_eq!(eval::<String>("export default add.name + add.length", globals()), "add0");
    assert_eq!(
        thrown("add(1)", globals()),
        "TypeError: arguments[1]: invalid type: unit value, expected f64"
    );
    assert_eq!(
        thrown("add('x', 1)", globals()),
        "TypeError: arguments[0]: invalid type: string \"x\", expected f64"
    );
    assert_eq!(
        thrown("row({ tags: [1] })", globals()),
        "TypeError: arguments[0].tags[0]: invalid type: integer `1`, expected a string"
    );
    assert!(eval::<bool>(
        "let e; try { add() } catch (x) { e = x } export default e instanceof TypeError",
        globals()
    ));
}

#[test]
fn errors_are_thrown_in_the_sandbox() {
    let error = || HostError::new("RangeError", "far").with_code(7);
    let globals = || {
        Inputs::new()
            .with("parse", HostFunction::new(|text: String| text.parse::<i32>()))
            .with("text", HostFunction::new(|| Err::<(), String>("just text".into())))
            .with("fine", HostFunction::new(|| Ok::<u8, String>(5)))
            .with("object", HostFunction::new(|| Err::<(), _>(Row { id: 9, ..Row::default() })))
            .with(
                "boxed",
                HostFunction::new(
                    |deep: bool| -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
                        if deep {
                            Err(HostError::new("Deep", "below"))?;
                        }
                        Ok("x".parse()?)
                    },
                ),
            )
            .with("own", HostFunction::new(move || Err::<(), HostError>(error())))
            .with("panics", HostFunction::new(|| -> u8 { std::panic::resume_unwind(Box::new(1)) }))
            .with("raw", HostFunction::raw(|args| -> Completion { Err(args) }))
            .with(
                "later",
                HostFunction::future(|| async {
                    Err::<(), HostError>(HostError::new("Late", "too late"))
                }),
            )
            .with(
                "laterPanics",
                HostFunction::future(|| async {
                    std::panic::resume_unwind(Box::new(1));
                    #[expect(unreachable_code, reason = "a type")]
                    Ok::<u8, String>(1)
                }),
            )
            .with(
                "panicsEarly",
                HostFunction::future(|| {
                    std::panic::resume_unwind(Box::new(1));
                    #[expect(unreachable_code, reason = "a type")]
                    std::future::ready(1)
                }),
            )
            .with(
                "cyclic",
                HostFunction::new(|| {
                    let mut map = Input::null();
                    for _ in 0..200 {
                        map = Input::array([map]);
                    }
                    map
                }),
            )
            .with("typed", HostFunction::future(|n: u8| async move { n }))
    };
    assert_eq!(thrown("parse('x')", globals()), "Error: invalid digit found in string");
    assert_eq!(eval::<i32>("export default parse('12')", globals()), 12);
    assert_eq!(thrown("text()", globals()), "Error: just text");
    assert_eq!(eval::<u8>("export default fine()", globals()), 5);
    assert_eq!(
        eval::<u64>("let e; try { object() } catch (x) { e = x } export default e.id", globals()),
        9
    );
    assert_eq!(thrown("boxed(false)", globals()), "Error: invalid digit found in string");
    assert_eq!(thrown("boxed(true)", globals()), "Deep: below");
    assert_eq!(thrown("own()", globals()), "RangeError: far");
    assert_eq!(
        eval::<(bool, u8)>(
            "let e; try { own() } catch (x) { e = x } export default [e instanceof RangeError, e.code]",
            globals()
        ),
        (true, 7)
    );
    assert_eq!(thrown("panics()", globals()), "Error: the host function panicked");
    assert_eq!(
        eval::<u8>("let e; try { raw(1, 2) } catch (x) { e = x } export default e[1]", globals()),
        2
    );
    assert_eq!(thrown("later()", globals()), "Late: too late");
    assert_eq!(thrown("laterPanics()", globals()), "Error: the host function panicked");
    assert_eq!(thrown("panicsEarly()", globals()), "Error: the host function panicked");
    assert_eq!(
        thrown("typed('x')", globals()),
        "TypeError: arguments[0]: invalid type: string \"x\", expected u8"
    );
    let uncaught = run("later.x; await later()", with(globals()));
    assert_eq!(uncaught.status, Status::Error);
    assert_eq!(
        uncaught.error.map(|error| (error.name, error.message)),
        Some(("Late".into(), "too late".into()))
    );
}

#[test]
fn a_panic_while_a_value_is_written_leaves_no_trace() {
    struct Panics;
    impl Serialize for Panics {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            std::panic::resume_unwind(Box::new(1))
        }
    }
    let globals = Inputs::new()
        .with("bad", HostFunction::new(|| (HostFunction::new(|| ()), Panics)))
        .with("json", HostFunction::new(|value: Value| serde_json::to_string(&value)));
    let source =
        "let e; try { bad() } catch (x) { e = x.message } export default [e, json({ a: 1 })]";
    let expected = ("the host function panicked".to_owned(), r#"{"a":1}"#.to_owned());
    assert_eq!(eval::<(String, String)>(source, globals), expected);
}

#[test]
fn functions_stand_at_any_depth() {
    #[derive(Serialize)]
    struct Tools {
        version: u8,
        upper: HostFunction,
        more: Vec<Input>,
    }
    let upper = HostFunction::new(|text: String| text.to_uppercase());
    let tools =
        Tools { version: 1, upper: upper.clone(), more: vec![upper.clone().into(), 2.into()] };
    let options = ExecutionOptions {
        execute: Execute::function("main")
            .arg(&upper)
            .arg(Input::object([("deep", Input::array([upper.clone().into()]))])),
        imports: BTreeMap::from([(
            "text".to_owned(),
            Inputs::new()
                .with("up", &upper)
                .with("default", 5)
                .with("same", HostFunction::new(|f: HostFunction, g: HostFunction| f == g)),
        )]),
        globals: Inputs::new()
            .with("tools", tools)
            .with("maker", HostFunction::new(|by: f64| HostFunction::new(move |n: f64| n * by))),
        ..ExecutionOptions::default()
    };
    let source = "import five, { up, same } from 'text';
        export function main(f, { deep: [g] }) {
            return [up === f, f === g, g === tools.upper, tools.more[0] === up, tools.version, five, up('a'),
                maker(3)(4), same(up, g), same(up, maker), tools.upper.name];
        }";
    let result = run(source, options);
    let text: (bool, bool, bool, bool, u8, u8, String, f64, bool, bool, String) =
        result.result.expect("success").deserialize().expect("it");
    assert_eq!(text, (true, true, true, true, 1, 5, "A".into(), 12.0, true, false, "upper".into()));
}

#[test]
fn misuse_is_what_the_handle_yields() {
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }
    #[derive(Serialize)]
    struct Db {
        pool: Vec<Refuses>,
    }
    let misuse = |options: ExecutionOptions| {
        let handle = run_code("export default 1", options);
        assert!(!handle.running());
        assert!(handle.reports().is_empty());
        handle.terminate(None);
        let error = handle.wait().expect_err("misuse");
        (error.kind(), error.message().to_owned())
    };
    let globals = Inputs::new().with("db", Db { pool: vec![Refuses] });
    assert_eq!(
        misuse(with(globals)),
        (ErrorKind::Serialization, "globals.db.pool[0]: not today".into())
    );
    let args = Execute::default().arg(1).arg([Refuses]);
    assert_eq!(
        misuse(ExecutionOptions { execute: args, ..Default::default() }),
        (ErrorKind::Serialization, "execute.args[1][0]: not today".into())
    );
    let imports = BTreeMap::from([("@a/b".to_owned(), Inputs::new().with("c", Refuses))]);
    assert_eq!(
        misuse(ExecutionOptions { imports, ..Default::default() }),
        (ErrorKind::Serialization, "imports[\"@a/b\"].c: not today".into())
    );
    assert_eq!(
        misuse(ExecutionOptions { memory_limit_bytes: Some(0), ..Default::default() }),
        (ErrorKind::Range, "memory_limit_bytes must be a safe integer of at least 1, got 0".into())
    );
    assert_eq!(misuse(with(Inputs::new().with("class", 1))).0, ErrorKind::Type);
    assert_eq!(
        misuse(ExecutionOptions { filename: Some(String::new()), ..Default::default() }).0,
        ErrorKind::Type
    );
    assert_eq!(
        block_on(run_code(
            "",
            ExecutionOptions { filename: Some(String::new()), ..Default::default() }
        ))
        .expect_err("misuse")
        .kind(),
        ErrorKind::Type
    );
    assert!(Input::serialize(&Refuses).is_err());
    let mut deep = Input::null();
    for _ in 0..200 {
        deep = Input::array([deep]);
    }
    assert!(eval::<bool>("export default Array.isArray(x)", Inputs::new().with("x", deep)));
}

#[test]
fn a_function_of_one_run_is_not_lent_to_another() {
    let kept: Arc<Mutex<Option<SandboxFunction>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let globals = Inputs::new().with(
        "keep",
        HostFunction::new(move |f: SandboxFunction| *keep.lock().expect("lock") = Some(f)),
    );
    assert_eq!(run("keep(() => 1); export default 1", with(globals)).status, Status::Success);
    let function = kept.lock().expect("lock").take().expect("kept");
    let late = block_on(function.call::<u8>(())).expect_err("gone");
    assert_eq!(late.to_string(), "Error: the run has settled: its functions and promises are gone");
    let error = run_code("", with(Inputs::new().with("f", &function))).wait().expect_err("misuse");
    assert_eq!(error.message(), "globals.f: a function or a promise of another run cannot cross");
    let give = function.clone();
    let globals = Inputs::new().with("give", HostFunction::new(move || vec![give.clone()]));
    assert_eq!(
        thrown("give()", globals),
        "SerializationError: the answer of give: a function or a promise of another run cannot cross"
    );
}

#[test]
fn sandbox_functions_and_promises_are_lent() {
    #[derive(Deserialize)]
    struct Job {
        items: Vec<u32>,
        map: SandboxFunction,
    }
    let globals = || {
        Inputs::new()
            .with(
                "map",
                HostFunction::future(|job: Job| async move {
                    let mut mapped = Vec::new();
                    for item in job.items {
                        mapped.push(job.map.call::<u32>((item, "x")).await?);
                    }
                    Ok::<_, HostError>(mapped)
                }),
            )
            .with(
                "compose",
                HostFunction::future(
                    |f: SandboxFunction, g: SandboxFunction, x: Value| async move {
                        let y: Value = g.call((x,)).await?;
                        f.call::<Value>([y]).await
                    },
                ),
            )
            .with("pass", HostFunction::new(|f: SandboxFunction| (f.clone(), f)))
            .with(
                "settle",
                HostFunction::future(|p: SandboxPromise| async move { p.settled::<u8>().await }),
            )
            .with(
                "bare",
                HostFunction::future(
                    |f: SandboxFunction| async move { f.call::<String>(()).await },
                ),
            )
            .with(
                "curry",
                HostFunction::future(|f: SandboxFunction| async move {
                    let g: SandboxFunction = f.call((1,)).await?;
                    g.call::<u8>((2,)).await
                }),
            )
    };
    assert_eq!(
        eval::<Vec<u32>>(
            "export default await map({ items: [1, 2], map: async (n, x) => n * 10 })",
            globals()
        ),
        [10, 20]
    );
    assert_eq!(
        eval::<u8>("export default await compose((n) => n + 1, (n) => n * 2, 5)", globals()),
        11
    );
    assert!(eval::<bool>(
        "const f = () => 1; const [a, b] = pass(f); export default a === f && b === f",
        globals()
    ));
    assert_eq!(eval::<u8>("export default await settle(Promise.resolve(3))", globals()), 3);
    assert_eq!(
        eval::<u8>(
            "let r; const p = new Promise((f) => { r = f }); const s = settle(p); await 0; r(4); export default await s",
            globals()
        ),
        4
    );
    assert_eq!(thrown("settle(Promise.reject(new RangeError('no')))", globals()), "RangeError: no");
    assert_eq!(
        thrown("bare(() => { throw new TypeError('inside') })", globals()),
        "TypeError: inside"
    );
    assert_eq!(thrown("bare(() => { throw 5 })", globals()), "Error: 5");
    assert_eq!(
        thrown("bare(() => 5)", globals()),
        "TypeError: result: invalid type: integer `5`, expected a string"
    );
    assert_eq!(
        thrown("bare(5)", globals()),
        "TypeError: arguments[0]: invalid type: integer `5`, expected a function of the sandbox"
    );
    assert_eq!(
        thrown("bare(bare)", globals()),
        "TypeError: arguments[0]: invalid type: another function or promise, expected a function of the sandbox"
    );
    assert_eq!(eval::<u8>("export default await curry((a) => (b) => a + b)", globals()), 3);
}

#[test]
fn a_released_function_lets_a_run_stall() {
    let globals = Inputs::new()
        .with("forget", HostFunction::new(|_: SandboxFunction, _: SandboxFunction| ()));
    let result = run(
        "const f = () => 1; forget(f, f); forget(f, () => 2); await new Promise(() => {})",
        with(globals),
    );
    assert_eq!(result.error.map(|error| error.name).as_deref(), Some("SafetyCap"));
}

#[test]
fn what_a_promise_of_the_sandbox_came_to_is_its_handles() {
    #[derive(Deserialize)]
    struct Told {
        n: u8,
        itself: SandboxPromise,
    }
    let kept: Arc<Mutex<Option<SandboxPromise>>> = Arc::default();
    let (keep, give) = (Arc::clone(&kept), Arc::clone(&kept));
    let globals = Inputs::new()
        .with(
            "keep",
            HostFunction::new(move |p: SandboxPromise| *keep.lock().expect("lock") = Some(p)),
        )
        .with("give", HostFunction::new(move || give.lock().expect("lock").clone()))
        .with("tick", HostFunction::future(|| async {}));
    let source = "const itself = Promise.resolve().then(() => ({ itself, n: 3, f: () => 4 }));
        keep(itself); await tick(); await tick();
        const back = await give();
        export default [back.n, back.f(), (await back.itself).n, give() instanceof Promise]";
    assert_eq!(eval::<(u8, u8, u8, bool)>(source, globals), (3, 4, 3, true));
    let promise = kept.lock().expect("lock").take().expect("kept");
    let told: Told = block_on(promise.settled()).expect("it settled in time");
    drop(promise);
    let again: Told = block_on(told.itself.settled()).expect("it is the same promise");
    assert_eq!((told.n, again.n), (3, 3));
}

#[test]
fn promises_cross_in_values() {
    let make = |name: &'static str| {
        let promise = move || match name {
            "ready" => HostPromise::new(async { 42 }),
            _ => HostPromise::new(async { Err::<u8, _>(HostError::new("Nope", "no")) }),
        };
        HostFunction::new(move || Inputs::new().with("promise", promise()))
    };
    let globals = Inputs::new().with("ready", make("ready")).with("failed", make("failed"));
    let source = "const { promise } = ready(); let e;
        try { await failed().promise } catch (x) { e = x.name }
        export default [await promise, e, promise instanceof Promise]";
    assert_eq!(eval::<(u8, String, bool)>(source, globals), (42, "Nope".into(), true));
    let promise = HostPromise::new(async { 1 });
    let globals = || {
        let promise = promise.clone();
        Inputs::new().with("one", HostFunction::new(move || [promise.clone(), promise.clone()]))
    };
    let same = "const [a, b] = one(); export default [a === b, a === one()[0], await a]";
    assert_eq!(eval::<(bool, bool, u8)>(same, globals()), (true, true, 1));
    assert_eq!(thrown("one()[0]", globals()), "Error: the promise belongs to another run");
}

#[test]
fn promises_cross_in_what_a_run_is_given() {
    for _ in 0..50 {
        let promise = HostPromise::new(std::future::ready(5));
        assert_eq!(
            eval::<u8>("export default await ready", Inputs::new().with("ready", promise)),
            5
        );
    }
}

#[test]
fn reports_reach_the_sink_and_the_handle() {
    let (seen, sink) = mpsc::channel();
    let report = HostFunction::new(move |value: Value| {
        let number = value.deserialize::<u32>()?;
        seen.send(number).map_err(|_| HostError::new("Error", "closed"))?;
        Ok::<u32, Box<dyn std::error::Error + Send + Sync>>(number * 2)
    });
    let options = ExecutionOptions { report: Report::To(report), ..ExecutionOptions::default() };
    let source =
        "let e; const twice = report(1); report(2); try { report('x') } catch (x) { e = x.message }
        await new Promise(() => {}); ";
    let run = run_code(source, options);
    assert_eq!(sink.recv_timeout(Duration::from_mins(2)), Ok(1));
    assert_eq!(sink.recv_timeout(Duration::from_mins(2)), Ok(2));
    while run.reports().len() < 3 {
        thread::yield_now();
    }
    run.terminate(Some("enough"));
    let mut run = run;
    let result = block_on(&mut run).expect("no misuse");
    assert_eq!(result.error.as_ref().map(|error| error.message.as_str()), Some("enough"));
    assert_eq!(result.reports.len(), 3);
    assert_eq!(run.reports(), result.reports);
    assert!(!run.running());
    assert_eq!(block_on(&mut run).expect_err("taken").kind(), ErrorKind::Internal);
    let options = ExecutionOptions {
        report: HostFunction::new(|n: f64| n * 2.0).into(),
        ..ExecutionOptions::default()
    };
    let result = self::run("export default report(4)", options);
    assert_eq!(result.result.expect("success").deserialize::<u8>(), Ok(8));
}

#[test]
fn a_deadline_ends_a_run() {
    let run = run_code("for (;;) {}", ExecutionOptions::default());
    let terminator = run.terminator();
    let deadline = thread::spawn(move || {
        thread::park_timeout(Duration::from_millis(30));
        terminator.terminate(Some("2s budget"));
    });
    let result = run.wait().expect("no misuse");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(
        result.error.map(|error| (error.name, error.message)),
        Some(("Terminated".into(), "2s budget".into()))
    );
    deadline.join().expect("no panic");
    let run = run_code("for (;;) {}", ExecutionOptions::default());
    run.terminate(None);
    let error = run.wait().expect("no misuse").error.expect("terminated");
    assert_eq!(error.message, "terminated by the caller");
}

#[test]
fn a_dropped_handle_ends_its_run_and_its_futures() {
    struct OnDrop(mpsc::Sender<()>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (dropped, was_dropped) = mpsc::channel();
    let (started, has_started) = mpsc::channel();
    let hang = HostFunction::future(move || {
        let guard = OnDrop(dropped.clone());
        started.send(()).expect("received");
        async move {
            std::future::pending::<()>().await;
            drop(guard);
        }
    });
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("defaults");
    let run = runtime.run_code("await hang()", with(Inputs::new().with("hang", hang)));
    has_started.recv_timeout(Duration::from_mins(2)).expect("started");
    drop(run);
    was_dropped.recv_timeout(Duration::from_mins(2)).expect("dropped");
    assert_eq!(runtime.stats().terminated, 1);
    let (closed, is_closed) = mpsc::channel();
    runtime.close(move || closed.send(()).expect("received"));
    is_closed.recv_timeout(Duration::from_mins(2)).expect("closed");
    let error = runtime.run_code("", ExecutionOptions::default()).wait().expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::RuntimeClosed);
}

#[test]
fn what_a_run_was_lent_goes_with_it() {
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let kept: Arc<Mutex<Vec<SandboxFunction>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let function = HostFunction::new(move |f: SandboxFunction| {
        let _ = &held;
        keep.lock().expect("lock").push(f);
    });
    assert_eq!(
        run("keep(() => 1)", with(Inputs::new().with("keep", function))).status,
        Status::LinkError
    );
    assert_eq!(Arc::strong_count(&token), 1);
    assert_eq!(kept.lock().expect("lock").len(), 1);
}

#[test]
fn the_first_example_of_the_contract_runs() {
    let reported: Arc<Mutex<Vec<serde_json::Value>>> = Arc::default();
    let sink = Arc::clone(&reported);
    let options = ExecutionOptions {
        execute: Execute::function("scan"),
        imports: BTreeMap::from([
            (
                "fs".to_owned(),
                Inputs::new()
                    .with("readFile", HostFunction::future(|path: String| async move { path })),
            ),
            (
                "supervisor".to_owned(),
                Inputs::new().with(
                    "report",
                    HostFunction::new(move |payload| sink.lock().expect("lock").push(payload)),
                ),
            ),
        ]),
        globals: Inputs::new()
            .with(
                "console",
                Inputs::new().with("log", HostFunction::raw(|_| Ok(Value::undefined()))),
            )
            .with("getMessage", HostFunction::future(|| async { "latest username" })),
        ..ExecutionOptions::default()
    };
    let source = "
      import { readFile } from 'fs';
      import { report } from 'supervisor';
      const message = await getMessage();
      console.log(message);
      if (/username/.test(message)) {
        report({ topic: 'username', message });
      }
      export async function scan() {
        return { scanned: true };
      }";
    let result = run(source, options);
    assert_eq!(result.status, Status::Success);
    assert_eq!(
        result.result.expect("it").deserialize::<BTreeMap<String, bool>>(),
        Ok(BTreeMap::from([("scanned".into(), true)]))
    );
    let seen = reported.lock().expect("lock").clone();
    assert_eq!(seen, [serde_json::json!({ "topic": "username", "message": "latest username" })]);
}

async fn many(count: usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let runs: Vec<_> = (0..count)
        .map(|number| {
            let calls = Arc::clone(&calls);
            let later = HostFunction::future(move |n: usize| {
                let calls = Arc::clone(&calls);
                async move {
                    calls.fetch_add(1, Ordering::Relaxed);
                    for _ in 0..3 {
                        let mut yielded = false;
                        std::future::poll_fn(|context| {
                            if std::mem::replace(&mut yielded, true) {
                                return Poll::Ready(());
                            }
                            context.waker().wake_by_ref();
                            Poll::Pending
                        })
                        .await;
                    }
                    n + 1
                }
            });
            let globals = Inputs::new().with("later", later).with("start", number);
            run_code(
                "let n = start; for (let i = 0; i < 5; i++) n = await later(n); export default n",
                with(globals),
            )
        })
        .collect();
    for (number, run) in runs.into_iter().enumerate() {
        let value = run.await.expect("no misuse").result.expect("success");
        assert_eq!(value.deserialize::<usize>(), Ok(number + 5));
    }
    assert_eq!(calls.load(Ordering::Relaxed), 5 * count);
}

#[test]
fn many_runs_go_on_at_once_without_a_runtime() {
    block_on(many(200));
}

#[tokio::test]
async fn many_runs_go_on_at_once_on_one_thread() {
    many(200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_runs_go_on_at_once_on_many_threads() {
    many(200).await;
}

#[test]
fn many_threads_wait_at_once() {
    thread::scope(|scope| {
        for number in 0..16 {
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(
                        eval::<u32>("export default n * 2", Inputs::new().with("n", number)),
                        number * 2
                    );
                }
            });
        }
    });
}

#[tokio::test]
async fn futures_run_in_the_callers_runtime() {
    tokio::task::LocalSet::new()
        .run_until(async {
            let here = tokio::runtime::Handle::current().id();
            let same = move || tokio::runtime::Handle::current().id() == here;
            let globals = Inputs::new()
                .with(
                    "later",
                    HostFunction::future(move || async move {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        same()
                    }),
                )
                .with(
                    "early",
                    HostFunction::future(move || tokio::time::sleep(Duration::from_millis(1))),
                )
                .with("now", HostFunction::new(same));
            let run =
                run_code("await early(); export default [await later(), now()]", with(globals));
            let value = run.await.expect("no misuse").result.expect("success");
            assert_eq!(value.deserialize::<(bool, bool)>(), Ok((true, true)));
        })
        .await;
}

#[tokio::test]
async fn a_timeout_around_the_handle_ends_the_run() {
    let mut run = run_code("for (;;) {}", ExecutionOptions::default());
    let timeout = tokio::time::timeout(Duration::from_millis(20), &mut run).await;
    assert!(timeout.is_err());
    run.terminate(Some("20ms budget"));
    let result = run.await.expect("no misuse");
    assert_eq!(result.error.map(|error| error.message).as_deref(), Some("20ms budget"));
}

#[test]
fn a_runtime_that_is_gone_rejects_its_promises() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let go = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go);
    let globals = Inputs::new()
        .with(
            "pause",
            HostFunction::new(move || {
                while !wait.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            }),
        )
        .with("later", HostFunction::future(|| async { 1 }));
    let run = {
        let _entered = runtime.enter();
        run_code(
            "pause(); let e; try { await later() } catch (x) { e = x.message } export default e",
            with(globals),
        )
    };
    drop(runtime);
    go.store(true, Ordering::Release);
    let value = run.wait().expect("no misuse").result.expect("success");
    assert_eq!(
        value.deserialize::<String>().as_deref(),
        Ok("the host dropped the promise's future")
    );
}

#[test]
fn termination_does_not_wait_for_a_synchronous_function() {
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let block = HostFunction::new(move || {
        entered.send(()).expect("received");
        let _ = released.lock().expect("lock").recv_timeout(Duration::from_mins(2));
    });
    let run = run_code("block()", with(Inputs::new().with("block", block)));
    has_entered.recv_timeout(Duration::from_mins(2)).expect("entered");
    let started = Instant::now();
    run.terminate(Some("now"));
    let result = run.wait().expect("no misuse");
    // The function would return after twice that time.
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
    assert_eq!(result.status, Status::Terminated);
    release.send(()).expect("received");
}

#[test]
fn a_pinned_handle_is_a_future_like_any_other() {
    let mut run: Pin<Box<dyn Future<Output = _> + Send>> =
        Box::pin(run_code("export default 1", ExecutionOptions::default()));
    let first = block_on(run.as_mut()).expect("no misuse");
    assert_eq!(first.status, Status::Success);
}

/// Shared objects are read anew at each place, so a small message must not become a large value.
#[test]
fn what_is_shared_is_read_a_few_times() {
    const LARGE: usize = 1 << 20;
    let message = |times: u32, shared: fn(&mut Writer)| {
        let mut writer = Writer::new();
        writer.array(times + 1);
        let index = writer.next_object();
        shared(&mut writer);
        (0..times).for_each(|_| writer.reference(index));
        writer.finish()
    };
    let text: fn(&mut Writer) = |writer| {
        writer.array(1);
        writer.string(&"x".repeat(LARGE));
    };
    let buffer: fn(&mut Writer) = |writer| {
        let blob = writer.blob(vec![7; LARGE]);
        writer.buffer(blob);
    };
    let few: Vec<Vec<String>> = message(9, text).deserialize().expect("ten of them");
    assert_eq!(few.len(), 10);
    for shared in [text, buffer] {
        let outcome = message(200, shared).deserialize::<Vec<Value>>().map(drop);
        let error = outcome.expect_err("more than it may be").to_string();
        assert!(error.ends_with("the value repeats shared objects too often"), "{error}");
    }
}
