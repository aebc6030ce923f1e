//! A function of the host that a call has received.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::call::Call;
use crate::{
    binding::host::{ASYNC_FUNCTION, Completion},
    value::Value,
};

/// A function of the caller's language. Cheap to clone; works until the call that received it has settled.
#[derive(Clone)]
pub struct Callback {
    call: Arc<Call>,
    number: u32,
}

impl Callback {
    pub(super) fn new(call: Arc<Call>, number: u32) -> Self {
        Self { call, number: number & !ASYNC_FUNCTION }
    }

    /// Calls the function on its own thread or loop; the outcome is that of its promise, if it returns one. The call is
    /// made now, also if nobody polls. After the end of the call, the outcome is an error.
    #[must_use = "the function is called; to ignore its outcome, use `notify`"]
    pub fn call(&self, args: &[Value]) -> Reply {
        self.call_with(list(args))
    }

    /// The same with all arguments in one array.
    pub(crate) fn call_with(&self, args: Value) -> Reply {
        let promise = self.call.invoke(self.number, args, true);
        Reply { call: Arc::clone(&self.call), promise }
    }

    /// Calls the function and does not wait; its outcome is dropped.
    pub fn notify(&self, args: &[Value]) {
        self.call.invoke(self.number, list(args), false);
    }
}

impl PartialEq for Callback {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call) && self.number == other.number
    }
}

impl Eq for Callback {}

impl fmt::Debug for Callback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Callback").field(&self.number).finish()
    }
}

/// The outcome of a [`Callback`].
#[derive(Debug)]
pub struct Reply {
    call: Arc<Call>,
    /// `None` if the function was not called, because its call has settled.
    promise: Option<u32>,
}

impl Future for Reply {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        // Zero is no promise, so its outcome is the error of a settled call.
        self.call.poll_promise(self.promise.unwrap_or_default(), context.waker())
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(promise) = self.promise {
            self.call.forget_promise(promise);
        }
    }
}

/// An array of messages. A message with a function of another owner cannot be in it; then the array is empty.
fn list(args: &[Value]) -> Value {
    Value::serialize(args).unwrap_or_else(|_| Value::serialize::<[(); 0]>(&[]).unwrap_or_default())
}
