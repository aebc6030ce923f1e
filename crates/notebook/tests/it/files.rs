//! Files and artifacts under attack: links that are swapped, pipes, devices, files without an end, folders without a bound.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use isolane_notebook::{
    ArtifactsOptions, ExecuteOptions, FilesOptions, Language, Limits, Notebook, NotebookOptions,
    PyOptions,
};
use tempfile::TempDir;

use crate::support::{has_python, options, run};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A notebook with files, of which Python cells have their own way to others.
fn notebook(root: &Path, write: bool) -> Notebook {
    let files = FilesOptions { write, ..FilesOptions::new(root) };
    let options = NotebookOptions { files: Some(files), ..options() };
    Notebook::new(options).expect("valid options")
}

/// The text of a cell of JavaScript, which ended well.
fn js(notebook: &Notebook, code: &str) -> String {
    let result = run(notebook, &[(Language::Js, code)]);
    assert!(!result.is_error, "{}", result.text);
    result.text
}

/// The name and the message of what each of these throws.
fn thrown(notebook: &Notebook, calls: &[&str]) -> Vec<String> {
    let thunks: Vec<String> = calls.iter().map(|call| format!("async () => {call}")).collect();
    let code = format!(
        "const told = []; for (const act of [{}]) try {{ told.push(String(await act())) }} catch (e) {{ told.push(`${{e.name}}: ${{e.message}}`) }}\nreturn told.join('\\n')",
        thunks.join(", ")
    );
    js(notebook, &code).lines().map(str::to_owned).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_and_devices_are_no_files() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = folder();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let told = thrown(
        &notebook(folder.path(), true),
        &["read('pipe')", "write('pipe', 'x')", "append('pipe', 'x')", "tree('pipe')", "tree()"],
    );
    let expected = [
        "OSError: read: 'pipe' is a pipe, no file",
        "OSError: write: 'pipe' is a pipe, no file",
        "OSError: append: 'pipe' is a pipe, no file",
        "NotADirectoryError: tree: 'pipe' is no folder",
        "pipe",
    ];
    assert_eq!(told, expected);
    let told = thrown(
        &notebook(Path::new("/dev"), true),
        &[
            "read('zero')",
            "read('/dev/zero', { limit: 1 })",
            "write('null', 'x')",
            "append('full', 'x')",
        ],
    );
    let expected = [
        "OSError: read: 'zero' is a device, no file",
        "OSError: read: '/dev/zero' is a device, no file",
        "OSError: write: 'null' is a device, no file",
        "OSError: append: 'full' is a device, no file",
    ];
    assert_eq!(told, expected);
}

#[test]
#[cfg(unix)]
fn links_that_are_swapped_never_lead_out() {
    use std::os::unix::fs::symlink;
    let (root, outside) = (folder(), folder());
    fs::write(outside.path().join("a.txt"), "secret").expect("a file");
    let place = |name: &str| root.path().join(name);
    fs::create_dir(place("inside")).expect("a folder");
    fs::write(place("inside/a.txt"), "open").expect("a file");
    symlink("inside", place("way")).expect("a link");
    let notebook = notebook(root.path(), true);
    let is_over = AtomicBool::new(false);
    let told = thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let target = if turn % 2 == 0 { outside.path() } else { Path::new("inside") };
                symlink(target, place("next")).expect("a link");
                fs::rename(place("next"), place("way")).expect("moved");
            }
        });
        let code = "const told = new Set();
            for (let n = 0; n < 300; n++) {
              for (const act of [() => read('way/a.txt'), () => write('way/b.txt', 'x'), () => append('way/c.txt', 'x'), () => tree('way')])
                try { told.add(await act()) } catch (e) { told.add(e.name) }
            }
            return [...told].sort().join('\\n')";
        let told = run(&notebook, &[(Language::Js, code)]);
        is_over.store(true, Ordering::Relaxed);
        told
    });
    assert!(!told.is_error, "{}", told.text);
    assert!(!told.text.contains("secret"), "{}", told.text);
    let names: Vec<_> = fs::read_dir(outside.path()).expect("a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn files_without_an_end_are_read_in_parts_and_can_be_stopped() {
    let folder = folder();
    let file = fs::File::create(folder.path().join("big")).expect("a file");
    file.set_len(1 << 40).expect("a sparse file");
    let notebook = notebook(folder.path(), false);
    let told = thrown(
        &notebook,
        &[
            "read('big')",
            "read('big', { limit: 1 })",
            "diff('big', 'big')",
            "read('big', { limit: 0 })",
        ],
    );
    let expected = [
        "RangeError: read: 'big' has 1,099,511,627,776 bytes, and at most 16,777,216 can be read at once: use offset and limit",
        "RangeError: read: these lines of 'big' have more than 16,777,216 bytes",
        "RangeError: diff: 'big' has 1,099,511,627,776 bytes, and at most 16,777,216 can be read at once: use offset and limit",
    ];
    assert_eq!(told, expected);
    let mut cell = crate::support::cells(&[(Language::Js, "await read('big', { offset: 2 })")]);
    cell.cells[0].timeout = Some(1);
    let ended = notebook.execute(cell, ExecuteOptions::default()).expect("valid arguments").wait();
    assert!(ended.text.starts_with("Command timed out after 1 second"), "{}", ended.text);
    assert_eq!(js(&notebook, "1 + 1"), "2");
}

#[test]
fn many_reads_at_once_are_all_answered() {
    let folder = folder();
    fs::write(folder.path().join("a.txt"), "x".repeat(1 << 20)).expect("a file");
    let notebook = notebook(folder.path(), false);
    let code = "const all = await Promise.all(Array.from({ length: 32 }, () => read('a.txt')));\nall.reduce((sum, text) => sum + text.length, 0)";
    assert_eq!(js(&notebook, code), (32 << 20).to_string());
}

#[test]
fn folders_may_have_any_number_of_entries_with_any_names() {
    let folder = folder();
    let many = folder.path().join("many");
    fs::create_dir(&many).expect("a folder");
    for number in 0..100_000 {
        fs::File::create(many.join(number.to_string())).expect("a file");
    }
    fs::write(folder.path().join("a\u{1b}[2J\r\n"), "").expect("a file");
    let notebook = notebook(folder.path(), false);
    let text = js(
        &notebook,
        "const text = await tree(); print(text.split('\\n').length); print(text.slice(-42)); text.slice(0, 63)",
    );
    // The first names come first, whatever the order on the disk is.
    assert_eq!(
        text,
        "2002\n  11794\n  11795\n[cut after 2,000 entries]\n\na\\u{1b}[2J\\r\\n\nmany/\n  0\n  1\n  10\n  100\n  1000\n  10000\n  10001\n"
            .trim_end()
    );
}

#[test]
#[cfg(unix)]
fn a_file_is_replaced_in_one_step_and_keeps_its_permissions() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("a.txt"), "old").expect("a file");
    fs::set_permissions(place("a.txt"), fs::Permissions::from_mode(0o640)).expect("set");
    symlink("a.txt", place("link")).expect("a link");
    symlink("nowhere", place("dangling")).expect("a link");
    fs::hard_link(place("a.txt"), place("other name")).expect("a link");
    let before = fs::metadata(place("a.txt")).expect("a file").ino();
    let notebook = notebook(folder.path(), true);
    let told = thrown(
        &notebook,
        &["write('link', 'new')", "write('dangling', 'new')", "write('a\\nb', 'x')"],
    );
    assert_eq!(told, ["a.txt", "dangling", "a", "b"]);
    let after = fs::metadata(place("a.txt")).expect("a file");
    assert_ne!(after.ino(), before);
    assert_eq!(after.permissions().mode() & 0o777, 0o640);
    let text = |name: &str| fs::read_to_string(place(name)).expect("a file");
    assert_eq!(
        (text("a.txt"), text("link"), text("dangling")),
        ("new".into(), "new".into(), "new".into())
    );
    // The other name is that of the old file.
    assert_eq!(text("other name"), "old");
    assert!(fs::symlink_metadata(place("link")).expect("a link").is_symlink());
    let rest: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(rest.len(), 5, "{rest:?}");
}

#[test]
fn a_write_may_have_as_many_bytes_as_the_option_says() {
    let folder = folder();
    let notebook = notebook(folder.path(), true);
    let most = 16 << 20;
    let code = |language| match language {
        Language::Js => format!(
            "await write('a', 'x'.repeat({most})); const b = await write('b', new Uint8Array({most})); b"
        ),
        Language::Py => format!("write('a', 'x' * {most}); print(write('b', bytes({most})))"),
    };
    for language in [Language::Js, Language::Py] {
        if language == Language::Py && !has_python() {
            continue;
        }
        assert_eq!(run(&notebook, &[(language, &code(language))]).text, "b");
        for name in ["a", "b"] {
            let path = folder.path().join(name);
            assert_eq!(fs::metadata(&path).expect("a file").len(), most);
            fs::remove_file(path).expect("removed");
        }
    }
}

#[test]
fn what_is_printed_is_whole_in_its_artifact() {
    let folder = folder();
    let options = NotebookOptions {
        artifacts: Some(ArtifactsOptions::new(folder.path())),
        limits: Limits { output_bytes: 1000, ..Limits::default() },
        ..options()
    };
    let notebook = Notebook::new(options).expect("valid options");
    let cells = [
        (Language::Js, "const line = 'x'.repeat(1023); for (let n = 0; n < 5000; n++) print(line)"),
        (Language::Py, "import os\nfor n in range(5 << 10): os.write(1, b'y' * 1023 + b'\\n')"),
    ];
    for (number, (language, code)) in cells.into_iter().enumerate() {
        if language == Language::Py && !has_python() {
            continue;
        }
        let result = run(&notebook, &[(language, code)]);
        let artifact = result.artifact.expect("it was cut");
        assert_eq!(artifact.uri, format!("artifact://eval-{}", number + 1));
        assert_eq!((artifact.bytes % 1024, artifact.dropped_bytes), (0, 0));
        assert_eq!(Some(artifact.bytes), result.truncation.map(|cut| cut.total_bytes + 1));
        assert_eq!(fs::metadata(&artifact.path).expect("a file").len(), artifact.bytes);
        assert!(
            result.text.ends_with(&format!("; all of it: {}]", artifact.uri)),
            "{}",
            result.text
        );
    }
    if has_python() {
        // A bar of progress is one line: nothing is cut, and the file of its bytes goes.
        let code = "import sys\nfor n in range(10_000): sys.stdout.write(f'\\r{n}')";
        let bar = run(&notebook, &[(Language::Py, code)]);
        assert_eq!((bar.text.as_str(), bar.artifact), ("9999", None));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}

#[test]
fn a_folder_that_fails_does_not_hurt_the_call() {
    let folder = folder();
    let dir = folder.path().join("artifacts");
    let options = NotebookOptions {
        artifacts: Some(ArtifactsOptions::new(&dir)),
        limits: Limits { output_lines: 1, ..Limits::default() },
        ..options()
    };
    let notebook = Notebook::new(options).expect("valid options");
    fs::remove_dir(&dir).expect("removed");
    let result = run(&notebook, &[(Language::Js, "print(1); print(2)")]);
    assert_eq!(
        result.text,
        "2\n[output truncated: last 1 of 2 lines; all of it could not be kept: it does not exist]"
    );
    assert_eq!((result.is_error, result.artifact), (false, None));
}

#[test]
#[cfg(unix)]
fn folders_with_programs_of_the_host_are_misuse() {
    let refused = |root: &Path, python: PyOptions| {
        let files = FilesOptions { write: true, ..FilesOptions::new(root) };
        let options =
            NotebookOptions { files: Some(files), py: Some(python), ..NotebookOptions::default() };
        Notebook::new(options).expect_err("misuse").message().to_owned()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("bin/python3");
    let own = PyOptions { interpreter: Some(program.clone()), ..PyOptions::default() };
    let expected = format!("files.root: cells could replace {} in it", program.display());
    assert_eq!(refused(folder.path(), own), expected);
    for root in ["/", "/proc/self"] {
        let expected = format!("files.root: cells cannot have '{root}'");
        assert_eq!(refused(Path::new(root), PyOptions::default()), expected);
    }
}

#[test]
#[cfg(unix)]
fn a_file_that_is_changed_loses_the_rights_of_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a");
    let files = FilesOptions { write: true, ..FilesOptions::new(folder.path()) };
    let options = NotebookOptions { files: Some(files), py: None, ..NotebookOptions::default() };
    let notebook = Notebook::new(options).expect("valid options");
    for change in ["await write('a', '2')", "await append('a', '2')"] {
        fs::write(&file, "1").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o6755)).expect("its mode");
        assert_eq!(run(&notebook, &[(Language::Js, change)]).text, "a");
        let mode = fs::metadata(&file).expect("its state").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{change}");
    }
}

#[test]
fn folders_that_are_none_are_misuse() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let misuse = |options| Notebook::new(options).expect_err("misuse").to_string();
    let files = |root: &Path| NotebookOptions { files: Some(FilesOptions::new(root)), ..options() };
    let missing = folder.path().join("missing");
    let text = "files.root: the folder cannot be opened: ";
    assert_eq!(misuse(files(&missing)), format!("{text}it does not exist"));
    assert_eq!(misuse(files(&file)), format!("{text}it is no folder"));
    let artifacts =
        NotebookOptions { artifacts: Some(ArtifactsOptions::new(file.join("inner"))), ..options() };
    assert!(misuse(artifacts).starts_with("artifacts.dir: the folder cannot be opened: "));
}

#[test]
fn the_tool_names_the_helpers_that_are_there() {
    let folder = folder();
    let description = |options: NotebookOptions| {
        Notebook::new(options).expect("valid options").tool().description
    };
    let bare = description(options());
    assert!(
        bare.contains("`sort(text, { reverse, unique })`") && !bare.contains("read("),
        "{bare}"
    );
    assert!(!bare.contains("output("), "{bare}");
    let files = FilesOptions::new(folder.path());
    let read = NotebookOptions { files: Some(files.clone()), ..options() };
    let read = description(read);
    assert!(read.contains("`await read(path, { offset, limit, bytes })`"), "{read}");
    assert!(read.contains("read-only") && !read.contains("write("), "{read}");
    let all = NotebookOptions {
        files: Some(FilesOptions { write: true, ..files }),
        artifacts: Some(ArtifactsOptions::new(folder.path())),
        ..options()
    };
    let all = description(all);
    assert!(all.contains("`write(path, data)`") && all.contains("`await output(id, "), "{all}");
}

#[test]
fn imports_of_files_have_a_bound() {
    let folder = folder();
    let mut index = String::new();
    for number in 0..1001 {
        fs::write(folder.path().join(format!("m{number}.js")), "").expect("a file");
        index.push_str(&format!("import './m{number}.js';\n"));
    }
    fs::write(folder.path().join("index.js"), index).expect("a file");
    let notebook = notebook(folder.path(), false);
    let ended = run(&notebook, &[(Language::Js, "import './index.js'")]);
    assert!(
        ended.text.contains("the files that were imported are more than 1,000"),
        "{}",
        ended.text
    );
    assert_eq!(js(&notebook, "1 + 1"), "2");
}
