//! A worker that has a session, for as long as the session lives.
//!
//! In: the session, then one cell after another, updates and questions in between. Out: frames of each cell, and what
//! the cell did to the session. The isolate, its home and its checkpoints are the same as on threads. The worker ends
//! when the host closes the socket. Between cells it computes nothing.

mod interleave;

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use isolane_confine::{Worker, exit};

use self::interleave::Interleaved;
use super::{
    embedder::{About, RemoteEmbedder, Shared},
    outcomes::Outcomes,
    serve::compute,
    wire::{Heard, Wait, Wire},
};
use crate::{
    binding::inbound::Inbound,
    data::{
        cell::SessionState,
        portable::{Input, Output, Portable},
    },
    isolate::{
        Embedder, End, Home, Lease, Pool, Realm, Tenant,
        session::{CellSeat, Concluded, SessionIsolate, Work},
    },
    modules::cache::Cache,
    os::sync::Mutex,
    protocol::messages::{
        CellEnded, ToHost, ToWorker, WorkersEnd,
        session::{Cell, CellWork, Copied, Open, most_state_bytes, names_messages},
    },
    value::Kinds,
};

/// Serves a session until the host closes the socket.
pub(super) fn serve(
    open: Open,
    wire: &Arc<Mutex<Wire>>,
    worker: &Worker,
    pool: &Pool<Realm>,
    cache: &Arc<Cache>,
) {
    // As for a process of several runs, whose number is not known: the limits of the system could not be raised again.
    if !worker.limit(0, u64::MAX, Duration::MAX) {
        // This protection was announced: without it no cell may start.
        exit(1);
    }
    let (memory_limit, safety_cap) = (open.request.memory_limit(), open.safety_cap);
    let (interleaves, keeps_logs) = (open.request.interleave, open.request.keeps_logs);
    let memory_limit = usize::try_from(memory_limit).unwrap_or(usize::MAX);
    // Without memory for an isolate, or with a state that is none of its home, the worker ends, which the host notices.
    let lease = if open.request.extension.is_some() {
        pool.take_extended(memory_limit, false)
    } else {
        pool.take(memory_limit, false)
    };
    let Some(lease) = lease else { return };
    let Some(Begun { isolate, outcomes, inbox }) = begin(open, lease, cache) else { return };
    let mut session = Session {
        wire: Arc::clone(wire),
        isolate,
        memory_limit,
        keeps_logs,
        safety_cap,
        shared: Shared { outcomes: Arc::new(Mutex::new(outcomes)), ..Shared::default() },
        calls: VecDeque::new(),
    };
    for mut inbound in inbox {
        inbound.count(&session.shared.in_flight, usize::MAX);
        session.keep_for_later(vec![inbound]);
    }
    if interleaves {
        Interleaved::new(&mut session).tend();
    } else {
        session.tend();
    }
    // The process is about to end: it tidies nothing up.
    std::mem::forget(session);
}

/// The parts of a session that begins here.
struct Begun {
    isolate: Box<SessionIsolate>,
    outcomes: Outcomes,
    /// Messages that the sandbox was not handed where the session comes from.
    inbox: Vec<Inbound>,
}

/// Begins a session: a new one, or a copy with its state.
fn begin(open: Open, lease: Lease<Realm>, cache: &Arc<Cache>) -> Option<Begun> {
    let Open { request, updates, safety_cap: _, lost, state } = open;
    let Some(state) = state else {
        let tenant = Tenant::new(&Home::new(lease))?;
        let mut isolate = SessionIsolate::open(tenant, request, cache);
        isolate.number_after(lost);
        for update in updates {
            isolate.update(update);
        }
        return Some(Begun { isolate, outcomes: Outcomes::default(), inbox: Vec::new() });
    };
    let mut input = Input::new(&state);
    let (outcomes, inbox) = Portable::read(&mut input)?;
    let isolate = SessionIsolate::read(&mut input, lease, &request, cache)?;
    input.is_over().then_some(Begun { isolate, outcomes, inbox })
}

struct Session {
    wire: Arc<Mutex<Wire>>,
    isolate: Box<SessionIsolate>,
    memory_limit: usize,
    keeps_logs: bool,
    safety_cap: Duration,
    shared: Shared,
    /// Calls that came too late for the cell in which the host made them. The host gives each a cell of its own.
    calls: VecDeque<Inbound>,
}

impl Session {
    /// Does what the host asks for until it is gone.
    fn tend(&mut self) {
        loop {
            let Heard::Frame(frame) = self.wire.lock().hear(Wait::Ever) else { return };
            match ToWorker::from_frame(frame) {
                Ok(ToWorker::Cell(cell)) => {
                    if !self.run(*cell) {
                        return;
                    }
                }
                Ok(ToWorker::Update(update)) => self.isolate.update(*update),
                Ok(ToWorker::Names) => {
                    // The host tells the loss of the session.
                    let Some(names) = self.isolate.names() else { return };
                    let names = names_messages(names);
                    if !names.into_iter().all(|part| self.tell(part)) {
                        return;
                    }
                }
                Ok(ToWorker::Copy { repeated }) => {
                    if !self.tell(ToHost::Copied(self.copy(repeated))) {
                        return;
                    }
                }
                Ok(ToWorker::Inbound(inbound)) => self.receive(inbound),
                // These came too late for the cell that they are about.
                Ok(ToWorker::End { .. } | ToWorker::Answer { .. } | ToWorker::Verdict { .. }) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Keeps a message for the next cell.
    fn receive(&mut self, mut inbound: Inbound) {
        self.shared.taken.fetch_add(1, Ordering::Relaxed);
        // The next cell hits the limit if this is too much: it is counted all the same.
        inbound.count(&self.shared.in_flight, usize::MAX);
        self.keep_for_later(vec![inbound]);
    }

    fn keep_for_later(&mut self, messages: Vec<Inbound>) {
        for inbound in messages {
            if matches!(inbound, Inbound::FunctionCall { .. }) {
                self.calls.push_back(inbound);
            } else {
                self.shared.inbox.lock().push(inbound);
            }
        }
    }

    /// The messages for the next cell.
    fn take_inbox(&self) -> Vec<Inbound> {
        std::mem::take(&mut *self.shared.inbox.lock())
    }

    /// The state, for a worker in which a copy of the session begins. `repeated`: promises that are settled there, too.
    fn copy(&self, repeated: Vec<u32>) -> Copied {
        let inbox = self.shared.inbox.lock();
        let answered: Vec<u32> =
            inbox.iter().filter_map(Inbound::settles).chain(repeated).collect();
        let unanswered = self.isolate.unanswered(&answered);
        if unanswered > 0 {
            return Copied::Unanswered(u32::try_from(unanswered).unwrap_or(u32::MAX));
        }
        let mut out = Output::default();
        self.shared.outcomes.lock().write(&mut out);
        inbox.write(&mut out);
        match self.isolate.write(&mut out) {
            Some(()) if out.len() <= most_state_bytes(self.memory_limit) => {
                Copied::State(out.into_bytes())
            }
            _ => Copied::Impossible,
        }
    }

    /// Runs a cell to its end; false if the host is gone.
    fn run(&mut self, cell: Cell) -> bool {
        let Cell { number: _, work, report, validated_kinds } = cell;
        let about = self.about(report, validated_kinds);
        let embedder =
            Arc::new(RemoteEmbedder::of_cell(Arc::clone(&self.wire), &about, &self.shared));
        let Some(work) = self.work(work) else { return false };
        let seat = CellSeat {
            number: 0,
            embedder: Arc::clone(&embedder) as Arc<dyn Embedder>,
            termination: Arc::clone(&embedder.termination),
            report,
        };
        let turn = self.isolate.start(work, &seat, self.take_inbox());
        let mut end = compute(&mut *self.isolate, turn, &embedder);
        let peak_bytes = self.isolate.peak_bytes(0) as u64;
        let keep = matches!(end, WorkersEnd::End(End::Cell(_) | End::Failed(..)));
        let Concluded { state, again, is_untouched, .. } = self.isolate.conclude(0, keep);
        if keep && state != SessionState::Kept {
            // The cell came to its end, and what it did could not be kept.
            end = WorkersEnd::End(End::Broken);
        }
        let (left, handed) = embedder.left();
        {
            let mut outcomes = self.shared.outcomes.lock();
            match state {
                SessionState::Kept => outcomes.keep(0),
                SessionState::RolledBack => outcomes.undo(0, &[]),
                SessionState::Reset => outcomes.forget(),
            }
        }
        // The host has ended the calls of a cell that was undone.
        let is_no_call = |inbound: &Inbound| !matches!(inbound, Inbound::FunctionCall { .. });
        self.keep_for_later(again.into_iter().filter(is_no_call).collect());
        self.keep_for_later(left);
        let (number, undone) = (0, Vec::new());
        let ended = CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone };
        let is_told = self.tell(ToHost::CellEnded(Box::new(ended)));
        self.isolate.take_checkpoint();
        is_told
    }

    /// The settings of a cell.
    fn about(&self, report: bool, refusable: Kinds) -> About {
        let (memory_limit, safety_cap) = (self.memory_limit, self.safety_cap);
        About { memory_limit, report, keeps_logs: self.keeps_logs, refusable, safety_cap }
    }

    /// The work for the isolate; `None` if the worker has no such call, about which the host cannot be mistaken.
    fn work(&mut self, work: CellWork) -> Option<Work> {
        match work {
            CellWork::New(work) => Some(work),
            CellWork::Left { call } => match self.left(call)? {
                Inbound::FunctionCall { function, args, call } => {
                    Some(Work::Held { function, args, call })
                }
                _ => None,
            },
        }
    }

    /// Takes a call that came too late for its cell.
    fn left(&mut self, call: u32) -> Option<Inbound> {
        let is_it = |it: &Inbound| matches!(it, Inbound::FunctionCall { call: other, .. } if *other == call);
        let at = self.calls.iter().position(is_it)?;
        self.calls.remove(at)
    }

    fn tell(&self, told: ToHost) -> bool {
        self.wire.lock().tell(told.into_frame()).is_ok()
    }
}
