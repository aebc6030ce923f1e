//! One process of a service: its record, its streams, its output, its events.
//!
//! In: reports of an execution. Out: a record, events. [`Process`] has what never changes and a lock; `stream` decodes
//! text, `output` merges fields, `log` stores events, `unsaved` is what a database has not. The service decides about
//! states.

pub(crate) mod log;
pub(crate) mod output;
pub(crate) mod stream;
pub(crate) mod unsaved;

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use isolane::iso_date;
use serde_json::{Map, Value};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{log::EventLog, output::Output, stream::Stream};
use crate::{
    ErrorDetails, ExecutionExitState, ExecutionFailure, ProcessRecord, ProcessState,
    database::Saver, locks::lock,
};

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u64,
    pub(crate) code: String,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) created_at: f64,
    body: Mutex<Body>,
    /// Told of each change, for readers of events and for those who wait.
    pub(crate) changed: watch::Sender<()>,
    /// Told of each change, too, if the service has a database.
    saver: Option<Saver>,
    /// Whether the database knows already that something has changed.
    is_marked: AtomicBool,
}

/// The part of a process that changes.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) state: ProcessState,
    pub(crate) exit_state: Option<ExecutionExitState>,
    error: Option<String>,
    error_details: Option<ErrorDetails>,
    started_at: Option<f64>,
    finished_at: Option<f64>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) output: Output,
    pub(crate) log: EventLog,
    /// The number of the execution: an earlier one's reports are dropped.
    pub(crate) attempt: u64,
    /// When it was queued.
    pub(crate) queued: Instant,
    /// The execution in the environment.
    pub(crate) live: Option<Live>,
    /// The place of an idle process among all that are idle.
    pub(crate) idle_place: u64,
    /// Whether the service has forgotten the process.
    pub(crate) is_deleted: bool,
    /// Whether the process was taken out of memory: the database has all of it, and this has no results any more.
    pub(crate) is_stored: bool,
    /// The bytes of an execution that has ended and is not in the database yet.
    pub(crate) unsaved_bytes: Option<u64>,
}

/// An execution in the environment.
#[derive(Debug)]
pub(crate) struct Live {
    /// When the environment got it, and then when its code started.
    pub(crate) since: Instant,
    pub(crate) failure: Option<ExecutionFailure>,
    /// Cancelled by the first kill.
    pub(crate) killed: CancellationToken,
    pub(crate) phase: watch::Sender<Phase>,
}

/// How far an environment says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has said nothing.
    Silent,
    /// The code waits in the environment.
    Queued,
    /// The code runs since then.
    Running(Instant),
}

/// The bounds of a process's streams and output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) stream_bytes: usize,
    pub(crate) output_bytes: usize,
}

impl Process {
    pub(crate) fn new(
        pid: u64,
        code: String,
        timeout_ms: Option<u64>,
        saver: Option<Saver>,
    ) -> Self {
        let log = EventLog::default();
        Self::resumed(pid, code, timeout_ms, now_ms(), log, saver)
    }

    /// A process that the database has, without its results.
    pub(crate) fn resumed(
        pid: u64,
        code: String,
        timeout_ms: Option<u64>,
        created_at: f64,
        log: EventLog,
        saver: Option<Saver>,
    ) -> Self {
        let body = Body {
            state: ProcessState::Idle,
            exit_state: None,
            error: None,
            error_details: None,
            started_at: None,
            finished_at: None,
            stdout: Stream::default(),
            stderr: Stream::default(),
            output: Output::default(),
            log,
            attempt: 0,
            queued: Instant::now(),
            live: None,
            idle_place: 0,
            is_deleted: false,
            is_stored: false,
            unsaved_bytes: None,
        };
        let changed = watch::Sender::new(());
        Self {
            pid,
            code,
            timeout_ms,
            created_at,
            body: Mutex::new(body),
            changed,
            saver,
            is_marked: AtomicBool::new(false),
        }
    }

    pub(crate) fn body(&self) -> MutexGuard<'_, Body> {
        lock(&self.body)
    }

    /// The record; with the output, if that is asked for.
    pub(crate) fn record(&self, body: &Body, has_output: bool) -> ProcessRecord {
        let text = |ms: Option<f64>| ms.and_then(iso_date);
        ProcessRecord {
            pid: self.pid,
            state: body.state,
            exit_state: body.exit_state,
            error: body.error.clone(),
            error_details: body.error_details.clone(),
            timeout_ms: self.timeout_ms,
            created_at: iso_date(self.created_at).unwrap_or_default(),
            started_at: text(body.started_at),
            finished_at: text(body.finished_at),
            stdout: body.stdout.info(),
            stderr: body.stderr.info(),
            output: has_output.then(|| body.output.fields().clone()),
        }
    }

    /// Sets whether the database knows that something has changed, and gives that from before.
    pub(crate) fn swap_mark(&self, is_marked: bool) -> bool {
        self.is_marked.swap(is_marked, Ordering::AcqRel)
    }

    /// Has the database save the end of an execution at once.
    pub(crate) fn save_end(self: &Arc<Self>) {
        if let Some(saver) = &self.saver {
            saver.ended(self);
        }
    }

    /// Tells readers and waiters that something has changed. Called with the lock released.
    pub(crate) fn tell(self: &Arc<Self>) {
        self.changed.send_replace(());
        if let Some(saver) = &self.saver {
            saver.changed(self);
        }
    }
}

/// The end of an execution, as the record has it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) state: ExecutionExitState,
    pub(crate) error: Option<String>,
    pub(crate) details: Option<ErrorDetails>,
}

impl Body {
    pub(crate) fn set_state(&mut self, state: ProcessState) {
        self.state = state;
        self.log.state(state);
    }

    /// The process waits for a new execution.
    pub(crate) fn queue(&mut self) {
        self.attempt += 1;
        self.queued = Instant::now();
        self.set_state(ProcessState::Queued);
    }

    /// Clears the results of an earlier execution.
    pub(crate) fn clear(&mut self) {
        self.exit_state = None;
        self.error = None;
        self.error_details = None;
        self.started_at = None;
        self.finished_at = None;
        self.stdout = Stream::default();
        self.stderr = Stream::default();
        self.output = Output::default();
        self.log.clear();
    }

    /// The bytes of the results, roughly.
    pub(crate) fn held_bytes(&self) -> u64 {
        let streams = self.stdout.info().bytes + self.stderr.info().bytes;
        streams + self.output.bytes() as u64 + self.log.held_bytes()
    }

    /// Drops the results, all of which the database has.
    pub(crate) fn store(&mut self) {
        self.stdout = Stream::default();
        self.stderr = Stream::default();
        self.output = Output::default();
        self.log = EventLog::resumed(self.log.last_id());
        self.is_stored = true;
    }

    pub(crate) fn started(&mut self) {
        self.started_at = Some(now_ms());
    }

    /// Takes bytes of a stream.
    pub(crate) fn write(&mut self, is_error: bool, bytes: &[u8], bounds: Bounds) {
        let stream = if is_error { &mut self.stderr } else { &mut self.stdout };
        let added = stream.push(bytes, bounds.stream_bytes).len();
        if added > 0 {
            self.log.text(is_error, stream, added);
        }
    }

    /// Merges fields into the output.
    ///
    /// # Errors
    /// The size that the output would have, if that is more than it may have.
    pub(crate) fn merge(&mut self, patch: Map<String, Value>, bounds: Bounds) -> Result<(), usize> {
        if patch.is_empty() {
            return Ok(());
        }
        let text = log::json_text(&patch);
        self.output.merge(patch, bounds.output_bytes)?;
        self.log.output(text, self.output.fields(), bounds.output_bytes);
        Ok(())
    }

    /// The process becomes idle with that end.
    pub(crate) fn finish(&mut self, process: &Process, end: End, bounds: Bounds) {
        for is_error in [false, true] {
            let stream = if is_error { &mut self.stderr } else { &mut self.stdout };
            let added = stream.end(bounds.stream_bytes).len();
            if added > 0 {
                self.log.text(is_error, stream, added);
            }
        }
        self.exit_state = Some(end.state);
        self.error = end.error;
        self.error_details = end.details;
        self.finished_at = Some(now_ms());
        self.live = None;
        self.set_state(ProcessState::Idle);
        let record = process.record(self, false);
        self.log.exit(record_text(&record));
    }
}

/// A record as JSON. All that it has is JSON.
pub(crate) fn record_text(record: &ProcessRecord) -> String {
    serde_json::to_string(record).unwrap_or_else(|_| "{}".to_owned())
}

/// The time of the system's clock, in whole milliseconds since the epoch.
pub(crate) fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e3).floor()
}
