//! A walk over the nodes of a message, without recursion.
//!
//! In: a message. Out: its nodes in order, each with its place, and the end of each container. The texts behind a node
//! that is no container are left to the caller.

use isolane::{
    Value,
    value::{Event, Malformed, Reader, Str},
};

/// The place of a node in its container.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Key(Str<'a>),
    /// An element of an array, by its index, or a member of a Set.
    Element(u32),
    MapKey,
    MapValue,
}

/// A stop of the walk.
pub(super) enum Visit<'a> {
    Node(Place<'a>, Event<'a>),
    /// The innermost container ends.
    End,
}

enum Frame {
    Object,
    List { next: u32, length: u32 },
    Sparse,
    Map { next: u64, nodes: u64 },
}

pub(super) struct Walk<'a> {
    pub(super) reader: Reader<'a>,
    frames: Vec<Frame>,
    is_started: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(value: &'a Value) -> Self {
        Self { reader: value.reader(), frames: Vec::new(), is_started: false }
    }

    /// The next stop; `None` at the end of the message.
    pub(super) fn step(&mut self) -> Result<Option<Visit<'a>>, Malformed> {
        let place = match self.frames.last_mut() {
            None if std::mem::replace(&mut self.is_started, true) => return Ok(None),
            None => Some(Place::Root),
            Some(Frame::Object) => self.reader.key()?.map(|key| Place::Key(key.text)),
            Some(Frame::Sparse) => self.reader.sparse_index()?.map(Place::Element),
            Some(Frame::List { next, length }) => (*next < *length).then(|| {
                *next += 1;
                Place::Element(*next - 1)
            }),
            Some(Frame::Map { next, nodes }) => (*next < *nodes).then(|| {
                *next += 1;
                if *next % 2 == 1 { Place::MapKey } else { Place::MapValue }
            }),
        };
        let Some(place) = place else {
            self.frames.pop();
            return Ok(Some(Visit::End));
        };
        let event = self.reader.event()?;
        match event {
            Event::Object => self.frames.push(Frame::Object),
            Event::SparseArray(_) => self.frames.push(Frame::Sparse),
            Event::Array(length) | Event::Set(length) => {
                self.frames.push(Frame::List { next: 0, length });
            }
            Event::Map(entries) => {
                self.frames.push(Frame::Map { next: 0, nodes: 2 * u64::from(entries) });
            }
            _ => {}
        }
        Ok(Some(Visit::Node(place, event)))
    }
}

/// Whether other nodes are inside of it.
pub(super) fn is_container(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Object | Event::SparseArray(_) | Event::Array(_) | Event::Set(_) | Event::Map(_)
    )
}
