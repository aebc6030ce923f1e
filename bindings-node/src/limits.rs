//! What Node.js cannot build in proportion to its bytes.
//!
//! In: a message on its way out, on the thread that computes the run. Out: the first thing in it that V8 would
//! take too long for in one step, so that the sandbox is told at the crossing itself: members of a Map or a
//! Set whose hashes were chosen to collide, and regular expressions whose parsing is not linear. Only messages
//! with such things in them are looked at. One walk with a stack of its own.

use isolane::{
    Refusal, Step, Value,
    value::{Event, Kinds, Malformed, Reader, Str},
};

use crate::{collisions::Collisions, patterns};

/// What V8 may take too long for.
pub(crate) const VALIDATED_KINDS: Kinds = Kinds::LARGE_COLLECTIONS.with(Kinds::REGEXPS);

/// What of a message Node.js cannot hold, if anything.
pub(crate) fn refusal(message: &Value) -> Option<Refusal> {
    let mut walk = Walk {
        reader: message.reader(),
        frames: Vec::new(),
        collisions: Collisions::default(),
        patterns: patterns::Budget::default(),
    };
    // A message that is none is for its reader to find.
    let Err(Stop::Refused(what)) = walk.run() else { return None };
    let path = Step::through(&walk.frames, Frame::step);
    Some(Refusal { path, what: what.to_owned() })
}

/// Why a walk ended early.
enum Stop {
    Refused(&'static str),
    Malformed,
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

enum Frame<'a> {
    Object { key: Option<Str<'a>> },
    Sparse { index: u32 },
    Array { left: u64, taken: usize },
    Collection { left: u64, taken: usize, is_map: bool },
}

impl Frame<'_> {
    /// The way to the member that was taken last.
    fn step(&self) -> Step {
        match self {
            Self::Object { key } => {
                key.as_ref().map_or_else(|| Step::Key(String::new()), Str::to_step)
            }
            Self::Sparse { index } => Step::Index(*index as usize),
            Self::Array { taken, .. } => Step::Index(taken.saturating_sub(1)),
            Self::Collection { taken, is_map: true, .. } => {
                let at = taken.saturating_sub(1);
                if at.is_multiple_of(2) { Step::MapKey(at / 2) } else { Step::Member(at / 2) }
            }
            Self::Collection { taken, .. } => Step::Member(taken.saturating_sub(1)),
        }
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    frames: Vec<Frame<'a>>,
    collisions: Collisions<'a>,
    patterns: patterns::Budget,
}

impl<'a> Walk<'a> {
    fn run(&mut self) -> Result<(), Stop> {
        self.node()?;
        while let Some(depth) = self.frames.len().checked_sub(1) {
            if !self.advance()? {
                if let Some(Frame::Collection { .. }) = self.frames.pop() {
                    self.collisions.end();
                }
                continue;
            }
            let event = self.node()?;
            if let Some(Frame::Collection { taken, is_map, .. }) = self.frames.get(depth)
                && (!is_map || taken % 2 == 1)
                && !self.collisions.take(&event)
            {
                let what = if *is_map {
                    "a Map whose keys collide"
                } else {
                    "a Set whose members collide"
                };
                // The path leads to the collection itself.
                self.frames.truncate(depth);
                return Err(Stop::Refused(what));
            }
        }
        Ok(())
    }

    /// Goes to the next member of the innermost container, if there is one.
    fn advance(&mut self) -> Result<bool, Stop> {
        let Some(frame) = self.frames.last_mut() else { return Ok(false) };
        Ok(match frame {
            Frame::Object { key } => {
                *key = self.reader.key()?.map(|key| key.text);
                key.is_some()
            }
            Frame::Sparse { index } => match self.reader.sparse_index()? {
                Some(next) => {
                    *index = next;
                    true
                }
                None => false,
            },
            Frame::Array { left, taken } | Frame::Collection { left, taken, .. } => {
                let more = *left > 0;
                *left = left.saturating_sub(1);
                *taken += 1;
                more
            }
        })
    }

    /// Reads a node up to what is nested in it.
    fn node(&mut self) -> Result<Event<'a>, Stop> {
        let event = self.reader.event()?;
        match event {
            Event::RegExp => {
                let (source, flags) = (self.reader.text()?, self.reader.text()?);
                if !self.patterns.takes(source, flags) {
                    return Err(Stop::Refused(
                        "a RegExp that Node.js would take too long to parse",
                    ));
                }
            }
            Event::Object => self.frames.push(Frame::Object { key: None }),
            Event::SparseArray(_) => self.frames.push(Frame::Sparse { index: 0 }),
            Event::Array(left) => self.frames.push(Frame::Array { left: left.into(), taken: 0 }),
            Event::Map(entries) => self.collection(entries, true),
            Event::Set(members) => self.collection(members, false),
            Event::Error(_) => {
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
        Ok(event)
    }

    fn collection(&mut self, entries: u32, is_map: bool) {
        let left = if is_map { 2 * u64::from(entries) } else { entries.into() };
        self.collisions.begin(entries);
        self.frames.push(Frame::Collection { left, taken: 0, is_map });
    }
}
