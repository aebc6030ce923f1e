//! The state of a service: its processes, its queue and its places.
//!
//! In: requests and ends. Out: the table of states: each change of a process's state is made here, under the service's
//! lock, and told to the readers.
//!
//! Locks: first the service's, then a process's.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use isolane::Spelling;
use tokio::{runtime::Handle, sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{counts::Counts, drive, recent::Recent};
use crate::{
    Environment, ExecutionExitState, ListQuery, NewProcess, ProblemType, ProcessError, ProcessList,
    ProcessRecord, ProcessServiceOptions, ProcessState, RunQuery,
    database::{Database, not_found},
    event::Changes,
    locks::lock,
    process::{Body, Bounds, End, Live, Phase, Process},
    tools::table::ToolTable,
};

/// The time for which a process stays beyond `retain_count`.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// The bytes of results that may wait for the disk before nothing more is started.
const MOST_UNSAVED: u64 = 64 << 20;

/// A service.
pub(crate) struct Inner {
    pub(crate) options: ProcessServiceOptions,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) handle: Handle,
    pub(super) state: Mutex<State>,
    pub(crate) database: Option<Database>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) tools: Mutex<Arc<ToolTable>>,
    pub(crate) counts: Mutex<Counts>,
    /// The number of executions in the environment.
    pub(crate) busy: watch::Sender<usize>,
    /// Whether the service has shut down.
    pub(crate) is_over: watch::Sender<bool>,
}

#[derive(Default)]
pub(super) struct State {
    /// Without a database all processes; else those that are at work, that are not saved, or that have just ended.
    pub(super) processes: BTreeMap<u64, Arc<Process>>,
    last_pid: u64,
    /// Those that wait for a place.
    queue: VecDeque<u64>,
    /// Those that will wait for a place as soon as they are saved.
    pub(super) pending: usize,
    /// The bytes of those that have ended and are not saved.
    pub(super) unsaved_bytes: u64,
    /// Those that have ended and are saved.
    pub(super) recent: Recent,
    /// Places that are taken.
    taken: usize,
    /// Idle processes, each by its place in the order in which they became idle, and since when.
    idle: BTreeMap<u64, (Instant, u64)>,
    last_idle: u64,
    is_shutting_down: bool,
}

/// An execution that may start.
struct Start {
    process: Arc<Process>,
    attempt: u64,
}

impl Inner {
    pub(crate) fn new(
        options: ProcessServiceOptions,
        environment: Arc<dyn Environment>,
        handle: Handle,
        database: Option<Database>,
        (last_pid, last_change): (u64, u64),
    ) -> Self {
        Self {
            options,
            environment,
            handle,
            state: Mutex::new(State { last_pid, ..State::default() }),
            database,
            changes: Arc::new(Changes::new(last_change)),
            tools: Mutex::default(),
            counts: Mutex::default(),
            busy: watch::Sender::new(0),
            is_over: watch::Sender::new(false),
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            stream_bytes: self.options.max_stream_bytes,
            output_bytes: self.options.max_output_bytes,
        }
    }

    /// A new process, which the service has not yet; [`created`](Self::created) gives it to the service.
    pub(crate) fn prepare(
        &self,
        new: NewProcess,
    ) -> Result<(Arc<Process>, ProcessRecord), ProcessError> {
        new.check(self.options.max_timeout_ms, Spelling::Camel)?;
        let timeout_ms = new.timeout_ms.or(self.options.default_timeout_ms);
        let mut state = lock(&self.state);
        self.check_room(&state, new.autorun)?;
        state.last_pid += 1;
        let process = Process::new(state.last_pid, new.code, timeout_ms, self.saver());
        let record = {
            let mut body = process.body();
            if new.autorun {
                body.queue();
                state.pending += 1;
            }
            process.record(&body, true)
        };
        Ok((Arc::new(process), record))
    }

    /// A new process is there. With a database its row is.
    pub(crate) fn created(self: &Arc<Self>, process: &Arc<Process>, is_queued: bool) {
        {
            let mut state = lock(&self.state);
            let mut body = process.body();
            self.tell_change(process, &body);
            if is_queued {
                state.pending -= 1;
                state.processes.insert(process.pid, Arc::clone(process));
                state.queue.push_back(process.pid);
                if state.is_shutting_down {
                    self.kill_locked(&mut state, process, &mut body);
                }
            } else if self.database.is_some() {
                body.store();
            } else {
                state.processes.insert(process.pid, Arc::clone(process));
                rest(&mut state, process.pid, &mut body);
            }
            drop(body);
            self.retain(&mut state);
        }
        process.tell();
        self.dispatch();
    }

    /// Queues an idle process that is in memory.
    pub(crate) fn queue_again(
        self: &Arc<Self>,
        pid: u64,
        query: RunQuery,
    ) -> Result<ProcessRecord, ProcessError> {
        let (process, record) = {
            let mut state = lock(&self.state);
            self.retain(&mut state);
            let process = find(&state, pid)?;
            let record = self.queue_locked(&mut state, &process, query)?;
            (process, record)
        };
        process.tell();
        self.dispatch();
        Ok(record)
    }

    /// Queues an idle process that was not in memory.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        process: &Arc<Process>,
    ) -> Result<ProcessRecord, ProcessError> {
        let record = {
            let mut state = lock(&self.state);
            let record = self.queue_locked(&mut state, process, RunQuery { force: true })?;
            state.processes.insert(process.pid, Arc::clone(process));
            record
        };
        process.tell();
        self.dispatch();
        Ok(record)
    }

    fn queue_locked(
        &self,
        state: &mut State,
        process: &Process,
        query: RunQuery,
    ) -> Result<ProcessRecord, ProcessError> {
        let mut body = process.body();
        if body.state != ProcessState::Idle {
            return Err(not_idle(process.pid, &body));
        }
        if body.exit_state.is_some() && !query.force {
            return Err(ProcessError::has_results(process.pid));
        }
        self.check_room(state, true)?;
        body.clear();
        state.idle.remove(&body.idle_place);
        state.unsaved_bytes -= body.unsaved_bytes.take().unwrap_or_default();
        body.queue();
        state.queue.push_back(process.pid);
        self.tell_change(process, &body);
        Ok(process.record(&body, true))
    }

    /// Kills a process.
    pub(crate) fn kill(self: &Arc<Self>, pid: u64) -> Result<ProcessRecord, ProcessError> {
        let (process, record) = {
            let mut state = lock(&self.state);
            self.retain(&mut state);
            let process = find(&state, pid)?;
            let mut body = process.body();
            if body.state == ProcessState::Idle {
                return Err(ProcessError::already_idle(pid));
            }
            self.kill_locked(&mut state, &process, &mut body);
            let record = process.record(&body, true);
            drop(body);
            (process, record)
        };
        process.tell();
        Ok(record)
    }

    /// Kills a process that is not idle.
    fn kill_locked(&self, state: &mut State, process: &Arc<Process>, body: &mut Body) {
        match &body.live {
            None => {
                state.queue.retain(|queued| *queued != process.pid);
                let end = End { state: ExecutionExitState::Canceled, error: None, details: None };
                self.finish(state, process, body, end);
            }
            Some(live) if body.state != ProcessState::Terminating => {
                live.killed.cancel();
                body.set_state(ProcessState::Terminating);
                self.tell_change(process, body);
            }
            Some(_) => {}
        }
    }

    /// The environment says that the code waits.
    pub(crate) fn waits(process: &Process, attempt: u64) {
        let body = process.body();
        let live = body.live.as_ref().filter(|_| body.attempt == attempt);
        if let Some(live) = live {
            live.phase.send_if_modified(|phase| {
                let is_first = *phase == Phase::Silent;
                if is_first {
                    *phase = Phase::Queued;
                }
                is_first
            });
        }
    }

    /// The environment says that the code runs.
    pub(crate) fn starts(&self, process: &Arc<Process>, attempt: u64) {
        {
            let _order = lock(&self.state);
            let mut body = process.body();
            if body.attempt != attempt || body.state != ProcessState::Queued {
                return;
            }
            let now = Instant::now();
            let Some(live) = &mut body.live else { return };
            live.since = now;
            live.phase.send_replace(Phase::Running(now));
            body.started();
            body.set_state(ProcessState::Running);
            let waited = now.saturating_duration_since(body.queued);
            lock(&self.counts).queue.add(waited);
            self.tell_change(process, &body);
        }
        process.tell();
    }

    /// The execution in the environment is over, or was given up: its place is free.
    pub(crate) fn settle(
        self: &Arc<Self>,
        process: &Arc<Process>,
        attempt: u64,
        end: impl FnOnce(&mut Body) -> End,
    ) {
        {
            let mut state = lock(&self.state);
            let mut body = process.body();
            if body.attempt == attempt && body.live.is_some() {
                if let Some(live) = &body.live {
                    let time = Instant::now().saturating_duration_since(live.since);
                    lock(&self.counts).duration.add(time);
                }
                let end = end(&mut body);
                self.finish(&mut state, process, &mut body, end);
            }
            drop(body);
            state.taken -= 1;
            self.busy.send_replace(state.taken);
            self.retain(&mut state);
        }
        process.tell();
        self.dispatch();
    }

    fn finish(&self, state: &mut State, process: &Arc<Process>, body: &mut Body, end: End) {
        lock(&self.counts).exit(end.state);
        body.finish(process, end, self.bounds());
        if self.database.is_some() {
            let bytes = body.held_bytes();
            body.unsaved_bytes = Some(bytes);
            state.unsaved_bytes += bytes;
            process.save_end();
        } else {
            rest(state, process.pid, body);
        }
        self.tell_change(process, body);
    }

    /// Starts as many of the queue as there are places.
    pub(super) fn dispatch(self: &Arc<Self>) {
        while let Some(Start { process, attempt }) = self.next_start() {
            match &self.database {
                Some(database) => database.start(process, attempt),
                None => self.hand_over(process, attempt),
            }
        }
    }

    /// The environment gets a process.
    pub(crate) fn hand_over(self: &Arc<Self>, process: Arc<Process>, attempt: u64) {
        drive::start(self, process, attempt);
    }

    fn next_start(&self) -> Option<Start> {
        let mut state = lock(&self.state);
        // Changes that a slow disk has not taken are in memory, so no more is started.
        let is_behind = state.unsaved_bytes > MOST_UNSAVED;
        if state.taken >= self.options.concurrency || is_behind {
            return None;
        }
        let pid = state.queue.pop_front()?;
        // A queued process is not idle, so the service has it.
        let process = Arc::clone(state.processes.get(&pid)?);
        state.taken += 1;
        self.busy.send_replace(state.taken);
        let mut body = process.body();
        body.live = Some(Live {
            since: Instant::now(),
            failure: None,
            killed: CancellationToken::new(),
            phase: watch::Sender::new(Phase::Silent),
        });
        let attempt = body.attempt;
        drop(body);
        Some(Start { process, attempt })
    }

    /// Whether one more may be created, and queued.
    fn check_room(&self, state: &State, is_queued: bool) -> Result<(), ProcessError> {
        if state.is_shutting_down {
            let message = "the service is shutting down";
            return Err(ProcessError::new(ProblemType::ShuttingDown, message));
        }
        let free = self.options.concurrency.saturating_sub(state.taken);
        let waiting = state.queue.len() + state.pending;
        if is_queued && waiting >= self.options.max_queued.saturating_add(free) {
            let message = format!("{waiting} processes wait already");
            return Err(ProcessError::new(ProblemType::QueueFull, message));
        }
        Ok(())
    }

    /// A page of a service without a database.
    pub(crate) fn list(&self, query: ListQuery) -> ProcessList {
        let (mut items, _) = self.list_in_memory(query, query.limit + 1);
        let is_more = items.len() > query.limit;
        items.truncate(query.limit);
        let next = items.last().filter(|_| is_more).map(|last| last.pid);
        ProcessList { items, next }
    }

    /// Records of processes that are in memory, newest first, and the pids of all of those.
    pub(crate) fn list_in_memory(
        &self,
        query: ListQuery,
        most: usize,
    ) -> (Vec<ProcessRecord>, BTreeSet<u64>) {
        let mut state = lock(&self.state);
        self.retain(&mut state);
        let mut items = Vec::new();
        let before = query.before.unwrap_or(u64::MAX);
        for process in state.processes.range(..before).rev().map(|(_, process)| process) {
            let body = process.body();
            let is_state = query.state.is_none_or(|state| state == body.state);
            let is_exit = query.exit_state.is_none_or(|exit| Some(exit) == body.exit_state);
            if is_state && is_exit {
                items.push(process.record(&body, false));
            }
            if items.len() == most {
                break;
            }
        }
        let known = if self.database.is_some() {
            state.processes.keys().copied().collect()
        } else {
            BTreeSet::new()
        };
        (items, known)
    }

    /// Forgets an idle process that is in memory.
    pub(crate) fn delete(&self, pid: u64) -> Result<(), ProcessError> {
        let process = {
            let mut state = lock(&self.state);
            self.retain(&mut state);
            let process = find(&state, pid)?;
            let mut body = process.body();
            if body.state != ProcessState::Idle {
                return Err(not_idle(pid, &body));
            }
            body.is_deleted = true;
            state.idle.remove(&body.idle_place);
            state.unsaved_bytes -= body.unsaved_bytes.take().unwrap_or_default();
            drop(body);
            state.processes.remove(&pid);
            process
        };
        process.tell();
        Ok(())
    }

    /// Forgets idle processes that are too many or too old. As many as may run at once stay a while beyond their number:
    /// else nobody could wait for the end of a process, and then read its output.
    pub(super) fn retain(&self, state: &mut State) {
        if self.database.is_some() {
            return;
        }
        let now = Instant::now();
        let longest = Duration::from_millis(self.options.retain_ms);
        let most = self.options.retain_count;
        let most_fresh = most.saturating_add(self.options.concurrency);
        while let Some(oldest) = state.idle.first_entry() {
            let (since, pid) = *oldest.get();
            let age = now.saturating_duration_since(since);
            let count = state.idle.len();
            let may_stay = count <= most || (age < FRESH && count <= most_fresh);
            if age < longest && may_stay {
                return;
            }
            state.idle.pop_first();
            if let Some(process) = state.processes.remove(&pid) {
                process.body().is_deleted = true;
                process.tell();
            }
        }
    }

    /// Refuses new work, cancels the queue and kills what runs. False if that was done before.
    pub(crate) fn begin_shutdown(self: &Arc<Self>) -> bool {
        let processes: Vec<Arc<Process>> = {
            let mut state = lock(&self.state);
            if std::mem::replace(&mut state.is_shutting_down, true) {
                return false;
            }
            let is_at_work = |process: &&Arc<Process>| process.body().state != ProcessState::Idle;
            let at_work: Vec<_> = state.processes.values().filter(is_at_work).cloned().collect();
            for process in &at_work {
                self.kill_locked(&mut state, process, &mut process.body());
            }
            at_work
        };
        for process in &processes {
            process.tell();
        }
        true
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        lock(&self.state).is_shutting_down
    }

    /// How many processes are in each state.
    pub(crate) fn by_state(&self) -> Vec<(ProcessState, u64)> {
        let state = lock(&self.state);
        let stored = self.database.as_ref().map_or(0, Database::idle);
        let is_idle = |state| if state == ProcessState::Idle { stored } else { 0 };
        let mut counts = ProcessState::ALL.map(|state| (state, is_idle(state)));
        for process in state.processes.values() {
            let body = process.body();
            let now = body.state;
            // The database has those that are saved.
            if self.database.is_some() && now == ProcessState::Idle && body.unsaved_bytes.is_none()
            {
                continue;
            }
            if let Some((_, count)) = counts.iter_mut().find(|(state, _)| *state == now) {
                *count += 1;
            }
        }
        counts.to_vec()
    }

    /// Writes a line to the log.
    pub(crate) fn log(&self, line: &str) {
        (self.options.log())(line);
    }

    fn tell_change(&self, process: &Process, body: &Body) {
        self.changes.push(&process.record(body, false));
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProcessService").field("options", &self.options).finish_non_exhaustive()
    }
}

fn find(state: &State, pid: u64) -> Result<Arc<Process>, ProcessError> {
    state.processes.get(&pid).cloned().ok_or_else(|| not_found(pid))
}

pub(super) fn not_idle(pid: u64, body: &Body) -> ProcessError {
    let message = format!("process {pid} is {}", body.state.as_str());
    ProcessError::new(ProblemType::NotIdle, message)
}

/// An idle process takes its place among those that are.
fn rest(state: &mut State, pid: u64, body: &mut Body) {
    state.last_idle += 1;
    body.idle_place = state.last_idle;
    state.idle.insert(state.last_idle, (Instant::now(), pid));
}
