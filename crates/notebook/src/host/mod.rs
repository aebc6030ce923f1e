//! The functions of the host that cells may call: tools, and `llm`.
//!
//! In: calls of cells, of which nothing is trusted. Out: calls of the host's functions within the limits, and answers or
//! errors for the cell. `tool` is what a host gives, `schema` checks arguments, `answer` reads a tool's result, `llm` has
//! the rules of that helper, `value` has those of values that cross, `seen` makes JSON of them, `desk` answers the calls of one cell.

mod answer;
pub(crate) mod desk;
mod llm;
mod schema;
mod seen;
mod tool;
pub(crate) mod value;

pub(crate) use self::{desk::Desk, tool::HostTools};
pub use self::{
    llm::{Llm, LlmOptions},
    tool::{CellTool, HostAnswer, HostFuture},
};
