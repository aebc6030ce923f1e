//! The executor on threads of this process.
//!
//! `run` is one run, from its call to settlement; the cells of sessions are runs, and `run/place` has the isolate of a
//! session. `homes` has the memory in which sessions take turns; `scheduler` decides which run computes on which thread,
//! `watchdog` ends runs that nobody else can end, and `stack` gives each thread a stack of the size that the engine needs.
//! `seams` are the places where tests make a run panic. `resources` has everything that the runs of an executor share,
//! and `executor` is all of that as the runtime sees it.

mod executor;
pub(crate) mod homes;
pub(crate) mod resources;
pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod seams;
pub(crate) mod stack;
pub(crate) mod watchdog;

pub(crate) use self::executor::Threads;

#[cfg(all(test, target_os = "linux"))]
mod tests;
