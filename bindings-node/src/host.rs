//! The host of runs: the mailbox of the JavaScript thread that started them.

use isolane::{
    Mailbox, MailboxHost, Refusal, Validate, Wake,
    value::{Kinds, Value},
};
use napi::{
    Env, Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use crate::limits;

/// The JavaScript function that takes events. It does not keep the event loop alive by itself.
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

    /// Keeps the thread's event loop alive, or stops doing so.
    pub(crate) fn hold_event_loop(&mut self, env: Env, hold: bool) {
        #[expect(
            deprecated,
            reason = "the number of pending runs changes; a function's kind cannot"
        )]
        let done = if hold { self.0.refer(&env) } else { self.0.unref(&env) };
        // This fails only in an environment that is ending, whose event loop does not wait.
        drop(done);
    }
}

pub(crate) type NodeMailbox = Mailbox<NodeWaker>;
pub(crate) type NodeHost = MailboxHost<NodeWaker, NodeLimits>;

/// Refuses messages that V8 cannot build in a time in proportion to their bytes.
pub(crate) struct NodeLimits;

impl Validate for NodeLimits {
    fn validated_kinds(&self) -> Kinds {
        limits::VALIDATED_KINDS
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        limits::refusal(message)
    }
}
