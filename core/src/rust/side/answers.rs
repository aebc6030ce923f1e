//! The answers of the host: closures called, futures spawned, and their outcomes.
//!
//! In: calls of the sandbox, and events of its run. Out: replies, promises that are settled, and waiters of the host that
//! learn outcomes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
};

use tokio::runtime::Handle;

use super::{HostSide, Remote, Stage};
use crate::{
    Cause, Completion, Host, HostCall, REPORT_SINK, SessionState, Value,
    binding::executor,
    rust::{
        HostError, Returned,
        function::{Call, Function, Pending},
    },
    value::{Message, Writer},
};

impl Host for HostSide {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        // The side with the tables.
        let root = self.root();
        root.note_size(&args);
        root.forget_thrown();
        let number = root.called.fetch_add(1, Ordering::Relaxed) + 1;
        if function != REPORT_SINK {
            match root.function(function) {
                Some(entry) => root.run_function(self, (function, &entry), args, call, number),
                None => {
                    let error = HostError::new("TypeError", "the host does not know this function");
                    call.reply(Err(error.to_value()));
                }
            }
            return;
        }
        let (sink, index) = {
            let mut tables = self.tables.lock();
            tables.reported += 1;
            (tables.report.clone(), tables.reported - 1)
        };
        self.feed.wake_readers();
        let Some(sink) = sink else { return call.reply(Ok(Value::undefined())) };
        let newest = match self.remote() {
            Some(Remote::Run(run)) => run.reports_since(index).pop(),
            // A report of a call between cells: nobody else sees it.
            Some(Remote::Session(_)) => call.take_report(),
            None => None,
        };
        let Some(newest) = newest else { return };
        let mut writer = Writer::new();
        writer.array(1);
        let message = Message { value: newest, links: Vec::new() };
        match root.write(&message, &mut writer, "") {
            Ok(()) => {
                root.run_function(self, (REPORT_SINK, &sink), writer.finish(), call, number);
            }
            Err(fault) => {
                call.reply(Err(HostError::serialization(fault, "report").to_value()));
            }
        }
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        let root = self.root();
        let (Ok(value) | Err(value)) = &completion;
        let received = root.received(self, value, None);
        let waiter = root.tables.lock().calls.remove(&call);
        if let Some(waiter) = waiter {
            waiter.settle(completion, received);
        }
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        let root = self.root();
        let (Ok(value) | Err(value)) = &completion;
        let received = root.received(self, value, Some(promise));
        let waiter = root.tables.lock().sandbox_promises.remove(&promise);
        if let Some(waiter) = waiter {
            waiter.settle(completion, received);
        }
    }

    fn concluded(&self, state: SessionState) {
        self.root().conclude(self, state);
    }

    fn settled(&self) {
        self.end();
    }
}

impl HostSide {
    /// Answers a call of the code of `cell`, with the tables of this side.
    fn run_function(
        &self,
        cell: &Self,
        (function_number, function): (u32, &Arc<Function>),
        args: Value,
        call: HostCall,
        number: u64,
    ) {
        let received = self.received(cell, &args, None);
        match &**function {
            Function::Sync(body) => {
                let _entered = self.tokio.as_ref().map(Handle::enter);
                let invoke = || body(Call { args, links: &*received });
                let returned = catch_unwind(AssertUnwindSafe(invoke));
                let returned = returned.unwrap_or_else(|_panic| panicked());
                let completion =
                    self.completion(returned, Cause::Call(number), Some(function_number));
                call.reply(completion);
            }
            Function::Future(_) => {
                let function = Arc::clone(function);
                let promise = self.spawn(Some(function_number), move |_| async move {
                    let Function::Future(body) = &*function else { return panicked() };
                    let future: Pending = body(Call { args, links: &*received });
                    let returned = future.await;
                    drop(received);
                    returned
                });
                let mut writer = Writer::new();
                writer.host_promise(promise);
                call.reply(Ok(writer.finish()));
            }
            // Its calls do not come here, and a sink is never native.
            Function::Native(_) => {
                let error = HostError::new("TypeError", "the host does not know this function");
                call.reply(Err(error.to_value()));
            }
        }
    }

    /// The message for this run of a value that was returned or thrown; `cause` identifies a throw. `function` is the
    /// number of the function that returned it; `None` for a promise that no function returned.
    fn completion(&self, returned: Returned, cause: Cause, function: Option<u32>) -> Completion {
        let unwritten = |fault| {
            let root =
                function.map_or_else(|| "result".to_owned(), |number| self.answer_of(number));
            HostError::serialization(fault, &root)
        };
        let adopt = |message: Message| {
            if message.links.is_empty() {
                return Ok(message.value);
            }
            let mut writer = Writer::new();
            match self.write(&message, &mut writer, "") {
                Ok(()) => Ok(writer.finish()),
                Err(fault) => Err(unwritten(fault).to_value()),
            }
        };
        let returned = match returned.unwritten {
            Some(fault) => Returned::refused(&unwritten(fault)),
            None => returned,
        };
        self.keep_thrown(cause, returned.cause);
        match returned.outcome {
            Ok(message) => adopt(message),
            Err(message) => Err(adopt(message).unwrap_or_else(|error| error)),
        }
    }

    /// Runs a future that settles a promise, and returns the promise's number. `function` is the number of the function
    /// that returned the promise.
    pub(super) fn spawn<F>(
        &self,
        function: Option<u32>,
        future: impl FnOnce(Arc<HostSide>) -> F,
    ) -> u32
    where
        F: Future<Output = Returned> + Send + 'static,
    {
        let me = self.me.upgrade();
        let promise = {
            let mut tables = self.tables.lock();
            tables.next_promise = tables.next_promise.wrapping_add(1);
            let promise = tables.next_promise;
            tables.tasks.insert(promise, None);
            promise
        };
        let Some(me) = me else { return promise };
        let settling = Settling { side: Arc::clone(&me), promise, function, done: false };
        // Without a thread for the future, the promise is settled because `settling` is dropped.
        let Some(handle) = self.tokio.clone().or_else(executor::own) else { return promise };
        let future = future(me);
        let task = handle.spawn(async move {
            let returned = future.await;
            settling.settle(returned);
        });
        match self.tables.lock().tasks.get_mut(&promise) {
            Some(entry) => *entry = Some(task.abort_handle()),
            // The future is done already, or the run has ended.
            None => task.abort(),
        }
        promise
    }

    pub(super) fn settle(&self, promise: u32, completion: Completion) {
        self.tables.lock().tasks.remove(&promise);
        let remote = match &mut *self.stage.lock() {
            Stage::Starting(early) => return early.push((promise, completion)),
            Stage::Running(remote, _) => remote.clone(),
            Stage::Over => return,
        };
        remote.settle_promise(promise, completion);
    }
}

/// Settles a promise however its future ends.
struct Settling {
    side: Arc<HostSide>,
    promise: u32,
    function: Option<u32>,
    done: bool,
}

impl Settling {
    fn settle(mut self, returned: Returned) {
        let cause = Cause::Promise(self.promise);
        let completion = self.side.completion(returned, cause, self.function);
        self.done = true;
        self.side.settle(self.promise, completion);
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if !self.done {
            let returned = if std::thread::panicking() {
                panicked()
            } else {
                Returned::refused(&HostError::new("Error", "the host dropped the promise's future"))
            };
            let cause = Cause::Promise(self.promise);
            let completion = self.side.completion(returned, cause, self.function);
            self.side.settle(self.promise, completion);
        }
    }
}

fn panicked() -> Returned {
    Returned::refused(&HostError::new("Error", "the host function panicked"))
}
