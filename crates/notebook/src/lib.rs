//! Cells of Python and JavaScript, mixed, in kernels that keep their state, as a tool for a model.
//!
//! In: the argument object of a model's tool call. Out: a tool result: text, images, details. [`Notebook`] runs the calls;
//! `call` is one of them, `record` what a cell shows, `host` the functions of
//! the host that cells call, `report` the result that becomes of it, `kernels` what runs the code.

mod args;
mod call;
mod clock;
pub mod door;
mod given;
mod host;
mod kernels;
mod misuse;
mod notebook;
mod options;
mod record;
mod report;
mod result;
mod text;
mod tool;

pub use args::{Args, CellInput, Language};
pub use call::{CallTerminator, ExecuteOptions, Execution, OnUpdate};
pub use host::{CellTool, HostAnswer, HostFuture, Llm, LlmOptions};
pub use isolane::{HostError, SessionState};
pub use misuse::Misuse;
pub use notebook::{Available, Backend, KernelStats, Notebook, Stats};
pub use options::{JsOptions, Limits, Mode, NotebookOptions, PyOptions, Window};
pub use result::{CallResult, CellError, CellResult, CellStatus, Image, Output, Truncation};
pub use tool::Tool;

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/notebook.md")]
struct NotebookPage;
