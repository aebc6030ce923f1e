//! The reasons why a run has no worker, and their messages.

use std::{io, path::Path, sync::Arc};

use isolane_confine::Ended;

use crate::data::cause::Cause;

/// The reason why a run has no worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It ended before the run did.
    Ended(Ended),
    /// It sent a frame that no worker of ours sends, and is being killed.
    Broken,
    /// It sent more than the run may hold, and is being killed.
    TooLarge,
    /// It would begin with a state that only workers of an earlier zygote can take.
    Orphaned,
    /// None can be started, in the system's words or ours.
    Unavailable { why: String, cause: Option<Cause> },
}

impl Lost {
    /// None can be started because of that error of the system.
    pub(crate) fn refused(why: String, error: io::Error) -> Self {
        Self::Unavailable { why, cause: Some(Cause::Error(Arc::new(error))) }
    }

    /// None can be started because the system refuses the program.
    pub(crate) fn not_started(program: &Path, error: io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; the file must be executable (chmod +x), on a file system without noexec"
            }
            // The file is there. Something else is not.
            io::ErrorKind::NotFound if program.exists() => {
                "; a worker needs /dev/null, and the dynamic loader of the system"
            }
            _ => "",
        };
        Self::refused(format!("{}: {error}{remedy}", program.display()), error)
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Unavailable { cause, .. } => cause.clone(),
            _ => None,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Self::Ended(Ended::Exited(code)) => format!("the worker exited with code {code}"),
            Self::Ended(Ended::Killed) => "the worker was killed".to_owned(),
            Self::Ended(Ended::Crashed(signal)) if cfg!(unix) => {
                format!("the worker crashed: it ended by signal {signal}")
            }
            Self::Ended(Ended::Crashed(exception)) => {
                format!("the worker crashed: it ended by exception {exception:#x}")
            }
            Self::Ended(Ended::ForbiddenCall) => {
                "the worker was killed for a system call that it may not make".to_owned()
            }
            Self::Ended(Ended::Memory | Ended::CpuTime) | Self::TooLarge => {
                "the worker exceeded its limits".to_owned()
            }
            Self::Broken => "the worker broke the protocol and was killed".to_owned(),
            Self::Orphaned => {
                "the process that starts workers ended, and the copy's state with it".to_owned()
            }
            Self::Unavailable { why, .. } => format!("no worker could be started: {why}"),
        }
    }
}
