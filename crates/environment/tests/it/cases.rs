//! The table of cases that all languages share.

use std::sync::Arc;

use isolane::{ErrorCode, Runtime, Spelling};
use isolane_environment::{
    Environment, ListQuery, NewProcess, ProcessError, ProcessService, ProcessServiceOptions,
    RunQuery, ToolContext, ToolDescription, ToolError, TypeScriptEnvironment,
    TypeScriptEnvironmentOptions,
};
use serde_json::{Map, Value, json};

use crate::place;

const CASES: &str = include_str!("../cases/processes.json");

/// The fields of a step that are no call.
const EXPECTED: [&str; 4] = ["gives", "fails", "force", "after"];

#[tokio::test]
async fn the_cases_hold() {
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the table is JSON");
    let runtime = Runtime::new(&place::options()).expect("valid options");
    for case in &cases {
        let environment = TypeScriptEnvironment::new(TypeScriptEnvironmentOptions {
            runtime: Some(runtime.clone()),
            memory_limit_bytes: case["limit"].as_u64(),
            ..TypeScriptEnvironmentOptions::default()
        });
        let options = case.get("options").cloned().unwrap_or_else(|| json!({}));
        let options = ProcessServiceOptions {
            environment: Some(Arc::new(environment.expect("valid options")) as Arc<dyn Environment>),
            ..ProcessServiceOptions::from_json(&options, Spelling::Camel).expect("valid options")
        };
        let service = ProcessService::new(options).expect("valid options");
        if case["tools"] == true {
            add_tools(&service);
        }
        for step in case["steps"].as_array().expect("steps") {
            play(&service, &case["name"], step).await;
        }
        service.shutdown().await;
    }
}

async fn play(service: &ProcessService, name: &Value, step: &Value) {
    let answer = call(service, step).await;
    match (answer, step.get("fails")) {
        (Ok(answer), None) => {
            if let Some(expected) = step.get("gives") {
                assert!(fits(&answer, expected), "{name}: {step}\n{answer}");
            }
        }
        (Err(error), Some(fails)) => {
            assert_eq!(fails[0], error.code.as_str(), "{name}: {step}");
            if let Some(message) = fails[1].as_str() {
                // The options are spelled as in Node.js.
                let message = message.replace(['{', '}'], "");
                assert_eq!(error.message, message, "{name}: {step}");
            }
        }
        (Ok(answer), Some(_)) => panic!("{name}: {step} gave {answer}"),
        (Err(error), None) => panic!("{name}: {step}: {error}"),
    }
}

async fn call(service: &ProcessService, step: &Value) -> Result<Value, ProcessError> {
    let fields = step.as_object().expect("an object");
    let (name, given) =
        fields.iter().find(|(key, _)| !EXPECTED.contains(&key.as_str())).expect("a call");
    let pid = given.as_u64().unwrap_or_default();
    let record = |record| serde_json::to_value(record).expect("a record is JSON");
    Ok(match name.as_str() {
        "create" => record(service.create(NewProcess::from_json(given)?).await?),
        "ran" => {
            let code = given.as_str().expect("code");
            let pid = service.create(NewProcess::new(code)).await?.pid;
            record(service.wait(pid, None).await?)
        }
        "wait" => record(service.wait(pid, None).await?),
        "get" => record(service.get(pid).await?),
        "run" => record(service.run(pid, RunQuery { force: step["force"] == true }).await?),
        "kill" => record(service.kill(pid).await?),
        "delete" => service.delete(pid).await.map(|()| Value::Null)?,
        "code" => service.code(pid).await?.into(),
        "stdout" => service.stdout(pid).await?.into(),
        "stderr" => service.stderr(pid).await?.into(),
        "output" => service.output(pid).await?.into(),
        "list" => {
            let fields = given.as_object().expect("a query").iter();
            let text =
                |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let pairs: Vec<(&str, String)> =
                fields.map(|(name, value)| (name.as_str(), text(value))).collect();
            let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str()));
            let list = service.list(ListQuery::from_pairs(pairs)?).await?;
            serde_json::to_value(list).expect("a list is JSON")
        }
        "events" => {
            let mut seen = Vec::new();
            let after = step["after"].as_u64().unwrap_or(0);
            if let Some(mut events) = service.events(pid, after).await? {
                while let Some(event) = events.next().await.expect("not behind") {
                    let data: Value = serde_json::from_str(&event.data).expect("JSON");
                    seen.push(json!([event.kind.as_str(), data]));
                }
            }
            seen.into()
        }
        other => panic!("no call {other}"),
    })
}

/// Whether a value is as expected; of an object only the fields that are expected count.
fn fits(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::Array(items) => value.as_array().is_some_and(|list| {
            list.len() == items.len()
                && list.iter().zip(items).all(|(value, item)| fits(value, item))
        }),
        Value::Object(fields) => fields.iter().all(|(key, item)| fits(&value[key], item)),
        Value::String(text) => match text.strip_suffix('…') {
            Some(beginning) => value.as_str().is_some_and(|text| text.starts_with(beginning)),
            None => value == expected,
        },
        _ => value == expected,
    }
}

fn add_tools(service: &ProcessService) {
    let level = json!({
        "type": "object",
        "properties": {
            "and": { "type": "array", "items": { "$ref": "#/$defs/query" } },
            "eq": { "type": "number" },
        },
        "additionalProperties": false,
    });
    let query = json!({ "anyOf": [level, level] });
    let adds = json!({
        "type": "object",
        "properties": { "numbers": { "type": "array", "items": { "type": "number" } } },
        "required": ["numbers"],
    });
    let finds = json!({
        "type": "object",
        "properties": { "query": { "$ref": "#/$defs/query" } },
        "required": ["query"],
        "$defs": { "query": query },
    });
    let described = |schema: Option<&Value>| ToolDescription {
        input_schema: schema.cloned(),
        ..ToolDescription::default()
    };
    let sum = |args: Value, _: ToolContext| async move {
        let numbers = args["numbers"].as_array().map_or(&[][..], Vec::as_slice);
        // The numbers of the table are whole.
        Ok(numbers.iter().filter_map(Value::as_i64).sum::<i64>().into())
    };
    let fail = |_: Value, _: ToolContext| async {
        let error = ToolError::new("RangeError", "no such row");
        Err::<Value, _>(error.with_code(ErrorCode::Number(404.0)))
    };
    let echo = |args: Value, _: ToolContext| async move { Ok(args) };
    let find = |_: Value, _: ToolContext| async { Ok("found".into()) };
    let added = [
        service.tool("math", "add-all", described(Some(&adds)), sum),
        service.tool("math", "fail", described(None), fail),
        service.tool("shop", "echo", described(None), echo),
        service.tool("shop", "find", described(Some(&finds)), find),
    ];
    for added in added {
        added.expect("a tool");
    }
}

#[test]
fn each_step_of_the_table_has_one_call() {
    let cases: Vec<Map<String, Value>> = serde_json::from_str(CASES).expect("the table is JSON");
    for case in cases {
        for step in case["steps"].as_array().expect("steps") {
            let keys = step.as_object().expect("an object").keys();
            assert_eq!(keys.filter(|key| !EXPECTED.contains(&key.as_str())).count(), 1, "{step}");
        }
    }
}
