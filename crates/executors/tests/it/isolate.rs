//! The cases of the executor of isolates: `tests/cases/isolate.md`. Built as a test of `isolane-worker` it runs them in
//! processes.
//!
//! `tests/cases/README.md` has the format, which the runners of other languages read too.

use std::{collections::BTreeMap, time::Duration};

use futures::executor::block_on;
use isolane::{Inputs, Language, Runtime};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecFile, InvocationContext,
    IsolateCodeExecutor,
};
use serde_json::{Value as Json, json};

use crate::place;

const CASES: &str = include_str!("../cases/isolate.md");

#[derive(Debug, Default)]
struct Case {
    name: String,
    options: Json,
    files: Vec<ExecFile>,
    steps: Vec<Step>,
}

#[derive(Debug, Default)]
struct Step {
    language: String,
    code: String,
    stdout: String,
    stderr: String,
    files: Json,
    exit: String,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = CASES.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("## ") {
            cases.push(Case { name: name.to_owned(), options: json!({}), ..Case::default() });
            continue;
        }
        let (Some(tag), Some(case)) = (line.strip_prefix("```"), cases.last_mut()) else {
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let body = body.join("\n");
        let json = || serde_json::from_str::<Json>(&body).expect("JSON");
        let language = match tag {
            "js" | "ts" => Some(tag),
            "code" => Some(""),
            tag => tag.strip_prefix("code "),
        };
        if let Some(language) = language {
            let (language, code) = (language.to_owned(), body);
            let step =
                Step { language, code, files: json!({}), exit: "0".into(), ..Step::default() };
            case.steps.push(step);
            continue;
        }
        match (tag, case.steps.last_mut()) {
            ("json options", None) => case.options = json(),
            ("json files", None) => {
                let files = json();
                let file = |(name, text): (&String, &Json)| ExecFile {
                    name: name.clone(),
                    content: text.as_str().expect("a text").as_bytes().to_vec(),
                    mime_type: None,
                };
                case.files = files.as_object().expect("an object").iter().map(file).collect();
            }
            ("stdout", Some(step)) => step.stdout = body,
            ("stderr", Some(step)) => step.stderr = body,
            ("json files out", Some(step)) => step.files = json(),
            ("exit", Some(step)) => step.exit = body,
            (tag, _) => panic!("{}: a fence {tag:?} at no place for it", case.name),
        }
    }
    cases
}

/// The time limit of a case, that many times as long as it says.
fn limit(options: &Json, factor: u64) -> Option<Duration> {
    options["timeoutMs"].as_u64().map(|time| Duration::from_millis(time * factor))
}

/// A limit as the executor tells it.
fn told(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("timed out after {}s", limit.as_secs()),
        _ => format!("timed out after {}ms", limit.as_millis()),
    }
}

fn executor(options: &Json, runtime: &Runtime, factor: u64) -> IsolateCodeExecutor {
    let inputs = |json: &Json| -> Inputs { json.as_object().expect("an object").iter().collect() };
    // Time enough for what is not to run out of it.
    let executor = IsolateCodeExecutor::new().with_runtime(runtime.clone());
    let mut executor = executor.with_timeout(Duration::from_mins(2));
    for (name, value) in options.as_object().expect("an object") {
        executor = match name.as_str() {
            "timeoutMs" => executor.with_timeout(limit(options, factor).expect("a limit")),
            "language" => executor.with_language(Language::JavaScript),
            "memoryLimitBytes" => {
                executor.with_memory_limit_bytes(value.as_u64().expect("a number"))
            }
            "stateful" => executor.with_stateful(value == true),
            "showValue" => executor.with_show_value(value == true),
            "globals" => executor.with_globals(inputs(value)),
            "imports" => {
                let imports = value.as_object().expect("an object");
                let imports = imports.iter().map(|(key, value)| (key.clone(), inputs(value)));
                executor.with_imports(imports.collect::<BTreeMap<_, _>>())
            }
            "modules" => {
                executor.with_modules(serde_json::from_value(value.clone()).expect("sources"))
            }
            other => panic!("no option {other}"),
        };
    }
    executor
}

/// Whether a text is as expected, where a line `…` stands for any lines.
fn matches(expected: &str, actual: &str) -> bool {
    let actual = actual.strip_suffix('\n').unwrap_or(actual);
    let expected = expected.replace("\\u{0}", "\0").replace("\\u{1b}", "\u{1b}");
    let parts: Vec<&str> = expected.split('…').map(|part| part.trim_matches('\n')).collect();
    let [first, .., last] = parts.as_slice() else { return actual == expected };
    actual.starts_with(first) && actual.ends_with(last) && parts.iter().all(|p| actual.contains(p))
}

fn difference(step: &Step, result: &CodeExecutionResult) -> Option<String> {
    let exit = result.exit_code.map_or("null".to_owned(), |code| code.to_string());
    let files: Json = match &step.files {
        Json::String(_) => format!("{} files", result.output_files.len()).into(),
        _ => {
            let file = |file: &ExecFile| {
                (file.name.clone(), Json::from(String::from_utf8_lossy(&file.content)))
            };
            Json::Object(result.output_files.iter().map(file).collect())
        }
    };
    let is_same = matches(&step.stdout, &result.stdout)
        && matches(&step.stderr, &result.stderr)
        && exit == step.exit
        && files == step.files;
    let actual = || {
        let (stdout, stderr) = (&result.stdout, &result.stderr);
        let shown: String = files.to_string().chars().take(300).collect();
        format!("exit {exit}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n--- files {shown}")
    };
    (!is_same).then(actual)
}

#[test]
fn the_cases_of_isolates() {
    let (cases, runtime) = (cases(), runtime());
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let mut failures = Vec::new();
    for case in &cases {
        assert!(!case.steps.is_empty(), "{}", case.name);
        let mut failed = run(case, &runtime, 1);
        // On a busy machine code may not come as far in a short time as its case expects.
        for factor in [10, 100] {
            if !failed.is_empty() && limit(&case.options, factor).is_some() {
                failed = run(case, &runtime, factor);
            }
        }
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The differences that a case shows with a time limit that many times as long as its own.
fn run(case: &Case, runtime: &Runtime, factor: u64) -> Vec<String> {
    let executor = executor(&case.options, runtime, factor);
    let mut failures = Vec::new();
    for (number, step) in case.steps.iter().enumerate() {
        let files = if number == 0 { case.files.clone() } else { Vec::new() };
        let input = CodeExecutionInput {
            code: step.code.clone(),
            language: step.language.clone(),
            input_files: files,
            execution_id: Some("case".to_owned()),
        };
        let result = block_on(executor.execute_code(&InvocationContext::default(), input));
        let mut result = result.expect("the code starts");
        if let (Some(own), Some(longer)) = (limit(&case.options, 1), limit(&case.options, factor)) {
            result.stderr = result.stderr.replace(&told(longer), &told(own));
        }
        if let Some(actual) = difference(step, &result) {
            failures.push(format!("## {} ({number})\n{actual}", case.name));
        }
    }
    block_on(executor.close());
    failures
}

/// A runtime of processes where there is a worker, else of threads.
fn runtime() -> Runtime {
    Runtime::new(&place::options()).expect("valid options")
}
