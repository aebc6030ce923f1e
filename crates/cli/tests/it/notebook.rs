//! `isolane notebook`: the outputs of cells, a file with them in it, exit codes.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::program::{command, isolane};

/// A folder with a notebook of that name.
fn folder(name: &str, notebook: &Json) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join(name), notebook.to_string()).expect("a file");
    folder
}

fn read(folder: &TempDir, name: &str) -> Json {
    let text = fs::read_to_string(folder.path().join(name)).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

/// A notebook of Jupyter with these cells of code.
fn jupyter(language: &str, sources: &[&str]) -> Json {
    let cells = sources.iter().map(|source| {
        json!({ "cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": source })
    });
    json!({
        "cells": cells.collect::<Vec<_>>(),
        "metadata": { "kernelspec": { "language": language, "name": "python3" }, "kept": [1.5] },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

#[test]
fn cells_run_in_order_and_keep_their_state() {
    let cells = json!(["const rows = [1, 2]\nconsole.log(rows.length)", { "source": "rows.map((row) => row * tax)" }]);
    let folder = folder("a.json", &json!({ "cells": cells }));
    let (code, stdout, stderr) =
        isolane(folder.path(), &["notebook", "a.json", "--global", "tax=2"]);
    let expected = "[1/2] const rows = [1, 2]\n2\n[2/2] rows.map((row) => row * tax)\n[2,4]\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), expected, ""));
}

#[test]
fn a_cell_that_fails_ends_the_run_unless_it_keeps_going() {
    let folder = folder("a.json", &json!({ "cells": ["console.log('before'); null.x", "7", "8"] }));
    let (code, stdout, stderr) = isolane(folder.path(), &["notebook", "a.json"]);
    assert_eq!((code, stdout.as_str()), (Some(1), "[1/3] console.log('before'); null.x\nbefore\n"));
    let line = "  1 | console.log('before'); null.x\n    |                             ^\n";
    assert!(stderr.starts_with("[1/3] error  TypeError: "), "{stderr}");
    assert!(stderr.contains(&format!("  cell 1:1:29\n{line}")), "{stderr}");
    assert!(stderr.ends_with("cells 2 and 3 did not run; --keep-going runs them\n"), "{stderr}");

    let (code, stdout, _) = isolane(folder.path(), &["notebook", "a.json", "--keep-going"]);
    assert_eq!(code, Some(1));
    assert!(stdout.ends_with("[2/3] 7\n7\n[3/3] 8\n8\n"), "{stdout}");
}

#[test]
fn python_is_confined_to_the_files_that_it_was_given() {
    let source = "import os, helper\nprint(helper.word, os.environ.get('A_WORD'), os.path.exists('/etc/shadow'))";
    let folder = folder("a.ipynb", &jupyter("python", &[source]));
    fs::create_dir(folder.path().join("data")).expect("a folder");
    fs::write(folder.path().join("data/helper.py"), "word = 'helper'").expect("a file");
    let mut command = command(&["notebook", "a.ipynb", "--files", "data"]);
    command.current_dir(folder.path()).env("A_WORD", "variable");
    let output = command.output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let required = ["doctor", "--require", "network,file_system"];
    if isolane(folder.path(), &required).0 == Some(0) {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "helper None False\n", "{stderr}");
    } else {
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr.contains("; --unconfined-python runs its cells"), "{stderr}");
    }
}

#[test]
fn a_machine_that_cannot_confine_python_is_told_of_the_way_out() {
    let folder = folder("a.ipynb", &jupyter("python", &["1"]));
    let mut command = command(&["notebook", "a.ipynb"]);
    command.current_dir(folder.path()).env("ISOLANE_WORKER", "/nope");
    let output = command.output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let end =
        "; --unconfined-python runs its cells without confinement: they can do whatever you can\n";
    assert!(stderr.starts_with("error: Python: ") && stderr.ends_with(end), "{stderr}");
}

#[test]
fn outputs_are_put_into_a_notebook_of_jupyter() {
    let sources = ["print('a')\n{'n': 1}", "%%javascript\n1 + 1", "1 / 0", "'not reached'"];
    let folder = folder("a.ipynb", &jupyter("python", &sources));
    let flags = ["notebook", "a.ipynb", "--unconfined-python", "--write"];
    let (code, stdout, stderr) = isolane(folder.path(), &flags);
    let expected = "[1/4] print('a')\na\n{\"n\":1}\n[2/4] 1 + 1\n2\n[3/4] 1 / 0\n";
    assert_eq!((code, stdout.as_str()), (Some(1), expected), "{stderr}");
    assert!(
        stderr.starts_with("[3/4] Traceback (most recent call last):\n  File \"cell 3\", line 1"),
        "{stderr}"
    );
    assert!(stderr.contains("ZeroDivisionError: division by zero\n"), "{stderr}");
    assert!(stderr.ends_with("cell 4 did not run; --keep-going runs them\n"), "{stderr}");

    let written = read(&folder, "a.ipynb");
    let output = |index: usize| written["cells"][index]["outputs"].clone();
    let value = json!({
        "output_type": "display_data",
        "data": { "application/json": { "n": 1 }, "text/plain": ["{\n", "  \"n\": 1\n", "}"] },
        "metadata": {},
    });
    assert_eq!(
        output(0),
        json!([{ "output_type": "stream", "name": "stdout", "text": ["a"] }, value])
    );
    assert_eq!(output(1)[0]["data"], json!({ "text/plain": ["2"] }));
    let error = output(2);
    assert_eq!(
        (&error[0]["output_type"], &error[0]["ename"]),
        (&json!("error"), &json!("ZeroDivisionError"))
    );
    assert_eq!(
        error[0]["traceback"].as_array().expect("lines").last(),
        Some(&json!("ZeroDivisionError: division by zero"))
    );
    // The rest is as it was.
    assert_eq!((&output(3), &written["cells"][3]["execution_count"]), (&json!([]), &Json::Null));
    assert_eq!(written["cells"][1]["source"], sources[1]);
    assert_eq!(written["metadata"]["kept"], json!([1.5]));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn outputs_are_put_into_a_list_of_cells_which_runs_again() {
    let folder = folder("a.json", &json!({ "cells": ["({ n: 1 })"], "name": "kept" }));
    for _ in 0..2 {
        let (code, stdout, stderr) = isolane(folder.path(), &["notebook", "a.json", "--write"]);
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "{\"n\":1}\n", ""));
        let outputs = json!([{ "type": "json", "value": { "n": 1 } }]);
        let cell = json!({ "source": "({ n: 1 })", "status": "complete", "outputs": outputs });
        assert_eq!(read(&folder, "a.json"), json!({ "cells": [cell], "name": "kept" }));
    }
}

#[test]
fn json_is_one_line_with_the_cells() {
    let folder = folder("a.json", &json!({ "cells": ["console.log('a'); 1n", "throw 'b'", "2"] }));
    let (code, stdout, stderr) = isolane(folder.path(), &["notebook", "a.json", "--json"]);
    assert_eq!((code, stdout.lines().count()), (Some(1), 1), "{stderr}");
    let line: Json = serde_json::from_str(&stdout).expect("JSON");
    let field = |key: &str| {
        line["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .map(|cell| cell[key].clone())
            .collect::<Json>()
    };
    assert_eq!(field("index"), json!([0, 1]));
    assert_eq!(field("status"), json!(["complete", "error"]));
    assert_eq!(line["cells"][0]["output"], "a\n1n");
}

#[test]
fn a_cell_has_a_time_limit() {
    let folder = folder("a.json", &json!({ "cells": ["for (;;);"] }));
    let (code, _, stderr) = isolane(folder.path(), &["notebook", "a.json", "--timeout", "1s"]);
    assert_eq!(code, Some(124));
    assert!(stderr.starts_with("the cell took longer than 1s\n"), "{stderr}");
    for wrong in ["11m", "1500ms"] {
        let (code, _, stderr) = isolane(folder.path(), &["notebook", "a.json", "--timeout", wrong]);
        let expected = "error: --timeout: a cell has whole seconds, from 1s to 600s\n";
        assert_eq!((code, stderr.as_str()), (Some(2), expected));
    }
}

#[test]
fn a_signal_ends_the_cell_and_keeps_what_was_done() {
    let folder =
        folder("a.json", &json!({ "cells": ["1", "console.log('begun'); for (;;);", "3"] }));
    let mut command = command(&["notebook", "a.json", "--write"]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stdout = child.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("UTF-8"));
    // The head of a cell is written when the cell begins.
    assert!(lines.any(|line| line.starts_with("[2/3]")));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(143), "{stderr}");
    assert!(stderr.contains("[2/3] the cell was ended\n"), "{stderr}");
    let cells = &read(&folder, "a.json")["cells"];
    assert_eq!(
        (&cells[0]["status"], &cells[1]["status"], &cells[2]),
        (&json!("complete"), &json!("error"), &json!("3"))
    );
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_misuse() {
    let folder = folder("a.json", &json!({ "cells": ["1"] }));
    for (arguments, message) in [
        (&["no.ipynb"][..], "error: cannot read no.ipynb: "),
        (&["-", "--write"], "error: --write needs a file; stdin cannot be written to\n"),
        (&["a.json", "--files", "no"], "error: files.root"),
    ] {
        let (code, stdout, stderr) = isolane(folder.path(), &[&["notebook"], arguments].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(stderr.starts_with(message), "{stderr}");
    }
}

/// A folder beside the file is the place of Python's cells, and its variables are those of the program.
#[test]
fn python_has_the_folder_and_the_variables_of_its_caller() {
    let source = "import os, helper\nopen('data.csv').read() + helper.word + os.environ['A_WORD']";
    let folder = folder("a.ipynb", &jupyter("python", &[source]));
    fs::write(folder.path().join("data.csv"), "data").expect("a file");
    fs::write(folder.path().join("helper.py"), "word = ' helper '").expect("a file");
    let file = folder.path().join("a.ipynb");
    let mut command = command(&["notebook"]);
    command.arg(&file).arg("--unconfined-python").env("A_WORD", "variable");
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "'data helper variable'\n", "{stderr}");
}

#[test]
fn a_wrong_interpreter_is_misuse_before_any_cell() {
    let folder = folder("a.ipynb", &jupyter("python", &["%%js\n1", "2"]));
    let before = fs::read(folder.path().join("a.ipynb")).expect("a file");
    let flags = ["notebook", "a.ipynb", "--write", "--unconfined-python", "--interpreter", "/nope"];
    let (code, stdout, stderr) = isolane(folder.path(), &flags);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.starts_with("error: Python: "), "{stderr}");
    assert_eq!(fs::read(folder.path().join("a.ipynb")).expect("a file"), before);
}

#[test]
fn a_kernel_that_died_is_started_anew_for_each_later_cell() {
    let dies = "import os\nos._exit(3)";
    let folder = folder("a.ipynb", &jupyter("python", &[dies, dies, dies, "7"]));
    let flags = ["notebook", "a.ipynb", "--unconfined-python", "--keep-going"];
    let (code, stdout, stderr) = isolane(folder.path(), &flags);
    assert_eq!(code, Some(1));
    assert!(stdout.ends_with("[4/4] 7\n7\n"), "{stdout}{stderr}");
    assert_eq!(stderr.matches("the state of Python was lost\n").count(), 3, "{stderr}");
}

#[test]
fn changes_of_others_are_kept() {
    let folder = folder("a.json", &json!({ "cells": ["console.log('begun'); for (;;);"] }));
    let mut command = command(&["notebook", "a.json", "--write", "--timeout", "1s"]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The file of a name that the program might use for its own is left alone, too.
    fs::write(folder.path().join("a.json.new"), "mine").expect("a file");
    let file = folder.path().join("a.json");
    let child = command.spawn().expect("it starts");
    fs::write(&file, "edited").expect("a file");
    let output = child.wait_with_output().expect("it ends");
    // It was changed before it was read, or afterwards.
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "edited");
    assert_eq!(fs::read_to_string(folder.path().join("a.json.new")).expect("a file"), "mine");
}

#[test]
fn a_link_leads_to_the_file_that_is_written() {
    let folder = folder("real.json", &json!({ "cells": ["1"] }));
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink("real.json", &link).expect("a link");
    let (code, _, stderr) = isolane(folder.path(), &["notebook", "link.json", "--write"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert_eq!(read(&folder, "real.json")["cells"][0]["status"], "complete");
    let (code, _, stderr) = isolane(folder.path(), &["notebook", "/dev/null", "--write"]);
    assert_eq!(
        (code, stderr.as_str()),
        (Some(2), "error: cannot write /dev/null: it is no regular file\n")
    );
}

#[test]
fn a_message_has_no_escape_sequences() {
    let folder =
        folder("a.json", &json!({ "cells": [{ "source": "1", "language": "\u{1b}[31mx" }] }));
    let (code, _, stderr) = isolane(folder.path(), &["notebook", "a.json"]);
    assert_eq!(code, Some(2));
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
}

#[test]
fn cells_are_shown_in_files_of_their_own() {
    let cells = json!(["console.log('<i>')", "null.x", "'not reached'"]);
    let folder = folder("a.json", &json!({ "cells": cells }));
    let flags = ["notebook", "a.json", "--html", "a.html", "--ipynb", "a.ipynb"];
    let (code, _, stderr) = isolane(folder.path(), &flags);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(read(&folder, "a.json"), json!({ "cells": cells }));
    let page = fs::read_to_string(folder.path().join("a.html")).expect("a page");
    assert!(page.contains("<h1>a.json</h1>") && page.contains("&lt;i&gt;"), "{page}");
    assert!(page.contains("3 cells · JavaScript · ") && page.contains("1 failed · 1 not run"));
    let written = read(&folder, "a.ipynb");
    let counts = written["cells"].as_array().expect("cells").iter();
    let counts: Json = counts.map(|cell| cell["execution_count"].clone()).collect();
    assert_eq!((&counts, &written["nbformat_minor"]), (&json!([1, 2, null]), &json!(5)));
    assert_eq!(written["metadata"]["kernelspec"]["language"], "typescript");
    // It is a notebook that runs again.
    let (code, stdout, _) = isolane(folder.path(), &["notebook", "a.ipynb"]);
    assert_eq!((code, stdout.as_str()), (Some(1), "[1/3] console.log('<i>')\n<i>\n[2/3] null.x\n"));
}

#[test]
fn a_copy_of_a_notebook_of_jupyter_keeps_all_else() {
    let mut notebook = jupyter("typescript", &["1 + 1"]);
    // An earlier run has told of the cell.
    notebook["cells"][0]["metadata"] =
        json!({ "kept": 1, "isolane": { "durationMs": 1e9, "status": "error" } });
    let text = json!({ "cell_type": "markdown", "metadata": {}, "source": "# Kept" });
    notebook["cells"].as_array_mut().expect("cells").insert(0, text);
    let folder = folder("a.ipynb", &notebook);
    let flags = ["notebook", "a.ipynb", "--ipynb", "b.ipynb"];
    let (code, _, stderr) = isolane(folder.path(), &flags);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(read(&folder, "a.ipynb"), notebook);
    let data = json!({ "text/plain": ["2"] });
    let output = json!({ "output_type": "display_data", "data": data, "metadata": {} });
    notebook["cells"][1]["outputs"] = json!([output]);
    notebook["cells"][1]["execution_count"] = json!(1);
    let mut copy = read(&folder, "b.ipynb");
    let told = copy["cells"][1]["metadata"]["isolane"].take();
    assert_eq!((&told["status"], &told["name"]), (&json!("complete"), &json!("<cell 1>")));
    assert!(told["durationMs"].as_f64().is_some_and(|ms| ms < 1e9), "{told}");
    notebook["cells"][1]["metadata"]["isolane"] = Json::Null;
    assert_eq!(copy, notebook);
}

#[test]
fn a_file_that_cannot_show_the_cells_is_refused_before_they_run() {
    let folder = folder("a.json", &json!({ "cells": ["console.log('ran')"] }));
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    fs::hard_link(folder.path().join("a.json"), folder.path().join("hard.html")).expect("a link");
    for (flag, file, why) in [
        ("--html", "hard.html", "it is the notebook itself"),
        ("--html", "no/a.html", "its folder is not there"),
        ("--html", "folder", "it is a folder"),
        ("--html", "./a.json", "it is the notebook itself"),
        ("--ipynb", "a.json", "it is the notebook itself; --write puts outputs into it"),
    ] {
        let (code, stdout, stderr) = isolane(folder.path(), &["notebook", "a.json", flag, file]);
        let expected = format!("error: cannot write {file}: {why}\n");
        assert_eq!((code, stdout.as_str(), stderr), (Some(2), "", expected));
    }
}
