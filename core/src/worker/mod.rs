//! The same isolate in a process of its own.
//!
//! In: what a runtime gets, requests and hosts. Out: runs that live in workers. Only the transport is
//! different: `isolate/` is what computes there too, and what crosses are the messages of `value/`.
//!
//! The host's side: `workers` (who gets a worker, and when; `workers/supply`, how many there are), `run`
//! (one run, from its call to its end; `run/said`, what its worker says), `link` (its socket), `driver`
//! (the thread that listens), `connection` (what one worker says), `readiness` (which sockets it has to
//! look at), `attendance` (whether the host listens in the driver's place), `aside` (another thread, for
//! what is large) and `timer`. Between: `frame` (bytes), `protocol` (a run's messages), `control` (what
//! host and zygote say), `sockets`, `zygote` (where workers come from) and `kin` (who ends with whom). The
//! other side, a program of its own: `zygote/forks` (forks workers), `inherited` (what forks hand on),
//! `children`, `rehearsal`, `serve` (a worker), `embedder` (what its isolate sees of the host), `wire`, and
//! `confine`, which takes everything else from them.
//!
//! What systems do differently is in small files beside each other: those of Linux, others that are for every Unix,
//! and those of Windows. `--cfg isolane_portable` has Linux take those of every Unix, but for `confine`: for tests.

mod embedder;
#[cfg(target_os = "linux")]
mod inherited;
mod serve;
mod warm_up;
mod wire;
pub(crate) mod zygote;

pub use self::zygote::worker_main;
pub use isolane_confine::Allocator as WorkerAllocator;
