//! The cases of the loop: `tests/cases/loop.json`, which the runners of other languages read too.
//!
//! `tests/cases/README.md` has the format.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt as _;
use isolane::Spelling;
use isolane_executors::{
    CancellationToken, CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, CodeExecutor,
    CodeLoop, ExecutorError, ExecutorErrorKind, InvocationContext, LoopInput, Model, ModelError,
    ModelReply, ModelRequest, Part, PartStream,
};
use serde_json::{Map, Value as Json, json};

const CASES: &str = include_str!("../cases/loop.json");
const CEILING: Duration = Duration::from_mins(2);

#[derive(Debug)]
struct CaseModel {
    replies: Mutex<VecDeque<Json>>,
    requests: Mutex<Vec<Json>>,
}

#[async_trait::async_trait]
impl Model for CaseModel {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let request = serde_json::to_value(&request).expect("plain data");
        self.requests.lock().expect("no panic").push(request);
        let reply = self.replies.lock().expect("no panic").pop_front();
        let reply = reply.ok_or("the case has no reply left")?;
        if reply.get("hang").is_some() {
            std::future::pending::<()>().await;
        }
        if let Some(parts) = reply.get("stream") {
            return Ok(ModelReply::Stream(stream(parts, reply.get("error"))));
        }
        if let Some(error) = reply.get("error") {
            return Err(error.as_str().expect("a text").into());
        }
        let parts = reply.get("parts").or_else(|| reply.get("text")).expect("a reply").clone();
        Ok(ModelReply::Parts(Part::list_from_json(parts)?))
    }
}

/// A stream of parts, which a task gives one after another.
fn stream(parts: &Json, error: Option<&Json>) -> PartStream {
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let parts = parts.as_array().expect("a list").clone();
    let error = error.and_then(Json::as_str).map(str::to_owned);
    tokio::spawn(async move {
        for part in parts {
            tokio::task::yield_now().await;
            let part = match part {
                Json::String(text) => Part::text(text),
                part => Part::from_json(part).expect("a part"),
            };
            // A run that is over reads no more.
            let _ = sender.unbounded_send(Ok(part));
        }
        if let Some(error) = error {
            let _ = sender.unbounded_send(Err(ModelError::from(error)));
        }
    });
    Box::pin(receiver)
}

#[derive(Debug)]
struct CaseExecutor {
    settings: Json,
    calls: Mutex<VecDeque<Json>>,
    inputs: Mutex<Vec<Json>>,
}

#[async_trait::async_trait]
impl CodeExecutor for CaseExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let mut seen = serde_json::to_value(&input).expect("plain data");
        seen["turn"] = context.turn.into();
        seen["attempt"] = context.attempt.into();
        self.inputs.lock().expect("no panic").push(seen);
        let call = self.calls.lock().expect("no panic").pop_front().expect("a call of the case");
        for output in call.get("live").and_then(Json::as_array).into_iter().flatten() {
            let bytes: Vec<u8> = match &output[1] {
                Json::String(text) => text.as_bytes().to_vec(),
                bytes => serde_json::from_value(bytes.clone()).expect("bytes"),
            };
            match output[0].as_str() {
                Some("stdout") => context.stdout(&bytes),
                _ => context.stderr(&bytes),
            }
        }
        if let Some(time) = call.get("takesMs").and_then(Json::as_u64) {
            tokio::time::sleep(Duration::from_millis(time)).await;
        }
        if call.get("hang").is_some() {
            std::future::pending::<()>().await;
        }
        assert!(call.get("panics").is_none(), "a bug");
        if let Some(error) = call.get("error") {
            let kind = match error["kind"].as_str().expect("a kind") {
                "bad_input" => ExecutorErrorKind::BadInput,
                "cancelled" => ExecutorErrorKind::Cancelled,
                "spawn" => ExecutorErrorKind::Spawn,
                _ => ExecutorErrorKind::Other,
            };
            return Err(ExecutorError::new(kind, error["message"].as_str().unwrap_or_default()));
        }
        Ok(serde_json::from_value(call["result"].clone()).expect("a result"))
    }

    fn stateful(&self) -> bool {
        self.settings["stateful"] == true
    }

    fn error_retry_attempts(&self) -> u32 {
        self.settings["attempts"].as_u64().map_or(2, |count| u32::try_from(count).expect("few"))
    }

    fn timeout(&self) -> Option<Duration> {
        match self.settings.get("timeoutMs") {
            Some(Json::Null) => None,
            Some(time) => Some(Duration::from_millis(time.as_u64().expect("a time"))),
            None => Some(Duration::from_secs(30)),
        }
    }

    fn code_block_delimiters(&self) -> Vec<CodeBlockDelimiters> {
        let fence = |word: &str| (format!("```{word}\n"), "\n```".to_owned());
        vec![fence("tool_code"), fence("python")]
    }
}

/// The outcome of a case, in the form of its expectation.
async fn outcome(case: &Json) -> Json {
    let list = |json: &Json| json.as_array().cloned().unwrap_or_default().into();
    let model = Arc::new(CaseModel {
        replies: Mutex::new(list(&case["model"])),
        requests: Mutex::default(),
    });
    let executor = Arc::new(CaseExecutor {
        settings: case["executor"].clone(),
        calls: Mutex::new(list(&case["executor"]["calls"])),
        inputs: Mutex::default(),
    });
    let none = Map::new();
    let options = case.get("options").and_then(Json::as_object).unwrap_or(&none);
    let code_loop = CodeLoop::builder().model(model.clone()).executor(executor.clone());
    let code_loop = match code_loop
        .json_options(options, Spelling::Camel)
        .and_then(isolane_executors::CodeLoopBuilder::build)
    {
        Ok(code_loop) => code_loop,
        Err(error) => return json!({ "misuse": error.message() }),
    };
    let input = case.get("input").cloned().unwrap_or_else(|| "go".into());
    let input = match LoopInput::from_json(input) {
        Ok(input) => input,
        Err(error) => return json!({ "misuse": error.message() }),
    };
    let cancellation = CancellationToken::new();
    let cancel_at = case["cancel"].as_u64();
    if cancel_at == Some(0) {
        cancellation.cancel();
    }
    let mut stream = code_loop.stream_until(input, &cancellation);
    let (mut events, mut error) = (Vec::new(), Json::Null);
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => {
                let mut event = serde_json::to_value(&event).expect("plain data");
                if let Some(fields) = event.as_object_mut() {
                    let time = fields.shift_remove("durationMs");
                    assert!(time.is_none_or(|time| time.is_f64()), "a time is a number");
                }
                events.push(event);
            }
            Err(model) => error = model.to_string().into(),
        }
        if cancel_at == Some(events.len() as u64) {
            cancellation.cancel();
        }
    }
    let result = stream.into_result();
    let mut result = serde_json::to_value(&result).expect("plain data");
    let contents = result.as_object_mut().and_then(|fields| fields.shift_remove("contents"));
    let requests = model.requests.lock().expect("no panic").clone();
    json!({
        "events": events,
        "result": result,
        "contents": contents,
        "error": error,
        "inputs": executor.inputs.lock().expect("no panic").clone(),
        "requests": requests,
    })
}

/// The parts of an outcome that a case expects.
fn expected_part(actual: &Json, expected: &Json) -> Json {
    let part = |(name, expected): (&String, &Json)| {
        let actual = actual.get(name).cloned().unwrap_or(Json::Null);
        let actual = match (actual, expected) {
            // Of inputs and requests a case may expect some fields.
            (Json::Array(actual), Json::Array(expected))
                if name == "inputs" || name == "requests" || name == "eventsWith" =>
            {
                let with = |(index, actual): (usize, Json)| match expected.get(index) {
                    Some(expected) => expected_part(&actual, expected),
                    None => actual,
                };
                actual.into_iter().enumerate().map(with).collect()
            }
            (actual, _) => actual,
        };
        (name.clone(), actual)
    };
    match expected {
        Json::Object(fields) => fields.iter().map(part).collect::<Map<_, _>>().into(),
        _ => actual.clone(),
    }
}

#[tokio::test]
async fn the_cases_of_the_loop() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("JSON");
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        let Ok(actual) = tokio::time::timeout(CEILING, outcome(case)).await else {
            failures.push(format!("{name}: no end"));
            continue;
        };
        let expected = &case["expect"];
        assert!(expected.as_object().is_some_and(|fields| !fields.is_empty()), "{name}");
        let actual = expected_part(&actual, expected);
        if actual != *expected {
            failures.push(format!("{name}:\n expected {expected}\n   actual {actual}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A case whose model streams its texts in pieces of so many characters.
fn in_pieces(case: &Json, length: usize) -> Option<Json> {
    let pieces = |text: &str| -> Vec<Json> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(length).map(|piece| piece.iter().collect::<String>().into()).collect()
    };
    let replies = case["model"].as_array()?.iter().map(|reply| match reply.get("text") {
        Some(Json::String(text)) if !text.is_empty() => json!({ "stream": pieces(text) }),
        _ => reply.clone(),
    });
    let mut streamed = case.clone();
    streamed["model"] = replies.collect();
    (streamed["model"] != case["model"]).then_some(streamed)
}

#[tokio::test]
async fn the_pieces_of_a_stream_make_no_difference() {
    let cases: Vec<Json> = serde_json::from_str(CASES).expect("JSON");
    let mut count = 0;
    // Neither a run that is cancelled at some event, nor one that takes its time.
    let is_quick = |case: &&Json| {
        case.get("cancel").is_none() && !case["executor"]["calls"].to_string().contains("hang")
    };
    for case in cases.iter().filter(is_quick) {
        let whole = outcome(case).await;
        // A text told in pieces is the same as a whole.
        let said = |outcome: &Json| -> String {
            let events = outcome["events"].as_array().into_iter().flatten();
            events.filter_map(|event| event["text"].as_str()).collect()
        };
        for length in 1..=5 {
            let Some(streamed) = in_pieces(case, length) else { break };
            let streamed = outcome(&streamed).await;
            for field in ["contents", "result", "inputs"] {
                assert_eq!(streamed[field], whole[field], "{} in pieces of {length}", case["name"]);
            }
            assert_eq!(said(&streamed), said(&whole), "{} in pieces of {length}", case["name"]);
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}
