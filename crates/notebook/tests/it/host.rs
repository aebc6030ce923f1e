//! The functions of the host in the table of cases, and calls that only Rust can hold up.

use std::{
    future::{pending, ready},
    sync::mpsc,
};

use isolane::Value;
use isolane_notebook::{
    Agent, Args, CellInput, CellTool, ExecuteOptions, HostError, Language, Llm, Notebook,
    NotebookOptions,
};
use serde_json::{Value as Json, json};

use crate::support::{cells, has_python, python, run};

fn value(json: &Json) -> Value {
    Value::serialize(json).expect("JSON is a value")
}

/// The tools of cases with `host`.
pub(crate) fn tools() -> Vec<CellTool> {
    let mut add_up = CellTool::new("add-up", |args: Value, _| {
        let args: Json = args.deserialize().expect("numbers and a text");
        let numbers = args["numbers"].as_array().cloned().unwrap_or_default();
        let sum: i64 = numbers.iter().filter_map(Json::as_i64).sum();
        let text = format!("{}: {sum}", args["label"].as_str().unwrap_or_default());
        ready(Ok(value(&text.into())))
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
            { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
        ],
        "details": 1,
    });
    let refusal = json!({ "content": [{ "type": "text", "text": "not today" }], "isError": true });
    let odd_picture = json!({
        "content": [
            { "type": "text", "text": "a chart" },
            { "type": "image", "data": "AQID", "mimeType": "text/plain" },
        ],
    });
    let mut never = CellTool::new("never", |_, _| pending());
    never.stops_clock = true;
    vec![
        CellTool::new("echo", |args, _| ready(Ok(args))),
        add_up,
        CellTool::new("fail", |_, _| ready(Err(HostError::new("TypeError", "no such row")))),
        CellTool::new("picture", move |_, _| ready(Ok(value(&picture)))),
        CellTool::new("refuse", move |_, _| ready(Ok(value(&refusal)))),
        CellTool::new("nothing", |_, _| ready(Ok(Value::undefined()))),
        CellTool::new("odd-picture", move |_, _| ready(Ok(value(&odd_picture)))),
        CellTool::new("grüße", |_, _| ready(Ok(value(&"hallo".into())))),
        never,
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
        ready(Ok(value(&text.into())))
    })
}

/// The `agent` of cases with `host`: runs the cell of a prompt such as `js:1 + 1` or, with a timeout of a second, `py1:x`, and
/// answers with its text. Any other prompt is answered with the options.
pub(crate) fn agent() -> Agent {
    Agent::new(|prompt, options| async move {
        if options.schema.is_some() {
            return Ok(value(&"{\"n\": 1}".into()));
        }
        if prompt.is_empty() {
            return Ok(value(&"".into()));
        }
        let Some(cell) = cell_of(&prompt) else {
            let (model, label) = (options.model, options.label);
            let name = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
            let context = options.context.map(|context| format!(" {context}")).unwrap_or_default();
            let (kind, depth) = (options.agent_type, options.depth);
            let text = format!("{kind} {} {} {depth}: {prompt}{context}", name(model), name(label));
            return Ok(value(&text.into()));
        };
        let args = Args { cells: vec![cell] };
        let execution = options.notebook.execute(args, ExecuteOptions::default());
        let execution = execution.map_err(|misuse| HostError::new("Error", misuse.to_string()))?;
        Ok(value(&execution.await.text.into()))
    })
}

fn cell_of(prompt: &str) -> Option<CellInput> {
    let (head, code) = prompt.split_once(':')?;
    let (language, timeout) = head.split_at_checked(2)?;
    let language = match language {
        "js" => Language::Js,
        "py" => Language::Py,
        _ => return None,
    };
    let mut cell = CellInput::new(language, code);
    if !timeout.is_empty() {
        cell.timeout = Some(timeout.parse().ok()?);
    }
    Some(cell)
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
    let options =
        NotebookOptions { tools: vec![tool], py: Some(python()), ..NotebookOptions::default() };
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
    let options =
        NotebookOptions { tools: tools(), py: Some(python()), ..NotebookOptions::default() };
    let notebook = Notebook::new(options).expect("valid options");
    // Calls with one number, which no call of the cell has, of no helper.
    let code = r#"
import gc
channel = next(found for found in gc.get_objects() if type(found).__name__ == "Channel")
for number in (77, 77, 2**63):
    channel.call({"id": number, "helper": "x" * 1000, "name": ""}, b"\x01", [])
tool.echo(a=1)
"#;
    assert_eq!(run(&notebook, &[(Language::Py, code)]).text, "{\"a\":1}");
    // Calls that are none: a number that is text, nothing as the arguments, a function, a Map of four thousand million entries
    // that are not there, arrays in one another without an end, a blob that nothing names.
    let calls = [
        r#"{"id": "1", "helper": "tool", "name": "echo"}, b"\x11\x00", []"#,
        r#"{"id": 1, "helper": "tool", "name": "echo"}, b"", []"#,
        r#"{"id": 1, "helper": "tool", "name": "echo"}, b"\x1b\x00\x00\x00\x00\x07\x00", []"#,
        r#"{"id": 1, "helper": "tool", "name": "echo"}, b"\x14\xff\xff\xff\xff\x0f", []"#,
        r#"{"id": 1, "helper": "tool", "name": "echo"}, b"\x12\x01" * (4 << 20), []"#,
        r#"{"id": 1, "helper": "tool", "name": "echo"}, b"\x01" * 9, [b"x"]"#,
    ];
    for call in calls {
        let code = format!(
            "import gc, time\nchannel = next(found for found in gc.get_objects() if type(found).__name__ == 'Channel')\n\
             channel.call({call})\ntime.sleep(600)"
        );
        let ended = run(&notebook, &[(Language::Py, &code)]).text;
        assert!(
            ended.contains("Python ended unexpectedly (malformed frame); its state was lost."),
            "{call}: {ended}"
        );
        notebook.reset(Language::Py).expect("it is open").wait().expect("it is reset");
    }
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
    let tool = |name: &str| CellTool::new(name, |_, _| ready(Ok(Value::undefined())));
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
