//! Misuse: what is refused before anything starts, with its path.

use isolane::{ErrorKind, Inputs, Spelling};
use isolane_kit::{Kit, KitOptions, store::StateLimits};
use isolane_notebook::{
    Args, ExecuteOptions, JsOptions, Language, Misuse, Notebook, NotebookOptions, RegistryOptions,
};
use serde_json::{Value as Json, json};

use crate::support::{cells, notebook};

fn refused(options: &Json) -> Misuse {
    NotebookOptions::from_json(options, Spelling::Camel).expect_err("misuse")
}

fn refused_args(args: &Json) -> Misuse {
    match Args::from_json(args) {
        Err(misuse) => misuse,
        Ok(args) => notebook().execute(args, ExecuteOptions::default()).expect_err("misuse"),
    }
}

#[test]
fn options() {
    use ErrorKind::{Range, Type};
    let table = [
        (
            json!({ "limit": {} }),
            Type,
            "limit",
            "limit: unknown option 'limit'; did you mean 'limits'?",
        ),
        (
            json!({ "limits": { "timeoutSecond": 1 } }),
            Type,
            "limits.timeoutSecond",
            "limits.timeoutSecond: unknown option 'timeoutSecond'; did you mean 'timeoutSeconds'?",
        ),
        (
            json!({ "limits": { "maxTimeoutSeconds": 601 } }),
            Range,
            "limits.maxTimeoutSeconds",
            "limits.maxTimeoutSeconds must be a whole number from 1 to 600, got 601",
        ),
        (
            json!({ "limits": { "window": "middle" } }),
            Type,
            "limits.window",
            "limits.window must be 'tail' or 'head' or 'ends', got 'middle'",
        ),
        (json!({ "js": 1 }), Type, "js", "js must be an object, true or false, got 1"),
        (
            json!({ "py": { "interpreter": "" } }),
            Type,
            "py.interpreter",
            "py.interpreter must be a non-empty string, got ''",
        ),
        (
            json!({ "py": { "isolation": "process" } }),
            Type,
            "py.isolation",
            "py.isolation must be 'confined' or 'none', got 'process'",
        ),
        (
            json!({ "py": { "required": ["network", "files"] } }),
            Type,
            "py.required[1]",
            "py.required[1] must be 'privileges' or 'network' or 'fileSystem' or 'systemCalls' or 'processes' or \
             'resources', got 'files'",
        ),
        (
            json!({ "py": { "required": "network" } }),
            Type,
            "py.required",
            "py.required must be a list of strings, got 'network'",
        ),
        (
            json!({ "py": { "network": 1 } }),
            Type,
            "py.network",
            "py.network must be true or false, got 1",
        ),
        (
            json!({ "py": { "processes": "no" } }),
            Type,
            "py.processes",
            "py.processes must be true or false, got 'no'",
        ),
        (
            json!({ "py": { "maxProcesses": 3 } }),
            Range,
            "py.maxProcesses",
            "py.maxProcesses must be a whole number of at least 4, got 3",
        ),
        (
            json!({ "py": { "scratchBytes": 1 } }),
            Range,
            "py.scratchBytes",
            "py.scratchBytes must be a whole number of at least 1048576, got 1",
        ),
        (
            json!({ "py": { "readable": ["/usr", 1] } }),
            Type,
            "py.readable[1]",
            "py.readable[1] must be a string, got 1",
        ),
        (json!({ "env": { "A": 1 } }), Type, "env.A", "env.A must be a string, got 1"),
    ];
    hold(table);
    let snake = json!({ "limits": { "timeout_second": 1 } });
    let misuse = NotebookOptions::from_json(&snake, Spelling::Snake).expect_err("misuse");
    assert!(misuse.message().ends_with("did you mean 'timeout_seconds'?"), "{misuse}");
}

#[test]
fn options_of_files() {
    use ErrorKind::{Range, Type};
    hold([
        (json!({ "files": {} }), Type, "files.root", "files.root is missing"),
        (json!({ "files": "/" }), Type, "files", "files must be an object, got '/'"),
        (
            json!({ "files": { "root": "/", "write": 1 } }),
            Type,
            "files.write",
            "files.write must be true or false, got 1",
        ),
        (
            json!({ "files": { "root": "/", "maxReadBytes": 0 } }),
            Range,
            "files.maxReadBytes",
            "files.maxReadBytes must be a whole number from 1 to 134217728, got 0",
        ),
        (
            json!({ "artifacts": { "folder": "/" } }),
            Type,
            "artifacts.folder",
            "artifacts.folder: unknown option 'folder'; valid options are dir, maxBytes",
        ),
    ]);
}

fn hold<const COUNT: usize>(table: [(Json, ErrorKind, &str, &str); COUNT]) {
    for (options, kind, path, message) in table {
        let misuse = refused(&options);
        assert_eq!((misuse.kind(), misuse.path(), misuse.message()), (kind, path, message));
    }
}

#[test]
fn options_that_contradict_each_other() {
    let refused = |options: Json| {
        let options = NotebookOptions::from_json(&options, Spelling::Camel).expect("valid words");
        let misuse = Notebook::new(options).expect_err("misuse");
        (misuse.path().to_owned(), misuse.message().to_owned())
    };
    let path = "py.required[1]".to_owned();
    let message = format!("{path}: a kernel with 'network' has the network");
    let required = ["fileSystem", "network"];
    let options = json!({ "py": { "required": required, "network": true } });
    assert_eq!(refused(options), (path, message));
    if cfg!(unix) {
        for (key, place) in [("readable", "/"), ("readable", "/tmp"), ("path", "/proc/self")] {
            let path = format!("py.{key}[1]");
            let message = format!("{path}: a kernel cannot be shown '{place}'");
            let options = json!({ "py": { key: ["/usr", place] } });
            assert_eq!(refused(options), (path, message));
        }
        let options = json!({ "py": { "isolation": "none", "path": ["/tmp"] } });
        let options = NotebookOptions::from_json(&options, Spelling::Camel).expect("valid words");
        assert!(Notebook::new(options).is_ok());
    }
}

#[test]
fn arguments() {
    use ErrorKind::{Range, Type};
    let cell = |rest: Json| {
        let mut cell = json!({ "language": "js", "code": "1" });
        let fields = cell.as_object_mut().expect("an object");
        fields.extend(rest.as_object().expect("an object").clone());
        json!({ "cells": [{ "language": "js", "code": "1" }, cell] })
    };
    let table = [
        (json!([]), Type, "args", "args must be an object, got a list"),
        (json!({}), Type, "cells", "cells is missing"),
        (json!({ "cells": [] }), Type, "cells", "cells must have at least one cell"),
        (json!({ "cell": [] }), Type, "cell", "cell: unknown option 'cell'; did you mean 'cells'?"),
        (
            cell(json!({ "timeout": 0 })),
            Range,
            "cells[1].timeout",
            "cells[1].timeout must be a whole number from 1 to 600, got 0",
        ),
        (
            cell(json!({ "timeout": 1.5 })),
            Range,
            "cells[1].timeout",
            "cells[1].timeout must be a whole number from 1 to 600, got 1.5",
        ),
        (
            cell(json!({ "timeout": "1" })),
            Type,
            "cells[1].timeout",
            "cells[1].timeout must be a number, got '1'",
        ),
        (
            cell(json!({ "language": "rb" })),
            Type,
            "cells[1].language",
            "cells[1].language must be 'py' or 'js', got 'rb'",
        ),
        (cell(json!({ "code": null })), Type, "cells[1].code", "cells[1].code is missing"),
        (
            cell(json!({ "tile": "x" })),
            Type,
            "cells[1].tile",
            "cells[1].tile: unknown option 'tile'; did you mean 'title'?",
        ),
        (
            json!({ "cells": vec![json!({ "language": "js", "code": "" }); 65] }),
            Range,
            "cells",
            "cells must have at most 64 cells, got 65",
        ),
        (
            cell(json!({ "code": "x".repeat((1 << 20) + 1) })),
            Range,
            "cells[1].code",
            "cells[1].code must have at most 1048576 bytes, got 1048577",
        ),
    ];
    for (args, kind, path, message) in table {
        let misuse = refused_args(&args);
        assert_eq!((misuse.kind(), misuse.path(), misuse.message()), (kind, path, message));
    }
}

#[test]
fn a_backend_that_is_off_and_a_notebook_that_is_closed() {
    let options = NotebookOptions { py: None, ..NotebookOptions::default() };
    let notebook = Notebook::new(options).expect("valid options");
    let run = |language| notebook.execute(cells(&[(language, "1")]), ExecuteOptions::default());
    let misuse = run(Language::Py).expect_err("misuse");
    assert_eq!(misuse.message(), "cells[0].language: the Python backend is switched off");
    let misuse = notebook.reset(Language::Py).expect_err("misuse");
    assert_eq!(misuse.message(), "language: the Python backend is switched off");
    notebook.close().wait().expect("closed");
    let misuse = run(Language::Js).expect_err("misuse");
    assert_eq!((misuse.path(), misuse.message()), ("notebook", "notebook is closed"));
}

#[test]
fn kits() {
    let kit = |options| Kit::new(options).expect("a kit");
    let refused = |js: JsOptions| {
        let options = NotebookOptions { js: Some(js), ..NotebookOptions::default() };
        let misuse = Notebook::new(options).expect_err("misuse");
        (misuse.path().to_owned(), misuse.message().to_owned())
    };
    let state = KitOptions { state: Some(StateLimits::default()), ..KitOptions::default() };
    let globals = Inputs::new().with("state", 1);
    let js = JsOptions { kit: Some(kit(state)), globals, ..JsOptions::default() };
    let message = "js.globals.state: the name is the kit's: choose another name";
    assert_eq!(refused(js), ("js.globals.state".to_owned(), message.to_owned()));
    let closed = kit(KitOptions::default());
    closed.close();
    let js = JsOptions { kit: Some(closed), ..JsOptions::default() };
    assert_eq!(refused(js), ("js.kit".to_owned(), "js.kit is closed".to_owned()));
    let misuse = NotebookOptions::from_json(&json!({ "js": { "kit": {} } }), Spelling::Camel);
    assert_eq!(misuse.expect_err("misuse").message(), "js.kit must be a Kit, got an object");
}

#[test]
fn registries() {
    let given = json!({ "maxRunningKernels": 2, "heartbeatMs": 1 });
    let options = RegistryOptions::from_json(&given, Spelling::Camel).expect("valid options");
    let expected = (2, 1, 4);
    assert_eq!((options.max_running_kernels, options.heartbeat_ms, options.max_kernels), expected);
    for (given, message) in [
        (
            json!({ "maxRunningKernels": 0 }),
            "maxRunningKernels must be a whole number of at least 1, got 0",
        ),
        (json!({ "heartbeatMs": 0 }), "heartbeatMs must be a whole number of at least 1, got 0"),
        (
            json!({ "heartBeatMs": 1 }),
            "heartBeatMs: unknown option 'heartBeatMs'; did you mean 'heartbeatMs'?",
        ),
    ] {
        let misuse = RegistryOptions::from_json(&given, Spelling::Camel).expect_err("misuse");
        assert_eq!(misuse.message(), message);
    }
}
