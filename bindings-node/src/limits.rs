//! The values that Node.js cannot build in proportion to their bytes.
//!
//! In: a message on its way out, on the thread that computes the run. Out: the first value in it that V8 would take too
//! long for in one step, so that the sandbox gets the error at the crossing itself: a Map or a Set whose keys were
//! chosen to collide, and regular expressions whose parsing is not linear. Only messages with such values are checked.

use isolane::{
    Collection, MessageVisitor, Refusal, Refused, Value,
    value::{Event, Kinds, Str},
};

use crate::{collisions::Collisions, patterns};

/// The kinds of values for which V8 may take too long.
pub(crate) const VALIDATED_KINDS: Kinds = Kinds::LARGE_COLLECTIONS.with(Kinds::REGEXPS);

/// The first part of a message that Node.js cannot hold, if there is one.
pub(crate) fn refusal(message: &Value) -> Option<Refusal> {
    isolane::refusal(message, &mut Limits::default())
}

#[derive(Default)]
struct Limits<'a> {
    /// The collections that are open, innermost last.
    open: Vec<Collection>,
    collisions: Collisions<'a>,
    patterns: patterns::Budget,
}

impl<'a> MessageVisitor<'a> for Limits<'a> {
    fn node(&mut self, _: &Event<'a>) -> Result<(), Refused> {
        Ok(())
    }

    fn regexp(&mut self, source: Str<'a>, flags: Str<'a>) -> Result<(), Refused> {
        if self.patterns.takes(source, flags) {
            Ok(())
        } else {
            Err("a RegExp that Node.js would take too long to parse")
        }
    }

    fn begin(&mut self, collection: Collection, entries: u32) {
        self.open.push(collection);
        self.collisions.begin(entries);
    }

    fn key(&mut self, event: &Event<'a>) -> Result<(), Refused> {
        if self.collisions.take(event) {
            return Ok(());
        }
        Err(match self.open.last() {
            Some(Collection::Set) => "a Set whose members collide",
            _ => "a Map whose keys collide",
        })
    }

    fn end(&mut self) {
        self.open.pop();
        self.collisions.end();
    }
}
