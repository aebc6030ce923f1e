//! Costs of the kit's parts, printed for a reader: no test judges them.
//!
//! `cargo test --release -p isolane-kit --test it -- costs --ignored --nocapture --test-threads 1`

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use isolane::{ExecutionOptions, HostFunction, Inputs, Value, run_code};
use isolane_kit::{
    json_form::json_form,
    redaction::{Redaction, Redactor},
    room::FixedRoom,
};

/// A parser as a model writes it, without the checks of a library.
const PARSER: &str = "function parse(text) {
    const rows = []; let row = [], field = '', quoted = false;
    for (let i = 0; i < text.length; i++) {
        const c = text[i];
        if (quoted) {
            if (c !== '\"') field += c;
            else if (text[i + 1] === '\"') { field += '\"'; i++; }
            else quoted = false;
        } else if (c === '\"') quoted = true;
        else if (c === ',') { row.push(field); field = ''; }
        else if (c === '\\n') { row.push(field); rows.push(row); row = []; field = ''; }
        else if (c !== '\\r') field += c;
    }
    if (field || row.length) { row.push(field); rows.push(row); }
    return rows;
}";

/// The least time of some tries.
fn least(mut work: impl FnMut()) -> Duration {
    let times = (0..7).map(|_| {
        let started = Instant::now();
        work();
        started.elapsed()
    });
    times.min().unwrap_or_default()
}

#[test]
#[ignore = "prints costs"]
fn csv() {
    let function = isolane_kit::function("parseCSV").expect("a function of the kit");
    for rows in [10, 1000, 20_000] {
        let time = |parse: &str| {
            let source = format!(
                "{PARSER}
                const line = (i) => `${{i}},name ${{i}},\"quoted, ${{i}}\",${{i * 1.5}},2026-11-23`;
                const text = Array.from({{ length: {rows} }}, (_, i) => line(i)).join('\\r\\n');
                start();
                const n = {parse}.length;
                stop();
                export default n"
            );
            let times = Arc::new(std::sync::Mutex::new((None, Duration::MAX)));
            least(|| {
                let (start, stop) = (Arc::clone(&times), Arc::clone(&times));
                let globals = Inputs::new()
                    .with("parseCSV", HostFunction::native(Arc::clone(&function)))
                    .with(
                        "start",
                        HostFunction::new(move || {
                            start.lock().expect("a lock").0 = Some(Instant::now());
                        }),
                    )
                    .with(
                        "stop",
                        HostFunction::new(move || {
                            let mut times = stop.lock().expect("a lock");
                            let taken = times
                                .0
                                .take()
                                .map_or(Duration::MAX, |since: Instant| since.elapsed());
                            times.1 = times.1.min(taken);
                        }),
                    );
                let run =
                    run_code(source.clone(), ExecutionOptions { globals, ..Default::default() });
                let length: usize = run
                    .wait()
                    .expect("a run")
                    .into_value()
                    .expect("a success")
                    .deserialize()
                    .expect("a number");
                assert_eq!(length, rows);
            });
            times.lock().expect("a lock").1
        };
        let inside = time("parse(text)");
        let native = time("parseCSV(text)");
        let objects = time("parseCSV('a,b,c,d,e\\n' + text, { header: true })");
        let ratio = |time: Duration| time.as_secs_f64() / inside.as_secs_f64();
        println!(
            "{rows} rows: inside {inside:?}; native {native:?} ({:.3}x), as objects {objects:?} ({:.3}x)",
            ratio(native),
            ratio(objects)
        );
    }
}

#[test]
#[ignore = "prints costs"]
fn redaction() {
    const BYTES: usize = 16 << 20;
    let html = "<p class=\"a\">Some words of a page, and 100 % more.</p>\n";
    let json =
        "{\"id\":1234,\"text\":\"line\\nline \\u00e9\",\"url\":\"https:\\/\\/x.org\\/a%20b\"},";
    for secrets in [1, 10, 100] {
        let values: Vec<String> =
            (0..secrets).map(|n| format!("sk-{n:03}-0123456789abcdefghijklmnopqrstuv")).collect();
        let started = Instant::now();
        let redactor =
            Arc::new(Redactor::new(values.iter().map(|value| (value.as_str(), "#".to_owned()))));
        let built = started.elapsed();
        for (name, text) in [("HTML", html), ("JSON", json), ("base64", "QUJDREVGR0hJSktM")] {
            let text = text.repeat(BYTES / text.len());
            let time = least(|| {
                let mut redaction = Redaction::new(Arc::clone(&redactor));
                let mut out = Vec::with_capacity(BYTES);
                for chunk in text.as_bytes().chunks(64 << 10) {
                    redaction.push(chunk, &mut out);
                }
                redaction.finish(&mut out);
                assert_eq!(out.len(), text.len());
            });
            println!(
                "{secrets} secrets (built in {built:?}), {name}: {:.0} MB/s",
                16.0 / time.as_secs_f64()
            );
        }
    }
}

#[test]
#[ignore = "prints costs"]
fn json() {
    let records: Vec<_> = (0..20_000)
        .map(|n| serde_json::json!({ "id": n, "name": format!("name {n}"), "tags": ["a", "b"], "score": f64::from(n) / 7.0 }))
        .collect();
    let value = Value::serialize(&records).expect("a value");
    let text = json_form(&value, "result", &mut FixedRoom::new(1 << 30)).expect("a form");
    let form = least(|| drop(json_form(&value, "result", &mut FixedRoom::new(1 << 30))));
    let serde = least(|| drop(serde_json::to_string(&records)));
    println!("{} bytes of JSON: {form:?}; serde_json from its own values {serde:?}", text.len());
}
