//! What travels through serde beside the data: functions, promises and whole messages.
//!
//! Serde knows neither, so they pass as a newtype of a name that only this crate's serializer and
//! deserializer know; the thing itself waits in a slot of the thread meanwhile. Any other
//! serializer sees a value's plain data, or an error for a function.

use std::{any::Any, cell::RefCell, sync::Arc};

use super::ser::Message;
use crate::value::Value;

/// A function or a promise, known only to the side that owns it. Two are the same when their
/// addresses are.
pub(crate) type HostObject = Arc<dyn Any + Send + Sync>;

/// The newtype that stands for a [`HostObject`].
pub(crate) const HOST_OBJECT: &str = "$isolane::link";

/// The newtype that stands for a whole message.
pub(crate) const MESSAGE: &str = "$isolane::message";

/// What is on its way.
pub(crate) enum Cargo {
    HostObject(HostObject),
    Message(Message),
    Value(Value),
}

#[derive(Default)]
enum Slot {
    /// Nobody of this crate is asking.
    #[default]
    Closed,
    /// The serializer asks the value that it is about to call.
    Asking,
    Full(Cargo),
}

thread_local! {
    static SLOT: RefCell<Slot> = const { RefCell::new(Slot::Closed) };
}

/// Puts back what was in the slot before, however the body ends.
struct Restore(Slot);

impl Restore {
    fn after(now: Slot) -> Self {
        Self(SLOT.replace(now))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        SLOT.set(std::mem::take(&mut self.0));
    }
}

/// Calls `body` and takes what it left.
pub(in crate::value) fn ask<E>(body: impl FnOnce() -> Result<(), E>) -> Result<Option<Cargo>, E> {
    let _before = Restore::after(Slot::Asking);
    body().map(|()| take())
}

/// Leaves what `cargo` makes, if this crate's serializer asks for it.
pub(crate) fn answer(cargo: impl FnOnce() -> Cargo) -> bool {
    let asking = SLOT.with_borrow(|slot| matches!(slot, Slot::Asking));
    if asking {
        SLOT.set(Slot::Full(cargo()));
    }
    asking
}

/// Calls `body` with something in the slot, for it to [`take`].
pub(in crate::value) fn offer<T>(cargo: Cargo, body: impl FnOnce() -> T) -> T {
    let _before = Restore::after(Slot::Full(cargo));
    body()
}

/// What this crate's deserializer offers, if anything.
pub(crate) fn take() -> Option<Cargo> {
    match SLOT.replace(Slot::Closed) {
        Slot::Full(cargo) => Some(cargo),
        Slot::Closed | Slot::Asking => None,
    }
}
