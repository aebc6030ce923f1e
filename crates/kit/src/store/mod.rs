//! The capabilities that keep data: `db`, `state` and libraries, over SQLite.
//!
//! In: calls of runs and of the host. Out: answers as messages, and rows in files, or in memory. All calls on a
//! database stand in one line (`line.rs`). Its connection (`connection.rs`) is set up so that no call takes more time or
//! memory than it may, wherever SQLite spends them. Begin to read at `database.rs`.

mod agent;
mod answer;
mod connection;
mod database;
mod functions;
mod known;
mod libraries;
mod like;
mod line;
mod params;
mod read_values;
mod rules;
mod sql_error;
mod state;
mod statement;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use isolane::{HostError, Value};
use isolane_sqlite::{files, memory, stop};

use crate::{
    json_form::{JsonFault, json_form},
    room::Room,
};

pub use isolane_sqlite::initialize;

pub use agent::{Store, StoreOptions};
pub use database::{Database, DatabaseFunction, DatabaseLimits, DatabaseOptions};
pub use libraries::{Libraries, Library, LibraryLimits, LibrarySummary};
pub use state::{State, StateFunction, StateLimits};

/// The longest time limit: a year.
const LONGEST_TIMEOUT_MS: u64 = 365 * 24 * 3_600_000;

/// The most bytes of the arguments and of each value of a call that is tried on its caller's thread.
const SHORT_BYTES: usize = 16 << 10;

/// The most memory of such a call, bytes.
const SHORT_MEMORY_BYTES: usize = 1 << 20;

/// A time limit.
fn timeout(ms: u64) -> Duration {
    Duration::from_millis(ms.min(LONGEST_TIMEOUT_MS))
}

/// The error of a call that the close of the kit has given up. A kit that is closed begins none.
fn closed() -> HostError {
    HostError::new("AbortError", "the kit was closed")
}

/// The JSON form of a value. `root` begins the path in an error.
fn json_text(value: &Value, root: &str, room: &mut dyn Room) -> Result<String, HostError> {
    json_form(value, root, room).map_err(|fault| match fault {
        JsonFault::Unserializable(text) => HostError::new("SerializationError", text),
        JsonFault::NoRoom => no_room(),
        JsonFault::Malformed => HostError::new("SerializationError", "the value is no message"),
    })
}

/// The error of a call whose run ends as `memory`. Nobody sees it.
fn no_room() -> HostError {
    HostError::new("RangeError", "the value is too large for the run")
}

/// The error as it is thrown. Its message is cut: code chooses names and texts that SQLite repeats.
fn thrown(mut error: HostError) -> Value {
    /// Bytes of the longest message.
    const MOST: usize = 2_000;
    if error.message.len() > MOST {
        let end = error.message.floor_char_boundary(MOST);
        error.message.truncate(end);
        error.message.push('…');
    }
    error.to_value()
}

/// The content of a lock, of which no holder leaves it half changed.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
