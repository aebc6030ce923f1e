//! Functions and promises that have a number on both sides.
//!
//! In: values of the engine. Out: entries of the tables by which the host and the sandbox name them, and images of these
//! entries for sessions.

use crate::{
    data::portable::portable,
    isolate::engine::{Local, Raw, frames::Caller},
};

/// A function of the sandbox that the host holds.
pub(in crate::isolate) struct Exported {
    pub(super) function: Local,
    /// How often it was sent and not yet released.
    pub(super) sent: u32,
    /// The number of the cell that sent it first, of those that were not undone since.
    pub(in crate::isolate) cell: u32,
    /// The other cells that have sent it, while that one was in flight.
    pub(super) others: Vec<u32>,
}

/// A cell that has sent a function of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) enum Sender {
    InFlight,
    Completed,
    /// The cell was undone, and a part of its state is there.
    Undone,
}

/// A promise of the sandbox that has a number for the host, until the host is notified of its outcome.
pub(in crate::isolate) struct ExportedPromise {
    pub(super) promise: Local,
    /// Whether the host will be notified of its outcome.
    pub(super) watched: bool,
}

impl Exported {
    pub(in crate::isolate) fn function(&self) -> Raw {
        self.function.raw()
    }

    /// Whether an image of both would be the same.
    pub(in crate::isolate) fn is_same(&self, other: &Self) -> bool {
        self.function.is_same(&other.function)
            && (self.sent, self.cell) == (other.sent, other.cell)
            && self.others == other.others
    }

    /// The bytes that it takes beside its own size.
    pub(in crate::isolate) fn size_bytes(&self) -> usize {
        size_of_val(self.others.as_slice())
    }

    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        let Self { function, sent, cell, others } = self;
        Self { function: function.image(), sent: *sent, cell: *cell, others: others.clone() }
    }

    /// A cell has sent it. One that has completed is enough: nothing undoes that.
    pub(super) fn send(&mut self, cell: u32, sender: impl Fn(u32) -> Sender) {
        self.sent = self.sent.saturating_add(1);
        if self.senders().any(|other| other == cell || sender(other) == Sender::Completed) {
            return;
        }
        self.others.retain(|other| sender(*other) != Sender::Undone);
        if sender(self.cell) == Sender::Undone {
            self.cell = cell;
        } else {
            self.others.push(cell);
        }
    }

    /// Whether all cells that have sent it were undone.
    pub(super) fn is_undone(&self, sender: impl Fn(u32) -> Sender) -> bool {
        self.senders().all(|cell| sender(cell) == Sender::Undone)
    }

    fn senders(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.cell).chain(self.others.iter().copied())
    }
}

impl ExportedPromise {
    pub(in crate::isolate) fn promise(&self) -> Raw {
        self.promise.raw()
    }

    /// Whether an image of both would be the same.
    pub(in crate::isolate) fn is_same(&self, other: &Self) -> bool {
        self.promise.is_same(&other.promise) && self.watched == other.watched
    }

    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        Self { promise: self.promise.image(), watched: self.watched }
    }
}

/// A promise of the host that the sandbox waits for.
pub(in crate::isolate) struct HostPromise {
    pub(in crate::isolate) promise: Local,
    pub(super) settle: [Local; 2],
    /// Bytes charged while it is pending: for its entries here and at the host, and for the arguments of the call that
    /// it answers, which the host may need until then.
    pub(super) charged: usize,
    /// The call that it answers, for the stack of an error.
    pub(in crate::isolate) call: Option<HostCall>,
    /// The number of the cell that called.
    pub(in crate::isolate) cell: u32,
    /// Whether its outcome is a text in JSON.
    pub(super) is_json: bool,
}

/// A call of a host function that gave a promise.
pub(in crate::isolate) struct HostCall {
    pub(in crate::isolate) function: Local,
    pub(super) callers: Vec<Caller>,
    /// The number of the call among these.
    pub(in crate::isolate) made: u32,
}

impl HostPromise {
    /// Whether an image of both would be the same. A call never changes once it is there.
    pub(in crate::isolate) fn is_same(&self, other: &Self) -> bool {
        self.promise.is_same(&other.promise)
            && (self.charged, self.cell, self.is_json) == (other.charged, other.cell, other.is_json)
            && self.call.is_some() == other.call.is_some()
    }

    /// The bytes that it takes beside its own size.
    pub(in crate::isolate) fn size_bytes(&self) -> usize {
        self.call.as_ref().map_or(0, HostCall::size_bytes)
    }

    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        let call = self.call.as_ref().map(|call| HostCall {
            function: call.function.image(),
            callers: call.callers.iter().map(Caller::image).collect(),
            made: call.made,
        });
        let settle = self.settle.each_ref().map(Local::image);
        let Self { charged, cell, is_json, .. } = *self;
        Self { promise: self.promise.image(), settle, charged, call, cell, is_json }
    }
}

impl HostCall {
    /// Upper bound of the memory that it takes.
    pub(super) fn size_bytes(&self) -> usize {
        self.callers.capacity() * size_of::<Caller>()
    }

    /// The functions of the sandbox that were running, the innermost first.
    pub(in crate::isolate) fn callers(&self) -> &[Caller] {
        &self.callers
    }
}

portable!(struct Exported { function, sent, cell, others });
portable!(struct ExportedPromise { promise, watched });
portable!(struct HostPromise { promise, settle, charged, call, cell, is_json });
portable!(struct HostCall { function, callers, made });
