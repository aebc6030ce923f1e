//! Tests of the whole core from inside, and a timer of the steps of a run for benchmarks.

#[cfg(all(test, unix))]
pub(crate) mod backed;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod fault_tests;
pub(crate) mod step_timer;
