//! A run as its isolate sees it, on the thread that computes it.
//!
//! In: calls of the host, reports, logs. Out: the host's answers. A thread that waits for one gives its permit to
//! others, and one that computes for long steps aside.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::Run;
use crate::{
    binding::{
        handle::RunControl,
        host::{Completion, HostCall, REPORT_SINK, Refusal},
    },
    data::outcome::{ExecutionLog, LogLevel},
    isolate::{Embedder, Started},
    runtime::record::Reason,
    value::Value,
};

/// How long a thread spins for the answer of its host while others wait for its permit.
const SHARED_SPIN: Duration = Duration::from_micros(20);

/// A run as its isolate sees it.
pub(super) struct RunEmbedder(pub(super) Arc<Run>);

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
        run.lend_home(|| self.ask(function, args, call))
    }

    fn start(&self, function: u32, args: Value, promise: u32) -> Started {
        if !self.0.is_live() {
            return Started::Ended;
        }
        match self.0.host.start_or_answer(function, args, promise) {
            Some(completion) => Started::Done(completion),
            None => Started::GoesOn,
        }
    }

    fn report(&self, value: Value) -> Option<Completion> {
        let value = self.0.host.reported(value);
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
        if self.0.is_settled() {
            return;
        }
        let log = ExecutionLog::now(level, args);
        self.0.host.logged(&log);
        if !self.keeps_logs() {
            return;
        }
        let mut shared = self.0.shared.lock();
        if !self.0.is_settled() {
            shared.record.log(log);
        }
    }

    fn keeps_logs(&self) -> bool {
        self.0.cell.as_ref().is_none_or(|part| part.session.request.keeps_logs)
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        let run = &self.0;
        if run.is_settled() {
            return;
        }
        match &run.cell {
            Some(part) => part.call_settled(&*run.host, call, completion),
            None => run.host.function_settled(call, completion),
        }
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        if !self.0.is_settled() {
            self.0.host.promise_settled(promise, completion);
        }
    }

    fn begins(&self, _: bool) -> bool {
        let run = &self.0;
        let mut shared = run.shared.lock();
        let begins = !shared.claimed && !shared.record.is_asked() && !run.is_settled();
        shared.has_begun |= begins;
        begins
    }

    fn poll(&self, now: Instant) {
        let run = &self.0;
        let checked = run.slice.lock().as_mut().and_then(|slice| slice.check(now));
        let Some(slice) = checked else { return };
        let computed = run.shared.lock().computed;
        if computed + slice > run.resources.safety_cap {
            run.end(Reason::cap(run.resources.safety_cap));
        } else if run.resources.scheduler.others_wait() {
            let computed = run.end_slice();
            run.shared.lock().computed += computed;
            run.lend_home(|| {
                run.resources.scheduler.step_aside(run);
                run.begin_slice();
            });
        } else if run.home_is_wanted() {
            run.lend_home(|| ());
        }
    }
}

impl RunEmbedder {
    /// Calls the host and waits for its answer.
    fn ask(&self, function: u32, args: Value, call: u64) -> Option<Completion> {
        let run = &self.0;
        run.host.call(function, args, HostCall::new(Arc::clone(run) as Arc<dyn RunControl>, call));
        let started = Instant::now();
        let spin = &run.resources.spin;
        let is_there = || run.answer_of.load(Ordering::Acquire) == call;
        let must_sleep =
            || run.resources.scheduler.others_wait() && started.elapsed() > SHARED_SPIN;
        spin.spin(started, || is_there() || must_sleep());
        let found = is_there();
        let answer = self.await_answer(call);
        spin.learn(started.elapsed(), found);
        answer
    }

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
