//! The executor of containers: with an engine that only writes down what it is told, and with Podman where there is one.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ContainerCodeExecutor, ExecFile,
    ExecutorError, ExecutorErrorKind, InvocationContext,
};
use tempfile::TempDir;

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

fn execute(
    executor: &ContainerCodeExecutor,
    input: CodeExecutionInput,
) -> Result<CodeExecutionResult, ExecutorError> {
    block_on(executor.execute_code(&InvocationContext::default(), input))
}

/// How many processes have that folder as their own.
fn processes_in(folder: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("/proc").map_while(Result::ok);
    let folders = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|path| path == Path::new(folder)).count()
}

/// Whether a process with that text in its command line is there.
fn is_there(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").map_while(Result::ok);
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

fn wait_until(happens: impl Fn() -> bool) {
    let started = Instant::now();
    while !happens() {
        assert!(started.elapsed() < CEILING, "it does not happen");
        std::thread::yield_now();
    }
}

/// Makes a program. Another process writes it: if this one had it open for writing, so would a process that another test
/// starts at this moment, and the system starts no program that somebody may write to.
fn program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = writer.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    assert!(writer.wait().expect("its end").success());
}

/// The time limits that a test tries in turn, until a program comes as far as it should on this machine.
fn limits() -> impl Iterator<Item = Duration> {
    [2, 10, 50, 150].map(Duration::from_secs).into_iter()
}

/// A program that notes its arguments in `log`, and then does what the script says.
struct FakeEngine {
    folder: TempDir,
}

impl FakeEngine {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let head = format!("#!/bin/sh\necho \"$*\" >> {}\n", log.display());
        let path = folder.path().join("engine");
        program(&path, &(head + script));
        Self { folder }
    }

    fn executor(&self) -> ContainerCodeExecutor {
        let engine = self.folder.path().join("engine");
        ContainerCodeExecutor::new("some/image").with_engine(engine.display().to_string())
    }

    /// Its calls, without the parts of names that are random.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let shown = |line: &str| {
            let words = line.split(' ').map(|word| match word.strip_prefix("isolane-exec-") {
                Some(uuid) if uuid.len() == 36 => "NAME",
                _ => word,
            });
            words.collect::<Vec<_>>().join(" ")
        };
        log.lines().map(shown).collect()
    }
}

const RUN: &str = "run --rm -i --network=none --read-only --tmpfs=/tmp:rw,exec,size=64m --memory=256m \
                   --memory-swap=256m --cpus=1.0 --pids-limit=128 --user=65534:65534 --cap-drop=ALL \
                   --security-opt=no-new-privileges --name NAME";

#[test]
fn the_arguments_are_the_policy() {
    let executor = ContainerCodeExecutor::default();
    let expected = format!("{RUN} python:3.12-slim python3 -");
    assert_eq!(executor.build_run_args("NAME").join(" "), expected);
    let staged = executor.build_run_args_staged("NAME", Path::new("/tmp/f"));
    let mount = "--mount=type=bind,source=/tmp/f,target=/work --workdir=/work";
    assert_eq!(staged.join(" "), format!("{RUN} {mount} python:3.12-slim python3 -"));
    let mut loose = ContainerCodeExecutor::new("i")
        .with_memory("1g")
        .with_cpus("0.5")
        .with_pids_limit(32)
        .with_user("1:2")
        .with_extra_args(["--env", "A=b"])
        .with_argv(["sh"]);
    loose.drop_capabilities = false;
    let expected = "run --rm -i --network=none --read-only --tmpfs=/tmp:rw,exec,size=64m --memory=1g \
                    --memory-swap=1g --cpus=0.5 --pids-limit=32 --user=1:2 --name NAME \
                    --mount=type=bind,source=/f,target=/work --workdir=/work --env A=b i sh";
    assert_eq!(loose.build_run_args_staged("NAME", Path::new("/f")).join(" "), expected);
}

#[test]
fn a_folder_of_any_name_is_one_field_of_the_mount() {
    let executor = ContainerCodeExecutor::default();
    let args = executor.build_run_args_staged("NAME", Path::new("/tmp/a,b \"c\""));
    let expected = "--mount=type=bind,\"source=/tmp/a,b \"\"c\"\"\",target=/work";
    assert!(args.iter().any(|arg| arg == expected), "{args:?}");
}

#[test]
fn a_comma_in_the_folder_for_temporary_files_is_in_nobodys_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let temporary = folder.path().join("a,b");
    fs::create_dir(&temporary).expect("a folder");
    let output = Command::new(std::env::current_exe().expect("its own path"))
        .args(["--exact", "container::folder_with_a_comma"])
        .env("TMPDIR", &temporary)
        .output()
        .expect("it starts");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}

/// Runs in a host of its own, where that folder is such a one.
#[test]
fn folder_with_a_comma() {
    // As engines read it.
    let read = "import csv, sys\nargs = [arg[8:] for arg in sys.argv if arg.startswith(\"--mount=\")]\n\
                fields = dict(field.split(\"=\", 1) for field in next(csv.reader(args)))\n\
                print(open(fields[\"source\"] + \"/in.txt\").read())";
    let engine = FakeEngine::new(&format!("case $1 in run) python3 -c '{read}' \"$@\";; esac"));
    let file = ExecFile { name: "in.txt".into(), content: b"data".to_vec(), mime_type: None };
    let input = CodeExecutionInput { input_files: vec![file], ..Default::default() };
    let result = execute(&engine.executor(), input).expect("it starts");
    assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("data\n", ""));
}

#[test]
fn the_image_is_looked_for_once_and_pulled_if_it_is_missing() {
    let engine = FakeEngine::new("case $1 in image) exit 1;; run) cat; exit 3;; esac");
    let executor = engine.executor();
    for _ in 0..2 {
        let result = execute(&executor, CodeExecutionInput::new("some code")).expect("it starts");
        assert_eq!((result.stdout.as_str(), result.exit_code), ("some code", Some(3)));
    }
    let run = format!("{RUN} some/image python3 -");
    let expected = ["--version", "image inspect some/image", "pull some/image", &run, &run];
    assert_eq!(engine.calls(), expected);
    block_on(executor.prepare()).expect("it is ready");
    assert_eq!(engine.calls().len(), expected.len());
}

#[test]
fn a_pull_that_fails_is_told_and_tried_again() {
    let engine =
        FakeEngine::new("case $1 in image) exit 1;; pull) echo 'no such image' >&2; exit 1;; esac");
    let executor = engine.executor();
    for _ in 0..2 {
        let error = block_on(executor.prepare()).expect_err("no image");
        assert_eq!(error.kind(), ExecutorErrorKind::EngineFailed);
        assert_eq!(error.message(), "cannot pull \"some/image\": no such image");
    }
    assert_eq!(engine.calls().iter().filter(|call| call.starts_with("pull")).count(), 2);
}

#[test]
fn the_engines_own_exit_code_is_an_error() {
    let engine = FakeEngine::new("case $1 in run) echo 'bad mount' >&2; exit 125;; esac");
    let error = execute(&engine.executor(), CodeExecutionInput::default()).expect_err("it failed");
    assert_eq!((error.kind(), error.message()), (ExecutorErrorKind::EngineFailed, "bad mount"));
    assert!(error.kind().is_retried());
}

#[test]
fn a_container_that_takes_too_long_is_killed_by_its_name() {
    for limit in limits() {
        let engine = FakeEngine::new("case $1 in run) echo begun; sleep 4401;; esac");
        let executor = engine.executor().with_timeout(limit);
        let result = execute(&executor, CodeExecutionInput::default()).expect("it starts");
        if result.stdout.is_empty() {
            continue;
        }
        assert_eq!((result.stdout.as_str(), result.exit_code), ("begun\n", None));
        let told = format!("container execution timed out after {}s\n", limit.as_secs());
        assert_eq!(result.stderr, told);
        assert_eq!(engine.calls()[3..], ["kill NAME", "rm -f NAME"]);
        return;
    }
    panic!("it never begins");
}

#[test]
fn a_cancelled_container_is_killed_by_its_name() {
    let engine = FakeEngine::new("case $1 in run) echo begun; sleep 4402;; esac");
    let context = InvocationContext::default();
    let token = context.cancellation.clone();
    let context = context.with_stdout(move |_| token.cancel());
    let executor = engine.executor();
    let error = block_on(executor.execute_code(&context, CodeExecutionInput::default()))
        .expect_err("cancelled");
    assert_eq!(error.kind(), ExecutorErrorKind::Cancelled);
    assert_eq!(engine.calls()[3..], ["kill NAME", "rm -f NAME"]);
}

#[test]
fn options_that_change_are_looked_for_anew() {
    let engine = FakeEngine::new("case $1 in image) exit 1;; esac");
    let executor = engine.executor();
    block_on(executor.prepare()).expect("it is ready");
    let mut other = executor.clone();
    other.image = "other/image".to_owned();
    block_on(other.prepare()).expect("it is ready");
    let pulls: Vec<_> =
        engine.calls().into_iter().filter(|call| call.starts_with("pull")).collect();
    assert_eq!(pulls, ["pull some/image", "pull other/image"]);
    other.engine = Some("no-such-engine".to_owned());
    let error = block_on(other.prepare()).expect_err("no engine");
    assert_eq!(error.kind(), ExecutorErrorKind::EngineMissing);
}

#[test]
fn a_preparation_that_is_dropped_ends() {
    let engine = FakeEngine::new("case $1 in image) exit 1;; pull) exec sleep 4403;; esac");
    let executor = engine.executor();
    let mut preparation = Box::pin(executor.prepare());
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(preparation.as_mut().poll(&mut task).is_pending());
    wait_until(|| is_there("sleep\u{0}4403"));
    drop(preparation);
    wait_until(|| !is_there("sleep\u{0}4403"));
}

#[test]
fn of_a_long_message_the_beginning_is_told() {
    let engine = FakeEngine::new(
        "case $1 in image) exit 1;; pull) yes | head -c 9000000; yes | head -c 9000000 >&2; exit 1;; esac",
    );
    let error = execute(&engine.executor(), CodeExecutionInput::default()).expect_err("it failed");
    assert_eq!(error.kind(), ExecutorErrorKind::EngineFailed);
    let told = format!("cannot pull \"some/image\": {}", "y\n".repeat(2048));
    assert_eq!(error.message(), told.trim_end());
}

#[test]
fn an_engine_that_says_nothing_has_a_message() {
    let engine = FakeEngine::new("case $1 in run) exit 125;; esac");
    let error = execute(&engine.executor(), CodeExecutionInput::default()).expect_err("it failed");
    assert_eq!(error.kind(), ExecutorErrorKind::EngineFailed);
    let path = engine.folder.path().join("engine");
    assert_eq!(error.message(), format!("{path:?} failed without a message"));
}

#[test]
fn a_container_that_is_still_being_made_is_killed_when_it_is_there() {
    // There is no container before the third attempt, and its command line is not killed while it makes one.
    let script = "case $1 in run) sleep 4404 & echo begun; wait;; kill)\n\
                  ps=$(pgrep -fx 'sleep 4404') && [ -n \"$ps\" ] || touch \"$0.early\"\n\
                  [ $(grep -c ^kill \"$(dirname $0)/log\") -gt 2 ];; esac";
    for limit in limits() {
        let engine = FakeEngine::new(script);
        let executor = engine.executor().with_timeout(limit);
        let result = execute(&executor, CodeExecutionInput::default()).expect("it starts");
        if result.stdout.is_empty() {
            continue;
        }
        let told = format!("container execution timed out after {}s\n", limit.as_secs());
        assert_eq!(result.stderr, told);
        assert_eq!(engine.calls()[3..], ["kill NAME", "kill NAME", "kill NAME", "rm -f NAME"]);
        assert!(!engine.folder.path().join("engine.early").exists());
        return;
    }
    panic!("it never begins");
}

#[test]
fn a_container_does_not_outlive_its_command_line() {
    let engine = FakeEngine::new("case $1 in run) echo begun; kill -SEGV $$;; esac");
    let result = execute(&engine.executor(), CodeExecutionInput::default()).expect("it starts");
    assert_eq!((result.stdout.as_str(), result.exit_code), ("begun\n", Some(139)));
    assert_eq!(engine.calls()[3..], ["kill NAME", "rm -f NAME"]);
}

#[test]
fn a_container_does_not_outlive_a_receiver_that_panics() {
    let engine = FakeEngine::new("case $1 in run) echo begun; sleep 4405;; esac");
    let context = InvocationContext::default().with_stdout(|_| panic!("on purpose"));
    let executor = engine.executor();
    let error = block_on(executor.execute_code(&context, CodeExecutionInput::default()))
        .expect_err("it panicked");
    assert_eq!(error.kind(), ExecutorErrorKind::Other);
    wait_until(|| engine.calls().ends_with(&["kill NAME".to_owned(), "rm -f NAME".to_owned()]));
}

/// The part of a script that sets `folder` to the working folder.
const FOLDER: &str = "folder=$(echo \"$*\" | sed -n 's/.*source=\\([^,]*\\),.*/\\1/p')";

#[test]
fn nobody_else_reaches_the_working_folder() {
    let script = format!(
        "{FOLDER}\ncase $1 in run) stat -c %a \"$folder\" \"$(dirname \"$folder\")\";; esac"
    );
    let engine = FakeEngine::new(&script);
    let executor = engine.executor().with_output_files();
    let result = execute(&executor, CodeExecutionInput::default()).expect("it starts");
    assert_eq!(result.stdout, "777\n700\n");
}

/// A fake container that leaves a file which its caller may not delete, and a cleaner that does what the script says. `None`,
/// and a sentence, where there are no such files.
fn immutable(cleaner: &str) -> Option<(FakeEngine, CodeExecutionResult)> {
    let engine = FakeEngine::new(&format!(
        "{FOLDER}\ncase \"$*\" in *--entrypoint=sh*) {cleaner};;\n\
         run*) echo $folder; echo x > $folder/kept; chattr +i $folder/kept;; esac"
    ));
    let executor = engine.executor().with_output_files();
    let result = execute(&executor, CodeExecutionInput::default()).expect("it starts");
    if result.stderr.contains("chattr") {
        println!("skipped: no file of this folder can be made immutable");
        return None;
    }
    assert_eq!(result.output_files.len(), 1, "{result:?}");
    Some((engine, result))
}

#[test]
fn one_more_container_deletes_what_the_caller_may_not() {
    let cleaner = "chattr -i $folder/kept; rm $folder/kept";
    let Some((engine, result)) = immutable(cleaner) else { return };
    assert_eq!((result.stderr.as_str(), result.exit_code), ("", Some(0)));
    assert!(!Path::new(result.stdout.trim_end()).exists(), "{} is left", result.stdout);
    let end = " --entrypoint=sh some/image -c chmod -R u+rwx /work; rm -rf /work";
    assert!(engine.calls()[3].ends_with(end), "{:?}", engine.calls());
}

#[test]
fn a_folder_that_nobody_can_delete_is_named() {
    let Some((_engine, result)) = immutable("false") else { return };
    let folder = Path::new(result.stdout.trim_end());
    let undone = Command::new("chattr").arg("-i").arg(folder.join("kept")).status();
    assert!(undone.expect("chattr").success());
    fs::remove_dir_all(folder.parent().expect("its parent")).expect("it can be removed");
    let line = format!("isolane: the working folder '{}' could not be removed\n", folder.display());
    assert_eq!((result.stderr.as_str(), result.exit_code), (line.as_str(), Some(0)));
}

#[test]
fn engines_that_are_not_there_are_told() {
    let executor = ContainerCodeExecutor::default().with_engine("no-such-engine");
    let error = execute(&executor, CodeExecutionInput::default()).expect_err("no engine");
    assert_eq!(error.kind(), ExecutorErrorKind::EngineMissing);
    assert_eq!(error.message(), "there is no container engine \"no-such-engine\"");
}

#[test]
fn bad_options_are_refused() {
    let make = ContainerCodeExecutor::default;
    let refused = [
        ContainerCodeExecutor::new(""),
        ContainerCodeExecutor::new("--privileged"),
        make().with_timeout(Duration::ZERO),
        make().with_memory("0m"),
        make().with_memory("much"),
        make().with_memory("-1m"),
        make().with_memory("0.5"),
        make().with_memory("0.1b"),
        make().with_memory("0.0009k"),
        make().with_memory("1.m"),
        make().with_memory("9223372036854775808"),
        make().with_user(""),
        make().with_user("1\0"),
        make().with_argv(["sh", "\0"]),
        make().with_extra_args(["--env=\0"]),
        make().with_engine("pod\0man"),
        ContainerCodeExecutor::new("im\0age"),
        make().with_cpus("0"),
        make().with_cpus("0.001"),
        make().with_cpus("inf"),
        make().with_pids_limit(0),
        make().with_engine(""),
    ];
    for executor in refused {
        let error = execute(&executor, CodeExecutionInput::default()).expect_err("misuse");
        assert_eq!(error.kind(), ExecutorErrorKind::BadInput, "{executor:?}");
    }
}

/// Podman with an image of this test: BusyBox alone. The wrapper has what this kind of machine needs to run it.
struct Podman {
    folder: TempDir,
    engine: String,
}

const IMAGE: &str = "localhost/isolane-test:1";

/// `None`, and a sentence, where there is no engine.
fn podman() -> Option<&'static Podman> {
    static PODMAN: OnceLock<Option<Podman>> = OnceLock::new();
    let podman = PODMAN.get_or_init(make_podman);
    if podman.is_none() {
        println!("skipped: there is no podman, runc and static busybox that can run a container");
    }
    podman.as_ref()
}

fn make_podman() -> Option<Podman> {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    for inner in ["bin", "tmp", "etc", "proc", "sys", "dev", "work"] {
        fs::create_dir_all(root.join(inner)).expect("a folder");
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).expect("its mode");
    fs::copy("/bin/busybox", root.join("bin/busybox")).ok()?;
    for name in [
        "sh", "cat", "echo", "id", "sleep", "touch", "ls", "head", "mkdir", "rm", "chmod", "yes",
        "dd", "kill",
    ] {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).expect("a link");
    }
    // The wrapper: a runtime that takes both kinds of control groups, and limits that need no privilege. The monitor of
    // containers leaves a file in its folder when one has no memory left.
    let engine = folder.path().join("podman");
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nif [ \"$1\" = run ]; then shift\n  exec podman --runtime runc run --ulimit nofile=1024:1024 \
                  --ulimit nproc=256:256 --log-driver=none \"$@\"\nfi\nexec podman --runtime runc \"$@\"\n";
    program(&engine, script);
    let archive = Command::new("tar")
        .arg("-C")
        .arg(&root)
        .args(["-c", "."])
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let import = Command::new("podman")
        .args(["import", "-", IMAGE])
        .stdin(archive.stdout.expect("its output"))
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status();
    if !import.ok()?.success() {
        return None;
    }
    let tried = Command::new(&engine)
        .args(["run", "--rm", "--network=none", IMAGE, "echo", "ready"])
        .output()
        .ok()?;
    let engine = engine.display().to_string();
    (tried.stdout == b"ready\n").then_some(Podman { folder, engine })
}

impl Podman {
    fn shell(&self) -> ContainerCodeExecutor {
        ContainerCodeExecutor::new(IMAGE)
            .with_engine(&self.engine)
            .with_argv(["sh", "-s"])
            .with_timeout(CEILING)
    }

    /// The names of this library's containers that are there.
    fn containers(&self) -> String {
        let list = ["ps", "-a", "--filter", "name=isolane-exec-", "--format", "{{.Names}}"];
        let output = Command::new(&self.engine).args(list).output().expect("a list");
        String::from_utf8(output.stdout).expect("names")
    }
}

#[test]
fn a_container_is_locked_down() {
    let Some(podman) = podman() else { return };
    let code = "id -u; cat /proc/self/status | while read a b; do case $a in CapEff:|NoNewPrivs:|Seccomp:) echo $a $b;; esac; done\n\
                ls /sys/class/net; touch /x; touch /tmp/x && echo tmp; exit 4";
    let result = execute(&podman.shell(), CodeExecutionInput::new(code)).expect("it starts");
    let expected = "65534\nCapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\nlo\ntmp\n";
    assert_eq!((result.stdout.as_str(), result.exit_code), (expected, Some(4)));
    assert!(result.stderr.contains("Read-only file system"), "{}", result.stderr);
}

#[test]
fn limits_of_a_container_hold() {
    let Some(podman) = podman() else { return };
    let small = podman.shell().with_memory("32m");
    let bomb = "x=0123456789abcdef; while :; do x=$x$x; done";
    let result = execute(&small, CodeExecutionInput::new(bomb)).expect("it starts");
    assert_ne!(result.exit_code, Some(0), "{result:?}");
    let few = podman.shell().with_pids_limit(8);
    let forks = "n=0; while [ $n -lt 30 ]; do sleep 20 & n=$((n+1)); done; echo all";
    let result = execute(&few, CodeExecutionInput::new(forks)).expect("it starts");
    assert!(!result.stdout.contains("all"), "{result:?}");
}

#[test]
fn nothing_is_left_of_a_container_that_is_late_or_dropped() {
    let Some(podman) = podman() else { return };
    let code = "trap '' TERM INT; echo begun; sleep 300; sleep 300";
    let mut seen = limits().map(|limit| {
        let limited = podman.shell().with_timeout(limit);
        execute(&limited, CodeExecutionInput::new(code)).expect("it starts")
    });
    let result = seen.find(|result| !result.stdout.is_empty()).expect("it begins");
    assert_eq!((result.stdout.as_str(), result.exit_code), ("begun\n", None));
    let (sender, begun) = std::sync::mpsc::channel();
    let context =
        InvocationContext::default().with_stdout(move |_| sender.send(()).unwrap_or_default());
    let shell = podman.shell();
    let mut call = Box::pin(shell.execute_code(&context, CodeExecutionInput::new(code)));
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut task).is_pending());
    begun.recv_timeout(CEILING).expect("it has begun");
    drop(call);
    let started = Instant::now();
    while !podman.containers().is_empty() {
        assert!(started.elapsed() < CEILING, "left: {}", podman.containers());
    }
}

#[test]
fn nothing_is_left_of_a_container_that_is_dropped_while_it_is_made() {
    let Some(podman) = podman() else { return };
    let shell = podman.shell();
    block_on(shell.prepare()).expect("it is ready");
    for step in 0..16 {
        let context = InvocationContext::default();
        let input = CodeExecutionInput::new("sleep 4406");
        let mut call = Box::pin(shell.execute_code(&context, input));
        let mut task = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut task).is_pending());
        // Each is dropped at another moment of its start.
        std::thread::sleep(Duration::from_millis(step * 20));
        drop(call);
    }
    // Nor is a monitor of it, which has the folder of the engine as its own.
    let folder = podman.folder.path().display().to_string();
    wait_until(|| podman.containers().is_empty() && processes_in(&folder) == 0);
    wait_until(|| !is_there("sleep\u{0}4406"));
}

#[test]
fn files_go_into_a_container_and_out() {
    let Some(podman) = podman() else { return };
    let file = ExecFile { name: "in.txt".into(), content: b"data".to_vec(), mime_type: None };
    let input = CodeExecutionInput {
        code: "cat in.txt; echo more >> in.txt; mkdir -p deep/er; touch deep/er/x; chmod 0 deep; echo new > out.txt"
            .into(),
        input_files: vec![file],
        ..Default::default()
    };
    let result = execute(&podman.shell(), input).expect("it starts");
    assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("data", ""));
    let names: Vec<_> = result.output_files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["in.txt", "out.txt"]);
    assert_eq!(result.output_files[0].content, b"datamore\n");
}

#[test]
fn a_container_that_fills_its_folder_is_killed() {
    let Some(podman) = podman() else { return };
    let executor = podman.shell().with_output_files();
    let code =
        "echo begun; dd if=/dev/zero of=big bs=1048576 count=2000 2>/dev/null; echo end; sleep 300";
    let result = execute(&executor, CodeExecutionInput::new(code)).expect("it starts");
    assert_eq!(result.exit_code, Some(153));
    let line = "isolane: the working folder holds more than 268435456 bytes\n";
    assert!(result.stderr.ends_with(line), "{}", result.stderr);
}
