//! Calls: their order, their end from outside, their updates; what a notebook knows of its kernels.

use std::sync::{Arc, Mutex, mpsc};

use futures::executor::block_on;
use isolane::Spelling;
use isolane_notebook::{
    CallResult, CellStatus, ExecuteOptions, Execution, Isolation, Language, Notebook,
    NotebookOptions, OnUpdate, PyOptions,
};

use crate::support::{cells, has_python, notebook, open, python, run};

/// Begins a call, and waits until its text has that line.
fn begun(notebook: &Notebook, list: &[(Language, &str)], line: &str) -> Execution {
    let (sender, receiver) = mpsc::channel();
    let sender = Mutex::new(sender);
    let on_update: OnUpdate = Arc::new(move |update: CallResult| {
        // Nobody listens once the line has come.
        let _ = sender.lock().expect("the sender").send(update.text);
        Box::pin(async { Ok(()) })
    });
    let options = ExecuteOptions { on_update: Some(on_update) };
    let execution = notebook.execute(cells(list), options).expect("valid arguments");
    while !receiver.recv().expect("the line comes before the end").contains(line) {}
    execution
}

#[test]
fn calls_take_turns_in_their_order() {
    let notebook = notebook();
    let codes = ["const order = [1]", "order.push(2)", "order.push(3); order"];
    let calls: Vec<Execution> = codes
        .iter()
        .map(|code| notebook.execute(cells(&[(Language::Js, code)]), ExecuteOptions::default()))
        .collect::<Result<_, _>>()
        .expect("valid arguments");
    let texts: Vec<String> = calls.into_iter().map(|call| block_on(call).text).collect();
    assert_eq!(texts, ["(no output)", "2", "[1,2,3]"]);
}

#[test]
fn a_caller_ends_a_cell_of_javascript() {
    let notebook = notebook();
    run(&notebook, &[(Language::Js, "let x = 1")]);
    let loops = "x = 2; print('begun'); for (;;);";
    let execution = begun(&notebook, &[(Language::Js, loops), (Language::Js, "1")], "begun");
    execution.terminate(Some("enough"));
    let result = execution.wait();
    let expected = "[1/2]\nbegun\nCommand aborted: enough\nCell 1 of 2 aborted.\nCell 2 did not run.\n\
                    JavaScript state is as it was before this cell.";
    assert_eq!((result.text.as_str(), result.is_error), (expected, true));
    assert_eq!(result.cells[0].exit_code, None);
    assert_eq!(run(&notebook, &[(Language::Js, "x")]).text, "1");
}

#[test]
fn a_caller_ends_a_cell_of_python_and_one_that_waits() {
    if !has_python() {
        return;
    }
    let notebook = notebook();
    let loops = "x = 1\nprint('begun')\nwhile True: pass";
    let execution = begun(&notebook, &[(Language::Py, loops)], "begun");
    let waiting = notebook
        .execute(cells(&[(Language::Py, "1")]), ExecuteOptions::default())
        .expect("valid arguments");
    waiting.terminate(None);
    assert_eq!(waiting.wait().text, "Command aborted\nCell aborted.");
    execution.terminate(None);
    let expected =
        "begun\nCommand aborted\nCell aborted.\nPython was interrupted; its state is kept.";
    assert_eq!(execution.wait().text, expected);
    assert_eq!(run(&notebook, &[(Language::Py, "x")]).text, "1");
}

#[test]
fn a_reset_ends_the_cell_that_runs_and_empties_the_kernel() {
    let notebook = notebook();
    let loops = "let x = 1; print('begun'); for (;;);";
    let execution = begun(&notebook, &[(Language::Js, loops)], "begun");
    let reset = notebook.reset(Language::Js).expect("it is open");
    let expected = "begun\nCommand aborted: the session was reset\nCell aborted.\n\
                    JavaScript state was lost.";
    let result = execution.wait();
    assert_eq!((result.text.as_str(), result.cells[0].state), (expected, Some("reset")));
    reset.wait().expect("it is reset");
    assert_eq!(run(&notebook, &[(Language::Js, "typeof x")]).text, "undefined");
}

#[test]
fn closing_ends_calls_and_kernels() {
    if !has_python() {
        return;
    }
    let notebook = notebook();
    run(&notebook, &[(Language::Js, "1")]);
    let execution =
        begun(&notebook, &[(Language::Py, "print('begun')\nwhile True: pass")], "begun");
    let stats = notebook.stats();
    let busy: Vec<(Language, bool)> =
        stats.kernels.iter().map(|kernel| (kernel.language, kernel.busy)).collect();
    assert_eq!(busy, [(Language::Js, false), (Language::Py, true)]);
    if cfg!(target_os = "linux") {
        assert!(stats.kernels[1].rss_bytes.is_some_and(|bytes| bytes > 0));
    }
    let closed = notebook.close();
    assert!(execution.wait().text.contains("Command aborted: the notebook was closed\n"));
    closed.wait().expect("it is closed");
    assert_eq!(notebook.stats().kernels, []);
}

#[test]
fn text_after_the_end_of_its_cell_opens_the_next_output() {
    if !has_python() {
        return;
    }
    let notebook = notebook();
    let later = "import threading\ngo, gone = threading.Event(), threading.Event()\n\
                 def late():\n    go.wait()\n    print('late')\n    gone.set()\n\
                 threading.Thread(target=late).start()\n\
                 import asyncio\nasyncio.get_running_loop().call_later(0, go.set)\nNone";
    assert_eq!(run(&notebook, &[(Language::Py, later)]).text, "(no output)");
    assert_eq!(run(&notebook, &[(Language::Py, "gone.wait()\nprint('next')")]).text, "late\nnext");
}

#[test]
fn a_kernel_that_died_between_cells_is_replaced_and_the_notice_says_so() {
    if !has_python() {
        return;
    }
    let notebook = notebook();
    let die = "import asyncio, os, signal\n\
               asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGKILL)\nNone";
    // The kernel may die before it has said that the cell is over: then the cell tells it.
    let first = run(&notebook, &[(Language::Py, die)]);
    let id =
        |notebook: &Notebook| notebook.stats().kernels.first().and_then(|kernel| kernel.rss_bytes);
    while first.cells[0].status == CellStatus::Complete
        && id(&notebook).is_some_and(|bytes| bytes > 0)
    {
        std::thread::yield_now();
    }
    // That its process is gone and that this is known are two events.
    let mut second = run(&notebook, &[(Language::Py, "1 + 1")]);
    let text = "Python ended unexpectedly (signal 9); its state was lost.";
    if second.is_error {
        assert!(second.text.contains(text), "{}", second.text);
        second = run(&notebook, &[(Language::Py, "1 + 1")]);
    } else if first.cells[0].status == CellStatus::Complete {
        assert_eq!(second.notice.as_deref(), Some(text));
        assert_eq!(second.text, format!("{text}\n\n2"));
    }
    assert!(second.text.ends_with('2'), "{}", second.text);
    assert_eq!(run(&notebook, &[(Language::Py, "2 + 2")]).notice, None);
}

#[test]
fn updates_come_at_once_and_before_the_end() {
    let notebook = notebook();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let on_update: OnUpdate = {
        let seen = Arc::clone(&seen);
        Arc::new(move |update: CallResult| {
            seen.lock().expect("the updates").push(update);
            Box::pin(async { Ok(()) })
        })
    };
    let options = ExecuteOptions { on_update: Some(on_update) };
    let list = [(Language::Js, "print('a')"), (Language::Js, "print('b')")];
    let execution = notebook.execute(cells(&list), options).expect("valid arguments");
    let result = execution.wait();
    let seen = seen.lock().expect("the updates");
    let first = seen[0].to_json(Spelling::Camel, true);
    assert_eq!(first["content"][0]["text"], "");
    assert_eq!(first["details"]["cells"][0]["status"], "pending");
    assert_eq!(first["details"]["isError"], false);
    assert_eq!(first.get("isError"), None);
    let last = seen.last().expect("an update");
    assert_eq!(last.text, result.text);
    assert!(last.cells.iter().all(|cell| cell.status == CellStatus::Complete));
}

#[test]
fn a_receiver_that_throws_is_not_called_again() {
    let notebook = notebook();
    let calls = Arc::new(Mutex::new(0));
    let on_update: OnUpdate = {
        let calls = Arc::clone(&calls);
        Arc::new(move |_| {
            *calls.lock().expect("the count") += 1;
            Box::pin(async { Err("no screen".to_owned()) })
        })
    };
    let options = ExecuteOptions { on_update: Some(on_update) };
    let execution = notebook.execute(cells(&[(Language::Js, "1")]), options);
    let result = execution.expect("valid arguments").wait();
    let notice = "the receiver of updates failed and was not called again: no screen";
    assert_eq!((result.text, result.notice.as_deref()), (format!("{notice}\n\n1"), Some(notice)));
    assert_eq!(*calls.lock().expect("the count"), 1);
}

#[test]
fn a_dropped_handle_ends_its_call_and_a_dropped_notebook_its_kernels() {
    let notebook = notebook();
    drop(begun(&notebook, &[(Language::Js, "print('begun'); for (;;);")], "begun"));
    assert_eq!(run(&notebook, &[(Language::Js, "1")]).text, "1");
    let execution = begun(&notebook, &[(Language::Js, "print('begun'); for (;;);")], "begun");
    drop(notebook);
    assert!(execution.wait().text.contains("Command aborted: the notebook was closed\n"));
}

#[test]
fn the_tool_describes_only_what_is_there() {
    let tool = notebook().tool();
    assert_eq!(tool.name, "eval");
    assert!(tool.description.contains("`python -c` or `node -e`"));
    let languages = |tool: &isolane_notebook::Tool| {
        tool.input_schema["properties"]["cells"]["items"]["properties"]["language"]["enum"].clone()
    };
    assert_eq!(languages(&tool), serde_json::json!(["py", "js"]));
    let options = NotebookOptions { py: None, ..NotebookOptions::default() };
    let tool = Notebook::new(options).expect("valid options").tool();
    assert_eq!(languages(&tool), serde_json::json!(["js"]));
    assert!(!tool.description.contains("Python"), "{}", tool.description);
    let described = |python: PyOptions| open(python).tool().description;
    let confined = PyOptions::default;
    assert!(described(confined()).contains("there is no network"));
    let given = described(PyOptions { network: true, processes: false, ..confined() });
    assert!(given.contains("go with the kernel, no process can be started.\n"), "{given}");
    let open = described(PyOptions { isolation: Isolation::None, ..confined() });
    assert!(!open.contains("Python runs in a sandbox"), "{open}");
}

#[test]
fn much_output_is_bounded_while_it_comes() {
    if !has_python() {
        return;
    }
    let notebook = notebook();
    let code = "for i in range(300000): print('line', i)";
    let result = run(&notebook, &[(Language::Py, code)]);
    assert!(result.text.ends_with("line 299999\n[output truncated: last 3,000 of 300,000 lines]"));
    let code = "import subprocess\nsubprocess.run(['sh', '-c', 'seq 1 300000'])\nNone";
    let result = run(&notebook, &[(Language::Py, code)]);
    assert!(result.text.ends_with("300000\n[output truncated: last 3,000 of 300,000 lines]"));
    let held: usize = result.cells[0].outputs.iter().map(|part| format!("{part:?}").len()).sum();
    assert!(held < 1 << 20, "{held}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_kernel_has_a_limit_of_memory() {
    if !has_python() {
        return;
    }
    let notebook = open(PyOptions { memory_limit_bytes: 512 << 20, ..python() });
    let result = run(&notebook, &[(Language::Py, "x = 1\nbytearray(1 << 30)")]);
    // Versions differ in their carets.
    let text: Vec<&str> = result.text.lines().filter(|line| !line.ends_with('^')).collect();
    let expected = [
        "Traceback (most recent call last):",
        "  File \"<cell 1>\", line 2, in <module>",
        "    bytearray(1 << 30)",
        "MemoryError",
        "Cell failed (exit code 1).",
        "State is kept up to the error.",
    ];
    assert_eq!(text, expected);
    assert_eq!(run(&notebook, &[(Language::Py, "x")]).text, "1");
}

#[cfg(target_os = "linux")]
#[test]
fn carets_of_python_stand_below_their_code() {
    if !has_python() {
        return;
    }
    let result = run(&notebook(), &[(Language::Py, "x = 1; x.foo.bar")]);
    let lines: Vec<&str> = result.text.lines().collect();
    let at = lines.iter().position(|line| line.contains("x.foo.bar")).expect("the line of code");
    // 3.10 has no carets.
    if let Some(column) = lines[at + 1].find('^') {
        assert_eq!(Some(column), lines[at].find("x.foo"));
    }
}
