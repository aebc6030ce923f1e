//! `isolane check`: compiles and links, and runs nothing.
//!
//! In: the flags of `run`. Out: the first problem, for people or as JSON, and an exit code.

use std::{process::ExitCode, sync::Arc};

use isolane::{ExecutionResult, Shape, Status};
use serde_json::{Value as Json, json};

use crate::{
    arguments::CodeArguments,
    code::Code,
    exit::{self, Ended},
    failure,
    run::{Settled, name_the_flag, settle},
    streams::{self, Streams},
};

pub(crate) async fn check(arguments: &CodeArguments) -> Result<ExitCode, Ended> {
    let code = Code::read(arguments)?;
    let streams = Arc::new(Streams::default());
    let Settled { mut result, sources, signal } =
        settle(arguments, code, Shape::Linked, &streams).await?;
    if arguments.modules.is_none() {
        name_the_flag(&mut result);
    }
    if arguments.json {
        // Nobody may read it any more; the exit code tells the same.
        let _ = streams::out(&problems(&result).to_string());
    } else if let Some(error) = &result.error {
        failure::show(result.status.as_str(), error, &sources);
    }
    let code = signal.filter(|_| result.status == Status::Terminated);
    Ok(ExitCode::from(code.unwrap_or_else(|| exit::code_of(&result))))
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
