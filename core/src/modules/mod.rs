//! Source text to a checked module graph: compile, link, cache.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod link;
pub(crate) mod program;
pub(crate) mod request;
