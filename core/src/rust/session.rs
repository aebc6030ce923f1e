//! Sessions in Rust: an isolate that stays, with closures and serde.
//!
//! In: [`SessionOptions`], then sources, calls and updates. Out: an [`Execution`] for each cell, and answers.

use std::{fmt, sync::Arc};

use serde::Serialize;

use super::{
    Execution,
    answer::{Answer, answer},
    session_options::{CallOptions, CellOptions, SessionOptions, SessionUpdate},
    side::HostSide,
};
use crate::{
    CallRequest, CellRequest, Error, Host, Name, RunHandle, Runtime, SessionHandle, SessionRequest,
    value::{Event, Fault, Writer, to_message},
};

/// An isolate that stays: cells run in it one after another and find what earlier ones left.
///
/// Everything that a cell declares at its top level is there for later cells. A cell has a value without `export`: that
/// of its last expression, of `return` or of `export default`. A cell that fails keeps what it had done; one that is
/// terminated, or that hits the memory limit, is rolled back: see [`ExecutionResult::cell`].
///
/// Cells run one at a time, in the order of the calls. So a host function must not wait for a cell of the session whose
/// cell called it: that waits for ever, until a [`CellOptions::timeout_ms`] ends it.
///
/// Dropping it frees the session once its cells are done. A function of the sandbox that the host holds keeps the
/// session open, and can be called between cells.
///
/// ```
/// use isolane::{CellOptions, HostFunction, Inputs, Session, SessionOptions};
///
/// let globals = Inputs::new().with("scale", HostFunction::new(|n: f64| n * 10.0));
/// let session = Session::new(SessionOptions { globals, ..Default::default() })?;
/// session.run("const rows: number[] = [1, 2, 3]", CellOptions::default()).wait()?;
/// let result = session.run("scale(rows.length)", CellOptions::default()).wait()?;
/// assert_eq!(result.into_value()?.deserialize::<f64>()?, 30.0);
///
/// // An endless loop costs a cell, and not the rows.
/// let options = CellOptions { timeout_ms: Some(50), ..Default::default() };
/// let result = session.run("rows.length = 0; for (;;);", options).wait()?;
/// assert_eq!(result.error.map(|error| error.name).as_deref(), Some("Timeout"));
/// let names = session.names().wait()?;
/// assert_eq!((names[0].name.as_str(), names[0].size), ("rows", Some(3)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`ExecutionResult::cell`]: crate::ExecutionResult::cell
pub struct Session {
    handle: SessionHandle,
    side: Arc<HostSide>,
}

impl Session {
    /// Opens a session on the shared [`Runtime`]. The first cell builds the isolate.
    ///
    /// # Errors
    /// Misuse of an option.
    pub fn new(options: SessionOptions) -> Result<Self, Error> {
        Runtime::shared().session(options)
    }

    /// Runs a cell when those before it are done. Returns at once; the handle yields misuse of an option, and a session
    /// that is closed, as an error. Dropping the handle ends the cell.
    pub fn run(&self, source: impl Into<String>, options: CellOptions) -> Execution {
        let CellOptions { filename, language, report, timeout_ms } = options;
        let request = CellRequest {
            filename,
            language,
            report: report.as_ref().map(super::Report::is_given),
            timeout_ms: timeout_ms.map(super::session_options::number),
            ..CellRequest::new(source.into().into())
        };
        let start =
            |side: &Arc<HostSide>| self.handle.run(request, Arc::clone(side) as Arc<dyn Host>);
        self.begin(report.as_ref(), start)
    }

    /// Calls a function that a cell declared, as a cell of its own. The arguments are a tuple, or anything else that
    /// serde writes as a sequence.
    pub fn call(&self, name: impl Into<String>, args: impl Serialize) -> Execution {
        self.call_with(name, args, CallOptions::default())
    }

    /// The same with options.
    pub fn call_with(
        &self,
        name: impl Into<String>,
        args: impl Serialize,
        options: CallOptions,
    ) -> Execution {
        let CallOptions { report, timeout_ms } = options;
        let args = match self.arguments(&args) {
            Ok(args) => args,
            Err(fault) => return Execution::refused(fault.into_error("args")),
        };
        let request = CallRequest {
            args,
            report: report.as_ref().map(super::Report::is_given),
            timeout_ms: timeout_ms.map(super::session_options::number),
            ..CallRequest::new(name.into())
        };
        let start =
            |side: &Arc<HostSide>| self.handle.call(request, Arc::clone(side) as Arc<dyn Host>);
        self.begin(report.as_ref(), start)
    }

    /// Hands more over, or takes something away, from the next cell on that starts.
    ///
    /// # Errors
    /// Misuse of an option, or a session that is closed.
    pub fn update(&self, update: SessionUpdate) -> Result<(), Error> {
        self.handle.update(update.into_request(&self.side)?)
    }

    /// The names that cells have declared, when the cells before this call are done. An error if the session is closed
    /// or reset first.
    pub fn names(&self) -> Answer<Vec<Name>> {
        let (asked, answer) = answer();
        self.handle.names(move |names| asked.send(names));
        answer
    }

    /// Ends the cells that run and wait, as `terminated` with the name `SessionReset`, and forgets all that cells have
    /// declared and all modules. Capabilities and updates stay.
    pub fn reset(&self) -> Answer<()> {
        let (asked, answer) = answer();
        self.handle.reset(move |done| asked.send(done));
        answer
    }

    /// A second session with the same state and capabilities, made when the cells before this call are done. From then
    /// on neither sees the other. An error while calls to the host are unanswered.
    pub fn fork(&self) -> Answer<Session> {
        let (asked, answer) = answer();
        let (side, copy) = (Arc::clone(&self.side), self.side.copy());
        let host = Arc::clone(&copy) as Arc<dyn Host>;
        self.handle.fork(host, move |forked| {
            asked.send(forked.map(|handle| {
                side.copy_tables(&copy);
                copy.started(handle.downgrade());
                Session { handle, side: copy }
            }));
        });
        answer
    }

    /// Ends the cells that run and wait, as `terminated` with the name `SessionClosed`, and frees everything. From now
    /// on cells are refused.
    pub fn close(&self) -> Answer<()> {
        let (asked, answer) = answer();
        self.handle.close(move || asked.send(Ok(())));
        answer
    }

    fn begin(
        &self,
        report: Option<&super::Report>,
        start: impl FnOnce(&Arc<HostSide>) -> Result<RunHandle, Error>,
    ) -> Execution {
        if let Some(Err(error)) = report.map(super::Report::check) {
            return Execution::refused(error);
        }
        let side = self.side.cell(report);
        match start(&side) {
            Ok(remote) => {
                side.started(&remote);
                Execution::new(remote, side)
            }
            Err(error) => {
                side.end();
                Execution::refused(error)
            }
        }
    }

    fn arguments(&self, args: &impl Serialize) -> Result<crate::Value, Fault> {
        let args = to_message(args)?;
        let mut writer = Writer::new();
        match args.value.reader().event()? {
            Event::Array(_) => self.side.write(&args, &mut writer, "")?,
            Event::Undefined => writer.array(0),
            _ => return Err(Fault::new("the arguments must be a sequence")),
        }
        Ok(writer.finish())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Session")
            .field("closed", &self.handle.is_closed())
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Opens a session on this runtime; see [`Session`].
    ///
    /// # Errors
    /// Misuse of an option, or a runtime that is closed.
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.session_with(options, Ok)
    }

    /// Opens a session on this runtime, with a request that `amend` has changed, as [`Runtime::run_code_with`].
    ///
    /// # Errors
    /// As [`Runtime::session`], and those of `amend`.
    pub fn session_with(
        &self,
        options: SessionOptions,
        amend: impl FnOnce(SessionRequest) -> Result<SessionRequest, Error>,
    ) -> Result<Session, Error> {
        let side = HostSide::new(self.process(), &options.report);
        let request = options.into_request(&side).and_then(amend)?;
        let handle = self.open_session(request, Arc::clone(&side) as Arc<dyn Host>)?;
        side.started(handle.downgrade());
        Ok(Session { handle, side })
    }
}
