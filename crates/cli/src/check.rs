//! `isolane check`: compiles and links, and runs nothing.
//!
//! In: the flags of `run`. Out: the first problem, for people or as JSON, and an exit code.

use std::sync::Arc;

use isolane::{ExecutionResult, Shape, Status};
use serde_json::{Value as Json, json};

use crate::{
    arguments::CodeArguments,
    code::{Code, Installation},
    exit::{self, Ended},
    failure,
    run::{Settled, flush, name_the_flag, settle},
    signals::Signals,
    streams::Streams,
};

pub(crate) async fn check(
    arguments: CodeArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let has_modules = arguments.given.modules.is_some();
    let (is_json, isolation) = (arguments.json, arguments.isolation);
    let code = signals.during(move || Code::read(&arguments)).await?;
    let streams = Streams::new(false).map_err(|error| Ended::failure(&error))?;
    let streams = Arc::new(streams);
    let runtime = installation.runtime(isolation)?;
    let Settled { mut result, sources, signal, .. } =
        settle(&runtime, code, Shape::Linked, &streams, signals).await?;
    if !has_modules {
        name_the_flag(&mut result);
    }
    if is_json {
        streams.out(problems(&result).to_string());
    } else if let Some(error) = &result.error {
        streams.styled(failure::text(result.status.as_str(), error, &sources));
    }
    // Nobody may read it any more; the exit code tells the same.
    flush(&streams, false, signals).await?;
    let code = signal.filter(|_| result.status == Status::Terminated);
    Ok(code.unwrap_or_else(|| exit::code_of(&result)))
}

fn problems(result: &ExecutionResult) -> Json {
    let problems = result.error.iter().map(|error| {
        json!({
            "severity": "error",
            "name": error.name,
            "message": error.message,
            "filename": error.filename,
            "line": error.line,
            "column": error.column,
        })
    });
    json!({ "ok": result.error.is_none(), "problems": problems.collect::<Vec<_>>() })
}
