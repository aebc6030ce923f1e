//! Services that a signal kills, or that a full disk stops: what was confirmed is there.
//!
//! A child has the service; it says on stdout what it was told. The points of the kills are counted, not timed: after the
//! n-th process that was confirmed.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use futures::{executor::block_on, future::join_all};
use isolane_environment::{
    ExecutionExitState, ListQuery, NewProcess, ProcessService, ProcessServiceOptions, ProcessState,
};
use serde_json::json;
use tempfile::TempDir;

/// The variable with the file of a child's service.
const FILE: &str = "ISOLANE_CRASH_DATABASE";

fn options(file: &Path) -> ProcessServiceOptions {
    let database = Some(file.to_owned());
    ProcessServiceOptions {
        database,
        concurrency: 1_000,
        max_queued: 1_000_000,
        retain_count: 1_000_000,
        ..ProcessServiceOptions::default()
    }
}

fn child(name: &str, file: &Path) -> Command {
    let mut child = Command::new(env::current_exe().expect("this program"));
    child.args([name, "--exact", "--ignored", "--nocapture"]).env(FILE, file);
    child
}

/// Programs that tests start.
mod stage {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use isolane_environment::{
        Environment, EnvironmentBindings, EnvironmentError, ExecutionInput, ExecutionState,
        ProblemType,
    };

    use super::*;

    /// Prints its number. Each tenth execution never ends.
    struct Echo;

    #[async_trait]
    impl Environment for Echo {
        async fn execute(
            &self,
            input: ExecutionInput,
            bindings: EnvironmentBindings,
        ) -> Result<ExecutionExitState, EnvironmentError> {
            let eid = input.eid;
            let fail = |error: isolane::Error| EnvironmentError::new(error.message());
            bindings.set_state(eid, ExecutionState::Running).map_err(fail)?;
            bindings.stdout(eid, format!("out {eid}\n")).map_err(fail)?;
            let fields = [("n".to_owned(), json!(eid))].into_iter().collect();
            bindings.output(eid, fields).map_err(fail)?;
            if eid.is_multiple_of(10) {
                std::future::pending::<()>().await;
            }
            Ok(ExecutionExitState::Success)
        }

        async fn kill(&self, _: u64) -> Result<(), EnvironmentError> {
            Ok(())
        }
    }

    fn service(options: ProcessServiceOptions) -> ProcessService {
        let environment = Some(Arc::new(Echo) as Arc<dyn Environment>);
        ProcessService::new(ProcessServiceOptions { environment, ..options })
            .expect("valid options")
    }

    fn file() -> std::path::PathBuf {
        env::var_os(FILE).expect("the test names a file").into()
    }

    /// Creates processes, eight at once, until it is killed.
    #[test]
    #[ignore = "a process that other tests start"]
    fn creates() {
        let service = service(options(&file()));
        let one = async || {
            for number in 0.. {
                let code = format!("code {number}");
                let pid = service.create(NewProcess::new(&code)).await.expect("created").pid;
                let mut out = std::io::stdout().lock();
                writeln!(out, "confirmed {pid} {code}").expect("the test reads");
            }
        };
        block_on(join_all((0..8).map(|_| one())));
    }

    /// Creates processes until the disk takes no more.
    #[test]
    #[ignore = "a process that other tests start"]
    fn fills() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lines);
        let log = Arc::new(move |line: &str| log.lock().expect("no panic").push(line.to_owned()));
        let service = service(ProcessServiceOptions { log: Some(log), ..options(&file()) });
        block_on(async {
            let code = "x".repeat(4096);
            let mut count = 0;
            let error = loop {
                match service.create(NewProcess::new(&code)).await {
                    Ok(_) => count += 1,
                    Err(error) => break error,
                }
                assert!(count < 100_000, "the limit of the file counts");
            };
            assert_eq!(error.code, ProblemType::Internal, "{error}");
            assert!(error.message.contains("cannot be written"), "{error}");
            assert!(
                lines.lock().expect("no panic").iter().any(|line| line.contains("stays in memory"))
            );
            // All that was confirmed can be read, and the service ends.
            for pid in 1..=count {
                assert_eq!(service.code(pid).await.map(|code| code.len()), Ok(4096), "{pid}");
            }
            service.shutdown().await;
            println!("confirmed {count}");
        });
    }
}

/// Kills a service right after its n-th confirmed process, and looks into the file.
fn kill_after(count: usize) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("processes.db");
    let mut service =
        child("crash::stage::creates", &file).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut confirmed = Vec::new();
    let stdout = BufReader::new(service.stdout.take().expect("piped"));
    for line in stdout.lines() {
        let line = line.expect("UTF-8");
        // The first line of the test program has no end.
        let Some(at) = line.find("confirmed ") else { continue };
        let (pid, code) = line[at + 10..].split_once(' ').expect("two words");
        confirmed.push((pid.parse::<u64>().expect("a pid"), code.to_owned()));
        if confirmed.len() == count {
            // With SIGKILL. The confirmations that have come meanwhile are read to the end.
            service.kill().expect("it runs");
        }
    }
    service.wait().expect("it ends");
    assert!(confirmed.len() >= count, "it was killed too early");
    block_on(look(&file, &confirmed));
}

async fn look(file: &Path, confirmed: &[(u64, String)]) {
    let service = ProcessService::new(options(file)).expect("a database");
    for (pid, code) in confirmed {
        let pid = *pid;
        assert_eq!(service.code(pid).await.as_ref(), Ok(code));
        let record = service.get(pid).await.expect("confirmed");
        assert_eq!(record.state, ProcessState::Idle);
        let mut last = None;
        let mut events = service.events(pid, 0).await.expect("known").expect("events");
        while let Some(event) = events.next().await.expect("not behind") {
            // A process that ran at the kill may have told more than was saved, up to so many events.
            let left_out = event.id - last.map_or(0, |last: u64| last) - 1;
            let is_end = record.exit_state == Some(ExecutionExitState::Failed);
            assert!(left_out == 0 || is_end && left_out == 1 << 20, "{left_out}");
            last = Some(event.id);
        }
        match record.exit_state {
            Some(ExecutionExitState::Success) => {
                assert_eq!(service.stdout(pid).await, Ok(format!("out {pid}\n")));
                assert_eq!(
                    record.output.and_then(|output| output.get("n").cloned()),
                    Some(json!(pid))
                );
                assert!(!pid.is_multiple_of(10));
            }
            Some(ExecutionExitState::Failed) => {
                let error = record.error.unwrap_or_default();
                let was = error.strip_prefix("the service ended while this process was ");
                assert!(matches!(was, Some("running" | "queued")), "{error}");
            }
            other => panic!("process {pid} is {other:?}"),
        }
    }
    let list = service.list(ListQuery::default()).await.expect("valid");
    let newest = list.items.first().map_or(0, |record| record.pid);
    assert!(confirmed.iter().all(|(pid, _)| *pid <= newest));
    let new = NewProcess { autorun: false, ..NewProcess::new("") };
    assert!(service.create(new).await.expect("created").pid > newest);
    service.shutdown().await;
}

#[test]
fn what_was_confirmed_outlives_a_kill() {
    for count in [1, 2, 3, 5, 9, 20, 50, 100, 250, 600] {
        kill_after(count);
    }
}

#[test]
#[ignore = "a campaign"]
fn what_was_confirmed_outlives_a_hundred_kills() {
    for number in 0..100 {
        kill_after(1 + number * 37 % 1000);
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_confirmed_is_lost() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("processes.db");
    let program = child("crash::stage::fills", &file);
    // A limit of 1 MiB for each file; the signal of the limit is ignored, so that writes fail.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh"]);
    limited.arg(program.get_program()).args(program.get_args()).env(FILE, &file);
    let output = limited.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let count = text.split("confirmed ").nth(1).and_then(|rest| rest.lines().next());
    let count: u64 = count.and_then(|count| count.parse().ok()).expect("a count");
    block_on(async {
        let service = ProcessService::new(options(&file)).expect("a database");
        for pid in 1..=count {
            assert_eq!(service.code(pid).await.map(|code| code.len()), Ok(4096), "{pid}");
        }
        service.shutdown().await;
    });
}
