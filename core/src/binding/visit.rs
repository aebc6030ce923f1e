//! One walk over a message, for hosts that cannot hold every value.
//!
//! In: a message on its way out, and a [`MessageVisitor`], which checks each node. Out: the [`Refusal`] of the first
//! node that the visitor refuses, with its path. The walk keeps a stack of its own, so depth costs memory and nothing
//! else.

use super::host::Refusal;
use crate::value::{Event, Malformed, Reader, Str, Value, path::Step};

/// Why a value is refused: its kind with its article, such as `a RegExp`.
pub type Refused = &'static str;

/// A host's check of the nodes of one message, which come in the order in which they were written.
pub trait MessageVisitor<'a> {
    /// Checks a node without its members.
    ///
    /// # Errors
    /// The kind of the value, where the host cannot hold it.
    fn node(&mut self, event: &Event<'a>) -> Result<(), Refused>;

    /// Checks the texts of a RegExp, after its node.
    ///
    /// # Errors
    /// As [`MessageVisitor::node`].
    fn regexp(&mut self, source: Str<'a>, flags: Str<'a>) -> Result<(), Refused> {
        let _ = (source, flags);
        Ok(())
    }

    /// A collection of so many entries begins, inside the collection that began last and has not ended.
    fn begin(&mut self, collection: Collection, entries: u32);

    /// Checks a key of the innermost Map, or a member of the innermost Set, after its node and before its own members.
    ///
    /// # Errors
    /// The kind of the collection, which is refused as a whole.
    fn key(&mut self, event: &Event<'a>) -> Result<(), Refused>;

    /// The innermost collection ends.
    fn end(&mut self);
}

/// A container whose members have keys that a host compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like the classes of JavaScript")]
pub enum Collection {
    Map,
    Set,
}

/// The first part of a message that the visitor refuses. A malformed message is not refused: its reader finds it.
pub fn refusal<'a>(message: &'a Value, visitor: &mut impl MessageVisitor<'a>) -> Option<Refusal> {
    let mut walk = Walk { reader: message.reader(), containers: Vec::new() };
    match walk.run(visitor) {
        Err(Stop::Refused(what)) => {
            let path = Step::through(&walk.containers, Container::step);
            Some(Refusal { path, what: what.to_owned() })
        }
        Ok(()) | Err(Stop::Malformed) => None,
    }
}

/// The reason why a walk ended early.
enum Stop {
    Refused(Refused),
    Malformed,
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<Refused> for Stop {
    fn from(what: Refused) -> Self {
        Self::Refused(what)
    }
}

/// A container whose end has not been read, with its current member.
enum Container<'a> {
    Object { key: Option<Str<'a>> },
    SparseArray { index: u32 },
    Array { left: u64, taken: usize },
    Collection { left: u64, taken: usize, collection: Collection },
}

impl Container<'_> {
    fn of_collection(collection: Collection, entries: u32) -> Self {
        let nodes = match collection {
            Collection::Map => 2 * u64::from(entries),
            Collection::Set => entries.into(),
        };
        Self::Collection { left: nodes, taken: 0, collection }
    }

    /// Whether the current member is a key of a Map or a member of a Set.
    fn is_at_key(&self) -> bool {
        match self {
            Self::Collection { taken, collection: Collection::Map, .. } => taken % 2 == 1,
            Self::Collection { .. } => true,
            _ => false,
        }
    }

    /// The step to the current member.
    fn step(&self) -> Step {
        match self {
            Self::Object { key } => {
                key.as_ref().map_or_else(|| Step::Key(String::new()), Str::to_step)
            }
            Self::SparseArray { index } => Step::Index(*index as usize),
            Self::Array { taken, .. } => Step::Index(taken.saturating_sub(1)),
            Self::Collection { taken, collection, .. } => {
                let at = taken.saturating_sub(1);
                match collection {
                    Collection::Map if at.is_multiple_of(2) => Step::MapKey(at / 2),
                    Collection::Map => Step::Member(at / 2),
                    Collection::Set => Step::Member(at),
                }
            }
        }
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    /// Innermost last.
    containers: Vec<Container<'a>>,
}

impl<'a> Walk<'a> {
    fn run(&mut self, visitor: &mut impl MessageVisitor<'a>) -> Result<(), Stop> {
        self.node(visitor)?;
        while !self.containers.is_empty() {
            if self.advance()? {
                self.node(visitor)?;
            } else if let Some(Container::Collection { .. }) = self.containers.pop() {
                visitor.end();
            }
        }
        Ok(())
    }

    /// Goes to the next member of the innermost container, if there is one.
    fn advance(&mut self) -> Result<bool, Malformed> {
        let Some(container) = self.containers.last_mut() else { return Ok(false) };
        Ok(match container {
            Container::Object { key } => {
                *key = self.reader.key()?.map(|key| key.text);
                key.is_some()
            }
            Container::SparseArray { index } => match self.reader.sparse_index()? {
                Some(next) => {
                    *index = next;
                    true
                }
                None => false,
            },
            Container::Array { left, taken } | Container::Collection { left, taken, .. } => {
                let more = *left > 0;
                *left = left.saturating_sub(1);
                *taken += 1;
                more
            }
        })
    }

    /// Reads a node up to its members.
    fn node(&mut self, visitor: &mut impl MessageVisitor<'a>) -> Result<(), Stop> {
        let event = self.reader.event()?;
        visitor.node(&event)?;
        if self.containers.last().is_some_and(Container::is_at_key)
            && let Err(what) = visitor.key(&event)
        {
            // The path leads to the collection itself.
            self.containers.pop();
            return Err(what.into());
        }
        match event {
            Event::RegExp => {
                let (source, flags) = (self.reader.text()?, self.reader.text()?);
                visitor.regexp(source, flags)?;
            }
            Event::Object => self.containers.push(Container::Object { key: None }),
            Event::SparseArray(_) => self.containers.push(Container::SparseArray { index: 0 }),
            Event::Array(length) => {
                self.containers.push(Container::Array { left: length.into(), taken: 0 });
            }
            Event::Map(entries) => self.collection(visitor, Collection::Map, entries),
            Event::Set(members) => self.collection(visitor, Collection::Set, members),
            Event::Error(_) => {
                // Its name, its message, its stack and its code: none of them has members.
                self.reader.text()?;
                self.reader.text()?;
                self.reader.event()?;
                self.reader.event()?;
            }
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                self.reader.text()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn collection(
        &mut self,
        visitor: &mut impl MessageVisitor<'a>,
        collection: Collection,
        entries: u32,
    ) {
        visitor.begin(collection, entries);
        self.containers.push(Container::of_collection(collection, entries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Writer;

    /// Refuses nulls, and keys that are `true`; counts the collections that are open.
    #[derive(Default)]
    struct NoNulls {
        open: usize,
    }

    impl MessageVisitor<'_> for NoNulls {
        fn node(&mut self, event: &Event<'_>) -> Result<(), Refused> {
            if *event == Event::Null { Err("null") } else { Ok(()) }
        }

        fn begin(&mut self, _: Collection, _: u32) {
            self.open += 1;
        }

        fn key(&mut self, event: &Event<'_>) -> Result<(), Refused> {
            if *event == Event::Bool(true) { Err("a collection with true") } else { Ok(()) }
        }

        fn end(&mut self) {
            self.open -= 1;
        }
    }

    fn text_of(write: impl FnOnce(&mut Writer)) -> Option<String> {
        let mut writer = Writer::new();
        write(&mut writer);
        let mut visitor = NoNulls::default();
        let refusal = refusal(&writer.finish(), &mut visitor);
        if refusal.is_none() {
            assert_eq!(visitor.open, 0);
        }
        refusal.map(|refusal| refusal.text("result"))
    }

    #[test]
    fn a_refused_value_is_named_by_its_path() {
        let in_object = |writer: &mut Writer| {
            writer.object();
            writer.key("a");
            writer.array(2);
            writer.bool(true);
            writer.null();
            writer.end_object();
        };
        assert_eq!(text_of(in_object).as_deref(), Some("result.a[1]: null cannot be cloned"));
        let in_map = |writer: &mut Writer| {
            writer.map(2);
            for number in [1, 2] {
                writer.int(number);
                writer.set(1);
                if number == 2 { writer.null() } else { writer.int(3) }
            }
        };
        let text = "result.values()[1].values()[0]: null cannot be cloned";
        assert_eq!(text_of(in_map).as_deref(), Some(text));
        let as_key = |writer: &mut Writer| {
            writer.map(1);
            writer.null();
            writer.int(1);
        };
        assert_eq!(text_of(as_key).as_deref(), Some("result.keys()[0]: null cannot be cloned"));
    }

    #[test]
    fn a_refused_key_refuses_its_collection() {
        let set = |writer: &mut Writer| {
            writer.array(2);
            writer.int(1);
            writer.set(2);
            writer.int(1);
            writer.bool(true);
        };
        let text = "result[1]: a collection with true cannot be cloned";
        assert_eq!(text_of(set).as_deref(), Some(text));
        // The value of a Map is no key.
        let map = |writer: &mut Writer| {
            writer.map(1);
            writer.int(1);
            writer.bool(true);
        };
        assert_eq!(text_of(map), None);
    }

    #[test]
    fn texts_of_errors_and_regexps_are_passed_by() {
        let all = |writer: &mut Writer| {
            writer.array(3);
            writer.error(crate::value::ErrorClass::Error);
            writer.string("Error");
            writer.string("no");
            writer.undefined();
            writer.undefined();
            writer.regexp();
            writer.string("a");
            writer.string("g");
            writer.int(1);
        };
        assert_eq!(text_of(all), None);
    }
}
