//! Results for people: on a terminal, as a page of HTML, as a notebook of Jupyter.
//!
//! In: the result of a call, or the arguments of one that has not run. Out: a text. All are pure functions. Everything of a
//! cell is hostile: no text of a cell is markup, or obeyed by a terminal. `options` are those of all renderers, `read` makes
//! results of JSON, `plain` makes texts harmless, `facts` has the words about a cell and its error, `rows` wraps lines.

mod facts;
mod html;
mod ipynb;
mod options;
mod plain;
mod read;
mod rows;
mod terminal;

pub(crate) use read::read;

pub use html::render_html;
pub use ipynb::{jupyter_metadata, jupyter_outputs, to_ipynb};
pub use options::{Color, HtmlOptions, TerminalOptions, Theme};
pub use terminal::{render_call, render_terminal};
