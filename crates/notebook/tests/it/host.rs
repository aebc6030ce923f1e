//! The functions of the host in the table of cases, and calls that only Rust can hold up.

use std::{
    future::{pending, ready},
    sync::mpsc,
};

use isolane_notebook::{
    CellTool, ExecuteOptions, HostError, Language, Llm, Notebook, NotebookOptions, PyOptions,
};
use serde_json::{Value as Json, json};

use crate::support::{cells, has_python, run};

/// The tools of cases with `host`.
pub(crate) fn tools() -> Vec<CellTool> {
    let mut add_up = CellTool::new("add-up", |args: Json, _| {
        let numbers = args["numbers"].as_array().cloned().unwrap_or_default();
        let sum: i64 = numbers.iter().filter_map(Json::as_i64).sum();
        let text = format!("{}: {sum}", args["label"].as_str().unwrap_or_default());
        ready(Ok(Some(text.into())))
    });
    let input = json!({
        "type": "object",
        "properties": {
            "numbers": { "type": "array", "items": { "type": "number" } },
            "label": { "type": "string", "default": "sum" },
        },
        "required": ["numbers"],
    });
    (add_up.description, add_up.input) = (Some("Adds.".to_owned()), Some(input));
    let picture = json!({
        "content": [
            { "type": "text", "text": "a chart" },
            { "type": "image", "data": "AQID", "mimeType": "image/png" },
        ],
        "details": 1,
    });
    let refusal = json!({ "content": [{ "type": "text", "text": "not today" }], "isError": true });
    vec![
        CellTool::new("echo", |args, _| ready(Ok(Some(args)))),
        add_up,
        CellTool::new("fail", |_, _| ready(Err(HostError::new("TypeError", "no such row")))),
        CellTool::new("picture", move |_, _| ready(Ok(Some(picture.clone())))),
        CellTool::new("refuse", move |_, _| ready(Ok(Some(refusal.clone())))),
        CellTool::new("nothing", |_, _| ready(Ok(None))),
    ]
}

/// The `llm` of cases with `host`.
pub(crate) fn llm() -> Llm {
    Llm::new(|prompt, options| {
        let system = options.system.map(|system| format!(" ({system})")).unwrap_or_default();
        let text = match (options.schema, prompt.as_str()) {
            (Some(_), _) => "{\"n\": 1}".to_owned(),
            (None, "") => String::new(),
            (None, prompt) => format!("{}: {prompt}{system}", options.model),
        };
        ready(Ok(Some(text.into())))
    })
}

/// A notebook with a tool `wait` that is never answered, which tells of its calls and of their signals.
fn waiting() -> (Notebook, mpsc::Receiver<&'static str>) {
    let (sender, receiver) = mpsc::channel();
    let tool = CellTool::new("wait", move |_, signal| {
        // Nobody listens after the test.
        let _ = sender.send("called");
        let sender = sender.clone();
        drop(isolane::spawn(async move {
            signal.cancelled().await;
            let _ = sender.send("aborted");
        }));
        pending()
    });
    let python = PyOptions { interrupt_grace_ms: 60_000, ..PyOptions::default() };
    let options =
        NotebookOptions { tools: vec![tool], py: Some(python), ..NotebookOptions::default() };
    (Notebook::new(options).expect("valid options"), receiver)
}

#[test]
fn the_end_of_a_cell_aborts_its_calls() {
    for (language, code) in [(Language::Js, "await tool.wait({})"), (Language::Py, "tool.wait()")] {
        if language == Language::Py && !has_python() {
            continue;
        }
        let (notebook, told) = waiting();
        let list = cells(&[(language, code)]);
        let execution = notebook.execute(list, ExecuteOptions::default()).expect("valid arguments");
        assert_eq!(told.recv(), Ok("called"));
        execution.terminate(Some("enough"));
        let result = execution.wait();
        assert!(
            result.text.starts_with("Command aborted: enough\nCell aborted."),
            "{}",
            result.text
        );
        assert_eq!(told.recv(), Ok("aborted"));
        let events = &result.cells[0].status_events;
        assert!(events.len() <= 1, "{events:?}");
        assert_eq!(run(&notebook, &[(language, "1 + 1")]).text, "2");
    }
}

#[test]
fn a_kernel_that_forges_calls_ends_alone() {
    if !has_python() {
        return;
    }
    let notebook = Notebook::new(NotebookOptions { tools: tools(), ..NotebookOptions::default() })
        .expect("valid options");
    // Calls with one number, which no call of the cell has, of no helper.
    let code = r#"
import gc
channel = next(found for found in gc.get_objects() if type(found).__name__ == "Channel")
for number in (77, 77, 2**63):
    channel.message({"type": "call", "id": number, "helper": "x" * 1000, "name": "", "args": 1}, 77)
tool.echo(a=1)
"#;
    assert_eq!(run(&notebook, &[(Language::Py, code)]).text, "{\"a\":1}");
    let code = r#"channel.message({"type": "call", "id": "1", "helper": "tool", "name": "echo", "args": {}}, 1)
import time
time.sleep(600)"#;
    let text = run(&notebook, &[(Language::Py, code)]).text;
    assert!(
        text.contains("Python ended unexpectedly (malformed frame); its state was lost."),
        "{text}"
    );
    assert_eq!(run(&notebook, &[(Language::Py, "1 + 1")]).text, "2");
}

#[test]
fn tools_and_llm_are_described() {
    let options =
        NotebookOptions { tools: tools(), llm: Some(llm()), ..NotebookOptions::default() };
    let description = Notebook::new(options).expect("valid options").tool().description;
    for line in [
        "- tool.echo()\n",
        "- tool.add_up({ numbers: array, label?: string }): Adds.\n",
        "JavaScript: `await llm(prompt, { model, system, schema })` asks",
        "Python: `llm(prompt, model=…, system=…, schema=…)` asks",
    ] {
        assert!(description.contains(line), "{line}: {description}");
    }
    let bare = Notebook::new(NotebookOptions::default()).expect("valid options").tool().description;
    assert!(!bare.contains("tool.") && !bare.contains("llm"), "{bare}");
}

#[test]
fn two_tools_with_one_name_are_misuse() {
    let tool = |name: &str| CellTool::new(name, |_, _| ready(Ok(None)));
    let misuse = |tools: Vec<CellTool>| {
        let options = NotebookOptions { tools, ..NotebookOptions::default() };
        Notebook::new(options).expect_err("misuse").to_string()
    };
    let expected = "tools.a-b and tools.a.b have one name in cells: 'a_b'";
    assert_eq!(misuse(vec![tool("a-b"), tool("a.b")]), expected);
    let mut odd = tool("x");
    odd.input = Some(json!({ "type": "odd" }));
    assert!(misuse(vec![odd]).starts_with("tools.x.input is no JSON Schema: "));
}
