//! The functions of `fetch` as trusted code of the sandbox calls them.

use std::sync::{Arc, Mutex, atomic::Ordering};

use isolane::{ExecutionOptions, HostFunction, Inputs, Status, run_code};
use isolane_kit::fetch::{FetchFunctions, FetchRecord};
use serde_json::json;

use crate::fetch_support::{Answer, Client, Server, Step, ok, options, run, until};

type Records = Arc<Mutex<Vec<FetchRecord>>>;

/// The globals of a run, and the records of its requests.
fn globals(client: &Client) -> (Inputs, Records) {
    let records = Records::default();
    let kept = records.clone();
    let observe = move |record| kept.lock().expect("the records").push(record);
    let functions = FetchFunctions::new(client.fetcher.clone(), client.limits.clone(), observe);
    let globals = Inputs::new()
        .with("fetch", HostFunction::native(functions.fetch()))
        .with("abort", HostFunction::native(functions.abort()));
    (globals, records)
}

async fn result(source: &str, client: &Client) -> (serde_json::Value, Vec<FetchRecord>) {
    let (globals, records) = globals(client);
    let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
    let result = run.await.expect("a run").into_value().expect("a success");
    let records = records.lock().expect("the records").clone();
    (result.deserialize().expect("plain data"), records)
}

async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> (Server, String) {
    let server = Server::start(answer).await;
    let url = server.url("x.test", "/");
    (server, url)
}

#[test]
fn a_request_and_its_answer_cross() {
    run(async {
        let (server, url) = start(|_| ok("h\u{e9}llo")).await;
        let client = Client::new(options());
        let source = format!(
            "const r = await fetch({{ url: '{url}a?q', method: 'POST', headers: [['x', 'y']],
                 body: new Uint8Array([104, 105]), redirect: 'follow', timeout: 5000, id: 1 }});
             export default [r.status, r.statusText, r.url, r.redirected, r.headers, r.body instanceof Uint8Array, [...r.body]];"
        );
        let (value, records) = result(&source, &client).await;
        let expected = json!([
            200,
            "OK",
            format!("{url}a?q"),
            false,
            [["content-length", "6"]],
            true,
            "h\u{e9}llo".as_bytes()
        ]);
        assert_eq!(value, expected);
        assert!(server.last().ends_with("\r\n\r\nhi"));
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!((&*record.summary, record.error), (&*format!("POST {url}a 200"), None));
        assert!(record.bytes > 8);
    });
}

#[test]
fn bodies_are_texts_and_views_of_any_kind() {
    run(async {
        let (_server, url) =
            start(|request| ok(request.split("\r\n\r\n").nth(1).expect("a body"))).await;
        let client = Client::new(options());
        let source = format!(
            "const bytes = new Uint8Array([97, 98, 99, 100]);
             const bodies = ['', 'caf\\u00e9', '\\ud800\\u0100', bytes.subarray(1, 3), bytes.buffer, null, undefined];
             const back = [];
             for (const body of bodies) {{
                 const r = await fetch({{ url: '{url}', method: 'POST', headers: [], body }});
                 back.push(r.body.length + ':' + String.fromCharCode(...r.body));
             }}
             export default back;"
        );
        let (value, _) = result(&source, &client).await;
        let latin1 = |text: &str| text.bytes().map(char::from).collect::<String>();
        let expected = json!([
            "0:",
            format!("5:{}", latin1("caf\u{e9}")),
            format!("5:{}", latin1("\u{fffd}\u{100}")),
            "2:bc",
            "4:abcd",
            "0:",
            "0:"
        ]);
        assert_eq!(value, expected);
    });
}

#[test]
fn wrong_arguments_are_errors() {
    run(async {
        let client = Client::new(options());
        let source = "const calls = [
                [], [1], [{}], [{ url: 5 }], [{ url: 'http://x.test/', headers: 'a' }],
                [{ url: 'http://x.test/', headers: [['a']] }], [{ url: 'http://x.test/', body: 5 }],
                [{ url: 'http://x.test/', redirect: 'no' }], [{ url: 'http://x.test/', id: -1 }],
                [{ url: 'http://x.test/', timeout: 'x' }],
                [{ url: 'http://x.test/', headers: Array.from({ length: 5000 }, () => ['a', 'b']) }],
            ];
            export default await Promise.all(calls.map((args) => fetch(...args).then(() => 'none', (e) => e.name)));";
        let (value, records) = result(source, &client).await;
        assert_eq!(value, json!(vec!["TypeError"; 11]));
        assert!(records.iter().all(|record| record.error == Some("TypeError")));
    });
}

#[test]
fn a_request_is_aborted_by_its_number() {
    run(async {
        let (server, url) = start(|_| vec![Step::Stall]).await;
        let client = Client::new(options());
        let source = format!(
            "const one = fetch({{ url: '{url}', id: 7 }}).catch((e) => e.name + ': ' + e.message);
             abort(7);
             abort(8);
             const two = fetch({{ url: '{url}', id: 8 }}).catch((e) => e.name);
             abort(99);
             export default [await one, await two];"
        );
        let (value, records) = result(&source, &client).await;
        assert_eq!(value, json!(["AbortError: the request was aborted", "AbortError"]));
        assert!(records.iter().all(|record| record.error == Some("AbortError")), "{records:?}");
        until("sockets are closed", || server.open.load(Ordering::SeqCst) == 0).await;
    });
}

#[test]
fn the_end_of_a_run_closes_its_sockets_and_is_recorded() {
    run(async {
        let (server, url) = start(|_| vec![Step::Stall]).await;
        let client = Client::new(options());
        let (globals, records) = globals(&client);
        let source = format!("fetch({{ url: '{url}secret?q' }}); await new Promise(() => {{}})");
        let execution = run_code(source, ExecutionOptions { globals, ..Default::default() });
        until("the request is there", || server.count() == 1).await;
        execution.terminate(Some("enough"));
        let result = execution.await.expect("a run");
        assert_eq!(result.status, Status::Terminated);
        until("the socket is closed", || server.open.load(Ordering::SeqCst) == 0).await;
        until("the record is there", || !records.lock().expect("it").is_empty()).await;
        let record = records.lock().expect("it").remove(0);
        assert_eq!((record.summary, record.error), (format!("GET {url}secret"), Some("Aborted")));
    });
}

#[test]
fn an_answer_that_is_too_large_for_the_run_ends_it() {
    run(async {
        let (_server, url) = start(|_| ok("x".repeat(9 << 20))).await;
        let client = Client::new(options());
        let (globals, _) = globals(&client);
        let source = format!("export default (await fetch({{ url: '{url}' }})).body.length");
        let limit = |bytes| ExecutionOptions {
            globals: globals.clone(),
            memory_limit_bytes: Some(bytes),
            ..Default::default()
        };
        let large = run_code(source.clone(), limit(8 << 20)).await.expect("a run");
        assert_eq!(large.status, Status::Memory);
        let fits = run_code(source, limit(64 << 20)).await.expect("a run");
        assert_eq!(fits.into_value().expect("a success").deserialize::<u32>(), Ok(9 << 20));
    });
}
