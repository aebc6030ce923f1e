//! Checked module graphs, made from source texts.
//!
//! `request` is a caller's request, with every check on it; `session_request` has those of sessions, and
//! `session_interceptor` the host's code in front of them. `compile` turns one
//! source into a module, `cache` keeps compiled ones, `link` finds the modules of a graph, `program` combines these for
//! one run, and `session_program` for a session.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod link;
pub(crate) mod program;
pub(crate) mod request;
pub(crate) mod session_interceptor;
pub(crate) mod session_program;
pub(crate) mod session_request;
