//! `isolane repl` at a terminal: lines that are edited, the history, completion.
//!
//! The terminal is a pair of the system's: the program has one end, the test types and reads at the other. A test waits
//! for a text on the screen before it types on.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    process::Child,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::program::command;

/// The keys that a terminal sends.
const UP: &str = "\x1b[A";
const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

struct Screen {
    keys: File,
    /// Everything behind the last text that was waited for.
    shown: String,
    program: Child,
}

impl Screen {
    /// Starts the program, whose state folder is in that folder.
    fn open(folder: &TempDir) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keys).expect("a terminal");
        unlockpt(&keys).expect("a terminal");
        let name = ptsname(&keys, Vec::new()).expect("a terminal");
        let name = name.to_str().expect("a path");
        let end = OpenOptions::new().read(true).write(true).open(name).expect("a terminal");
        let copy = || end.try_clone().expect("a terminal");
        let mut command = command(&["repl"]);
        command
            .current_dir(folder.path())
            .env("TERM", "xterm")
            .env("XDG_STATE_HOME", folder.path());
        let program = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn();
        Self { keys: keys.into(), shown: String::new(), program: program.expect("it starts") }
    }

    fn type_keys(&mut self, keys: &[&str]) {
        self.keys.write_all(keys.concat().as_bytes()).expect("it reads");
    }

    /// Reads until the screen shows the text.
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 1024];
        while !self.shown.contains(text) {
            let count = self.keys.read(&mut bytes).unwrap_or_else(|error| {
                panic!("{error}; no {text:?} in {:?}", self.shown);
            });
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let end = self.shown.find(text).map_or(0, |at| at + text.len());
        self.shown.drain(..end);
    }

    /// The exit code, when the program has ended.
    fn ended(mut self) -> Option<i32> {
        // The system ends the input by an error, as nobody has the other end.
        let _ = self.keys.read_to_end(&mut Vec::new());
        self.program.wait().expect("it ends").code()
    }
}

#[test]
fn names_are_completed_and_lines_come_back_in_the_next_session() {
    let folder = TempDir::new().expect("a folder");
    let mut first = Screen::open(&folder);
    first.wait_for("> ");
    first.type_keys(&["const rowCount = 41", ENTER]);
    first.wait_for("\n");
    first.wait_for("> ");
    first.type_keys(&["rowC\t + 1", ENTER]);
    first.wait_for("42");
    first.wait_for("> ");
    first.type_keys(&[CTRL_D]);
    assert_eq!(first.ended(), Some(0));

    let history = folder.path().join("isolane/history");
    let mode = fs::metadata(&history).expect("a file").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}: others may not read the history");

    let mut second = Screen::open(&folder);
    second.wait_for("> ");
    second.type_keys(&[UP, UP, ENTER]);
    second.wait_for("const rowCount = 41");
    second.wait_for("\n");
    second.wait_for("> ");
    second.type_keys(&["rowC\t * 3", ENTER]);
    second.wait_for("123");
    second.wait_for("> ");
    second.type_keys(&[".na\t", ENTER]);
    second.wait_for("const rowCount: number");
    second.wait_for("> ");
    second.type_keys(&[CTRL_D]);
    assert_eq!(second.ended(), Some(0));
}

#[test]
fn ctrl_c_forgets_the_line_and_again_ends_the_program() {
    let folder = TempDir::new().expect("a folder");
    let mut screen = Screen::open(&folder);
    screen.wait_for("> ");
    screen.type_keys(&["const lost = 1", CTRL_C]);
    screen.wait_for("(Ctrl-C again ends the program)");
    screen.wait_for("> ");
    screen.type_keys(&["typeof lost", ENTER]);
    screen.wait_for("undefined");
    screen.wait_for("> ");
    screen.type_keys(&[CTRL_C]);
    screen.wait_for("(Ctrl-C again ends the program)");
    screen.wait_for("> ");
    screen.type_keys(&[CTRL_C]);
    assert_eq!(screen.ended(), Some(130));
}
