//! The last throw of a value that is no error.
//!
//! In: the value, and the stack that the engine wrote for its throw. Out: the stack and the identity of the value, without
//! a reference to the value.

use std::ffi::c_int;

use super::engine::{Raw, address_of, double_of, int_of, is_object, is_string, sys, tag_of};

/// A longer stack is not kept.
pub(super) const LONGEST: usize = 64 << 10;

/// The last throw of a value that is no error.
#[derive(Default)]
pub(super) struct LastThrow {
    /// The jobs so far.
    pub(super) job: u64,
    pub(super) thrown: Option<Thrown>,
}

/// A thrown value.
pub(super) struct Thrown {
    pub(super) identity: (c_int, u64),
    /// The job that threw it, or whose `await` threw it again.
    pub(super) job: u64,
    /// The engine's text, with marks.
    pub(super) stack: Vec<u8>,
}

/// The identity of a value. Equal primitive values have one identity.
pub(super) fn identity(value: Raw) -> (c_int, u64) {
    let tag = tag_of(value);
    let payload = match tag {
        sys::JS_TAG_FLOAT64 => double_of(value).to_bits(),
        _ if is_object(value) || is_string(value) => address_of(value) as u64,
        sys::JS_TAG_SYMBOL | sys::JS_TAG_BIG_INT => address_of(value) as u64,
        _ => u64::from(int_of(value).cast_unsigned()),
    };
    (tag, payload)
}
