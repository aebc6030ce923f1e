//! A kit: its options with every misuse, and the host's side.

use std::path::PathBuf;

use futures::executor::block_on;
use isolane::{ErrorKind, Spelling, Value, value::Writer};
use isolane_kit::{
    AllowOption, DbOptions, FetchSettings, Kit, KitOptions, LibraryOptions, TimerLimits,
    fetch::allow::AllowEntry,
    kit::LibrarySource,
    secrets::SecretOptions,
    store::{DatabaseLimits, StateLimits},
};
use serde_json::{Value as Json, json};

/// Options as a binding hands them over.
fn message(options: &Json) -> Value {
    Value::serialize(options).expect("plain data")
}

fn refused(options: &Json) -> String {
    let error = KitOptions::read(&message(options), None, Spelling::Camel).and_then(Kit::new);
    error.expect_err(&options.to_string()).message().to_owned()
}

#[test]
fn all_options_are_read() {
    let options = json!({
        "agent": "a", "file": "f.db", "state": { "maxKeyBytes": 9 }, "libraries": true,
        "db": { "file": "g.db", "readOnly": true, "maxRows": 7, "timeoutMs": 8 },
        "fetch": {
            "allow": ["https://a.org", { "url": "b.org", "methods": ["GET"] }],
            "allowAddresses": ["10.0.0.0/8"], "ca": "pem", "maxCalls": 3,
        },
        "secrets": { "KEY": { "value": "abcdefgh", "hosts": ["x.org"], "in": ["url"] } },
        "web": false, "timers": { "maxPending": 5 }, "runtime": null, "timeoutMs": 11,
        "memoryLimitBytes": 12, "maxCalls": 13, "maxRecordedCalls": 14,
    });
    let kit = KitOptions::read(&message(&options), None, Spelling::Camel).expect("valid options");
    assert_eq!((kit.agent.as_str(), kit.file), ("a", Some(PathBuf::from("f.db"))));
    assert_eq!(kit.state, Some(StateLimits { max_key_bytes: 9, ..StateLimits::default() }));
    assert_eq!(kit.libraries, Some(LibraryOptions::default()));
    let db = kit.db.expect("a database");
    assert_eq!((db.file, db.read_only), (Some(PathBuf::from("g.db")), true));
    let limits = DatabaseLimits { max_rows: 7, timeout_ms: 8, ..DatabaseLimits::default() };
    assert_eq!(db.limits, limits);
    let fetch = kit.fetch.expect("fetch");
    let second = AllowEntry { url: "b.org".to_owned(), methods: Some(vec!["GET".to_owned()]) };
    assert_eq!(fetch.allow, AllowOption::List(vec!["https://a.org".into(), second]));
    assert_eq!(
        (fetch.allow_addresses, fetch.ca),
        (vec!["10.0.0.0/8".to_owned()], Some("pem".to_owned()))
    );
    assert_eq!((fetch.limits.max_calls, fetch.limits.max_redirects), (3, 10));
    let secrets = kit.secrets.expect("secrets");
    assert_eq!(secrets["KEY"].parts, Some(vec!["url".to_owned()]));
    assert_eq!(kit.timers, TimerLimits { max_pending: 5, ..TimerLimits::default() });
    let numbers = (kit.timeout_ms, kit.memory_limit_bytes, kit.max_calls, kit.max_recorded_calls);
    assert_eq!((kit.web, numbers), (false, (11, 12, 13, 14)));
}

#[test]
fn short_forms_are_read() {
    let read =
        |options: Json| KitOptions::read(&message(&options), None, Spelling::Snake).expect("valid");
    let kit = read(json!({ "state": true, "db": true, "fetch": "public", "timeout_ms": 5 }));
    assert!(kit.state.is_some() && kit.db.is_some() && kit.libraries.is_none());
    assert_eq!((kit.fetch.expect("fetch").allow, kit.timeout_ms), (AllowOption::Public, 5));
    let kit = read(json!({ "fetch": [], "state": false, "db": null }));
    assert_eq!(kit.fetch.expect("fetch").allow, AllowOption::List(Vec::new()));
    assert!(kit.state.is_none() && kit.db.is_none() && kit.secrets.is_none() && kit.web);
    KitOptions::read(&Value::undefined(), None, Spelling::Snake).expect("no options");
}

#[test]
fn misuse_is_thrown_with_the_name_of_the_option() {
    let cases = [
        (json!({ "stat": true }), "unknown option 'stat'; did you mean 'state'?"),
        (
            json!({ "db": { "maxRow": 1 } }),
            "unknown option 'db.maxRow'; did you mean 'db.maxRows'?",
        ),
        (
            json!({ "fetch": { "allow": "public", "max_calls": 1 } }),
            "unknown option 'fetch.max_calls'; did you mean 'fetch.maxCalls'?",
        ),
        (json!({ "state": 1 }), "state must be true or an object, got a number"),
        (
            json!({ "fetch": true }),
            "fetch must be 'public', a list of patterns, or an object, got a boolean",
        ),
        (json!({ "fetch": "all" }), "fetch must be 'public' or a list of patterns, got 'all'"),
        (json!({ "fetch": {} }), "fetch.allow must be 'public' or a list of patterns, got nothing"),
        (json!({ "fetch": [1] }), "fetch[0] must be a pattern or { url, methods }, got a number"),
        (json!({ "maxCalls": 0 }), "maxCalls must be a safe integer of at least 1, got 0"),
        (json!({ "maxCalls": 1.5 }), "maxCalls must be a safe integer of at least 1, got 1.5"),
        (
            json!({ "timeoutMs": 1e16 }),
            "timeoutMs must be a safe integer of at least 1, got 10000000000000000",
        ),
        (json!({ "timeoutMs": "1" }), "timeoutMs must be a number, got a string"),
        (
            json!({ "libraries": { "maxDepth": -1 } }),
            "libraries.maxDepth must be a safe integer of at least 1, got -1",
        ),
        (
            json!({ "timers": { "maxDelayMs": 0 } }),
            "timers.maxDelayMs must be a safe integer of at least 1, got 0",
        ),
        (json!({ "agent": "" }), "agent must not be empty"),
        (json!({ "agent": 1 }), "agent must be a string, got a number"),
        (json!({ "file": "" }), "file must not be empty"),
        (json!({ "db": { "file": "" } }), "db.file must not be empty"),
        (
            json!({ "file": "/tmp/x", "db": { "file": "/tmp/../tmp/x" } }),
            "file and db.file must not be the same file",
        ),
        (json!({ "db": { "readOnly": true } }), "db.readOnly needs db.file"),
        (json!({ "runtime": 1 }), "runtime must be a Runtime, got a number"),
        (json!({ "web": 1 }), "web must be a boolean, got a number"),
        (
            json!({ "secrets": { "KEY": "abcdefgh" } }),
            "secrets.KEY must be { value, hosts or reveal }, got a string",
        ),
        (
            json!({ "secrets": { "KEY": { "value": "abcdefgh" } } }),
            "secrets.KEY: it needs hosts, or reveal",
        ),
        (
            json!({ "secrets": { "KEY": { "value": "abc", "reveal": true } } }),
            "secrets.KEY.value: it has 3 bytes; a value has 8 to 8192",
        ),
        (
            json!({ "secrets": { "KEY": { "value": "abcdefgh", "hosts": [1] } } }),
            "secrets.KEY.hosts[0] must be a string, got a number",
        ),
        (
            json!({ "secrets": { "KEY": { "valu": "abcdefgh" } } }),
            "secrets.KEY.value must be a string, got nothing",
        ),
    ];
    for (options, expected) in cases {
        assert_eq!(refused(&options), expected, "{options}");
    }
    for (options, part) in [
        (json!({ "fetch": ["ftp://x.org"] }), "fetch.allow[0]"),
        (
            json!({ "fetch": { "allow": [], "allowAddresses": ["10.0.0.1/8"] } }),
            "fetch.allowAddresses[0]: '10.0.0.1/8'",
        ),
        (json!({ "fetch": { "allow": [], "ca": "no" } }), "fetch.ca: "),
        (
            json!({ "secrets": { "1": { "value": "abcdefgh", "reveal": true } } }),
            "secrets: '1' is not a valid name",
        ),
    ] {
        assert!(refused(&options).contains(part), "{}", refused(&options));
    }
}

#[test]
fn misuse_opens_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("state.db");
    let options = KitOptions {
        file: Some(file.clone()),
        state: Some(StateLimits::default()),
        max_calls: 0,
        ..KitOptions::default()
    };
    let error = Kit::new(options).expect_err("misuse");
    assert_eq!(error.kind(), ErrorKind::Range);
    assert_eq!(error.message(), "max_calls must be a safe integer of at least 1, got 0");
    assert!(!file.exists());
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("text.db");
    std::fs::write(&file, "this is a text and no database, as one can see").expect("a file");
    let db = DbOptions { file: Some(file.clone()), ..DbOptions::default() };
    let error =
        Kit::new(KitOptions { db: Some(db), ..KitOptions::default() }).expect_err("no database");
    assert!(error.message().contains(&file.display().to_string()), "{error}");
}

fn full() -> Kit {
    Kit::new(KitOptions {
        state: Some(StateLimits::default()),
        libraries: Some(LibraryOptions::default()),
        db: Some(DbOptions::default()),
        fetch: Some(FetchSettings::default()),
        secrets: Some([].into()),
        ..KitOptions::default()
    })
    .expect("a kit")
}

#[test]
fn the_host_has_state_and_db_without_a_runtime_of_its_own() {
    let kit = full();
    block_on(async {
        let state = kit.state().expect("state");
        state.set("a.b", json!({ "x": [1, null] })).await.expect("set");
        let value: Json = state.get("a.b").await.expect("get").deserialize().expect("data");
        assert_eq!(value, json!({ "x": [1, null] }));
        assert_eq!(state.keys("a").await.expect("keys"), ["a.b"]);
        assert!(state.delete("a.b").await.expect("delete"));
        assert!(!state.delete("a.b").await.expect("delete"));
        let error = state.get(&"k".repeat(2_000)).await.expect_err("too long");
        assert_eq!(error.name, "StateLimit");
        let db = kit.db().expect("db");
        db.batch([("CREATE TABLE t (a)", json!([])), ("INSERT INTO t VALUES (?)", json!([5]))])
            .await
            .expect("batch");
        let read: Json =
            db.sql("SELECT a FROM t", ()).await.expect("rows").deserialize().expect("rows");
        assert_eq!(read["rows"], json!([[5]]));
        let error = db.sql("SELEC", ()).await.expect_err("no SQL");
        assert_eq!((error.name.as_str(), error.code.is_some()), ("DbError", true));
        let schema: Json = db.schema().await.expect("a schema").deserialize().expect("a schema");
        assert_eq!(schema["tables"][0]["row_count"], json!(1));
    });
}

#[test]
fn libraries_are_made_and_changed() {
    let kit = full();
    block_on(async {
        let libraries = kit.libraries().expect("libraries");
        let library = LibrarySource {
            source: "exports.a = 1".to_owned(),
            description: "Has\n a.".to_owned(),
            ..LibrarySource::default()
        };
        libraries.create("one", library.clone()).await.expect("create");
        assert_eq!(libraries.create("one", library).await.expect_err("known").name, "LibraryError");
        let error = libraries.update("one", Some("exports.a = 1;\nimport x from 'y'"), None, None);
        let error = error.await.expect_err("no import in a library");
        let place = (error.filename.as_deref(), error.line, error.column);
        assert_eq!(
            (error.name.as_str(), place),
            ("LibraryError", (Some("library:one"), Some(2), Some(1)))
        );
        libraries.update("one", Some("exports.a = 2"), None, None).await.expect("update");
        let one = libraries.get("one").await.expect("get").expect("a library");
        assert_eq!(
            (one.source.as_str(), one.summary.description.as_str()),
            ("exports.a = 2", "Has\n a.")
        );
        assert_eq!(
            libraries.update("two", None, None, None).await.expect_err("unknown").name,
            "LibraryError"
        );
        assert_eq!(libraries.list().await.expect("list").len(), 1);
        let text = kit.describe().await.expect("a description");
        assert!(text.contains("//   require('one'): Has a.\n"), "{text}");
        assert!(libraries.delete("one").await.expect("delete"));
        assert_eq!(libraries.get("one").await.expect("get"), None);
    });
}

#[test]
fn a_description_has_no_value_of_a_secret() {
    let value = "correct horse battery";
    let options = json!({
        "libraries": true,
        "secrets": { "KEY": { "value": value, "hosts": ["x.org"] } },
    });
    let options = KitOptions::read(&message(&options), None, Spelling::Camel).expect("options");
    let kit = Kit::new(options).expect("a kit");
    block_on(async {
        let libraries = kit.libraries().expect("libraries");
        let description = format!("uses {value}");
        let library = LibrarySource { description, ..LibrarySource::default() };
        libraries.create("l", library).await.expect("a library");
        let text = kit.describe().await.expect("a description");
        assert!(text.contains("require('l'): uses [secret KEY]\n"), "{text}");
    });
}

#[test]
fn bindings_call_by_name() {
    let kit = full();
    let call = |name: &str, args: Json| {
        let (sender, answer) = std::sync::mpsc::channel();
        kit.call(name, message(&args), move |done| drop(sender.send(done))).expect("a function");
        answer.recv_timeout(std::time::Duration::from_mins(2)).expect("an answer")
    };
    let value = |name: &str, args: Json| -> Json {
        call(name, args).expect("no error").deserialize().expect("plain data")
    };
    value("state.set", json!(["k", { "a": 1 }]));
    assert_eq!(value("state.get", json!(["k"])), json!({ "a": 1 }));
    value(
        "libraries.create",
        json!(["l", "return 1", { "language": "javascript", "description": "d" }]),
    );
    let listed = value("libraries.list", json!([]));
    assert_eq!((&listed[0]["name"], &listed[0]["language"]), (&json!("l"), &json!("javascript")));
    value("libraries.update", json!(["l", null, { "description": "e" }]));
    let library = value("libraries.get", json!(["l"]));
    assert_eq!((&library["source"], &library["description"]), (&json!("return 1"), &json!("e")));
    assert_eq!(value("libraries.delete", json!(["l"])), json!(true));
    assert_eq!(value("db.sql", json!(["SELECT 1"]))["rows"], json!([[1]]));
    let misuse = [
        (json!(["l"]), "a library needs a source"),
        (json!([]), "name must be a string, got nothing"),
        (json!([1]), "name must be a string, got a number"),
        (json!(["l", {}]), "source must be a string, got an object"),
        (json!(["l", "1", 1]), "options must be an object, got a number"),
        (json!(["l", "1", { "language": 1 }]), "language must be a string, got a number"),
        (
            json!(["l", "1", { "langage": "x" }]),
            "unknown option 'langage'; did you mean 'language'?",
        ),
    ];
    for (args, text) in misuse {
        let error = call("libraries.create", args).expect_err(text);
        assert_eq!((error.name.as_str(), error.message.as_str()), ("TypeError", text));
    }
    let mut function = Writer::new();
    function.object();
    function.key("agent");
    function.host_function(0);
    function.string("agent");
    function.end_object();
    let error =
        KitOptions::read(&function.finish(), None, Spelling::Camel).expect_err("a function");
    assert_eq!(error.message(), "agent must be a string, got a function");
    let unknown = kit.call("state.clear", Value::undefined(), |_| {}).expect_err("no function");
    assert!(unknown.message().contains("state.clear"));
}

#[test]
fn what_was_not_given_is_refused_and_so_is_a_closed_kit() {
    let kit = Kit::new(KitOptions::default()).expect("a kit");
    let refusals = [
        kit.state().map(drop).expect_err("none"),
        kit.db().map(drop).expect_err("none"),
        kit.libraries().map(drop).expect_err("none"),
        kit.secrets().map(drop).expect_err("none"),
    ];
    let texts: Vec<&str> = refusals.iter().map(isolane::Error::message).collect();
    let expected = [
        "this kit has no state",
        "this kit has no db",
        "this kit has no libraries",
        "this kit has no secrets",
    ];
    assert_eq!(texts, expected);
    assert!(refusals.iter().all(|error| error.kind() == ErrorKind::Type));
    let kit = full();
    let state = kit.state().expect("state");
    kit.close();
    kit.close();
    assert_eq!(kit.state().expect_err("closed").message(), "the kit is closed");
    assert!(block_on(state.get("k")).is_err());
    assert!(block_on(kit.describe()).is_err());
    let error = kit.run_tool("1", isolane_kit::ToolOptions::default()).wait().expect_err("closed");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Type, "the kit is closed"));
}

#[test]
fn secrets_come_and_go() {
    let kit = full();
    let secrets = kit.secrets().expect("secrets");
    let secret = SecretOptions {
        value: "abcdefgh".to_owned().into(),
        reveal: true,
        ..SecretOptions::default()
    };
    secrets.set("KEY", secret).expect("a secret");
    let other = message(&json!({ "value": "ijklmnop", "hosts": ["x.org"] }));
    kit.set_secret("OTHER", &other).expect("a secret");
    assert_eq!(secrets.names(), ["KEY", "OTHER"]);
    let text = block_on(kit.describe()).expect("a description");
    assert!(text.contains("declare const secrets: { KEY: string; OTHER: string };"), "{text}");
    assert!(!text.contains("abcdefgh"));
    assert!(secrets.delete("KEY") && !secrets.delete("KEY"));
    let error = kit.set_secret("BAD", &message(&json!({ "value": "short" }))).expect_err("misuse");
    assert!(!error.message().contains("short"), "{error}");
}

/// `{ agent: <unit> }`, or with the unit elsewhere.
fn with_unit(write: impl FnOnce(&mut Writer)) -> Value {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.finish()
}

/// A text of a lone surrogate would be another text once it is UTF-8, and agents of two such names one agent.
#[test]
fn lone_surrogates_are_misuse_in_every_text() {
    let lone = "has a lone surrogate, which is no character";
    let option = |name: &str| {
        with_unit(|out| {
            out.object();
            out.key(name);
            out.string16(&[0xD800]);
            out.end_object();
        })
    };
    for name in ["agent", "file", "fetch"] {
        let error = KitOptions::read(&option(name), None, Spelling::Camel).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Type);
        assert_eq!(error.message(), format!("{name} must be well-formed: it {lone}"));
    }
    let nested = with_unit(|out| {
        out.object();
        out.key("secrets");
        out.object();
        out.key("KEY");
        out.object();
        out.key("hosts");
        out.array(2);
        out.string("x.org");
        out.string16(&[0x61, 0xDC00]);
        (0..3).for_each(|_| out.end_object());
    });
    let error = KitOptions::read(&nested, None, Spelling::Camel).expect_err("a pattern");
    let place = "secrets.KEY.hosts[1]";
    assert_eq!(error.message(), format!("{place} must be well-formed: it {lone}"));

    let kit = full();
    let error = kit.set_secret("KEY", &option("value")).expect_err("a value");
    assert_eq!(error.message(), format!("secrets.KEY.value must be well-formed: it {lone}"));
    let called = |name: &str, args: Value| {
        let (sender, receiver) = std::sync::mpsc::channel();
        kit.call(name, args, move |done| drop(sender.send(done))).expect("a call");
        let error = receiver.recv().expect("an answer").expect_err(name);
        (error.name, error.message)
    };
    let list = |length: u32, write: &dyn Fn(&mut Writer)| {
        with_unit(|out| {
            out.array(length);
            write(out);
        })
    };
    let type_error =
        |text: &str| ("TypeError".to_owned(), format!("{text} must be well-formed: it {lone}"));
    let cases = [
        (
            "libraries.create",
            list(2, &|out| {
                out.string("a");
                out.string16(&[0xDBFF]);
            }),
            "a library's source",
        ),
        ("libraries.get", list(1, &|out| out.string16(&[0xD800])), "a library's name"),
        ("db.sql", list(1, &|out| out.string16(&[0x2D, 0x2D, 0xD800])), "a statement"),
        (
            "db.sql",
            list(2, &|out| {
                out.string("SELECT ?");
                out.array(1);
                out.string16(&[0xD801]);
            }),
            "parameter 1",
        ),
    ];
    for (name, args, text) in cases {
        assert_eq!(called(name, args), type_error(text));
    }
}

#[test]
fn agents_share_a_file_and_see_their_own_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = |agent: &str| {
        Kit::new(KitOptions {
            agent: agent.to_owned(),
            file: Some(folder.path().join("shared.db")),
            state: Some(StateLimits::default()),
            ..KitOptions::default()
        })
        .expect("a kit")
    };
    let (one, same, other) = (open("a"), open("a"), open("b"));
    block_on(async {
        one.state().expect("state").set("k", 1).await.expect("set");
        let value =
            |kit: Kit| async move { kit.state().expect("state").get("k").await.expect("get") };
        assert_eq!(value(same).await, message(&json!(1)));
        let mut null = Writer::new();
        null.null();
        assert_eq!(value(other).await, null.finish());
    });
}

#[test]
fn the_description_has_only_what_is_given() {
    let text =
        block_on(Kit::new(KitOptions::default()).expect("a kit").describe()).expect("a text");
    for absent in ["fetch(", "const state", "const db", "require(", "secrets"] {
        assert!(!text.contains(absent), "{absent}");
    }
    let text = block_on(full().describe()).expect("a text");
    for present in [
        "fetch(",
        "const state",
        "const db",
        "require(",
        "secrets",
        "at most 1000 rows",
        "ms, at most 30000",
        "declare class URL {",
        "declare class AbortSignal extends EventTarget {",
        "declare const crypto: {",
    ] {
        assert!(text.contains(present), "{present}\n{text}");
    }
}
