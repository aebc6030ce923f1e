//! Agents and children: shared state, ends that cost one cell alone, hostile ones.

use std::{
    future::{pending, ready},
    sync::{Arc, Mutex, mpsc},
};

use futures::{channel::oneshot, executor::block_on};
use isolane::Value;
use isolane_notebook::{
    Agent, AgentOptions, Args, CellInput, CellTool, ChildFunction, ChildOptions, ExecuteOptions,
    Language, Limits, Notebook, NotebookOptions, OnUpdate,
};

use crate::support::{cells, has_python, options, run};

fn text(text: &str) -> Value {
    Value::serialize(text).expect("a text is a value")
}

/// A notebook with an agent, whose kernels have time to react.
fn notebook(agent: Agent) -> Notebook {
    let options = NotebookOptions { agent: Some(agent), ..options() };
    Notebook::new(options).expect("valid options")
}

/// The languages that this machine has.
fn languages() -> Vec<Language> {
    if has_python() { vec![Language::Js, Language::Py] } else { vec![Language::Js] }
}

/// The code for a language.
fn code(language: Language, js: &'static str, py: &'static str) -> &'static str {
    match language {
        Language::Js => js,
        Language::Py => py,
    }
}

/// An agent that never answers, and tells of its calls, which come with all that they were given, and of their signals.
fn silent() -> (Agent, mpsc::Receiver<AgentOptions>, mpsc::Receiver<()>) {
    let (called, calls) = mpsc::channel();
    let (aborted, aborts) = mpsc::channel();
    let agent = Agent::new(move |_, options| {
        let (signal, aborted) = (options.signal.clone(), aborted.clone());
        drop(isolane::spawn(async move {
            signal.cancelled().await;
            // Nobody listens after the test.
            let _ = aborted.send(());
        }));
        let _ = called.send(options);
        pending()
    });
    (agent, calls, aborts)
}

/// Begins a cell, and waits until its text has that line.
fn begun(notebook: &Notebook, cell: CellInput, line: &str) -> isolane_notebook::Execution {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let on_update: OnUpdate = Arc::new(move |update| {
        // Nobody listens once the line has come.
        let _ = sender.lock().expect("the sender").send(update.text);
        Box::pin(async { Ok(()) })
    });
    let options = ExecuteOptions { on_update: Some(on_update) };
    let execution = notebook.execute(Args { cells: vec![cell] }, options).expect("valid arguments");
    while !receiver.recv().expect("the line comes before the end").contains(line) {}
    execution
}

#[test]
fn a_child_that_loops_costs_its_own_cell_and_the_parent_goes_on() {
    for language in languages() {
        let agent = Agent::new(move |_, options: AgentOptions| async move {
            let loops = code(language, "seen = 2; for (;;);", "seen = 2\nwhile True: pass");
            let mut cell = CellInput::new(language, loops);
            cell.timeout = Some(1);
            let args = Args { cells: vec![cell] };
            let execution = options.notebook.execute(args, ExecuteOptions::default());
            Ok(text(&execution.expect("valid arguments").await.text))
        });
        let notebook = notebook(agent);
        let parent = code(
            language,
            "let seen = 1; const said = await agent('loop'); print(said); return seen",
            "seen = 1\nprint(agent('loop'))\nseen",
        );
        let result = run(&notebook, &[(language, parent)]);
        let expected = code(
            language,
            "Command timed out after 1 second\nCell aborted.\nJavaScript state is as it was before this cell.\n1",
            "Command timed out after 1 second\nCell aborted.\nPython was interrupted; its state is kept.\n2",
        );
        assert_eq!((result.text.as_str(), result.is_error), (expected, false));
    }
}

#[test]
fn a_child_has_functions_and_limits_of_its_own() {
    for language in languages() {
        let tool = |name: &'static str| {
            CellTool::new(name, move |_, _| ready(Ok(text(&format!("{name} of the host")))))
        };
        let (agent, calls, _) = silent();
        let options =
            NotebookOptions { tools: vec![tool("upper")], agent: Some(agent), ..options() };
        let parent = Notebook::new(options).expect("valid options");
        let child = parent.child(ChildOptions {
            tools: Some(vec![tool("lower")]),
            agent: ChildFunction::Absent,
            limits: Some(Limits { max_concurrency: 1, ..Limits::default() }),
            ..ChildOptions::default()
        });
        let child = child.expect("valid options");
        assert_eq!(parent.session_id(), child.session_id());
        let description = child.tool().description;
        assert!(description.contains("- tool.lower()") && !description.contains("agent("));
        let waits =
            code(language, "const kept = 1; await agent('wait')", "kept = 1\nawait agent('wait')");
        let list = cells(&[(language, waits)]);
        let waiting = parent.execute(list, ExecuteOptions::default()).expect("valid arguments");
        let call = calls.recv().expect("a call");
        assert_eq!((call.depth, call.agent_type.as_str()), (1, "task"));
        // Each call goes to the notebook whose cell makes it, while a cell of the other one waits.
        let ask = code(
            language,
            "for (const act of [() => tool.upper(), () => tool.lower(), () => agent('x')]) try { print(await act()) } catch (e) { print(e.message) }; kept",
            "for act in (lambda: tool.upper(), lambda: tool.lower(), lambda: agent('x')):\n    try: print(act())\n    except Exception as e: print(e)\nkept",
        );
        let expected = "there is no tool 'upper'; there are lower\nlower of the host\nagent is not available in this notebook\n1";
        assert_eq!(run(&child, &[(language, ask)]).text, expected);
        let ask = code(language, "await tool.upper()", "tool.upper()");
        let handed = run(&call.notebook, &[(language, ask)]);
        assert!(handed.text.contains("upper of the host"), "{}", handed.text);
        waiting.terminate(None);
        drop(waiting.wait());
    }
}

#[test]
fn a_parent_that_is_ended_ends_the_calls_of_its_agents() {
    for language in languages() {
        let (agent, calls, aborts) = silent();
        let notebook = notebook(agent);
        let waits = code(language, "await agent('a')", "agent('a')");
        let parent = notebook
            .execute(cells(&[(language, waits)]), ExecuteOptions::default())
            .expect("valid arguments");
        let call = calls.recv().expect("a call");
        let loops = code(language, "print('begun'); for (;;);", "print('begun')\nwhile True: pass");
        let child = begun(&call.notebook, CellInput::new(language, loops), "begun");
        parent.terminate(Some("enough"));
        aborts.recv().expect("the signal is cancelled");
        let ended = child.wait().text;
        let expected = "begun\nCommand aborted: the cell that called the agent was ended";
        assert!(ended.starts_with(expected), "{ended}");
        let result = parent.wait();
        assert!(result.text.starts_with("Command aborted: enough"), "{}", result.text);
        let event = &result.cells[0].status_events[0];
        assert_eq!([&event["op"], &event["status"]], ["agent", "error"]);
        assert_eq!(run(&notebook, &[(language, "1 + 1")]).text, "2");
    }
}

#[test]
fn a_child_that_is_closed_during_its_call_ends_it() {
    for language in languages() {
        let (agent, calls, _) = silent();
        let notebook = notebook(agent);
        let waits = code(language, "await agent('a')", "agent('a')");
        let parent = notebook
            .execute(cells(&[(language, waits)]), ExecuteOptions::default())
            .expect("valid arguments");
        let call = calls.recv().expect("a call");
        let child = call.notebook.child(ChildOptions::default()).expect("it is open");
        let loops = code(language, "print('begun'); for (;;);", "print('begun')\nwhile True: pass");
        let execution = begun(&child, CellInput::new(language, loops), "begun");
        child.close().wait().expect("it is closed");
        assert!(execution.wait().text.contains("Command aborted: the notebook was closed"));
        let misuse = child.execute(cells(&[(language, "1")]), ExecuteOptions::default());
        assert_eq!(misuse.expect_err("misuse").to_string(), "notebook is closed");
        parent.terminate(None);
        drop(parent.wait());
        assert_eq!(run(&notebook, &[(language, "1 + 1")]).text, "2");
    }
}

#[test]
fn the_end_of_a_notebook_ends_its_children() {
    let (agent, _, _) = silent();
    let parent = notebook(agent);
    let child = parent.child(ChildOptions::default()).expect("it is open");
    let grandchild = child.child(ChildOptions::default()).expect("it is open");
    let loops = CellInput::new(Language::Js, "print('begun'); for (;;);");
    let execution = begun(&grandchild, loops, "begun");
    parent.close().wait().expect("it is closed");
    assert!(execution.wait().text.contains("Command aborted: the notebook was closed"));
    assert!(child.child(ChildOptions::default()).is_err());
    assert_eq!(child.stats().kernels, []);
}

#[test]
fn an_agent_that_never_answers_ends_with_its_cell() {
    for language in languages() {
        let (agent, calls, aborts) = silent();
        let options = NotebookOptions {
            agent: Some(agent),
            limits: Limits { max_cell_seconds: 1, ..Limits::default() },
            ..options()
        };
        let notebook = Notebook::new(options).expect("valid options");
        let result =
            run(&notebook, &[(language, code(language, "await agent('a')", "agent('a')"))]);
        assert!(result.text.starts_with("Command timed out after 1 second"), "{}", result.text);
        aborts.recv().expect("the signal is cancelled");
        drop(calls);
        let event = &result.cells[0].status_events[0];
        assert_eq!([&event["id"], &event["status"]], ["agent-1", "error"]);
    }
}

#[test]
fn fifty_agents_work_at_once() {
    for language in languages() {
        let agent = Agent::new(move |prompt: String, options: AgentOptions| async move {
            // Each has a cell that calls a function of the host itself.
            let cell = match language {
                Language::Js => format!("total += {prompt}; await tool.same({{ n: {prompt} }})"),
                Language::Py => format!("total += {prompt}\nprint(tool.same(n={prompt}))"),
            };
            let args = Args { cells: vec![CellInput::new(language, cell)] };
            let execution = options.notebook.execute(args, ExecuteOptions::default());
            Ok(text(&execution.expect("valid arguments").await.text))
        });
        let same = CellTool::new("same", |args: Value, _| {
            let args: serde_json::Value = args.deserialize().expect("a number");
            ready(Ok(text(&args["n"].to_string())))
        });
        let options = NotebookOptions {
            tools: vec![same],
            agent: Some(agent),
            limits: Limits { concurrency: 50, max_concurrency: 50, ..Limits::default() },
            ..options()
        };
        let notebook = Notebook::new(options).expect("valid options");
        let all = code(
            language,
            "let total = 0; const answers = await parallel(Array.from({ length: 50 }, (_, n) => () => agent(`${n}`))); return [answers.join() === Array.from({ length: 50 }, (_, n) => n).join(), total]",
            "total = 0\n[parallel([lambda n=n: agent(str(n)) for n in range(50)]) == [str(n) for n in range(50)], total]",
        );
        let result = run(&notebook, &[(language, all)]);
        assert_eq!(result.text, "[true,1225]", "{language:?}");
        assert_eq!(result.cells[0].status_events.len(), 50);
    }
}

/// A tool whose call is answered when the sender is used.
fn held_up(name: &str) -> (CellTool, oneshot::Sender<()>) {
    let (sender, receiver) = oneshot::channel::<()>();
    let receiver = Mutex::new(Some(receiver));
    let tool = CellTool::new(name, move |_, _| {
        let receiver = receiver.lock().expect("the receiver").take();
        async move {
            if let Some(receiver) = receiver {
                // A test that has ended answers too.
                let _ = receiver.await;
            }
            Ok(Value::undefined())
        }
    });
    (tool, sender)
}

#[test]
fn a_cell_that_computed_since_is_rolled_back_with_another_one_and_one_that_waited_is_not() {
    let (first, answer_first) = held_up("first");
    let (second, answer_second) = held_up("second");
    let (third, answer_third) = held_up("third");
    let (fourth, _never) = held_up("fourth");
    let options = NotebookOptions { tools: vec![first, second, third, fourth], ..options() };
    let notebook = Notebook::new(options).expect("valid options");
    let child = || notebook.child(ChildOptions::default()).expect("it is open");
    let (waiting, computing, looping) = (child(), child(), child());
    let cell = |code: &str| CellInput::new(Language::Js, code);
    let waits = "let seen = 0; print('begun'); await tool.third(); seen";
    let waits = begun(&waiting, cell(waits), "begun");
    let computes =
        "print('begun'); await tool.first(); seen = 1; print('turned'); await tool.fourth()";
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let on_update: OnUpdate = Arc::new(move |update| {
        // Nobody listens once the lines have come.
        let _ = sender.lock().expect("the sender").send(update.text);
        Box::pin(async { Ok(()) })
    });
    let on_update = ExecuteOptions { on_update: Some(on_update) };
    let args = Args { cells: vec![cell(computes)] };
    let computes = computing.execute(args, on_update).expect("valid arguments");
    while !receiver.recv().expect("the line comes").contains("begun") {}
    let mut loops = cell("print('begun'); await tool.second(); for (;;);");
    loops.timeout = Some(1);
    let loops = begun(&looping, loops, "begun");
    answer_first.send(()).expect("the cell waits");
    while !receiver.recv().expect("the line comes").contains("turned") {}
    answer_second.send(()).expect("the cell waits");
    let expected = "begun\nCommand timed out after 1 second\nCell aborted.\nJavaScript state is as it was before this cell.";
    assert_eq!(loops.wait().text, expected);
    let computed = computes.wait();
    let expected = "begun\nturned\nCommand aborted: the session was rolled back\nCell aborted.";
    assert_eq!((computed.text.as_str(), computed.cells[0].state), (expected, Some("rolledBack")));
    answer_third.send(()).expect("the cell waits");
    assert_eq!(waits.wait().text, "begun\n0");
}

#[test]
fn a_reset_by_a_child_ends_the_cell_of_the_parent() {
    for language in languages() {
        let (agent, calls, _) = silent();
        let notebook = notebook(agent);
        let waits = code(language, "const kept = 1; await agent('a')", "kept = 1\nagent('a')");
        let parent = notebook
            .execute(cells(&[(language, waits)]), ExecuteOptions::default())
            .expect("valid arguments");
        let call = calls.recv().expect("a call");
        let child = call.notebook.child(ChildOptions::default()).expect("it is open");
        child.reset(language).expect("it is open").wait().expect("it is reset");
        let result = block_on(parent);
        let expected = format!(
            "Command aborted: the session was reset\nCell aborted.\n{} state was lost.",
            code(language, "JavaScript", "Python")
        );
        assert_eq!((result.text, result.cells[0].state), (expected, Some("reset")));
        let gone = code(language, "typeof kept", "'kept' in globals()");
        let expected = code(language, "undefined", "False");
        assert_eq!(run(&notebook, &[(language, gone)]).text, expected);
    }
}
