//! Commands and flags.
//!
//! In: the words of the command line. Out: typed arguments, or the message of a misuse and exit code 2.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use isolane::Isolation;

use crate::{notebook::NotebookArguments, serve::ServeArguments};

/// Runs JavaScript and TypeScript in an isolate, with exactly the capabilities that you hand over.
#[derive(Debug, Parser)]
#[command(
    name = "isolane",
    version,
    after_help = "Example:\n  isolane run total.ts --global 'prices=[3, 4]'"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a file and print its default export.
    #[command(
        after_help = "Example:\n  isolane run total.ts --fn total --args '[[3, 4]]' --timeout 2s --memory 64m"
    )]
    Run(CodeArguments),
    /// Compile and link a file; nothing of it runs.
    #[command(after_help = "Example:\n  isolane check total.ts --modules lib")]
    Check(CodeArguments),
    /// Run code line by line, in a session.
    #[command(after_help = "Example:\n  isolane repl --import shop=shop.json --timeout 10s")]
    Repl(ReplArguments),
    /// Run the cells of a notebook, JavaScript and Python; put their outputs into the file on demand.
    #[command(after_help = "Example:\n  isolane notebook report.ipynb --unconfined-python --write")]
    Notebook(Box<NotebookArguments>),
    /// Answer clients over HTTP: they submit code, and read what it does.
    #[command(after_help = "Example:\n  isolane serve --port 0 --concurrency 4 --memory 64m")]
    Serve(Box<ServeArguments>),
    /// Be a server of the Model Context Protocol on stdin and stdout, for the host of a model.
    #[command(
        after_help = "Example, as a host is told of it:\n  { \"mcpServers\": { \"isolane\": { \"command\": \"isolane\", \"args\": [\"mcp\"] } } }"
    )]
    Mcp(McpArguments),
    /// Say what this machine offers: versions, isolations, each item of confinement.
    #[command(after_help = "Example:\n  isolane doctor --require network,system_calls")]
    Doctor(DoctorArguments),
}

#[derive(Args, Debug)]
pub(crate) struct CodeArguments {
    /// The file, or - for stdin. TypeScript, unless its name ends in .js or .mjs.
    pub(crate) file: PathBuf,
    /// The export that becomes the result, in place of the default export.
    #[arg(long = "fn", value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// The arguments of that export, a JSON array.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) given: GivenArguments,
    /// Tools that the code may import: a JSON file with mcpServers, tools and policy.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) mcp: Option<PathBuf>,
    /// The time after which the run is ended: 2s, 500ms, 1m.
    #[arg(long, value_parser = time)]
    pub(crate) timeout: Option<u64>,
    /// Where the code runs.
    #[arg(long, value_enum, default_value_t = Place::Thread)]
    pub(crate) isolation: Place,
    /// Print the whole result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The values and sources of code, and how much memory it may hold.
#[derive(Args, Clone, Debug)]
pub(crate) struct GivenArguments {
    /// A global of the code.
    #[arg(long = "global", value_name = "NAME=JSON")]
    pub(crate) globals: Vec<String>,
    /// A module of the code: its exports are the keys of the JSON object in the file.
    #[arg(long = "import", value_name = "NAME=FILE.json")]
    pub(crate) imports: Vec<String>,
    /// A folder whose sources the code may import.
    #[arg(long, value_name = "DIR")]
    pub(crate) modules: Option<PathBuf>,
    /// The most memory that the code may hold: 64m, 512k, 1g.
    #[arg(long, value_parser = bytes)]
    pub(crate) memory: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct ReplArguments {
    #[command(flatten)]
    pub(crate) given: GivenArguments,
    /// The time after which a cell is ended: 2s, 500ms, 1m.
    #[arg(long, value_parser = time)]
    pub(crate) timeout: Option<u64>,
    /// Where the code runs.
    #[arg(long, value_enum, default_value_t = Place::Thread)]
    pub(crate) isolation: Place,
}

#[derive(Args, Debug)]
pub(crate) struct McpArguments {
    /// Tools that code may import: a JSON file with mcpServers, tools and policy.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: GivenArguments,
    /// Where the code runs.
    #[arg(long, value_enum, default_value_t = Place::Process)]
    pub(crate) isolation: Place,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Exit with 1 unless workers have these items of confinement.
    #[arg(long, value_name = "ITEM,…", value_delimiter = ',')]
    pub(crate) require: Vec<String>,
    /// Print one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// On a thread of this process.
    Thread,
    /// In a confined process of its own.
    Process,
}

impl From<Place> for Isolation {
    fn from(place: Place) -> Self {
        match place {
            Place::Thread => Self::Thread,
            Place::Process => Self::Process,
        }
    }
}

/// Bytes from `64m`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    scaled(&text.to_ascii_lowercase(), &UNITS)
        .ok_or_else(|| "a number with k, m or g, such as 64m".to_owned())
}

/// Milliseconds from `2s`.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    scaled(text, &UNITS).ok_or_else(|| "a number with ms, s, m, h or d, such as 2s".to_owned())
}

/// Milliseconds from `2s`; no end from `none`.
pub(crate) fn time_or_none(text: &str) -> Result<Limit, String> {
    if text == "none" { Ok(Limit(None)) } else { time(text).map(|ms| Limit(Some(ms))) }
}

/// A time that may be without an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// A number with a unit, as a whole number of the smallest unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|scaled| *scaled > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("1000"), Ok(1000));
        assert_eq!((time("2s"), time("500ms")), (Ok(2000), Ok(500)));
        for wrong in ["2", "s", "-1s", "1.5s", "0s", "99999999999999999999s", ""] {
            time(wrong).expect_err(wrong);
        }
    }
}
