//! The containers that are being read.
//!
//! In: a container, and the reader of the message behind its last member. Out: whether a member follows, with its key;
//! and the container with that member in it. A container is filled and emptied in small steps.

use isolane::value::{Malformed, Reader};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList, PySet, PyString},
};

use super::{
    composite::Composite,
    scalars::{malformed, string},
};

/// A container that is being read.
pub(super) enum Frame {
    Object { dict: Py<PyDict>, key: u32 },
    Array { list: Py<PyList>, left: u32 },
    Sparse { list: Py<PyList>, length: u32, index: u32, then: AfterHoles },
    Map { dict: Py<PyDict>, key: Option<Py<PyAny>>, left: u64 },
    Set { set: Py<PySet>, left: u32 },
    Composite { of: Composite, parts: Vec<Py<PyAny>> },
}

/// The next item of a sparse array after its holes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterHoles {
    Index,
    Element,
    End,
}

/// The next step in a frame.
pub(super) enum Next {
    Member,
    /// Some holes were made; the frame continues.
    Holes,
    Done,
}

/// Holes that are made in one step.
const HOLES_PER_STEP: usize = 64;

/// Elements of a list that are freed in one step.
const FREED_PER_STEP: usize = 16;

/// The next step in a frame. If a member with a key follows, this reads its key.
pub(super) fn next(
    reader: &mut Reader<'_>,
    keys: &mut Vec<Py<PyString>>,
    py: Python<'_>,
    frame: &mut Frame,
) -> PyResult<Next> {
    let more = match frame {
        Frame::Object { key, .. } => match reader.key().map_err(malformed)? {
            None => false,
            Some(next) => {
                if next.number as usize == keys.len() {
                    keys.push(string(py, next.text)?.unbind());
                }
                *key = next.number;
                true
            }
        },
        Frame::Sparse { list, length, index, then } => {
            return next_of_sparse(reader, list.bind(py), *length, index, then);
        }
        Frame::Array { left, .. } | Frame::Set { left, .. } => {
            let more = *left > 0;
            *left = left.saturating_sub(1);
            more
        }
        Frame::Map { left, .. } => {
            let more = *left > 0;
            *left = left.saturating_sub(1);
            more
        }
        Frame::Composite { of, parts } => parts.len() < of.parts(),
    };
    Ok(if more { Next::Member } else { Next::Done })
}

/// The next step in a sparse array. Holes take no bytes of the message, so they are made some at a time.
fn next_of_sparse(
    reader: &mut Reader<'_>,
    list: &Bound<'_, PyList>,
    length: u32,
    index: &mut u32,
    then: &mut AfterHoles,
) -> PyResult<Next> {
    let missing = (*index as usize).saturating_sub(list.len());
    if missing > 0 {
        for _ in 0..missing.min(HOLES_PER_STEP) {
            list.append(list.py().None())?;
        }
        return Ok(Next::Holes);
    }
    match then {
        AfterHoles::Index => {
            (*index, *then) = match reader.sparse_index().map_err(malformed)? {
                Some(index) if index >= length => return Err(malformed(Malformed)),
                Some(index) => (index, AfterHoles::Element),
                None => (length, AfterHoles::End),
            };
            Ok(Next::Holes)
        }
        AfterHoles::Element => {
            *then = AfterHoles::Index;
            Ok(Next::Member)
        }
        AfterHoles::End => Ok(Next::Done),
    }
}

pub(super) fn put(
    py: Python<'_>,
    frame: &mut Frame,
    keys: &[Py<PyString>],
    value: Bound<'_, PyAny>,
) -> PyResult<()> {
    match frame {
        Frame::Object { dict, key } => match keys.get(*key as usize) {
            Some(key) => dict.bind(py).set_item(key.bind(py), value),
            None => Err(malformed(Malformed)),
        },
        Frame::Array { list, .. } => list.bind(py).append(value),
        Frame::Sparse { list, index, .. } => {
            let (list, index) = (list.bind(py), *index as usize);
            if index < list.len() { list.set_item(index, value) } else { list.append(value) }
        }
        Frame::Map { dict, key, .. } => match key.take() {
            Some(key) => dict.bind(py).set_item(key, value),
            None => {
                *key = Some(value.unbind());
                Ok(())
            }
        },
        Frame::Set { set, .. } => set.bind(py).add(value),
        Frame::Composite { parts, .. } => {
            parts.push(value.unbind());
            Ok(())
        }
    }
}

/// Frees some members of a container; returns whether it is empty now.
pub(super) fn empty(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(list) = object.cast_exact::<PyList>() {
        let length = list.len();
        let kept = length.saturating_sub(FREED_PER_STEP);
        return list.del_slice(kept, length).is_err() || kept == 0;
    }
    if let Ok(dict) = object.cast_exact::<PyDict>() {
        dict.clear();
    } else if let Ok(set) = object.cast_exact::<PySet>() {
        set.clear();
    }
    true
}
