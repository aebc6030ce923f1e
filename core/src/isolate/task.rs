//! The work of an isolate.
//!
//! In: a request that was checked, as `runtime/prepare.rs` has it. Out: plain data that the run consumes on its way.

use std::sync::Arc;

use crate::{
    modules::request::{ExtensionRequest, Shape},
    value::Value,
};

/// The work of an isolate.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// The export to select.
    pub(crate) export: String,
    /// The names of the globals, in the order of their values.
    pub(crate) globals: Vec<String>,
    /// One message: the extension's input if it is asked for, the globals' values, the values of the bridges' exports, the arguments.
    pub(crate) inputs: Value,
    /// Whether the built-in `report` exists.
    pub(crate) report: bool,
    /// The form of the entry.
    pub(crate) shape: Shape,
    /// The part of the extension that the run sees, until that is open.
    pub(crate) extension: Option<Arc<ExtensionRequest>>,
}
