//! Room: the bytes that work for a run may hold.
//!
//! In: requests for more bytes, each made before the bytes are. Out: whether they are granted. So the host never holds
//! more for a run than the run may hold itself, whatever its code asks for.

use std::time::Instant;

use isolane::{Charge, NativeRun, Value, value::Event};

/// Room for work.
pub trait Room {
    /// Takes so many more bytes, until the room is dropped. After `false` the work must stop.
    fn take(&mut self, bytes: usize) -> bool;

    /// Whether somebody still waits for the work. Long work asks every few milliseconds.
    fn is_wanted(&self) -> bool;
}

/// Bytes are charged to a run in portions: little of a few bytes, and at least this of many.
const PORTION_BYTES: usize = 16 << 10;

/// Bytes that an element takes as a value of its own.
const ELEMENT_BYTES: usize = 160;

/// The room of a run; work of the host itself gets all that it asks for.
pub(crate) fn of(run: Option<NativeRun>) -> Box<dyn Room + Send> {
    match run {
        Some(run) => Box::new(RunRoom::new(run)),
        None => Box::new(FixedRoom::new(usize::MAX)),
    }
}

/// The elements of an array, each as a value of its own; `None` if the value is none, or there is no room.
pub(crate) fn elements(array: &Value, room: &mut dyn Room) -> Option<Vec<Value>> {
    let Ok(Event::Array(length) | Event::SparseArray(length)) = array.reader().event() else {
        return None;
    };
    let bytes = (length as usize).saturating_mul(ELEMENT_BYTES).saturating_add(array.held_bytes());
    if room.take(bytes) { array.deserialize().ok() } else { None }
}

/// The room of a run: what it takes counts against the run's memory limit. A run without room ends as `memory`.
#[derive(Debug)]
pub struct RunRoom {
    run: NativeRun,
    charges: Vec<Charge>,
    spare_bytes: usize,
    charged_bytes: usize,
}

impl RunRoom {
    /// The room of that run.
    #[must_use]
    pub fn new(run: NativeRun) -> Self {
        Self { run, charges: Vec::new(), spare_bytes: 0, charged_bytes: 0 }
    }
}

impl Room for RunRoom {
    fn take(&mut self, bytes: usize) -> bool {
        if bytes > self.spare_bytes {
            // Portions grow with the whole, so that there are few of them, and little is charged that is not used.
            let missing = bytes - self.spare_bytes;
            let portion = missing.max(PORTION_BYTES.min(8 * missing)).max(self.charged_bytes / 16);
            let Some(charge) = self.run.charge(portion) else { return false };
            self.charges.push(charge);
            self.charged_bytes = self.charged_bytes.saturating_add(portion);
            self.spare_bytes += portion;
        }
        self.spare_bytes -= bytes;
        true
    }

    fn is_wanted(&self) -> bool {
        !self.run.is_over()
    }
}

/// A room of fixed size, for work that belongs to no run or whose run has ended.
#[derive(Debug)]
pub struct FixedRoom {
    left_bytes: usize,
    deadline: Option<Instant>,
}

impl FixedRoom {
    /// A room of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { left_bytes: bytes, deadline: None }
    }

    /// The same room, whose work nobody waits for after that moment.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }
}

impl Room for FixedRoom {
    fn take(&mut self, bytes: usize) -> bool {
        match self.left_bytes.checked_sub(bytes) {
            Some(left) => {
                self.left_bytes = left;
                true
            }
            None => false,
        }
    }

    fn is_wanted(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }
}

/// A part of another room, for work that is done elsewhere if it turns out to be large.
pub(crate) struct PartOf<'r> {
    room: &'r mut dyn Room,
    left_bytes: usize,
}

impl<'r> PartOf<'r> {
    /// So many bytes of that room.
    pub(crate) fn new(room: &'r mut dyn Room, bytes: usize) -> Self {
        Self { room, left_bytes: bytes }
    }
}

impl Room for PartOf<'_> {
    fn take(&mut self, bytes: usize) -> bool {
        let Some(left) = self.left_bytes.checked_sub(bytes) else { return false };
        self.left_bytes = left;
        self.room.take(bytes)
    }

    fn is_wanted(&self) -> bool {
        self.room.is_wanted()
    }
}
