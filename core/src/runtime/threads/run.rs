//! One run, from the call to settlement.
//!
//! In: a checked request and the host's side of it. Out: one [`ExecutionResult`], told to the host
//! once. [`Run::compute`] is the path of a run, top to bottom: compile and link, take an isolate,
//! let it go on for as long as it can, park it while it waits for the host, settle.
//!
//! A run is shared by the thread that computes it, the threads that deliver to it or end it, and
//! the watchdog. Everything that they share is behind one lock, which is never held while the
//! engine or the host is called; whoever settles the run first settles it.

use std::{
    cell::Cell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    resources::Resources,
    scheduler::{Job, Stage},
    watchdog::Watched,
};
use crate::{
    binding::{
        handle::RunControl,
        host::{Completion, Host, HostCall, REPORT_SINK, Refusal},
        inbound::Inbound,
    },
    data::outcome::{ExecutionLog, ExecutionResult, LogLevel},
    isolate::{Embedder, End, Isolate, Termination, Turn},
    modules::request::Request,
    os::{
        clock::ThreadTime,
        sync::{Condvar, Mutex},
    },
    runtime::{
        prepare::{self, Prepared},
        record::{Reason, Record},
    },
    value::{Charge, Value},
};

/// How long a thread looks for the answer of its host while others wait for its permit.
const SHARED_LOOK: Duration = Duration::from_micros(20);

/// By how much a run may pass its cap until somebody else than its own thread looks after that.
const CAP_GRACE: Duration = Duration::from_millis(100);

/// How often a run that computes for long is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// How long a run computes before it lets others go first.
const SLICE: Duration = Duration::from_millis(10);

/// One run.
pub(crate) struct Run {
    resources: Arc<Resources<Self>>,
    /// Where the runtime keeps this run.
    place: usize,
    host: Arc<dyn Host>,
    termination: Arc<Termination>,
    memory_limit: u64,
    report: bool,
    shared: Mutex<Shared>,
    answered: Condvar,
    /// The number of the call that has its answer, for a thread that looks without the lock.
    answer_of: AtomicU64,
    settled: AtomicBool,
    /// Since when the run computes, on the thread that does.
    slice: Mutex<Option<Slice>>,
    /// The scheduler's.
    stage: Stage,
    #[cfg(test)]
    panics_at: Option<Seam>,
}

/// The places between the steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    Start,
    Started,
    Parked,
    Ended,
    Settled,
    LetGo,
}

impl Seam {
    /// The file of a run that panics there.
    #[cfg(test)]
    pub(crate) fn file(self) -> String {
        format!("panics at {self:?}")
    }

    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] =
        [Self::Start, Self::Started, Self::Parked, Self::Ended, Self::Settled, Self::LetGo];
}

/// What the threads of a run share.
struct Shared {
    record: Record,
    phase: Phase,
    inbox: Vec<Inbound>,
    calls: u64,
    answer: Option<Completion>,
    /// CPU time of the slices that are over.
    computed: Duration,
    /// How often the run was parked: tells one parking from the next.
    parkings: u64,
}

enum Phase {
    /// In the queue, not started.
    Queued(Box<Request>),
    /// In the queue, to go on.
    Woken(Box<Isolate>),
    /// A thread has the isolate.
    Computing,
    /// Waits for the host.
    Parked(Box<Isolate>),
    /// Settled; the isolate is gone or on its way.
    Over,
}

/// A place where a test has this crate panic, in a run whose file is named for it.
fn seam(run: &Run, seam: Seam) {
    #[cfg(test)]
    assert!(run.panics_at != Some(seam), "as the test wants, at {seam:?}");
    let _ = (run, seam);
}

/// A stretch of computing. Its CPU time is only asked for once it is long: that is a system call,
/// and most runs are over in less time than a few of those take.
#[derive(Clone, Copy)]
struct Slice {
    wall: Instant,
    /// When the run was last looked at.
    looked: Instant,
    thread: Option<(Duration, ThreadTime)>,
}

impl Slice {
    fn new() -> Self {
        let now = Instant::now();
        Self { wall: now, looked: now, thread: None }
    }

    /// CPU time so far; wall time for as long as the thread's clock was not looked at.
    fn computed(&self) -> Duration {
        self.thread.map_or_else(|| self.wall.elapsed(), |(before, since)| before + since.elapsed())
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Run").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(
        resources: Arc<Resources<Self>>,
        place: usize,
        request: Request,
        host: Arc<dyn Host>,
    ) -> Self {
        Self {
            resources,
            place,
            host,
            termination: Arc::default(),
            memory_limit: request.memory_limit(),
            report: request.report,
            #[cfg(test)]
            panics_at: Seam::ALL.into_iter().find(|seam| seam.file() == request.filename()),
            shared: Mutex::new(Shared {
                record: Record::new(request.memory_limit()),
                phase: Phase::Queued(Box::new(request)),
                inbox: Vec::new(),
                calls: 0,
                answer: None,
                computed: Duration::ZERO,
                parkings: 0,
            }),
            answered: Condvar::new(),
            answer_of: AtomicU64::new(0),
            settled: AtomicBool::new(false),
            slice: Mutex::new(None),
            stage: Stage::default(),
        }
    }

    /// From the queue into the engine: the first turn, or the next one.
    fn start(self: &Arc<Self>) -> Option<(Box<Isolate>, Turn)> {
        self.check_threads();
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Computing);
        self.begin_slice();
        match phase {
            // What the host has sent by now waits for the end of the first turn: before it, the
            // isolate knows of none of the promises that it may be about.
            Phase::Queued(request) => self.first_turn(*request),
            Phase::Woken(mut isolate) | Phase::Parked(mut isolate) => {
                if self.is_settled() {
                    self.let_go(isolate);
                    return None;
                }
                let inbox = std::mem::take(&mut self.shared.lock().inbox);
                let turn = isolate.turn(inbox);
                Some((isolate, turn))
            }
            Phase::Computing | Phase::Over => {
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    fn first_turn(self: &Arc<Self>, request: Request) -> Option<(Box<Isolate>, Turn)> {
        if self.is_settled() {
            self.shared.lock().phase = Phase::Over;
            return None;
        }
        let embedder: Arc<dyn Embedder> = Arc::new(RunEmbedder(Arc::clone(self)));
        let resources = &self.resources;
        let begun = prepare::prepare(
            request,
            &resources.cache,
            &resources.pool,
            embedder,
            Arc::clone(&self.termination),
        );
        match begun {
            Prepared::Isolate(mut isolate) => {
                let turn = isolate.start();
                Some((isolate, turn))
            }
            Prepared::Over(end) => {
                self.settle(end, None);
                self.shared.lock().phase = Phase::Over;
                None
            }
        }
    }

    /// Puts the isolate aside until the host says something, unless it already has.
    fn park(self: &Arc<Self>, isolate: Box<Isolate>, waits_for_host: bool) -> Next {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return Next::Over(isolate);
        }
        if !shared.inbox.is_empty() {
            return Next::GoOn(isolate, std::mem::take(&mut shared.inbox));
        }
        if shared.record.is_asked() {
            // Asked to end between two turns: there is nothing left to interrupt.
            drop(shared);
            self.settle(End::Asked, Some(isolate.peak_bytes()));
            return Next::Over(isolate);
        }
        shared.parkings += 1;
        let parking = shared.parkings;
        shared.computed += self.end_slice();
        shared.phase = Phase::Parked(isolate);
        drop(shared);
        if !waits_for_host {
            self.resources.watchdog.watch_stalled(self, parking);
        }
        Next::Parked
    }

    fn let_go(&self, isolate: Box<Isolate>) {
        self.slice.lock().take();
        self.resources.pool.give_back(isolate.finish());
        self.shared.lock().phase = Phase::Over;
    }

    fn limit_bytes(&self) -> usize {
        usize::try_from(self.memory_limit).unwrap_or(usize::MAX)
    }

    /// Lets it go on if it is parked.
    fn wake(self: &Arc<Self>, mut shared: MutexGuard<'_, Shared>) {
        match std::mem::replace(&mut shared.phase, Phase::Computing) {
            Phase::Parked(isolate) => {
                shared.phase = Phase::Woken(isolate);
                drop(shared);
                self.resources.scheduler.enqueue(Arc::clone(self));
            }
            other => shared.phase = other,
        }
    }

    /// Asks the run to end; the first reason stays.
    fn end(self: &Arc<Self>, reason: Reason) {
        let mut shared = self.shared.lock();
        if self.is_settled() || shared.record.is_asked() {
            return;
        }
        shared.record.ask(reason);
        self.termination.raise();
        let computing = matches!(shared.phase, Phase::Computing);
        let (mut parked, mut request) = (false, None);
        match std::mem::replace(&mut shared.phase, Phase::Over) {
            Phase::Parked(isolate) => {
                shared.phase = Phase::Woken(isolate);
                parked = true;
            }
            // It stays in the queue, and holds nothing any more.
            Phase::Queued(unused) => request = Some(unused),
            other => shared.phase = other,
        }
        drop(shared);
        drop(request);
        self.answered.notify_all();
        if computing {
            self.resources.scheduler.tell_of_end(self);
            self.resources.watchdog.watch_ending(self);
            return;
        }
        self.settle(End::Asked, None);
        if parked {
            // A worker gives its isolate back; that is no work for the caller's thread.
            self.resources.scheduler.enqueue(Arc::clone(self));
        }
    }

    /// Ends the run if the runtime has lost too many threads for it to start, or to go on.
    fn check_threads(self: &Arc<Self>) {
        let stuck = self.resources.scheduler.stuck();
        if stuck < self.resources.max_stuck_threads {
            return;
        }
        let starts = matches!(self.shared.lock().phase, Phase::Queued(_));
        let most = self.resources.max_stuck_threads.saturating_mul(if starts { 1 } else { 2 });
        if stuck >= most {
            let what = if starts { "starts" } else { "goes on" };
            self.end(Reason::SafetyCap(format!(
                "{stuck} threads of the runtime do not come back from a builtin: no run {what} in it \
                 until one does"
            )));
        }
    }

    /// Whether the run waits for its host and for nothing else.
    pub(crate) fn parked(&self) -> bool {
        matches!(self.shared.lock().phase, Phase::Parked(_))
    }

    /// Whether nobody has asked it to end, nor ended it.
    fn goes_on(&self) -> bool {
        !self.is_settled() && !self.shared.lock().record.is_asked()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// The end of the run, for everyone to see. The first to come settles it.
    fn settle(&self, end: End, peak_bytes: Option<usize>) {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return;
        }
        let status = shared.record.settle(end, peak_bytes.map(|bytes| bytes as u64));
        shared.inbox.clear();
        self.settled.store(true, Ordering::Release);
        drop(shared);
        self.resources.registry.settle(self.place, status);
        self.answered.notify_all();
        // Whose thread this is (the caller's, the watchdog's) has nothing to do with a host that
        // panics here.
        drop(catch_unwind(AssertUnwindSafe(|| self.host.settled())));
    }

    fn begin_slice(&self) {
        *self.slice.lock() = Some(Slice::new());
    }

    fn end_slice(&self) -> Duration {
        self.slice.lock().take().map_or(Duration::ZERO, |slice| slice.computed())
    }
}

impl Job for Run {
    fn compute(self: &Arc<Self>, finishing: &Cell<bool>) {
        seam(self, Seam::Start);
        let Some((mut isolate, mut turn)) = self.start() else { return };
        seam(self, Seam::Started);
        loop {
            match turn {
                Turn::Ended(end) => {
                    finishing.set(self.resources.scheduler.finishing(self));
                    seam(self, Seam::Ended);
                    self.settle(end, Some(isolate.peak_bytes()));
                    seam(self, Seam::Settled);
                    self.let_go(isolate);
                    seam(self, Seam::LetGo);
                    return;
                }
                Turn::Idle { waits_for_host } => match self.park(isolate, waits_for_host) {
                    Next::Parked => return seam(self, Seam::Parked),
                    Next::Over(isolate) => return self.let_go(isolate),
                    Next::GoOn(same, inbox) => {
                        isolate = same;
                        turn = isolate.turn(inbox);
                    }
                },
            }
        }
    }

    /// Settles it: this crate itself failed.
    fn break_down(&self) {
        self.settle(End::Broken, None);
        self.slice.lock().take();
        // Its isolate, if it was put aside, is not given back, but gone.
        let phase = std::mem::replace(&mut self.shared.lock().phase, Phase::Over);
        drop(phase);
    }

    fn has_ended(&self) -> bool {
        self.is_settled()
    }

    fn left_the_queue(&self) -> bool {
        self.is_settled() && matches!(self.shared.lock().phase, Phase::Over)
    }

    fn is_ending(&self) -> bool {
        self.termination.is_raised()
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }
}

impl Watched for Run {
    fn force(self: &Arc<Self>) {
        if !self.is_settled() {
            self.resources.scheduler.abandon(self);
            let exhausted = self.termination.is_exhausted();
            self.settle(if exhausted { End::Memory } else { End::Asked }, None);
            // It may have been the last that a closed runtime waited for.
            self.resources.close_when_idle();
        }
    }

    fn end_stalled(self: &Arc<Self>, parking: u64) {
        let stalled = {
            let shared = self.shared.lock();
            matches!(shared.phase, Phase::Parked(_)) && shared.parkings == parking
        };
        if stalled {
            self.end(Reason::stalled());
        }
    }

    fn check_cap(self: &Arc<Self>, now: Instant) {
        if self.termination.is_exhausted() {
            self.resources.watchdog.watch_ending(self);
        }
        let slice = *self.slice.lock();
        let Some(Slice { wall, .. }) = slice else { return };
        let cap = self.resources.safety_cap;
        let computed = self.shared.lock().computed;
        if now.saturating_duration_since(wall) + computed > cap + CAP_GRACE {
            self.end(Reason::cap(cap));
        }
    }
}

impl RunControl for Run {
    fn is_here(&self) -> bool {
        self.resources.is_here()
    }

    fn running(&self) -> bool {
        !self.is_settled()
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        self.end(Reason::of_caller(reason));
    }

    fn deliver(self: Arc<Self>, mut inbound: Inbound) {
        let mut shared = self.shared.lock();
        if self.is_settled() {
            return;
        }
        let limit = self.limit_bytes();
        if inbound.count(&self.termination.in_flight, limit) {
            shared.inbox.push(inbound);
        } else {
            // It finds that as soon as it goes on.
            self.termination.exhaust();
        }
        self.wake(shared);
    }

    fn charge(self: Arc<Self>, bytes: usize) -> Option<Charge> {
        let charge = self.termination.in_flight.charge(bytes, self.limit_bytes());
        if charge.is_none() {
            self.termination.exhaust();
            let shared = self.shared.lock();
            if !self.is_settled() {
                self.wake(shared);
            }
        }
        charge
    }

    fn reply(self: Arc<Self>, call: u64, completion: Completion) {
        let mut shared = self.shared.lock();
        if shared.calls == call && shared.answer.is_none() {
            shared.answer = Some(completion);
            self.answer_of.store(call, Ordering::Release);
            drop(shared);
            self.answered.notify_all();
        }
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

/// What parking came to.
enum Next {
    Parked,
    Over(Box<Isolate>),
    GoOn(Box<Isolate>, Vec<Inbound>),
}

/// A run as its isolate sees it.
struct RunEmbedder(Arc<Run>);

impl Embedder for RunEmbedder {
    fn call(&self, function: u32, args: Value) -> Option<Completion> {
        let run = &self.0;
        let call = {
            let mut shared = run.shared.lock();
            if run.is_settled() || shared.record.is_asked() {
                return None;
            }
            shared.calls += 1;
            shared.answer = None;
            shared.calls
        };
        run.host.call(function, args, HostCall::new(Arc::clone(run) as Arc<dyn RunControl>, call));
        let started = Instant::now();
        let spin = &run.resources.spin;
        let is_there = || run.answer_of.load(Ordering::Acquire) == call;
        let hurries = || run.resources.scheduler.others_wait() && started.elapsed() > SHARED_LOOK;
        spin.look(started, || is_there() || hurries());
        let found = is_there();
        let answer = self.await_answer(call);
        spin.learn(started.elapsed(), found);
        answer
    }

    fn start(&self, function: u32, args: Value, promise: u32) -> bool {
        let goes_on = self.0.goes_on();
        if goes_on {
            self.0.host.start(function, args, promise);
        }
        goes_on
    }

    fn report(&self, value: Value) -> Option<Completion> {
        {
            let mut shared = self.0.shared.lock();
            if self.0.is_settled() || shared.record.is_asked() {
                return None;
            }
            shared.record.report(value);
        }
        if self.0.report {
            self.call(REPORT_SINK, Value::undefined())
        } else {
            Some(Ok(Value::undefined()))
        }
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        let host = &self.0.host;
        if message.kinds().intersects(host.validated_kinds()) {
            host.refusal(message)
        } else {
            None
        }
    }

    fn log(&self, level: LogLevel, args: Value) {
        let mut shared = self.0.shared.lock();
        if !self.0.is_settled() {
            shared.record.log(ExecutionLog::now(level, args));
        }
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        if !self.0.is_settled() {
            self.0.host.function_settled(call, completion);
        }
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        if !self.0.is_settled() {
            self.0.host.promise_settled(promise, completion);
        }
    }

    fn poll(&self, now: Instant) {
        let run = &self.0;
        let slice = {
            let mut slice = run.slice.lock();
            let Some(slice) = &mut *slice else { return };
            let wall = now.saturating_duration_since(slice.wall);
            if wall < SLICE || now.saturating_duration_since(slice.looked) < LOOK {
                return;
            }
            slice.looked = now;
            slice.thread.get_or_insert_with(|| (wall, ThreadTime::now()));
            *slice
        };
        let computed = run.shared.lock().computed;
        if computed + slice.computed() > run.resources.safety_cap {
            run.end(Reason::cap(run.resources.safety_cap));
        } else if run.resources.scheduler.others_wait() {
            let computed = run.end_slice();
            run.shared.lock().computed += computed;
            run.resources.scheduler.step_aside(run);
            run.begin_slice();
        }
    }
}

impl RunEmbedder {
    fn await_answer(&self, call: u64) -> Option<Completion> {
        let run = &self.0;
        let mut shared = run.shared.lock();
        if shared.answer.is_none() && !shared.record.is_asked() {
            // The thread sleeps now; others may compute meanwhile.
            shared.computed += run.end_slice();
            drop(shared);
            run.resources.scheduler.release_permit(run);
            shared = run.shared.lock();
            while shared.answer.is_none() && !shared.record.is_asked() && !run.is_settled() {
                shared = run.answered.wait(shared);
            }
            drop(shared);
            run.resources.scheduler.take_permit(run);
            run.begin_slice();
            shared = run.shared.lock();
        }
        let ended = shared.record.is_asked() || run.is_settled() || shared.calls != call;
        let answer = shared.answer.take();
        if ended { None } else { answer }
    }
}
