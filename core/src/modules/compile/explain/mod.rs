//! Answers about a module that is compiled: for errors and warnings alone.
//!
//! In: a module, and places or failures that the engine reports. Out: the expressions, calls, loops and ends that they are
//! about. Each answer parses the text once more (`again`).

mod again;
pub(crate) mod call_site;
mod candidates;
mod default_export;
pub(crate) mod ending;
mod immediate;
mod loops;
mod regexps;

pub(crate) use self::{
    again::LONGEST,
    candidates::{Act, Candidate, Declared, Failure, Key, Literal, Operand, Question, Root},
    regexps::RegularExpression,
};
use self::{call_site::Call, default_export::DefaultExport, ending::Ending};
use super::module::CompiledModule;
use crate::data::outcome::Position;

impl CompiledModule {
    /// The regular expressions of the text, in source order. Parses the text again: for errors alone.
    pub(crate) fn regular_expressions(&self) -> Vec<RegularExpression> {
        regexps::find(self)
    }

    /// The default export, as far as the text shows it. Parses the text again: for errors alone.
    pub(crate) fn default_export(&self) -> DefaultExport {
        default_export::find(self)
    }

    /// The end of the module, of which the run selects the export of that name. Parses the text again: for errors alone.
    pub(crate) fn ending(&self, export: &str) -> Ending {
        ending::find(self, export)
    }

    /// The start of the loop that a backward jump between two places leads to. Parses the text again: for runs that are
    /// ended alone.
    pub(crate) fn looped(&self, before: Position, after: Option<Position>) -> Option<Position> {
        loops::find(self, before, after)
    }

    /// The expressions that each failure may be about. Parses the text again, once: for errors alone.
    pub(crate) fn candidates(&self, questions: &[Question]) -> Vec<Vec<Candidate>> {
        candidates::find(self, questions)
    }

    /// The position of each call, `None` where the given one stays. Parses the text again, once: for errors alone.
    pub(crate) fn calls(&self, calls: &[Call]) -> Vec<Option<Position>> {
        call_site::find(self, calls)
    }

    /// Whether the function around each place is called at once by a statement of its own. Parses the text again, once: for
    /// warnings alone.
    pub(crate) fn immediate(&self, places: &[Position]) -> Vec<bool> {
        immediate::find(self, places)
    }
}
