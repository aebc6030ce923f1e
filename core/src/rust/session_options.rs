//! The options of sessions and cells in Rust.
//!
//! In: a caller's structs. Out: requests, whose checks are the core's.

use std::collections::BTreeMap;

use super::{Inputs, Report, side::HostSide};
use crate::{
    Error, Language, SessionRequest, Spelling, UpdateRequest, Value,
    value::{Writer, path::Step},
};

/// The order in which the cells of a session run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cells {
    /// One at a time, in the order of their calls.
    #[default]
    Queue,
    /// The next one starts as soon as those before wait for the host. So a host function may run a cell in the session
    /// whose cell called it.
    Interleave,
}

/// The options of a session: everything that is handed to it.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Bridged modules: specifier, and the exports by name.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that cells may import: relative specifier, and the source. Each is evaluated once in a session.
    pub modules: BTreeMap<String, String>,
    /// Identifiers that every cell and module sees. A cell that declares such a name shadows it.
    pub globals: Inputs,
    /// The language of cells that have none of their own.
    pub language: Language,
    /// The most memory that the whole session may hold, 128 MiB by default.
    pub memory_limit_bytes: Option<u64>,
    /// The order of cells.
    pub cells: Cells,
    /// Whether cells have a `report`, and the function that receives the reported values.
    pub report: Report,
    /// The largest state that is kept for rolling back, 64 MiB by default; 0 keeps none. A session whose state is
    /// larger is reset where it would be rolled back.
    pub checkpoint_bytes: Option<u64>,
}

/// The options of a cell.
#[derive(Clone, Debug, Default)]
pub struct CellOptions {
    /// The name of the cell in stacks, by default `<cell N>`.
    pub filename: Option<String>,
    /// The cell's language, in place of the session's.
    pub language: Option<Language>,
    /// In place of the session's.
    pub report: Option<Report>,
    /// The milliseconds after which the cell is terminated, with the name `Timeout`. They count from its start, and not
    /// while it waits for cells before it.
    pub timeout_ms: Option<u64>,
}

/// The options of a call.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// In place of the session's.
    pub report: Option<Report>,
    /// As [`CellOptions::timeout_ms`].
    pub timeout_ms: Option<u64>,
}

/// A change of a session's capabilities: what is added or replaced, and what is taken away.
#[derive(Clone, Debug, Default)]
pub struct SessionUpdate {
    /// Globals that are added or replaced.
    pub globals: Inputs,
    /// Bridged modules that are added, or replaced as a whole.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that are added or replaced. One that is replaced is evaluated anew by the next cell that imports it, with
    /// everything that imports it.
    pub modules: BTreeMap<String, String>,
    /// The names of globals that are taken away.
    pub removed_globals: Vec<String>,
    /// The specifiers of bridged modules that are taken away.
    pub removed_imports: Vec<String>,
    /// The specifiers of modules that are taken away.
    pub removed_modules: Vec<String>,
}

impl SessionOptions {
    pub(super) fn into_request(self, side: &HostSide) -> Result<SessionRequest, Error> {
        self.report.check()?;
        let inputs = inputs(side, &self.globals, &self.imports)?;
        Ok(SessionRequest {
            modules: self.modules.into_iter().map(|(key, text)| (key, text.into())).collect(),
            globals: names(&self.globals),
            imports: bridges(&self.imports),
            inputs,
            report: self.report.is_given(),
            language: self.language,
            memory_limit_bytes: self.memory_limit_bytes.map(number),
            interleave: self.cells == Cells::Interleave,
            checkpoint_bytes: self.checkpoint_bytes.map(number),
            native: side.native.clone(),
            spelling: Spelling::Snake,
            ..SessionRequest::default()
        })
    }
}

impl SessionUpdate {
    pub(super) fn into_request(self, side: &HostSide) -> Result<UpdateRequest, Error> {
        let inputs = inputs(side, &self.globals, &self.imports)?;
        Ok(UpdateRequest {
            modules: self.modules.into_iter().map(|(key, text)| (key, text.into())).collect(),
            globals: names(&self.globals),
            imports: bridges(&self.imports),
            inputs,
            removed_modules: self.removed_modules,
            removed_globals: self.removed_globals,
            removed_imports: self.removed_imports,
        })
    }
}

/// A number of an option; one that is rounded is out of range.
#[expect(clippy::cast_precision_loss, reason = "a number that is rounded is out of range")]
pub(super) fn number(number: u64) -> f64 {
    number as f64
}

fn names(inputs: &Inputs) -> Vec<String> {
    inputs.iter().map(|(name, _)| name.to_owned()).collect()
}

fn bridges(imports: &BTreeMap<String, Inputs>) -> Vec<(String, Vec<String>)> {
    imports.iter().map(|(key, exports)| (key.clone(), names(exports))).collect()
}

/// All values in one message, in the order that a request asks for.
fn inputs(
    side: &HostSide,
    globals: &Inputs,
    imports: &BTreeMap<String, Inputs>,
) -> Result<Value, Error> {
    let exports: usize = imports.values().map(Inputs::len).sum();
    let mut writer = Writer::new();
    writer.array(u32::try_from(globals.len() + exports).unwrap_or(u32::MAX));
    write_values(side, &mut writer, globals, imports)?;
    Ok(writer.finish())
}

/// Appends the values of globals, then those of bridged modules' exports.
pub(super) fn write_values(
    side: &HostSide,
    writer: &mut Writer,
    globals: &Inputs,
    imports: &BTreeMap<String, Inputs>,
) -> Result<(), Error> {
    let mut put = |name: &str, input: &super::Input| {
        let done = input.message().and_then(|message| side.write(message, writer, name));
        done.map_err(|fault| fault.at(Step::Key(name.to_owned())))
    };
    for (name, input) in globals.iter() {
        put(name, input).map_err(|fault| fault.into_error("globals"))?;
    }
    for (specifier, exports) in imports {
        for (name, input) in exports.iter() {
            let done = put(name, input).map_err(|fault| fault.at(Step::Key(specifier.clone())));
            done.map_err(|fault| fault.into_error("imports"))?;
        }
    }
    Ok(())
}
