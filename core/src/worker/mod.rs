//! The program `isolane-worker`: isolates in processes of their own.
//!
//! In: messages of a host (`protocol/`). Out: runs, computed by the same `isolate/` as on threads. `zygote` starts the
//! program and, on Unix, forks workers. `serve` is one worker, from the first frame of a run to its last, and `session`
//! one that has a session. `embedder` is the host as an isolate there sees it, over `wire`, the worker's end of its
//! socket; `outcomes` are those that a session has sent. `warm_up` runs a program of our
//! own before the first run of a host, and `inherited` makes forks inherit the pages of files. `isolane-confine` takes
//! everything else from these processes. The host's side is `runtime/processes/`.

mod embedder;
#[cfg(target_os = "linux")]
mod inherited;
mod outcomes;
mod serve;
mod session;
mod warm_up;
mod wire;
pub(crate) mod zygote;

pub use self::zygote::worker_main;
pub use isolane_confine::Allocator as WorkerAllocator;
