//! The executor on worker processes, as the host sees it.
//!
//! `workers` gives runs to workers, and `workers/sizing` decides how many there are. `run` is one run, from its call to
//! its end; `run/incoming` takes the frames of its worker, `ledger` counts the memory that these make the host hold,
//! `dealings` are all accounts with a worker, and `lost` has the reasons why a run has no worker. The cells of a session
//! are runs: `run/place` gives them the session's worker, which is `run/session_worker`, and `run/turns` has the turns of
//! those that interleave. `worker_socket` is the host's end of a worker's socket,
//! `connection` reads from it, and `large_frames` takes large frames on another thread. `driver` is the thread that
//! waits for all of them, unless a thread of the host does (`host_polling`); `timer` has its timers. `zygote` starts
//! the processes; `executor` is all of that as the runtime sees it. The other side is `worker/`; both speak
//! `protocol/`.

mod connection;
mod dealings;
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
