//! The program `isolane`: the library of this crate, with the arguments of the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(isolane_cli::main(std::env::args_os(), None))
}
