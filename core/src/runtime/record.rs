//! The record of a run: its reports and logs, the reason to end it, and its result.
//!
//! In: reports, logs, the first reason to end, and the [`End`] of its isolate. Out: one [`ExecutionResult`]. The record
//! is the same for a run on a thread of this process and for one in a process of its own. Its owner keeps it behind a
//! lock.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    data::{
        cell::{self, CellOutcome, EndedBy, SessionState},
        outcome::{ExecutionError, ExecutionLog, ExecutionResult, Status},
        text::termination,
    },
    error::{Error, ErrorKind},
    isolate::End,
    modules::program::Oversized,
    value::Value,
};

pub(crate) use crate::data::cell::RESET;

/// The reason why a run is asked to end.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    Terminated(String),
    SafetyCap(String),
    /// The run took longer than its caller allows.
    Timeout(Duration),
    /// The session of the cell was reset.
    Reset,
    /// The session of the cell was closed.
    Closed,
    /// The session was rolled back because another cell was ended.
    RolledBack,
    /// Nothing can resume the run, and this is its error.
    Stalled(Box<ExecutionError>),
}

impl Reason {
    /// The caller's, in the caller's words or ours.
    pub(crate) fn of_caller(reason: Option<&str>) -> Self {
        Self::Terminated(termination(reason))
    }

    /// The cap on CPU time.
    pub(crate) fn cap(cap: Duration) -> Self {
        let seconds = cap.as_secs_f64();
        Self::SafetyCap(format!(
            "the run computed for more than its safety cap of {seconds} s of CPU time"
        ))
    }
}

/// The name of runs that somebody has terminated.
pub(crate) const TERMINATED: &str = "Terminated";

/// The name and the message of cells that end because their session was closed.
pub(crate) const CLOSED: (&str, &str) = ("SessionClosed", "the session was closed");

/// The name and the message of cells that are undone because another one was ended.
pub(crate) const ROLLED_BACK: (&str, &str) = (
    cell::ROLLED_BACK,
    "the session was rolled back to a point before this cell's last turn, because another cell was ended",
);

/// The name and the message of an error.
pub(crate) type Failure = (String, String);

/// The record of one run.
#[derive(Debug)]
pub(crate) struct Record {
    called: Instant,
    memory_limit: u64,
    /// Whether more was to be held for the run than its limit allows.
    is_overdrawn: bool,
    /// Whether the cell has ended by itself.
    is_at_end: bool,
    end: Option<Reason>,
    /// The reports that the host has not taken out, shared with hosts that read them while the run is running; and the
    /// number of those that it has.
    reports: VecDeque<Arc<Value>>,
    taken: usize,
    logs: Vec<ExecutionLog>,
    result: Option<ExecutionResult>,
    /// The error of the result, which stays when the host has taken the result.
    failure: Option<Failure>,
    /// Whether it has settled because it was asked to, or at its memory limit.
    was_ended: bool,
}

impl Record {
    /// The record of a run that was just started.
    pub(crate) fn new(memory_limit: u64) -> Self {
        Self {
            called: Instant::now(),
            memory_limit,
            is_overdrawn: false,
            is_at_end: false,
            end: None,
            reports: VecDeque::new(),
            taken: 0,
            logs: Vec::new(),
            result: None,
            failure: None,
            was_ended: false,
        }
    }

    /// Whether it has settled without anybody ending it, and within its memory limit.
    pub(crate) fn ended_by_itself(&self) -> bool {
        let is_memory = |result: &ExecutionResult| result.status == Status::Memory;
        !self.is_asked() && self.result.as_ref().is_some_and(|result| !is_memory(result))
    }

    /// Whether it has settled because somebody ended it, or at its memory limit.
    pub(crate) fn was_ended(&self) -> bool {
        self.was_ended
    }

    /// Whether somebody has asked it to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.end.is_some()
    }

    /// Notes why the run has to end; the first reason stays, but for the end of another cell.
    pub(crate) fn ask(&mut self, reason: Reason) {
        if matches!(self.end, None | Some(Reason::RolledBack)) {
            self.end = Some(reason);
        }
    }

    /// Notes that more was to be held for the run than its limit allows.
    pub(crate) fn overdraw(&mut self) {
        self.is_overdrawn = true;
    }

    /// Takes the reason back: it came when the cell had ended by itself. None counts from now on.
    pub(crate) fn withdraw(&mut self) {
        self.end = None;
        self.is_at_end = true;
    }

    /// Whether the cell has ended by itself, and only has to settle.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    pub(crate) fn report(&mut self, value: Value) {
        self.reports.push_back(Arc::new(value));
    }

    pub(crate) fn log(&mut self, log: ExecutionLog) {
        self.logs.push(log);
    }

    /// The reports from that index on that have not been taken out. They are copied only if the run has settled and its
    /// result was not taken.
    pub(crate) fn reports_since(&self, index: usize) -> Vec<Arc<Value>> {
        let skipped = index.saturating_sub(self.taken);
        match &self.result {
            Some(result) => result.reports.iter().skip(skipped).cloned().map(Arc::new).collect(),
            None => self.reports.iter().skip(skipped).cloned().collect(),
        }
    }

    /// The oldest report that has not been taken out, for a host that keeps it from now on: the result will not have
    /// it.
    pub(crate) fn take_report(&mut self) -> Option<Value> {
        let report = self.reports.pop_front()?;
        self.taken += 1;
        Some(Arc::unwrap_or_clone(report))
    }

    /// The bytes of the result without the reports.
    pub(crate) fn result_bytes(&self) -> usize {
        let Some(result) = &self.result else { return 0 };
        let values = result.result.iter().chain(result.logs.iter().map(|log| &log.args));
        let error = result.error.iter().map(|error| {
            error.message.len() + error.name.len() + error.stack.as_ref().map_or(0, String::len)
        });
        let cell = result.cell.iter().filter_map(|cell| cell.text.as_ref()).map(String::len);
        values.map(Value::held_bytes).chain(error).chain(cell).sum()
    }

    /// Takes the result out, to change it; the reports stay.
    pub(crate) fn lend_result(&mut self) -> Option<ExecutionResult> {
        let mut result = self.result.take()?;
        self.reports.extend(std::mem::take(&mut result.reports).into_iter().map(Arc::new));
        Some(result)
    }

    /// Puts the changed result back, with the reports.
    pub(crate) fn return_result(&mut self, mut result: ExecutionResult) {
        result.reports = self.reports.drain(..).map(Arc::unwrap_or_clone).collect();
        self.result = Some(result);
    }

    /// The result, once it has settled.
    pub(crate) fn take_result(&mut self) -> Option<ExecutionResult> {
        self.result.take()
    }

    /// Whether a cell that comes to this end leaves its effects in the session.
    pub(crate) fn keeps(&self, end: &End) -> bool {
        !self.is_asked() && matches!(end, End::Success(_) | End::Cell(_) | End::Failed(..))
    }

    /// Whether its session is being reset.
    pub(crate) fn is_reset(&self) -> bool {
        matches!(self.end, Some(Reason::Reset))
    }

    /// The effect that the result of a cell tells which has not begun: a reset is told to the cell that had its turn.
    pub(crate) fn state_of_unbegun(&self, has_turn: bool) -> SessionState {
        if has_turn && self.is_reset() { SessionState::Reset } else { SessionState::Kept }
    }

    /// The name and the message of its error, once it has settled without success.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.clone()
    }

    /// The error of a question that has settled without an answer.
    pub(crate) fn refusal(&self) -> Error {
        let kind = match self.ended_by() {
            Some(EndedBy::Reset) => ErrorKind::SessionReset,
            Some(EndedBy::Close) => ErrorKind::SessionClosed,
            Some(EndedBy::Rollback) | None => ErrorKind::Unavailable,
        };
        Error::new(kind, self.failure().map(|(_, message)| message).unwrap_or_default())
    }

    /// Settles the run, which happens once. `cell`: the effect on the session, if the run is a cell.
    pub(crate) fn settle(
        &mut self,
        mut end: End,
        peak_bytes: Option<u64>,
        cell: Option<SessionState>,
    ) -> Status {
        if cell == Some(SessionState::Reset) && matches!(self.end, Some(Reason::RolledBack)) {
            // There was no point to go back to.
            self.end = Some(Reason::Reset);
        }
        let is_oversized = matches!(end, End::Oversized(_));
        let cell = cell.map(|session| self.outcome(session, &mut end));
        let (end, place) = match end {
            End::Stopped(stopped) => {
                let (end, place) = stopped.parts();
                (end, Some(place))
            }
            end => (end, None),
        };
        let (status, result, error) = self.judge(end, cell.is_some());
        let cell = cell.map(|cell| {
            let ended_by = self.ended_by().filter(|_| status == Status::Terminated);
            Box::new(CellOutcome { ended_by, ..cell })
        });
        let error = match (error, place) {
            (Some(error), Some(place)) if error.line.is_none() => Some(error.at(place)),
            (error, _) => error,
        };
        self.was_ended = self.is_asked() || status == Status::Memory;
        self.failure = error.as_ref().map(|error| (error.name.clone(), error.message.clone()));
        // Compiling, or what was to be held for it, would have taken all that is left, and more.
        let is_refused = is_oversized || (self.is_overdrawn && status == Status::Memory);
        let refused_bytes = is_refused.then_some(self.memory_limit);
        self.result = Some(ExecutionResult {
            status,
            result,
            reports: std::mem::take(&mut self.reports)
                .into_iter()
                .map(Arc::unwrap_or_clone)
                .collect(),
            logs: std::mem::take(&mut self.logs),
            error,
            duration_ms: self.called.elapsed().as_secs_f64() * 1e3,
            memory_used_bytes: peak_bytes.max(refused_bytes),
            cell,
        });
        status
    }

    /// The event in its session that ends it.
    fn ended_by(&self) -> Option<EndedBy> {
        match self.end {
            Some(Reason::RolledBack) => Some(EndedBy::Rollback),
            Some(Reason::Reset) => Some(EndedBy::Reset),
            Some(Reason::Closed) => Some(EndedBy::Close),
            _ => None,
        }
    }

    /// The part of the result that only a cell has, without the event that ends it.
    fn outcome(&self, session: SessionState, end: &mut End) -> CellOutcome {
        let mut outcome = CellOutcome::without_value(session);
        if !self.is_asked()
            && let End::Cell(end) = end
        {
            outcome.text = end.text.take();
            outcome.uncloned = end.uncloned.take();
            outcome.value_from = end.value_from.take();
        }
        outcome
    }

    fn judge(&self, end: End, is_cell: bool) -> (Status, Option<Value>, Option<ExecutionError>) {
        let failed = |name: &str, message: String| {
            Some(ExecutionError { name: name.to_owned(), message, ..ExecutionError::default() })
        };
        match (end, self.end.as_ref()) {
            (End::Memory, _) => {
                let message =
                    format!("the run hit its memory limit of {} bytes", self.memory_limit);
                (Status::Memory, None, failed("MemoryLimit", message))
            }
            (End::Oversized(module), _) => {
                let Oversized { filename, needed_bytes } = *module;
                let filename = filename.escape_debug();
                let message = format!(
                    "compiling {filename} takes up to {needed_bytes} bytes, more than the run's memory limit of {} bytes \
                     leaves: raise the limit, or split the module",
                    self.memory_limit
                );
                (Status::Memory, None, failed("MemoryLimit", message))
            }
            (_, Some(Reason::Terminated(reason))) => {
                (Status::Terminated, None, failed(TERMINATED, reason.clone()))
            }
            (_, Some(Reason::SafetyCap(message))) => {
                (Status::Terminated, None, failed("SafetyCap", message.clone()))
            }
            (_, Some(Reason::Timeout(after))) => {
                let what = if is_cell { "cell" } else { "run" };
                let message = format!("the {what} took longer than {} ms", after.as_millis());
                (Status::Terminated, None, failed("Timeout", message))
            }
            (_, Some(Reason::Reset)) => {
                (Status::Terminated, None, failed(RESET.0, RESET.1.to_owned()))
            }
            (_, Some(Reason::Closed)) => {
                (Status::Terminated, None, failed(CLOSED.0, CLOSED.1.to_owned()))
            }
            (_, Some(Reason::RolledBack)) => {
                (Status::Terminated, None, failed(ROLLED_BACK.0, ROLLED_BACK.1.to_owned()))
            }
            (_, Some(Reason::Stalled(error))) => {
                (Status::Terminated, None, Some(error.as_ref().clone()))
            }
            (End::Success(value), None) => (Status::Success, Some(value), None),
            (End::Cell(end), None) => (Status::Success, end.value, None),
            (End::Failed(status, error), None) => (status, None, Some(*error)),
            (End::Asked | End::Stopped(_) | End::Broken, None) => {
                let message = "the sandbox itself failed; please report this".to_owned();
                let error = failed("InternalError", message);
                (
                    Status::Error,
                    None,
                    error.map(|error| ExecutionError { is_failure: true, ..error }),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(reasons: impl IntoIterator<Item = Reason>, state: SessionState) -> String {
        let mut record = Record::new(1);
        for reason in reasons {
            record.ask(reason);
        }
        assert_eq!(record.settle(End::Asked, None, Some(state)), Status::Terminated);
        record.failure().expect("an error").0
    }

    #[test]
    fn the_first_reason_stays_but_for_the_end_of_another_cell() {
        let caller = || Reason::of_caller(Some("enough"));
        let rolled_back = SessionState::RolledBack;
        assert_eq!(named([Reason::Closed, caller()], rolled_back), CLOSED.0);
        assert_eq!(named([caller(), Reason::RolledBack], rolled_back), TERMINATED);
        assert_eq!(named([Reason::RolledBack, caller(), Reason::Closed], rolled_back), TERMINATED);
        assert_eq!(named([Reason::RolledBack], rolled_back), ROLLED_BACK.0);
    }

    #[test]
    fn the_error_of_a_run_stays_when_the_host_has_its_result() {
        let mut record = Record::new(1);
        record.ask(Reason::RolledBack);
        record.settle(End::Asked, None, Some(SessionState::RolledBack));
        drop(record.take_result());
        assert_eq!(record.failure().expect("an error").0, ROLLED_BACK.0);
    }

    #[test]
    fn the_event_that_ended_a_cell_is_a_value() {
        let told = |reason: Option<Reason>, end, state| {
            let mut record = Record::new(1);
            if let Some(reason) = reason {
                record.ask(reason);
            }
            record.settle(end, None, Some(state));
            record.take_result().and_then(|result| result.cell).and_then(|cell| cell.ended_by)
        };
        let (kept, rolled_back) = (SessionState::Kept, SessionState::RolledBack);
        assert_eq!(told(Some(Reason::Reset), End::Asked, kept), Some(EndedBy::Reset));
        assert_eq!(told(Some(Reason::Closed), End::Asked, rolled_back), Some(EndedBy::Close));
        assert_eq!(
            told(Some(Reason::RolledBack), End::Asked, rolled_back),
            Some(EndedBy::Rollback)
        );
        let reset = told(Some(Reason::RolledBack), End::Asked, SessionState::Reset);
        assert_eq!(reset, Some(EndedBy::Reset));
        assert_eq!(told(Some(Reason::RolledBack), End::Memory, rolled_back), None);
        assert_eq!(told(Some(Reason::of_caller(None)), End::Asked, rolled_back), None);
        assert_eq!(told(None, End::Cell(Box::default()), kept), None);
    }

    #[test]
    fn a_cell_that_is_undone_with_another_one_tells_of_a_reset() {
        assert_eq!(named([Reason::RolledBack], SessionState::Reset), RESET.0);
        let caller = Reason::of_caller(None);
        assert_eq!(named([caller], SessionState::Reset), TERMINATED);
    }
}
