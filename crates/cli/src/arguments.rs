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
    #[command(
        after_help = "Example:\n  isolane check total.ts --modules lib --tsc node_modules/.bin/tsc"
    )]
    Check(CheckArguments),
    /// Run code line by line, in a session.
    #[command(after_help = "Example:\n  isolane repl --import shop=shop.json --timeout 10s")]
    Repl(ReplArguments),
    /// Run the cells of a notebook, JavaScript and Python; put their outputs into the file on demand.
    #[command(after_help = "Example:\n  isolane notebook report.ipynb --files data --write")]
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
    #[command(after_help = "Example:\n  isolane doctor --require network,system_calls,programs")]
    Doctor(DoctorArguments),
}

#[derive(Args, Debug)]
pub(crate) struct CodeArguments {
    /// The file, or - for stdin. TypeScript, unless its name ends in .js, .mjs or .cjs.
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

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) code: CodeArguments,
    /// Check types, too, by this compiler: the tsc of TypeScript 5.4 or newer.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) tsc: Option<PathBuf>,
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
    /// Exit with 1 unless workers have these items of confinement; `programs` stands for programs in confinement.
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
    bytes_or_zero(text).and_then(some)
}

/// Bytes from `64m`, or none at all.
pub(crate) fn bytes_or_zero(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    scaled(&text.to_ascii_lowercase(), &UNITS, "write a number with k, m or g, such as 64m")
}

/// Milliseconds from `2s`.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    time_or_zero(text).and_then(some)
}

/// Milliseconds from `2s`, or no time at all.
pub(crate) fn time_or_zero(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    scaled(text, &UNITS, "write a number with ms, s, m, h or d, such as 2s")
}

/// Milliseconds from `2s`; no end from `none`.
pub(crate) fn time_or_none(text: &str) -> Result<Limit, String> {
    if text == "none" { Ok(Limit(None)) } else { time(text).map(|ms| Limit(Some(ms))) }
}

/// The same, or no time at all.
pub(crate) fn time_or_zero_or_none(text: &str) -> Result<Limit, String> {
    if text == "none" { Ok(Limit(None)) } else { time_or_zero(text).map(|ms| Limit(Some(ms))) }
}

fn some(number: u64) -> Result<u64, String> {
    if number == 0 { Err("it must be more than 0".to_owned()) } else { Ok(number) }
}

/// A time that may be without an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// The greatest number that options take: the greatest safe integer.
const MOST: u64 = (1 << 53) - 1;

/// A number with a unit, as a whole number of the smallest unit.
fn scaled(text: &str, units: &[(&str, u64)], form: &str) -> Result<u64, String> {
    let split = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = units.iter().find(|(name, _)| *name == unit && !number.is_empty());
    let Some((_, factor)) = factor else { return Err(form.to_owned()) };
    let scaled = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
    let scaled = scaled.filter(|scaled| *scaled <= MOST);
    scaled.ok_or_else(|| "it is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("1000"), Ok(1000));
        assert_eq!((time("2s"), time("500ms")), (Ok(2000), Ok(500)));
        let form = "write a number with ms, s, m, h or d, such as 2s";
        for wrong in ["2", "s", "-1s", "1.5s", "2 s", ""] {
            assert_eq!(time(wrong), Err(form.to_owned()), "{wrong}");
        }
        assert_eq!((time_or_zero("0ms"), bytes_or_zero("0")), (Ok(0), Ok(0)));
        for (wrong, fault) in [
            ("0", "it must be more than 0"),
            ("0m", "it must be more than 0"),
            ("99999999999999999999", "it is too large"),
            ("18446744073709551615k", "it is too large"),
            ("9007199254740992", "it is too large"),
            ("m", "write a number with k, m or g, such as 64m"),
        ] {
            assert_eq!(bytes(wrong), Err(fault.to_owned()), "{wrong}");
        }
    }
}
