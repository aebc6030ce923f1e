//! One call whose code is Rust, from its start to its result.
//!
//! In: settled promises and the termination, from the host; a completion, from the call's future. Out: events for the
//! [`Host`], and one result.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use super::callback::Callback;
use crate::{
    binding::{
        handle::{Recipient, RunControl},
        host::{Completion, Host},
        inbound::{Inbound, thrown},
    },
    data::outcome::{ExecutionResult, Status},
    os::{process::Process, sync::Mutex},
    value::{Charge, Value},
};

/// A call that was started by [`start_call`](super::start_call).
pub(super) struct Call {
    process: Process,
    host: Arc<dyn Host>,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_promise: u32,
    /// The promises of the host that somebody awaits.
    awaited: HashMap<u32, Slot>,
    ending: Ending,
    /// Those that wait for the termination, by their numbers.
    watchers: HashMap<u64, Waker>,
    last_watcher: u64,
    has_settled: bool,
    /// Whether no thread of the host takes events of this call.
    is_lost: bool,
    result: Option<ExecutionResult>,
}

/// Whether the caller has ended the call.
#[derive(Default)]
enum Ending {
    #[default]
    None,
    Terminated {
        reason: Option<String>,
    },
}

impl Ending {
    fn is_terminated(&self) -> bool {
        matches!(self, Self::Terminated { .. })
    }
}

enum Slot {
    Waiting(Option<Waker>),
    Done(Completion),
}

impl Call {
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self { process: Process::current(), host, started: Instant::now(), state: Mutex::default() }
    }

    /// Calls a function of the host; returns the number of the promise of its outcome.
    pub(super) fn invoke(&self, function: u32, args: Value, is_awaited: bool) -> Option<u32> {
        let promise = {
            let mut state = self.state.lock();
            if state.has_settled {
                return None;
            }
            state.last_promise = state.last_promise.wrapping_add(1);
            let promise = state.last_promise;
            let is_lost = state.is_lost;
            if is_awaited {
                let slot = if is_lost { Slot::Done(Err(lost())) } else { Slot::Waiting(None) };
                state.awaited.insert(promise, slot);
            }
            if is_lost {
                return Some(promise);
            }
            promise
        };
        self.host.start(function, args, promise);
        Some(promise)
    }

    /// The outcome of a promise.
    pub(super) fn poll_promise(&self, promise: u32, waker: &Waker) -> Poll<Completion> {
        let mut state = self.state.lock();
        match state.awaited.get_mut(&promise) {
            Some(Slot::Waiting(waiting)) => {
                *waiting = Some(waker.clone());
                Poll::Pending
            }
            Some(Slot::Done(_)) => match state.awaited.remove(&promise) {
                Some(Slot::Done(completion)) => Poll::Ready(completion),
                _ => Poll::Ready(Err(over())),
            },
            None => Poll::Ready(Err(over())),
        }
    }

    /// Nobody awaits that promise any more.
    pub(super) fn forget_promise(&self, promise: u32) {
        self.state.lock().awaited.remove(&promise);
    }

    /// Ends the call with its completion: for the host, all at once.
    pub(super) fn settle(&self, completion: Completion) {
        let (status, Ok(value) | Err(value)) = match completion {
            Ok(_) => (Status::Success, completion),
            Err(_) => (Status::Error, completion),
        };
        let result = ExecutionResult {
            status,
            result: Some(value),
            reports: Vec::new(),
            logs: Vec::new(),
            error: None,
            duration_ms: self.started.elapsed().as_secs_f64() * 1e3,
            memory_used_bytes: None,
            cell: None,
        };
        let (awaited, watchers) = {
            let mut state = self.state.lock();
            state.has_settled = true;
            state.result = Some(result);
            (std::mem::take(&mut state.awaited), std::mem::take(&mut state.watchers))
        };
        self.host.settled();
        for slot in awaited.into_values() {
            if let Slot::Waiting(Some(waker)) = slot {
                waker.wake();
            }
        }
        watchers.into_values().for_each(Waker::wake);
    }
}

/// The error of a callback whose call has settled.
fn over() -> Value {
    thrown("Error", "the call has settled; no function that it received can be called any more")
}

/// The error of a callback whose caller takes no events.
fn lost() -> Value {
    thrown("Error", "the event loop of the function has closed")
}

impl fmt::Debug for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").finish_non_exhaustive()
    }
}

impl Recipient for Call {
    fn deliver(self: Arc<Self>, inbound: Inbound) {
        match inbound {
            Inbound::PromiseSettled { promise, completion } => {
                let waker = {
                    let mut state = self.state.lock();
                    let Some(slot) = state.awaited.get_mut(&promise) else { return };
                    match std::mem::replace(slot, Slot::Done(completion)) {
                        Slot::Waiting(waker) => waker,
                        Slot::Done(_) => None,
                    }
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            // A call gives out no functions.
            Inbound::FunctionCall { call, .. } => {
                self.host.function_settled(call, Err(thrown("Error", "there is no such function")));
            }
            Inbound::FunctionReleased { .. } => {}
        }
    }

    fn charge(self: Arc<Self>, _bytes: usize) -> Option<Charge> {
        None
    }

    fn ended_by_itself(&self) -> bool {
        let state = self.state.lock();
        state.has_settled && !state.ending.is_terminated()
    }
}

impl RunControl for Call {
    fn is_here(&self) -> bool {
        self.process.is_current()
    }

    fn running(&self) -> bool {
        // In a forked child the lock may be held for ever.
        !self.is_here() || !self.state.lock().has_settled
    }

    fn was_ended(&self) -> bool {
        let state = self.state.lock();
        state.has_settled && state.ending.is_terminated()
    }

    fn lose_host(&self, is_lost: bool) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            state.is_lost = is_lost;
            if is_lost {
                for slot in state.awaited.values_mut() {
                    if let Slot::Waiting(waker) = slot {
                        wakers.extend(waker.take());
                        *slot = Slot::Done(Err(lost()));
                    }
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn terminate(self: Arc<Self>, reason: Option<&str>) {
        let watchers = {
            let mut state = self.state.lock();
            if state.ending.is_terminated() || state.has_settled {
                return;
            }
            state.ending = Ending::Terminated { reason: reason.map(str::to_owned) };
            std::mem::take(&mut state.watchers)
        };
        watchers.into_values().for_each(Waker::wake);
    }

    fn reply(self: Arc<Self>, _call: u64, _completion: Completion) {}

    fn reports_since(&self, _index: usize) -> Vec<Arc<Value>> {
        Vec::new()
    }

    fn take_report(&self) -> Option<Value> {
        None
    }

    fn result_bytes(&self) -> usize {
        let state = self.state.lock();
        let value = state.result.as_ref().and_then(|result| result.result.as_ref());
        value.map_or(0, Value::held_bytes)
    }

    fn lend_result(&self) -> Option<ExecutionResult> {
        None
    }

    fn return_result(&self, _result: ExecutionResult) {}

    fn take_result(&self) -> Option<ExecutionResult> {
        self.state.lock().result.take()
    }
}

/// The caller of a call, as its future sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Call>);

impl Caller {
    pub(super) fn new(call: Arc<Call>) -> Self {
        Self(call)
    }

    /// The host's function with that number, which came in a message of the call.
    #[must_use]
    pub fn function(&self, number: u32) -> Callback {
        Callback::new(Arc::clone(&self.0), number)
    }

    /// Waits until the caller ends the call; gives the reason, if there is one. Also ready once the call has settled.
    #[must_use]
    pub fn terminated(&self) -> Terminated {
        Terminated { call: Arc::clone(&self.0), number: None }
    }

    /// Whether the caller has ended the call.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.0.state.lock().ending.is_terminated()
    }
}

/// Waits for the end of a call by its caller: see [`Caller::terminated`].
#[derive(Debug)]
pub struct Terminated {
    call: Arc<Call>,
    number: Option<u64>,
}

impl Future for Terminated {
    type Output = Option<String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = Arc::clone(&self.call);
        let mut state = call.state.lock();
        if let Ending::Terminated { reason } = &state.ending {
            return Poll::Ready(reason.clone());
        }
        if state.has_settled {
            return Poll::Ready(None);
        }
        let number = *self.number.get_or_insert_with(|| {
            state.last_watcher += 1;
            state.last_watcher
        });
        state.watchers.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Terminated {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.call.state.lock().watchers.remove(&number);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, task::Waker};

    use super::*;
    use crate::{
        binding::{
            door::{Reply, start_call},
            handle::RunHandle,
            host::{HostCall, Refusal},
        },
        value::Kinds,
    };

    /// Tells a test of the events.
    struct Told(Mutex<mpsc::Sender<String>>);

    impl Told {
        fn tell(&self, text: String) {
            // The test has ended if nobody listens.
            let _ = self.0.lock().send(text);
        }
    }

    impl Host for Told {
        fn call(&self, _function: u32, _args: Value, _call: HostCall) {}

        fn start(&self, function: u32, args: Value, promise: u32) {
            let args: Vec<u32> = args.deserialize().expect("the arguments are numbers");
            self.tell(format!("start {function} {args:?} {promise}"));
        }

        fn function_settled(&self, call: u32, completion: Completion) {
            self.tell(format!("function {call} {}", completion.is_ok()));
        }

        fn promise_settled(&self, _promise: u32, _completion: Completion) {}

        fn settled(&self) {
            self.tell("settled".to_owned());
        }

        fn validated_kinds(&self) -> Kinds {
            Kinds::NONE
        }

        fn refusal(&self, _message: &Value) -> Option<Refusal> {
            None
        }
    }

    fn number(value: u32) -> Value {
        Value::serialize(&value).expect("a number is a message")
    }

    fn started<F>(begin: impl FnOnce(&Caller) -> F) -> (RunHandle, mpsc::Receiver<String>)
    where
        F: Future<Output = Completion> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel();
        let host = Arc::new(Told(Mutex::new(sender)));
        let begin = |caller: &Caller| Ok::<_, &'static str>(begin(caller));
        (start_call(host, begin, |text| text).expect("the call starts"), receiver)
    }

    #[test]
    fn a_call_awaits_a_function_of_its_host_and_settles_with_its_answer() {
        let (handle, events) = started(|caller| {
            let double = caller.function(7);
            async move { double.call(&[number(21)]).await }
        });
        assert_eq!(events.recv().as_deref(), Ok("start 7 [21] 1"));
        assert!(handle.running());
        handle.settle_promise(1, Ok(number(42)));
        assert_eq!(events.recv().as_deref(), Ok("settled"));
        let result = handle.take_result().expect("the call has settled");
        assert_eq!((result.status, result.result), (Status::Success, Some(number(42))));
        assert!(!handle.running() && !handle.was_ended() && handle.take_result().is_none());
    }

    #[test]
    fn the_future_observes_the_first_reason_of_its_termination() {
        let (handle, events) = started(|caller| {
            let terminated = caller.terminated();
            async move { Err(Value::serialize(&terminated.await).unwrap_or_default()) }
        });
        handle.terminate(Some("enough"));
        handle.terminate(Some("late"));
        assert_eq!(events.recv().as_deref(), Ok("settled"));
        let result = handle.take_result().expect("the call has settled");
        let reason = Value::serialize("enough").ok();
        assert_eq!((result.status, result.result), (Status::Error, reason));
        assert!(handle.was_ended());
    }

    #[test]
    fn functions_of_a_host_that_is_lost_throw_until_it_is_back() {
        let (handle, events) = started(|caller| {
            let double = caller.function(7);
            async move {
                let mut outcomes = Vec::new();
                for number in 1..=3 {
                    outcomes.push(double.call(&[super::tests::number(number)]).await.is_ok());
                }
                Ok(Value::serialize(&outcomes).unwrap_or_default())
            }
        });
        assert_eq!(events.recv().as_deref(), Ok("start 7 [1] 1"));
        handle.lose_host(true);
        assert_eq!(events.recv().as_deref(), Ok("settled"));
        let result = handle.take_result().and_then(|result| result.result);
        assert_eq!(result, Value::serialize(&[false; 3]).ok());

        let (handle, events) = started(|caller| {
            let double = caller.function(7);
            async move { double.call(&[number(21)]).await }
        });
        handle.lose_host(true);
        // The function was called before, or was not.
        while events.recv().expect("the call settles") != "settled" {}
        let (handle, events) = started(|caller| {
            let (double, terminated) = (caller.function(7), caller.terminated());
            async move {
                terminated.await;
                double.call(&[number(21)]).await
            }
        });
        handle.lose_host(true);
        handle.lose_host(false);
        handle.terminate(None);
        assert_eq!(events.recv().as_deref(), Ok("start 7 [21] 1"));
        handle.settle_promise(1, Ok(number(42)));
        assert_eq!(events.recv().as_deref(), Ok("settled"));
        assert_eq!(handle.take_result().map(|result| result.status), Some(Status::Success));
    }

    #[test]
    fn a_panic_settles_the_call_and_a_function_of_a_settled_call_throws() {
        let (sender, receiver) = mpsc::channel();
        let (handle, events) = started(move |caller| {
            let function = caller.function(0);
            async move {
                sender.send(function).expect("the test listens");
                panic!("by the test")
            }
        });
        assert_eq!(events.recv().as_deref(), Ok("settled"));
        assert_eq!(handle.take_result().map(|result| result.status), Some(Status::Error));
        let function = receiver.recv().expect("the call sent its function");
        let mut reply: Pin<Box<Reply>> = Box::pin(function.call(&[]));
        let poll = reply.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(poll, Poll::Ready(Err(_))));
    }
}
