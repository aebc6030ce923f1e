//! The embedder of an isolate in a worker: it passes every request on to the host.
//!
//! In: the acts of an isolate. Out: frames to the host, and its answers. The host ends a run by closing its side of the
//! socket, which the worker checks while code computes. It ends a cell of a session by a frame, because the session
//! stays; so while a cell computes, the worker reads frames.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    outcomes::Outcomes,
    wire::{Heard, Wait, Wire},
};
use crate::{
    binding::{
        adaptive_spin::AdaptiveSpin,
        host::{Completion, Refusal},
        inbound::{Inbound, TOO_LARGE, thrown},
    },
    data::outcome::{ExecutionLog, LogLevel},
    isolate::{Embedder, Started, Termination},
    os::{clock::ThreadTime, sync::Mutex},
    protocol::messages::{CellEnded, ToHost, ToWorker},
    value::{InFlight, Kinds, Value},
};

/// The interval at which code that computes checks its host and its time.
const LOOK: Duration = Duration::from_millis(1);

pub(crate) struct RemoteEmbedder {
    wire: Arc<Mutex<Wire>>,
    pub(crate) termination: Arc<Termination>,
    memory_limit: usize,
    report: bool,
    keeps_logs: bool,
    validated_kinds: Kinds,
    safety_cap: Duration,
    /// The CPU time of its earlier turns, and the beginning of the present one.
    computed: Mutex<(Duration, ThreadTime)>,
    looked: Mutex<Instant>,
    /// Messages that the isolate has not been handed. Cells that interleave share them.
    inbox: Arc<Mutex<Vec<Inbound>>>,
    /// The number of unasked messages that this worker has taken.
    taken: Arc<AtomicU64>,
    /// For a cell, the outcomes that its session has sent.
    outcomes: Option<Arc<Mutex<Outcomes>>>,
    capped: AtomicBool,
    /// For a cell among others in flight.
    seat: Option<Seat>,
    spin: Arc<AdaptiveSpin>,
}

/// A cell among others in flight.
struct Seat {
    number: u32,
    mail: Arc<Mail>,
    /// Whether it was stopped because another cell has to end.
    stopped: AtomicBool,
}

/// The frames that have come for other cells in flight than the one that computes, and for the session.
#[derive(Default)]
pub(crate) struct Mail {
    /// The cells in flight.
    pub(crate) flights: Mutex<HashSet<u32>>,
    /// Those of them that have to end.
    pub(crate) ending: Mutex<Vec<u32>>,
    /// Whether the host waits for the worker to park.
    pub(crate) yields: AtomicBool,
    /// Frames that are taken when no code runs.
    pub(crate) later: Mutex<VecDeque<ToWorker>>,
}

impl Mail {
    /// Notes whether the host waits for the worker to park, as of a frame that has come. Each frame of work ends the
    /// request before it, and not one behind it, though the work may be done later.
    pub(crate) fn hear(&self, told: &ToWorker) {
        if told.is_work() || matches!(told, ToWorker::Yield) {
            self.yields.store(!told.is_work(), Ordering::Relaxed);
        }
    }
}

/// The parts that the cells of a session share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) taken: Arc<AtomicU64>,
    pub(crate) outcomes: Arc<Mutex<Outcomes>>,
    /// Messages for whichever cell computes next, and for those in flight.
    pub(crate) inbox: Arc<Mutex<Vec<Inbound>>>,
    pub(crate) mail: Arc<Mail>,
    pub(crate) spin: Arc<AdaptiveSpin>,
}

/// The settings of an embedder's run.
pub(crate) struct About {
    pub(crate) memory_limit: usize,
    pub(crate) report: bool,
    pub(crate) keeps_logs: bool,
    pub(crate) refusable: Kinds,
    pub(crate) safety_cap: Duration,
}

impl RemoteEmbedder {
    pub(crate) fn new(wire: Arc<Mutex<Wire>>, about: &About) -> Self {
        Self {
            wire,
            termination: Arc::default(),
            memory_limit: about.memory_limit,
            report: about.report,
            keeps_logs: about.keeps_logs,
            validated_kinds: about.refusable,
            safety_cap: about.safety_cap,
            computed: Mutex::new((Duration::ZERO, ThreadTime::now())),
            looked: Mutex::new(Instant::now()),
            inbox: Arc::default(),
            taken: Arc::default(),
            outcomes: None,
            capped: AtomicBool::new(false),
            seat: None,
            spin: Arc::default(),
        }
    }

    /// The embedder of a cell.
    pub(crate) fn of_cell(wire: Arc<Mutex<Wire>>, about: &About, shared: &Shared) -> Self {
        Self {
            termination: Arc::new(Termination::of_cell(Arc::clone(&shared.in_flight))),
            taken: Arc::clone(&shared.taken),
            outcomes: Some(Arc::clone(&shared.outcomes)),
            ..Self::new(wire, about)
        }
    }

    /// The embedder of a cell that interleaves with others.
    pub(crate) fn of_flight(
        wire: Arc<Mutex<Wire>>,
        about: &About,
        shared: &Shared,
        number: u32,
    ) -> Self {
        let mail = Arc::clone(&shared.mail);
        Self {
            inbox: Arc::clone(&shared.inbox),
            seat: Some(Seat { number, mail, stopped: AtomicBool::new(false) }),
            spin: Arc::clone(&shared.spin),
            ..Self::of_cell(wire, about, shared)
        }
    }

    /// Its next turn begins: the CPU time from now on is its own.
    pub(crate) fn begin_turn(&self) {
        self.computed.lock().1 = ThreadTime::now();
    }

    /// Its turn is over.
    pub(crate) fn end_turn(&self) {
        let mut computed = self.computed.lock();
        let (earlier, since) = *computed;
        computed.0 = earlier + since.elapsed();
    }

    /// Whether it was stopped because another cell has to end, and not itself.
    pub(crate) fn is_stopped(&self) -> bool {
        let Some(seat) = &self.seat else { return false };
        seat.stopped.load(Ordering::Relaxed) && !seat.mail.ending.lock().contains(&seat.number)
    }

    /// The messages that were taken and not handed to the isolate, and how many were handed to it in all.
    pub(crate) fn left(&self) -> (Vec<Inbound>, u64) {
        let left = std::mem::take(&mut *self.inbox.lock());
        let handed = self.taken.load(Ordering::Relaxed) - left.len() as u64;
        (left, handed)
    }

    /// Whether the run computed for longer than it may.
    pub(crate) fn is_capped(&self) -> bool {
        self.capped.load(Ordering::Relaxed)
    }

    /// The unasked messages that were read from the socket or can be read now.
    pub(crate) fn take_inbox(&self) -> Vec<Inbound> {
        loop {
            let heard = self.wire.lock().hear(Wait::No);
            if !self.note(heard) {
                return std::mem::take(&mut *self.inbox.lock());
            }
        }
    }

    /// Waits until the host has sent something. False if nothing came in that time.
    pub(crate) fn wait(&self, most: Wait) -> bool {
        let parked = ToHost::Parked { taken: self.taken.load(Ordering::Relaxed) };
        self.tell(parked);
        let heard = self.look_and_hear(most);
        !matches!(heard, Heard::Nothing) && {
            self.note(heard);
            true
        }
    }

    fn look_and_hear(&self, most: Wait) -> Heard {
        look_and_hear(&self.wire, &self.spin, most)
    }

    /// Stores an unasked message. False if there was none, or the run must end.
    fn note(&self, heard: Heard) -> bool {
        let told = match heard {
            Heard::Nothing => return false,
            Heard::Frame(frame) => ToWorker::from_frame(frame).ok(),
            Heard::Closed => None,
        };
        told.is_some_and(|told| self.note_told(told)) || {
            // The host is gone, or the cell has to end.
            self.termination.raise();
            false
        }
    }

    /// Stores an unasked message; false if the run must end.
    fn note_told(&self, told: ToWorker) -> bool {
        if let Some(seat) = &self.seat {
            seat.mail.hear(&told);
        }
        match (told, &self.seat) {
            (ToWorker::Inbound(inbound), _) => self.keep(inbound),
            (ToWorker::End { number }, Some(seat)) => {
                if !seat.mail.flights.lock().contains(&number) {
                    self.withdraw(&seat.mail, number);
                    return true;
                }
                seat.mail.ending.lock().push(number);
                // This one would be undone with that one.
                seat.stopped.store(number != seat.number, Ordering::Relaxed);
                return false;
            }
            (
                told @ (ToWorker::Cell(_)
                | ToWorker::Update(_)
                | ToWorker::Names
                | ToWorker::Copy { .. }
                | ToWorker::GoOn),
                Some(seat),
            ) => seat.mail.later.lock().push_back(told),
            // The answers are for another cell, which has ended meanwhile.
            (ToWorker::Yield | ToWorker::Answer { .. } | ToWorker::Verdict { .. }, Some(_)) => {}
            _ => return false,
        }
        true
    }

    /// Ends a cell that came while this one computes, before it begins. There is none if the cell has ended meanwhile.
    fn withdraw(&self, mail: &Mail, number: u32) {
        let is_it = |told: &ToWorker| matches!(told, ToWorker::Cell(cell) if cell.number == number);
        let withdrawn = {
            let mut later = mail.later.lock();
            let place = later.iter().position(is_it);
            place.and_then(|place| later.remove(place))
        };
        if withdrawn.is_some() {
            self.taken.fetch_add(1, Ordering::Relaxed);
            self.tell(ToHost::CellEnded(Box::new(CellEnded::untouched(number))));
        }
    }

    /// Takes the messages that have arrived while a cell computes.
    fn note_all(&self) {
        while self.wire.lock().has_more() {
            let heard = self.wire.lock().hear(Wait::No);
            if !self.note(heard) {
                return;
            }
        }
    }

    /// As [`RemoteEmbedder::note`], before the first instruction. Nothing of the cell would be undone with another one yet,
    /// so it begins, and is stopped when it computes.
    fn note_before(&self, heard: Heard) -> bool {
        let Heard::Frame(frame) = heard else { return self.note(heard) };
        let told = ToWorker::from_frame(frame).ok();
        if let (Some(ToWorker::End { number }), Some(seat)) = (&told, &self.seat)
            && *number != seat.number
        {
            if seat.mail.flights.lock().contains(number) {
                seat.mail.ending.lock().push(*number);
            } else {
                self.withdraw(&seat.mail, *number);
            }
            return true;
        }
        told.is_some_and(|told| self.note_told(told)) || {
            self.termination.raise();
            false
        }
    }

    /// Stops it if another cell has to end, which would undo it.
    fn heed_others(&self) {
        let Some(seat) = &self.seat else { return };
        // Those that are over by now stay among them for a moment.
        let flights = seat.mail.flights.lock();
        let is_other = |number: &u32| *number != seat.number && flights.contains(number);
        if seat.mail.ending.lock().iter().any(is_other) {
            seat.stopped.store(true, Ordering::Relaxed);
            self.termination.raise();
        }
    }

    /// Its number among all cells of the session, if cells interleave; otherwise zero.
    fn number(&self) -> u32 {
        self.seat.as_ref().map_or(0, |seat| seat.number)
    }

    fn keep(&self, mut inbound: Inbound) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        if inbound.count(&self.termination.in_flight, self.memory_limit) {
            return self.inbox.lock().push(inbound);
        }
        if self.seat.is_none() {
            self.termination.exhaust();
        }
        if self.outcomes.is_some() {
            // It may be for another cell, which would wait for ever.
            self.refuse(inbound);
        }
    }

    /// Answers a message for which there is no room: the outcome of a promise becomes an error, and a call of the host
    /// gets one.
    fn refuse(&self, mut inbound: Inbound) {
        if let Inbound::FunctionCall { call, .. } = inbound {
            let completion = Err(thrown("MemoryLimit", TOO_LARGE));
            self.tell_soon(ToHost::FunctionSettled { call, completion });
            // In its place, because the host counts the messages that were handed in.
            inbound = Inbound::FunctionReleased { function: 0, times: 0 };
        }
        inbound.refuse();
        self.inbox.lock().push(inbound);
    }

    /// Sends a message now. The run has to end if that fails.
    fn tell(&self, told: ToHost) {
        if self.wire.lock().tell(told.into_frame()).is_err() {
            self.termination.raise();
        }
    }

    /// Sends a message together with the next one.
    fn tell_soon(&self, told: ToHost) {
        if self.wire.lock().tell_soon(told.into_frame()).is_err() {
            self.termination.raise();
        }
    }

    fn answer(&self) -> Option<Completion> {
        self.hear(|told| match told {
            ToWorker::Answer { number, completion } if number == self.number() => Ok(completion),
            other => Err(other),
        })
    }

    /// Waits for the host's answer to the last message. `None` when the run must end.
    fn hear<T>(&self, wanted: impl Fn(ToWorker) -> Result<T, ToWorker>) -> Option<T> {
        loop {
            let heard = self.look_and_hear(Wait::Ever);
            let told = match heard {
                Heard::Frame(frame) => ToWorker::from_frame(frame).ok(),
                Heard::Nothing | Heard::Closed => None,
            };
            let is_other = match told.map(&wanted) {
                Some(Ok(heard)) => return Some(heard),
                Some(Err(told)) => self.note_told(told),
                None => false,
            };
            if !is_other {
                self.termination.raise();
                return None;
            }
        }
    }
}

/// Waits for the next message of the host. Spins first, because sleeping and waking take longer than most answers.
pub(crate) fn look_and_hear(wire: &Mutex<Wire>, spin: &AdaptiveSpin, most: Wait) -> Heard {
    let started = Instant::now();
    let mut wire = wire.lock();
    let found = spin.spin(started, || wire.has_more());
    let heard = wire.hear(most);
    spin.learn(started.elapsed(), found);
    heard
}

impl Embedder for RemoteEmbedder {
    fn call(&self, function: u32, args: Value) -> Option<Completion> {
        self.tell(ToHost::Call { function, args });
        self.answer()
    }

    fn start(&self, function: u32, args: Value, promise: u32) -> Started {
        self.tell_soon(ToHost::Start { function, args, promise });
        if self.termination.is_raised() { Started::Ended } else { Started::GoesOn }
    }

    fn report(&self, value: Value) -> Option<Completion> {
        self.tell(ToHost::Report { value, waits: self.report });
        if self.report { self.answer() } else { Some(Ok(Value::undefined())) }
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        if !message.kinds().intersects(self.validated_kinds) {
            return None;
        }
        self.tell(ToHost::Ask(message.clone()));
        let verdict = self.hear(|told| match told {
            ToWorker::Verdict { number, refusal } if number == self.number() => Ok(refusal),
            other => Err(other),
        });
        verdict.flatten()
    }

    fn log(&self, level: LogLevel, args: Value) {
        self.tell(ToHost::Log(ExecutionLog::now(level, args)));
    }

    fn keeps_logs(&self) -> bool {
        self.keeps_logs
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        if self.outcomes.as_ref().is_some_and(|sent| !sent.lock().function(call)) {
            return;
        }
        self.tell_soon(ToHost::FunctionSettled { call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        if self.outcomes.as_ref().is_some_and(|sent| !sent.lock().promise(promise)) {
            return;
        }
        self.tell_soon(ToHost::PromiseSettled { promise, completion });
    }

    fn begins(&self, can_undo: bool) -> bool {
        // The next poll hears the host.
        while !can_undo && self.wire.lock().has_more() {
            let heard = self.wire.lock().hear(Wait::No);
            if !self.note_before(heard) {
                break;
            }
        }
        !self.termination.is_raised()
    }

    fn poll(&self, now: Instant) {
        {
            let mut looked = self.looked.lock();
            if now.saturating_duration_since(*looked) < LOOK {
                return;
            }
            *looked = now;
        }
        let is_ending = {
            let mut wire = self.wire.lock();
            wire.flush().is_err() || (self.outcomes.is_none() && wire.is_closing())
        };
        if is_ending {
            self.termination.raise();
            return;
        }
        if self.outcomes.is_some() {
            self.note_all();
            self.heed_others();
        }
        let (earlier, since) = *self.computed.lock();
        if earlier + since.elapsed() > self.safety_cap {
            self.capped.store(true, Ordering::Relaxed);
            self.termination.raise();
        }
    }
}
