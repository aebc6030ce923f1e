//! Lines of a terminal, or of a pipe.
//!
//! In: stdin. Out: lines. A pipe gives plain lines, without prompts and colours. At a terminal lines can be edited, and
//! come back from a history; the tabulator completes names, for which no code runs.

mod terminal;

use std::io::{self, BufRead, BufReader, IsTerminal, Stdin};

use self::terminal::Terminal;
use super::Names;
use crate::{exit::Ended, signals::Signals};

/// Why there is no line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ending {
    /// Ctrl-C: what was typed so far is forgotten.
    Cleared,
    /// Ctrl-C again.
    Interrupted,
    /// The end of the input.
    Over,
}

pub(super) enum Input {
    Pipe(BufReader<Stdin>),
    Terminal(Box<Terminal>),
}

/// The modes of the terminal as they were: the end of this value brings them back. A thread that reads a line does not,
/// when the program ends before the line.
pub(super) struct Restored {
    #[cfg(unix)]
    modes: Option<rustix::termios::Termios>,
}

impl Restored {
    pub(super) fn new() -> Self {
        Self {
            // A pipe has no modes.
            #[cfg(unix)]
            modes: rustix::termios::tcgetattr(io::stdin()).ok(),
        }
    }
}

#[cfg(unix)]
impl Drop for Restored {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // A terminal that is gone needs no modes.
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

impl Input {
    /// # Errors
    /// A terminal that does not work.
    pub(super) fn open(names: Names) -> Result<Self, Ended> {
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            return Ok(Self::Terminal(Box::new(Terminal::open(names)?)));
        }
        Ok(Self::Pipe(BufReader::new(io::stdin())))
    }

    /// The next line, and the input again. `is_first`: it begins a cell.
    ///
    /// # Errors
    /// A signal; an input that cannot be read.
    pub(super) async fn line(
        mut self,
        is_first: bool,
        signals: &mut Signals,
    ) -> Result<(Result<String, Ending>, Self), Ended> {
        let reading = move || {
            let line = match &mut self {
                Self::Pipe(stdin) => piped(stdin)?,
                Self::Terminal(terminal) => terminal.line(is_first)?,
            };
            Ok((line, self))
        };
        signals.during(reading).await
    }
}

fn piped(stdin: &mut BufReader<Stdin>) -> Result<Result<String, Ending>, Ended> {
    let mut line = String::new();
    match stdin.read_line(&mut line) {
        Ok(0) => Ok(Err(Ending::Over)),
        Ok(_) => Ok(Ok(line.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => Err(Ended::misuse(format!("cannot read stdin: {error}"))),
    }
}
