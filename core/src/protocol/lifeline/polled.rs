//! Lifelines of a system that leaves orphans running.
//!
//! A launcher leads a process group. Its zygote and its workers stay in it unless their confinement ends them in
//! another way. A process that sees that the launcher or its zygote is gone kills the whole group.

use std::{process::Child, time::Duration};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpgrp, getpid, getppid,
        kill_current_process_group, kill_process_group, waitid, waitpid,
    },
};

use crate::os::children::{self, Watch};

/// The process that forked this one.
pub(crate) struct Parent(Option<Pid>);

impl Parent {
    /// The interval at which a process checks whether its parent exists. Only the death of a killed parent needs it:
    /// one that ends otherwise closes its sockets or is waited for.
    pub(crate) const LOOK: Option<Duration> = Some(Duration::from_secs(1));

    /// Makes this process end with its parent, if it calls [`Parent::outlive`].
    pub(crate) fn to_die_with() -> Self {
        Self(getppid())
    }

    /// The parent of a process that checks by itself.
    pub(crate) fn of_confined() -> Self {
        Self(getppid())
    }

    pub(crate) fn is_gone(&self) -> bool {
        getppid() != self.0
    }

    /// Waits for the zygote or the parent to end, then ends all others and this process.
    pub(crate) fn outlive(&self, zygote: i32) {
        let watch = Watch::new();
        while is_there(zygote) {
            if self.is_gone() {
                children::kill(zygote);
                break;
            }
            watch.wait(None, Self::LOOK);
        }
        // The group of another process would be the host's group.
        if getpgrp() == getpid() {
            let _ = kill_current_process_group(Signal::KILL);
        }
    }
}

/// Whether that child has not ended. After that its number must not be killed.
fn is_there(child: i32) -> bool {
    let ended = waitpid(Pid::from_raw(child), WaitOptions::NOHANG);
    matches!(ended, Ok(None) | Err(Errno::INTR))
}

/// Whether a launcher has ended. Its host does not learn that if another process has the other end of its socket.
pub(crate) fn has_ended(launcher: &Child) -> bool {
    number(launcher).is_none_or(|process| !matches!(ended(process), Ok(None) | Err(Errno::INTR)))
}

/// Kills a launcher and all its descendants.
pub(crate) fn kill(launcher: &mut Child) {
    let Some(group) = number(launcher) else { return };
    // If someone else has waited for it, its number may belong to another process by now.
    if matches!(ended(group), Err(Errno::CHILD)) {
        return;
    }
    // A launcher that has just been started may not lead a group yet.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = launcher.kill();
}

fn number(launcher: &Child) -> Option<Pid> {
    i32::try_from(launcher.id()).ok().and_then(Pid::from_raw)
}

/// Whether a child has ended. It keeps its number until it is waited for.
fn ended(child: Pid) -> Result<Option<WaitIdStatus>, Errno> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), how)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        process::{Command, Stdio},
        sync::mpsc,
        thread,
    };

    use rustix::process::{kill_process, setsid};

    use super::*;
    use isolane_confine::exit;

    use crate::os::children::ForkSide;

    const SELF: &str = "protocol::lifeline::polled::tests::inside_of_the_tests";
    const CEILING: Duration = Duration::from_mins(2);

    /// Forks a process that never returns. Returns the number of the child.
    fn forked(body: impl FnOnce()) -> i32 {
        match children::fork().expect("a child") {
            ForkSide::Parent(child) => child,
            ForkSide::Child => {
                body();
                exit(0)
            }
        }
    }

    fn sleep() {
        thread::sleep(10 * CEILING);
    }

    #[test]
    #[ignore = "a process of its own, which the other tests start"]
    fn inside_of_the_tests() {
        let host = getpid().as_raw_nonzero();
        let launcher = forked(|| {
            let parent = Parent::to_die_with();
            setsid().expect("it leads no group yet");
            let launcher = getpid().as_raw_nonzero();
            let zygote = forked(|| {
                let parent = Parent::of_confined();
                let worker = forked(sleep);
                let zygote = getpid().as_raw_nonzero();
                let mut out = std::io::stdout();
                writeln!(out, "\n{host} {launcher} {zygote}").expect("the test reads");
                while !parent.is_gone() {
                    thread::sleep(Duration::from_millis(5));
                }
                children::kill(worker);
            });
            parent.outlive(zygote);
        });
        let _ = waitpid(Pid::from_raw(launcher), WaitOptions::empty());
    }

    /// Starts a host, its launcher, its zygote and a worker, kills the process at `place`, and waits until all of them
    /// are gone.
    fn all_end_with(place: usize) {
        let mut host = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", SELF, "--ignored", "--nocapture", "--test-threads", "1"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut out = BufReader::new(host.stdout.take().expect("it is piped"));
        let processes: Vec<i32> = loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).expect("text") > 0, "it ended");
            let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<_>, _>>();
            if let Some(numbers) = numbers.ok().filter(|numbers| numbers.len() == 3) {
                break numbers;
            }
        };
        let victim = Pid::from_raw(processes[place]).expect("a process");
        kill_process(victim, Signal::KILL).expect("it is there");
        let (tell, told) = mpsc::channel();
        // Each of these processes has the other end.
        thread::spawn(move || tell.send(out.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(told.recv_timeout(CEILING), Ok(true), "{place} of {processes:?}");
        host.wait().expect("a child");
    }

    #[test]
    fn all_end_with_their_host() {
        all_end_with(0);
    }

    #[test]
    fn all_end_with_their_launcher() {
        all_end_with(1);
    }

    #[test]
    fn all_end_with_their_zygote() {
        all_end_with(2);
    }
}
