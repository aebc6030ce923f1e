//! The numbers of frames, for both halves of the package.
//!
//! `bindings-node/wire.mjs` generates `lib/addon/wire.ts` from this file and two files of the core. Run it after a change; a
//! test compares the two. The program reads lines of the forms below, with the documentation above them.

/// In place of a message's length: the message is a large one, and its number follows.
pub(crate) const LARGE: u32 = 0xFFFF_FFFF;

/// In the count of a batch of events: more events are waiting.
pub(crate) const MORE: u32 = 0x8000_0000;

/// In place of a batch: there are no events, and polling does not pay off any more.
pub(crate) const STOP_POLLING: i32 = -1;

/// The kind of an event.
pub(crate) mod event_kind {
    pub(crate) const CALL: u8 = 0;
    pub(crate) const FUNCTION_SETTLED: u8 = 1;
    pub(crate) const PROMISE_SETTLED: u8 = 2;
    pub(crate) const SETTLED: u8 = 3;
    /// The answer to a request, whose number stands in place of a run's.
    pub(crate) const ANSWERED: u8 = 4;
    pub(crate) const START: u8 = 5;
    /// A session has ended by its runtime.
    pub(crate) const SESSION_ENDED: u8 = 6;
    /// A cell of a system has settled. The state of its session follows.
    pub(crate) const EXECUTED: u8 = 7;
}

/// The encoding of a source.
pub(crate) mod source_encoding {
    pub(crate) const UTF8: u8 = 0;
    pub(crate) const UTF16: u8 = 1;
}

/// The flags of a request.
pub(crate) mod request_flag {
    pub(crate) const JAVA_SCRIPT: u8 = 1;
    pub(crate) const REPORT: u8 = 2;
    pub(crate) const MEMORY_LIMIT: u8 = 4;
    pub(crate) const FILENAME: u8 = 8;
    pub(crate) const FUNCTION: u8 = 16;
    pub(crate) const TIMEOUT: u8 = 32;
}

/// The flags of a request for a session.
pub(crate) mod session_flag {
    pub(crate) const JAVA_SCRIPT: u8 = 1;
    pub(crate) const REPORT: u8 = 2;
    pub(crate) const MEMORY_LIMIT: u8 = 4;
    pub(crate) const INTERLEAVE: u8 = 8;
    pub(crate) const CHECKPOINT: u8 = 16;
}

/// The flags of a request for a cell or a call.
pub(crate) mod cell_flag {
    pub(crate) const JAVA_SCRIPT: u8 = 1;
    pub(crate) const TYPE_SCRIPT: u8 = 2;
    pub(crate) const REPORT: u8 = 4;
    pub(crate) const FILENAME: u8 = 8;
    pub(crate) const TIMEOUT: u8 = 16;
    /// The caller has ended it before its call.
    pub(crate) const ENDED: u8 = 32;
}

/// The flags of a name of a session.
pub(crate) mod name_flag {
    pub(crate) const SIZE: u8 = 1;
}

/// The flags of an outcome.
pub(crate) mod outcome_flag {
    pub(crate) const RESULT: u8 = 1;
    pub(crate) const ERROR: u8 = 2;
    pub(crate) const MEMORY_USED: u8 = 4;
    /// The outcome is read in several turns of the event loop.
    pub(crate) const LONG: u8 = 8;
    /// The outcome is that of a cell.
    pub(crate) const CELL: u8 = 16;
    /// The outcome has a part of a system: a message.
    pub(crate) const EXTRA: u8 = 32;
}

/// The flags of the part of a cell's outcome that a run does not have.
pub(crate) mod cell_outcome_flag {
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const UNCLONED: u8 = 2;
    pub(crate) const VALUE_FROM: u8 = 4;
}

/// The flags of an outcome's error.
pub(crate) mod error_flag {
    pub(crate) const STACK: u8 = 1;
    pub(crate) const SPECIFIER: u8 = 2;
    pub(crate) const FILENAME: u8 = 4;
    pub(crate) const LINE: u8 = 8;
    pub(crate) const COLUMN: u8 = 16;
    pub(crate) const CAUSE: u8 = 32;
}

/// The cause of an outcome's error.
pub(crate) mod cause_kind {
    /// A throw in answer to a call; the number of the call follows.
    pub(crate) const CALL: u8 = 0;
    /// The rejection of a promise; the number of the promise follows.
    pub(crate) const PROMISE: u8 = 1;
    /// An error of the library or the system; the number of a system error or 0, and the text follow.
    pub(crate) const SYSTEM: u8 = 2;
}
