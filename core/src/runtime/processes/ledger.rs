//! The numbers that a run in another process may use, and the memory that it makes its host hold.
//!
//! In: the messages between a run and its host. Out: whether the host waits for the next message, and whether the run
//! has more outstanding than it may. An isolate keeps such accounts itself, and is charged by them. A worker that was
//! taken over keeps none, so the host keeps them once more, at the same prices. They refuse nothing to an honest run,
//! because its own accounts have every entry, too.

use std::collections::{HashMap, HashSet};

use crate::{
    data::journal::Journal,
    value::{EXPORTED_BYTES, Event, HOST_PROMISE_BYTES, Value, walk},
};

/// More is outstanding than the run may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overdrawn;

/// The numbers that are in use between a run and its host. A worker chooses most of them, so they are hashed with a key
/// that it does not have.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    most_bytes: usize,
    bytes: usize,
    /// Functions of the sandbox that the host holds, and how often it received them.
    functions: HashMap<u32, u32>,
    /// Promises of the sandbox that the host holds, until they settle.
    promises: HashSet<u32>,
    /// Promises of the host that stand for calls, and the bytes that each makes it hold.
    pending: HashMap<u32, usize>,
    /// Calls of the host that the sandbox has not finished.
    calls: HashSet<u32>,
    /// The bytes of chains of promises, which stay counted.
    chain_bytes: usize,
    /// The entries since the last cell that was kept, if this is the ledger of a session: they go if their cell is
    /// rolled back.
    journal: Option<Journal<Entry>>,
    /// The number of entries at which those are forgotten that have nothing to undo.
    most_entries: usize,
}

/// As many entries are kept in any case.
const LEAST_ENTRIES: usize = 4096;

/// An entry that a cell has made.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Function(u32),
    Promise(u32),
    Pending(u32, usize),
    Chain(usize),
}

impl Ledger {
    /// The ledger of a run that may hold so much.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            bytes: 0,
            functions: HashMap::new(),
            promises: HashSet::new(),
            pending: HashMap::new(),
            calls: HashSet::new(),
            chain_bytes: 0,
            journal: None,
            most_entries: LEAST_ENTRIES,
        }
    }

    /// The ledger of a session that may hold so much.
    pub(crate) fn of_session(most_bytes: usize) -> Self {
        Self { journal: Some(Journal::default()), ..Self::new(most_bytes) }
    }

    /// A cell begins which has that number.
    pub(crate) fn begin(&mut self, number: u32) {
        if let Some(journal) = &mut self.journal {
            journal.begin(number);
        }
    }

    /// The cell with that number is over, and all entries so far stay.
    pub(crate) fn keep(&mut self, number: u32) {
        if let Some(journal) = &mut self.journal {
            journal.keep(number);
        }
    }

    /// The cell with that number is over, and has changed nothing.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(journal) = &mut self.journal {
            journal.forget(number);
        }
    }

    /// The cell with that number is over, and was rolled back with these: the sandbox does not have their entries any
    /// more.
    pub(crate) fn undo(&mut self, number: u32, undone: &[u32]) {
        let Some(journal) = &mut self.journal else { return };
        for entry in journal.undo(number, undone) {
            match entry {
                Entry::Function(function) => drop(self.functions.remove(&function)),
                Entry::Promise(promise) => drop(self.promises.remove(&promise)),
                Entry::Pending(promise, drawn) => {
                    let Some(held) = self.pending.get_mut(&promise) else { continue };
                    *held -= drawn.min(*held);
                    if *held == 0 {
                        self.pending.remove(&promise);
                    }
                }
                Entry::Chain(bytes) => self.chain_bytes = self.chain_bytes.saturating_sub(bytes),
            }
        }
        let exported = (self.functions.len() + self.promises.len()).saturating_mul(EXPORTED_BYTES);
        let pending = self.pending.values().fold(0, |sum: usize, held| sum.saturating_add(*held));
        self.bytes = exported.saturating_add(pending).saturating_add(self.chain_bytes);
    }

    /// The session has begun anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::of_session(self.most_bytes);
    }

    /// The host receives a message, with the functions and promises in it. Returns how many of the promises it did not
    /// have.
    pub(crate) fn receive(&mut self, message: &Value) -> Result<usize, Overdrawn> {
        if !message.may_lend() {
            return Ok(0);
        }
        let (mut functions, mut promises) = (Vec::new(), Vec::new());
        let see = |event: &Event<'_>| match *event {
            Event::SandboxFunction(number) => {
                let times = self.functions.entry(number).or_insert(0);
                *times = times.saturating_add(1);
                if *times == 1 {
                    functions.push(number);
                }
            }
            Event::SandboxPromise(number) if self.promises.insert(number) => promises.push(number),
            _ => {}
        };
        // It was checked, so it can be read, and names no more than the run may hold.
        walk(message, see).map_err(|_| Overdrawn)?;
        let new_promises = promises.len();
        let bytes = (functions.len() + new_promises).saturating_mul(EXPORTED_BYTES);
        let entries = functions.into_iter().map(Entry::Function);
        for entry in entries.chain(promises.into_iter().map(Entry::Promise)) {
            self.note(entry);
        }
        self.draw(bytes)?;
        Ok(new_promises)
    }

    /// The sandbox starts a call that settles that promise; its host keeps the arguments until then.
    pub(crate) fn start(&mut self, promise: u32, args_bytes: usize) -> Result<(), Overdrawn> {
        let bytes = HOST_PROMISE_BYTES.saturating_add(args_bytes);
        // A number that is in use is paid for twice.
        let held = self.pending.entry(promise).or_insert(0);
        *held = held.saturating_add(bytes);
        self.note(Entry::Pending(promise, bytes));
        self.draw(bytes)
    }

    /// The host answers a call whose arguments hold so many bytes. If it answers with a promise, it keeps the arguments
    /// until that settles.
    pub(crate) fn answer(&mut self, args_bytes: usize, answer: &Value) -> Result<(), Overdrawn> {
        answer.host_promise().map_or(Ok(()), |promise| self.start(promise, args_bytes))
    }

    /// The host settles one of its promises.
    pub(crate) fn settle(&mut self, promise: u32) {
        let held = self.pending.remove(&promise).unwrap_or(0);
        self.bytes -= held;
    }

    /// The host calls a function of the sandbox.
    pub(crate) fn call(&mut self, call: u32) {
        self.calls.insert(call);
    }

    /// The sandbox finishes a call; false if the host does not wait for it.
    pub(crate) fn finish_call(&mut self, call: u32) -> bool {
        self.calls.remove(&call)
    }

    /// A promise of the sandbox settles; false if the host waits for none of that number. From then on the host does
    /// not have the number: if a worker gives it out again, as no isolate does, it is another promise. An outcome with
    /// promises that the host did not have, of so many bytes, is a link of a chain, and stays counted.
    pub(crate) fn finish_promise(
        &mut self,
        promise: u32,
        link_bytes: Option<usize>,
    ) -> Result<bool, Overdrawn> {
        let waits = self.promises.remove(&promise);
        let exported = if waits { EXPORTED_BYTES } else { 0 };
        match link_bytes {
            Some(bytes) => {
                let chained = bytes.saturating_add(exported);
                self.chain_bytes = self.chain_bytes.saturating_add(chained);
                self.note(Entry::Chain(chained));
                self.draw(bytes)?;
            }
            None => self.bytes -= exported,
        }
        Ok(waits)
    }

    /// The host releases a function that it received so many times.
    pub(crate) fn release(&mut self, function: u32, times: u32) {
        let Some(held) = self.functions.get_mut(&function) else { return };
        *held = held.saturating_sub(times);
        if *held == 0 {
            self.functions.remove(&function);
            self.bytes -= EXPORTED_BYTES;
        }
    }

    /// Notes an entry, so that it can be undone. A cell may make entries without end which are settled soon, so those
    /// are forgotten from time to time.
    fn note(&mut self, entry: Entry) {
        let Some(journal) = &mut self.journal else { return };
        journal.note(entry);
        if journal.len() <= self.most_entries {
            return;
        }
        let (functions, promises, pending) = (&self.functions, &self.promises, &self.pending);
        journal.retain(|entry| match entry {
            Entry::Function(function) => functions.contains_key(function),
            Entry::Promise(promise) => promises.contains(promise),
            Entry::Pending(promise, _) => pending.contains_key(promise),
            Entry::Chain(_) => true,
        });
        self.most_entries = LEAST_ENTRIES.max(journal.len().saturating_mul(2));
    }

    fn draw(&mut self, bytes: usize) -> Result<(), Overdrawn> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most_bytes { Err(Overdrawn) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{binding::host::ASYNC_FUNCTION, value::Writer};

    const ARGS: usize = 1_000;
    const PENDING: usize = HOST_PROMISE_BYTES + ARGS;

    fn message(functions: &[u32], promises: &[u32]) -> Value {
        let mut writer = Writer::new();
        writer.array(u32::try_from(functions.len() + promises.len()).expect("few"));
        for &number in functions {
            writer.sandbox_function(number);
            writer.string("f");
        }
        for &number in promises {
            writer.sandbox_promise(number);
        }
        writer.finish()
    }

    fn promise(number: u32) -> Value {
        let mut writer = Writer::new();
        writer.host_promise(number);
        writer.finish()
    }

    #[test]
    fn functions_and_promises_are_paid_for_once() {
        let mut ledger = Ledger::new(3 * EXPORTED_BYTES);
        for _ in 0..5 {
            assert!(ledger.receive(&message(&[7, 8], &[7])).is_ok());
        }
        assert_eq!(ledger.receive(&message(&[], &[8])), Err(Overdrawn));
    }

    #[test]
    fn a_function_is_paid_for_until_it_is_released_as_often_as_it_was_received() {
        let mut ledger = Ledger::new(EXPORTED_BYTES);
        for _ in 0..3 {
            assert!(ledger.receive(&message(&[7], &[])).is_ok());
        }
        ledger.release(7, 2);
        assert_eq!(ledger.bytes, EXPORTED_BYTES);
        ledger.release(8, 9);
        ledger.release(7, 1);
        ledger.release(7, 1);
        assert_eq!(ledger.bytes, 0);
        assert!(ledger.receive(&message(&[8], &[])).is_ok());
    }

    #[test]
    fn calls_without_end_are_paid_for_until_they_settle() {
        let mut ledger = Ledger::new(2 * PENDING);
        assert_eq!(ledger.start(1 << 31, ARGS), Ok(()));
        assert_eq!(ledger.answer(ARGS, &promise(1)), Ok(()));
        assert_eq!(ledger.answer(ARGS, &Value::undefined()), Ok(()));
        ledger.settle(1);
        ledger.settle(1);
        assert_eq!(ledger.bytes, PENDING);
        // The number is in use: both settle at once, and neither was free.
        assert_eq!(ledger.start(1 << 31, ARGS), Ok(()));
        assert_eq!(ledger.start(5, ARGS), Err(Overdrawn));
        ledger.settle(1 << 31);
        ledger.settle(5);
        assert_eq!(ledger.bytes, 0);
    }

    #[test]
    fn the_host_waits_once_for_each_call_and_promise() {
        let mut ledger = Ledger::new(usize::MAX);
        assert!(!ledger.finish_call(1) && ledger.finish_promise(1, None) == Ok(false));
        ledger.call(1);
        assert!(ledger.receive(&message(&[], &[1])).is_ok());
        assert!(ledger.finish_call(1) && ledger.finish_promise(1, None) == Ok(true));
        assert!(!ledger.finish_call(1) && ledger.finish_promise(1, None) == Ok(false));
    }

    #[test]
    fn promises_without_end_are_paid_for_until_they_settle() {
        let mut ledger = Ledger::new(2 * EXPORTED_BYTES);
        for number in (0..1_000).chain(0..10) {
            assert!(ledger.receive(&message(&[], &[number, number])).is_ok());
            // The outcome of a promise may name the promise.
            assert!(ledger.receive(&message(&[], &[number])).is_ok());
            assert_eq!(ledger.bytes, EXPORTED_BYTES);
            assert_eq!(ledger.finish_promise(number, None), Ok(true));
            assert_eq!(ledger.bytes, 0);
        }
        assert_eq!(ledger.receive(&message(&[], &[1, 2, 3])), Err(Overdrawn));
    }

    #[test]
    fn a_session_forgets_what_a_cell_did_that_is_rolled_back() {
        let mut ledger = Ledger::of_session(usize::MAX);
        assert!(ledger.receive(&message(&[1], &[2])).is_ok());
        assert_eq!(ledger.start(3 | ASYNC_FUNCTION, ARGS), Ok(()));
        ledger.keep(0);
        let kept = ledger.bytes;
        assert!(ledger.receive(&message(&[1, 4], &[2, 5])).is_ok());
        assert_eq!(ledger.start(3 | ASYNC_FUNCTION, ARGS), Ok(()));
        assert_eq!(ledger.start(6 | ASYNC_FUNCTION, ARGS), Ok(()));
        assert_eq!(ledger.finish_promise(5, Some(10)), Ok(true));
        ledger.call(8);
        ledger.undo(0, &[]);
        assert_eq!(ledger.bytes, kept);
        assert_eq!(ledger.finish_promise(5, None), Ok(false));
        assert_eq!(ledger.finish_promise(2, None), Ok(true));
        ledger.settle(3 | ASYNC_FUNCTION);
        ledger.release(4, 1);
        ledger.release(1, 2);
        ledger.reset();
        assert_eq!(ledger.bytes, 0);
        assert!(!ledger.finish_call(8));
    }

    #[test]
    fn a_cell_that_calls_without_end_leaves_a_short_journal() {
        let mut ledger = Ledger::of_session(usize::MAX);
        assert_eq!(ledger.start(7 | ASYNC_FUNCTION, ARGS), Ok(()));
        for number in 10..100_000 {
            assert_eq!(ledger.start(number | ASYNC_FUNCTION, ARGS), Ok(()));
            ledger.settle(number | ASYNC_FUNCTION);
        }
        assert!(ledger.journal.as_ref().is_some_and(|journal| journal.len() <= LEAST_ENTRIES));
        ledger.undo(0, &[]);
        assert_eq!(ledger.bytes, 0);
    }

    #[test]
    fn a_session_counts_no_cell_twice_that_is_rolled_back_often() {
        let mut ledger = Ledger::of_session(4 * EXPORTED_BYTES + PENDING);
        for number in 0..1_000 {
            assert!(ledger.receive(&message(&[number], &[number])).is_ok());
            assert_eq!(ledger.start(number | ASYNC_FUNCTION, ARGS), Ok(()));
            ledger.undo(0, &[]);
            assert_eq!(ledger.bytes, 0);
        }
    }
}
