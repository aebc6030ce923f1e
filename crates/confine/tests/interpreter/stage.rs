//! A host of one program.
//!
//! In: a program and its input. Out: all that it printed, its exit code, its confinement, its working folder.

use isolane_confine::interpreter::{Connection, ControlGroup, Prepared, Program, words};
use std::{
    ffi::OsString,
    fs,
    io::{PipeWriter, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// How long init may take to end after its launcher.
const PATIENCE: Duration = Duration::from_mins(2);

/// A program's bounds, and what it may read.
pub(crate) struct Stage {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) shown: PathBuf,
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    pub(crate) cpu: Option<Duration>,
    pub(crate) group: Option<ControlGroup>,
}

/// A program that runs.
pub(crate) struct Running {
    pub(crate) launcher: Child,
    pub(crate) prepared: Prepared,
    pub(crate) lifeline: OwnedFd,
    pub(crate) input: PipeWriter,
    _group: Option<ControlGroup>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) prepared: Prepared,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            readable: Vec::new(),
            shown: PathBuf::new(),
            memory_bytes: 256 << 20,
            processes: 128,
            cpu: Some(Duration::from_secs(31)),
            group: None,
        }
    }

    /// One that shows the double.
    pub(crate) fn of(double: &Double) -> Self {
        let mut stage = Self::new();
        stage.show(double);
        stage
    }

    /// One in a control group, where the machine has one.
    pub(crate) fn in_group(memory_bytes: u64) -> Option<Self> {
        let group = ControlGroup::new(memory_bytes);
        if group.is_none() {
            println!("this machine delegates no control group");
        }
        Some(Self { memory_bytes, group: Some(group?), ..Self::new() })
    }

    pub(crate) fn show(&mut self, double: &Double) {
        self.readable.extend([double.path.clone(), double.shown.clone()]);
        self.shown.clone_from(&double.shown);
    }

    pub(crate) fn start(self, path: impl AsRef<Path>, args: &[&str]) -> Running {
        let (mut connection, socket) = Connection::new().expect("a connection");
        let mut variables: Vec<(OsString, OsString)> =
            [("PATH", "/usr/bin:/bin"), ("HOME", "/work"), ("TMPDIR", "/tmp")]
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec();
        variables.push(("SHOWN".into(), self.shown.into()));
        let program = Program {
            args: args.iter().map(OsString::from).collect(),
            env: variables,
            readable: self.readable,
            memory_bytes: self.memory_bytes,
            processes: self.processes,
            cpu: self.cpu,
            group: self.group.iter().map(ControlGroup::members).collect(),
            ..Program::new(path.as_ref().to_owned())
        };
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(words()).env_clear().env("SECRET", "of the host");
        command.stdin(socket).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A descriptor that a host has forgotten to close.
        let forgotten = fs::File::open("/").expect("a folder");
        rustix::io::fcntl_setfd(&forgotten, rustix::io::FdFlags::empty()).expect("inherited");
        let launcher = command.spawn().expect("a launcher");
        drop(command);
        let (stdin, input) = std::io::pipe().expect("a pipe");
        let prepared = connection.prepare(&program, stdin.as_fd(), &[]).expect("it is confined");
        drop(stdin);
        let lifeline = connection.start().expect("it starts");
        Running { launcher, prepared, lifeline, input, _group: self.group }
    }

    pub(crate) fn run(self, path: impl AsRef<Path>, args: &[&str], input: &str) -> Ended {
        self.start(path, args).end(input)
    }

    /// A program of Python.
    pub(crate) fn python(self, code: &str) -> Ended {
        self.run("/usr/bin/python3", &["-"], code)
    }
}

impl Running {
    pub(crate) fn end(self, input: &str) -> Ended {
        let Self { mut launcher, prepared, lifeline, input: mut writer, _group } = self;
        let input = input.to_owned();
        // A program that does not read it all is within its rights.
        let feeder = std::thread::spawn(move || drop(writer.write_all(input.as_bytes())));
        let mut stderr = launcher.stderr.take().expect("a pipe");
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).expect("its errors");
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut stdout = Vec::new();
        launcher.stdout.take().expect("a pipe").read_to_end(&mut stdout).expect("its output");
        let status = launcher.wait().expect("its end");
        feeder.join().expect("the feeder");
        drop(lifeline);
        assert!(prepared.wait(PATIENCE), "nobody is left");
        Ended {
            code: status.code(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: reader.join().expect("the reader"),
            prepared,
        }
    }
}

/// The double, compiled, with a file that it may read and one that it may not.
pub(crate) struct Double {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) shown: PathBuf,
    secret: String,
    host: String,
}

impl Double {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Nobody may enter it where root made it.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("its mode");
        let path = folder.path().join("double");
        // Nobody may not be allowed to read the folder of the project.
        let source = folder.path().join("double.c");
        fs::write(&source, include_str!("double.c")).expect("its source");
        let compiled = Command::new("cc").arg("-O1").arg("-o").arg(&path).arg(source).status();
        assert!(compiled.expect("a C compiler").success());
        let [shown, secret] = ["shown", "secret"].map(|name| folder.path().join(name));
        for file in [&shown, &secret] {
            fs::write(file, "text").expect("a file");
        }
        let secret = secret.to_str().expect("UTF-8").to_owned();
        Self { _folder: folder, path, shown, secret, host: std::process::id().to_string() }
    }

    /// Its arguments.
    pub(crate) fn words(&self) -> Vec<&str> {
        vec![&self.host, &self.secret]
    }

    /// Sets its set-user bit, if it is root's.
    pub(crate) fn give_to_root(&self) -> bool {
        let mode = fs::Permissions::from_mode(0o4755);
        is_root() && fs::set_permissions(&self.path, mode).is_ok()
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn in_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].into_iter().any(|mark| Path::new(mark).exists())
}

/// A command that nobody runs.
pub(crate) fn nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

/// Runs these tests as nobody, if this is root that may become so.
pub(crate) fn as_nobody_too(filter: Option<&str>) {
    let may_become = || nobody(Path::new("true")).status().is_ok_and(|status| status.success());
    if !is_root() || !may_become() {
        return;
    }
    // Nobody may not enter the folder of this program.
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    let copy = folder.path().join("tests");
    fs::copy(std::env::current_exe().expect("this program"), &copy).expect("a copy");
    println!("as nobody:");
    let status = nobody(&copy).args(filter).current_dir("/").status().expect("it runs");
    assert!(status.success());
}
