//! Values, functions and promises on their way into the sandbox and out of it.

pub(super) mod bridge;
pub(super) mod clone_in;
pub(super) mod clone_out;
pub(super) mod structured_clone;
