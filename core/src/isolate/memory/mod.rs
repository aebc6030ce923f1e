//! Where one run lives: its addresses, its blocks, what they count for, and how code in it is stopped.

pub(super) mod accounting;
pub(super) mod arena;
pub(super) mod calibrate;
pub(super) mod escape;
pub(super) mod heap;
pub(super) mod instance;
pub(super) mod interrupt;
pub(super) mod pool;
pub(super) mod range;
pub(super) mod returned;
pub(super) mod slot;
pub(super) mod system;
pub(super) mod termination;

#[cfg(test)]
pub(super) mod test_realm;
#[cfg(test)]
pub(super) mod tests;
