//! Values of several nodes: errors and functions.
//!
//! In: the first node, and the values of the nodes after it. Out: an exception, or a function of the run's owner.

use isolane::value::{ErrorClass, Event, Malformed};
use pyo3::prelude::*;

use super::{Owners, scalars::malformed};
use crate::value::classes::SANDBOX_ERROR;

/// A value that is made of several nodes when all of them have been read.
#[derive(Clone, Copy)]
pub(super) enum Composite {
    Error(ErrorClass),
    HostFunction(u32),
    SandboxFunction(u32),
}

impl Composite {
    /// The number of nodes of the value.
    pub(super) fn parts(self) -> usize {
        match self {
            // Its name, message, stack and code.
            Self::Error(_) => 4,
            // Its name.
            Self::HostFunction(_) | Self::SandboxFunction(_) => 1,
        }
    }
}

pub(super) fn composite_of(event: Event<'_>) -> Option<Composite> {
    Some(match event {
        Event::Error(class) => Composite::Error(class),
        Event::HostFunction(number) => Composite::HostFunction(number),
        Event::SandboxFunction(number) => Composite::SandboxFunction(number),
        _ => return None,
    })
}

pub(super) fn composite<'py>(
    of: Composite,
    parts: Vec<Py<PyAny>>,
    owners: &Owners<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let owner = &owners.0;
    match (of, <[_; 4]>::try_from(parts)) {
        (Composite::Error(class), Ok([name, message, stack, code])) => {
            let arguments = (name, message, stack, code, class as u8);
            SANDBOX_ERROR.get(owner.py())?.call1(arguments)
        }
        (Composite::HostFunction(number), _) => owner.call_method1("host_function", (number,)),
        (Composite::SandboxFunction(number), Err(parts)) => match parts.into_iter().next() {
            Some(name) => owner.call_method1("sandbox_function", (number, name)),
            None => Err(malformed(Malformed)),
        },
        _ => Err(malformed(Malformed)),
    }
}
