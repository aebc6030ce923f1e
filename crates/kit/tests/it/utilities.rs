//! The functions of the kit as code in a sandbox sees them.

use isolane::{ExecutionOptions, HostFunction, Inputs, run_code};

fn result(source: &str) -> serde_json::Value {
    let mut globals = Inputs::new();
    for name in ["atob", "btoa", "delay"] {
        let function = isolane_kit::function(name).expect("a function of the kit");
        globals = globals.with(name, HostFunction::native(function));
    }
    let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
    run.wait().expect("a run").into_value().expect("a success").deserialize().expect("data")
}

/// The results of `f` for these arguments; the name of the error stands for a throw.
fn thrown(f: &str, args: &str) -> serde_json::Value {
    result(&format!(
        "export default {args}.map((arg) => {{ try {{ return {f}(arg) }} catch (e) {{ return e.name }} }})"
    ))
}

#[test]
fn base64_goes_there_and_back() {
    let source = "const all = String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i));
        export default [btoa(''), btoa('a'), btoa('ab'), btoa('abc'), atob(btoa(all)) === all, btoa('ÿ')]";
    assert_eq!(result(source), serde_json::json!(["", "YQ==", "YWI=", "YWJj", true, "/w=="]));
}

#[test]
fn atob_forgives_what_html_forgives() {
    let args = "['', ' Y Q\\n', 'YQ', 'YQ==', 'YR==', 'ab==', 'abc=', 'abcd']";
    assert_eq!(
        thrown("atob", args),
        serde_json::json!(["", "a", "a", "a", "a", "i", "i·", "i·\u{1d}"])
    );
}

#[test]
fn invalid_base64_is_refused() {
    let args = "['Y', 'YQ=', 'YQ===', 'Y=Q=', '=', 'YQ==YQ==', 'Y-_Q', 'Yä']";
    let refused = vec!["InvalidCharacterError"; 8];
    assert_eq!(thrown("atob", args), serde_json::json!(refused));
    assert_eq!(thrown("btoa", "['Ā', '😀']"), serde_json::json!(vec!["InvalidCharacterError"; 2]));
    assert_eq!(thrown("btoa", "[1, null, {}]"), serde_json::json!(vec!["TypeError"; 3]));
}

#[test]
fn a_delay_is_waited_for() {
    let source = "const order = [];
        await Promise.all([30, 1, -5].map((ms) => delay(ms).then(() => order.push(ms))));
        export default [order.at(-1), order.length, await delay(0) === undefined]";
    assert_eq!(result(source), serde_json::json!([30, 3, true]));
    assert_eq!(
        result("export default await delay(NaN).catch((e) => e.name)"),
        serde_json::json!("TypeError")
    );
}

#[test]
fn long_texts_are_worked_on_within_the_limit_of_the_run() {
    let source = "const long = 'é'.repeat(3e6); export default atob(btoa(long)) === long";
    assert_eq!(result(source), serde_json::json!(true));
    let globals = Inputs::new()
        .with("btoa", HostFunction::native(isolane_kit::function("btoa").expect("it")));
    let options =
        ExecutionOptions { globals, memory_limit_bytes: Some(32 << 20), ..Default::default() };
    let run = run_code("export default btoa('a'.repeat(12e6)).length", options);
    assert_eq!(run.wait().expect("a run").status, isolane::Status::Memory);
}
