//! A program in confinement: an interpreter that is started with what it needs, and no more.
//!
//! In: a [`Program`], its standard streams. Out: its process, in namespaces of its own, with a root of its own, under a
//! filter of calls and limits; and an account of the confinement that the system granted.
//!
//! There are three processes. The *launcher* is `isolane-worker`, started with the words of [`words`]: a fresh process of
//! one thread, which may therefore do at leisure what would be forbidden between the fork and the start of a program in a
//! host of many threads; and it holds nothing of the host's memory. It enters the namespaces and forks *init*, process 1
//! of its namespace, which builds the root, gives up all rights and forks the *program*. The program withdraws from itself
//! what is left, reports what it got, waits for the host's word, and becomes the interpreter. When it ends, init kills
//! everybody else and ends with its exit code, and so does the launcher. When the launcher, init or the host ends first,
//! all of them end.
//!
//! `host` is the host's side of the socket between both, `spec` its messages, `launch` the three processes. `root` is
//! their file system, `permitted` their calls, `limits` and `group` their resources.

mod group;
mod host;
mod launch;
mod limits;
mod permitted;
mod root;
mod spec;

pub use self::{
    group::ControlGroup,
    host::{Connection, FIRST_INHERITED, MOST_INHERITED, NotStarted, Prepared},
    launch::{is_asked, main},
    spec::{Folders, Program, words},
};

#[cfg(test)]
pub(super) use self::permitted::{Granted, Memory, interpreter as rules};
