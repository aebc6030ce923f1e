//! Calls of which a face wants nothing but the answer.
//!
//! In: a method and arguments without functions. Out: the answer, on any thread. No event comes of such a call, so it costs
//! a face less than one that is a run for it.

use std::sync::Arc;

use isolane::{
    Completion, Error, Host, HostCall, HostError, Refusal, RunHandle, Value, start_call,
    value::Kinds,
};

use crate::{System, no_thread};

/// Has a method answer later: `done` receives the answer or the thrown value, once, on any thread. `args` is an array, one
/// message; nothing can call functions in it. The handle ends the call.
///
/// # Errors
/// Misuse, as [`System::call`] words it. `done` is not called then.
pub fn answer(
    system: &dyn System,
    method: &str,
    args: Value,
    done: impl FnOnce(Completion) + Send + 'static,
) -> Result<RunHandle, Error> {
    start_call(
        Arc::new(NoHost),
        |caller| {
            let called = system.call_with(method, args, caller)?;
            let done = Done(Some(done));
            Ok(async move {
                done.receives(called.future.await);
                Ok(Value::undefined())
            })
        },
        no_thread,
    )
}

/// Receives an answer, also if the call panics.
struct Done<D: FnOnce(Completion)>(Option<D>);

impl<D: FnOnce(Completion)> Done<D> {
    fn receives(mut self, answer: Completion) {
        if let Some(done) = self.0.take() {
            done(answer);
        }
    }
}

impl<D: FnOnce(Completion)> Drop for Done<D> {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(HostError::new("Error", "the call ended unexpectedly").to_value()));
        }
    }
}

/// The host of calls whose events nobody receives.
struct NoHost;

impl Host for NoHost {
    fn call(&self, _function: u32, _args: Value, _call: HostCall) {}

    fn start(&self, _function: u32, _args: Value, _promise: u32) {}

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {}

    fn validated_kinds(&self) -> Kinds {
        Kinds::NONE
    }

    fn refusal(&self, _message: &Value) -> Option<Refusal> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use isolane::Caller;

    use super::*;
    use crate::{Called, Given, no_method};

    struct Echo;

    impl System for Echo {
        fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
            match method {
                "echo" => Ok(Called::new(async move {
                    let first = args.into_iter().next().unwrap_or_default();
                    Ok(Value::serialize(&first).unwrap_or_default())
                })),
                "wait" => {
                    let terminated = caller.terminated();
                    Ok(Called::new(async move {
                        Err(Value::serialize(&terminated.await).unwrap_or_default())
                    }))
                }
                "panic" => Ok(Called::new(async { panic!("by the test") })),
                _ => Err(no_method(method)),
            }
        }

        fn ask(&self, method: &str, _: Vec<Given>) -> Result<Value, Error> {
            Err(no_method(method))
        }
    }

    fn asked(method: &str) -> (Result<RunHandle, Error>, Receiver<Completion>) {
        let (sender, receiver): (Sender<Completion>, _) = channel();
        let args = Value::serialize(&["given"]).expect("a message");
        let done = move |answer| drop(sender.send(answer));
        (answer(&Echo, method, args, done), receiver)
    }

    fn message(text: &str) -> Value {
        Value::serialize(text).expect("a message")
    }

    #[test]
    fn an_answer_arrives_once_whatever_ends_the_call() {
        let (call, answers) = asked("echo");
        assert!(call.is_ok());
        assert_eq!(answers.iter().collect::<Vec<_>>(), [Ok(message("given"))]);
        let (call, answers) = asked("wait");
        call.expect("a call").terminate(Some("enough"));
        assert_eq!(answers.iter().collect::<Vec<_>>(), [Err(message("enough"))]);
        let (call, answers) = asked("panic");
        assert!(call.is_ok());
        assert!(matches!(answers.iter().collect::<Vec<_>>().as_slice(), [Err(_)]));
    }

    #[test]
    fn a_call_that_is_refused_has_no_answer() {
        let (call, answers) = asked("none");
        assert_eq!(call.expect_err("misuse").message(), "there is no method 'none'");
        assert_eq!(answers.iter().count(), 0);
    }
}
