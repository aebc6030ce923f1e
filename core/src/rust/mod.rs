//! The Rust face: runs with Rust values, closures and futures.
//!
//! In: a source and [`ExecutionOptions`]. Out: an [`Execution`]. This is the binding for Rust, so it uses only the
//! items that the other bindings use: [`Runtime::start`] and `Host`.
//!
//! `input` makes the values that go in, `function` makes host functions of closures, and `output` converts their
//! results, and `callback` makes host functions of functions of another language. `side` answers the isolate, `sandbox` has the functions and promises that the isolate lends, `handle` is
//! the caller's handle, and `reports` streams reports to the caller. `session` has sessions, with their `session_options`,
//! and `answer` the answers that they give later.

mod answer;
mod callback;
mod function;
mod handle;
mod host_error;
mod input;
mod output;
mod reports;
mod run_options;
mod sandbox;
mod session;
mod session_options;
mod side;

use std::sync::Arc;

use self::side::HostSide;
pub use self::{
    answer::{Answer, futures_runtime, spawn},
    function::{Callable, FutureCallable, HostFunction, HostPromise, Parameters},
    handle::{Execution, Meter, Terminator},
    host_error::{ErrorCode, HostError},
    input::{Input, Inputs},
    output::{BoxedError, Fallible, IntoOutput, Plain, Returned},
    reports::Reports,
    run_options::{Execute, ExecutionOptions, Report},
    sandbox::{SandboxCall, SandboxFunction, SandboxPromise},
    session::Session,
    session_options::{CallOptions, CellOptions, Cells, SessionOptions, SessionUpdate},
};
use crate::{Error, Request, Runtime};

/// Runs a source on the shared [`Runtime`].
///
/// Returns at once; the handle yields misuse of an option. Host functions that are futures run in the tokio runtime
/// that is current here, or on a thread of this library if there is none.
///
/// ```
/// use isolane::{ExecutionOptions, HostFunction, Inputs, run_code};
///
/// let globals = Inputs::new()
///     .with("rows", [1, 2, 3])
///     .with("scale", HostFunction::new(|n: f64, by: Option<f64>| n * by.unwrap_or(10.0)))
///     .with("load", HostFunction::future(|id: u32| async move { format!("row {id}") }));
/// let source = "export default { sum: scale(rows.length), text: await load(7) }";
/// let run = run_code(source, ExecutionOptions { globals, ..Default::default() });
///
/// #[derive(serde::Deserialize, Debug, PartialEq)]
/// struct Answer {
///     sum: u32,
///     text: String,
/// }
/// let answer: Answer = run.wait()?.into_value()?.deserialize()?;
/// assert_eq!(answer, Answer { sum: 30, text: "row 7".to_owned() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_code(source: impl Into<String>, options: ExecutionOptions) -> Execution {
    Runtime::shared().run_code(source, options)
}

impl Runtime {
    /// Runs a source on this runtime; see [`run_code`].
    pub fn run_code(&self, source: impl Into<String>, options: ExecutionOptions) -> Execution {
        self.run_code_with(source, options, Ok)
    }

    /// Runs a source on this runtime, with a request that `amend` has changed. It is for crates that add to all runs,
    /// such as a kit of capabilities: see [`Request::extension`] and [`Request::interception`].
    pub fn run_code_with(
        &self,
        source: impl Into<String>,
        options: ExecutionOptions,
        amend: impl FnOnce(Request) -> Result<Request, Error>,
    ) -> Execution {
        match self.begin(source.into(), options, amend) {
            Ok(execution) => execution,
            Err(error) => Execution::refused(error),
        }
    }

    fn begin(
        &self,
        source: String,
        options: ExecutionOptions,
        amend: impl FnOnce(Request) -> Result<Request, Error>,
    ) -> Result<Execution, Error> {
        let side = HostSide::new(self.process(), &options.report);
        let request = options.into_request(source, &side).and_then(amend);
        let started = request
            .and_then(|request| self.start(request, Arc::clone(&side) as Arc<dyn crate::Host>));
        match started {
            Ok(remote) => {
                side.started(&remote);
                Ok(Execution::new(remote, side))
            }
            Err(error) => {
                side.end();
                Err(error)
            }
        }
    }
}
