//! The environment of TypeScript behind a service: code in, records out.

use std::sync::Arc;

use isolane::{HostFunction, Inputs, Isolation, Runtime};
use isolane_environment::{
    Environment, EnvironmentBindings, EventKind, ExecutionExitState, ExecutionFailure,
    ExecutionHost, ExecutionInput, ExecutionState, NewProcess, ProcessRecord, ProcessService,
    ProcessServiceOptions, ToolContext, ToolDescription, ToolError, ToolInfo,
    TypeScriptEnvironment, TypeScriptEnvironmentOptions,
};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::place;

fn service(options: TypeScriptEnvironmentOptions) -> ProcessService {
    let runtime = Some(Runtime::new(&place::options()).expect("valid options"));
    let options = TypeScriptEnvironmentOptions { runtime, ..options };
    let environment = TypeScriptEnvironment::new(options).expect("valid options");
    let environment = Some(Arc::new(environment) as Arc<dyn Environment>);
    let options = ProcessServiceOptions { environment, ..ProcessServiceOptions::default() };
    ProcessService::new(options).expect("valid options")
}

fn plain() -> ProcessService {
    service(TypeScriptEnvironmentOptions::default())
}

async fn run(service: &ProcessService, code: &str) -> ProcessRecord {
    let pid = service.create(NewProcess::new(code)).await.expect("created").pid;
    service.wait(pid, None).await.expect("known")
}

/// The exit state and the error of code.
async fn ended(service: &ProcessService, code: &str) -> (&'static str, String) {
    let record = run(service, code).await;
    (record.exit_state.expect("it has ended").as_str(), record.error.unwrap_or_default())
}

async fn output(service: &ProcessService, code: &str) -> Value {
    let record = run(service, code).await;
    assert_eq!(record.error, None, "{code}");
    Value::Object(record.output.expect("a record has its output"))
}

#[tokio::test]
async fn code_prints_and_gives_output() {
    let service = plain();
    let code = "const n: number = await Promise.resolve(2);
        console.log('n is %d', n, { n }); console.info('i'); console.debug('d');
        console.warn('w'); console.error(new TypeError('e').message);
        stdout('a'); stdout(new Uint8Array([0xc3])); stdout(new Uint8Array([0xa4, 10])); stderr('b');
        output({ n, when: new Date(0) }); output({ list: [1, { x: null }] });
        return [n, 'text'];";
    let record = run(&service, code).await;
    assert_eq!((record.exit_state, record.error), (Some(ExecutionExitState::Success), None));
    assert_eq!(service.stdout(1).await.as_deref(), Ok("n is 2 { n: 2 }\ni\nd\na\u{e4}\n"));
    assert_eq!(service.stderr(1).await.as_deref(), Ok("w\ne\nb"));
    let expected = json!({
        "n": 2, "when": "1970-01-01T00:00:00.000Z", "list": [1, { "x": null }], "result": [2, "text"],
    });
    assert_eq!(Value::Object(record.output.expect("output")), expected);
    assert_eq!(output(&service, "export default { a: 1 }").await, json!({ "result": { "a": 1 } }));
    assert_eq!(output(&service, "1 + 1").await, json!({}));
    assert_eq!(output(&service, "return undefined").await, json!({}));
    assert_eq!(
        output(&service, "output(JSON.parse('{\"__proto__\":1}'))").await.to_string(),
        r#"{"__proto__":1}"#
    );
}

#[tokio::test]
async fn a_stream_that_is_full_costs_the_code_no_memory() {
    let options = TypeScriptEnvironmentOptions {
        memory_limit_bytes: Some(16 << 20),
        ..TypeScriptEnvironmentOptions::default()
    };
    let service = service(options);
    let code = "const line = 'x'.repeat(1 << 20); for (let i = 0; i < 32; i++) console.log(line);";
    let record = run(&service, code).await;
    assert_eq!((record.exit_state, record.error), (Some(ExecutionExitState::Success), None));
    assert_eq!((record.stdout.bytes, record.stdout.truncated), (8 << 20, true));
}

#[tokio::test]
async fn nothing_stays_for_the_next_execution() {
    let service = plain();
    run(&service, "globalThis.left = 1; Array.prototype.left = 2; var v = 3;").await;
    let code = "return [typeof left, typeof [].left, typeof v]";
    let expected = json!({ "result": ["undefined", "undefined", "undefined"] });
    assert_eq!(output(&service, code).await, expected);
}

#[tokio::test]
async fn failures_have_their_place() {
    let service = plain();
    let record = run(&service, "const x: any = 1;\nx.y();").await;
    let details = record.error_details.expect("details");
    assert_eq!(details.name.as_deref(), Some("TypeError"));
    assert_eq!((details.filename.as_deref(), details.line), (Some("process-1.ts"), Some(2)));
    assert!(details.stack.is_some());
    let error = "TypeError: x.y is not a function (x is a number) (process-1.ts:2:3)";
    assert_eq!(record.error.as_deref(), Some(error));
    let error = "ReferenceError: Cannot find module 'lodash' imported from 'process-2.ts'; no imports were given (process-2.ts:1:19)";
    let code = "import { a } from 'lodash'; a()";
    assert_eq!(ended(&service, code).await, ("failed", error.to_owned()));
    let (exit, error) =
        ended(&service, "const all = []; for (;;) all.push(new Array(1000).fill(0))").await;
    assert_eq!(exit, "failed");
    assert!(error.starts_with("MemoryLimit"), "{error}");
    assert_eq!(
        ended(&service, "throw new RangeError('no')").await.1,
        "RangeError: no (process-4.ts:1:11)"
    );
}

#[tokio::test]
async fn code_that_takes_too_long_is_a_timeout() {
    let service = plain();
    for code in ["for (;;);", "try { for (;;); } finally { for (;;); }"] {
        let new = NewProcess { timeout_ms: Some(50), ..NewProcess::new(code) };
        let pid = service.create(new).await.expect("created").pid;
        let record = service.wait(pid, None).await.expect("known");
        assert_eq!(record.exit_state, Some(ExecutionExitState::Timeout));
        assert_eq!(record.error.as_deref(), Some("the execution took longer than 50 ms"));
    }
    // Code cannot forge one.
    let code = "const e = new Error('x'); e.name = 'Timeout'; throw e";
    assert_eq!(ended(&service, code).await.0, "failed");
}

#[tokio::test]
async fn a_kill_stops_code_that_computes_and_code_that_waits() {
    let service = plain();
    let waits = HostFunction::future(async || std::future::pending::<()>().await);
    let options = TypeScriptEnvironmentOptions {
        globals: Inputs::new().with("waits", waits),
        ..TypeScriptEnvironmentOptions::default()
    };
    let waiting = self::service(options);
    for (service, code) in
        [(service, "console.log('on'); for (;;);"), (waiting, "console.log('on'); await waits()")]
    {
        let pid = service.create(NewProcess::new(code)).await.expect("created").pid;
        let mut events = service.events(pid, 0).await.expect("known").expect("events can follow");
        // The line is there while the code runs.
        while events.next().await.expect("not behind").expect("not over").kind != EventKind::Stdout
        {
        }
        service.kill(pid).await.expect("killed");
        let record = service.wait(pid, None).await.expect("known");
        assert_eq!((record.exit_state, record.error), (Some(ExecutionExitState::Canceled), None));
        assert_eq!(service.stdout(pid).await.as_deref(), Ok("on\n"));
    }
}

#[tokio::test]
async fn what_json_has_not_is_an_error_with_its_path() {
    let service = plain();
    for (code, expected) in [
        (
            "output({ a: { b: [1, 2n] } })",
            "TypeError: output.a.b[1] is a bigint, which JSON has not",
        ),
        ("output({ a: undefined })", "TypeError: output.a is undefined, which JSON has not"),
        ("output({ a: NaN })", "TypeError: output.a is NaN, which JSON has not"),
        ("output({ a: new Map() })", "TypeError: output.a is a Map, which JSON has not"),
        (
            "const o: any = {}; o.o = o; output(o)",
            "TypeError: output.o is a cycle, which JSON has not",
        ),
        ("output([1])", "TypeError: output takes a plain object"),
        ("output()", "TypeError: output takes a plain object"),
        ("stdout(5)", "TypeError: stdout takes text or a Uint8Array"),
        ("return new Set()", "TypeError: result is a Set, which JSON has not"),
        (
            "output({ a: 'x'.repeat(9_000_000) })",
            "RangeError: the output would be larger than 8388608 bytes of JSON",
        ),
        (
            "stdout('x'.repeat(5_000_000))",
            "RangeError: stdout takes at most 4194304 bytes in a call, got 5000000",
        ),
    ] {
        let (exit, error) = ended(&service, code).await;
        assert_eq!(exit, "failed", "{code}");
        assert!(error.starts_with(expected), "{code}: {error}");
    }
    assert_eq!(ended(&service, "return () => 1").await.0, "failed");
}

#[tokio::test]
async fn tools_are_imports() {
    let service = plain();
    let schema = json!({ "type": "object", "properties": { "owner": { "type": "string" } }, "required": ["owner"] });
    let description = ToolDescription {
        description: "Lists issues.".to_owned(),
        input_schema: Some(schema),
        output_schema: None,
    };
    let list = |args: Value, context: ToolContext| async move {
        match args["owner"].as_str() {
            Some("nobody") => Err(ToolError::new("Error", "no such owner").with_code(404)),
            _ => Ok(json!({ "args": args, "eid": context.eid, "big": 9_007_199_254_740_993_u64 })),
        }
    };
    service.tool("github", "list-issues", description, list).expect("a tool");
    let code = "import { listIssues } from 'github';
        return await listIssues({ owner: 'me', cursor: undefined })";
    // Numbers are those of JavaScript.
    let expected = r#"{"result":{"args":{"owner":"me"},"eid":1,"big":9007199254740992.0}}"#;
    assert_eq!(output(&service, code).await.to_string(), expected);
    // Arguments that cannot cross reject, too, and run no trap.
    let code = "import { listIssues } from 'github';
        const hostile: any = new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } });
        const call = listIssues(hostile);
        return [call instanceof Promise, await call.catch((e) => e instanceof TypeError && e.message)]";
    let expected = json!({ "result": [true, "arguments[0]: a Proxy cannot be cloned"] });
    assert_eq!(output(&service, code).await, expected);
    let code = "import { listIssues } from 'github';
        const seen = [];
        for (const args of [{ owner: 5 }, { owner: 'nobody' }, 'me', undefined, { owner: 'me', x: 1n }])
            try { await listIssues(args as any) } catch (e) { seen.push([e.name, e.message, e.code ?? null, e instanceof Error]) }
        return seen;";
    let expected = json!({ "result": [
        ["TypeError", "github.listIssues: args.owner must be string", null, true],
        ["Error", "no such owner", 404, true],
        ["TypeError", "github.listIssues takes one object", null, true],
        ["TypeError", "github.listIssues: args.owner is missing", null, true],
        ["TypeError", "github.listIssues: args.x is a bigint, which JSON has not", null, true],
    ] });
    assert_eq!(output(&service, code).await, expected);
    let (exit, error) = ended(&service, "import { close } from 'github'; await close({})").await;
    assert_eq!(exit, "failed");
    assert!(
        error.contains("Module 'github' has no export 'close'; it exports 'listIssues'"),
        "{error}"
    );
    let (_, error) = ended(&service, "import { x } from 'lodash'").await;
    assert!(error.contains("imports given: 'github'"), "{error}");
    let docs = service.tool_docs("github", "list-issues").await.expect("described");
    assert!(docs.contains("import { listIssues } from 'github';"), "{docs}");
    let docs = service.environment_docs().await.expect("described");
    assert!(docs.starts_with("# TypeScript\n"), "{docs}");
}

#[tokio::test]
async fn two_executions_share_no_place_that_there_is_not() {
    let (sender, begun) = oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let begin = HostFunction::new(move || {
        let sender = sender.lock().expect("whole").take();
        sender.map(|sender| sender.send(()).is_ok())
    });
    let options = TypeScriptEnvironmentOptions {
        concurrency: Some(1),
        globals: Inputs::new().with("begin", begin),
        ..TypeScriptEnvironmentOptions::default()
    };
    let service = self::service(options);
    let first = service.create(NewProcess::new("begin(); for (;;);")).await.expect("created").pid;
    begun.await.expect("the first one runs");
    let second = service.create(NewProcess::new("1")).await.expect("created").pid;
    let third = service.create(NewProcess::new("1")).await.expect("created").pid;
    // Killed while it waits in the environment.
    service.kill(third).await.expect("killed");
    let record = service.wait(third, None).await.expect("known");
    assert_eq!((record.exit_state, record.started_at), (Some(ExecutionExitState::Canceled), None));
    assert_eq!(service.get(second).await.expect("known").state.as_str(), "queued");
    service.kill(first).await.expect("killed");
    let record = service.wait(second, None).await.expect("known");
    assert_eq!(record.exit_state, Some(ExecutionExitState::Success));
    service.shutdown().await;
}

#[tokio::test]
async fn a_lost_worker_is_a_failure() {
    if !place::is_process() {
        return;
    }
    let service = plain();
    let code =
        "console.log('on'); const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1))";
    let (exit, error) = ended(&service, code).await;
    assert_eq!(exit, "failed");
    assert!(error.starts_with("MemoryLimit") || error.starts_with("WorkerLost"), "{error}");
    // The next execution has a worker of its own.
    assert_eq!(output(&service, "return 1").await, json!({ "result": 1 }));
}

#[tokio::test]
async fn executions_without_a_service_take_the_default_time() {
    #[derive(Default)]
    struct Noted(std::sync::Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl ExecutionHost for Noted {
        fn set_state(&self, state: ExecutionState) {
            self.0.lock().expect("whole").push(state.as_str().to_owned());
        }
        fn stdout(&self, _bytes: &[u8]) {}
        fn stderr(&self, _bytes: &[u8]) {}
        fn output(&self, _fields: Map<String, Value>) -> Result<(), isolane::Error> {
            Ok(())
        }
        fn error(&self, failure: ExecutionFailure) {
            self.0.lock().expect("whole").push(failure.line());
        }
        async fn invoke_tool(&self, _name: &str, _args: Value) -> Result<Value, ToolError> {
            Ok(Value::Null)
        }
        fn tools(&self) -> Arc<[ToolInfo]> {
            Arc::new([])
        }
    }

    let options = TypeScriptEnvironmentOptions {
        default_timeout_ms: Some(50),
        ..TypeScriptEnvironmentOptions::default()
    };
    let environment = TypeScriptEnvironment::new(options).expect("valid");
    let noted = Arc::new(Noted::default());
    let bindings = EnvironmentBindings::new(3, Arc::clone(&noted) as _);
    let input = ExecutionInput { eid: 3, code: "for (;;);".to_owned(), options: None };
    let running = environment.execute(input.clone(), bindings.clone());
    let second = environment.execute(input, bindings);
    let (ended, refused) = tokio::join!(running, second);
    assert_eq!(ended, Ok(ExecutionExitState::Timeout));
    let refused = refused.expect_err("it is here already").to_string();
    assert!(refused.starts_with("execution 3 is already "), "{refused}");
    let expected = ["queued", "running", "the execution took longer than 50 ms"];
    assert_eq!(*noted.0.lock().expect("whole"), expected);
}

#[tokio::test]
async fn after_a_shutdown_all_is_canceled() {
    let environment = Arc::new(
        TypeScriptEnvironment::new(TypeScriptEnvironmentOptions::default()).expect("valid"),
    );
    environment.shutdown().await;
    let options = ProcessServiceOptions {
        environment: Some(environment as Arc<dyn Environment>),
        ..ProcessServiceOptions::default()
    };
    let service = ProcessService::new(options).expect("valid options");
    assert_eq!(ended(&service, "1").await, ("canceled", String::new()));
}

#[test]
fn options_are_checked() {
    let refused = |options| TypeScriptEnvironment::new(options).expect_err("refused").to_string();
    let options = TypeScriptEnvironmentOptions::default;
    let both = TypeScriptEnvironmentOptions {
        runtime: Some(Runtime::shared()),
        isolation: Some(Isolation::Thread),
        ..options()
    };
    assert_eq!(refused(both), "runtime and isolation exclude each other");
    let name =
        TypeScriptEnvironmentOptions { globals: Inputs::new().with("output", 1), ..options() };
    assert_eq!(refused(name), "globals.output is the environment's: choose another name");
    let none = TypeScriptEnvironmentOptions { concurrency: Some(0), ..options() };
    assert_eq!(refused(none), "concurrency must be a whole number from 1 to 1000000, got 0");
    let small = TypeScriptEnvironmentOptions { memory_limit_bytes: Some(0), ..options() };
    assert!(refused(small).contains("memory_limit_bytes"));
}
