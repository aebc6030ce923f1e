//! The executor on worker processes, as the host sees it.
//!
//! `workers` gives runs to workers, and `workers/sizing` decides how many there are. `run` is one run, from its call to
//! its end; `run/incoming` takes what its worker says, `ledger` what that makes the host hold, and `lost` says why a
//! run has no worker. `worker_socket` is the host's end of a worker's socket, `connection` reads from it, and
//! `large_frames` does so on another thread. `driver` is the thread that waits for all of them, unless a thread of the
//! host does (`host_polling`); `timer` says what is due. `zygote` starts the processes; `executor` is what the runtime
//! sees of all that. The other side is `worker/`; both speak `protocol/`.

mod connection;
mod driver;
mod executor;
mod host_polling;
mod large_frames;
mod ledger;
mod lost;
mod run;
mod timer;
mod worker_socket;
mod workers;
mod zygote;

pub(crate) use self::executor::Processes;
