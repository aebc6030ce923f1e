//! The words that begin with a dot.
//!
//! In: a line. Out: a command, or nothing for code: `.5` is a number.

use std::path::PathBuf;

pub(super) const HELP: &str = ".names        lists what is declared
.load FILE    runs a file as a cell
.save FILE    writes the cells that succeeded into a file
.reset        forgets everything
.exit         ends the program";

/// The commands, for completion.
pub(super) const WORDS: [&str; 6] = [".names", ".load", ".save", ".reset", ".exit", ".help"];

#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Names,
    Load(PathBuf),
    Save(PathBuf),
    Reset,
    Exit,
    Help,
    Unknown(String),
}

impl Command {
    pub(super) fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let is_command = |rest: &str| rest.starts_with(|char: char| char.is_ascii_alphabetic());
        line.strip_prefix('.').filter(|rest| is_command(rest))?;
        let (word, file) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let file = file.trim();
        Some(match (word, file.is_empty()) {
            (".names", true) => Self::Names,
            (".reset", true) => Self::Reset,
            (".exit", true) => Self::Exit,
            (".help", true) => Self::Help,
            (".load", false) => Self::Load(file.into()),
            (".save", false) => Self::Save(file.into()),
            _ => Self::Unknown(line.chars().take(100).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_no_command() {
        assert_eq!(Command::of(".5 + 1"), None);
        assert_eq!(Command::of("..."), None);
        assert_eq!(Command::of(" .exit "), Some(Command::Exit));
        assert_eq!(Command::of(".load my file.ts"), Some(Command::Load("my file.ts".into())));
        for wrong in [".load", ".exit now", ".nothing"] {
            assert_eq!(Command::of(wrong), Some(Command::Unknown(wrong.to_owned())));
        }
    }
}
