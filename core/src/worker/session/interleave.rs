//! The turns of cells that interleave, in a worker.
//!
//! In: cells, each with a number, and the host's messages. Out: frames of the cell whose turn it is. A cell that waits for
//! the host gives its turn away: to a cell for which a message has come, or a job waits in the engine. When there is
//! none, the worker parks, and the host may begin another cell. When the host asks for that, the worker parks as soon as
//! the cells that can resume by then have had their turns: a new cell need not wait until all others wait, nor do all
//! cells begin before one ends. The rules are those of `runtime/sessions/machine/isolate.rs`.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Session, Shared};
use crate::{
    binding::inbound::Inbound,
    data::{cell::SessionState, outcome::ExecutionError},
    isolate::{
        Embedder, End, Turn,
        session::{Addressee, CellSeat, Concluded},
    },
    protocol::messages::{
        CellEnded, ToHost, ToWorker, WorkersEnd,
        session::{Cell, names_messages},
    },
    worker::{
        embedder::{RemoteEmbedder, look_and_hear},
        serve::STALLED,
        wire::{Heard, Wait},
    },
};

/// The session is over: the host is gone, or sends what it may not.
struct Over;

/// A session whose cells interleave.
pub(super) struct Interleaved<'s> {
    session: &'s mut Session,
    /// The cells in flight, in the order in which they began.
    flights: Vec<Flight>,
    /// Those of them that can resume, in their order.
    called: VecDeque<u32>,
    /// How many messages it had taken when it told the host last that it parks.
    parked: Option<u64>,
    /// How many turns come before it parks, once the host has asked for that.
    turns_left: Option<usize>,
    /// How many turns in a row cells had because of their jobs in the engine, before those that were called.
    jobs_ahead: usize,
}

/// A cell that has begun and is not over.
struct Flight {
    number: u32,
    embedder: Arc<RemoteEmbedder>,
    inbox: Vec<Inbound>,
    /// When nothing could resume it any more, and its error.
    stalled: Option<(Instant, Box<ExecutionError>)>,
}

impl<'s> Interleaved<'s> {
    pub(super) fn new(session: &'s mut Session) -> Self {
        let (flights, called) = (Vec::new(), VecDeque::new());
        Self { session, flights, called, parked: None, turns_left: None, jobs_ahead: 0 }
    }

    /// Does what the host asks for until it is gone.
    pub(super) fn tend(&mut self) {
        while self.step().is_ok() {}
    }

    /// Takes what has come, and has one cell compute; or waits.
    fn step(&mut self) -> Result<(), Over> {
        loop {
            let later = self.shared().mail.later.lock().pop_front();
            if let Some(told) = later {
                self.act(told)?;
                continue;
            }
            let heard = self.session.wire.lock().hear(Wait::No);
            if !self.take(heard)? {
                break;
            }
        }
        self.end_asked()?;
        self.dispatch()?;
        if self.flights.is_empty() {
            self.forget_yield();
            let heard = self.session.wire.lock().hear(Wait::Ever);
            return self.take(heard).map(drop);
        }
        if self.yields() {
            return self.park(Wait::Ever);
        }
        self.call_wanted();
        if let Some(number) = self.called.pop_front() {
            return self.turn(number);
        }
        if self.session.isolate.can_resume() {
            self.flights.iter_mut().for_each(|flight| flight.stalled = None);
            return self.park(Wait::Ever);
        }
        // Each finds out that it is stalled, and where.
        let news = self.flights.iter().filter(|flight| flight.stalled.is_none());
        self.called.extend(news.map(|flight| flight.number));
        if self.called.is_empty() { self.park_stalled() } else { Ok(()) }
    }

    /// Calls the cell whose job waits in the engine before the others, unless the first of them has its turn.
    fn call_wanted(&mut self) {
        let wanted = self.session.isolate.wanted();
        let is_ahead = wanted.is_some() && self.jobs_ahead < self.flights.len();
        self.jobs_ahead = if is_ahead { self.jobs_ahead + 1 } else { 0 };
        if let Some(number) = wanted.filter(|_| is_ahead || self.called.is_empty()) {
            let number = self.place(number).map_or(self.last(), |_| number);
            self.called.retain(|other| *other != number);
            self.called.push_front(number);
        }
    }

    /// Whether the host waits for the worker to park, and those that could resume when it asked have had their turns.
    fn yields(&mut self) -> bool {
        let is_asked = self.shared().mail.yields.load(Ordering::Relaxed);
        is_asked && *self.turns_left.get_or_insert(self.called.len()) == 0
    }

    /// The host does not wait any more.
    fn forget_yield(&mut self) {
        self.shared().mail.yields.store(false, Ordering::Relaxed);
        self.turns_left = None;
    }

    /// Waits for the host, though nothing that it sends can resume a cell. Ends those that have waited for long enough.
    fn park_stalled(&mut self) -> Result<(), Over> {
        let since = self.flights.iter().filter_map(|flight| Some(flight.stalled.as_ref()?.0)).min();
        let left = since.map_or(Duration::ZERO, |since| STALLED.saturating_sub(since.elapsed()));
        if !left.is_zero() {
            return self.park(Wait::For(left));
        }
        let is_over =
            |flight: &Flight| flight.stalled.as_ref().is_some_and(|it| Some(it.0) == since);
        let over = self.flights.iter_mut().find(|flight| is_over(flight));
        match over.and_then(|flight| Some((flight.number, flight.stalled.take()?.1))) {
            Some((number, error)) => self.conclude(number, WorkersEnd::Stalled(error)),
            None => Ok(()),
        }
    }

    /// Tells the host that no code runs, and waits for the next frame.
    fn park(&mut self, most: Wait) -> Result<(), Over> {
        let taken = self.shared().taken.load(Ordering::Relaxed);
        if self.parked != Some(taken) {
            self.parked = Some(taken);
            self.tell(ToHost::Parked { taken })?;
        }
        let heard = look_and_hear(&self.session.wire, &self.shared().spin, most);
        self.take(heard).map(drop)
    }

    /// Takes what was heard; false if that is nothing.
    fn take(&mut self, heard: Heard) -> Result<bool, Over> {
        match heard {
            Heard::Frame(frame) => {
                let told = ToWorker::from_frame(frame).map_err(|_| Over)?;
                self.shared().mail.hear(&told);
                self.act(told).map(|()| true)
            }
            Heard::Nothing => Ok(false),
            Heard::Closed => Err(Over),
        }
    }

    /// Does what the host asks for, while no code runs.
    fn act(&mut self, told: ToWorker) -> Result<(), Over> {
        if told.is_work() {
            self.shared().taken.fetch_add(1, Ordering::Relaxed);
            self.turns_left = None;
        }
        match told {
            ToWorker::Cell(cell) => self.begin(*cell)?,
            ToWorker::Update(update) => self.session.isolate.update(*update),
            ToWorker::Names => {
                let names = self.session.isolate.names().ok_or(Over)?;
                for part in names_messages(names) {
                    self.tell(part)?;
                }
            }
            ToWorker::Copy { repeated } => {
                let copied = self.session.copy(repeated);
                self.tell(ToHost::Copied(copied))?;
            }
            ToWorker::Inbound(mut inbound) => {
                self.shared().taken.fetch_add(1, Ordering::Relaxed);
                // The next cell hits the limit if this is too much: it is counted all the same.
                inbound.count(&self.shared().in_flight, usize::MAX);
                self.shared().inbox.lock().push(inbound);
            }
            ToWorker::End { number } => self.shared().mail.ending.lock().push(number),
            // The answers are for code that ran: it has ended meanwhile.
            ToWorker::Yield
            | ToWorker::GoOn
            | ToWorker::Answer { .. }
            | ToWorker::Verdict { .. } => {}
            ToWorker::Begin(_) | ToWorker::Open(_) => return Err(Over),
        }
        Ok(())
    }

    /// Begins a cell, with the messages that are for nobody in flight.
    fn begin(&mut self, cell: Cell) -> Result<(), Over> {
        let Cell { number, work, report, validated_kinds } = cell;
        self.dispatch()?;
        let work = self.session.work(work).ok_or(Over)?;
        let about = self.session.about(report, validated_kinds);
        let (wire, shared) = (Arc::clone(&self.session.wire), self.shared());
        let embedder = Arc::new(RemoteEmbedder::of_flight(wire, &about, shared, number));
        shared.mail.flights.lock().insert(number);
        shared.outcomes.lock().begin(number);
        let seat = CellSeat {
            number,
            embedder: Arc::clone(&embedder) as Arc<dyn Embedder>,
            termination: Arc::clone(&embedder.termination),
            report,
        };
        let inbox = self.session.take_inbox();
        let (own, stalled) = (Vec::new(), None);
        let flight = Flight { number, embedder: Arc::clone(&embedder), inbox: own, stalled };
        self.flights.push(flight);
        self.tell_turn(number)?;
        embedder.begin_turn();
        let turn = self.session.isolate.start(work, &seat, inbox);
        self.land(number, &embedder, turn)
    }

    /// The next turn of a cell that waited.
    fn turn(&mut self, number: u32) -> Result<(), Over> {
        let Some(flight) = self.place(number).map(|place| &mut self.flights[place]) else {
            return Ok(());
        };
        let embedder = Arc::clone(&flight.embedder);
        let mut inbox = std::mem::take(&mut flight.inbox);
        self.turns_left = self.turns_left.map(|left| left.saturating_sub(1));
        // Those of the session came for nothing that was known yet: they may be about what these bring.
        inbox.append(&mut self.session.take_inbox());
        self.tell_turn(number)?;
        embedder.begin_turn();
        let turn = self.session.isolate.turn_of(number, inbox);
        self.land(number, &embedder, turn)
    }

    /// A turn is over.
    fn land(&mut self, number: u32, embedder: &RemoteEmbedder, turn: Turn) -> Result<(), Over> {
        embedder.end_turn();
        let end = match turn {
            Turn::Ended(end) => end,
            // It was asked to end when it did not compute any more.
            Turn::Idle { .. } if embedder.termination.is_raised() => {
                self.session.isolate.asked(number)
            }
            Turn::Idle { waits_for_host } => {
                let error = (!waits_for_host).then(|| self.session.isolate.stalled());
                if let Some(place) = self.place(number) {
                    self.flights[place].stalled = error.map(|error| (Instant::now(), error));
                }
                return Ok(());
            }
        };
        let end = match end {
            end if end.is_asked() && embedder.is_capped() => WorkersEnd::Cap,
            end if end.is_asked() && embedder.is_stopped() => WorkersEnd::Undone,
            end => WorkersEnd::End(end),
        };
        self.conclude(number, end)
    }

    /// Ends the cells that the host wants to end and that wait.
    fn end_asked(&mut self) -> Result<(), Over> {
        let ending = std::mem::take(&mut *self.shared().mail.ending.lock());
        for number in ending {
            if self.place(number).is_some() {
                let end = self.session.isolate.asked(number);
                self.conclude(number, WorkersEnd::End(end))?;
            }
        }
        Ok(())
    }

    /// Ends a cell for the session and for the host.
    fn conclude(&mut self, number: u32, end: WorkersEnd) -> Result<(), Over> {
        let mut end = end;
        let peak_bytes = self.session.isolate.peak_bytes(number) as u64;
        let keep = matches!(end, WorkersEnd::End(End::Cell(_) | End::Failed(..)));
        let concluded = self.session.isolate.conclude(number, keep);
        let Concluded { state, again, undone, is_untouched } = concluded;
        if keep && state != SessionState::Kept {
            // The cell came to its end, and what it did could not be kept.
            end = WorkersEnd::End(End::Broken);
        }
        {
            let mut outcomes = self.shared().outcomes.lock();
            match state {
                SessionState::Kept if is_untouched => outcomes.leave(number),
                SessionState::Kept => outcomes.keep(number),
                SessionState::RolledBack => outcomes.undo(number, &undone),
                SessionState::Reset => outcomes.forget(),
            }
        }
        let left = self.remove(number);
        // Calls that came too late for it become cells of their own, but for those of functions that are gone.
        for inbound in left {
            match inbound {
                Inbound::FunctionCall { .. } if state == SessionState::Reset => {}
                inbound => self.keep_for_later(inbound)?,
            }
        }
        let is_no_call = |inbound: &Inbound| !matches!(inbound, Inbound::FunctionCall { .. });
        for other in &undone {
            let left = self.remove(*other);
            self.shared().inbox.lock().extend(left.into_iter().filter(is_no_call));
        }
        self.shared().inbox.lock().splice(..0, again.into_iter().filter(is_no_call));
        self.parked = None;
        let handed = 0;
        let ended = CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone };
        self.tell(ToHost::CellEnded(Box::new(ended)))?;
        self.session.isolate.take_checkpoint();
        Ok(())
    }

    /// Forgets a cell that is over. Returns the messages that it was not handed.
    fn remove(&mut self, number: u32) -> Vec<Inbound> {
        self.called.retain(|other| *other != number);
        self.shared().mail.flights.lock().remove(&number);
        let place = self.place(number);
        place.map_or_else(Vec::new, |place| self.flights.remove(place).inbox)
    }

    /// Gives the host's messages to the cells in flight that they are for. Calls of functions of other cells wait for
    /// cells of their own. Further messages stay for whichever cell computes next.
    fn dispatch(&mut self) -> Result<(), Over> {
        let inbox = self.session.take_inbox();
        let mut left = Vec::new();
        for inbound in inbox {
            let is_call = matches!(inbound, Inbound::FunctionCall { .. });
            let number = match self.session.isolate.addressee(&inbound) {
                Addressee::Cell(number) => Some(number),
                Addressee::Any if !is_call => self.flights.last().map(|flight| flight.number),
                Addressee::Any | Addressee::Nobody => None,
            };
            match number.and_then(|number| self.place(number)) {
                Some(place) => {
                    let number = self.flights[place].number;
                    if let Inbound::FunctionCall { call, .. } = &inbound {
                        self.tell(ToHost::Placed { call: *call, number })?;
                    }
                    self.flights[place].inbox.push(inbound);
                    if !self.called.contains(&number) {
                        self.called.push_back(number);
                    }
                }
                None if is_call => self.keep_for_later(inbound)?,
                None => left.push(inbound),
            }
        }
        self.shared().inbox.lock().extend(left);
        Ok(())
    }

    /// Keeps a message for whichever cell computes next, or a call for its own cell.
    fn keep_for_later(&mut self, inbound: Inbound) -> Result<(), Over> {
        if let Inbound::FunctionCall { call, .. } = &inbound {
            self.tell(ToHost::Placed { call: *call, number: 0 })?;
        }
        self.session.keep_for_later(vec![inbound]);
        Ok(())
    }

    fn tell_turn(&mut self, number: u32) -> Result<(), Over> {
        let told = ToHost::Turn { number }.into_frame();
        self.session.wire.lock().tell_soon(told).map_err(|_| Over)
    }

    fn tell(&self, told: ToHost) -> Result<(), Over> {
        if self.session.tell(told) { Ok(()) } else { Err(Over) }
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.flights.iter().position(|flight| flight.number == number)
    }

    /// The cell that began last.
    fn last(&self) -> u32 {
        self.flights.last().map_or(0, |flight| flight.number)
    }

    fn shared(&self) -> &Shared {
        &self.session.shared
    }
}
