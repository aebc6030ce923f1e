//! The functions for the classes of the web, as their trusted code calls them.

use isolane::{ExecutionOptions, HostFunction, Inputs, Status, run_code};
use isolane_kit::function;
use serde_json::{Value as Json, json};

fn result(source: &str) -> Json {
    let names = ["url", "urlSet", "random", "decodeUtf8", "encodeUtf8"];
    let globals: Inputs = names
        .into_iter()
        .map(|name| (name, HostFunction::native(function(name).expect("a function of the kit"))))
        .collect();
    let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
    let result = run.wait().expect("no misuse");
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    result.result.expect("a value").deserialize().expect("plain data")
}

#[test]
fn urls_have_their_parts() {
    let parts = result("export default url('https://user:pw@EXAMPLE.org:8443/a/../b?x=1#h')");
    let expected = json!({
        "href": "https://user:pw@example.org:8443/b?x=1#h", "origin": "https://example.org:8443",
        "protocol": "https:", "username": "user", "password": "pw", "host": "example.org:8443",
        "hostname": "example.org", "port": "8443", "pathname": "/b", "search": "?x=1", "hash": "#h",
    });
    assert_eq!(parts, expected);
    let source = "export default [url('../c', 'https://x.org/a/b').href, url('c'), url('c', 'd'), url('mailto:a').origin]";
    assert_eq!(result(source), json!(["https://x.org/c", null, null, "null"]));
}

#[test]
fn parts_are_set_by_the_standard() {
    let source = "
        const href = 'https://x.org:8443/a?b#c';
        const set = (part, value) => urlSet(href, part, value).href;
        export default [
            set('protocol', 'http'), set('protocol', 'mailto'), set('host', 'y.org:1'), set('hostname', ''),
            set('port', '443'), set('port', 'x'), set('pathname', 'd e'), set('search', ''), set('hash', 'f'),
            set('username', 'u'), set('password', 'p'), urlSet('x', 'hash', 'y'),
        ]";
    let expected = json!([
        "http://x.org:8443/a?b#c",
        "https://x.org:8443/a?b#c",
        "https://y.org:1/a?b#c",
        "https://x.org:8443/a?b#c",
        "https://x.org/a?b#c",
        "https://x.org:8443/a?b#c",
        "https://x.org:8443/d%20e?b#c",
        "https://x.org:8443/a#c",
        "https://x.org:8443/a?b#f",
        "https://u@x.org:8443/a?b#c",
        "https://:p@x.org:8443/a?b#c",
        null,
    ]);
    assert_eq!(result(source), expected);
}

#[test]
fn random_bytes_differ_and_are_bounded() {
    let source = "
        const a = random(32);
        const b = random(32);
        let error;
        try { random(65537); } catch (e) { error = e.name; }
        export default [a.length, a.some((byte, at) => byte !== b[at]), random(0).length, random(65536).length, error]";
    assert_eq!(result(source), json!([32, true, 0, 65_536, "TypeError"]));
}

#[test]
fn utf8_goes_both_ways() {
    let source = "
        const bytes = encodeUtf8('aä€😀');
        const wrong = new Uint8Array([97, 255, 98]);
        const long = 'ä'.repeat(100_000);
        export default [
            [...bytes], decodeUtf8(bytes, true), decodeUtf8(bytes.subarray(1, 3), true),
            decodeUtf8(wrong, true), decodeUtf8(wrong, false), decodeUtf8(encodeUtf8(long), true) === long,
            decodeUtf8(new Uint8Array([239, 187, 191, 97]), true).length,
        ]";
    let expected = json!([
        [97, 195, 164, 226, 130, 172, 240, 159, 152, 128],
        "aä€😀",
        "ä",
        null,
        "a\u{FFFD}b",
        true,
        2,
    ]);
    assert_eq!(result(source), expected);
}

#[test]
fn wrong_arguments_are_type_errors() {
    let source = "
        const name = (call) => { try { return call(); } catch (error) { return error.name; } };
        export default [
            name(() => url(1)), name(() => urlSet('https://x.org', 'nothing', '')), name(() => random(-1)),
            name(() => decodeUtf8('x', true)), name(() => encodeUtf8(1)), name(() => decodeUtf8(new Uint8Array(1))),
        ]";
    assert_eq!(result(source), json!(vec!["TypeError"; 6]));
}

#[test]
fn results_count_against_the_run() {
    let f = |name: &str| HostFunction::native(function(name).expect("a function of the kit"));
    let globals = Inputs::new().with("encodeUtf8", f("encodeUtf8"));
    let source =
        "const all = []; const text = 'x'.repeat(1 << 20); for (;;) all.push(encodeUtf8(text));";
    let options =
        ExecutionOptions { globals, memory_limit_bytes: Some(32 << 20), ..Default::default() };
    assert_eq!(run_code(source, options).wait().expect("a run").status, Status::Memory);
}
