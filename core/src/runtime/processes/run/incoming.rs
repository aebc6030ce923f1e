//! The frames of a run's worker.
//!
//! In: frames. Out: calls of the host, and entries of the run's record. Each frame is checked against what may be sent
//! now, and against the memory that the run may make the host hold.

use std::sync::Arc;

use super::{Phase, Run, Shared};
use crate::{
    binding::{
        handle::RunControl,
        host::{ASYNC_FUNCTION, Completion, HostCall, REPORT_SINK},
    },
    data::{
        cell::SessionState,
        outcome::{ExecutionError, ExecutionLog},
    },
    isolate::{End, without_place},
    protocol::{
        frame::{Frame, Unreadable},
        messages::{ToHost, ToWorker, WorkersEnd},
    },
    runtime::{
        processes::{ledger::Overdrawn, worker_socket::FrameSink},
        record::Reason,
        sessions::{Effect, SessionRun},
    },
    value::{Kinds, Value},
};

/// The largest number of bytes in a result: the numbers of every language hold it.
pub(super) const MOST_BYTES_TOLD: u64 = (1 << 53) - 1;

impl Run {
    /// Takes a frame of the worker; returns whether that ended the run.
    pub(in crate::runtime::processes) fn take(
        self: &Arc<Self>,
        frame: Frame,
    ) -> Result<bool, Unreadable> {
        if self.is_settled() {
            return Ok(false);
        }
        self.take_message(ToHost::from_frame(frame, self.most_bytes())?)
    }

    /// Takes a message of the worker, as [`Run::take`] does a frame.
    pub(super) fn take_message(self: &Arc<Self>, message: ToHost) -> Result<bool, Unreadable> {
        if self.is_settled() {
            return Ok(false);
        }
        let ends = matches!(message, ToHost::Ended { .. });
        let is_ending_cell =
            matches!(message, ToHost::CellEnded(_) | ToHost::Names { .. } | ToHost::Copied(_));
        if (ends && self.cell.is_some()) || (is_ending_cell && self.cell.is_none()) {
            return Err(Unreadable::Broken);
        }
        if self.cell.is_some() && !self.is_cell() && !is_ending_cell {
            return Err(Unreadable::Broken);
        }
        self.handle(message).map(|()| ends)
    }

    fn handle(self: &Arc<Self>, message: ToHost) -> Result<(), Unreadable> {
        match message {
            // The number of the reports' sink has this bit, too.
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
                let (args, _) = self.take_in(args)?;
                let asked = {
                    let shared = self.shared.lock();
                    shared.dealings.lock().ledger.start(promise, args.held_bytes())?;
                    self.is_ending(&shared)
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
                let value = self.host.reported(value);
                {
                    let mut shared = self.shared.lock();
                    if !self.is_settled() && !self.is_ending(&shared) {
                        shared.record.report(value);
                    }
                }
                if waits { self.calls(REPORT_SINK, Value::undefined()) } else { Ok(()) }
            }
            ToHost::Ask(message) => {
                {
                    let shared = self.shared.lock();
                    let computes = matches!(shared.phase, Phase::Computing(_));
                    if self.validated_kinds == Kinds::NONE || !computes || shared.calling.is_some()
                    {
                        return Err(Unreadable::Broken);
                    }
                    self.check_has_read(&shared)?;
                }
                let refusal = self.host.refusal(&message);
                if refusal.is_none() {
                    self.shared.lock().accepted = Some(message);
                }
                self.send(ToWorker::Verdict { number: self.number(), refusal }.into_frame());
                Ok(())
            }
            ToHost::Log(log) => self.take_log(log),
            ToHost::FunctionSettled { call, completion } => {
                let (completion, _) = self.take_in_completion(completion)?;
                waited_for(self.shared.lock().dealings.lock().ledger.finish_call(call))?;
                // The call may have ended with the cell that it was in.
                match &self.cell {
                    Some(part) => part.call_settled(&*self.host, call, completion),
                    None => self.host.function_settled(call, completion),
                }
                Ok(())
            }
            ToHost::PromiseSettled { promise, completion } => {
                let (completion, new_promises) = self.take_in_completion(completion)?;
                let (Ok(outcome) | Err(outcome)) = &completion;
                let link_bytes = (new_promises > 0).then(|| outcome.held_bytes());
                let waits = {
                    let shared = self.shared.lock();
                    shared.dealings.lock().ledger.finish_promise(promise, link_bytes)?
                };
                waited_for(waits)?;
                self.host.promise_settled(promise, completion);
                Ok(())
            }
            ToHost::Parked { taken } => self.parks(taken),
            ToHost::Ended { end, peak_bytes } => self.ended(end, peak_bytes),
            ToHost::CellEnded(ended) => self.cell_ended(*ended),
            // A worker sends these frames for a session whose cells interleave.
            ToHost::Turn { .. } | ToHost::Placed { .. } => Err(Unreadable::Broken),
            ToHost::Names { names, are_last } => self.named(names, are_last),
            ToHost::Copied(copied) => self.copied(copied),
        }
    }

    fn calls(self: &Arc<Self>, function: u32, args: Value) -> Result<(), Unreadable> {
        let (args, _) = self.take_in(args)?;
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
        self.host.call(
            function,
            args,
            HostCall::new(Arc::clone(self) as Arc<dyn RunControl>, call),
        );
        self.workers.dispatch();
        Ok(())
    }

    fn parks(self: &Arc<Self>, taken: u64) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        // Between two parkings the worker has taken something.
        let sent = {
            let mut dealings = shared.dealings.lock();
            let is_news = taken >= dealings.next_parked && taken <= dealings.sent;
            if !is_news || !matches!(shared.phase, Phase::Computing(_)) {
                return Err(Unreadable::Broken);
            }
            dealings.next_parked = taken + 1;
            dealings.sent
        };
        // Otherwise a message is under way that resumes the worker.
        if taken == sent {
            self.waits(&mut shared);
            drop(shared);
            if let Some(part) = &self.cell {
                part.session.waits(self);
            }
            self.workers.dispatch();
        }
        Ok(())
    }

    /// A worker that waits for an answer has read all earlier frames, except those that the host sent of its own
    /// accord.
    fn check_has_read(&self, shared: &Shared) -> Result<(), Unreadable> {
        let waiting = shared.link.as_ref().map_or(0, |link| link.waiting_bytes());
        if waiting > self.memory_limit { Err(Unreadable::TooLarge) } else { Ok(()) }
    }

    /// The worker waits and computes nothing, so others may.
    pub(super) fn waits(&self, shared: &mut Shared) {
        shared.stop_computing();
        if let Some(link) = &shared.link {
            link.hold();
        }
        if std::mem::take(&mut shared.permit) {
            self.workers.give_back_permit();
        }
    }

    /// Counts a message as under way until the host has taken it. Returns the message, and how many of its promises the
    /// host did not have.
    fn take_in(&self, message: Value) -> Result<(Value, usize), Unreadable> {
        self.check_refusal(&message)?;
        let under_way = self.in_flight.bytes().saturating_add(message.held_bytes());
        if under_way > self.most_bytes() {
            return Err(Unreadable::TooLarge);
        }
        let new_promises = self.shared.lock().dealings.lock().ledger.receive(&message)?;
        Ok((message.sent(&self.in_flight), new_promises))
    }

    fn take_in_completion(
        &self,
        completion: Completion,
    ) -> Result<(Completion, usize), Unreadable> {
        Ok(match completion {
            Ok(value) => {
                let (value, new_promises) = self.take_in(value)?;
                (Ok(value), new_promises)
            }
            Err(thrown) => {
                let (thrown, new_promises) = self.take_in(thrown)?;
                (Err(thrown), new_promises)
            }
        })
    }

    /// A worker asks before it sends a message that a host may refuse. A host that has accepted a message is not asked
    /// again, because it may count what it accepts.
    pub(super) fn check_refusal(&self, message: &Value) -> Result<(), Unreadable> {
        if !message.kinds().intersects(self.validated_kinds) {
            return Ok(());
        }
        let accepted = self.shared.lock().accepted.take();
        if accepted.is_some_and(|accepted| accepted == *message) {
            return Ok(());
        }
        if self.host.refusal(message).is_some() { Err(Unreadable::Broken) } else { Ok(()) }
    }

    /// Checks that reports and logs, which are kept to the end, stay within what the run may hold.
    fn check_kept(&self, message: &Value) -> Result<(), Unreadable> {
        self.check_room(message.held_bytes())
    }

    /// Counts bytes that the host keeps to the end.
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), Unreadable> {
        let mut shared = self.shared.lock();
        shared.kept_bytes = shared.kept_bytes.saturating_add(bytes);
        if shared.kept_bytes > self.most_bytes() { Err(Unreadable::TooLarge) } else { Ok(()) }
    }

    fn take_log(&self, mut log: ExecutionLog) -> Result<(), Unreadable> {
        // A log is put together of accepted values and texts for others, and was never validated as a whole.
        if self.check_refusal(&log.args).is_err() {
            log.args = Value::serialize(&["[a log that this host cannot hold]"])
                .map_err(|_| Unreadable::Broken)?;
        }
        let is_kept = self.cell.as_ref().is_none_or(|part| part.session.request.keeps_logs);
        if is_kept {
            self.check_kept(&log.args)?;
        }
        if !self.is_settled() {
            self.host.logged(&log);
        }
        if is_kept {
            let mut shared = self.shared.lock();
            if !self.is_settled() {
                shared.record.log(log);
            }
        }
        Ok(())
    }

    /// Whether somebody has asked the run to end. A cell may come to its end all the same, and what it has done by
    /// then counts.
    fn is_ending(&self, shared: &Shared) -> bool {
        self.cell.is_none() && shared.record.is_asked()
    }

    fn ended(&self, end: WorkersEnd, peak_bytes: Option<u64>) -> Result<(), Unreadable> {
        match &end {
            WorkersEnd::End(End::Success(value)) => self.check_refusal(value)?,
            WorkersEnd::End(End::Cell(_)) => return Err(Unreadable::Broken),
            _ => {}
        }
        let end = self.judge(end);
        self.settle(end, peak_bytes.map(|bytes| bytes.min(MOST_BYTES_TOLD)), Effect::Untouched);
        Ok(())
    }

    /// The end of a run, whose reason is noted if the worker has ended it.
    pub(super) fn judge(&self, end: WorkersEnd) -> End {
        match end {
            WorkersEnd::End(end) => end,
            WorkersEnd::Cap => {
                self.shared.lock().record.ask(Reason::cap(self.workers.safety_cap()));
                End::Asked
            }
            WorkersEnd::Undone => {
                if let Some(part) = &self.cell {
                    let reason = part.session.reason_of_undone(SessionState::RolledBack);
                    self.shared.lock().record.ask(reason);
                }
                End::Asked
            }
            WorkersEnd::Stalled(error) => {
                // A worker tells the place alone.
                let ExecutionError { stack, filename, line, column, .. } = *error;
                let place = ExecutionError { stack, filename, line, column, ..without_place() };
                self.shared.lock().record.ask(Reason::Stalled(Box::new(place)));
                End::Asked
            }
        }
    }
}

impl From<Overdrawn> for Unreadable {
    fn from(_: Overdrawn) -> Self {
        Self::TooLarge
    }
}

/// Refuses a settlement for which the host does not wait.
fn waited_for(is_waited_for: bool) -> Result<(), Unreadable> {
    if is_waited_for { Ok(()) } else { Err(Unreadable::Broken) }
}
