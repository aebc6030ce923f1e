//! Environments that run code of clients, and the service that keeps their processes.
//!
//! In: code that clients submit. Out: processes: their states, their streams, their output, their events. An
//! environment is an [`Environment`]; [`TypeScriptEnvironment`] runs each execution in an isolate of its own.
//! A [`ProcessService`] gives an environment work and keeps the records.

mod bindings;
mod database;
pub mod door;
mod environment;
mod event;
mod execution;
mod json;
mod locks;
mod options;
mod problem;
mod process;
mod reader;
mod record;
mod request;
mod service;
mod stats;
mod tools;
mod typescript;

pub use bindings::{EnvironmentBindings, ExecutionHost};
pub use environment::{Environment, EnvironmentError};
pub use event::{AllEvents, EventKind, Lagged, ProcessEvent};
pub use execution::{
    EXECUTION_EXIT_STATES, EXECUTION_STATES, ErrorDetails, ExecutionExitState, ExecutionFailure,
    ExecutionInput, ExecutionOptions, ExecutionState,
};
pub use options::{Log, ProcessServiceOptions};
pub use problem::{ProblemType, ProcessError};
pub use reader::ProcessEvents;
pub use record::{ProcessList, ProcessRecord, ProcessState, StreamInfo};
pub use request::{ListQuery, NewProcess, RunQuery, whole_number};
pub use service::{ProcessService, WeakProcessService};
pub use stats::{Histogram, ServiceStats, ToolCount};
pub use tokio_util::sync::CancellationToken;
pub use tools::{
    ToolCalls, ToolContext, ToolDescription, ToolError, ToolHandler, ToolInfo, ToolSet,
    names::{identifier as tool_identifier, is_name as is_tool_name},
    types::tool_types,
};
pub use typescript::{TypeScriptEnvironment, TypeScriptEnvironmentOptions};

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/environment.md")]
struct EnvironmentPage;
