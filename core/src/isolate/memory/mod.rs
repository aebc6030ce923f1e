//! Memory of a run, and interrupts for the code in it.
//!
//! From the bottom up: `range` reserves addresses, `arena` and `system` hand out blocks, `returned` records which pages
//! the system has back, `accounting` and `heap` count the bytes held, `slot` takes and restores images, `calibrate`
//! finds two fields of the engine, `termination` asks code to stop, `interrupt` handles the engine's polls, `escape`
//! leaves the engine. An `instance` combines them with a pristine realm, and `pool` keeps instances ready.
//! `home` lets sessions take turns in one: `snapshot` holds their content meanwhile, `exchange` their figures.

pub(super) mod accounting;
pub(super) mod arena;
pub(super) mod calibrate;
pub(super) mod countdown;
pub(super) mod escape;
pub(super) mod exchange;
pub(super) mod heap;
pub(super) mod home;
pub(super) mod instance;
pub(super) mod interrupt;
pub(super) mod pool;
pub(super) mod range;
pub(super) mod returned;
pub(super) mod slot;
pub(super) mod snapshot;
pub(super) mod system;
pub(super) mod termination;

#[cfg(test)]
pub(super) mod test_realm;
#[cfg(test)]
pub(super) mod tests;
