//! The module graph, in which every import and every name is checked before any code runs.
//!
//! In: compiled modules, and the names that the host hands over. Out: a graph in which each specifier has one meaning
//! and each name exists, or the first error as a reader would meet it. Knows neither the engine nor the compiler's own
//! types. Keeps §3.2, §3.3 and §8 of the contract.

pub(crate) mod graph;
mod resolve;
pub(crate) mod specifier;
#[cfg(test)]
mod tests;
