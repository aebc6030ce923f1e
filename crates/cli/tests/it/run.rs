//! `isolane run`, `check` and `doctor`: whole outputs.

use std::fs;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::program::{code, isolane};

fn done(code: i32, stdout: &str, stderr: &str) -> (Option<i32>, String, String) {
    (Some(code), stdout.to_owned(), stderr.to_owned())
}

#[test]
fn the_console_comes_first_and_the_value_last() {
    let source = "console.log('a %d', 1, [2]); console.warn('b'); export default { c: 3n }";
    assert_eq!(code(source, &[]), done(0, "a 1 [ 2 ]\n{ c: 3n }\n", "b\n"));
}

#[test]
fn a_module_without_a_default_export_is_no_mistake() {
    assert_eq!(code("console.log(1); export const a = 2", &[]), done(0, "1\n", ""));
}

#[test]
fn flags_hand_over_values() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("shop.json"), r#"{ "tax": 0.5 }"#).expect("a file");
    fs::write(
        folder.path().join("a.ts"),
        "import { tax } from 'shop'; export const f = (x: number) => [x, tax, y];",
    )
    .expect("a file");
    let flags = ["run", "a.ts", "--fn", "f", "--args", "[1]", "--global", "y={\"z\":2}"];
    let imports = ["--import", "shop=shop.json"];
    let arguments = [&flags[..], &imports].concat();
    assert_eq!(isolane(folder.path(), &arguments), done(0, "[ 1, 0.5, { z: 2 } ]\n", ""));
}

#[test]
fn json_has_the_whole_result_with_tags() {
    let source = "console.log(undefined); export default [1n, -0, new Date(0), new Map([[1, { $a: 2 }]]), \
                  new Uint8Array([7]), [, 1], NaN, 1.5, 'é']";
    let (exit, stdout, stderr) = code(source, &["--json"]);
    let result: Json = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((exit, stderr.as_str(), stdout.lines().count()), (Some(0), "", 1));
    let expected = json!([
        { "$bigint": "1" },
        { "$number": "-0" },
        { "$date": 0 },
        { "$map": [[1, { "$entries": [["$a", 2]] }]] },
        { "$bytes": [7] },
        { "$sparse": [2, { "1": 1 }] },
        { "$number": "NaN" },
        1.5,
        "é",
    ]);
    assert_eq!(result["result"], expected);
    assert_eq!(result["status"], "success");
    assert_eq!(result["logs"][0]["args"], json!([{ "$undefined": true }]));
}

#[test]
fn json_has_the_reports() {
    let (_, stdout, _) = code("report({ step: 1 }); report(2n)", &["--json"]);
    let result: Json = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(result["reports"], json!([{ "step": 1 }, { "$bigint": "2" }]));
}

#[test]
fn code_cannot_pass_for_a_failure_of_isolane() {
    for name in ["WorkerLost", "InternalError"] {
        let source = format!("throw {{ name: '{name}', message: 'x' }}");
        assert_eq!(code(&source, &[]).0, Some(1), "{name}");
    }
}

#[test]
fn json_keeps_identity_and_long_numbers() {
    let source = "const a: any = { n: -(2n ** 200n) }; a.self = a; export default a";
    let (_, stdout, _) = code(source, &["--json"]);
    let result: Json = serde_json::from_str(&stdout).expect("JSON");
    let number = "-1606938044258990275541962092341162602522202993782792835301376";
    let expected =
        json!({ "$id": "0", "$value": { "n": { "$bigint": number }, "self": { "$ref": "0" } } });
    assert_eq!(result["result"], expected);
}

#[test]
fn a_link_error_has_its_line_and_a_caret() {
    let stderr = "link_error  ReferenceError: Cannot find module './b' imported from '<stdin>'; no modules were given; \
                  --modules DIR hands over the sources of a folder  <stdin>:1:19\n  \
                  1 | import { b } from './b';\n    \
                  |                   ^\n";
    assert_eq!(code("import { b } from './b';\n", &[]), done(3, "", stderr));
}

#[test]
fn a_folder_of_modules_is_handed_over() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir(folder.path().join("lib")).expect("a folder");
    fs::write(folder.path().join("lib/b.ts"), "export const b: number = 2").expect("a file");
    fs::write(folder.path().join("a.ts"), "import { b } from './lib/b.js'; export default b")
        .expect("a file");
    assert_eq!(isolane(folder.path(), &["run", "a.ts", "--modules", "."]), done(0, "2\n", ""));
}

#[test]
fn each_ending_has_its_exit_code() {
    for (source, flags, expected) in [
        ("throw new Error('x')", &[][..], 1),
        ("for (;;);", &["--timeout", "1ms"], 124),
        ("const a = []; for (;;) a.push(new Array(1000))", &["--memory", "4m"], 4),
        ("await new Promise(() => {})", &[], 5),
        ("export default 1", &["--args", "{}"], 2),
        ("export default 1", &["--global", "a"], 2),
        ("export default 1", &["--timeout", "2"], 2),
        ("export default 1", &["--memroy", "2m"], 2),
    ] {
        let (exit, stdout, stderr) = code(source, flags);
        assert_eq!((exit, stdout.as_str()), (Some(expected), ""), "{source} {flags:?} {stderr}");
        assert!(!stderr.is_empty(), "{source}");
    }
}

#[test]
fn check_runs_nothing() {
    let folder = TempDir::new().expect("a folder");
    let write = |text| fs::write(folder.path().join("a.ts"), text).expect("a file");
    write("console.log(1); for (;;);");
    assert_eq!(isolane(folder.path(), &["check", "a.ts"]), done(0, "", ""));
    write("const a = ;");
    let (exit, stdout, stderr) = isolane(folder.path(), &["check", "a.ts", "--json"]);
    let found: Json = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((exit, stderr.as_str()), (Some(3), ""));
    let problem = &found["problems"][0];
    assert_eq!(found["ok"], false);
    let place = [&problem["filename"], &problem["line"], &problem["column"]];
    assert_eq!(place, [&json!("a.ts"), &json!(1), &json!(11)]);
}

#[test]
#[cfg(unix)]
fn check_hands_sources_and_types_to_a_checker() {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    // It says what it was given, as the real one says mistakes.
    write(
        "tsc",
        "#!/bin/sh\ncat ../tsconfig.json ../declarations.d.ts lib/two.ts a.ts >&2\n\
         case $(cat a.ts) in *good*) exit 0;; *slow*) sleep 600;; *bad*) echo 'error TS1: no options'; exit 1;; esac\n\
         echo \"a.ts(1,3): error TS2322: Type 'x' is wrong.\"; echo '  Types differ.'; exit 2\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path().join("tsc"), mode).expect("a mode");
    fs::create_dir_all(folder.path().join("src/lib")).expect("a folder");
    write("src/lib/two.ts", "export const two = 2;");
    let check = |flags: &[&str]| {
        let arguments =
            ["check", "src/a.ts", "--modules", "src", "--tsc", "./tsc", "--global", "a=1"];
        isolane(folder.path(), &[&arguments[..], flags].concat())
    };
    write("src/a.ts", "/* good */ import { two } from './lib/two.ts'; a + two;");
    assert_eq!(check(&[]), done(0, "", ""));
    assert_eq!(check(&["--json"]), done(0, "{\"ok\":true,\"problems\":[]}\n", ""));
    write("src/a.ts", "  a.x();");
    let shown = "type_error  TS2322: Type 'x' is wrong.\n  Types differ.  a.ts:1:3\n  1 |   a.x();\n    |   ^\n";
    assert_eq!(check(&[]), done(1, "", shown));
    let (exit, stdout, _) = check(&["--json"]);
    let found: Json = serde_json::from_str(&stdout).expect("JSON");
    let expected = json!({
        "severity": "error", "name": "TS2322", "message": "Type 'x' is wrong.\n  Types differ.", "filename": "a.ts",
        "line": 1, "column": 3,
    });
    assert_eq!((exit, found), (Some(1), json!({ "ok": false, "problems": [expected] })));
    write("src/a.ts", "/* bad */");
    assert_eq!(check(&[]), done(70, "", "error: --tsc: it failed: error TS1: no options\n"));
    write("src/a.ts", "/* slow */");
    assert_eq!(
        check(&["--timeout", "1s"]),
        done(124, "", "error: --tsc: the time limit is over\n")
    );
    // Code that does not link is not handed on.
    write("src/a.ts", "/* good */ import './none'");
    assert_eq!(check(&[]).0, Some(3));
    fs::remove_file(folder.path().join("tsc")).expect("removed");
    write("src/a.ts", "/* good */");
    let missing =
        "error: --tsc ./tsc: it cannot be started: No such file or directory (os error 2)\n";
    assert_eq!(check(&[]), done(2, "", missing));
}

#[test]
fn doctor_refuses_an_unknown_item() {
    let folder = TempDir::new().expect("a folder");
    let (exit, stdout, stderr) = isolane(folder.path(), &["doctor", "--require", "moat"]);
    assert_eq!((exit, stdout.as_str()), (Some(2), ""));
    assert!(stderr.starts_with("error: --require moat: there is no such item; items are "));
    let (exit, stdout, _) = isolane(folder.path(), &["doctor", "--json"]);
    let found: Json = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((exit, &found["isolation"]["thread"]), (Some(0), &json!({ "ok": true })));
}
