//! Checked module graphs, made from source texts.
//!
//! `request` is a caller's request, with every check on it. `compile` turns one source into a module, `cache` keeps
//! compiled ones, `link` finds the modules of a graph, and `program` combines these for one run.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod link;
pub(crate) mod program;
pub(crate) mod request;
