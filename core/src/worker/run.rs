//! One run in a worker, as its host sees it, from the call to settlement.
//!
//! In: a checked request and the host's side of it, what the host does to the run, and what its worker
//! says. Out: one result, told to the host once. The worker may be in anybody's hands: whatever it says is
//! held against what may be said now, and one that says anything else is killed. It can spoil its own run,
//! and those that it is given after that, where it is given any.
//!
//! Everything is behind one lock, which is never held while the host is called.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    confine::Ended,
    control::Order,
    frame::{Frame, Unreadable},
    link::Link,
    protocol::{Begin, ToHost, ToWorker, WorkersEnd},
    workers::Workers,
};
use crate::{
    execution::{Hear, Live},
    host::{ASYNC_FUNCTION, Completion, Host, HostCall, REPORT_SINK},
    isolate::{End, Inbound},
    ledger::{Ledger, Overdrawn},
    options::Request,
    outcome::{ExecutionError, ExecutionResult, Status},
    record::{Reason, Record},
    sync::Mutex,
    value::{InFlight, Value},
};

/// How long a run computes before others need not wait for it.
const SLICE: Duration = Duration::from_millis(10);

/// The largest number of bytes that is told: what every language's numbers hold.
const MOST_BYTES_TOLD: u64 = (1 << 53) - 1;

pub(super) struct Run {
    workers: Arc<Workers>,
    place: usize,
    host: Arc<dyn Host>,
    memory_limit: usize,
    report: bool,
    is_choosy: bool,
    /// Messages that the host has not taken yet.
    in_flight: Arc<InFlight>,
    settled: AtomicBool,
    shared: Mutex<Shared>,
}

struct Shared {
    record: Record,
    phase: Phase,
    /// Its worker, while it has one.
    link: Option<Arc<Link>>,
    request: Option<Box<Request>>,
    /// What the host sent before the run had a worker.
    early: Vec<Frame>,
    calls: u64,
    /// While the worker waits for the answer to its last call: how large its arguments were.
    calling: Option<usize>,
    ledger: Ledger,
    /// The message that the host was asked about last, and can hold.
    accepted: Option<Value>,
    /// What the host has sent on its own account.
    sent: u64,
    /// The least that the worker has taken when it waits the next time.
    next_parked: u64,
    /// What is reported or logged and kept, in bytes.
    kept_bytes: usize,
    /// Whether it is counted as computing.
    permit: bool,
}

/// What handing a run to a worker came to.
pub(super) enum Begun {
    Yes,
    /// It has settled before.
    NotNeeded,
    /// The worker is no more.
    NoWorker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits for a worker.
    Queued,
    /// Its worker computes, since then.
    Computing(Instant),
    /// Its worker waits for the host.
    Waiting,
    /// Its worker has something to go on with, and waits for its turn.
    Woken,
    Over,
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(super) fn new(
        workers: Arc<Workers>,
        place: usize,
        request: Request,
        host: Arc<dyn Host>,
        is_choosy: bool,
    ) -> Self {
        let bytes = request.memory_limit();
        let memory_limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            workers,
            place,
            is_choosy,
            host,
            memory_limit,
            report: request.report,
            in_flight: Arc::default(),
            settled: AtomicBool::new(false),
            shared: Mutex::new(Shared {
                record: Record::new(bytes),
                phase: Phase::Queued,
                link: None,
                request: Some(Box::new(request)),
                early: Vec::new(),
                calls: 0,
                calling: None,
                ledger: Ledger::new(most_bytes(memory_limit)),
                accepted: None,
                sent: 0,
                next_parked: 0,
                kept_bytes: 0,
                permit: false,
            }),
        }
    }

    /// The most that one message of the worker may hold, and all that it makes its host keep.
    pub(super) fn most_bytes(&self) -> usize {
        most_bytes(self.memory_limit)
    }

    pub(super) fn parked(&self) -> bool {
        self.shared.lock().phase == Phase::Waiting
    }

    /// Hands the run to a worker, with a permit.
    pub(super) fn begin(self: &Arc<Self>, link: &Arc<Link>) -> Begun {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() || shared.request.is_none() {
            return Begun::NotNeeded;
        }
        if !link.take(self) {
            return Begun::NoWorker;
        }
        let Some(request) = shared.request.take() else { return Begun::NotNeeded };
        shared.phase = Phase::Computing(Instant::now());
        shared.permit = true;
        shared.link = Some(Arc::clone(link));
        let safety_cap = self.workers.safety_cap();
        let begin = Begin { request: *request, safety_cap, is_choosy: self.is_choosy };
        // The run before may have ended while it waited.
        link.release();
        link.send(ToWorker::Begin(Box::new(begin)).into_frame());
        for frame in std::mem::take(&mut shared.early) {
            link.send(frame);
        }
        Begun::Yes
    }

    /// Lets the worker go on, with a permit; false if it needs none any more.
    pub(super) fn go_on(&self) -> bool {
        let mut shared = self.shared.lock();
        if shared.phase != Phase::Woken {
            return false;
        }
        shared.phase = Phase::Computing(Instant::now());
        shared.permit = true;
        if let Some(link) = &shared.link {
            link.release();
        }
        true
    }

    /// Whether the run has computed for so long that others need not wait for it. If so it has no permit
    /// any more, and its worker comes after others.
    pub(super) fn step_aside(&self, now: Instant) -> bool {
        let mut shared = self.shared.lock();
        let Phase::Computing(since) = shared.phase else { return false };
        if !shared.permit || now.saturating_duration_since(since) < SLICE {
            return false;
        }
        shared.permit = false;
        let link = shared.link.clone();
        drop(shared);
        if let Some(link) = link.filter(|link| link.demote()) {
            self.workers.order(Order::Demote(link.worker));
        }
        true
    }

    /// Takes what the worker said; true if that ended the run.
    pub(super) fn receive(self: &Arc<Self>, frame: Frame) -> Result<bool, Unreadable> {
        if self.is_settled() {
            return Ok(false);
        }
        let told = ToHost::from_frame(frame, self.most_bytes())?;
        let ends = matches!(told, ToHost::Ended { .. });
        self.hear(told).map(|()| ends)
    }

    fn hear(self: &Arc<Self>, told: ToHost) -> Result<(), Unreadable> {
        match told {
            // The sink's number is one of these.
            ToHost::Call { function, .. } | ToHost::Start { function, .. }
                if function & ASYNC_FUNCTION != 0 =>
            {
                Err(Unreadable::Broken)
            }
            ToHost::Call { function, args } => self.calls(function, args),
            ToHost::Start { function, args, promise } => {
                if promise & ASYNC_FUNCTION == 0 {
                    return Err(Unreadable::Broken);
                }
                let args = self.take_in(args)?;
                let asked = {
                    let mut shared = self.shared.lock();
                    shared.ledger.start(promise, args.held_bytes())?;
                    shared.record.is_asked()
                };
                if !asked {
                    self.host.start(function, args, promise);
                }
                Ok(())
            }
            ToHost::Report { value, waits } => {
                self.check_refusal(&value)?;
                self.check_kept(&value)?;
                if waits != self.report {
                    return Err(Unreadable::Broken);
                }
                self.keep(|record| {
                    if !record.is_asked() {
                        record.report(value);
                    }
                });
                if waits { self.calls(REPORT_SINK, Value::undefined()) } else { Ok(()) }
            }
            ToHost::Ask(message) => {
                {
                    let shared = self.shared.lock();
                    let computes = matches!(shared.phase, Phase::Computing(_));
                    if !self.is_choosy || !computes || shared.calling.is_some() {
                        return Err(Unreadable::Broken);
                    }
                    self.check_has_read(&shared)?;
                }
                let verdict = self.host.refuses(&message);
                if verdict.is_none() {
                    self.shared.lock().accepted = Some(message);
                }
                self.send(ToWorker::Verdict(verdict).into_frame());
                Ok(())
            }
            ToHost::Log(mut log) => {
                // Put together of what was accepted and text for what was not, it was never asked about.
                if self.check_refusal(&log.args).is_err() {
                    log.args = Value::serialize(&["[a log that this host cannot hold]"])
                        .map_err(|_| Unreadable::Broken)?;
                }
                self.check_kept(&log.args)?;
                self.keep(|record| record.log(log));
                Ok(())
            }
            ToHost::FunctionSettled { call, completion } => {
                let completion = self.take_in_completion(completion)?;
                waited_for(self.shared.lock().ledger.finish_call(call))?;
                self.host.function_settled(call, completion);
                Ok(())
            }
            ToHost::PromiseSettled { promise, completion } => {
                let completion = self.take_in_completion(completion)?;
                waited_for(self.shared.lock().ledger.finish_promise(promise))?;
                self.host.promise_settled(promise, completion);
                Ok(())
            }
            ToHost::Parked { taken } => self.parks(taken),
            ToHost::Ended { end, peak_bytes } => self.ended(end, peak_bytes),
        }
    }

    fn calls(self: &Arc<Self>, function: u32, args: Value) -> Result<(), Unreadable> {
        let args = self.take_in(args)?;
        let call = {
            let mut shared = self.shared.lock();
            if !matches!(shared.phase, Phase::Computing(_)) || shared.calling.is_some() {
                return Err(Unreadable::Broken);
            }
            if shared.record.is_asked() {
                return Ok(());
            }
            self.check_has_read(&shared)?;
            shared.calls += 1;
            shared.calling = Some(args.held_bytes());
            self.waits(&mut shared);
            shared.calls
        };
        self.host.call(function, args, HostCall::new(Arc::clone(self) as Arc<dyn Live>, call));
        self.workers.dispatch();
        Ok(())
    }

    fn parks(&self, taken: u64) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        // Between one time and the next it has taken something.
        let is_news = taken >= shared.next_parked && taken <= shared.sent;
        if !is_news || !matches!(shared.phase, Phase::Computing(_)) {
            return Err(Unreadable::Broken);
        }
        shared.next_parked = taken + 1;
        // Otherwise something is on its way that it will go on with.
        if taken == shared.sent {
            self.waits(&mut shared);
            drop(shared);
            self.workers.dispatch();
        }
        Ok(())
    }

    /// One that waits for an answer has read what it was told before, but for what the host sent on its own
    /// account.
    fn check_has_read(&self, shared: &Shared) -> Result<(), Unreadable> {
        let waiting = shared.link.as_ref().map_or(0, |link| link.waiting_bytes());
        if waiting > self.memory_limit { Err(Unreadable::TooLarge) } else { Ok(()) }
    }

    /// From now on the worker computes nothing: others may.
    fn waits(&self, shared: &mut Shared) {
        shared.phase = Phase::Waiting;
        if let Some(link) = &shared.link {
            link.hold();
        }
        if std::mem::take(&mut shared.permit) {
            self.workers.give_back_permit();
        }
    }

    /// A message that the host has to take, which counts until it has.
    fn take_in(&self, message: Value) -> Result<Value, Unreadable> {
        self.check_refusal(&message)?;
        let under_way = self.in_flight.bytes().saturating_add(message.held_bytes());
        if under_way > self.most_bytes() {
            return Err(Unreadable::TooLarge);
        }
        self.shared.lock().ledger.receive(&message)?;
        Ok(message.sent(&self.in_flight))
    }

    fn take_in_completion(&self, completion: Completion) -> Result<Completion, Unreadable> {
        Ok(match completion {
            Ok(value) => Ok(self.take_in(value)?),
            Err(thrown) => Err(self.take_in(thrown)?),
        })
    }

    /// A worker asks before it sends what a host may refuse. A host that has accepted a message is not asked
    /// again: it may count what it accepts.
    fn check_refusal(&self, message: &Value) -> Result<(), Unreadable> {
        if !self.is_choosy || !message.may_be_refused() {
            return Ok(());
        }
        let accepted = self.shared.lock().accepted.take();
        if accepted.is_some_and(|accepted| accepted == *message) {
            return Ok(());
        }
        if self.host.refuses(message).is_some() { Err(Unreadable::Broken) } else { Ok(()) }
    }

    /// What is kept to the end may be no more than the run may hold.
    fn check_kept(&self, message: &Value) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        shared.kept_bytes = shared.kept_bytes.saturating_add(message.held_bytes());
        if shared.kept_bytes > self.most_bytes() { Err(Unreadable::TooLarge) } else { Ok(()) }
    }

    /// Keeps a report or a log, unless the run has settled.
    fn keep(&self, keep: impl FnOnce(&mut Record)) {
        let mut shared = self.shared.lock();
        if !self.is_settled() {
            keep(&mut shared.record);
        }
    }

    fn ended(&self, end: WorkersEnd, peak_bytes: Option<u64>) -> Result<(), Unreadable> {
        if let WorkersEnd::End(End::Success(value)) = &end {
            self.check_refusal(value)?;
        }
        let end = match end {
            WorkersEnd::End(end) => end,
            WorkersEnd::Cap => {
                self.shared.lock().record.ask(Reason::cap(self.workers.safety_cap()));
                End::Asked
            }
            WorkersEnd::Stalled => {
                self.shared.lock().record.ask(Reason::stalled());
                End::Asked
            }
        };
        self.settle(end, peak_bytes.map(|bytes| bytes.min(MOST_BYTES_TOLD)));
        Ok(())
    }

    /// The worker is no more, or cannot be had. The worker that the run had, if this settled it.
    pub(super) fn lost(&self, how: &Lost) -> Option<u32> {
        let end = match how {
            Lost::Ended(Ended::Memory) | Lost::TooLarge => End::Memory,
            Lost::Ended(Ended::CpuTime) => {
                self.shared.lock().record.ask(Reason::cap(self.workers.safety_cap()));
                End::Asked
            }
            how => {
                let error = ExecutionError {
                    name: "WorkerLost".to_owned(),
                    message: how.message(),
                    ..ExecutionError::default()
                };
                End::Failed(Status::Error, Box::new(error))
            }
        };
        self.settle(end, None)
    }

    /// Settles a run whose host panicked when it was told something, or which failed here.
    pub(super) fn break_down(&self) {
        self.settle(End::Broken, None);
    }

    /// Settles a run whose worker did not end in time after it was asked to; it is being killed.
    pub(super) fn give_up(&self) -> Option<u32> {
        self.settle(End::Asked, None)
    }

    /// Hands something to the worker, or keeps it until there is one, or until it is its turn.
    fn send(self: &Arc<Self>, frame: Frame) {
        let mut shared = self.shared.lock();
        match &shared.link {
            Some(link) => link.send(frame),
            None if shared.phase == Phase::Queued => return shared.early.push(frame),
            None => return,
        }
        // One that waits for an answer goes on with that, and with nothing else.
        if shared.phase == Phase::Waiting && shared.calling.is_none() {
            shared.phase = Phase::Woken;
            drop(shared);
            self.workers.wake(Arc::clone(self));
        }
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// The end of the run, for everyone to see. The first to come settles it, and gets the worker that it
    /// had.
    fn settle(&self, end: End, peak_bytes: Option<u64>) -> Option<u32> {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return None;
        }
        let status = shared.record.settle(end, peak_bytes);
        self.settled.store(true, Ordering::Release);
        shared.phase = Phase::Over;
        let permit = std::mem::take(&mut shared.permit);
        let link = shared.link.take();
        let worker = link.as_ref().map(|link| link.worker);
        let early = std::mem::take(&mut shared.early);
        let unused = (shared.request.take(), early, shared.accepted.take(), link);
        drop(shared);
        drop(unused);
        if permit {
            self.workers.give_back_permit();
        }
        self.workers.settle(self.place, status);
        // Whose thread this is has nothing to do with a host that panics here.
        drop(catch_unwind(AssertUnwindSafe(|| self.host.settled())));
        worker
    }
}

impl Live for Run {
    fn is_here(&self) -> bool {
        self.workers.is_here()
    }

    fn running(&self) -> bool {
        !self.is_settled()
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() {
            return;
        }
        shared.record.ask(Reason::of_caller(reason));
        let link = shared.link.clone();
        drop(shared);
        match link {
            None => {
                self.settle(End::Asked, None);
            }
            Some(link) => {
                link.close();
                self.workers.watch_ending(&self);
            }
        }
    }

    fn deliver(self: Arc<Self>, inbound: Inbound) {
        if self.is_settled() {
            return;
        }
        let waiting = {
            let shared = self.shared.lock();
            if shared.record.is_asked() {
                return;
            }
            shared.link.as_ref().map_or(0, |link| link.waiting_bytes())
        };
        if waiting.saturating_add(inbound.held_bytes()) > self.memory_limit {
            self.workers.kill(&self, &Lost::TooLarge);
            return;
        }
        {
            let mut shared = self.shared.lock();
            shared.sent += 1;
            match &inbound {
                Inbound::PromiseSettled { promise, .. } => shared.ledger.settle(*promise),
                Inbound::FunctionCall { call, .. } => shared.ledger.call(*call),
                Inbound::FunctionReleased { function, times } => {
                    shared.ledger.release(*function, *times);
                }
            }
        }
        self.send(ToWorker::Inbound(inbound).into_frame());
    }

    fn reply(self: Arc<Self>, call: u64, completion: Completion) {
        let overdrawn = {
            let mut shared = self.shared.lock();
            if shared.calls != call || self.is_settled() {
                return;
            }
            let Some(args_bytes) = shared.calling.take() else { return };
            completion
                .as_ref()
                .is_ok_and(|answer| shared.ledger.answer(args_bytes, answer).is_err())
        };
        if overdrawn {
            self.workers.kill(&self, &Lost::TooLarge);
            return;
        }
        self.send(ToWorker::Answer(completion).into_frame());
    }

    fn ears(&self) -> Option<Weak<dyn Hear>> {
        let workers = Arc::downgrade(&self.workers);
        Some(workers)
    }

    fn reports_since(&self, index: usize) -> Vec<Value> {
        self.shared.lock().record.reports_since(index)
    }

    fn take_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.take_result()
    }
}

impl From<Overdrawn> for Unreadable {
    fn from(_: Overdrawn) -> Self {
        Self::TooLarge
    }
}

/// Nobody settles for the host what it does not wait for.
fn waited_for(is_waited_for: bool) -> Result<(), Unreadable> {
    if is_waited_for { Ok(()) } else { Err(Unreadable::Broken) }
}

/// What an isolate is charged for and what is counted here differ a little.
fn most_bytes(memory_limit: usize) -> usize {
    memory_limit.saturating_add(memory_limit / 8).saturating_add(1 << 20)
}

/// Why a run has no worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It ended before the run did.
    Ended(Ended),
    /// It said what no worker of ours says, and is being killed.
    Broken,
    /// It said more than the run may hold, and is being killed.
    TooLarge,
    /// None can be had.
    Unavailable(String),
}

impl Lost {
    fn message(&self) -> String {
        match self {
            Self::Ended(Ended::Exited(code)) => format!("the worker exited with code {code}"),
            Self::Ended(Ended::Killed) => "the worker was killed".to_owned(),
            Self::Ended(Ended::Crashed(signal)) => {
                format!("the worker crashed: it ended by signal {signal}")
            }
            Self::Ended(Ended::ForbiddenCall) => {
                "the worker was killed for a system call that it may not make".to_owned()
            }
            Self::Ended(Ended::Memory | Ended::CpuTime) | Self::TooLarge => {
                "the worker used more than it may".to_owned()
            }
            Self::Broken => "the worker broke the protocol and was killed".to_owned(),
            Self::Unavailable(why) => format!("no worker could be started: {why}"),
        }
    }
}
