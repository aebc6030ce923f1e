//! Runs on the threads of this process.

pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod stack;
pub(crate) mod watchdog;
