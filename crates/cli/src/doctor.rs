//! `isolane doctor`: what this machine offers.
//!
//! In: required items. Out: versions, both isolations, each item of confinement of a worker, and of a program by a trial of
//! it, which needs more of the machine; exit code 1 if a required item is missing.

use std::env::consts;

use isolane::{Confinement, ExecutionOptions};
use isolane_confine::program::{Required, find_launcher, launcher_in};
use isolane_executors::{ConfinedCodeExecutor, MemoryLimit, ProgramConfinement};
use serde_json::{Map, Value as Json, json};

use crate::{
    arguments::{DoctorArguments, Place},
    code::Installation,
    exit::{self, Ended},
    streams,
};

/// The item that stands for programs in confinement, beside those of workers.
const PROGRAMS: &str = "programs";

pub(crate) async fn doctor(
    arguments: &DoctorArguments,
    installation: &Installation,
) -> Result<u8, Ended> {
    let names: Vec<&str> = Confinement::default().items().iter().map(|(name, _)| *name).collect();
    let is_known = |name: &&String| names.contains(&name.as_str()) || *name == PROGRAMS;
    if let Some(unknown) = arguments.require.iter().find(|name| !is_known(name)) {
        let known = names.join(", ");
        let message =
            format!("--require {unknown}: there is no such item; items are {known}, {PROGRAMS}");
        return Err(Ended::misuse(message));
    }
    let found = Found::new(installation).await;
    let missing: Vec<&str> =
        arguments.require.iter().map(String::as_str).filter(|name| !found.has(name)).collect();
    let report =
        if arguments.json { found.json(&missing).to_string() } else { found.lines().join("\n") };
    match streams::out(&report) {
        // Nobody reads it any more; the exit code tells what is required.
        Err(error) if !exit::is_unread(&error) => {
            return Err(Ended::unwritten(&error));
        }
        _ => {}
    }
    if missing.is_empty() {
        return Ok(exit::SUCCESS);
    }
    eprint_line(&format!("this machine does not offer: {}", missing.join(", ")));
    Ok(exit::ERROR)
}

/// Everything that a machine was asked for.
struct Found {
    thread: Result<(), String>,
    process: Result<(), String>,
    /// That of a worker, if one ran.
    confinement: Option<Confinement>,
    programs: Result<(), String>,
    /// That of a program, if a trial ran.
    of_programs: Option<ProgramConfinement>,
}

impl Found {
    async fn new(installation: &Installation) -> Self {
        let thread = attempt(installation, Place::Thread).await.map(drop);
        let process = attempt(installation, Place::Process).await;
        let confinement = process.as_ref().ok().map(|had| had.unwrap_or_default());
        let tried = trial(installation).await;
        let of_programs = tried.as_ref().ok().copied();
        let programs = tried.and_then(|had| Required::all().missing(had.items).map_or(Ok(()), Err));
        Self { thread, process: process.map(drop), confinement, programs, of_programs }
    }

    fn has(&self, item: &str) -> bool {
        if item == PROGRAMS {
            return self.programs.is_ok();
        }
        let items = self.confinement.map(Confinement::items);
        items.is_some_and(|items| items.iter().any(|(name, had)| *name == item && *had))
    }

    fn json(&self, missing: &[&str]) -> Json {
        let mut programs = engine(&self.programs);
        programs["confinement"] = json!(self.of_programs.map(|had| object(program_items(had))));
        programs["memory"] = json!(self.of_programs.map(|had| had.memory.as_str()));
        json!({
            "isolane": env!("CARGO_PKG_VERSION"),
            "platform": platform(),
            "isolation": { "thread": engine(&self.thread), "process": engine(&self.process) },
            "confinement": self.confinement.map(|had| object(had.items())),
            "programs": programs,
            "missing": missing,
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("isolane {} on {}", env!("CARGO_PKG_VERSION"), platform()),
            format!("isolation by thread: {}", word(&self.thread)),
            format!("isolation by process: {}", word(&self.process)),
        ];
        if let Some(had) = self.confinement {
            lines.push("confinement of a process:".to_owned());
            lines.extend(had.items().into_iter().map(line));
        }
        lines.push(format!("confined programs: {}", word(&self.programs)));
        if let Some(had) = self.of_programs {
            lines.push("confinement of a program:".to_owned());
            lines.extend(program_items(had).map(line));
            lines.push(format!("  memory: {}", counted(had.memory)));
        }
        lines
    }
}

fn counted(memory: MemoryLimit) -> &'static str {
    match memory {
        MemoryLimit::Group => "counted for all processes together",
        MemoryLimit::Process => "counted for each process by itself",
    }
}

/// The items that can be required of a program.
fn program_items(had: ProgramConfinement) -> impl Iterator<Item = (&'static str, bool)> {
    let is_required = |name: &str| Required::ITEMS.contains(&name);
    had.items.items().into_iter().filter(move |(name, _)| is_required(name))
}

fn object(items: impl IntoIterator<Item = (&'static str, bool)>) -> Map<String, Json> {
    items.into_iter().map(|(name, had)| (name.to_owned(), Json::from(had))).collect()
}

fn line((name, had): (&'static str, bool)) -> String {
    format!("  {name}: {}", if had { "yes" } else { NOT_HAD })
}

const NOT_HAD: &str = "no, this system refuses or lacks it";

fn platform() -> String {
    format!("{} {}", consts::OS, consts::ARCH)
}

/// Runs something there; gives the confinement that its worker had, or the reason why it did not run.
async fn attempt(installation: &Installation, place: Place) -> Result<Option<Confinement>, String> {
    let runtime = installation.runtime(place);
    let runtime =
        runtime.map_err(|ended| ended.message().unwrap_or("it did not start").to_owned())?;
    let run = runtime.run_code("export default 6 * 7", ExecutionOptions::default());
    let result = run.await.map_err(|error| error.message().to_owned())?;
    result.into_value().map_err(|error| error.to_string())?;
    Ok(runtime.stats().confinement)
}

/// The confinement that a program would have, or the reason why none starts. No interpreter is needed for it.
async fn trial(installation: &Installation) -> Result<ProgramConfinement, String> {
    let named = installation.worker_folder.as_deref().map(launcher_in);
    let worker = find_launcher(named.as_deref()).unwrap_or_else(|missing| missing.path);
    let interpreter = worker.to_string_lossy().into_owned();
    let executor = ConfinedCodeExecutor::new().with_worker(worker).with_interpreter(interpreter);
    executor.confinement().await.map_err(|error| error.message().to_owned())
}

fn engine(attempt: &Result<(), String>) -> Json {
    match attempt {
        Ok(()) => json!({ "ok": true }),
        Err(why) => json!({ "ok": false, "why": why }),
    }
}

fn word(attempt: &Result<(), String>) -> String {
    attempt.as_ref().map_or_else(|why| format!("no, {why}"), |()| "yes".to_owned())
}

fn eprint_line(line: &str) {
    use std::io::Write;
    // A stderr that nobody reads is no failure.
    let _ = writeln!(std::io::stderr(), "{line}");
}
