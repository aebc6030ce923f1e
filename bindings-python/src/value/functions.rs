//! The host functions that crossed into one run, or into one session.
//!
//! In: callables. Out: numbers, the same for the same callable. The table is emptied when the run has settled, so
//! that a settled run holds no object of the caller; that of a session when the session has ended. Before that, it forgets
//! the functions that were given to an undone cell alone. Python's garbage collector sees the functions, because one of
//! them may hold the session.

use std::sync::atomic::{AtomicBool, Ordering};

use isolane::{ASYNC_FUNCTION, NativeFunctions, REPORT_SINK};
use pyo3::{PyTraverseError, PyVisit, prelude::*};
use rustc_hash::FxHashMap;

use crate::{lock::Lock, native::PyNativeFunction};

#[pyclass(name = "Functions", module = "isolane._isolane", frozen)]
#[derive(Default)]
pub(crate) struct Functions {
    table: Lock<Table>,
    native: NativeFunctions,
    /// Whether the sandbox has a host function or a promise of the host.
    reaches: AtomicBool,
}

#[derive(Default)]
struct Table {
    numbers: FxHashMap<usize, u32>,
    functions: FxHashMap<u32, Entry>,
    given: u32,
    /// The functions that returned the promises which have not settled, by the numbers of the promises.
    promises: FxHashMap<u32, Answer>,
    native: FxHashMap<u32, Py<PyNativeFunction>>,
}

struct Entry {
    function: Py<PyAny>,
    /// The name under which it first crossed.
    name: Box<str>,
    /// The place of the cell to which alone it was given; 0 for a run, or where a session has it.
    cell: u32,
}

/// A promise that a function has returned.
#[derive(Clone, Copy)]
struct Answer {
    function: u32,
    /// As of an [`Entry`].
    cell: u32,
}

impl Functions {
    /// The number of a callable, which crosses under that name to that cell. Each lookup of a bound method makes a new object, which has a number of its own.
    pub(crate) fn number(&self, function: &Bound<'_, PyAny>, name: &str, cell: u32) -> u32 {
        self.count_reach();
        let mut table = self.table.lock();
        let next = table.given;
        let number = *table.numbers.entry(function.as_ptr() as usize).or_insert(next);
        if number == next {
            table.given = table.given.saturating_add(1);
            let entry = Entry { function: function.clone().unbind(), name: name.into(), cell };
            table.functions.insert(number, entry);
        } else if let Some(entry) = table.functions.get_mut(&number)
            && entry.cell != cell
        {
            entry.cell = 0;
        }
        number
    }

    /// Forgets what was given to the cells at these places alone: the sandbox has it no more.
    pub(crate) fn take_back(&self, first: u32, last: u32) {
        let is_lost = |cell: u32| cell != 0 && (first..=last).contains(&cell);
        let mut table = self.table.lock();
        table.promises.retain(|_, answer| !is_lost(answer.cell));
        let lost: Vec<_> = table.functions.extract_if(|_, entry| is_lost(entry.cell)).collect();
        for (_, entry) in &lost {
            table.numbers.remove(&(entry.function.as_ptr() as usize));
        }
        drop(table);
        // Outside of the lock, because freeing a function may run the caller's code.
        drop(lost);
    }

    /// The number of a function that is answered in Rust. Its calls never reach Python.
    pub(crate) fn native_number(&self, function: &Bound<'_, PyNativeFunction>) -> u32 {
        let number = self.native.number(&function.get().0);
        let mut table = self.table.lock();
        table.native.entry(number & !ASYNC_FUNCTION).or_insert_with(|| function.clone().unbind());
        number
    }

    /// The table of functions that are answered in Rust, for the request.
    pub(crate) fn native(&self) -> NativeFunctions {
        self.native.clone()
    }

    pub(crate) fn function<'py>(&self, py: Python<'py>, number: u32) -> Option<Bound<'py, PyAny>> {
        let table = self.table.lock();
        if NativeFunctions::is_native(number) {
            return table.native.get(&number).map(|function| function.bind(py).clone().into_any());
        }
        table.functions.get(&number).map(|entry| entry.function.bind(py).clone())
    }

    /// Notes that a promise is the answer of a function, for that cell.
    pub(crate) fn answers(&self, function: u32, promise: u32, cell: u32) {
        self.table.lock().promises.insert(promise, Answer { function, cell });
    }

    /// The function that returned a promise, which settles now.
    pub(crate) fn answered(&self, promise: u32) -> Option<u32> {
        self.table.lock().promises.remove(&promise).map(|answer| answer.function)
    }

    /// The path of an answer of a function; without one, of a promise that no function returned.
    pub(crate) fn answer_of(&self, function: Option<u32>) -> String {
        let table = self.table.lock();
        match function {
            None => "result".to_owned(),
            Some(REPORT_SINK) => isolane::answer_of("report"),
            Some(number) => {
                isolane::answer_of(table.functions.get(&number).map_or("", |entry| &entry.name))
            }
        }
    }

    /// Notes that the sandbox has a host function or a promise of the host.
    pub(crate) fn count_reach(&self) {
        self.reaches.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reaches_host(&self) -> bool {
        self.reaches.load(Ordering::Relaxed)
    }

    /// The same functions under the same numbers, for the copy of a session. Later ones are apart, but for the numbers
    /// of functions that are answered in Rust: those have one table.
    pub(crate) fn copy(&self, py: Python<'_>) -> Self {
        let table = self.table.lock();
        let copied = |entry: &Entry| {
            let (function, name) = (entry.function.clone_ref(py), entry.name.clone());
            Entry { function, name, cell: 0 }
        };
        let functions = table.functions.iter().map(|(&number, entry)| (number, copied(entry)));
        let native = table.native.iter().map(|(&number, native)| (number, native.clone_ref(py)));
        let copied = Table {
            numbers: table.numbers.clone(),
            functions: functions.collect(),
            given: table.given,
            promises: table.promises.clone(),
            native: native.collect(),
        };
        Self {
            table: Lock::new(copied),
            native: self.native.clone(),
            reaches: AtomicBool::new(self.reaches_host()),
        }
    }

    pub(crate) fn clear(&self) {
        let table = std::mem::take(&mut *self.table.lock());
        // Outside of the lock, because freeing a function may run the caller's code.
        drop(table);
    }
}

#[pymethods]
impl Functions {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is held belongs to a thread that uses the functions: they are alive.
        let Some(table) = self.table.try_lock() else { return Ok(()) };
        table.functions.values().try_for_each(|entry| visit.call(&entry.function))?;
        table.native.values().try_for_each(|function| visit.call(function))
    }

    fn __clear__(&self) {
        self.clear();
    }
}
