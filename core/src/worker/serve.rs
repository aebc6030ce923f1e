//! One worker: runs, one after another, each from its first frame to its last.
//!
//! In: the socket to the host, and a pool with a pristine isolate in it. Out: frames. A run takes the same path as in
//! `runtime/threads/run/mod.rs`: prepare, run as far as possible, wait for the host, end. A worker has one thread and no
//! watchdog: the host kills a worker that does not return from a builtin.

use std::{sync::Arc, time::Duration};

use isolane_confine::{Worker, exit, room_bytes};

use super::{
    embedder::{About, RemoteEmbedder},
    session, warm_up,
    wire::{Heard, Wait, Wire},
};
use crate::{
    binding::inbound::Inbound,
    data::outcome::ExecutionError,
    isolate::{Embedder, End, Isolate, Pool, Realm, Turn, session::SessionIsolate},
    modules::{cache::Cache, request::Request},
    os::sync::Mutex,
    protocol::{
        messages::{Begin, ToHost, ToWorker, WorkersEnd, session::Open},
        sockets::Stream,
    },
    runtime::prepare::{Prepared, prepare},
};

/// The longest time that a run may be stalled.
pub(super) const STALLED: Duration = Duration::from_secs(1);

/// Serves so many runs, or as many as the host has. Leaves the last one's memory as it is, because the process is about
/// to end.
pub(crate) fn serve(
    stream: Stream,
    worker: &Worker,
    pool: &Pool<Realm>,
    cache: &Arc<Cache>,
    runs: u32,
) {
    let wire = Arc::new(Mutex::new(Wire::new(stream)));
    if !wire.lock().has_more() {
        warm_up::warm_up(pool, cache);
    }
    for left in (0..runs).rev() {
        let prepare = match next(&wire) {
            Some(Task::Run(prepare)) => *prepare,
            Some(Task::Session(open)) => return session::serve(*open, &wire, worker, pool, cache),
            None => return,
        };
        let isolate = run(prepare, &wire, worker, pool, cache, (left + 1 == runs).then_some(runs));
        match isolate {
            Some(isolate) if left > 0 => pool.give_back(isolate.finish()),
            last => std::mem::forget(last),
        }
    }
}

/// Sets limits of the system behind the limits of so many runs, of which this is the first. They can only be lowered.
/// So a process of several runs has one for their CPU time together, and none for memory.
fn set_os_limits(
    worker: &Worker,
    pool: &Pool<Realm>,
    request: &Request,
    safety_cap: Duration,
    runs: u32,
) -> bool {
    if runs > 1 {
        return worker.limit(0, u64::MAX, safety_cap.saturating_mul(runs));
    }
    let limit = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    let given_back = pool.trim(limit);
    let room_bytes = room_bytes(request.memory_limit(), given_back > 0);
    worker.limit(given_back as u64, room_bytes, safety_cap)
}

/// The task of a worker.
enum Task {
    Run(Box<Begin>),
    /// It serves the session for as long as that lives.
    Session(Box<Open>),
}

/// The next task. Ignores late messages to the run before.
fn next(wire: &Mutex<Wire>) -> Option<Task> {
    loop {
        let Heard::Frame(frame) = wire.lock().hear(Wait::Ever) else { return None };
        match ToWorker::from_frame(frame) {
            Ok(ToWorker::Begin(prepare)) => return Some(Task::Run(prepare)),
            Ok(ToWorker::Open(open)) => return Some(Task::Session(open)),
            Ok(ToWorker::Inbound(_)) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

fn run(
    begun: Begin,
    wire: &Arc<Mutex<Wire>>,
    worker: &Worker,
    pool: &Pool<Realm>,
    cache: &Arc<Cache>,
    walls: Option<u32>,
) -> Option<Box<Isolate>> {
    let Begin { request, safety_cap, validated_kinds } = begun;
    let memory_limit = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    if !walls.is_none_or(|runs| set_os_limits(worker, pool, &request, safety_cap, runs)) {
        // This protection was announced: without it no run may start.
        exit(1);
    }
    let (report, refusable) = (request.report, validated_kinds);
    let keeps_logs = true;
    let about = About { memory_limit, report, keeps_logs, refusable, safety_cap };
    let embedder = Arc::new(RemoteEmbedder::new(Arc::clone(wire), &about));
    let isolates: Arc<dyn Embedder> = Arc::clone(&embedder) as Arc<dyn Embedder>;
    let (end, isolate) =
        match prepare(request, cache, pool, isolates, Arc::clone(&embedder.termination)) {
            Prepared::Over(end) => (WorkersEnd::End(end), None),
            Prepared::Isolate(mut isolate) => {
                let turn = isolate.start();
                (compute(&mut *isolate, turn, &embedder), Some(isolate))
            }
        };
    let peak_bytes = isolate.as_ref().map(|isolate| isolate.peak_bytes() as u64);
    let ended = ToHost::Ended { end, peak_bytes };
    // A host that is gone receives nothing, and there is no one else to report to.
    let _ = wire.lock().tell(ended.into_frame());
    isolate
}

/// An isolate that computes turn by turn.
pub(super) trait Turns {
    /// As [`Isolate::turn`].
    fn turn(&mut self, inbox: Vec<Inbound>) -> Turn;

    /// As [`Isolate::stalled`].
    fn stalled(&mut self) -> Box<ExecutionError>;

    /// As [`Isolate::asked`].
    fn asked(&mut self) -> End;
}

impl Turns for Isolate {
    fn turn(&mut self, inbox: Vec<Inbound>) -> Turn {
        self.turn(inbox)
    }

    fn stalled(&mut self) -> Box<ExecutionError> {
        Self::stalled(self)
    }

    fn asked(&mut self) -> End {
        Self::asked(self)
    }
}

impl Turns for SessionIsolate {
    fn turn(&mut self, inbox: Vec<Inbound>) -> Turn {
        self.turn(inbox)
    }

    fn stalled(&mut self) -> Box<ExecutionError> {
        self.stalled()
    }

    fn asked(&mut self) -> End {
        self.asked(0)
    }
}

/// Runs an isolate that has had its first turn to its end.
pub(super) fn compute(
    isolate: &mut dyn Turns,
    first: Turn,
    embedder: &RemoteEmbedder,
) -> WorkersEnd {
    let mut turn = first;
    loop {
        match turn {
            Turn::Ended(end) if end.is_asked() && embedder.is_capped() => return WorkersEnd::Cap,
            Turn::Ended(end) => return WorkersEnd::End(end),
            Turn::Idle { waits_for_host } => {
                let mut inbox = embedder.take_inbox();
                if inbox.is_empty() && !embedder.termination.is_raised() {
                    let most = if waits_for_host { Wait::Ever } else { Wait::For(STALLED) };
                    if !embedder.wait(most) {
                        return WorkersEnd::Stalled(isolate.stalled());
                    }
                    inbox = embedder.take_inbox();
                }
                if embedder.termination.is_raised() {
                    return WorkersEnd::End(isolate.asked());
                }
                turn = isolate.turn(inbox);
            }
        }
    }
}
