//! The state of one run, or one cell, of a kit.
//!
//! In: calls of capabilities, and the end of the run. Out: limits, records of the calls, and a result without secrets.
//! A run that ended by itself waits here for its calls of `state` and `db`.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use isolane::{
    Completion, ExecutionError, ExecutionLog, ExecutionResult, Interception, LogLevel, NativeRun,
    Rest, RunHandle, RunInterceptor, SessionState, Spelling, Status, Value,
    value::{Event, Writer},
};

use super::{
    Inner,
    amend::number,
    calls::{CallRecord, Calls, Ended, Summary, summary},
    host_side::written,
    left::Left,
    outgoing::{redact_result, take_json},
};
use crate::{
    error::KitError,
    fetch::FetchFunctions,
    message_copy::{Redacting, redacted},
    redaction::Redactor,
};

/// A result of so many bytes is searched for secrets at once: that takes about as long as another thread needs to begin.
const SOON_BYTES: usize = 16 << 10;

/// The facts that a kit has about a run beside its result. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct KitRun(pub(super) Arc<RunState>);

/// The parts that a kit adds to a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KitOutcome {
    /// The JSON text of the value of a tool that succeeded.
    pub json: Option<String>,
    /// The calls of capabilities, in order.
    pub calls: Vec<CallRecord>,
    /// How many further calls have no record.
    pub calls_dropped: u64,
}

impl KitOutcome {
    /// Writes the parts under the names that a result has them by.
    fn write(&self, out: &mut Writer, spelling: Spelling) {
        let is_camel = spelling == Spelling::Camel;
        let name = |camel, snake| if is_camel { camel } else { snake };
        out.object();
        if let Some(json) = &self.json {
            out.key("json");
            out.string(json);
        }
        out.key("calls");
        out.array(u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
        for CallRecord { name: function, started, duration_ms, ok, bytes, summary, error } in
            &self.calls
        {
            out.object();
            out.key("name");
            out.string(function);
            out.key("started");
            out.double(*started);
            out.key(name("durationMs", "duration_ms"));
            out.double(*duration_ms);
            out.key("ok");
            out.bool(*ok);
            out.key("bytes");
            out.number(number(*bytes));
            out.key("summary");
            out.string(summary);
            if let Some(error) = error {
                out.key("error");
                out.string(error);
            }
            out.end_object();
        }
        out.key(name("callsDropped", "calls_dropped"));
        out.number(number(self.calls_dropped));
        out.end_object();
    }
}

impl KitRun {
    /// The state of an intercepted run or cell; `None` if no kit intercepts it.
    #[must_use]
    pub fn of(interception: &Interception) -> Option<Self> {
        interception.find().map(Self)
    }

    /// Announces a command for the page to all callers of live runs: one of them may block the thread of the page, on which
    /// other callers wait.
    pub(crate) fn announce_to_all(&self) {
        self.announce();
        let (me, kit) = (Arc::as_ptr(&self.0), &self.0.kit);
        for other in kit.callers.all().filter(|other| Arc::as_ptr(other) != me) {
            if let Some(announce) = other.locked(|inside| inside.announce.given()) {
                announce();
            }
        }
    }

    /// Announces a command for the page, as soon as it is known how.
    pub(crate) fn announce(&self) {
        let (is_over, own) = self.0.locked(|inside| {
            let own = inside.announce.given();
            if own.is_none() {
                inside.announce = Announce::Owed;
            }
            (own.is_some() && inside.life != Life::Live, own)
        });
        // The caller of a later cell has the page now.
        let later =
            if is_over { self.0.left.upgrade().and_then(|left| left.newest()) } else { None };
        if let Some(announce) = later.or(own) {
            announce();
        }
    }

    /// The time that the run has left at most: it began before its first call. Calls of a cell may outlive it.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let first = self.0.locked(|inside| inside.first_call)?;
        let is_run = matches!(self.0.kind, Kind::Tool | Kind::Code);
        is_run.then(|| self.0.timeout.saturating_sub(first.elapsed()))
    }

    /// Whether it has ended, and its calls with it. Those of a cell may outlive it.
    pub(crate) fn is_over(&self) -> bool {
        self.0.locked(|inside| self.0.is_over(inside))
    }

    /// Has the run not settle while that is held, for [`MOST_HOLD`] at most.
    pub(crate) fn hold(&self) -> Hold {
        self.0.locked(|inside| inside.holds += 1);
        Hold(Arc::clone(&self.0))
    }

    /// Calls the hook when the calls are given up with their run or cell, unless the hook is gone by then. Says whether they are
    /// not given up yet.
    pub(crate) fn on_loss(&self, hook: &Arc<Hook>) -> bool {
        self.0.locked(|inside| {
            let is_live = inside.life != Life::Lost && !self.0.is_over(inside);
            inside.on_loss.retain(|hook| hook.strong_count() > 0);
            if is_live {
                inside.on_loss.push(Arc::downgrade(hook));
            }
            is_live
        })
    }

    /// The parts that the kit adds to the result, once, after the result was taken. Without secrets.
    #[must_use]
    pub fn outcome(&self) -> KitOutcome {
        self.0.locked(|inside| std::mem::take(&mut inside.outcome))
    }
}

/// The longest time for which a page holds its run after the end: as long as a page takes to be left, at most.
const MOST_HOLD: Duration = Duration::from_secs(10);

/// Work that is not the host's yet although its run has ended: that of a page, which comes to rest.
pub(crate) struct Hold(Arc<RunState>);

impl Drop for Hold {
    fn drop(&mut self) {
        let rest = self.0.locked(|inside| {
            inside.holds -= 1;
            if inside.holds == 0 { inside.held.take() } else { None }
        });
        // This may end the run.
        drop(rest);
    }
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its value comes with its JSON text.
    Tool,
    /// A module, or what happens outside of cells.
    Code,
    /// A cell, which ends without waiting for its calls.
    Cell,
    /// A call by the host between cells, which ends so, too, and has no result.
    Held,
}

/// The state of a run.
pub(super) struct RunState {
    pub(super) kit: Arc<Inner>,
    me: Weak<Self>,
    kind: Kind,
    /// The functions of its requests.
    pub(super) fetch: Option<FetchFunctions>,
    /// Of a cell: those whose calls outlive theirs.
    left: Weak<Left>,
    began: Instant,
    /// How long its calls may work on after its end, counted from its beginning.
    timeout: Duration,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    calls: Calls,
    /// When the first call began.
    first_call: Option<Instant>,
    /// The calls of `state` and `db` that are under way.
    awaited: usize,
    /// Held while those are under way after the end.
    rest: Option<Rest>,
    /// How often the page is in use.
    holds: usize,
    /// Held while it is, after the end.
    held: Option<Rest>,
    /// The logs of requests that had no answer when the run ended by itself.
    unanswered: Vec<String>,
    /// The parts that the kit adds to the result, once that is there.
    outcome: KitOutcome,
    /// Somebody has terminated the run after its end: its value is not needed.
    is_terminated: bool,
    /// The time was over during that rest.
    is_late: bool,
    life: Life,
    announce: Announce,
    /// The place among the live runs of the kit.
    place: Option<u64>,
    /// Called when the calls are given up with their run or cell.
    on_loss: Vec<Weak<Hook>>,
}

/// Something to do at an end.
pub(crate) type Hook = dyn Fn() + Send + Sync;

/// Whether a run goes on.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Life {
    #[default]
    Live,
    /// Its caller's thread hears no news of it.
    Over,
    /// Its calls were given up with it: its session has forgotten it.
    Lost,
}

/// The announcement of commands for a page.
#[derive(Default)]
enum Announce {
    #[default]
    Unknown,
    /// It is not known yet, and there is a command.
    Owed,
    Given(Arc<dyn Fn() + Send + Sync>),
}

impl Announce {
    fn given(&self) -> Option<Arc<dyn Fn() + Send + Sync>> {
        if let Self::Given(announce) = self { Some(Arc::clone(announce)) } else { None }
    }
}

/// The runs whose callers hear of commands for a page.
#[derive(Default)]
pub(super) struct Callers(Mutex<Vec<Weak<RunState>>>);

impl Callers {
    fn add(&self, run: &Weak<RunState>) {
        self.locked().push(Weak::clone(run));
    }

    fn remove(&self, run: &Weak<RunState>) {
        self.locked().retain(|other| other.strong_count() > 0 && !other.ptr_eq(run));
    }

    fn all(&self) -> impl Iterator<Item = Arc<RunState>> {
        let all: Vec<_> = self.locked().iter().filter_map(Weak::upgrade).collect();
        all.into_iter()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Weak<RunState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunState {
    /// The state of a run of its own.
    pub(super) fn new(
        kit: &Arc<Inner>,
        kind: Kind,
        fetch: Option<FetchFunctions>,
        timeout_ms: f64,
    ) -> Arc<Self> {
        Self::in_session(kit, kind, fetch, timeout_ms, Weak::new())
    }

    /// That of a cell.
    pub(super) fn in_session(
        kit: &Arc<Inner>,
        kind: Kind,
        fetch: Option<FetchFunctions>,
        timeout_ms: f64,
        left: Weak<Left>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            kit: Arc::clone(kit),
            kind,
            fetch,
            left,
            began: Instant::now(),
            timeout: Duration::from_secs_f64(timeout_ms.clamp(0.0, 1e12) / 1e3),
            inside: Mutex::default(),
        })
    }

    /// The run that calls a function of a kit.
    pub(super) fn of(run: &NativeRun) -> Option<Arc<Self>> {
        run.interception().and_then(KitRun::of).map(|run| run.0)
    }

    /// Has its calls while no other thread has them.
    pub(super) fn with_calls<T>(&self, act: impl FnOnce(&mut Calls) -> T) -> T {
        self.locked(|inside| act(&mut inside.calls))
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Inside) -> T) -> T {
        act(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.kit.secrets.snapshot().outputs)
    }

    /// A call begins. `is_awaited`: the end of the run waits for it.
    pub(super) fn begin(
        self: &Arc<Self>,
        name: &'static str,
        (summary, bytes): (Summary, u64),
        run: &NativeRun,
        is_awaited: bool,
    ) -> Result<Pending, KitError> {
        let options = &self.kit.options;
        let most = (options.max_calls, options.max_recorded_calls);
        let place = self.locked(|inside| {
            inside.first_call.get_or_insert_with(Instant::now);
            let place = inside.calls.begin(most, name, (summary, bytes), run)?;
            inside.awaited += usize::from(is_awaited);
            Ok(place)
        })?;
        Ok(Pending { run: Arc::clone(self), place, is_awaited, is_done: false })
    }

    /// A call has ended. `is_awaited`: the end of the run waits for it.
    fn one_done(&self, place: Option<usize>, ended: Ended, is_awaited: bool) {
        let rest = self.locked(|inside| {
            if let Some(place) = place {
                inside.calls.end(place, ended);
            }
            if !is_awaited {
                return None;
            }
            inside.awaited -= 1;
            let is_over = |awaited: usize| awaited == 0 || self.began.elapsed() > self.timeout;
            if inside.rest.is_some() && is_over(inside.awaited) { inside.rest.take() } else { None }
        });
        // This may end the run.
        drop(rest);
    }

    /// The time was over while calls were under way that nobody awaited.
    fn be_late(&self, result: &mut ExecutionResult) {
        result.status = Status::Terminated;
        result.result = None;
        let message = format!("the run took longer than {} ms", self.timeout.as_millis());
        result.error =
            Some(ExecutionError { name: "Timeout".into(), message, ..ExecutionError::default() });
    }

    /// The records of the calls that have ended: those that earlier cells left going, and its own. `goes_on`: those that
    /// have not ended do. Otherwise they are aborted.
    fn records(&self, goes_on: bool) -> (Vec<CallRecord>, u64) {
        let left = self.left.upgrade();
        let earlier = left.as_ref().map(|left| left.take_records()).unwrap_or_default();
        let (mut calls, mut dropped) = earlier;
        let (own, own_dropped) = self.locked(|inside| {
            if !goes_on {
                inside.calls.abort();
            }
            inside.calls.take_records()
        });
        calls.extend(own);
        let most = self.kit.options.max_recorded_calls;
        if let (Some(left), Some(me)) = (left, self.me.upgrade()) {
            left.add(me, most);
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        dropped += own_dropped + calls.len().saturating_sub(most) as u64;
        calls.truncate(most);
        (calls, dropped)
    }

    /// The records of the calls, and the JSON text, without secrets.
    fn complete(&self, redactor: &Arc<Redactor>, json: Option<String>, goes_on: bool) {
        let (mut calls, calls_dropped) = self.records(goes_on);
        for call in &mut calls {
            redact(redactor, &mut call.summary);
            call.summary = summary(std::mem::take(&mut call.summary));
            call.error.iter_mut().for_each(|name| redact(redactor, name));
        }
        self.locked(|inside| {
            let json = json.filter(|_| !inside.is_terminated);
            inside.outcome = KitOutcome { json, calls, calls_dropped };
        });
    }

    /// Whether it has ended, and its calls with it.
    fn is_over(&self, inside: &Inside) -> bool {
        matches!(self.kind, Kind::Tool | Kind::Code) && inside.life != Life::Live
    }

    /// Ends the wait for a page that does not come to rest.
    fn limit_hold(&self) {
        if self.locked(|inside| inside.held.is_none()) {
            return;
        }
        let run = Weak::clone(&self.me);
        drop(isolane::spawn(async move {
            tokio::time::sleep(MOST_HOLD).await;
            let Some(run) = run.upgrade() else { return };
            let held = run.locked(|inside| inside.held.take());
            drop(held);
        }));
    }

    /// Ends the wait for calls of a run that has ended by itself when its time is over.
    fn limit_rest(self: &Arc<Self>) {
        let left = self.timeout.saturating_sub(self.began.elapsed());
        let run = Arc::downgrade(self);
        drop(isolane::spawn(async move {
            tokio::time::sleep(left).await;
            let Some(run) = run.upgrade() else { return };
            let rest = run.locked(|inside| {
                inside.is_late = inside.rest.is_some();
                inside.rest.take()
            });
            drop(rest);
        }));
    }
}

impl RunInterceptor for RunState {
    fn started(&self, run: &RunHandle) {
        let place = self.kit.live.add(run);
        self.locked(|inside| inside.place = Some(place));
        if !run.running() {
            self.kit.live.remove(place);
        }
    }

    fn concluded(&self, state: SessionState) {
        if self.kind != Kind::Held {
            if state != SessionState::Kept {
                let hooks = self.locked(|inside| {
                    inside.life = Life::Lost;
                    std::mem::take(&mut inside.on_loss)
                });
                hooks.iter().filter_map(Weak::upgrade).for_each(|hook| hook());
            }
            return;
        }
        if state != SessionState::Kept {
            self.locked(|inside| inside.calls.abort());
        }
        if let (Some(left), Some(me)) = (self.left.upgrade(), self.me.upgrade()) {
            left.add(me, self.kit.options.max_recorded_calls);
        }
    }

    fn ended(&self, by_itself: bool, rest: Rest) {
        if self.kit.page.is_some() {
            self.kit.callers.remove(&self.me);
        }
        let (place, rest, lost) = self.locked(|inside| {
            if inside.life == Life::Live {
                inside.life = Life::Over;
            }
            // Calls for the page are given up at once. The page comes to rest before the host may use it.
            let mut lost = Vec::new();
            if self.is_over(inside) {
                lost = std::mem::take(&mut inside.on_loss);
                if inside.holds > 0 {
                    inside.held = Some(rest.clone());
                }
            }
            let rest = if by_itself {
                inside.unanswered = inside.calls.unanswered();
                if inside.awaited > 0 {
                    inside.rest = Some(rest);
                    return (None, None, lost);
                }
                rest
            } else {
                rest
            };
            (inside.place.take(), Some(rest), lost)
        });
        lost.iter().filter_map(Weak::upgrade).for_each(|hook| hook());
        self.limit_hold();
        if let Some(place) = place {
            self.kit.live.remove(place);
        }
        if rest.is_none()
            && matches!(self.kind, Kind::Tool | Kind::Code)
            && let Some(run) = self.me.upgrade()
        {
            run.limit_rest();
        }
        drop(rest);
    }

    fn report(&self, report: &Value) -> Option<Value> {
        redacted(report, &self.redactor())
    }

    fn takes_long(&self, bytes: usize) -> bool {
        bytes + self.locked(|inside| inside.calls.kept_bytes()) > SOON_BYTES
    }

    fn result(&self, mut result: ExecutionResult) -> ExecutionResult {
        if let Some(place) = self.locked(|inside| inside.place.take()) {
            self.kit.live.remove(place);
        }
        for text in self.locked(|inside| std::mem::take(&mut inside.unanswered)) {
            result.logs.push(warning(&text));
        }
        if self.locked(|inside| inside.is_late) && result.status == Status::Success {
            self.be_late(&mut result);
        }
        let redactor = self.redactor();
        let is_wanted = || !self.locked(|inside| inside.is_terminated);
        let json = if self.kind == Kind::Tool { take_json(&mut result) } else { None };
        let json = redact_result(&mut result, json, &Redacting::new(&redactor, &is_wanted));
        let cell = result.cell.as_ref();
        let goes_on = cell.is_some_and(|cell| cell.session == SessionState::Kept);
        self.complete(&redactor, json, goes_on);
        result
    }

    fn terminated(&self) {
        self.locked(|inside| {
            inside.is_terminated = true;
            inside.outcome.json = None;
        });
    }

    fn extra(&self) -> Option<Value> {
        let outcome = self.locked(|inside| std::mem::take(&mut inside.outcome));
        Some(written(|out| outcome.write(out, self.kit.options.spelling)))
    }

    /// Its news are commands for a page that belongs to the thread of the run's caller.
    fn announce_with(&self, announce: Arc<dyn Fn() + Send + Sync>) {
        let (told, is_live) = self.locked(|inside| {
            let given = Announce::Given(Arc::clone(&announce));
            (std::mem::replace(&mut inside.announce, given), inside.life == Life::Live)
        });
        let hears_of_all = is_live && self.kit.page.is_some();
        if hears_of_all {
            self.kit.callers.add(&self.me);
            // It may have ended in between.
            if self.locked(|inside| inside.life != Life::Live) {
                self.kit.callers.remove(&self.me);
            }
        }
        if let Some(left) = self.left.upgrade() {
            left.set_newest(Arc::clone(&announce));
        }
        // There may be a command of a run whose caller's thread is blocked by this one's.
        if hears_of_all || matches!(told, Announce::Owed) {
            announce();
        }
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunState").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A call under way. Dropped without an outcome it was aborted.
pub(super) struct Pending {
    run: Arc<RunState>,
    place: Option<usize>,
    is_awaited: bool,
    is_done: bool,
}

impl Pending {
    /// The call has ended with that outcome.
    pub(super) fn finish(mut self, completion: &Completion) {
        let (bytes, error) = match completion {
            Ok(value) => (size(value), None),
            Err(error) => (size(error), Some(name_of(error))),
        };
        self.is_done = true;
        self.run.one_done(self.place, Ended { bytes, error }, self.is_awaited);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_done {
            let aborted = Ended { bytes: 0, error: Some("Aborted".to_owned()) };
            self.run.one_done(self.place, aborted, self.is_awaited);
        }
    }
}

/// The bytes of a message.
pub(super) fn size(message: &Value) -> u64 {
    let blobs: usize = message.blobs().iter().map(Vec::len).sum();
    (message.nodes().len() + blobs) as u64
}

/// The name of a thrown error.
fn name_of(error: &Value) -> String {
    let mut reader = error.reader();
    match (reader.event(), reader.text()) {
        (Ok(Event::Error(_)), Ok(name)) => name.to_string_lossy(),
        _ => "Error".to_owned(),
    }
}

/// A log of level `warn`.
fn warning(text: &str) -> ExecutionLog {
    let mut writer = Writer::new();
    writer.array(1);
    writer.string(text);
    ExecutionLog::now(LogLevel::Warn, writer.finish())
}

pub(super) fn redact(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(new) = redactor.text(text) {
        *text = new;
    }
}
