//! Executors of code that a model emits.
//!
//! In: code, a language, files. Out: the text that the program printed, its files and its exit code. An executor is a
//! [`CodeExecutor`]; [`LocalCodeExecutor`] runs an interpreter as a subprocess.

mod checks;
mod code_loop;
mod confined;
mod container;
mod content;
mod context;
mod data;
pub mod door;
mod error;
mod executor;
mod isolate;
mod local;
mod model;
mod output_files;
mod task;
mod workspace;

pub use code_loop::{
    AsText, CodeLoop, CodeLoopBuilder, LoopEvent, LoopInput, LoopResult, LoopStream, OutputStream,
    Reason,
};
pub use confined::{ConfinedCodeExecutor, MemoryLimit, ProgramConfinement};
pub use container::ContainerCodeExecutor;
pub use content::{CodePart, Content, OtherPart, Part, ResultPart, Role, TextPart};
pub use context::InvocationContext;
pub use data::{CodeExecutionInput, CodeExecutionResult, ExecFile, Outcome};
pub use error::{ExecutorError, ExecutorErrorKind};
pub use executor::{CodeBlockDelimiters, CodeExecutor};
pub use isolate::{HostRuntime, IsolateCodeExecutor, OwnRuntime};
pub use local::LocalCodeExecutor;
pub use model::{Model, ModelError, ModelReply, ModelRequest, PartStream, ScriptedModel};
pub use tokio_util::sync::CancellationToken;

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/executors.md")]
struct ExecutorsPage;
