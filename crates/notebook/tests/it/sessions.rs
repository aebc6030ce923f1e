//! Sessions that notebooks share, and how long their kernels last.

use std::{
    sync::{Mutex, mpsc},
    thread::sleep,
    time::Duration,
};

use futures::{channel::oneshot, executor::block_on};
use isolane::Value;
use isolane_notebook::{
    CellTool, ExecuteOptions, JsOptions, Language, Notebook, NotebookOptions, PyOptions, Registry,
    RegistryOptions,
};

use crate::support::{cells, has_python, options, run};

/// The options of a notebook of that session.
fn of(registry: &Registry, id: &str) -> NotebookOptions {
    let (registry, session_id) = (Some(registry.clone()), Some(id.to_owned()));
    NotebookOptions { registry, session_id, ..options() }
}

fn open(options: NotebookOptions) -> Notebook {
    Notebook::new(options).expect("valid options")
}

fn text(notebook: &Notebook, language: Language, code: &str) -> String {
    run(notebook, &[(language, code)]).text
}

/// Waits until no kernel of the notebook is there.
fn ended(notebook: &Notebook) {
    while !notebook.stats().kernels.is_empty() {
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn notebooks_that_name_a_session_share_its_kernels_until_the_last_one_closes() {
    let registry = Registry::new(RegistryOptions::default());
    let [first, second] = [of(&registry, "a"), of(&registry, "a")].map(open);
    let [other, elsewhere] =
        [of(&registry, "b"), of(&Registry::new(RegistryOptions::default()), "a")].map(open);
    assert_eq!(text(&first, Language::Js, "let x = 1; x"), "1");
    assert_eq!(text(&second, Language::Js, "x += 1; x"), "2");
    for notebook in [&other, &elsewhere] {
        assert!(text(notebook, Language::Js, "x").starts_with("ReferenceError: "));
    }
    if has_python() {
        assert_eq!(text(&first, Language::Py, "y = 3; y"), "3");
        assert_eq!(text(&second, Language::Py, "y"), "3");
    }
    assert_eq!((first.session_id(), second.session_id()), ("a", "a"));
    block_on(first.close()).expect("it closes");
    block_on(first.close()).expect("it is closed");
    assert_eq!(text(&second, Language::Js, "x"), "2");
    drop(second);
    let third = open(of(&registry, "a"));
    assert!(text(&third, Language::Js, "x").starts_with("ReferenceError: "));
}

#[test]
fn who_joins_has_the_options_of_the_session() {
    let registry = Registry::new(RegistryOptions::default());
    let opened = of(&registry, "a");
    let env = [("A".to_owned(), "1".to_owned())].into();
    let _first = open(NotebookOptions { py: None, env, ..opened.clone() });
    let joined = open(NotebookOptions { py: None, ..opened.clone() });
    assert_eq!(text(&joined, Language::Js, "env('A')"), "1");
    let js = JsOptions { memory_limit_bytes: Some(1 << 25), ..JsOptions::default() };
    let env = [("A".to_owned(), "2".to_owned())].into();
    let py = PyOptions { network: true, ..PyOptions::default() };
    for (key, options) in [
        ("js", NotebookOptions { js: Some(js), py: None, ..opened.clone() }),
        ("js", NotebookOptions { js: None, py: None, ..opened.clone() }),
        ("py", NotebookOptions { py: Some(py), ..opened.clone() }),
        ("env", NotebookOptions { env, py: None, ..opened.clone() }),
    ] {
        let misuse = Notebook::new(options).expect_err("it is misuse");
        let message = format!("{key} must be as it is in session 'a', which is open, or left out");
        assert_eq!((misuse.path(), misuse.message()), (key, message.as_str()));
    }
}

#[test]
fn a_kernel_without_cells_ends_after_its_time() {
    let mut languages = vec![(Language::Js, "let x = 1", "typeof x", "undefined")];
    if has_python() {
        languages.push((Language::Py, "x = 1", "'x' in globals()", "False"));
    }
    for (language, begin, ask, answer) in languages {
        let registry = Registry::new(RegistryOptions {
            idle_timeout_ms: 1,
            sweep_ms: 1,
            ..RegistryOptions::default()
        });
        let js = JsOptions { idle_timeout_ms: 1, ..JsOptions::default() };
        let notebook = open(NotebookOptions { js: Some(js), ..of(&registry, "a") });
        text(&notebook, language, begin);
        ended(&notebook);
        let result = run(&notebook, &[(language, ask)]);
        let name = language.title();
        let notice = format!("{name} was ended after 1 ms without a cell; its state was lost.");
        assert!(result.text.contains(answer), "{}", result.text);
        assert_eq!(result.notice.as_deref(), Some(notice.as_str()));
    }
}

#[test]
fn of_too_many_kernels_the_one_that_was_used_least_recently_ends() {
    if !has_python() {
        return;
    }
    let registry = Registry::new(RegistryOptions { max_kernels: 2, ..RegistryOptions::default() });
    let [a, b, c] = ["a", "b", "c"].map(|id| open(of(&registry, id)));
    for notebook in [&a, &b, &a, &c] {
        text(notebook, Language::Py, "x = 1");
    }
    let there = [&a, &b, &c].map(|notebook| notebook.stats().kernels.len());
    assert_eq!(there, [1, 0, 1]);
    let result = run(&b, &[(Language::Py, "'x' in globals()")]);
    let notice =
        "Python was ended to make room for the kernels of other sessions; its state was lost.";
    assert_eq!(result.notice.as_deref(), Some(notice));
    assert_eq!(a.stats().kernels.len(), 0);
}

#[test]
fn beyond_the_kernels_that_may_run_at_once_a_cell_fails() {
    if !has_python() {
        return;
    }
    let registry =
        Registry::new(RegistryOptions { max_running_kernels: 1, ..RegistryOptions::default() });
    let (called, calls) = mpsc::channel();
    let (release, released) = oneshot::channel::<()>();
    let released = Mutex::new(Some(released));
    let wait = CellTool::new("wait", move |_, _| {
        let released = released.lock().expect("no panic").take();
        called.send(()).expect("it is awaited");
        async move {
            released.expect("one call").await.expect("it is released");
            Ok(Value::undefined())
        }
    });
    let first = open(NotebookOptions { tools: vec![wait], ..of(&registry, "a") });
    let second = open(of(&registry, "b"));
    let waits = cells(&[(Language::Py, "tool.wait()")]);
    let execution = first.execute(waits, ExecuteOptions::default()).expect("it is open");
    calls.recv().expect("the cell runs");
    let full = run(&second, &[(Language::Py, "1")]);
    let reason = "Python backend is unavailable: a kernel runs already, and no more may";
    assert!(full.is_error && full.text.starts_with(reason), "{}", full.text);
    release.send(()).expect("the tool waits");
    assert!(!execution.wait().is_error);
    // The kernel without a cell makes room, although `max_kernels` is larger.
    assert_eq!(text(&second, Language::Py, "1"), "1");
    assert!(first.stats().kernels.is_empty());
}

#[test]
fn a_kernel_without_a_cell_that_does_not_answer_is_dead() {
    if !has_python() {
        return;
    }
    let registry =
        Registry::new(RegistryOptions { heartbeat_ms: 500, ..RegistryOptions::default() });
    let notebook = open(of(&registry, "a"));
    // No thread of the kernel runs from then on.
    let hold = "import asyncio\nasyncio.get_running_loop().call_soon(sum, range(10**15)); None";
    text(&notebook, Language::Py, hold);
    ended(&notebook);
    let result = run(&notebook, &[(Language::Py, "2")]);
    let notice = "Python ended unexpectedly (no heartbeat); its state was lost.";
    assert_eq!(result.notice.as_deref(), Some(notice));
    assert_eq!(notebook.stats().kernels[0].restarts, 1);
}
