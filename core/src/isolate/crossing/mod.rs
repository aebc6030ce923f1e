//! Values, functions and promises that enter or leave the sandbox.
//!
//! `clone_in` and `clone_out` turn messages into values and back, `bridge` gives functions and promises numbers and
//! calls them, `thrown` identifies the throws of the host, and `structured_clone` is the sandbox's own function of that
//! name.

pub(super) mod bridge;
pub(super) mod clone_in;
pub(super) mod clone_out;
pub(super) mod structured_clone;
pub(super) mod thrown;
