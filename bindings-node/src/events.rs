//! Events of runs, as `lib/run/events.ts` reads them.
//!
//! In: the events of a bridge's mailbox. Out: frames of events, of each run in turn.

use isolane::{Completion, HostEvent, REPORT_SINK, SessionState};
use napi::Env;

use crate::{
    answers::{Answer, write_answer, write_names, write_refusal},
    bridge::{Bridge, LiveRun},
    error::Misuse,
    outcome::write_outcome,
    session::LiveSession,
    value::Frame,
    wire::{MORE, event_kind},
};

/// The most events in one frame. Between frames the event loop does its other work, so a sandbox with many
/// events cannot starve it.
const MOST_EVENTS: u32 = 256;

/// A frame of that many bytes takes no more events, for the same reason.
const MOST_BYTES: usize = 64 << 10;

impl Bridge {
    /// A frame of events, of each run in turn; `None` if no event is waiting.
    pub(crate) fn drain(&self, env: Env) -> Option<Vec<u8>> {
        let mailbox = &self.mailbox;
        mailbox.open();
        self.ended.borrow_mut().clear();
        let mut next = Some(mailbox.pop()?);
        let mut frame = self.frame();
        frame.u32(0);
        let mut count = 0_u32;
        while let Some((queue, event)) = next {
            let larges = frame.larges.len();
            let is_last = matches!(event, HostEvent::Settled);
            // Runs and closings have numbers of 32 bits here.
            let number = u32::try_from(queue).unwrap_or_default();
            count += u32::from(self.write_event(env, &mut frame, number, event));
            if frame.larges.len() > larges && !is_last {
                // The run's next events wait until JavaScript has read the large message.
                mailbox.hold(queue);
            }
            if count >= MOST_EVENTS || frame.is_full(MOST_BYTES) {
                break;
            }
            next = mailbox.pop();
        }
        if mailbox.has_events() {
            count |= MORE;
        }
        frame.bytes[4..8].copy_from_slice(&count.to_le_bytes());
        self.leave_blobs(&mut frame);
        Some(frame.bytes)
    }

    /// Writes an event: its kind, the number of its run or runtime, the length of the rest, and the rest.
    /// Returns false if it drops the event.
    fn write_event(&self, env: Env, frame: &mut Frame, number: u32, event: HostEvent) -> bool {
        match event {
            HostEvent::Call { function, args, call } => {
                // No host call starts after its run has settled.
                if !self.runs_now(number) {
                    return false;
                }
                let args = if function == REPORT_SINK {
                    // Without one, the run has settled just now, and its result has the report.
                    let Some(report) = call.take_report() else { return false };
                    report
                } else {
                    args
                };
                let call = self.keep_call(call);
                head(frame, event_kind::CALL, number);
                frame.measured(|frame| {
                    frame.u32(function);
                    frame.u32(call);
                    frame.message(args);
                });
            }
            HostEvent::Start { .. } if self.was_ended(number) => return false,
            HostEvent::Start { .. }
            | HostEvent::FunctionSettled { .. }
            | HostEvent::PromiseSettled { .. }
                if !self.receives(number) =>
            {
                return false;
            }
            // The sandbox made this call before its run settled, and the settlement has not been delivered yet.
            HostEvent::Start { function, args, promise } => {
                head(frame, event_kind::START, number);
                frame.measured(|frame| {
                    frame.u32(function);
                    frame.u32(promise);
                    frame.message(args);
                });
            }
            HostEvent::FunctionSettled { call, completion } => {
                head(frame, event_kind::FUNCTION_SETTLED, number);
                frame.measured(|frame| completed(frame, call, completion));
            }
            HostEvent::PromiseSettled { promise, completion } => {
                head(frame, event_kind::PROMISE_SETTLED, number);
                frame.measured(|frame| completed(frame, promise, completion));
            }
            HostEvent::Settled if self.sessions.borrow().contains_key(&number) => {
                head(frame, event_kind::SESSION_ENDED, number);
                frame.measured(|_| {});
            }
            HostEvent::Settled => {
                let Some(run) = self.runs.borrow_mut().remove(&number) else { return false };
                if !run.is_background {
                    self.release(env);
                }
                if run.handle.was_ended() {
                    self.ended.borrow_mut().insert(number);
                }
                let Some(outcome) = run.handle.take_result() else { return false };
                if let Some(end) = run.end {
                    let state =
                        outcome.cell.as_ref().map_or(SessionState::Kept, |cell| cell.session);
                    head(frame, event_kind::EXECUTED, number);
                    frame.measured(|frame| frame.text(state.as_str()));
                    // Nobody waits any more for a call that was cancelled.
                    drop(end.send(outcome));
                    return true;
                }
                head(frame, event_kind::SETTLED, number);
                let extra = run.handle.take_extra();
                frame.measured(|frame| {
                    if let Some(output) = write_outcome(frame, outcome, extra) {
                        self.outputs.borrow_mut().insert(number, output);
                    }
                });
            }
            HostEvent::Closed => {
                self.release(env);
                let answer = self.answers.take(number);
                head(frame, event_kind::ANSWERED, number);
                frame.measured(|frame| self.write_answer(frame, answer));
            }
        }
        true
    }

    fn write_answer(&self, frame: &mut Frame, answer: Option<Answer>) {
        match answer {
            None => {}
            Some(Answer::Gone) => write_refusal(frame, &Misuse::closed_session()),
            Some(Answer::Done(done)) => write_answer(frame, done, |_, ()| {}),
            Some(Answer::Names(names)) => write_answer(frame, names, write_names),
            Some(Answer::Called(completion)) => {
                frame.u8(u8::from(completion.is_ok()));
                frame.message(completion.unwrap_or_else(|thrown| thrown));
            }
            Some(Answer::Forked(number, native, forked)) => {
                self.sessions.borrow_mut().remove(&number);
                write_answer(frame, forked, |_, handle| {
                    let copy = LiveSession { number, handle, native };
                    self.sessions.borrow_mut().insert(number, Some(copy));
                });
            }
        }
    }

    /// Whether host functions still start that the sandbox has called in events which were drained before, and for which it
    /// does not wait. A run whose end was drained with them is no longer known.
    pub(crate) fn starts_calls(&self, number: u32) -> bool {
        !self.ended.borrow().contains(&number) && !self.was_ended(number)
    }

    /// Whether somebody or a limit has ended that run: no host function of it starts any more.
    fn was_ended(&self, number: u32) -> bool {
        let was_ended = |run: &LiveRun| run.handle.was_ended();
        self.runs.borrow().get(&number).is_some_and(was_ended)
    }

    /// Whether JavaScript receives events other than the end of that run or session.
    fn receives(&self, number: u32) -> bool {
        match self.runs.borrow().get(&number) {
            Some(run) => run.is_cell || !run.terminated,
            None => self.sessions.borrow().contains_key(&number),
        }
    }
}

fn head(frame: &mut Frame, kind: u8, number: u32) {
    frame.u8(kind);
    frame.u32(number);
}

fn completed(frame: &mut Frame, number: u32, completion: Completion) {
    frame.u32(number);
    frame.u8(u8::from(completion.is_ok()));
    frame.message(completion.unwrap_or_else(|thrown| thrown));
}
