//! Tables of images, in blocks that images share.
//!
//! In: a table whose keys are numbers, and an earlier image of it. Out: an image of the table, which has the blocks of the
//! earlier one that are equal, and the bytes that it takes beside these. Without that each of many cells in flight would
//! have a copy of all tables.

use std::{collections::HashMap, sync::Arc};

use crate::{
    data::portable::{Input, Output, Portable},
    isolate::{
        crossing::numbered::{Exported, ExportedPromise, HostPromise},
        engine::Local,
    },
};

/// Numbers that differ in so many bits at the end are in one block.
const BLOCK_BITS: u32 = 7;

/// A value in such a table.
pub(super) trait Entry: Sized {
    /// As [`Local::image`].
    fn image(&self) -> Self;

    /// Whether an image is the same as another one.
    fn is(&self, other: &Self) -> bool;

    /// The bytes that it takes beside its own size.
    fn more_bytes(&self) -> usize {
        0
    }
}

impl Entry for Local {
    fn image(&self) -> Self {
        self.image()
    }

    fn is(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl Entry for Exported {
    fn image(&self) -> Self {
        self.image()
    }

    fn is(&self, other: &Self) -> bool {
        self.is_same(other)
    }

    fn more_bytes(&self) -> usize {
        self.size_bytes()
    }
}

impl Entry for ExportedPromise {
    fn image(&self) -> Self {
        self.image()
    }

    fn is(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl Entry for HostPromise {
    fn image(&self) -> Self {
        self.image()
    }

    fn is(&self, other: &Self) -> bool {
        self.is_same(other)
    }

    fn more_bytes(&self) -> usize {
        self.size_bytes()
    }
}

/// An image of a table.
pub(super) struct Blocks<V>(Vec<Block<V>>);

struct Block<V> {
    /// The bits of its numbers before the last ones.
    number: u32,
    /// In the order of their numbers.
    entries: Arc<Vec<(u32, V)>>,
}

impl<V> Clone for Blocks<V> {
    fn clone(&self) -> Self {
        let block =
            |block: &Block<V>| Block { number: block.number, entries: Arc::clone(&block.entries) };
        Self(self.0.iter().map(block).collect())
    }
}

impl<V: Entry> Blocks<V> {
    /// An image of a table, and its bytes without those that the earlier image has.
    pub(super) fn of(table: &HashMap<u32, V>, earlier: Option<&Self>) -> (Self, usize) {
        let mut entries: Vec<_> = table.iter().map(|(number, value)| (*number, value)).collect();
        entries.sort_unstable_by_key(|(number, _)| *number);
        let (mut blocks, mut bytes) = (Vec::new(), 0);
        for part in entries.chunk_by(|one, other| block_of(one.0) == block_of(other.0)) {
            let Some(number) = part.first().map(|(number, _)| block_of(*number)) else { continue };
            bytes += size_of::<Block<V>>();
            let known = earlier.and_then(|earlier| earlier.block(number));
            let known = known.filter(|known| is_equal(&known.entries, part));
            let entries = match known {
                Some(known) => Arc::clone(&known.entries),
                None => {
                    let more: usize = part.iter().map(|(_, value)| value.more_bytes()).sum();
                    bytes += size_of::<(u32, V)>() * part.len() + more;
                    Arc::new(part.iter().map(|(number, value)| (*number, value.image())).collect())
                }
            };
            blocks.push(Block { number, entries });
        }
        (Self(blocks), bytes)
    }

    /// The table.
    pub(super) fn table(&self) -> HashMap<u32, V> {
        let entries = self.0.iter().flat_map(|block| block.entries.iter());
        entries.map(|(number, value)| (*number, value.image())).collect()
    }

    /// The entries of the table.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(u32, V)> {
        self.0.iter().flat_map(|block| block.entries.iter())
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        let block = self.block(block_of(number));
        block.is_some_and(|block| {
            block.entries.binary_search_by_key(&number, |(number, _)| *number).is_ok()
        })
    }

    fn block(&self, number: u32) -> Option<&Block<V>> {
        let at = self.0.binary_search_by_key(&number, |block| block.number).ok()?;
        self.0.get(at)
    }
}

fn block_of(number: u32) -> u32 {
    number >> BLOCK_BITS
}

fn is_equal<V: Entry>(known: &[(u32, V)], part: &[(u32, &V)]) -> bool {
    known.len() == part.len()
        && known
            .iter()
            .zip(part)
            .all(|((one, known), (other, value))| one == other && known.is(value))
}

impl<V: Entry + Portable> Portable for Blocks<V> {
    fn write(&self, out: &mut Output) {
        self.0.iter().map(|block| block.entries.len()).sum::<usize>().write(out);
        for (number, value) in self.iter() {
            number.write(out);
            value.write(out);
        }
    }

    fn read(input: &mut Input) -> Option<Self> {
        let table = HashMap::<u32, V>::read(input)?;
        Some(Self::of(&table, None).0)
    }
}
