//! The functions of the host that crossed into one run.
//!
//! In: callables. Out: numbers, the same for the same callable. Emptied when the run has settled,
//! so that nothing of the caller's is held by a run that is over.

use std::sync::atomic::{AtomicBool, Ordering};

use isolane::{ASYNC_FUNCTION, NativeFunctions};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::{lock::Lock, native::PyNativeFunction};

#[derive(Default)]
pub(crate) struct Functions {
    table: Lock<Table>,
    native: NativeFunctions,
    /// Whether the sandbox was given anything through which it reaches its host.
    reaches: AtomicBool,
}

#[derive(Default)]
struct Table {
    numbers: FxHashMap<usize, u32>,
    functions: Vec<Py<PyAny>>,
    native: FxHashMap<u32, Py<PyNativeFunction>>,
}

impl Functions {
    /// The number of a callable. A bound method is a new object each time it is looked up, so each
    /// has a number of its own.
    pub(crate) fn number(&self, function: &Bound<'_, PyAny>) -> u32 {
        self.count_reach();
        let mut table = self.table.lock();
        let next = u32::try_from(table.functions.len()).unwrap_or(u32::MAX);
        let number = *table.numbers.entry(function.as_ptr() as usize).or_insert(next);
        if number == next {
            table.functions.push(function.clone().unbind());
        }
        number
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
        table.functions.get(number as usize).map(|function| function.bind(py).clone())
    }

    /// Notes that the sandbox was given something through which it reaches its host.
    pub(crate) fn count_reach(&self) {
        self.reaches.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reaches_host(&self) -> bool {
        self.reaches.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self, _py: Python<'_>) {
        let table = std::mem::take(&mut *self.table.lock());
        // Outside of the lock: letting go of a function may run code of the caller's.
        drop(table);
    }
}
