//! Messages from a host to a running run.

use super::host::Completion;
use std::sync::Arc;

use crate::{
    data::portable::portable,
    value::{ErrorClass, Event, InFlight, Value, Writer, walk},
};

/// The message for answers and arguments that do not fit into a session between two cells.
pub(crate) const TOO_LARGE: &str =
    "the message is larger than the session's memory limit leaves room for";

/// An error that code of one side throws on the other.
pub(crate) fn thrown(name: &str, message: &str) -> Value {
    let mut writer = Writer::new();
    writer.error(ErrorClass::Error);
    writer.string(name);
    writer.string(message);
    writer.undefined();
    writer.undefined();
    writer.finish()
}

/// A message from the host to a run.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// A promise of the host settled.
    PromiseSettled { promise: u32, completion: Completion },
    /// The host calls a function of the sandbox.
    FunctionCall { function: u32, args: Value, call: u32 },
    /// The host releases a function that it received so many times.
    FunctionReleased { function: u32, times: u32 },
}

portable!(enum Inbound {
    0: PromiseSettled { promise, completion },
    1: FunctionCall { function, args, call },
    2: FunctionReleased { function, times },
});

impl Inbound {
    /// Counts its message as under way. Returns false if there is no room for it; it must not be delivered then.
    pub(crate) fn count(&mut self, in_flight: &Arc<InFlight>, limit_bytes: usize) -> bool {
        let Some(message) = self.message_mut() else { return true };
        if in_flight.bytes().saturating_add(message.held_bytes()) > limit_bytes {
            return false;
        }
        *message = std::mem::take(message).sent(in_flight);
        true
    }

    /// The promise of the host whose outcome it is.
    pub(crate) fn settles(&self) -> Option<u32> {
        match self {
            Self::PromiseSettled { promise, .. } => Some(*promise),
            Self::FunctionCall { .. } | Self::FunctionReleased { .. } => None,
        }
    }

    /// Makes the outcome of a promise an error, because there is no room for it.
    pub(crate) fn refuse(&mut self) {
        if let Self::PromiseSettled { completion, .. } = self {
            *completion = Err(thrown("MemoryLimit", TOO_LARGE));
        }
    }

    /// The same message for a copy of the session; it does not count as under way.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::PromiseSettled { promise, completion } => {
                Self::PromiseSettled { promise: *promise, completion: completion.clone() }
            }
            Self::FunctionCall { function, args, call } => {
                Self::FunctionCall { function: *function, args: args.clone(), call: *call }
            }
            Self::FunctionReleased { function, times } => {
                Self::FunctionReleased { function: *function, times: *times }
            }
        }
    }

    /// The bytes that its message holds.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::PromiseSettled { completion: Ok(value) | Err(value), .. } => value.held_bytes(),
            Self::FunctionCall { args, .. } => args.held_bytes(),
            Self::FunctionReleased { .. } => 0,
        }
    }

    /// The promises of the host that arrive with it.
    pub(crate) fn brings(&self) -> Vec<u32> {
        let mut promises = Vec::new();
        let message = match self {
            Self::PromiseSettled { completion: Ok(value) | Err(value), .. } => value,
            Self::FunctionCall { args, .. } => args,
            Self::FunctionReleased { .. } => return promises,
        };
        // A message that cannot be read is refused where it is read.
        let _ = walk(message, |event| {
            if let Event::HostPromise(number) = event {
                promises.push(*number);
            }
        });
        promises
    }

    pub(crate) fn message_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::PromiseSettled { completion: Ok(value) | Err(value), .. } => Some(value),
            Self::FunctionCall { args, .. } => Some(args),
            Self::FunctionReleased { .. } => None,
        }
    }
}
