//! The functions of the host that cells may call: tools, and `llm`.
//!
//! In: calls of cells, of which nothing is trusted. Out: calls of the host's functions within the limits, and answers or
//! errors for the cell. `tool` is what a host gives, `schema` checks arguments, `answer` reads a tool's result, `llm` has
//! the rules of that helper, `desk` answers the calls of one cell.

mod answer;
pub(crate) mod desk;
mod llm;
mod schema;
mod tool;

pub(crate) use self::{desk::Desk, tool::HostTools};
pub use self::{
    llm::{Llm, LlmOptions},
    tool::{CellTool, HostAnswer, HostFuture},
};
