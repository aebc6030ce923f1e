//! The JSON form, by a table of cases: results of code in a sandbox, and what `JSON.stringify` makes of the same inside.

use std::time::{Duration, Instant};

use isolane::{ExecutionOptions, Value, run_code, value::Writer};
use isolane_kit::{
    json_form::{JsonFault, json_form},
    room::FixedRoom,
};

fn message(expression: &str) -> Value {
    let source = format!("export default {expression}");
    let run = run_code(source, ExecutionOptions::default());
    run.wait().expect("a run").into_value().unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn form(value: &Value) -> Result<String, JsonFault> {
    json_form(value, "result", &mut FixedRoom::new(64 << 20))
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        assert_eq!(form(&message(expression)).as_deref(), Ok(*expected), "{expression}");
    }
}

/// Expressions whose JSON form is that of `JSON.stringify`.
const AS_STRINGIFY: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "1",
    "-1",
    "1.5",
    "0.1",
    "1e21",
    "1e20",
    "123456789012345680000",
    "-1.5e300",
    "5e-324",
    "1e-6",
    "1e-7",
    "1.25e-7",
    "0.000001234",
    "NaN",
    "Infinity",
    "2**53",
    "1.7976931348623157e308",
    "4294967295.5",
    "100",
    "123456.789",
    "1e2",
    "-0.001",
    "''",
    "'a'",
    r#"'"\\\b\f\n\r\t\u0000\u001f\u007f/<\u2028é😀'"#,
    r"'\ud800'",
    r"'a\udc00b\ud83d\ude00\ud83d'",
    "[]",
    "[1, [2, []], {}]",
    "[undefined, 1]",
    "[, 1, , 2, ,]",
    "new Array(3)",
    "{}",
    "({ a: 1, b: { c: [null] }, 'd e': 'f' })",
    "({ a: undefined, b: 1, c: undefined })",
    "({ a: undefined })",
    "({ 2: 'b', 1: 'a', x: 1 })",
    "({ '': 1, '\"': 2, '\\ud800': 3 })",
    "JSON.parse('{\"__proto__\":1}')",
    "new Date(0)",
    "new Date(NaN)",
    "new Date(8.64e15)",
    "new Date(-8.64e15)",
    "new Date(-1)",
    "new Date(951782400000)",
    "new Date(4107542399999)",
    "new Date(-62198755200000)",
    "new Date(253402300800000)",
    "[new Date(1234567890123)]",
    "/a/g",
    "({ r: /a/ })",
    "(() => { const a = { x: 1 }; return [a, a, { a }] })()",
    "(() => { const a = []; return [a, [a], a] })()",
];

#[test]
fn plain_data_is_as_json_stringify_has_it() {
    for expression in AS_STRINGIFY {
        let inside: String =
            message(&format!("JSON.stringify({expression})")).deserialize().expect("a text");
        assert_eq!(form(&message(&format!("({expression})"))), Ok(inside), "{expression}");
    }
}

#[test]
fn random_numbers_are_as_json_stringify_has_them() {
    let list = "Array.from({ length: 20000 }, (_, i) => {
        const view = new DataView(new ArrayBuffer(8));
        view.setUint32(0, Math.imul(i, 2654435761) >>> 0); view.setUint32(4, Math.imul(i, 40503) >>> 0);
        return [view.getFloat64(0), i / 1000, i * 1e17, i / 7e9] })";
    let inside: String = message(&format!("JSON.stringify({list})")).deserialize().expect("a text");
    let outside = form(&message(list)).expect("a form");
    for (outside, inside) in outside.split(',').zip(inside.split(',')) {
        assert_eq!(outside, inside);
    }
    assert_eq!(outside.len(), inside.len());
}

#[test]
fn other_values_have_forms_of_their_own() {
    check(&[
        ("undefined", "null"),
        ("1n", "1"),
        ("-1n", "-1"),
        ("0n", "0"),
        ("2n ** 53n - 1n", "9007199254740991"),
        ("-(2n ** 53n - 1n)", "-9007199254740991"),
        ("2n ** 53n", "\"9007199254740992\""),
        ("-(2n ** 64n)", "\"-18446744073709551616\""),
        ("10n ** 19n", "\"10000000000000000000\""),
        ("10n ** 38n + 7n", "\"100000000000000000000000000000000000007\""),
        ("[1n, { a: 10n ** 20n }]", "[1,{\"a\":\"100000000000000000000\"}]"),
        ("new Map()", "{}"),
        ("new Map([['a', 1], ['b', new Map([['c', 2]])]])", "{\"a\":1,\"b\":{\"c\":2}}"),
        ("new Map([['a', undefined], ['b', 1]])", "{\"b\":1}"),
        ("new Map([[1, 'a'], ['b', undefined]])", "[[1,\"a\"],[\"b\",null]]"),
        ("new Map([[{ k: 1 }, [2]]])", "[[{\"k\":1},[2]]]"),
        (
            "new Map([['a', 1], [null, new Map([['b', 2]])], [undefined, 3]])",
            "[[\"a\",1],[null,{\"b\":2}],[null,3]]",
        ),
        (
            "new Map([[new Map([[1, 2]]), new Map([['a', new Map([[3, 4]])]])]])",
            "[[[[1,2]],{\"a\":[[3,4]]}]]",
        ),
        ("new Map([['b', 1], ['1', 2], ['__proto__', 3]])", "{\"b\":1,\"1\":2,\"__proto__\":3}"),
        (
            "(() => { const k = 'a'; const m = new Map([[k, 1]]); return [m, m] })()",
            "[{\"a\":1},{\"a\":1}]",
        ),
        ("new Set([1, 'a', undefined, [2]])", "[1,\"a\",null,[2]]"),
        ("new Set()", "[]"),
        ("new Uint8Array([1, 2, 3, 255])", "\"AQID/w==\""),
        ("new ArrayBuffer(2)", "\"AAA=\""),
        ("new Uint16Array([258])", "\"AgE=\""),
        ("new Uint8Array([9, 1, 2, 3]).subarray(1, 3)", "\"AQI=\""),
        ("new DataView(new Uint8Array([9, 1, 2, 3]).buffer, 1)", "\"AQID\""),
        ("new Uint8Array()", "\"\""),
        ("({ b: new Float64Array([1]) })", "{\"b\":\"AAAAAAAA8D8=\"}"),
        ("new TypeError('a \"b\"')", "{\"name\":\"TypeError\",\"message\":\"a \\\"b\\\"\"}"),
        (
            "[Object.assign(new Error('m'), { name: 'N', code: 1 })]",
            "[{\"name\":\"N\",\"message\":\"m\"}]",
        ),
        (
            "(() => { const e = new Error('m'); return [e, e] })()",
            "[{\"name\":\"Error\",\"message\":\"m\"},{\"name\":\"Error\",\"message\":\"m\"}]",
        ),
        // Long arrays with few elements cross as a table of these.
        (
            "(() => { const a = []; a[2] = 1; a[5] = undefined; a.length = 7; return a })()",
            "[null,null,1,null,null,null,null]",
        ),
        (
            "(() => { const a = new Array(20); a[18] = 'x'; return [a, a] })().map((a) => a.length)",
            "[20,20]",
        ),
    ]);
}

#[test]
fn functions_are_left_out() {
    let mut writer = Writer::new();
    writer.array(3);
    writer.object();
    writer.key("f");
    writer.sandbox_function(1);
    writer.string("f");
    writer.key("g");
    writer.reference(2);
    writer.key("h");
    writer.int(1);
    writer.end_object();
    writer.reference(2);
    writer.host_function(7);
    writer.string("g");
    assert_eq!(form(&writer.finish()), Ok("[{\"h\":1},null,null]".into()));
    let mut writer = Writer::new();
    writer.host_function(7);
    writer.string("g");
    assert_eq!(form(&writer.finish()), Ok("null".into()));
}

#[test]
fn sparse_arrays_have_their_holes() {
    let mut writer = Writer::new();
    writer.sparse_array(5);
    writer.sparse_index(1);
    writer.array(0);
    writer.sparse_index(3);
    writer.reference(1);
    writer.end_sparse_array();
    assert_eq!(form(&writer.finish()), Ok("[null,[],null,[],null]".into()));
    let mut writer = Writer::new();
    writer.sparse_array(u32::MAX);
    writer.end_sparse_array();
    assert_eq!(form(&writer.finish()), Err(JsonFault::NoRoom));
}

#[test]
fn cycles_and_promises_have_no_form() {
    let of = |source: &str| form(&message(&format!("(() => {{ {source} }})()")));
    let cases = [
        ("const a = {}; a.a = a; return a", "result.a: a cycle has no JSON form"),
        (
            "const a = []; a[0] = [1, { 'b c': a }]; return { a }",
            "result.a[0][1][\"b c\"]: a cycle has no JSON form",
        ),
        (
            "const m = new Map(); m.set('k', [m]); return m",
            "result.values()[0][0]: a cycle has no JSON form",
        ),
        (
            "const m = new Map(); m.set(m, 1); return m",
            "result.keys()[0]: a cycle has no JSON form",
        ),
        (
            "const s = new Set([1]); s.add({ s }); return s",
            "result.values()[1].s: a cycle has no JSON form",
        ),
    ];
    for (source, text) in cases {
        assert_eq!(of(source), Err(JsonFault::Unserializable(text.into())), "{source}");
    }
    let promise = |write: fn(&mut Writer)| {
        let mut writer = Writer::new();
        writer.object();
        writer.key("p");
        write(&mut writer);
        writer.end_object();
        form(&writer.finish())
    };
    let fault = || {
        Err(JsonFault::Unserializable(
            "result.p: a promise has no JSON form; await it first".into(),
        ))
    };
    assert_eq!(promise(|writer| writer.host_promise(1)), fault());
    assert_eq!(promise(|writer| writer.sandbox_promise(1)), fault());
    let deep = of(
        "let a = { end: null }; const first = a; for (let i = 0; i < 100; i++) a = [a]; first.end = a; return a",
    );
    let steps = "[0]".repeat(12);
    let text = format!("result{steps}…{}.end: a cycle has no JSON form", "[0]".repeat(11));
    assert_eq!(deep, Err(JsonFault::Unserializable(text)));
}

#[test]
fn depth_takes_no_stack() {
    let deep = |open: fn(&mut Writer), close: fn(&mut Writer)| {
        let mut writer = Writer::new();
        for _ in 0..1_000_000 {
            open(&mut writer);
        }
        writer.null();
        for _ in 0..1_000_000 {
            close(&mut writer);
        }
        json_form(&writer.finish(), "result", &mut FixedRoom::new(1 << 30)).expect("a form").len()
    };
    assert_eq!(deep(|writer| writer.array(1), |_| {}), 2_000_004);
    assert_eq!(
        deep(
            |writer| {
                writer.map(1);
                writer.string("");
            },
            |_| {}
        ),
        5_000_004
    );
    assert_eq!(
        deep(
            |writer| {
                writer.object();
                writer.key("");
            },
            Writer::end_object
        ),
        5_000_004
    );
}

/// Each level has the one below it twice: 2^40 elements.
#[test]
fn texts_that_grow_by_sharing_end_at_the_room() {
    let mut writer = Writer::new();
    for _ in 0..40 {
        writer.array(2);
    }
    writer.array(0);
    for level in (1..=40).rev() {
        writer.reference(level);
    }
    assert_eq!(form(&writer.finish()), Err(JsonFault::NoRoom));
    // Objects whose members are all left out have no text, and are not read again for it.
    let mut writer = Writer::new();
    writer.array(200_001);
    writer.object();
    for key in 0..200_000 {
        writer.key(&key.to_string());
        writer.undefined();
    }
    writer.end_object();
    for _ in 0..200_000 {
        writer.reference(1);
    }
    assert_eq!(form(&writer.finish()).map(|text| text.len()), Ok(3 * 200_001 + 1));
}

#[test]
fn the_room_is_the_bound() {
    let value = Value::serialize(&"x".repeat(1000)).expect("a value");
    let within = |bytes: usize| {
        json_form(&value, "result", &mut FixedRoom::new(bytes)).map(|text| text.len())
    };
    assert_eq!(within(1100), Ok(1002));
    assert_eq!(within(1001), Err(JsonFault::NoRoom));
    let mut past = FixedRoom::new(1 << 20).until(Instant::now());
    assert_eq!(json_form(&value, "result", &mut past), Err(JsonFault::NoRoom));
}

#[test]
fn long_bigints_end_when_they_are_not_wanted() {
    let mut writer = Writer::new();
    writer.array(1000);
    for _ in 0..1000 {
        writer.bigint(true, &vec![0xFF; 128 << 10]);
    }
    let value = writer.finish();
    let started = Instant::now();
    let mut room = FixedRoom::new(1 << 30).until(started + Duration::from_millis(50));
    assert_eq!(json_form(&value, "result", &mut room), Err(JsonFault::NoRoom));
    // All of them take minutes.
    assert!(started.elapsed() < Duration::from_mins(1));
}

#[test]
fn malformed_messages_are_refused() {
    for nodes in [&[][..], &[0xFF], &[0x11], &[0x12, 5], &[0x19, 9, 0, 0, 0], &[0x10, 3]] {
        let value = Value::from_parts(nodes.to_vec(), Vec::new());
        assert_eq!(form(&value), Err(JsonFault::Malformed), "{nodes:?}");
    }
    let mut view = vec![0x1A, 2, 0, 0, 0, 0];
    view.extend(u64::MAX.to_le_bytes());
    view.extend(u64::MAX.to_le_bytes());
    assert_eq!(form(&Value::from_parts(view, vec![vec![1, 2]])), Err(JsonFault::Malformed));
}
