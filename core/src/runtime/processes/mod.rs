//! Runs in processes of their own, as their host sees them.

mod connection;
mod driver;
mod host_polling;
mod large_frames;
mod ledger;
mod run;
mod timer;
mod worker_socket;
mod workers;
mod zygote;

pub(crate) use self::workers::{DropGuard, Workers};
