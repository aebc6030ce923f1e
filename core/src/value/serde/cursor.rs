//! A reader that can go back to follow references.
//!
//! In: a message, perhaps of a hostile writer. Out: events with the index of the object that each begins, and jumps to
//! earlier objects. Following references can blow a small message up, so all reads count against a budget in proportion
//! to the message: nodes, and bytes.

use super::host_object::HostObject;
use crate::value::{
    Event, Fault, Reader, Value,
    reader::{Jump, Mark},
};

/// Nodes that the reader of any message may take.
const LEAST_BUDGET: usize = 1 << 20;

/// Nodes per byte of the message.
const BUDGET_PER_BYTE: usize = 16;

/// Bytes of texts and buffers that the reader of any message may take, and the multiple of its own size.
const LEAST_BYTES: usize = 64 << 20;
const TIMES_ITS_BYTES: usize = 4;

/// Resolves the numbers of functions and promises in a message.
pub(crate) trait Links {
    /// The function or the promise of that event.
    fn link(&self, event: &Event<'_>) -> Option<HostObject>;
}

pub(in crate::value) struct Cursor<'a> {
    pub(in crate::value) reader: Reader<'a>,
    pub(in crate::value) blobs: &'a [Vec<u8>],
    pub(in crate::value) links: Option<&'a dyn Links>,
    /// The beginning of each object, as far as the message was ever read.
    objects: Vec<Mark<'a>>,
    budget: usize,
    /// Bytes of texts and buffers that may still be read.
    bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(in crate::value) fn new(message: &'a Value, links: Option<&'a dyn Links>) -> Self {
        let budget = message.nodes().len().saturating_mul(BUDGET_PER_BYTE).max(LEAST_BUDGET);
        let blobs: usize = message.blobs().iter().map(Vec::len).sum();
        let bytes = blobs.saturating_add(message.nodes().len()).saturating_mul(TIMES_ITS_BYTES);
        Self {
            reader: message.reader(),
            blobs: message.blobs(),
            links,
            objects: Vec::new(),
            budget,
            bytes: bytes.max(LEAST_BYTES),
        }
    }

    /// The next node, and its object index if it begins an object.
    pub(in crate::value) fn event(&mut self) -> Result<(Event<'a>, Option<u32>), Fault> {
        self.spend(1)?;
        let mark = self.reader.mark();
        let event = self.reader.event()?;
        if matches!(event, Event::String(_) | Event::BigInt { .. }) {
            self.spend_bytes(mark.left() - self.reader.left())?;
        }
        let index = if event.is_object() { Some(self.index_of(mark)?) } else { None };
        Ok((event, index))
    }

    /// Counts work against the budget.
    pub(in crate::value) fn spend(&mut self, nodes: usize) -> Result<(), Fault> {
        match self.budget.checked_sub(nodes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(Fault::new("the value repeats shared objects or holes too often")),
        }
    }

    /// Counts bytes of texts and buffers against the budget.
    pub(in crate::value) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Fault> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes =
            left.ok_or_else(|| Fault::new("the value repeats shared objects too often"))?;
        Ok(())
    }

    /// Goes to an earlier object.
    pub(in crate::value) fn jump(&mut self, object: u32) -> Result<Jump<'a>, Fault> {
        let place = *self.objects.get(object as usize).ok_or(crate::value::Malformed)?;
        let jump = self.reader.jump(place);
        self.spend(jump.cost() / 8)?;
        Ok(jump)
    }

    fn index_of(&mut self, mark: Mark<'a>) -> Result<u32, Fault> {
        let is_new = self.objects.last().is_none_or(|last| mark.left() < last.left());
        let index = if is_new {
            self.objects.push(mark);
            self.objects.len() - 1
        } else {
            let found = self.objects.binary_search_by(|known| mark.left().cmp(&known.left()));
            found.map_err(|_| crate::value::Malformed)?
        };
        u32::try_from(index).map_err(|_| crate::value::Malformed.into())
    }
}
