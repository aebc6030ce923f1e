//! A server that is a program, with a group of its own.
//!
//! In: a command. Out: the ends of its pipes. Its standard error goes to a log, line by line. It gets the variables of the
//! configuration, and of ours only those that programs need to find their files: no token of ours.

use std::{io, time::Duration};

use isolane_child::{Piped, Pipes};
use isolane_environment::Log;
use tokio::{
    process::{ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use super::lines::{Fault, Messages, each_line};
use crate::config::{Reach, Server};

/// The variables of ours that a program gets, if the configuration has not others.
#[cfg(not(windows))]
const INHERITED: [&str; 13] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
#[cfg(windows)]
const INHERITED: [&str; 13] = [
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// A program that runs. Dropping it kills its group.
pub(super) struct Program {
    process: Piped,
    fault: Fault,
    /// Hands its standard error on.
    reading: JoinHandle<()>,
}

impl Program {
    /// Starts the program of a server.
    ///
    /// # Errors
    /// The system's, which names no value.
    pub(super) fn start(
        server: &Server,
        log: &Log,
    ) -> io::Result<(Self, (Messages<ChildStdout>, ChildStdin))> {
        let Reach::Program { command, args, env, cwd } = &server.reach else {
            return Err(io::Error::other("the server has an address"));
        };
        let mut command = Command::new(command);
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.args(args).env_clear().envs(inherited);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let (process, Pipes { stdin, stdout, stderr }) = Piped::start(command)?;
        let (log, name, hidden) = (log.clone(), server.name.clone(), server.hidden.clone());
        let reading = tokio::spawn(async move {
            each_line(stderr, |line| log(&format!("{name}: {}", hidden.hide(line)))).await;
        });
        let fault = Fault::default();
        let messages = Messages::new(stdout, fault.clone());
        Ok((Self { process, fault, reading }, (messages, stdin)))
    }

    /// Why it is of no use any more, if it said something wrong.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.get().cloned()
    }

    /// Waits so long for its end, and kills all of its group. Its last lines are handed on.
    pub(super) async fn end(mut self, grace: Duration) {
        self.process.end(grace).await;
        // A process outside of the group may hold the pipe open.
        if timeout(grace, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
    }
}
