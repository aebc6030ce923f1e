//! Functions, promises and whole messages that travel through serde beside the data.
//!
//! Serde has none of these, so they pass as a newtype of a name that only this crate's serializer and deserializer
//! recognize; meanwhile the object itself waits in a slot of the thread. Any other serializer sees a value's plain
//! data, or an error for a function.

use std::{any::Any, cell::RefCell, sync::Arc};

use super::ser::Message;
use crate::value::Value;

/// A function or a promise, opaque to all but the side that owns it. Two are the same if their addresses are.
pub(crate) type HostObject = Arc<dyn Any + Send + Sync>;

/// The newtype that stands for a [`HostObject`].
pub(crate) const HOST_OBJECT: &str = "$isolane::link";

/// The newtype that stands for a whole message.
pub(crate) const MESSAGE: &str = "$isolane::message";

/// An object in the slot.
pub(crate) enum Cargo {
    HostObject(HostObject),
    Message(Message),
    Value(Value),
}

#[derive(Default)]
enum Slot {
    /// No serializer of this crate is asking.
    #[default]
    Closed,
    /// The serializer asks the value that it is about to call.
    Asking,
    Full(Cargo),
}

thread_local! {
    static SLOT: RefCell<Slot> = const { RefCell::new(Slot::Closed) };
}

/// Puts the former content back into the slot, however the body ends.
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

/// Calls `body` and takes the object that it left.
pub(in crate::value) fn ask<E>(body: impl FnOnce() -> Result<(), E>) -> Result<Option<Cargo>, E> {
    let _before = Restore::after(Slot::Asking);
    body().map(|()| take())
}

/// Leaves the object of `cargo`, if this crate's serializer asks for it.
pub(crate) fn answer(cargo: impl FnOnce() -> Cargo) -> bool {
    let asking = SLOT.with_borrow(|slot| matches!(slot, Slot::Asking));
    if asking {
        SLOT.set(Slot::Full(cargo()));
    }
    asking
}

/// Calls `body` with an object in the slot, for it to [`take`].
pub(in crate::value) fn offer<T>(cargo: Cargo, body: impl FnOnce() -> T) -> T {
    let _before = Restore::after(Slot::Full(cargo));
    body()
}

/// The object that this crate's deserializer offers, if there is one.
pub(crate) fn take() -> Option<Cargo> {
    match SLOT.replace(Slot::Closed) {
        Slot::Full(cargo) => Some(cargo),
        Slot::Closed | Slot::Asking => None,
    }
}
