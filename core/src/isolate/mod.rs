//! The engine and everything that speaks to it. No other part of the crate imports it.
//!
//! The memory room, from the bottom up: [`range`] reserves addresses, [`arena`] and [`system`] hand
//! out blocks, [`heap`] gives them to the engine and keeps the [`books`], [`slot`] takes and restores images, [`calibrate`]
//! finds two fields of the engine, [`ending`] and [`poll`] decide when code must stop, [`home`] puts these
//! together into a place where one run lives, and [`pool`] keeps homes ready.

pub(crate) mod arena;
mod books;
pub(crate) mod calibrate;
pub(crate) mod ending;
pub(crate) mod heap;
pub(crate) mod home;
pub(crate) mod poll;
pub(crate) mod pool;
pub(crate) mod range;
pub(crate) mod slot;
pub(crate) mod system;

// Where there are slots to test.
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod cost;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod memory_tests;
#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod stop_tests;
#[cfg(test)]
mod test_realm;
