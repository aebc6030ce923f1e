//! A terminal: lines that can be edited, a history, completion.
//!
//! In: keys. Out: lines. The history is a file in the user's state folder, which only the user can read.

use std::{path::PathBuf, sync::PoisonError};

use rustyline::{
    Config, Context, Editor, Helper, completion::Completer, error::ReadlineError,
    highlight::Highlighter, hint::Hinter, history::DefaultHistory, validate::Validator,
};

use super::{Ending, Names};
use crate::{exit::Ended, repl::commands::WORDS, state_folder::state_folder};

const PROMPT: &str = "> ";

/// The prompt of further lines of a cell.
const MORE_PROMPT: &str = "... ";

pub(in crate::repl) struct Terminal {
    editor: Editor<NameCompleter, DefaultHistory>,
    /// `None` without a folder for it.
    history: Option<PathBuf>,
    was_interrupted: bool,
}

impl Terminal {
    pub(super) fn open(names: Names) -> Result<Self, Ended> {
        // A program that a signal ends while it reads a line could not take the mode of pasting back.
        let config = Config::builder().bracketed_paste(false).build();
        let mut editor = Editor::with_config(config).map_err(|error| Ended::failure(&error))?;
        editor.set_helper(Some(NameCompleter { names }));
        let history = history_file();
        if let Some(file) = &history {
            // The first time there is none.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history, was_interrupted: false })
    }

    pub(super) fn line(&mut self, is_first: bool) -> Result<Result<String, Ending>, Ended> {
        let was_interrupted = std::mem::take(&mut self.was_interrupted);
        match self.editor.readline(if is_first { PROMPT } else { MORE_PROMPT }) {
            Ok(line) => {
                self.remember(&line);
                Ok(Ok(line))
            }
            Err(ReadlineError::Interrupted) if was_interrupted => Ok(Err(Ending::Interrupted)),
            Err(ReadlineError::Interrupted) => {
                eprint("(Ctrl-C again ends the program)\n");
                self.was_interrupted = true;
                Ok(Err(Ending::Cleared))
            }
            Err(ReadlineError::Eof) => Ok(Err(Ending::Over)),
            Err(error) => Err(Ended::failure(&error)),
        }
    }

    /// A history that cannot be kept is no failure.
    fn remember(&mut self, line: &str) {
        if line.trim().is_empty() || !self.editor.add_history_entry(line).unwrap_or(false) {
            return;
        }
        if let Some(file) = &self.history {
            let _ = self.editor.append_history(file);
        }
    }
}

fn eprint(text: &str) {
    use std::io::Write;
    // A stderr that nobody reads is no failure.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The file in the user's state folder.
fn history_file() -> Option<PathBuf> {
    state_folder().ok().map(|folder| folder.join("history"))
}

/// Completes the names that cells have declared, and the commands.
struct NameCompleter {
    names: Names,
}

impl Completer for NameCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(candidates(line.get(..at).unwrap_or_default(), &names))
    }
}

/// Where the word at the end begins, and what it may become. A word behind a dot is a property, which only a getter may
/// know: nothing completes it.
fn candidates(before: &str, names: &[String]) -> (usize, Vec<String>) {
    let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    let from = before.trim_end_matches(is_part).len();
    let word = before.get(from..).unwrap_or_default();
    let rest = before.get(..from).unwrap_or_default();
    if rest.trim() == "." {
        let from = from - 1;
        let word = before.get(from..).unwrap_or_default();
        let words = WORDS.iter().filter(|known| known.starts_with(word));
        return (from, words.map(|known| (*known).to_owned()).collect());
    }
    if word.is_empty() || rest.ends_with('.') {
        return (from, Vec::new());
    }
    (from, names.iter().filter(|name| name.starts_with(word)).cloned().collect())
}

impl Helper for NameCompleter {}
impl Highlighter for NameCompleter {}
impl Validator for NameCompleter {}

impl Hinter for NameCompleter {
    type Hint = String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_commands_are_completed() {
        let names = ["rows".to_owned(), "rowCount".to_owned(), "total".to_owned()];
        let both = vec!["rows".to_owned(), "rowCount".to_owned()];
        assert_eq!(candidates("f(ro", &names), (2, both));
        assert_eq!(candidates("rows.to", &names), (5, Vec::new()));
        assert_eq!(candidates("", &names), (0, Vec::new()));
        assert_eq!(candidates(".re", &names), (0, vec![".reset".to_owned()]));
        assert_eq!(candidates("a ro ", &names), (5, Vec::new()));
    }
}
