//! `isolane doctor`: what this machine offers.
//!
//! In: required items. Out: versions, both isolations, each item of confinement; exit code 1 if a required one is
//! missing.

use std::env::consts;

use isolane::{Confinement, ExecutionOptions};
use serde_json::{Map, Value as Json, json};

use crate::{
    arguments::{DoctorArguments, Place},
    code::Installation,
    exit::{self, Ended},
    streams,
};

pub(crate) async fn doctor(
    arguments: &DoctorArguments,
    installation: &Installation,
) -> Result<u8, Ended> {
    let names: Vec<&str> = Confinement::default().items().iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = arguments.require.iter().find(|name| !names.contains(&name.as_str())) {
        let known = names.join(", ");
        let message = format!("--require {unknown}: there is no such item; items are {known}");
        return Err(Ended::misuse(message));
    }
    let thread = attempt(installation, Place::Thread).await.map(|_| ());
    let process = attempt(installation, Place::Process).await;
    let confinement = process.as_ref().ok().copied().flatten().unwrap_or_default();
    let items = confinement.items();
    let is_missing = |name: &String| !items.iter().any(|(item, had)| item == name && *had);
    let missing: Vec<&String> = arguments.require.iter().filter(|name| is_missing(name)).collect();
    let report = if arguments.json {
        let had = items.iter().map(|(name, had)| ((*name).to_owned(), Json::from(*had)));
        json!({
            "isolane": env!("CARGO_PKG_VERSION"),
            "platform": platform(),
            "isolation": { "thread": engine(&thread), "process": engine(&process.as_ref().map(|_| ())) },
            "confinement": process.is_ok().then(|| Json::Object(had.collect::<Map<_, _>>())),
            "missing": missing,
        })
        .to_string()
    } else {
        let mut lines = vec![
            format!("isolane {} on {}", env!("CARGO_PKG_VERSION"), platform()),
            format!("isolation by thread: {}", word(&thread)),
            format!("isolation by process: {}", word(&process.as_ref().map(|_| ()))),
        ];
        if process.is_ok() {
            lines.push("confinement of a process:".to_owned());
            for (name, had) in items {
                lines.push(format!("  {name}: {}", if had { "yes" } else { NOT_HAD }));
            }
        }
        lines.join("\n")
    };
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
    let missing = missing.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    eprint_line(&format!("this machine does not offer: {missing}"));
    Ok(exit::ERROR)
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

fn engine<E: AsRef<str>>(attempt: &Result<(), E>) -> Json {
    match attempt {
        Ok(()) => json!({ "ok": true }),
        Err(why) => json!({ "ok": false, "why": why.as_ref() }),
    }
}

fn word<E: AsRef<str>>(attempt: &Result<(), E>) -> String {
    attempt.as_ref().map_or_else(|why| format!("no, {}", why.as_ref()), |()| "yes".to_owned())
}

fn eprint_line(line: &str) {
    use std::io::Write;
    // A stderr that nobody reads is no failure.
    let _ = writeln!(std::io::stderr(), "{line}");
}
