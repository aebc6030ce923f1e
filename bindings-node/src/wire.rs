//! The numbers of frames that `lib/` reads and writes, too.
//!
//! `lib/wire.ts` is made from this file and from those of the core that `wire.mjs` names: run that program after a
//! change. A test keeps the two alike. It reads lines of the forms below, with the documentation above them.

/// In the place of a message's length: it is a large one, whose number follows.
pub(crate) const LARGE: u32 = 0xFFFF_FFFF;

/// In the count of a batch of events: there are more to come.
pub(crate) const MORE: u32 = 0x8000_0000;

/// In the place of a batch: there are no events, and it is not worth it to look for some any more.
pub(crate) const NOT_WORTH_IT: i32 = -1;

/// What an event is.
pub(crate) mod event_kind {
    pub(crate) const CALL: u8 = 0;
    pub(crate) const FUNCTION_SETTLED: u8 = 1;
    pub(crate) const PROMISE_SETTLED: u8 = 2;
    pub(crate) const SETTLED: u8 = 3;
    pub(crate) const CLOSED: u8 = 4;
    pub(crate) const START: u8 = 5;
}

/// How a source is written.
pub(crate) mod source_encoding {
    pub(crate) const UTF8: u8 = 0;
    pub(crate) const UTF16: u8 = 1;
}

/// What a request has, bit by bit.
pub(crate) mod request_flag {
    pub(crate) const JAVA_SCRIPT: u8 = 1;
    pub(crate) const REPORT: u8 = 2;
    pub(crate) const MEMORY_LIMIT: u8 = 4;
    pub(crate) const FILENAME: u8 = 8;
    pub(crate) const FUNCTION: u8 = 16;
}

/// What an outcome has, bit by bit.
pub(crate) mod outcome_flag {
    pub(crate) const RESULT: u8 = 1;
    pub(crate) const ERROR: u8 = 2;
    pub(crate) const MEMORY_USED: u8 = 4;
    /// It is read in several turns of the event loop.
    pub(crate) const LONG: u8 = 8;
}

/// What the error of an outcome has, bit by bit.
pub(crate) mod error_flag {
    pub(crate) const STACK: u8 = 1;
    pub(crate) const SPECIFIER: u8 = 2;
    pub(crate) const FILENAME: u8 = 4;
    pub(crate) const LINE: u8 = 8;
    pub(crate) const COLUMN: u8 = 16;
    pub(crate) const CAUSE: u8 = 32;
}

/// What the error of an outcome was made out of.
pub(crate) mod cause_kind {
    /// A throw in answer to a call, whose number follows.
    pub(crate) const CALL: u8 = 0;
    /// The rejection of a promise, whose number follows.
    pub(crate) const PROMISE: u8 = 1;
    /// An error of the library or the system: its number or 0, and its text.
    pub(crate) const SYSTEM: u8 = 2;
}
