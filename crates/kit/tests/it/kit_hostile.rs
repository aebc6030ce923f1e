//! Tools that attack: forged results, secrets that are cut or spread, limits that are waited out. Built as a test of
//! `isolane-worker` it runs them in processes.

use std::{
    fs,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use isolane::{CellOptions, Runtime, SessionOptions, Status};
use isolane_kit::{
    AllowOption, DbOptions, FetchSettings, Kit, KitOptions, KitResult, ToolOptions,
    fetch::FetchLimits,
    secrets::SecretOptions,
    store::{DatabaseLimits, LibraryLimits, StateLimits},
};
use serde_json::{Value as Json, json};

use crate::place;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

/// A secret that all kits here give away.
const VALUE: &str = "hunter2-hunter2-hunter2";

/// One that is JSON itself, as keys of clouds are.
const OBJECT: &str = r#"{"type":"service_account","key":"abcdefgh"}"#;

fn options() -> KitOptions {
    let revealed = |value: &str| SecretOptions {
        value: value.to_owned().into(),
        reveal: true,
        ..SecretOptions::default()
    };
    let secrets = [("KEY", VALUE), ("OBJECT", OBJECT)];
    KitOptions {
        state: Some(StateLimits::default()),
        db: Some(DbOptions::default()),
        secrets: Some(secrets.map(|(name, value)| (name.to_owned(), revealed(value))).into()),
        runtime: Some(RUNTIME.clone()),
        ..KitOptions::default()
    }
}

fn tool(kit: &Kit, source: &str) -> KitResult {
    kit.run_tool(source, ToolOptions::default()).wait().expect("a run")
}

fn value(result: &KitResult) -> Json {
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    result.result.as_ref().expect("a value").deserialize().expect("plain data")
}

#[test]
fn the_json_of_a_tool_is_its_own() {
    let kit = Kit::new(options()).expect("a kit");
    let forgeries = [
        "for (const p of [Array.prototype, Object.prototype]) {
           Object.defineProperty(p, 'then', { configurable: true, get() {
             if (Array.isArray(this) && this.length === 2) { delete Array.prototype.then; return (ok) => ok(['no json ' + secrets.KEY, new Map()]) }
           } });
         }
         return { a: 1 }",
        "Object.defineProperty(Array.prototype, 0, { set() {}, get() { return 'forged' } }); return { a: 1 }",
        "JSON.parse = () => 'forged'; JSON.stringify = () => 'forged'; Promise.prototype.then = () => {}; return { a: 1 }",
    ];
    for source in forgeries {
        let result = tool(&kit, source);
        assert_eq!(value(&result), json!({ "a": 1 }), "{source}");
        assert_eq!(result.json.as_deref(), Some(r#"{"a":1}"#), "{source}");
    }
}

#[test]
fn a_secret_that_is_json_does_not_leave_as_json() {
    let kit = Kit::new(options()).expect("a kit");
    for source in ["return JSON.parse(secrets.OBJECT)", "return [JSON.parse(secrets.OBJECT), 1]"] {
        let result = tool(&kit, source);
        let text = result.json.clone().expect("a text");
        assert!(text.contains("[secret OBJECT]") && !text.contains("abcdefgh"), "{text}");
        assert_eq!(value(&result), serde_json::from_str::<Json>(&text).expect("JSON"));
    }
}

/// A text is cut at a bound; what stands before the bound must not be a part of a value.
#[test]
fn texts_that_are_cut_keep_no_part_of_a_secret() {
    let kit = Kit::new(options()).expect("a kit");
    let part = &VALUE[..8];
    for before in [1_000, 1_005, 1_015] {
        let source = format!(
            "await state.get('x'.repeat({before}) + secrets.KEY).catch(() => {{}}); await db.sql('--' + 'x'.repeat({before}) + secrets.KEY).catch(() => {{}})"
        );
        let result = tool(&kit, &source);
        assert_eq!(result.calls.len(), 2);
        for call in &result.calls {
            assert!(!call.summary.contains(part) && call.summary.len() <= 1_024, "{call:?}");
        }
    }
    for before in [16_360, 16_370, 16_376] {
        let long = format!("'x'.repeat({before}) + secrets.KEY");
        let sources = [
            format!("throw new Error({long})"),
            format!("const e = new Error('a'); e.name = {long}; throw e"),
            format!("throw {long}"),
            format!("console.log({long})"),
            format!("console.log(Symbol({long}), {{ [{long} + 'x'.repeat(100)]: 1 }})"),
            format!("console.log({{ ['\\ud800' + {long}]: 1 }})"),
        ];
        for source in sources {
            let result = tool(&kit, &source);
            let shown = format!("{:?} {:?}", result.error, result.logs);
            assert!(
                !shown.contains(part),
                "{source}: {}",
                &shown[shown.len().saturating_sub(300)..]
            );
        }
        let session = kit.session(SessionOptions::default()).expect("a session");
        let cell = session.run(long, CellOptions::default()).wait().expect("a cell");
        let text = cell.cell.as_ref().expect("a cell").text.clone().expect("a text");
        assert!(!text.contains(part), "{}", &text[text.len() - 100..]);
    }
}

/// A text that crosses whole is not one that was cut.
#[test]
fn long_logs_keep_their_end() {
    let kit = Kit::new(options()).expect("a kit");
    let result = tool(&kit, "console.log('x'.repeat(100_000) + 'end', '…'.repeat(3_000))");
    let args: (String, String) = result.logs[0].args.deserialize().expect("two texts");
    assert_eq!((args.0.len(), args.1), (100_003, "…".repeat(3_000)));
}

#[test]
fn names_of_a_session_have_no_secrets() {
    let kit = Kit::new(options()).expect("a kit");
    let session = kit.session(SessionOptions::default()).expect("a session");
    let source = "const c = new (class { static { Object.defineProperty(this, 'name', { value: secrets.KEY }) } })";
    session.run(source, CellOptions::default()).wait().expect("a cell");
    let names = futures::executor::block_on(session.session().names()).expect("names");
    assert_eq!(names[0].kind_of, "[secret KEY]");
}

#[test]
fn a_refused_request_shows_no_user() {
    let fetch = FetchSettings::default();
    let kit = Kit::new(KitOptions { fetch: Some(fetch), ..options() }).expect("a kit");
    let source = "await fetch('http://me:password1@x.test/a?q=1').catch(() => {})";
    assert_eq!(tool(&kit, source).calls[0].summary, "GET http://x.test/a");
}

/// Time limits that a test tries in turn, until code comes as far as it should on this machine.
const LIMITS_MS: [u64; 4] = [300, 2_000, 15_000, 100_000];

/// A statement that never ends, and nobody awaits.
const ENDLESS: &str = "db.sql('WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t'); return 1";

#[test]
fn the_time_of_a_run_holds_for_what_it_did_not_await() {
    // The statement itself has more time.
    let db = DbOptions {
        limits: DatabaseLimits { timeout_ms: 1_000_000, ..DatabaseLimits::default() },
        ..DbOptions::default()
    };
    let mut seen = LIMITS_MS.into_iter().map(|timeout_ms| {
        let db = Some(db.clone());
        let kit = Kit::new(KitOptions { timeout_ms, db, ..options() }).expect("a kit");
        (timeout_ms, tool(&kit, ENDLESS))
    });
    let (limit_ms, result) = seen.find(|(_, result)| !result.calls.is_empty()).expect("a call");
    let error = result.error.as_ref().expect("an error");
    assert_eq!((result.status, error.name.as_str()), (Status::Terminated, "Timeout"));
    assert_eq!(error.message, format!("the run took longer than {limit_ms} ms"));
    assert_eq!((result.result.is_none(), result.json.is_none()), (true, true));
    assert_eq!(result.calls[0].error.as_deref(), Some("Aborted"));
}

/// A cell has settled by then, whenever its result is read.
#[test]
fn a_cell_does_not_wait_for_what_it_did_not_await() {
    let mut seen = LIMITS_MS.into_iter().map(|timeout_ms| {
        let kit = Kit::new(KitOptions { timeout_ms, ..options() }).expect("a kit");
        let session = kit.session(SessionOptions::default()).expect("a session");
        let cell = session.run(ENDLESS.replace("return ", ""), CellOptions::default());
        thread::sleep(Duration::from_millis(2 * timeout_ms));
        cell.wait().expect("a cell")
    });
    let cell = seen.find(|cell| cell.status == Status::Success).expect("a success");
    assert_eq!(value(&cell), json!(1));
}

#[test]
fn a_run_that_is_terminated_while_its_calls_end_is_terminated() {
    let kit = Kit::new(options()).expect("a kit");
    let running = kit.run_tool(ENDLESS, ToolOptions::default());
    thread::sleep(Duration::from_millis(200));
    running.terminate(Some("enough"));
    let result = running.wait().expect("a run");
    let error = result.error.as_ref().expect("an error");
    assert_eq!((result.status, error.message.as_str()), (Status::Terminated, "enough"));
    assert!(result.json.is_none());
}

#[test]
fn code_cannot_name_the_file_of_a_library() {
    let kit = Kit::new(KitOptions {
        libraries: Some(isolane_kit::LibraryOptions {
            stored: LibraryLimits::default(),
            max_depth: 10,
        }),
        ..options()
    })
    .expect("a kit");
    let thrower = isolane_kit::kit::LibrarySource {
        source: "throw new Error('x')".into(),
        language: isolane::Language::JavaScript,
        description: String::new(),
    };
    futures::executor::block_on(kit.libraries().expect("libraries").create("thrower", thrower))
        .expect("a library");
    let result =
        tool(&kit, "String.prototype.concat = function () { return 'forged' }; require('thrower')");
    assert_eq!(
        result.error.as_ref().expect("an error").filename.as_deref(),
        Some("library:thrower")
    );
}

#[test]
fn two_files_are_two_whatever_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| Some(folder.path().join(name));
    #[cfg(unix)]
    std::os::unix::fs::symlink("real", folder.path().join("link")).expect("a link");
    fs::write(folder.path().join("one"), "").expect("a file");
    fs::hard_link(folder.path().join("one"), folder.path().join("two")).expect("a link");
    for (one, other) in [("link", "real"), ("one", "two")] {
        let db = DbOptions { file: file(other), ..DbOptions::default() };
        let error = Kit::new(KitOptions { file: file(one), db: Some(db), ..options() });
        assert_eq!(error.expect_err(one).message(), "file and db.file must not be the same file");
    }
}

#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn many_secrets_are_given_in_the_time_of_one() {
    let secret = |index| SecretOptions {
        value: format!("{index:040}").into(),
        reveal: true,
        ..SecretOptions::default()
    };
    let secrets = (0..300).map(|index| (format!("S{index}"), secret(index))).collect();
    let began = Instant::now();
    let kit = Kit::new(KitOptions { secrets: Some(secrets), ..options() }).expect("a kit");
    // 300 times one takes a minute in this build.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(value(&tool(&kit, "return secrets.S299")), json!("[secret S299]"));
}

#[test]
fn many_secrets_are_given() {
    let secret = |index| SecretOptions {
        value: format!("{index:040}").into(),
        reveal: true,
        ..SecretOptions::default()
    };
    let secrets = (0..300).map(|index| (format!("S{index}"), secret(index))).collect();
    let kit = Kit::new(KitOptions { secrets: Some(secrets), ..options() }).expect("a kit");
    assert_eq!(value(&tool(&kit, "return secrets.S299")), json!("[secret S299]"));
}

#[test]
fn cells_have_requests_of_their_own() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", server.local_addr().expect("an address"));
    thread::spawn(move || {
        use std::io::{Read, Write};
        for mut socket in server.incoming().flatten() {
            thread::spawn(move || {
                let _ = socket.read(&mut [0; 4096]);
                thread::sleep(Duration::from_millis(100));
                let _ = socket.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
                );
            });
        }
    });
    let fetch = FetchSettings {
        allow: AllowOption::List(vec![origin.as_str().into()]),
        allow_addresses: vec!["127.0.0.1".into()],
        limits: FetchLimits { max_calls: 4, ..FetchLimits::default() },
        ..FetchSettings::default()
    };
    let kit = Kit::new(KitOptions { fetch: Some(fetch), ..options() }).expect("a kit");
    let session = kit.session(SessionOptions::default()).expect("a session");
    let source = format!(
        "var names = []; for (let i = 0; i < 6; i += 1) names.push(await fetch('{origin}').then((r) => r.status, (e) => e.name)); names"
    );
    // Both are queued before either begins.
    let cells =
        [&source, &source].map(|source| session.run(source.clone(), CellOptions::default()));
    for cell in cells {
        let limited = json!([200, 200, 200, 200, "FetchLimit", "FetchLimit"]);
        assert_eq!(value(&cell.wait().expect("a cell")), limited);
    }
    if cfg!(isolane_portable) && place::is_process() {
        // The portable code copies no session in a process.
        return;
    }
    let fork = || futures::executor::block_on(session.fork()).expect("a copy");
    let copies = [fork(), fork()];
    let ask = format!("await fetch('{origin}').then((r) => r.text(), (e) => e.name)");
    let cells = copies.each_ref().map(|copy| copy.run(ask.clone(), CellOptions::default()));
    for cell in cells {
        assert_eq!(value(&cell.wait().expect("a cell")), json!("ok"));
    }
}
