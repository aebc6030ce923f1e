//! Tools: checks, limits, the end of an execution.

use std::sync::{Arc, Mutex};

use isolane_environment::{
    ExecutionExitState::Success, ProcessService, ProcessState::Idle, ToolContext, ToolDescription,
    ToolError, ToolInfo,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{create, narrow, settle};

fn described(schema: Option<Value>) -> ToolDescription {
    ToolDescription {
        description: "Does it.".to_owned(),
        input_schema: schema,
        output_schema: None,
    }
}

fn owner() -> Value {
    json!({ "type": "object", "properties": { "owner": { "type": "string" } } })
}

fn add(service: &ProcessService, name: &str, schema: Option<Value>) -> Result<(), isolane::Error> {
    let echo = async |args: Value, context: ToolContext| {
        Ok::<_, ToolError>(json!({ "eid": context.eid, "args": args }))
    };
    service
        .tool("github", name, described(schema), move |args, context| Box::pin(echo(args, context)))
}

#[tokio::test(start_paused = true)]
async fn arguments_are_checked_before_the_handler_is_called() {
    let (service, driven) = narrow();
    add(&service, "list-issues", Some(owner())).expect("a tool");
    create(&service, "").await;
    add(&service, "later", None).expect("a tool");
    let bindings = driven.bindings(1);
    let names: Vec<String> = bindings.tools().iter().map(ToolInfo::shown_name).collect();
    assert_eq!(names, ["github.listIssues"], "those of its start");
    let call = |args| bindings.invoke_tool(1, "github.list-issues", args);
    let answer = call(json!({ "owner": "me" })).await;
    assert_eq!(answer, Ok(json!({ "eid": 1, "args": { "owner": "me" } })));
    let error = call(json!({ "owner": 5 })).await.expect_err("refused");
    assert_eq!(error.to_string(), "TypeError: github.listIssues: args.owner must be string");
    let error = call(json!({ "owner": "x".repeat(4 << 20) })).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "RangeError: github.listIssues: args are larger than 4194304 bytes of JSON"
    );
    let error = bindings.invoke_tool(1, "github.later", json!({})).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "TypeError: there is no tool 'github.later'; there are: github.list-issues"
    );
    driven.end(1, Ok(Success));
    settle().await;
    let error = call(json!({})).await.expect_err("refused");
    assert_eq!(error.message, "the execution has ended");
    let counts: Vec<(&str, u64)> =
        service.stats().tool_calls.iter().map(|count| (count.outcome, count.count)).collect();
    assert_eq!(counts, [("ok", 1), ("refused", 2)]);
}

#[tokio::test(start_paused = true)]
async fn sixteen_calls_are_answered_at_once_and_a_thousand_in_all() {
    let (service, driven) = narrow();
    let (open, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(0)));
    {
        let (open, begun) = (Arc::clone(&open), Arc::clone(&begun));
        let handler = move |_: Value, _: ToolContext| {
            let (open, begun) = (Arc::clone(&open), Arc::clone(&begun));
            async move {
                *begun.lock().expect("whole") += 1;
                open.acquire().await.expect("open").forget();
                Ok(Value::Null)
            }
        };
        service.tool("shop", "order", described(None), handler).expect("a tool");
    }
    create(&service, "").await;
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let bindings = driven.bindings(1);
            tokio::spawn(async move { bindings.invoke_tool(1, "shop.order", json!({})).await })
        })
        .collect();
    settle().await;
    assert_eq!(*begun.lock().expect("whole"), 16);
    open.add_permits(2);
    settle().await;
    assert_eq!(*begun.lock().expect("whole"), 18);
    let error =
        driven.bindings(1).invoke_tool(1, "shop.order", json!({})).await.expect_err("too many");
    assert_eq!(error.to_string(), "RangeError: shop.order: an execution may call tools 1000 times");
    open.add_permits(998);
    for call in calls {
        assert_eq!(call.await.expect("no panic"), Ok(Value::Null));
    }
    driven.end(1, Ok(Success));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_execution_aborts_its_calls() {
    let (service, driven) = narrow();
    let signals = Arc::new(Mutex::new(Vec::new()));
    {
        let signals = Arc::clone(&signals);
        let handler = move |_: Value, context: ToolContext| {
            signals.lock().expect("whole").push(context.signal);
            std::future::pending()
        };
        service.tool("shop", "wait", described(None), handler).expect("a tool");
    }
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let call = tokio::spawn(async move { bindings.invoke_tool(1, "shop.wait", json!({})).await });
    settle().await;
    assert!(!signals.lock().expect("whole")[0].is_cancelled());
    driven.end(1, Ok(Success));
    let error = call.await.expect("no panic").expect_err("dropped");
    assert_eq!(error.message, "the execution has ended");
    assert!(signals.lock().expect("whole")[0].is_cancelled());
    assert_eq!(service.stats().tool_calls[0].outcome, "dropped");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_drops_is_counted() {
    let (service, driven) = narrow();
    let handler = |_: Value, _: ToolContext| std::future::pending();
    service.tool("shop", "wait", described(None), handler).expect("a tool");
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let call = tokio::spawn(async move { bindings.invoke_tool(1, "shop.wait", json!({})).await });
    settle().await;
    call.abort();
    call.await.expect_err("it is dropped");
    let counts = service.stats().tool_calls;
    assert_eq!((counts[0].outcome, counts[0].count, counts.len()), ("dropped", 1, 1));
    driven.end(1, Ok(Success));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_being_checked_at_the_end_are_dropped() {
    let (service, driven) = narrow();
    // Arguments of this size are checked on another thread, which a paused clock does not wait for.
    let schema = json!({ "type": "object", "properties": { "text": { "pattern": "^(ab)*$" } } });
    let handler = |args: Value, _: ToolContext| async move { Ok(args) };
    service.tool("shop", "order", described(Some(schema)), handler).expect("a tool");
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let args = json!({ "text": "ab".repeat(1 << 20) });
    let mut call = Box::pin(bindings.invoke_tool(1, "shop.order", args));
    assert!(futures::poll!(&mut call).is_pending());
    driven.end(1, Ok(Success));
    while service.get(1).await.expect("a record").state != Idle {
        settle().await;
    }
    assert_eq!(call.await.expect_err("dropped").message, "the execution has ended");
    let counts = service.stats().tool_calls;
    assert_eq!((counts[0].outcome, counts[0].count, counts.len()), ("dropped", 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_an_error_of_a_tool_are_errors_of_the_call() {
    let (service, driven) = narrow();
    let handler = |args: Value, _: ToolContext| async move {
        assert!(args.get("panic").is_none(), "the arguments ask for it");
        Err(ToolError::new("QuotaError", "no more").with_code("QUOTA"))
    };
    service.tool("shop", "fail", described(None), handler).expect("a tool");
    create(&service, "").await;
    let failed = async |args: Value| {
        let bindings = driven.bindings(1);
        bindings.invoke_tool(1, "shop.fail", args).await.expect_err("failed")
    };
    assert_eq!(failed(json!({})).await, ToolError::new("QuotaError", "no more").with_code("QUOTA"));
    assert_eq!(failed(json!({ "panic": 1 })).await.message, "shop.fail: the tool panicked");
    driven.end(1, Ok(Success));
}

#[tokio::test(start_paused = true)]
async fn names_and_schemas_are_checked() {
    let (service, _) = narrow();
    add(&service, "list-issues", None).expect("a tool");
    let refused =
        |name: &str, schema| add(&service, name, schema).expect_err("refused").to_string();
    assert_eq!(refused("list-issues", None), "there is a tool github.list-issues already");
    assert_eq!(
        refused("listIssues", None),
        "github.listIssues and github.list-issues would both be github.listIssues"
    );
    assert_eq!(refused("a b", None), "'a b' is no name of a tool");
    let no_schema = refused("x", Some(json!({ "type": "thing" })));
    assert!(
        no_schema.starts_with("the inputSchema of github.x is no JSON schema: "),
        "{no_schema}"
    );
    assert_eq!(service.tools().len(), 1);
    assert_eq!(
        service.tool_types(),
        "declare module 'github' {\n  /** Does it. */\n  export function listIssues(args?: { [key: string]: unknown \
         }): Promise<unknown>;\n}\n"
    );
    let listed = serde_json::to_value(&*service.tools()).expect("JSON");
    let expected = json!([{ "service": "github", "name": "list-issues", "identifier": "listIssues", "description": "Does it." }]);
    assert_eq!(listed, expected);
    let error = service.tool_docs("github", "list-issues").await.expect_err("it describes none");
    assert_eq!(error.message, "the environment describes no tools");
    let error = service.tool_docs("github", "other").await.expect_err("there is none");
    assert_eq!(error.message, "there is no tool github.other");
    service.remove_tool("github", "list-issues");
    assert!(service.tools().is_empty());
}
