//! `isolane run`: one run, its console live, its value last.
//!
//! In: flags. Out: lines on stdout and stderr, and an exit code.

use std::{io, sync::Arc};

use isolane::{
    Error, Execution, ExecutionResult, Interception, Request, RunInterceptor, Runtime, Shape,
    Status, inspect, value::Event,
};

use crate::{
    arguments::CodeArguments,
    code::{Code, Installation},
    exit::{self, Ended},
    failure, result_json,
    signals::Signals,
    sources::Sources,
    streams::{self, Streams},
};

/// The bytes of a value that are shown.
const MOST_SHOWN_BYTES: usize = 1 << 20;

pub(crate) async fn run(
    arguments: CodeArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let has_modules = arguments.given.modules.is_some();
    let (is_json, isolation) = (arguments.json, arguments.isolation);
    // A module without a default export has no value. One that was asked for by name must be there.
    let shape = if arguments.function.is_none() { Shape::Program } else { Shape::Module };
    let streams = Arc::new(Streams::new(!is_json));
    let code = signals.during(move || Code::read(&arguments)).await?;
    let runtime = installation.runtime(isolation)?;
    let settled = settle(&runtime, code, shape, &streams, signals).await?;
    let Settled { mut result, sources, signal } = settled;
    if !has_modules {
        name_the_flag(&mut result);
    }
    if let Some(error) = streams.failure() {
        return Err(Ended::unwritten(&error));
    }
    let written =
        if is_json { streams::out(&result_json::line(&result)) } else { show(&result, &sources) };
    written.map_err(|error| Ended::unwritten(&error))?;
    let code = signal.filter(|_| result.status == Status::Terminated);
    Ok(code.unwrap_or_else(|| exit::code_of(&result)))
}

/// A run that is over.
pub(crate) struct Settled {
    pub(crate) result: ExecutionResult,
    pub(crate) sources: Sources,
    /// The exit code of the signal that ended it.
    pub(crate) signal: Option<u8>,
}

/// Runs the code to its end, or to a signal.
pub(crate) async fn settle(
    runtime: &Runtime,
    code: Code,
    shape: Shape,
    streams: &Arc<Streams>,
    signals: &mut Signals,
) -> Result<Settled, Ended> {
    let Code { sources, options, timeout_ms } = code;
    let interceptor = Arc::clone(streams) as Arc<dyn RunInterceptor>;
    let amend = |request: Request| -> Result<Request, Error> {
        #[expect(clippy::cast_precision_loss, reason = "a number that is rounded is out of range")]
        let timeout_ms = timeout_ms.map(|ms| ms as f64);
        let interception = Some(Interception::new(interceptor));
        Ok(Request { timeout_ms, interception, shape, ..request })
    };
    let mut run = runtime.run_code_with(sources.entry.clone(), options, amend);
    let mut signal = None;
    let result = tokio::select! {
        result = &mut run => result,
        (code, name) = signals.next() => {
            signal = Some(code);
            ended(run, &format!("{name} ended the run")).await
        }
        () = streams.closed() => ended(run, "nobody reads the output any more").await,
    };
    Ok(Settled { result: result?, sources, signal })
}

async fn ended(run: Execution, reason: &str) -> Result<ExecutionResult, Error> {
    run.terminate(Some(reason));
    run.await
}

/// Says how to hand sources over, where a relative import found none.
pub(crate) fn name_the_flag(result: &mut ExecutionResult) {
    if result.status != Status::LinkError {
        return;
    }
    if let Some(error) = &mut result.error
        && error.specifier.as_deref().is_some_and(|specifier| specifier.starts_with('.'))
        && error.message.starts_with("Cannot find module")
    {
        error.message.push_str("; --modules DIR hands over the sources of a folder");
    }
}

/// Writes the value, or the error.
fn show(result: &ExecutionResult, sources: &Sources) -> io::Result<()> {
    if let Some(error) = &result.error {
        failure::show(result.status.as_str(), error, sources);
        return Ok(());
    }
    match &result.result {
        Some(value) if !matches!(value.reader().event(), Ok(Event::Undefined)) => {
            streams::out(&inspect(value, MOST_SHOWN_BYTES))
        }
        _ => Ok(()),
    }
}
