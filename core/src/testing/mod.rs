//! Tests of the whole core from inside, and what measures it.

#[cfg(test)]
mod costs;
#[cfg(test)]
mod fault_tests;
pub(crate) mod step_timer;
