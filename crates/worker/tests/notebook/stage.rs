//! A machine for a kernel that somebody has taken over: files, a listener, a variable.
//!
//! In: options of the kernel. Out: the outcome of each act of `acts.py`.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::PathBuf,
};

use isolane_notebook::{Isolation, Language, Notebook, PyOptions};
use serde_json::{Value as Json, json};

use crate::support::{open, python, run};

/// The acts.
const ACTS: &str = include_str!("acts.py");

/// Files and sockets of this machine.
pub(crate) struct Stage {
    _folder: tempfile::TempDir,
    pub(crate) shown: PathBuf,
    pub(crate) secret: PathBuf,
    pub(crate) socket: PathBuf,
    _local: UnixListener,
    pub(crate) listener: TcpListener,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = open_folder();
        let [shown, secret, socket] =
            ["shown/file", "hidden/file", "shown/socket"].map(|name| folder.path().join(name));
        for file in [&shown, &secret] {
            let parent = file.parent().expect("a folder");
            fs::create_dir(parent).expect("a folder");
            fs::set_permissions(parent, fs::Permissions::from_mode(0o777)).expect("its mode");
            fs::write(file, "text").expect("a file");
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).expect("its mode");
        }
        let local = UnixListener::bind(&socket).expect("a socket");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).expect("its mode");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { _folder: folder, shown, secret, socket, _local: local, listener }
    }

    /// Options that show the folder of the shown file.
    pub(crate) fn python(&self) -> PyOptions {
        let folder = self.shown.parent().expect("a folder").to_owned();
        PyOptions { readable: vec![folder], ..python() }
    }

    /// The outcome of these acts in a kernel.
    pub(crate) fn outcomes(&self, options: PyOptions, acts: &[&str]) -> BTreeMap<String, String> {
        let is_open = options.isolation == Isolation::None;
        let notebook = open(options);
        let port = self.listener.local_addr().expect("its address").port();
        let code = format!(
            "HOST, PORT, DESCRIPTORS = {}, {port}, {}\nSECRET, SHOWN, SOCKET = {}\n{ACTS}\noutcomes({})",
            std::process::id(),
            // A kernel with the rights of this process begins with as many of its own.
            if is_open { 0 } else { OWN_DESCRIPTORS },
            json!([self.secret, self.shown, self.socket]),
            json!(acts),
        );
        let told: Json = value(&notebook, &code);
        serde_json::from_value(told).expect("outcomes by name")
    }
}

/// The descriptors of a confined kernel: three streams, three of its own, those of its loop, and one to list them.
const OWN_DESCRIPTORS: usize = 10;

/// The last value of a cell, as JSON.
pub(crate) fn value(notebook: &Notebook, code: &str) -> Json {
    let result = run(notebook, &[(Language::Py, code)]);
    assert!(!result.is_error, "{}", result.text);
    serde_json::from_str(&result.text).expect(&result.text)
}

/// A folder that anybody may enter.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    folder
}
