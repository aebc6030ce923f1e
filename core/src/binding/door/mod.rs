//! Calls whose code is Rust, as runs for their callers.
//!
//! In: a future, and the [`Host`] of its caller. Out: a [`RunHandle`], as on any run: a binding delivers its events,
//! terminates it and takes its result in the same way. The future calls functions of the host through [`Caller`] and
//! [`Callback`], and observes the termination. `call` is such a run, `callback` a function of its host.

mod call;
mod callback;

use std::{future::Future, sync::Arc};

use self::call::Call;
pub use self::call::{Caller, Terminated};
pub use self::callback::{Callback, Reply};
use super::{
    executor,
    handle::RunHandle,
    host::{Completion, Host},
    inbound::thrown,
};

/// Starts a call: runs the future on this library's thread for futures, in tokio. The future must not block. The result
/// has status `success` with the value, or `error` with the thrown value as its `result`.
///
/// # Errors
/// The refusal of `begin`, which is called at once; none of the host's functions can be called before it returns. And
/// the text for a system without a thread for futures.
pub fn start_call<E, F>(
    host: Arc<dyn Host>,
    begin: impl FnOnce(&Caller) -> Result<F, E>,
    no_thread: impl FnOnce(&'static str) -> E,
) -> Result<RunHandle, E>
where
    F: Future<Output = Completion> + Send + 'static,
{
    let call = Arc::new(Call::new(host));
    let caller = Caller::new(Arc::clone(&call));
    let future = begin(&caller)?;
    let Some(executor) = executor::own() else {
        return Err(no_thread("the system has no thread for futures"));
    };
    let settling = Settling(Some(Arc::clone(&call)));
    // Nobody aborts the task.
    drop(executor.spawn(async move {
        let completion = future.await;
        settling.settle(completion);
    }));
    Ok(RunHandle::new(call))
}

/// Settles a call, also if its future panics.
struct Settling(Option<Arc<Call>>);

impl Settling {
    fn settle(mut self, completion: Completion) {
        if let Some(call) = self.0.take() {
            call.settle(completion);
        }
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.settle(Err(thrown("Error", "the call ended unexpectedly")));
        }
    }
}
