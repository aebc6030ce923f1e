//! From source texts to a checked module graph.
//!
//! `request` is what a caller asks for, with every check on it. `compile` turns one source into a module, `cache` keeps
//! compiled ones, `link` finds out which modules a graph has, and `program` puts these together for one run.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod link;
pub(crate) mod program;
pub(crate) mod request;
