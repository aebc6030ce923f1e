//! A process that outlives calls: started once, talked to through descriptors of its own, interrupted, killed.
//!
//! In: a command, and descriptors that the process inherits beside its three streams. Out: a handle that waits for the end
//! of the process and kills its group. The process ends with this one, however that happens.

use std::{io, os::fd::OwnedFd};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{process::Child, process::Command, time::timeout};

use crate::{
    run::{Ending, KILLED},
    unix::{Group, ending_of, exited, hand_over},
};

/// A process with a group of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Lasting {
    child: Child,
    group: Option<Group>,
}

impl Lasting {
    /// Starts a process that inherits these descriptors, under their numbers here. Call it on a thread that lives as long
    /// as the process should: Linux takes the end of that thread for the end of this process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(mut command: Command, inherited: Vec<OwnedFd>) -> io::Result<Self> {
        Group::prepare(&mut command);
        hand_over(&mut command, inherited);
        let child = command.spawn()?;
        // It holds the descriptors that the child alone is to have.
        drop(command);
        let group = Group::of(&child)?;
        Ok(Self { child, group: Some(group) })
    }

    /// Its number, until it was waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it has ended. Its number stays its own meanwhile.
    pub async fn exited(&mut self) {
        exited(&mut self.child).await;
    }

    /// Sends it `SIGINT`; its group gets nothing.
    pub fn interrupt(&self) {
        let pid = self.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            // A process that has ended needs no interruption.
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Kills all of its group.
    pub fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            group.kill();
        }
    }

    /// Kills all of its group, and says how the process ended: by itself, if it had.
    pub async fn end(mut self) -> Ending {
        self.kill();
        // A host may have the system reap its children, so that there is nothing to wait for.
        ending_of(timeout(KILLED, self.child.wait()).await.ok().and_then(Result::ok))
    }
}
