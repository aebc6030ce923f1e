//! Functions and promises of the sandbox, lent to the host while the run is running.
//!
//! In: the numbers in a message. Out: handles that call or await them, and that release them when the last clone is
//! dropped. Serde reads them where a type has a field of such a type.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

use super::{
    HostError, Returned,
    function::{deserialize_link, serialize_link},
    side::HostSide,
};
use crate::{
    Completion, SessionHandle, Value,
    os::sync::Mutex,
    value::{
        Event, Fault, LOCAL, Links, Message, Writer, copy_message, from_value,
        serde::host_object::HostObject, to_message, walk,
    },
};

/// A function of the sandbox.
///
/// A host function receives it as an argument, or in a field of one, of this type. It can be called until the run
/// settles. While a clone of it exists the run does not count as stalled.
///
/// ```
/// use isolane::{ExecutionOptions, HostError, HostFunction, Inputs, SandboxFunction, run_code};
///
/// let map = HostFunction::future(|item: u32, f: SandboxFunction| async move {
///     let doubled: u32 = f.call((item,)).await?;
///     Ok::<_, HostError>(doubled + 1)
/// });
/// let source = "export default await map(20, (n) => n * 2)";
/// let globals = Inputs::new().with("map", map);
/// let result = run_code(source, ExecutionOptions { globals, ..Default::default() }).wait()?;
/// assert_eq!(result.result.unwrap_or_default().deserialize::<u32>()?, 41);
/// # Ok::<(), isolane::Error>(())
/// ```
#[derive(Clone)]
pub struct SandboxFunction(Arc<Borrowed>);

/// A promise of the sandbox, to be awaited with [`SandboxPromise::settled`] until the run settles. An outcome from
/// before that is kept as long as a clone exists. Given back to the sandbox it is a promise of the same outcome.
#[derive(Clone)]
pub struct SandboxPromise(Arc<Borrowed>);

/// A function or a promise of the sandbox that the host holds.
pub(super) struct Borrowed {
    side: Arc<HostSide>,
    pub(super) number: u32,
    lent: Lent,
    /// Keeps its session open.
    _session: Option<SessionHandle>,
}

impl Borrowed {
    fn new(side: &Arc<HostSide>, number: u32, lent: Lent) -> Arc<Self> {
        Arc::new(Self { side: Arc::clone(side), number, lent, _session: side.session_handle() })
    }
}

enum Lent {
    /// How often the message named it: it must be released as often.
    Function { times: u32 },
    /// Its number is dead once it has settled; the waiter has the outcome.
    Promise(Arc<Waiter>),
}

impl Borrowed {
    /// Its waiter, if it is a promise.
    pub(super) fn waiter(&self) -> Option<&Arc<Waiter>> {
        match &self.lent {
            Lent::Function { .. } => None,
            Lent::Promise(waiter) => Some(waiter),
        }
    }

    pub(super) fn is_of(&self, side: &HostSide) -> bool {
        std::ptr::eq(&raw const *self.side, side)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Lent::Function { times } = self.lent
            && let Some(remote) = self.side.remote()
        {
            remote.release_function(self.number, times);
        }
    }
}

impl SandboxFunction {
    /// Calls it. The arguments are a tuple, or anything else that serde writes as a sequence.
    ///
    /// The call is made at once. The future yields the returned value, awaited if it is a promise, or the thrown one.
    /// Do not wait for it inside a synchronous host function: the sandbox cannot continue before that returns.
    pub fn call<R: DeserializeOwned>(&self, args: impl Serialize) -> SandboxCall<R> {
        let args = to_message(&args).and_then(|args| match args.value.reader().event()? {
            Event::Array(_) => Ok(args),
            Event::Undefined => Ok(empty()),
            _ => Err(Fault::new("the arguments must be a sequence")),
        });
        let waiter = args.and_then(|args| self.0.side.call_sandbox(self.0.number, &args));
        SandboxCall::new(waiter.map_err(|fault| HostError::serialization(fault, "arguments")))
    }
}

impl SandboxPromise {
    /// A future of its outcome.
    pub fn settled<R: DeserializeOwned>(&self) -> SandboxCall<R> {
        let gone = || HostError::new("Error", GONE);
        SandboxCall::new(self.0.waiter().cloned().ok_or_else(gone))
    }
}

fn empty() -> Message {
    let mut writer = Writer::new();
    writer.array(0);
    Message { value: writer.finish(), links: Vec::new() }
}

macro_rules! lent {
    ($handle:ident, $name:literal) => {
        impl fmt::Debug for $handle {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_tuple(stringify!($handle)).field(&self.0.number).finish()
            }
        }

        impl Serialize for $handle {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize_link(serializer, || Arc::clone(&self.0) as HostObject)
            }
        }

        impl<'de> Deserialize<'de> for $handle {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let lent = deserialize_link::<Borrowed, D>(deserializer, $name)?;
                if lent.waiter().is_none() == ($name == FUNCTION) {
                    Ok(Self(lent))
                } else {
                    Err(serde::de::Error::custom(concat!("expected ", $name)))
                }
            }
        }
    };
}

const FUNCTION: &str = "a function of the sandbox";

lent!(SandboxFunction, "a function of the sandbox");
lent!(SandboxPromise, "a promise of the sandbox");

/// A future of the outcome of a call into the sandbox. Dropping it does not cancel the call.
#[must_use = "the call is made either way; await it for its outcome"]
pub struct SandboxCall<R> {
    waiter: Result<Arc<Waiter>, HostError>,
    outcome: PhantomData<fn() -> R>,
}

impl<R> SandboxCall<R> {
    fn new(waiter: Result<Arc<Waiter>, HostError>) -> Self {
        Self { waiter, outcome: PhantomData }
    }
}

impl<R> fmt::Debug for SandboxCall<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SandboxCall").finish_non_exhaustive()
    }
}

impl<R: DeserializeOwned> Future for SandboxCall<R> {
    type Output = Result<R, HostError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = match &self.waiter {
            Ok(waiter) => waiter,
            Err(error) => return Poll::Ready(Err(error.clone())),
        };
        waiter.poll(context).map(|settled| match settled {
            Some((Ok(value), received)) => from_value(&value, Some(&*received))
                .map_err(|fault| HostError::of_fault("TypeError", fault, "result")),
            Some((Err(thrown), _)) => Err(HostError::from_value(&thrown)),
            None => Err(HostError::new("Error", GONE)),
        })
    }
}

/// The message for functions and promises that come too late.
const GONE: &str = "the run has settled: its functions and promises are gone";

/// Waits for one outcome.
pub(super) struct Waiter(Mutex<Wait>);

enum Wait {
    Open(Vec<Waker>),
    Settled(Completion, Arc<Received>),
    /// The run settled first.
    Closed,
}

impl Default for Waiter {
    fn default() -> Self {
        Self(Mutex::new(Wait::Open(Vec::new())))
    }
}

impl Waiter {
    /// The outcome, `None` if the run settled first.
    fn poll(&self, context: &Context<'_>) -> Poll<Option<(Completion, Arc<Received>)>> {
        match &mut *self.0.lock() {
            Wait::Settled(completion, received) => {
                Poll::Ready(Some((completion.clone(), Arc::clone(received))))
            }
            Wait::Closed => Poll::Ready(None),
            Wait::Open(wakers) => {
                wakers.retain(|known| !known.will_wake(context.waker()));
                wakers.push(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The outcome, on its way back to the sandbox.
    pub(super) async fn outcome(&self) -> Returned {
        match std::future::poll_fn(|context| self.poll(context)).await {
            Some((Ok(value), received)) => Returned::from_outcome(Ok(received.message(&value))),
            Some((Err(thrown), received)) => Returned::from_outcome(Err(received.message(&thrown))),
            None => Returned::refused(&HostError::new("Error", GONE)),
        }
    }

    pub(super) fn settle(&self, completion: Completion, received: Arc<Received>) {
        self.finish(Wait::Settled(completion, received));
    }

    pub(super) fn close(&self) {
        self.finish(Wait::Closed);
    }

    fn finish(&self, outcome: Wait) {
        let mut state = self.0.lock();
        if let Wait::Open(wakers) = &mut *state {
            let wakers = std::mem::take(wakers);
            *state = outcome;
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// Everything that one message lent. Kept until none of it is needed.
#[derive(Default)]
pub(super) struct Received {
    side: Option<Arc<HostSide>>,
    functions: HashMap<u32, Arc<Borrowed>>,
    promises: HashMap<u32, Arc<Borrowed>>,
    /// The promise whose outcome the message is, if the message names it. That promise holds this, so this must not
    /// hold it.
    itself: Option<(u32, Weak<Waiter>)>,
}

impl Received {
    /// A message of the code of `cell`. `outcome_of` is the promise that it settles.
    pub(super) fn new(
        side: &Arc<HostSide>,
        cell: &HostSide,
        message: &Value,
        outcome_of: Option<u32>,
    ) -> Self {
        let mut received = Self { side: Some(Arc::clone(side)), ..Self::default() };
        if !message.may_lend() {
            return received;
        }
        let (mut functions, mut promises) = (HashMap::new(), Vec::new());
        // A message that cannot be read lends nothing.
        let _ = walk(message, |event| match event {
            Event::SandboxFunction(number) => *functions.entry(*number).or_insert(0) += 1,
            Event::SandboxPromise(number) => promises.push(*number),
            _ => {}
        });
        let borrowed = |number, lent| (number, Borrowed::new(side, number, lent));
        for number in promises {
            let waiter = side.sandbox_promise(cell, number);
            if outcome_of == Some(number) {
                received.itself = Some((number, Arc::downgrade(&waiter)));
            } else {
                received.promises.extend([borrowed(number, Lent::Promise(waiter))]);
            }
        }
        let lend = |(number, times)| borrowed(number, Lent::Function { times });
        received.functions = functions.into_iter().map(lend).collect();
        received
    }

    /// A message made of a part of one that arrived; it keeps alive the functions and promises that that one lent.
    fn message(&self, value: &Value) -> Message {
        let (mut writer, mut links) = (Writer::new(), Vec::new());
        let copied = copy_message(value, &mut writer, "", &mut |writer, event, name| {
            let link = self.link(&event).ok_or_else(|| Fault::new("a promise is missing"))?;
            writer.host_function(LOCAL | u32::try_from(links.len()).unwrap_or(LOCAL - 1));
            writer.string(name);
            links.push(link);
            Ok(())
        });
        match copied {
            Ok(()) => Message { value: writer.finish(), links },
            Err(_) => Message { value: value.clone(), links: Vec::new() },
        }
    }
}

impl Links for Received {
    fn link(&self, event: &Event<'_>) -> Option<HostObject> {
        match event {
            Event::HostFunction(number) => {
                let function = self.side.as_ref()?.function(*number)?;
                Some(function as HostObject)
            }
            Event::SandboxFunction(number) => {
                self.functions.get(number).map(|lent| Arc::clone(lent) as HostObject)
            }
            Event::SandboxPromise(number) => match &self.itself {
                Some((itself, waiter)) if itself == number => {
                    let (side, lent) = (self.side.clone()?, Lent::Promise(waiter.upgrade()?));
                    Some(Borrowed::new(&side, *number, lent))
                }
                _ => self.promises.get(number).map(|lent| Arc::clone(lent) as HostObject),
            },
            _ => None,
        }
    }
}
