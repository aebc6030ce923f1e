//! The functions of the host that cells may call: tools, `llm` and `agent`.
//!
//! In: calls of cells, of which nothing is trusted. Out: calls of the host's functions within the limits, and answers or
//! errors for the cell. `tool` is what a host gives, `schema` checks arguments, `answer` reads a tool's result, `llm`
//! and `agent` have the rules of those helpers, `asked` those of both, `files` those of helpers of files and artifacts,
//! `value` has those of values that cross, `seen` makes JSON of them, `desk` answers the calls of one cell.

mod agent;
mod answer;
mod asked;
pub(crate) mod desk;
mod files;
mod llm;
mod schema;
mod seen;
mod tool;
pub(crate) mod value;

pub use self::{
    agent::{Agent, AgentOptions},
    llm::{Llm, LlmOptions},
    tool::{CellTool, HostAnswer, HostFuture},
};
pub(crate) use self::{desk::Desk, tool::HostTools};
