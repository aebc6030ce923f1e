//! One run in a worker, as its host sees it, from the call to settlement.
//!
//! In: a checked request and the host's side of it, messages of the host, and frames of its worker (`incoming`). Out:
//! one result, of which the host is notified once. Anybody may have taken the worker over: each frame is checked
//! against what may be sent now, and a worker that sends anything else is killed. It can spoil its own run, and later
//! runs, if it is given any.
//!
//! Everything is behind one lock, which is never held while the host is called.

mod incoming;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use isolane_confine::Ended;

use super::{
    ledger::Ledger,
    lost::Lost,
    worker_socket::{FrameSink, WorkerSocket},
    workers::{Begun, Job, Workers},
};
use crate::{
    binding::{
        handle::{Poller, RunControl},
        host::{Completion, Host},
        inbound::Inbound,
    },
    data::outcome::{ExecutionError, ExecutionResult, Status},
    isolate::End,
    modules::request::Request,
    os::sync::Mutex,
    protocol::{
        control::ZygoteCommand,
        frame::{Frame, Unreadable},
        messages::{Begin, ToWorker},
    },
    runtime::record::{Reason, Record},
    value::{Charge, InFlight, Kinds, Value},
};

/// How long a run computes before others need not wait for it.
const SLICE: Duration = Duration::from_millis(10);

pub(crate) struct Run {
    workers: Arc<Workers<Self>>,
    place: usize,
    host: Arc<dyn Host>,
    memory_limit: usize,
    report: bool,
    validated_kinds: Kinds,
    /// Messages that the host has not taken yet.
    in_flight: Arc<InFlight>,
    settled: AtomicBool,
    shared: Mutex<Shared>,
}

struct Shared {
    record: Record,
    phase: Phase,
    /// The run's worker, while it has one.
    link: Option<Arc<WorkerSocket>>,
    request: Option<Box<Request>>,
    /// The frames that the host sent before the run had a worker.
    early: Vec<Frame>,
    calls: u64,
    /// The bytes of the last call's arguments, while the worker waits for its answer.
    calling: Option<usize>,
    ledger: Ledger,
    /// The message that the host validated last, and accepted.
    accepted: Option<Value>,
    /// How many messages the host has sent of its own accord.
    sent: u64,
    /// The least number of them that the worker must have taken when it waits the next time.
    next_parked: u64,
    /// The bytes of reports and logs that are kept.
    kept_bytes: usize,
    /// Whether it is counted as computing.
    permit: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits for a worker.
    Queued,
    /// Its worker computes, since then.
    Computing(Instant),
    /// Its worker waits for the host.
    Waiting,
    /// Its worker can resume, and waits for its turn.
    Woken,
    Over,
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(
        workers: Arc<Workers<Self>>,
        place: usize,
        request: Request,
        host: Arc<dyn Host>,
        validated_kinds: Kinds,
    ) -> Self {
        let bytes = request.memory_limit();
        let memory_limit = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            workers,
            place,
            validated_kinds,
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

    /// Sends a frame to the worker, or keeps it until there is one, or until it is the worker's turn.
    fn send(self: &Arc<Self>, frame: Frame) {
        let mut shared = self.shared.lock();
        match &shared.link {
            Some(link) => link.send(frame),
            None if shared.phase == Phase::Queued => return shared.early.push(frame),
            None => return,
        }
        // A worker that waits for an answer resumes with that, and with nothing else.
        if shared.phase == Phase::Waiting && shared.calling.is_none() {
            shared.phase = Phase::Woken;
            drop(shared);
            self.workers.wake(Arc::clone(self));
        }
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Settles the run. Only the first call does, and gets the worker that the run had.
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
        // This thread is not the host's, so a panic of the host must not reach it.
        drop(catch_unwind(AssertUnwindSafe(|| self.host.settled())));
        worker
    }
}

impl Job for Run {
    fn begin(self: &Arc<Self>, link: &Arc<WorkerSocket>) -> Begun {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() || shared.request.is_none() {
            return Begun::NotNeeded;
        }
        if !link.take(Arc::<Self>::clone(self)) {
            return Begun::NoWorker;
        }
        let Some(request) = shared.request.take() else { return Begun::NotNeeded };
        shared.phase = Phase::Computing(Instant::now());
        shared.permit = true;
        shared.link = Some(Arc::clone(link));
        let safety_cap = self.workers.safety_cap();
        let begin = Begin { request: *request, safety_cap, validated_kinds: self.validated_kinds };
        // The worker's last run may have ended while it waited.
        link.release();
        link.send(ToWorker::Begin(Box::new(begin)).into_frame());
        for frame in std::mem::take(&mut shared.early) {
            link.send(frame);
        }
        Begun::Yes
    }

    fn resume(&self) -> bool {
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

    fn step_aside(&self, now: Instant) -> bool {
        let mut shared = self.shared.lock();
        let Phase::Computing(since) = shared.phase else { return false };
        if !shared.permit || now.saturating_duration_since(since) < SLICE {
            return false;
        }
        shared.permit = false;
        let link = shared.link.clone();
        drop(shared);
        if let Some(link) = link.filter(|link| link.demote()) {
            self.workers.order(ZygoteCommand::Demote(link.worker));
        }
        true
    }

    fn give_up(&self) -> Option<u32> {
        self.settle(End::Asked, None)
    }

    fn parked(&self) -> bool {
        self.shared.lock().phase == Phase::Waiting
    }
}

impl FrameSink for Run {
    fn most_bytes(&self) -> usize {
        most_bytes(self.memory_limit)
    }

    fn receive(self: Arc<Self>, frame: Frame) -> Result<bool, Unreadable> {
        self.take(frame)
    }

    fn lost(&self, how: &Lost) -> Option<u32> {
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
                    cause: how.cause(),
                    ..ExecutionError::default()
                };
                End::Failed(Status::Error, Box::new(error))
            }
        };
        self.settle(end, None)
    }

    fn break_down(&self) {
        self.settle(End::Broken, None);
    }
}

impl RunControl for Run {
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

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.in_flight.charge(bytes, self.most_bytes());
        if charge.is_none() && !self.is_settled() {
            self.workers.kill(&self, &Lost::TooLarge);
        }
        charge
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

    fn poller(&self) -> Option<Weak<dyn Poller>> {
        let workers = Arc::downgrade(&self.workers);
        Some(workers)
    }

    fn reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        self.shared.lock().record.reports_since(index)
    }

    fn take_report(&self) -> Option<Value> {
        self.shared.lock().record.take_report()
    }

    fn take_result(&self) -> Option<ExecutionResult> {
        self.shared.lock().record.take_result()
    }
}

/// The limit for the ledger and for messages, which count a little differently from an isolate's charges.
fn most_bytes(memory_limit: usize) -> usize {
    memory_limit.saturating_add(memory_limit / 8).saturating_add(1 << 20)
}
