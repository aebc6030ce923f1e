//! The host of one run that queues events in a mailbox.
//!
//! In: calls of a run's [`Host`]. Out: [`HostEvent`]s in a mailbox, which can be exchanged for another one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    host::{Completion, Host, HostCall, Refusal},
    mailbox::{HostEvent, Mailbox, Wake},
};
use crate::value::{Kinds, Value};

/// Finds values that the language of a binding cannot hold. Called on the thread that computes a run.
pub trait Validate: Send + Sync + 'static {
    /// As [`Host::validated_kinds`].
    fn validated_kinds(&self) -> Kinds;

    /// As [`Host::refusal`].
    fn refusal(&self, message: &Value) -> Option<Refusal>;
}

/// A [`Host`] that queues everything in a mailbox. Costs a lock beyond that of the mailbox.
#[derive(Debug)]
pub struct MailboxHost<W, V> {
    address: Mutex<(Arc<Mailbox<W>>, u64)>,
    /// Its own number if it has none.
    lane: Option<u64>,
    validate: V,
}

impl<W: Wake, V> MailboxHost<W, V> {
    /// Queues events in that mailbox under that number.
    pub fn new(mailbox: Arc<Mailbox<W>>, number: u64, validate: V) -> Self {
        Self { address: Mutex::new((mailbox, number)), lane: None, validate }
    }

    /// The same for a cell: its events and those of all other cells with that lane are taken in the order in which they
    /// came. The lane is the number of the session, or a number that no run has.
    #[must_use]
    pub fn in_lane(self, lane: u64) -> Self {
        Self { lane: Some(lane), ..self }
    }

    /// Sends later events, and those that nobody took, to another mailbox. If the run has `settled`, the event of that
    /// is sent once more.
    pub fn forward(&self, mailbox: Arc<Mailbox<W>>, number: u64, settled: impl FnOnce() -> bool) {
        let mut address = self.address();
        let mut waiting = address.0.take(self.lane.unwrap_or(address.1), address.1);
        *address = (mailbox, number);
        // Checked under the lock: a run that has not settled will report that to the new address.
        if settled() && !waiting.iter().any(|event| matches!(event, HostEvent::Settled)) {
            waiting.push(HostEvent::Settled);
        }
        for event in waiting {
            address.0.push_in(self.lane.unwrap_or(number), number, event);
        }
    }

    fn push(&self, event: HostEvent) {
        let address = self.address();
        address.0.push_in(self.lane.unwrap_or(address.1), address.1, event);
    }

    fn address(&self) -> MutexGuard<'_, (Arc<Mailbox<W>>, u64)> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Wake, V: Validate> Host for MailboxHost<W, V> {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        self.push(HostEvent::Call { function, args, call });
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        self.push(HostEvent::Start { function, args, promise });
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.push(HostEvent::FunctionSettled { call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.push(HostEvent::PromiseSettled { promise, completion });
    }

    fn settled(&self) {
        self.push(HostEvent::Settled);
    }

    fn validated_kinds(&self) -> Kinds {
        self.validate.validated_kinds()
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        self.validate.refusal(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl Wake for Nothing {
        fn wake(&self) {}
    }

    impl Validate for Nothing {
        fn validated_kinds(&self) -> Kinds {
            Kinds::NONE
        }

        fn refusal(&self, _message: &Value) -> Option<Refusal> {
            None
        }
    }

    fn events(mailbox: &Mailbox<Nothing>) -> Vec<(u64, String)> {
        let name = |event: HostEvent| match event {
            HostEvent::PromiseSettled { promise, .. } => format!("promise {promise}"),
            HostEvent::Settled => "settled".to_owned(),
            other => format!("{other:?}"),
        };
        let popped = std::iter::from_fn(|| mailbox.pop());
        popped.map(|(number, event)| (number, name(event))).collect()
    }

    #[test]
    fn events_that_nobody_took_go_to_the_new_address() {
        let (old, new) = (Arc::new(Mailbox::default()), Arc::new(Mailbox::default()));
        let host = MailboxHost::new(Arc::clone(&old), 1, Nothing);
        host.promise_settled(5, Ok(Value::undefined()));
        old.push(2, HostEvent::Settled);
        host.forward(Arc::clone(&new), 7, || false);
        host.settled();
        assert_eq!(events(&old), [(2, "settled".to_owned())]);
        assert_eq!(events(&new), [(7, "promise 5".to_owned()), (7, "settled".to_owned())]);
    }

    #[test]
    fn a_run_that_has_settled_says_so_again_at_the_new_address_and_only_once() {
        let (old, new) = (Arc::new(Mailbox::default()), Arc::new(Mailbox::default()));
        let host = MailboxHost::new(Arc::clone(&old), 1, Nothing);
        host.settled();
        host.forward(Arc::clone(&new), 7, || true);
        assert_eq!(events(&new), [(7, "settled".to_owned())]);
        host.forward(Arc::clone(&old), 8, || true);
        assert_eq!(events(&old), [(8, "settled".to_owned())]);
    }
}
