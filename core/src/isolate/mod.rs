//! The engine and everything that speaks to it. No other part of the crate imports it.
//!
//! The memory room, from the bottom up: [`range`] reserves addresses, [`arena`] and [`system`] hand
//! out blocks, [`heap`] keeps the books over them, [`slot`] takes and restores images, [`calibrate`]
//! finds two fields of the engine, [`ending`] and [`poll`] decide when code must stop, [`home`] puts these
//! together into a place where one run lives, and [`pool`] keeps homes ready.

pub(crate) mod arena;
pub(crate) mod calibrate;
pub(crate) mod ending;
pub(crate) mod heap;
pub(crate) mod home;
pub(crate) mod poll;
pub(crate) mod pool;
pub(crate) mod range;
pub(crate) mod slot;
pub(crate) mod system;

#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod test_realm;
