//! The options of a run in Rust.
//!
//! In: a caller's struct. Out: a [`Request`], whose checks are the core's.

use std::collections::BTreeMap;

use super::{HostFunction, Input, Inputs, session_options::write_values, side::HostSide};
use crate::{
    Error, ErrorKind, Language, Request, Spelling,
    value::{Writer, path::Step},
};

/// The options of a run: its modules, and everything that is handed to it. The default runs an entry on its own.
#[derive(Clone, Debug, Default)]
pub struct ExecutionOptions {
    /// The export that becomes the result.
    pub execute: Execute,
    /// Bridged modules: specifier, and the exports by name.
    pub imports: BTreeMap<String, Inputs>,
    /// Further modules: relative specifier, and the source.
    pub modules: BTreeMap<String, String>,
    /// Identifiers that every module of the run sees.
    pub globals: Inputs,
    /// The language of the entry, and of every module whose name does not say otherwise.
    pub language: Language,
    /// The most memory that the run may hold, 128 MiB by default.
    pub memory_limit_bytes: Option<u64>,
    /// The name of the entry in stacks, and its place among the modules.
    pub filename: Option<String>,
    /// Whether the sandbox has a `report`, and the function that receives the reported values.
    pub report: Report,
}

/// The built-in `report` of a run.
///
/// A reported value is in [`ExecutionResult::reports`], in [`Execution::reports`] and in [`Execution::report_stream`]
/// as soon as `report` is called, before a function receives it.
///
/// [`ExecutionResult::reports`]: crate::ExecutionResult::reports
/// [`Execution::reports`]: crate::Execution::reports
/// [`Execution::report_stream`]: crate::Execution::report_stream
#[derive(Clone, Debug, Default)]
pub enum Report {
    /// The sandbox has none.
    #[default]
    Off,
    /// It returns `undefined`. The result, the handle and the streams have the reports.
    On,
    /// Its only argument goes to that function, too, and it returns the function's result or throws its error.
    To(HostFunction),
}

impl Report {
    /// Whether the sandbox has a `report`.
    pub(super) fn is_given(&self) -> bool {
        !matches!(self, Self::Off)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if let Self::To(sink) = self
            && sink.is_native()
        {
            let text = "report must not be a native function: call it from a closure";
            return Err(Error::new(ErrorKind::Type, text));
        }
        Ok(())
    }
}

impl From<HostFunction> for Report {
    fn from(function: HostFunction) -> Self {
        Self::To(function)
    }
}

/// The export that becomes the result, and its arguments if it is a function.
#[derive(Clone, Debug, Default)]
pub struct Execute {
    /// The export's name, `default` when `None`.
    pub function: Option<String>,
    /// The arguments.
    pub args: Vec<Input>,
}

impl Execute {
    /// An export by its name, called without arguments if it is a function.
    #[must_use]
    pub fn function(name: impl Into<String>) -> Self {
        Self { function: Some(name.into()), args: Vec::new() }
    }

    /// The same with one more argument.
    #[must_use]
    pub fn arg(mut self, value: impl serde::Serialize) -> Self {
        self.args.push(Input::new(value));
        self
    }
}

impl ExecutionOptions {
    pub(super) fn into_request(self, source: String, side: &HostSide) -> Result<Request, Error> {
        let inputs = self.inputs(side)?;
        self.report.check()?;
        #[expect(clippy::cast_precision_loss, reason = "a number that is rounded is out of range")]
        let memory_limit_bytes = self.memory_limit_bytes.map(|bytes| bytes as f64);
        let names = |inputs: &Inputs| inputs.iter().map(|(name, _)| name.to_owned()).collect();
        Ok(Request {
            filename: self.filename,
            language: self.language,
            function: self.execute.function,
            modules: self.modules.into_iter().map(|(key, text)| (key, text.into())).collect(),
            globals: names(&self.globals),
            imports: self
                .imports
                .iter()
                .map(|(key, exports)| (key.clone(), names(exports)))
                .collect(),
            inputs,
            report: self.report.is_given(),
            memory_limit_bytes,
            native: side.native.clone(),
            spelling: Spelling::Snake,
            ..Request::new(source.into())
        })
    }

    /// All values in one message, in the order that a request asks for.
    fn inputs(&self, side: &HostSide) -> Result<crate::Value, Error> {
        let exports: usize = self.imports.values().map(Inputs::len).sum();
        let count = u32::try_from(self.globals.len() + exports + 1).unwrap_or(u32::MAX);
        let mut writer = Writer::new();
        writer.array(count);
        write_values(side, &mut writer, &self.globals, &self.imports)?;
        let args = u32::try_from(self.execute.args.len()).unwrap_or(u32::MAX);
        writer.array(args);
        for (index, input) in self.execute.args.iter().enumerate() {
            let done = input.message().and_then(|message| side.write(message, &mut writer, ""));
            let done = done.map_err(|fault| fault.at(Step::Index(index)));
            done.map_err(|fault| fault.into_error("execute.args"))?;
        }
        Ok(writer.finish())
    }
}
