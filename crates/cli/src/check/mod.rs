//! `isolane check`: compiles and links, and runs nothing; with a checker it checks types, too.
//!
//! In: the flags of `run`, and TypeScript's compiler. Out: the problems, for people or as JSON, and an exit code.
//! `types` calls the compiler, `declarations` tells it the types of all that code is handed.

mod declarations;
mod types;

use std::sync::Arc;

use isolane::{ExecutionError, Shape, Status};
use serde_json::{Value as Json, json};

use crate::{
    arguments::CheckArguments,
    code::{Code, Installation, handed},
    exit::{self, Ended},
    failure,
    run::{Settled, flush, name_the_flag, settle},
    signals::Signals,
    streams::Streams,
};

pub(crate) async fn check(
    arguments: CheckArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let CheckArguments { code: arguments, tsc } = arguments;
    let has_modules = arguments.given.modules.is_some();
    let (is_json, isolation, timeout_ms) = (arguments.json, arguments.isolation, arguments.timeout);
    let is_typed = tsc.is_some();
    let reading = move || {
        let declared = if is_typed {
            let (globals, imports) = handed(&arguments.given)?;
            declarations::of(&globals, &imports)
        } else {
            String::new()
        };
        Ok((Code::read(&arguments)?, declared))
    };
    let (code, declared) = signals.during(reading).await?;
    let streams = Streams::new(false).map_err(|error| Ended::failure(&error))?;
    let streams = Arc::new(streams);
    let runtime = installation.runtime(isolation)?;
    let Settled { mut result, sources, signal, tool_types, .. } =
        settle(&runtime, code, Shape::Linked, &streams, signals).await?;
    if !has_modules {
        name_the_flag(&mut result);
    }
    let mut found: Vec<ExecutionError> = result.error.iter().cloned().collect();
    let mut status = result.status.as_str();
    let mut code = signal
        .filter(|_| result.status == Status::Terminated)
        .unwrap_or_else(|| exit::code_of(&result));
    if let (Some(tsc), true) = (&tsc, found.is_empty()) {
        let declared = declared + &tool_types;
        found = types::check(tsc, &sources, declared, timeout_ms, signals).await?;
        if !found.is_empty() {
            (status, code) = ("type_error", types::MISTAKEN);
        }
    }
    if is_json {
        streams.out(problems(&found).to_string());
    } else {
        for error in &found {
            streams.styled(failure::text(status, error, &sources));
        }
    }
    flush(&streams, false, signals).await?;
    match streams.failure() {
        // Nobody reads it any more; the exit code tells the same.
        Some(error) if !exit::is_unread(&error) => Err(Ended::unwritten(&error)),
        _ => Ok(code),
    }
}

fn problems(found: &[ExecutionError]) -> Json {
    let problems = found.iter().map(|error| {
        json!({
            "severity": "error",
            "name": error.name,
            "message": error.message,
            "filename": error.filename,
            "line": error.line,
            "column": error.column,
        })
    });
    json!({ "ok": found.is_empty(), "problems": problems.collect::<Vec<_>>() })
}
