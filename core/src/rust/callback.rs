//! Functions of a call's host, as host functions of a run.

use std::{future, sync::Arc};

use super::{
    HostError, Returned,
    function::{Function, HostFunction, Pending},
};
use crate::{
    Callback, Completion, Value,
    value::{Event, walk},
};

impl Callback {
    /// The function for code in a sandbox, to which it always answers with a promise. Only data crosses: a function or a
    /// promise among the arguments, or in the outcome, throws a `TypeError` in the sandbox.
    #[must_use]
    pub fn host_function(&self) -> HostFunction {
        let callback = self.clone();
        HostFunction::pending(move |args| {
            if has_link(&args) {
                return Box::pin(future::ready(refused("the arguments have")));
            }
            let reply = callback.call_with(args);
            Box::pin(async move { plain(reply.await) })
        })
    }
}

impl HostFunction {
    fn pending(function: impl Fn(Value) -> Pending + Send + Sync + 'static) -> Self {
        Self(Arc::new(Function::Future(Box::new(move |call| function(call.args)))))
    }
}

fn plain(completion: Completion) -> Returned {
    let (Ok(value) | Err(value)) = &completion;
    if has_link(value) { refused("the answer has") } else { completion.into() }
}

fn refused(place: &str) -> Returned {
    let message = format!("{place} a function or a promise; only data can cross here");
    Returned::refused(&HostError::new("TypeError", message))
}

/// Whether a message has a function or a promise. One that cannot be read has none, and is refused where it is read.
fn has_link(message: &Value) -> bool {
    let mut found = false;
    let _ = walk(message, |event| {
        found |= matches!(
            event,
            Event::HostFunction(_)
                | Event::SandboxFunction(_)
                | Event::HostPromise(_)
                | Event::SandboxPromise(_)
        );
    });
    found
}
