//! Runs and sessions of a kit: limits, records, secrets, and their end. Built as a test of `isolane-worker` it runs them in
//! processes.

use std::{
    io::{BufRead, BufReader, Write},
    sync::{Arc, LazyLock, Mutex},
    thread,
    time::{Duration, Instant},
};

use isolane::{
    CellOptions, ErrorKind, ExecutionOptions, HostFunction, Inputs, LogLevel, NativeRun, Report,
    Runtime, SandboxFunction, SessionOptions, SessionUpdate, Status,
};
use isolane_kit::{
    AllowOption, BrowserSettings, CallRecord, DbOptions, FetchSettings, Kit, KitOptions, KitResult,
    KitSession, TimerLimits,
    browser::{Answer, Browser, BrowserLimits, Command, Failure, Performed},
    secrets::SecretOptions,
    store::StateLimits,
};
use serde_json::{Value as Json, json};

use crate::place;

/// A secret that tests give away.
const VALUE: &str = "correct horse battery staple";

/// A generous bound for events that happen at once.
const CEILING: Duration = Duration::from_mins(2);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

fn options() -> KitOptions {
    let secret =
        SecretOptions { value: VALUE.to_owned().into(), reveal: true, ..SecretOptions::default() };
    KitOptions {
        state: Some(StateLimits::default()),
        db: Some(DbOptions::default()),
        secrets: Some([("KEY".to_owned(), secret)].into()),
        runtime: Some(RUNTIME.clone()),
        ..KitOptions::default()
    }
}

fn bare() -> KitOptions {
    KitOptions { runtime: Some(RUNTIME.clone()), ..KitOptions::default() }
}

fn kit() -> Kit {
    Kit::new(options()).expect("a kit")
}

fn run(kit: &Kit, source: &str) -> KitResult {
    kit.run_code(source, ExecutionOptions::default()).wait().expect("a run")
}

fn value(result: &KitResult) -> Json {
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    result.result.as_ref().expect("a value").deserialize().expect("plain data")
}

#[test]
fn calls_are_recorded_in_their_order() {
    let source = "
        await state.set('k', { a: 1 });
        const v = await state.get('k');
        await db.sql('CREATE TABLE t (a)');
        const e = await db.sql('SELECT ? AS a', []).catch((error) => error.name);
        export default [v, e, atob('YQ==')];
    ";
    let result = run(&kit(), source);
    assert_eq!(value(&result), json!([{ "a": 1 }, "DbError", "a"]));
    let seen: Vec<(&str, &str, bool, Option<&str>)> = result
        .calls
        .iter()
        .map(|call| (call.name, call.summary.as_str(), call.ok, call.error.as_deref()))
        .collect();
    let expected = [
        ("state.set", "k", true, None),
        ("state.get", "k", true, None),
        ("db.sql", "CREATE TABLE t (a)", true, None),
        ("db.sql", "SELECT ? AS a", false, Some("DbError")),
    ];
    assert_eq!(seen, expected);
    assert!(result.calls.iter().all(|call| call.bytes > 0 && call.started > 1.6e12));
    assert_eq!((result.calls_dropped, result.json.as_deref()), (0, None));
}

#[test]
fn calls_are_limited_and_their_records_too() {
    let kit = Kit::new(KitOptions { max_calls: 5, max_recorded_calls: 2, ..options() });
    let source = "
        const names = [];
        for (let i = 0; i < 7; i += 1) {
            await state.get('k').then(() => names.push('ok'), (error) => names.push(`${error.name}: ${error.message}`));
        }
        export default names;
    ";
    let kit = kit.expect("a kit");
    for _ in 0..2 {
        let result = run(&kit, source);
        let refused = "CallLimit: more than 5 calls in one run";
        assert_eq!(value(&result), json!(["ok", "ok", "ok", "ok", "ok", refused, refused]));
        assert_eq!((result.calls.len(), result.calls_dropped), (2, 3));
    }
}

#[test]
fn calls_that_were_not_awaited_are_done_first() {
    let kit = kit();
    let source = "
        db.sql('CREATE TABLE t (a)');
        db.sql('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) INSERT INTO t SELECT i FROM n');
        for (let i = 0; i < 50; i += 1) state.set('k', i);
        export default 1;
    ";
    let result = run(&kit, source);
    assert!(result.calls.iter().all(|call| call.ok), "{:?}", result.calls);
    let after = run(
        &kit,
        "export default [await state.get('k'), (await db.sql('SELECT count(*) FROM t')).rows]",
    );
    assert_eq!(value(&after), json!([49, [[200_000]]]));
}

#[test]
fn a_run_that_is_terminated_ends_its_calls() {
    let kit = kit();
    let source = "
        await db.sql('CREATE TABLE t (a)');
        const endless = db.sql('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO t SELECT i FROM n');
        report(1);
        await endless;
        export default 1;
    ";
    let options = ExecutionOptions { report: Report::On, ..ExecutionOptions::default() };
    let execution = kit.run_code(source, options);
    let started = Instant::now();
    while execution.reports().is_empty() {
        assert!(started.elapsed() < CEILING);
        thread::yield_now();
    }
    execution.terminate(Some("enough"));
    let result = execution.wait().expect("a run");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(result.calls[1].error.as_deref(), Some("Aborted"));
    let rows = run(&kit, "export default (await db.sql('SELECT count(*) FROM t')).rows");
    assert_eq!(value(&rows), json!([[0]]));
}

#[test]
fn secrets_do_not_leave_a_run() {
    let source = "
        report({ key: secrets.KEY });
        console.log('log', secrets.KEY, [btoa(secrets.KEY)]);
        await state.set(secrets.KEY, 1);
        await state.get('x'.repeat(3000) + secrets.KEY).catch(() => {});
        export default { [secrets.KEY]: `<${secrets.KEY}>`, list: [encodeURIComponent(secrets.KEY)] };
    ";
    let (sender, seen) = std::sync::mpsc::channel();
    let sink = HostFunction::new(move |report: Json| sender.send(report).is_ok());
    let options = ExecutionOptions { report: Report::To(sink), ..ExecutionOptions::default() };
    let kit = kit();
    let result = kit.run_code(source, options).wait().expect("a run");
    let expected = json!({ "[secret KEY]": "<[secret KEY]>", "list": ["[secret KEY]"] });
    assert_eq!(value(&result), expected);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [json!({ "key": "[secret KEY]" })]);
    let report: Json = result.reports[0].deserialize().expect("data");
    assert_eq!(report, json!({ "key": "[secret KEY]" }));
    let log: Json = result.logs[0].args.deserialize().expect("data");
    assert_eq!(log, json!(["log", "[secret KEY]", ["[secret KEY]"]]));
    assert_eq!(result.calls[0].summary, "[secret KEY]");
    assert!(!format!("{result:?}").contains("correct horse"));

    let failed = run(&kit, "throw new Error(`no ${secrets.KEY}`)");
    assert_eq!(failed.error.as_ref().expect("an error").message, "no [secret KEY]");
    assert!(!format!("{failed:?}").contains("correct horse"));
}

#[test]
fn arguments_of_the_callers_functions_keep_secrets() {
    let globals = Inputs::new().with("check", HostFunction::new(|text: String| text == VALUE));
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let result = kit().run_code("export default check(secrets.KEY)", options).wait();
    assert_eq!(value(&result.expect("a run")), json!(true));
}

#[test]
fn names_of_the_kit_are_taken() {
    let globals = Inputs::new().with("state", 1);
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let error = kit().run_code("export default 1", options).wait().expect_err("misuse");
    assert_eq!(error.message(), "globals.state: this name is taken already");
    let without = Kit::new(bare()).expect("a kit");
    let globals = Inputs::new().with("state", 1);
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let result = without.run_code("export default state", options).wait().expect("a run");
    assert_eq!(value(&result), json!(1));
}

#[test]
fn what_is_not_given_does_not_exist() {
    let kit = Kit::new(KitOptions { web: false, ..bare() }).expect("a kit");
    let source = "export default ['fetch', 'state', 'db', 'require', 'secrets', 'resolve', 'URL']
        .filter((name) => name in globalThis).concat(
            typeof fetch, typeof state, typeof db, typeof require, typeof secrets, typeof resolve)";
    let none = vec!["undefined"; 6];
    assert_eq!(value(&run(&kit, source)), json!(none));
}

#[test]
fn a_closed_kit_ends_its_runs_and_sessions() {
    let kit = kit();
    let wait = HostFunction::future(std::future::pending::<()>);
    let globals = Inputs::new().with("wait", wait);
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let execution = kit.run_code("await wait()", options);
    let session = kit.session(SessionOptions::default()).expect("a session");
    session.run("1", CellOptions::default()).wait().expect("a cell");
    kit.close();
    let result = execution.wait().expect("a run");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(result.error.as_ref().expect("an error").message, "kit closed");
    session.run("1", CellOptions::default()).wait().expect_err("closed");
    let error = kit.run_code("export default 1", ExecutionOptions::default()).wait();
    assert_eq!(error.expect_err("closed").message(), "the kit is closed");
}

#[test]
fn time_is_limited() {
    let kit = Kit::new(KitOptions { timeout_ms: 50, ..options() }).expect("a kit");
    let result = run(&kit, "for (;;);");
    assert_eq!(result.status, Status::Terminated);
    let error = result.error.as_ref().expect("an error");
    let expected = ("Timeout", "the run took longer than 50 ms");
    assert_eq!((error.name.as_str(), error.message.as_str()), expected);
}

#[test]
fn memory_is_limited() {
    let kit = Kit::new(KitOptions { memory_limit_bytes: 8 << 20, ..options() }).expect("a kit");
    let result = run(&kit, "const a = []; for (;;) a.push(new Uint8Array(1 << 16));");
    assert_eq!(result.status, Status::Memory);
}

#[test]
fn cells_have_limits_and_records_of_their_own() {
    let kit = Kit::new(KitOptions { max_calls: 2, ..options() }).expect("a kit");
    let session = kit.session(SessionOptions::default()).expect("a session");
    let cell = |source: &str| session.run(source, CellOptions::default()).wait().expect("a cell");
    let first = cell("await state.set('k', 5); const v = await state.get('k'); secrets.KEY");
    assert_eq!(value(&first), json!("[secret KEY]"));
    assert_eq!(
        first.calls.iter().map(|call| call.name).collect::<Vec<_>>(),
        ["state.set", "state.get"]
    );
    let text = first.cell.as_ref().expect("a cell").text.clone().expect("a text");
    assert!(!text.contains("horse"), "{text}");
    let second = cell(
        "await state.get('k'); await state.get('k'); await state.get('k').catch((e) => e.name)",
    );
    assert_eq!(value(&second), json!("CallLimit"));
    assert_eq!(second.calls.len(), 2);
    let update = SessionUpdate { globals: Inputs::new().with("db", 1), ..SessionUpdate::default() };
    let error = session.session().update(update).expect_err("misuse");
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Type, "globals.db: this name is taken already")
    );
    if cfg!(isolane_portable) && place::is_process() {
        // The portable code copies no session in a process.
        return;
    }
    let copy = futures::executor::block_on(session.fork()).expect("a copy");
    let forked =
        copy.run("[v, await state.get('k')]", CellOptions::default()).wait().expect("a cell");
    assert_eq!(value(&forked), json!([5, 5]));
}

#[test]
fn runs_of_one_kit_go_on_at_once() {
    let kit = kit();
    let sources = (0..20).map(|i| {
        kit.run_code(
            format!("await state.set('k{i}', {i}); export default await state.get('k{i}')"),
            ExecutionOptions::default(),
        )
    });
    let running: Vec<_> = sources.collect();
    for (i, execution) in running.into_iter().enumerate() {
        let result = execution.wait().expect("a run");
        assert_eq!((value(&result), result.calls.len()), (json!(i), 2));
    }
}

#[test]
fn logs_of_level_warn_say_which_request_was_not_awaited() {
    // Nobody accepts the connection.
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", server.local_addr().expect("an address"));
    let fetch = FetchSettings {
        allow: AllowOption::List(vec![origin.as_str().into()]),
        allow_addresses: vec!["127.0.0.1".to_owned()],
        ..FetchSettings::default()
    };
    let kit = Kit::new(KitOptions { fetch: Some(fetch), ..options() }).expect("a kit");
    let url = format!("{origin}/path?query=1");
    let source = format!("fetch('{url}'); export default 1");
    let result = run(&kit, &source);
    let shown = format!("fetch was not awaited: GET {origin}/path");
    assert_eq!(result.logs.len(), 1);
    assert_eq!(result.logs[0].level, LogLevel::Warn);
    assert_eq!(result.logs[0].args.deserialize::<(String,)>().expect("a text").0, shown);
    assert_eq!(result.calls[0].error.as_deref(), Some("Aborted"));
}

/// Answers at once, but for clicks.
struct FakeBrowser;

impl Browser for FakeBrowser {
    fn perform(&self, command: Command, _: Duration, _: &NativeRun) -> Performed {
        Box::pin(async move {
            match command {
                Command::Navigate { url, .. } => {
                    Ok(Answer::Arrived { url, title: "a title".to_owned(), status: 200 })
                }
                Command::Read { .. } => Ok(Answer::Text(format!("a page with {VALUE}"))),
                Command::Click { .. } => std::future::pending().await,
                _ => Err(Failure::Other("not here".to_owned())),
            }
        })
    }
}

#[test]
fn calls_of_the_browser_are_recorded_and_redacted() {
    let settings = BrowserSettings {
        browser: Arc::new(FakeBrowser),
        allow: Some(AllowOption::List(vec!["https://192.0.9.9".into()])),
        limits: BrowserLimits::default(),
    };
    let kit = Kit::new(KitOptions { browser: Some(settings), ..options() }).expect("a kit");
    let source = "
        const page = await browser.navigate('https://192.0.9.9/a?b=c');
        const refused = await browser.navigate('https://example.org/').catch((error) => error.name);
        const typed = await browser.type('#id', 'what is typed').catch((error) => error.name);
        const text = await browser.extractText();
        browser.click('#button');
        export default [page.title, refused, typed, text];
    ";
    let result = run(&kit, source);
    let expected = json!(["a title", "BrowserBlocked", "BrowserError", "a page with [secret KEY]"]);
    assert_eq!(value(&result), expected);
    let calls: Vec<_> =
        result.calls.iter().map(|call| (call.name, call.summary.as_str())).collect();
    let expected = [
        ("browser.navigate", "https://192.0.9.9/a"),
        ("browser.navigate", "https://example.org/"),
        ("browser.type", "#id"),
        ("browser.extractText", ""),
        ("browser.click", "#button"),
    ];
    assert_eq!(calls, expected);
    assert_eq!(result.calls[4].error.as_deref(), Some("Aborted"));
    let log = result.logs[0].args.deserialize::<(String,)>().expect("a text").0;
    let lost = "the promise of browser.click (<runCode>:6:17) was never awaited";
    assert_eq!(log, lost);
}

/// The value that a function gives, or its error.
fn called(function: &SandboxFunction, args: (&str,)) -> Result<Json, String> {
    futures::executor::block_on(function.call(args)).map_err(|error| error.to_string())
}

#[test]
fn functions_of_the_kit_can_be_given_to_the_host() {
    type Given = (SandboxFunction, SandboxFunction, SandboxFunction);
    let given = HostFunction::future(|(sql, atob, get): Given| async move {
        let read: Json = sql.call(("SELECT 5",)).await.expect("a row");
        let text: Json = atob.call(("YQ==",)).await.expect("a text");
        let refused = get.call::<Json>(("k",)).await.expect_err("one call too many");
        json!([read["rows"], text, refused.to_string()])
    });
    let globals = Inputs::new().with("give", given);
    let kit = Kit::new(KitOptions { max_calls: 1, ..options() }).expect("a kit");
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let source = "export default await give([db.sql, atob, state.get])";
    let result = kit.run_code(source, options).wait().expect("a run");
    let refused = "CallLimit: more than 1 calls in one run";
    assert_eq!(value(&result), json!([[[5]], "a", refused]));
    let calls: Vec<_> =
        result.calls.iter().map(|call| (call.name, call.summary.as_str())).collect();
    assert_eq!(calls, [("db.sql", "SELECT 5")]);
    let failed = run(&kit, "export default { query: db.sql }");
    let failed = failed.error.as_ref().expect("an error");
    assert_eq!(
        (failed.name.as_str(), failed.message.as_str()),
        (
            "SerializationError",
            "result.query: a function cannot be cloned; call it, and return its value"
        )
    );
}

/// The calls of a cell: their names, summaries and errors.
fn calls(result: &KitResult) -> Vec<(&str, &str, Option<&str>)> {
    let mut calls = Vec::new();
    for CallRecord { name, summary, error, .. } in &result.calls {
        calls.push((*name, summary.as_str(), error.as_deref()));
    }
    calls
}

#[test]
fn a_call_is_recorded_in_the_cell_during_which_it_ends() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", server.local_addr().expect("an address"));
    let fetch = FetchSettings {
        allow: AllowOption::List(vec![origin.as_str().into()]),
        allow_addresses: vec!["127.0.0.1".to_owned()],
        ..FetchSettings::default()
    };
    let kit = Kit::new(KitOptions { fetch: Some(fetch), ..options() }).expect("a kit");
    let session = kit.session(SessionOptions::default()).expect("a session");
    let cell = |source: &str| session.run(source, CellOptions::default()).wait().expect("a cell");
    let first = cell(&format!("await state.get('a'); const page = fetch('{origin}/p'); 1"));
    assert_eq!(calls(&first), [("state.get", "a", None)]);
    assert_eq!(calls(&cell("2")), []);
    let (socket, _) = server.accept().expect("a request");
    let mut lines = BufReader::new(&socket).lines();
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    (&socket).write_all(answer.as_bytes()).expect("an answer");
    let third = cell("await state.get('b'); await (await page).text()");
    assert_eq!(value(&third), json!("hi"));
    let request = format!("GET {origin}/p 200");
    assert_eq!(calls(&third), [("fetch", request.as_str(), None), ("state.get", "b", None)]);
    assert!(third.calls[0].started <= third.calls[1].started);
    assert!(third.calls[0].bytes > 50, "{:?}", third.calls[0]);
    assert_eq!(calls(&cell("3")), []);
}

#[test]
fn a_call_of_a_cell_that_is_undone_is_aborted() {
    let kit = kit();
    let session = kit.session(SessionOptions::default()).expect("a session");
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let source = format!("const endless = db.sql('{endless}'); for (;;);");
    // On a busy machine a cell may not come to its call in a short time.
    let mut seen = [100, 1_000, 10_000, 100_000].into_iter().map(|timeout_ms| {
        let limited = CellOptions { timeout_ms: Some(timeout_ms), ..CellOptions::default() };
        session.run(source.clone(), limited).wait().expect("a cell")
    });
    let undone = seen.find(|undone| !undone.calls.is_empty()).expect("a call");
    assert_eq!(undone.status, Status::Terminated);
    assert_eq!(calls(&undone), [("db.sql", endless, Some("Aborted"))]);
    let after = session.run("1", CellOptions::default()).wait().expect("a cell");
    assert_eq!(calls(&after), []);
    // A reset ends calls of earlier cells.
    let options = CellOptions::default;
    let source = format!("const endless = db.sql('{endless}').catch(() => {{}}); 1");
    session.run(source, options()).wait().expect("a cell");
    futures::executor::block_on(session.session().reset()).expect("a reset");
    let reset = session.run("2", options()).wait().expect("a cell");
    assert!(matches!(calls(&reset)[..], [] | [("db.sql", _, Some("Aborted" | "DbTimeout"))]));
}

#[test]
fn functions_that_are_called_between_cells_have_limits_and_records() {
    let kept: Arc<Mutex<Vec<SandboxFunction>>> = Arc::default();
    let keep = {
        let kept = Arc::clone(&kept);
        HostFunction::new(move |function: SandboxFunction| {
            kept.lock().expect("no panic").push(function);
        })
    };
    let globals = Inputs::new().with("keep", keep);
    let kit = Kit::new(KitOptions { max_calls: 2, ..options() }).expect("a kit");
    let options = SessionOptions { globals, ..SessionOptions::default() };
    let session = kit.session(options).expect("a session");
    let cell = |source: &str| session.run(source, CellOptions::default()).wait().expect("a cell");
    let first = cell(
        "keep(state.get); keep(async (k) => { await state.set(k, 1); await db.schema(); db.schema(); return 'done' }); 1",
    );
    assert_eq!(calls(&first), []);
    let functions = kept.lock().expect("no panic").clone();
    for key in ["a", "b", "c"] {
        assert_eq!(called(&functions[0], (key,)), Ok(json!(null)));
    }
    // The third call of one cell is refused.
    assert_eq!(called(&functions[1], ("d",)), Ok(json!("done")));
    assert_eq!(called(&functions[1], ("e",)), Ok(json!("done")));
    let second = cell("await state.get('f'); 1");
    let expected = [
        ("state.get", "a", None),
        ("state.get", "b", None),
        ("state.get", "c", None),
        ("state.set", "d", None),
        ("db.schema", "", None),
        ("state.set", "e", None),
        ("db.schema", "", None),
        ("state.get", "f", None),
    ];
    assert_eq!(calls(&second), expected);
    assert_eq!(calls(&cell("2")), []);
}

#[test]
fn records_of_calls_between_cells_are_limited() {
    let kept: Arc<Mutex<Option<SandboxFunction>>> = Arc::default();
    let keep = {
        let kept = Arc::clone(&kept);
        HostFunction::new(move |function: SandboxFunction| {
            *kept.lock().expect("no panic") = Some(function);
        })
    };
    let kit = Kit::new(KitOptions { max_recorded_calls: 2, ..options() }).expect("a kit");
    let globals = Inputs::new().with("keep", keep);
    let session = kit.session(SessionOptions { globals, ..SessionOptions::default() });
    let session = session.expect("a session");
    let cell = |source: &str| session.run(source, CellOptions::default()).wait().expect("a cell");
    cell("keep(state.get); 1");
    let function = kept.lock().expect("no panic").clone().expect("a function");
    for key in ["a", "b", "c", "d", "e"] {
        assert_eq!(called(&function, (key,)), Ok(json!(null)));
    }
    let next = cell("await state.get('f'); 1");
    assert_eq!(calls(&next), [("state.get", "a", None), ("state.get", "b", None)]);
    assert_eq!(next.calls_dropped, 4);
    let last = cell("await state.get('g'); 1");
    assert_eq!((calls(&last), last.calls_dropped), (vec![("state.get", "g", None)], 0));
}

/// Copies a session with timers that fire after so many milliseconds, and waits for those of all. `None` if they fired
/// before there was a copy.
fn copied_with_timers(kit: &Kit, delay: u64) -> Option<KitSession> {
    let session = kit.session(SessionOptions::default()).expect("a session");
    let source = format!(
        "const seen = [];
        const [began, first] = [Date.now(), setTimeout(() => seen.push('first'), {delay})];
        const fired = new Promise((done) => setTimeout(() => {{ seen.push('second'); done(Date.now() - began) }}, {delay} + 100));
        setTimeout(() => seen.push('late'), 10_000_000);
        1"
    );
    let run = |session: &KitSession, source: &str| {
        session.run(source, CellOptions::default()).wait().expect("a cell")
    };
    run(&session, &source);
    let fork = |session: &KitSession| futures::executor::block_on(session.fork()).expect("a copy");
    let copy = fork(&session);
    // That of a copy in which no cell has run.
    let third = fork(&copy);
    // One has its own timers: what it does to them, the others do not see.
    let source = format!(
        "clearTimeout(first); setTimeout(() => seen.push('own'), 1); Date.now() - began < {delay} && seen.length === 0"
    );
    if value(&run(&copy, &source)) == json!(false) {
        return None;
    }
    for (session, expected) in [
        (&session, json!(["first", "second"])),
        (&copy, json!(["own", "second"])),
        (&third, json!(["first", "second"])),
    ] {
        let elapsed = value(&run(session, "await fired")).as_f64().expect("a time");
        let least = Duration::from_millis(delay + 99).as_secs_f64() * 1e3;
        assert!(elapsed >= least, "{elapsed} ms");
        assert_eq!(value(&run(session, "seen")), expected);
    }
    Some(session)
}

#[test]
fn a_copy_of_a_session_has_its_timers() {
    if cfg!(isolane_portable) && place::is_process() {
        // The portable code copies no session in a process.
        return;
    }
    let timers = TimerLimits { max_delay_ms: 10_000_000, ..TimerLimits::default() };
    let kit = Kit::new(KitOptions { timers, ..options() }).expect("a kit");
    // The copies must be there before the first timer fires, which a busy machine may need more time for.
    let session =
        [300, 3_000, 30_000].into_iter().find_map(|delay| copied_with_timers(&kit, delay));
    let session = session.expect("copies before a timer fires");
    // Calls that have no answer still refuse it.
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    let source = format!("const endless = db.sql('{endless}'); 1");
    session.run(source, CellOptions::default()).wait().expect("a cell");
    let refused = futures::executor::block_on(session.fork()).expect_err("a call is unanswered");
    assert!(refused.message().starts_with("1 call to the host is unanswered"), "{refused}");
}
