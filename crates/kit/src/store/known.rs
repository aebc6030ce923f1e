//! Statements of foreign SQL that a connection has run before.
//!
//! In: SQL, and the facts that were found in it. Out: these facts, so that the statement need not be judged again.
//! The connection keeps the prepared statements. If a schema changes, SQLite prepares them anew; the rules then see to
//! it that the facts are the same (see `rules.rs`).

use std::{cell::RefCell, collections::HashMap};

use super::rules::Facts;

/// The most statements that are known at once.
pub(super) const MOST: usize = 32;

/// The longest SQL that is kept, bytes.
const MOST_SQL_BYTES: usize = 2 << 10;

/// The most memory of a prepared statement that is kept, bytes.
const MOST_PREPARED_BYTES: i32 = 64 << 10;

/// A statement that was run before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) facts: Facts,
    /// The longest value with which its functions stay quick.
    pub(super) longest: i32,
    pub(super) is_write: bool,
    /// Whether it took little time when it was run last.
    pub(super) is_short: bool,
}

/// The statements that one connection knows.
#[derive(Debug, Default)]
pub(super) struct KnownStatements(RefCell<HashMap<String, Known>>);

impl KnownStatements {
    pub(super) fn find(&self, sql: &str) -> Option<Known> {
        self.0.borrow().get(sql).copied()
    }

    /// Keeps a statement that was run. `prepared_bytes` is the memory that it takes.
    pub(super) fn keep(&self, sql: &str, known: Known, prepared_bytes: i32) {
        let mut statements = self.0.borrow_mut();
        if let Some(kept) = statements.get_mut(sql) {
            *kept = known;
        } else if prepared_bytes <= MOST_PREPARED_BYTES {
            if statements.len() == MOST {
                statements.clear();
            }
            statements.insert(sql.to_owned(), known);
        }
    }

    /// Notes that a statement takes longer than it did.
    pub(super) fn is_long(&self, sql: &str) {
        if let Some(known) = self.0.borrow_mut().get_mut(sql) {
            known.is_short = false;
        }
    }

    pub(super) fn forget_all(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Whether a statement with that first word is kept: one that reads or changes rows. Any other may change the schema.
pub(super) fn is_of_rows(first_word: Option<&str>) -> bool {
    const WORDS: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE", "VALUES"];
    first_word.is_some_and(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Whether the SQL is kept. With several semicolons, `rusqlite` would call itself for each.
pub(super) fn is_kept(sql: &str) -> bool {
    sql.len() <= MOST_SQL_BYTES && sql.bytes().filter(|byte| *byte == b';').count() <= 1
}
