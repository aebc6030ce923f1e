//! The command line of Isolane.
//!
//! In: a command and its flags. Out: lines on the standard streams, and an exit code. The commands are a file or a
//! folder each; `docs/cli.md` describes them for their users. `isolane`, `npx isolane` and pip's `isolane` all call
//! [`main`].

mod arguments;
mod check;
mod code;
mod doctor;
mod exit;
mod failure;
mod mcp;
mod notebook;
mod remote;
mod repl;
mod result_json;
mod run;
mod serve;
mod signals;
mod sources;
mod state_folder;
mod streams;
mod tagged;

use std::{
    ffi::OsString,
    io::{Write, stderr},
    path::PathBuf,
};

use clap::Parser;

use crate::{
    arguments::{Arguments, Command},
    code::Installation,
    exit::Ended,
    signals::Signals,
};

/// Runs a command to its end. In: the words of the command line, the name of the program first, and the folder of the
/// executable `isolane-worker`, by default that of the running program. Out: the exit code.
///
/// It reads stdin, writes to stdout and stderr, and handles SIGINT and SIGTERM from now on. A thread that reads stdin may
/// outlive it, so the caller should end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>, worker_folder: Option<PathBuf>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // A stream that nobody reads is no failure.
            let _ = error.print();
            return if error.use_stderr() { exit::MISUSE } else { exit::SUCCESS };
        }
    };
    act(arguments.command, &Installation { worker_folder }).unwrap_or_else(|ended| {
        if let Some(message) = ended.message() {
            let _ = writeln!(stderr(), "error: {}", streams::harmless(message));
        }
        ended.code()
    })
}

fn act(command: Command, installation: &Installation) -> Result<u8, Ended> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tokio = tokio.map_err(|error| Ended::failure(&error))?;
    let code = tokio.block_on(async {
        let mut signals = Signals::new().map_err(|error| Ended::failure(&error))?;
        match command {
            Command::Run(arguments) => run::run(arguments, installation, &mut signals).await,
            Command::Check(arguments) => check::check(arguments, installation, &mut signals).await,
            Command::Repl(arguments) => repl::repl(arguments, installation, &mut signals).await,
            Command::Notebook(arguments) => {
                notebook::notebook(*arguments, installation, &mut signals).await
            }
            Command::Serve(arguments) => serve::serve(*arguments, installation, &mut signals).await,
            Command::Mcp(arguments) => mcp::mcp(arguments, installation, &mut signals).await,
            Command::Doctor(arguments) => tokio::select! {
                code = doctor::doctor(&arguments, installation) => code,
                (code, _) = signals.next() => Err(Ended::signal(code)),
            },
        }
    });
    // A thread may wait for stdin.
    tokio.shutdown_background();
    code
}
