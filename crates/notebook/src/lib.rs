//! Cells of Python and JavaScript, mixed, in kernels that keep their state, as a tool for a model.
//!
//! In: the argument object of a model's tool call. Out: a tool result: text, images, details. [`Notebook`] runs the calls;
//! `call` is one of them, `record` what a cell shows, `host` the functions of the host that cells call, `files` and
//! `artifacts` what they read and write, `report` the result that becomes of it, `kernels` what runs the code, `render`
//! shows results to people.

mod args;
mod artifacts;
mod call;
mod child;
mod clock;
pub mod door;
mod files;
mod given;
mod host;
mod kernels;
mod misuse;
mod notebook;
mod options;
mod record;
mod registry;
mod render;
mod report;
mod result;
mod text;
mod tool;

pub use args::{Args, CellInput, Language};
pub use artifacts::{Artifact, ArtifactsOptions};
pub use call::{CallTerminator, ExecuteOptions, Execution, OnUpdate};
pub use child::{ChildFunction, ChildOptions};
pub use files::FilesOptions;
pub use host::{Agent, AgentOptions, CellTool, HostAnswer, HostFuture, Llm, LlmOptions};
pub use isolane::{HostError, SessionState};
pub use isolane_confine::program::{MemoryLimit, ProgramConfinement, launcher_in};
pub use misuse::Misuse;
pub use notebook::{Available, Backend, KernelStats, Notebook, Stats};
pub use options::{Isolation, JsOptions, Limits, Mode, NotebookOptions, PyOptions, Window};
pub use registry::{Registry, RegistryOptions};
pub use render::{
    Color, HtmlOptions, TerminalOptions, Theme, jupyter_metadata, jupyter_outputs, render_call,
    render_html, render_terminal, to_ipynb,
};
pub use result::{CallResult, CellError, CellResult, CellStatus, Image, Output, Truncation};
pub use tool::Tool;

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/notebook.md")]
struct NotebookPage;
