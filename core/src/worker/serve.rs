//! One worker: runs, one after another, each from its first frame to its last.
//!
//! In: the socket to the host, and a pool with a pristine isolate in it. Out: frames. The same path as
//! `run.rs` takes on a thread of a runtime: begin, let it go on for as long as it can, wait for the host,
//! end; on the one thread that there is, and without anybody else to look after it: who does not come
//! back from a builtin is killed.

use std::{os::unix::net::UnixStream, sync::Arc, time::Duration};

use super::{
    confine::Worker,
    protocol::{Begin, ToHost, ToWorker, WorkersEnd},
    seat::{About, Seat},
    wire::{Heard, Wait, Wire},
};
use crate::{
    begin::{Begun, begin},
    cache::Cache,
    isolate::{End, Isolate, Outside, Pool, Realm, Turn},
    sync::Mutex,
};

/// How long a run may be stalled.
const STALLED: Duration = Duration::from_secs(1);

/// Serves so many runs, or as many as the host has. What the last one left is not tidied up: the process
/// is about to end.
pub(super) fn serve(
    stream: UnixStream,
    worker: &Worker,
    pool: &Pool<Realm>,
    cache: &Arc<Cache>,
    runs: u32,
) {
    let wire = Arc::new(Mutex::new(Wire::new(stream)));
    for left in (0..runs).rev() {
        let heard = wire.lock().hear(Wait::Ever);
        let Heard::Frame(frame) = heard else { return };
        let Ok(ToWorker::Begin(begin)) = ToWorker::from_frame(frame) else { return };
        let isolate = run(*begin, &wire, worker, pool, cache);
        match isolate {
            Some(isolate) if left > 0 => pool.give_back(isolate.finish()),
            last => std::mem::forget(last),
        }
    }
}

/// Addresses beyond twice the limit: stacks that are only begun, and room between blocks. What is outside
/// of the engine's heap is counted against the run's limit too, so this is met only by what is not ours.
const BESIDE_BYTES: u64 = 512 << 20;

fn run(
    begun: Begin,
    wire: &Arc<Mutex<Wire>>,
    worker: &Worker,
    pool: &Pool<Realm>,
    cache: &Arc<Cache>,
) -> Option<Box<Isolate>> {
    let Begin { request, safety_cap, is_choosy } = begun;
    let memory_limit = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    let room_bytes = request.memory_limit().saturating_mul(2).saturating_add(BESIDE_BYTES);
    if !worker.limit(0, room_bytes, safety_cap) {
        // It was promised: without it nothing of the run may start.
        std::process::exit(1);
    }
    let about = About { memory_limit, report: request.report, is_choosy, safety_cap };
    let seat = Arc::new(Seat::new(Arc::clone(wire), &about));
    let outside: Arc<dyn Outside> = Arc::clone(&seat) as Arc<dyn Outside>;
    let (end, isolate) = match begin(request, cache, pool, outside, Arc::clone(&seat.ending)) {
        Begun::Over(end) => (WorkersEnd::End(end), None),
        Begun::Isolate(mut isolate) => (compute(&mut isolate, &seat), Some(isolate)),
    };
    let peak_bytes = isolate.as_ref().map(|isolate| isolate.peak_bytes() as u64);
    let ended = ToHost::Ended { end, peak_bytes };
    // A host that is gone hears nothing, and there is nobody else to tell.
    let _ = wire.lock().tell(ended.into_frame());
    isolate
}

/// Lets the isolate go on, turn by turn, to its end.
fn compute(isolate: &mut Isolate, seat: &Seat) -> WorkersEnd {
    let mut turn = isolate.start();
    loop {
        match turn {
            Turn::Ended(End::Asked) if seat.is_capped() => return WorkersEnd::Cap,
            Turn::Ended(end) => return WorkersEnd::End(end),
            Turn::Idle { waits_for_host } => {
                let mut inbox = seat.take_inbox();
                if inbox.is_empty() && !seat.ending.is_raised() {
                    let most = if waits_for_host { Wait::Ever } else { Wait::For(STALLED) };
                    if !seat.wait(most) {
                        return WorkersEnd::Stalled;
                    }
                    inbox = seat.take_inbox();
                }
                if seat.ending.is_raised() {
                    return WorkersEnd::End(End::Asked);
                }
                turn = isolate.turn(inbox);
            }
        }
    }
}
