//! The command line of Isolane.
//!
//! In: a command and its flags. Out: lines on the standard streams, and an exit code. The commands are a file each;
//! `docs/cli.md` describes them for their users.

mod arguments;
mod check;
mod code;
mod doctor;
mod exit;
mod failure;
mod result_json;
mod run;
mod signals;
mod sources;
mod streams;
mod tagged;

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    arguments::{Arguments, Command},
    exit::Ended,
};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // A stream that nobody reads is no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::MISUSE } else { exit::SUCCESS });
        }
    };
    match act(&arguments.command) {
        Ok(code) => code,
        Err(ended) => {
            let _ = writeln!(stderr(), "error: {ended}");
            ended.code()
        }
    }
}

fn act(command: &Command) -> Result<ExitCode, Ended> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tokio = tokio.map_err(|error| Ended::failure(&error))?;
    match command {
        Command::Run(arguments) => tokio.block_on(run::run(arguments)),
        Command::Check(arguments) => tokio.block_on(check::check(arguments)),
        Command::Doctor(arguments) => tokio.block_on(doctor::doctor(arguments)),
    }
}
