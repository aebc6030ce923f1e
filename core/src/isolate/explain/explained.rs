//! The explanations that a run has had.
//!
//! In: each question with its candidates. Out: the last one, and the bytes of text that were read again for all.

use crate::modules::program::explain::{Candidate, Question};

/// The explanations that a run has had.
#[derive(Default)]
pub(in crate::isolate) struct Explained {
    pub(super) read_bytes: usize,
    /// The last question, for code that fails at one place again and again.
    pub(super) last: Option<(String, Question, Vec<Candidate>)>,
}
