//! What runs ask of their host, in the mailbox of the one JavaScript thread that started them.

use isolane::{
    Mailbox, MailboxHost, Refusal, Validate, Wake,
    value::{Kinds, Value},
};
use napi::{
    Env, Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use crate::limits;

/// The function of JavaScript that takes events. By itself it does not keep the event loop alive.
pub(crate) type Receive = ThreadsafeFunction<(), (), (), Status, false, true>;

/// Wakes the JavaScript thread.
pub(crate) struct NodeWaker(Receive);

impl Wake for NodeWaker {
    fn wake(&self) {
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl NodeWaker {
    pub(crate) fn new(receive: Receive) -> Self {
        Self(receive)
    }

    /// Makes the thread's event loop wait for events, or not.
    pub(crate) fn hold_event_loop(&mut self, env: Env, hold: bool) {
        #[expect(
            deprecated,
            reason = "the number of pending runs changes; a function's kind cannot"
        )]
        let done = if hold { self.0.refer(&env) } else { self.0.unref(&env) };
        // Fails only in an environment that is ending, which waits for nothing anyway.
        drop(done);
    }
}

pub(crate) type NodeMailbox = Mailbox<NodeWaker>;
pub(crate) type NodeHost = MailboxHost<NodeWaker, NodeLimits>;

/// What Node.js cannot build in proportion to its bytes.
pub(crate) struct NodeLimits;

impl Validate for NodeLimits {
    fn validated_kinds(&self) -> Kinds {
        limits::VALIDATED_KINDS
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        limits::refusal(message)
    }
}
