//! Runs in processes of their own, as their host sees them.

mod connection;
mod driver;
mod host_polling;
mod large_frames;
mod ledger;
pub(crate) mod readiness;
mod run;
mod timer;
mod worker_socket;
mod workers;

pub(crate) use workers::{Keeper, Workers};
