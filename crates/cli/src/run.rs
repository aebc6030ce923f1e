//! `isolane run`: one run, its console live, its value last.
//!
//! In: flags. Out: lines on stdout and stderr, and an exit code.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use isolane::{
    Error, Execution, ExecutionResult, Interception, Request, RunInterceptor, Runtime, Shape,
    Status, inspect, value::Event,
};

use crate::{
    arguments::CodeArguments,
    code::{Code, Installation},
    exit::{self, Ended},
    failure,
    remote::RunTools,
    result_json,
    signals::Signals,
    sources::Sources,
    streams::Streams,
};

/// The bytes of a value that are shown.
const MOST_SHOWN_BYTES: usize = 1 << 20;

/// The time that a reader of the output has when a signal or the time limit has ended the run. A reader of stderr then has
/// the same for the reason of that end.
const FLUSH_TIME: Duration = Duration::from_secs(1);

pub(crate) async fn run(
    arguments: CodeArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let has_modules = arguments.given.modules.is_some();
    let (is_json, isolation) = (arguments.json, arguments.isolation);
    // A module without a default export has no value. One that was asked for by name must be there.
    let shape = if arguments.function.is_none() { Shape::Program } else { Shape::Module };
    let streams = Streams::new(!is_json).map_err(|error| Ended::failure(&error))?;
    let streams = Arc::new(streams);
    let code = signals.during(move || Code::read(&arguments)).await?;
    let runtime = installation.runtime(isolation)?;
    let settled = settle(&runtime, code, shape, &streams, signals).await?;
    let Settled { mut result, sources, signal, is_hurried, .. } = settled;
    if !has_modules {
        name_the_flag(&mut result);
    }
    if is_json {
        streams.out(result_json::line(&result));
    } else {
        show(&result, &sources, &streams);
    }
    flush(&streams, is_hurried, signals).await?;
    if let Some(error) = streams.failure() {
        return Err(Ended::unwritten(&error));
    }
    let code = signal.filter(|_| result.status == Status::Terminated);
    Ok(code.unwrap_or_else(|| exit::code_of(&result)))
}

/// A run that is over.
pub(crate) struct Settled {
    pub(crate) result: ExecutionResult,
    pub(crate) sources: Sources,
    /// The declarations of its tools.
    pub(crate) tool_types: String,
    /// The exit code of the signal that ended it.
    pub(crate) signal: Option<u8>,
    /// A signal or the time limit has ended it: the program waits for no slow reader.
    pub(crate) is_hurried: bool,
}

/// Runs the code to its end, or to a signal.
pub(crate) async fn settle(
    runtime: &Runtime,
    code: Code,
    shape: Shape,
    streams: &Arc<Streams>,
    signals: &mut Signals,
) -> Result<Settled, Ended> {
    let Code { sources, mut options, timeout_ms, config } = code;
    let tools = match config {
        Some(config) => Some(RunTools::open(&config, &mut options.imports, signals).await?),
        None => None,
    };
    let interceptor = Arc::clone(streams) as Arc<dyn RunInterceptor>;
    let amend = |request: Request| -> Result<Request, Error> {
        #[expect(clippy::cast_precision_loss, reason = "a number that is rounded is out of range")]
        let timeout_ms = timeout_ms.map(|ms| ms as f64);
        let interception = Some(Interception::new(interceptor));
        Ok(Request { timeout_ms, interception, shape, ..request })
    };
    let mut run = runtime.run_code_with(sources.entry.clone(), options, amend);
    let mut signal = None;
    let time_limit = time_limit(timeout_ms, streams);
    let result = tokio::select! {
        result = &mut run => result,
        never = time_limit => match never {},
        (code, name) = signals.next() => {
            signal = Some(code);
            streams.end();
            ended(run, &format!("{name} ended the run")).await
        }
        () = streams.closed() => ended(run, "nobody reads the output any more").await,
    };
    let mut tool_types = String::new();
    if let Some(tools) = tools {
        tool_types = tools.types();
        tools.end().await;
    }
    let result = result?;
    let is_hurried = result.status == Status::Terminated;
    Ok(Settled { result, sources, tool_types, signal, is_hurried })
}

/// Waits until the output is written. Of a run that is hurried the reader has a second.
///
/// # Errors
/// A signal.
pub(crate) async fn flush(
    streams: &Streams,
    is_hurried: bool,
    signals: &mut Signals,
) -> Result<(), Ended> {
    let hurry = async {
        if !is_hurried {
            pending::<()>().await;
        }
        tokio::time::sleep(FLUSH_TIME).await;
        // Without a thread for it the exit code alone tells the reason.
        if let Ok(overtaking) = streams.overtaking() {
            let _ = tokio::time::timeout(FLUSH_TIME, overtaking.written()).await;
        }
    };
    tokio::select! {
        biased;
        () = streams.written() => Ok(()),
        () = hurry => Ok(()),
        (code, _) = signals.next() => Err(Ended::signal(code)),
    }
}

/// Ends the waits of the console at the time limit, for ever. The run has a clock of its own, but a line that waits for
/// its reader may hold up the end of the run.
pub(crate) async fn time_limit(ms: Option<u64>, streams: &Streams) -> Infallible {
    if let Some(ms) = ms {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        streams.end();
    }
    pending().await
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
fn show(result: &ExecutionResult, sources: &Sources, streams: &Streams) {
    if let Some(error) = &result.error {
        streams.styled(failure::text(result.status.as_str(), error, sources));
        return;
    }
    match &result.result {
        Some(value) if !matches!(value.reader().event(), Ok(Event::Undefined)) => {
            streams.out(inspect(value, MOST_SHOWN_BYTES));
        }
        _ => {}
    }
}
