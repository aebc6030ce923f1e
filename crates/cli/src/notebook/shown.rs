//! The cells of a notebook, for people.
//!
//! In: the result of a cell. Out: its head and its output for stdout, and for stderr its number and the reason of its failure.
//! A kernel counts its own cells (`<cell 1>`); people count those of the file (`cell 3`).

use std::collections::BTreeMap;

use isolane::ExecutionError;
use isolane_notebook::{CallResult, CellError, CellResult, Language};

use super::document::Cell;
use crate::{
    failure,
    sources::Sources,
    streams::{Streams, harmless},
};

/// The characters of a cell's first line that its head shows.
const MOST_HEAD_CHARS: usize = 60;

/// The cells so far.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    count: usize,
    /// The cells by their names in kernels: language, name, number from 1.
    names: BTreeMap<(&'static str, String), usize>,
    /// The sources of cells of JavaScript, by the specifier of their name.
    sources: BTreeMap<String, String>,
}

impl Shown {
    pub(crate) fn new(count: usize) -> Self {
        Self { count, ..Self::default() }
    }

    /// `[2/3] ` if there are several cells.
    fn number(&self, index: usize) -> String {
        if self.count > 1 { format!("[{}/{}] ", index + 1, self.count) } else { String::new() }
    }

    /// Shows the number and the first line of a cell that begins.
    pub(crate) fn begin(&self, index: usize, cell: &Cell, streams: &Streams) {
        if self.count < 2 {
            return;
        }
        let mut lines = cell.code.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let mut shown: String = line.chars().take(MOST_HEAD_CHARS).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        streams.out(harmless(&(self.number(index) + &shown)));
    }

    /// Shows how a cell has ended.
    pub(crate) fn end(
        &mut self,
        index: usize,
        result: &CallResult,
        timeout_seconds: u64,
        streams: &Streams,
    ) {
        let say = |text: &str| streams.styled(harmless(text) + "\n");
        if let Some(notice) = &result.notice {
            say(&format!("{}{notice}", self.number(index)));
        }
        let Some(cell) = result.cells.first() else { return say(&result.text) };
        if let Some(name) = &cell.name {
            self.names.insert((cell.language.as_str(), name.clone()), index + 1);
            self.sources.insert(format!("./cell {}", index + 1), cell.code.clone());
        }
        let output = cell.output.trim_end();
        if !output.is_empty() {
            streams.out(output.to_owned());
        }
        match result.images.len() {
            0 => {}
            1 => streams.out("(1 image)".to_owned()),
            count => streams.out(format!("({count} images)")),
        }
        if let Some(cut) = result.truncation {
            say(&format!("{}the output was cut: {cut}", self.number(index)));
        }
        if let Some(error) = &cell.error {
            let number = self.number(index);
            streams.styled(number + &self.reason(cell, error, timeout_seconds));
            let title = cell.language.title();
            match cell.state {
                Some("rolledBack") => say(&format!("{title} is as it was before this cell")),
                Some("reset") => say(&format!("the state of {title} was lost")),
                _ => {}
            }
        }
    }

    /// Why a cell failed, with a line break at its end.
    fn reason(&self, cell: &CellResult, error: &CellError, timeout_seconds: u64) -> String {
        if cell.exit_code.is_none() {
            return match error.name.as_str() {
                "Timeout" => format!("the cell took longer than {timeout_seconds}s\n"),
                _ => "the cell was ended\n".to_owned(),
            };
        }
        if let (Language::Py, Some(stack)) = (cell.language, &error.stack) {
            return harmless(&self.renamed(stack)) + "\n";
        }
        let number = error.filename.clone().and_then(|name| self.names.get(&("js", name)));
        let error = ExecutionError {
            name: error.name.clone(),
            message: error.message.clone(),
            filename: number.map(|number| format!("cell {number}")).or(error.filename.clone()),
            line: error.line,
            column: error.column,
            ..ExecutionError::default()
        };
        let sources = Sources { modules: self.sources.clone(), ..Sources::default() };
        failure::text("error", &error, &sources)
    }

    /// A traceback with the numbers of people.
    fn renamed(&self, traceback: &str) -> String {
        let of_python = self.names.iter().filter(|((language, _), _)| *language == "py");
        of_python.fold(traceback.trim_end().to_owned(), |text, ((_, name), number)| {
            text.replace(&format!("File \"{name}\""), &format!("File \"cell {number}\""))
        })
    }

    /// Tells which cells did not run.
    pub(crate) fn rest(&self, from: usize, streams: &Streams) {
        let numbers = match self.count - from {
            0 => return,
            1 => format!("cell {}", self.count),
            2 => format!("cells {} and {}", from + 1, self.count),
            _ => format!("cells {} to {}", from + 1, self.count),
        };
        streams.styled(format!("{numbers} did not run; --keep-going runs them\n"));
    }
}
