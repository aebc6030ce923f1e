//! The texts of a session's cells, for as long as anything of them lives.
//!
//! In: whether the engine still has code of a cell. Out: the cells whose texts are forgotten. The texts of a few dead
//! cells stay, if errors name places in them: a later cell may throw such an error. Of the others that are named, the
//! lines are still true, and the columns are those in the text that the engine had.

use super::{SessionProgram, number_of};
use crate::{data::portable::portable, modules::link::specifier::ModuleKey};

/// The dead cells that errors name, at most so many and with so many bytes.
const MOST_NAMED: usize = 64;
const MOST_NAMED_BYTES: usize = 256 << 10;

/// All cells are looked at again when those that may live have doubled, but not below so many bytes.
const FEW_BYTES: usize = 64 << 10;

/// The figures of the cells whose texts are there.
#[derive(Clone, Default)]
pub(super) struct Cells {
    /// Bytes of those that may live.
    pub(super) bytes: usize,
    /// The same when all were looked at.
    lived_bytes: usize,
    /// Dead ones that errors name, the oldest first, each with its bytes.
    named: Vec<(String, usize)>,
    /// The last number of a forgotten cell.
    last_forgotten: u32,
}

portable!(struct Cells { bytes, lived_bytes, named, last_forgotten });

impl Cells {
    /// Whether a name may be that of a cell which is forgotten.
    pub(super) fn forgotten(&self, file: &str) -> bool {
        number_of(file).is_some_and(|number| number <= self.last_forgotten)
    }
}

impl SessionProgram {
    /// Forgets cells that are dead: the last one in any case, and all others when enough have come together. Returns the
    /// bytes that were charged for them. `lives` says whether the engine has code of a file, and `collect` frees code in
    /// cycles.
    pub(crate) fn forget_dead(
        &mut self,
        room_bytes: usize,
        lives: impl Fn(&str) -> bool,
        collect: impl Fn(),
    ) -> usize {
        let last = self.entry.clone();
        let mut freed = if lives(&last) { 0 } else { self.bury(&last) };
        let few = self.cells.lived_bytes.min(room_bytes / 2).max(FEW_BYTES);
        if self.cells.bytes > self.cells.lived_bytes + few {
            freed += self.forget_all_dead(&lives);
            if self.cells.bytes > self.cells.lived_bytes + few {
                collect();
                freed += self.forget_all_dead(&lives);
            }
            self.cells.lived_bytes = self.cells.bytes;
        }
        freed
    }

    fn forget_all_dead(&mut self, lives: impl Fn(&str) -> bool) -> usize {
        let is_cell = |key: &ModuleKey| matches!(key, ModuleKey::Cell(_));
        let cells = self.files.iter().filter(|(_, file)| is_cell(&file.key)).map(|(name, _)| name);
        let dead: Vec<String> = cells.filter(|name| !lives(name)).cloned().collect();
        dead.iter().map(|name| self.bury(name)).sum()
    }

    /// Forgets a dead cell, or keeps its text for a while. Returns the bytes that are no longer held.
    fn bury(&mut self, name: &str) -> usize {
        let Some(file) = self.files.get(name) else { return 0 };
        if !file.in_error.get() {
            return self.forget_cell(name);
        }
        if self.cells.named.iter().any(|(known, _)| known == name) {
            return 0;
        }
        let bytes = file.module.size_bytes();
        self.cells.bytes = self.cells.bytes.saturating_sub(bytes);
        self.cells.named.push((name.to_owned(), bytes));
        let mut freed = 0;
        let held = |cells: &Cells| cells.named.iter().map(|(_, bytes)| bytes).sum::<usize>();
        while self.cells.named.len() > MOST_NAMED || held(&self.cells) > MOST_NAMED_BYTES {
            let Some((oldest, _)) = self.cells.named.first().cloned() else { break };
            freed += self.forget_cell(&oldest);
        }
        freed
    }

    /// Forgets a cell. Returns its bytes.
    pub(super) fn forget_cell(&mut self, name: &str) -> usize {
        let Some(file) = self.files.remove(name) else { return 0 };
        let bytes = file.module.size_bytes();
        match self.cells.named.iter().position(|(known, _)| known == name) {
            Some(at) => drop(self.cells.named.remove(at)),
            None => self.cells.bytes = self.cells.bytes.saturating_sub(bytes),
        }
        if let ModuleKey::Cell(number) = file.key {
            self.graph.forget_cell(number);
            self.cells.last_forgotten = self.cells.last_forgotten.max(number);
        }
        bytes
    }
}
