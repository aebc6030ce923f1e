//! `parseCSV` as code in a sandbox sees it, by a table of cases.

use isolane::{ExecutionOptions, HostFunction, Inputs, Status, run_code};
use serde_json::{Value, json};

fn options(memory_limit_bytes: Option<u64>) -> ExecutionOptions {
    let function = isolane_kit::function("parseCSV").expect("a function of the kit");
    let globals = Inputs::new().with("parseCSV", HostFunction::native(function));
    ExecutionOptions { globals, memory_limit_bytes, ..Default::default() }
}

fn result(source: &str) -> Value {
    let run = run_code(source, options(None));
    run.wait().expect("a run").into_value().expect("a success").deserialize().expect("data")
}

/// The rows of each text of a table.
fn check(options: &str, cases: &[(&str, Value)]) {
    let texts: Vec<&str> = cases.iter().map(|(text, _)| *text).collect();
    let expected: Vec<&Value> = cases.iter().map(|(_, rows)| rows).collect();
    let source = format!(
        "export default {}.map((text) => parseCSV(text{options}))",
        serde_json::to_string(&texts).expect("JSON")
    );
    let Value::Array(results) = result(&source) else { panic!("no rows") };
    for ((text, expected), rows) in texts.iter().zip(expected).zip(&results) {
        assert_eq!(rows, expected, "{text:?}");
    }
}

#[test]
fn rows_are_arrays() {
    check(
        "",
        &[
            ("", json!([])),
            ("a", json!([["a"]])),
            ("a,b\nc,d", json!([["a", "b"], ["c", "d"]])),
            ("a,b\nc,d\n", json!([["a", "b"], ["c", "d"]])),
            ("a\r\nb\rc\nd", json!([["a"], ["b"], ["c"], ["d"]])),
            // Empty lines have no row; a line with an empty field has one.
            ("\n\r\n\ra\n\n\nb\n\n", json!([["a"], ["b"]])),
            (",", json!([["", ""]])),
            ("a,\n,b", json!([["a", ""], ["", "b"]])),
            ("\"\"\na", json!([[""], ["a"]])),
            (" \n", json!([[" "]])),
            // Ragged rows stay as they are.
            ("a\nb,c\nd,e,f", json!([["a"], ["b", "c"], ["d", "e", "f"]])),
            // Nothing is trimmed, and all is text.
            (" a , 1,true", json!([[" a ", " 1", "true"]])),
            ("\u{FEFF}a\n\u{FEFF}b", json!([["a"], ["\u{FEFF}b"]])),
            ("\u{FEFF}\"a,b\"", json!([["a,b"]])),
            ("ä,😀\n€,\u{0}", json!([["ä", "😀"], ["€", "\u{0}"]])),
        ],
    );
}

#[test]
fn quotes_count_at_the_start_of_a_field_only() {
    check(
        "",
        &[
            ("\"a,b\",c", json!([["a,b", "c"]])),
            ("\"a\"\"b\"", json!([["a\"b"]])),
            ("\"\"\"\"", json!([["\""]])),
            ("\"\"\"a\"\"\"", json!([["\"a\""]])),
            ("\"a\nb\r\nc\rd\"\ne", json!([["a\nb\r\nc\rd"], ["e"]])),
            ("a\"b\"c,d", json!([["a\"b\"c", "d"]])),
            (" \"a,b\"", json!([[" \"a", "b\""]])),
            // The text behind a closing quote belongs to the field.
            ("\"a\"b,c", json!([["ab", "c"]])),
            ("\"a\" \"b\",c", json!([["a \"b\"", "c"]])),
            ("\"a\"\nb", json!([["a"], ["b"]])),
            // An unclosed quote runs to the end.
            ("\"a,b\nc", json!([["a,b\nc"]])),
            ("a,\"", json!([["a", ""]])),
            ("\"", json!([[""]])),
            ("\"\"\"", json!([["\""]])),
            ("\"a\"\"", json!([["a\""]])),
        ],
    );
}

#[test]
fn a_header_names_the_fields() {
    check(
        ", { header: true }",
        &[
            ("", json!([])),
            ("a,b", json!([])),
            ("a,b\n1,2\n3,4", json!([{ "a": "1", "b": "2" }, { "a": "3", "b": "4" }])),
            ("\n\na\n\n1", json!([{ "a": "1" }])),
            ("a,b,c\n1", json!([{ "a": "1", "b": "", "c": "" }])),
            (
                "a\n1,2,3\n4\n5,6",
                json!([
                    { "a": "1", "__parsed_extra": ["2", "3"] }, { "a": "4" }, { "a": "5", "__parsed_extra": ["6"] },
                ]),
            ),
            ("a,a,a\n1,2,3", json!([{ "a": "1", "a_2": "2", "a_2_2": "3" }])),
            ("a_2,a,a\n1,2,3", json!([{ "a_2": "1", "a": "2", "a_2_2": "3" }])),
            (",b,\n1,2,3", json!([{ "column_1": "1", "b": "2", "column_3": "3" }])),
            ("column_2,\n1,2", json!([{ "column_2": "1", "column_2_2": "2" }])),
            ("__parsed_extra\n1,2", json!([{ "__parsed_extra_2": "1", "__parsed_extra": ["2"] }])),
            ("\"a,b\",\"\"\"\"\n1,2", json!([{ "a,b": "1", "\"": "2" }])),
            (" a \n1", json!([{ " a ": "1" }])),
        ],
    );
}

#[test]
fn names_of_the_object_prototype_are_own_properties() {
    let source = "const [row] = parseCSV('__proto__,constructor,toString\\n1,2,3', { header: true });
        export default [Object.keys(row), Object.getPrototypeOf(row) === Object.prototype, row.__proto__,
            Object.hasOwn(row, '__proto__'), ({}).polluted === undefined]";
    let keys = ["__proto__", "constructor", "toString"];
    assert_eq!(result(source), json!([keys, true, "1", true, true]));
}

#[test]
fn any_other_character_may_be_the_delimiter() {
    let rows = json!([["a", "b,c"]]);
    for delimiter in [";", "\t", "|", " ", "€", "😀", "\u{0}", "a"] {
        let text = format!("a{delimiter}b,c").replace("aab", "\"a\"ab");
        let arguments = serde_json::to_string(&(text, json!({ "delimiter": delimiter })));
        let source = format!("export default parseCSV(...{})", arguments.expect("JSON"));
        assert_eq!(result(&source), rows, "{delimiter:?}");
    }
    // Their UTF-8 begins with the same bytes.
    let source = "export default parseCSV('èaéb', { delimiter: 'é' })";
    assert_eq!(result(source), json!([["èa", "b"]]));
}

#[test]
fn lone_surrogates_survive() {
    let source = r#"const rows = parseCSV('\ud800,"\udc00""a",😀\n\ud800\udc00', { header: false });
        const [row] = parseCSV('\ud800,b\n\udc01,\n', { header: true });
        export default [rows[0][0] === '\ud800', rows[0][1] === '\udc00"a', rows[0][2], rows[1][0] === '𐀀',
            row['\ud800'] === '\udc01', row.b]"#;
    assert_eq!(result(source), json!([true, true, "😀", true, true, ""]));
}

#[test]
fn wrong_arguments_are_type_errors() {
    let calls = [
        ("parseCSV()", "parseCSV takes a text"),
        ("parseCSV(1)", "parseCSV takes a text"),
        ("parseCSV(['a'])", "parseCSV takes a text"),
        ("parseCSV({ header: true }, { header: true })", "parseCSV takes a text"),
        ("parseCSV('a', 1)", "the options of parseCSV are an object"),
        ("parseCSV('a', [])", "the options of parseCSV are an object"),
        ("parseCSV('a', { header: 1 })", "the option 'header' of parseCSV is true or false"),
        ("parseCSV('a', { header: null })", "the option 'header' of parseCSV is true or false"),
    ];
    let delimiters = ["''", "'ab'", "'\"'", "'\\n'", "'\\r'", "'\\ud800'", "1", "{}", "null"];
    let delimiter = "the option 'delimiter' of parseCSV is one character, no quote and no line end";
    let delimiters =
        delimiters.map(|text| (format!("parseCSV('a', {{ delimiter: {text} }})"), delimiter));
    let calls = calls.map(|(call, message)| (call.to_owned(), message));
    for (call, message) in calls.into_iter().chain(delimiters) {
        let source = format!(
            "const caught = [];
            try {{ {call} }} catch (e) {{ caught.push(e.name, e.message) }}
            export default caught"
        );
        assert_eq!(result(&source), json!(["TypeError", message]), "{call}");
    }
}

#[test]
fn options_that_are_unknown_or_undefined_are_ignored() {
    let source = "const options = { header: undefined, delimiter: undefined, other: { header: true, delimiter: 1 } };
        export default [parseCSV('a', options), parseCSV('a', null), parseCSV('a', undefined, { header: 1 })]";
    assert_eq!(result(source), json!([[["a"]], [["a"]], [["a"]]]));
}

#[test]
fn long_texts_are_read_like_short_ones() {
    let source = "const line = (i) => `${i},\"a\"\"${i}\",é${i}`;
        const text = ['n,q,e', ...Array.from({ length: 20000 }, (_, i) => line(i))].join('\\r\\n');
        const rows = parseCSV(text, { header: true });
        export default [rows.length, rows.every((row, i) =>
            row.n === `${i}` && row.q === `a\"${i}` && row.e === `é${i}` && Object.keys(row).length === 3),
            parseCSV(text).length]";
    assert_eq!(result(source), json!([20000, true, 20001]));
}

/// Each text is short, and its rows are not.
#[test]
fn rows_that_a_run_cannot_hold_end_it_before_they_are_made() {
    let wide = "parseCSV('a,'.repeat(100000) + '\\n' + '1\\n'.repeat(100000), { header: true })";
    let alike = "parseCSV('a,'.repeat(60000), { header: true })";
    let fields = "parseCSV(','.repeat(8e6))";
    let small = "parseCSV('a,'.repeat(2000) + '\\n' + '1\\n'.repeat(8000), { header: true })";
    let rows = "parseCSV('\"\"\\n'.repeat(3e6))";
    for source in [wide, alike, fields, small, rows] {
        let run = run_code(format!("export default {source}.length"), options(Some(24 << 20)));
        assert_eq!(run.wait().expect("a run").status, Status::Memory, "{source}");
    }
}
