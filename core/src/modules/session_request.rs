//! The requests of sessions, with every check on them: a session, a cell, a call, an update.
//!
//! In: options as a binding read them from its caller. Out: nothing, or an [`Error`] for the caller, before anything
//! starts.

use std::{collections::HashSet, sync::Arc};

use super::{
    link::specifier,
    request::{
        DEFAULT_MEMORY_LIMIT_BYTES, ExtensionRequest, check_global_name, check_memory_limit,
        check_safe_integer, check_timeout, non_empty, whole,
    },
    session_interceptor::SessionInterceptor,
};
use crate::{
    binding::{interception::Interception, native::NativeFunctions},
    data::{
        options::{Spelling, shown, type_error},
        source::{Language, SourceText},
    },
    error::Error,
    value::{Value, Writer},
};

/// The bytes of the largest state that a session keeps a checkpoint of, without an option: 64 MiB.
pub(crate) const DEFAULT_CHECKPOINT_BYTES: u64 = 64 << 20;

/// A request of a binding for a session. Names are here, values in one message beside them.
///
/// The numbers of functions and promises, in this message and in all others of the session, are numbers of the session:
/// each cell's [`Host`](crate::Host) receives those of earlier cells too.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// The modules that cells may import: key and source.
    pub modules: Vec<(String, SourceText)>,
    /// The names of the globals, in the order of their values in `inputs`.
    pub globals: Vec<String>,
    /// The bridged modules with the names of their exports, in the order of their values in `inputs`.
    pub imports: Vec<(String, Vec<String>)>,
    /// One message: an array of the extension's input, if it is asked for, then the globals' values, then the values of
    /// the imports' exports.
    pub inputs: Value,
    /// Whether the caller gave a sink for the reports of all cells.
    pub report: bool,
    /// The language of cells that have none of their own, and of modules whose names do not say otherwise.
    pub language: Language,
    /// The limit of the whole session as the caller wrote it.
    pub memory_limit_bytes: Option<f64>,
    /// Whether a cell starts while those before it wait for the host (`cells: 'interleave'`).
    pub interleave: bool,
    /// The bytes of the largest state that a checkpoint is taken of, as the caller wrote it; 64 MiB when `None`.
    pub checkpoint_bytes: Option<f64>,
    /// Whether the results of cells have their logs, which count against the limit until their cell ends. Without, a log
    /// counts until `RunInterceptor::logged` and `Host::logged` have returned: for a host that passes logs on.
    pub keeps_logs: bool,
    /// The name of the file of a cell by which a system gives the session functions that call the host, if there is one. A
    /// call that is lost is told of by the name of such a function, at the place where other code has called the function.
    pub helpers_file: Option<String>,
    /// The part of the extension that cells and modules see, if there is one. It is opened when the session begins, and when it is
    /// reset. Code may declare its names anew, as those of globals.
    pub extension: Option<Arc<ExtensionRequest>>,
    /// Code of the host between the session and its caller.
    pub interceptor: Option<Arc<dyn SessionInterceptor>>,
    /// Functions that are answered in Rust. One table for all of the session: messages of later updates, calls and
    /// answers take their numbers from it too.
    pub native: NativeFunctions,
    /// The spelling of options in errors.
    pub spelling: Spelling,
}

impl Default for SessionRequest {
    /// A session with nothing handed over.
    fn default() -> Self {
        Self {
            modules: Vec::new(),
            globals: Vec::new(),
            imports: Vec::new(),
            inputs: empty_array(),
            report: false,
            language: Language::default(),
            memory_limit_bytes: None,
            interleave: false,
            checkpoint_bytes: None,
            keeps_logs: true,
            helpers_file: None,
            extension: None,
            interceptor: None,
            native: NativeFunctions::default(),
            spelling: Spelling::default(),
        }
    }
}

impl SessionRequest {
    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake, with the name of its option.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(limit) = self.memory_limit_bytes {
            check_memory_limit(limit, self.spelling)?;
        }
        if let Some(bytes) = self.checkpoint_bytes {
            check_safe_integer("checkpoint_bytes", bytes, 0.0, self.spelling)?;
        }
        check_bridges(self.imports.iter().map(|(key, _)| key.as_str()))?;
        check_modules(self.modules.iter().map(|(key, _)| key.as_str()))?;
        self.globals.iter().try_for_each(|name| check_global_name(name))?;
        self.extension.as_ref().map_or(Ok(()), |extension| extension.check(&self.globals))
    }

    /// The limit of the whole session.
    pub(crate) fn memory_limit(&self) -> u64 {
        self.memory_limit_bytes.map_or(DEFAULT_MEMORY_LIMIT_BYTES, whole)
    }

    /// The bytes of the largest state that a checkpoint is taken of.
    pub(crate) fn checkpoint_limit(&self) -> u64 {
        self.checkpoint_bytes.map_or(DEFAULT_CHECKPOINT_BYTES, whole)
    }
}

/// A request of a binding for one cell.
#[derive(Clone, Debug)]
pub struct CellRequest {
    /// The source.
    pub source: SourceText,
    /// The name of the cell in stacks, `<cell N>` when `None`. Names may repeat.
    pub filename: Option<String>,
    /// The cell's language, the session's when `None`.
    pub language: Option<Language>,
    /// Whether the caller gave a sink for this cell's reports; the session's when `None`.
    pub report: Option<bool>,
    /// The milliseconds after which the cell is ended, as the caller wrote them. They count from its start.
    pub timeout_ms: Option<f64>,
    /// Why the caller has ended the cell before its call. It is counted and settles, and never begins.
    pub ended: Option<String>,
    /// As [`Request::interception`](super::request::Request::interception). That of the session takes its place.
    pub interception: Option<Interception>,
    /// The spelling of options in errors.
    pub spelling: Spelling,
}

impl CellRequest {
    /// A cell of that source, with the options of its session.
    #[must_use]
    pub fn new(source: SourceText) -> Self {
        Self {
            source,
            filename: None,
            language: None,
            report: None,
            timeout_ms: None,
            ended: None,
            interception: None,
            spelling: Spelling::default(),
        }
    }

    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake, with the name of its option.
    pub fn check(&self) -> Result<(), Error> {
        non_empty(self.filename.as_deref(), "filename")?;
        check_timeout(self.timeout_ms, self.spelling)
    }
}

/// A request of a binding to call something that a cell declared.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The name.
    pub name: String,
    /// The arguments, one message that is an array.
    pub args: Value,
    /// Whether the caller gave a sink for this call's reports; the session's when `None`.
    pub report: Option<bool>,
    /// As [`CellRequest::timeout_ms`].
    pub timeout_ms: Option<f64>,
    /// As [`CellRequest::ended`].
    pub ended: Option<String>,
    /// As [`CellRequest::interception`].
    pub interception: Option<Interception>,
    /// The spelling of options in errors.
    pub spelling: Spelling,
}

impl CallRequest {
    /// A call without arguments, with the options of its session.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self {
            name,
            args: empty_array(),
            report: None,
            timeout_ms: None,
            ended: None,
            interception: None,
            spelling: Spelling::default(),
        }
    }

    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake, with the name of its option.
    pub fn check(&self) -> Result<(), Error> {
        non_empty(Some(&self.name), "name")?;
        check_timeout(self.timeout_ms, self.spelling)
    }
}

/// A request of a binding to hand more to a session, or to take something away. It holds from the next cell that
/// starts.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// The modules that are added or replaced: key and source.
    pub modules: Vec<(String, SourceText)>,
    /// The names of the globals that are added or replaced, in the order of their values in `inputs`.
    pub globals: Vec<String>,
    /// The bridged modules that are added or replaced as a whole, in the order of their values in `inputs`.
    pub imports: Vec<(String, Vec<String>)>,
    /// As [`SessionRequest::inputs`].
    pub inputs: Value,
    /// The keys of modules that are taken away. One that is not there is no mistake, here and below.
    pub removed_modules: Vec<String>,
    /// The names of globals that are taken away.
    pub removed_globals: Vec<String>,
    /// The specifiers of bridged modules that are taken away.
    pub removed_imports: Vec<String>,
}

impl Default for UpdateRequest {
    /// Nothing.
    fn default() -> Self {
        Self {
            modules: Vec::new(),
            globals: Vec::new(),
            imports: Vec::new(),
            inputs: empty_array(),
            removed_modules: Vec::new(),
            removed_globals: Vec::new(),
            removed_imports: Vec::new(),
        }
    }
}

impl UpdateRequest {
    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake, with the name of its option.
    pub fn check(&self) -> Result<(), Error> {
        let bridges = self.imports.iter().map(|(key, _)| key.as_str());
        check_bridges(bridges.chain(self.removed_imports.iter().map(String::as_str)))?;
        let modules = self.modules.iter().map(|(key, _)| key.as_str());
        check_modules(modules.chain(self.removed_modules.iter().map(String::as_str)))?;
        self.globals
            .iter()
            .chain(&self.removed_globals)
            .try_for_each(|name| check_global_name(name))
    }
}

impl UpdateRequest {
    /// Whether nothing of an earlier update is left after this one.
    pub(crate) fn covers(&self, earlier: &Self) -> bool {
        let names = |update: &Self| -> [Vec<String>; 3] {
            let imports = update.imports.iter().map(|(key, _)| key.clone());
            let modules = update.modules.iter().map(|(key, _)| key.as_str());
            let modules = modules.chain(update.removed_modules.iter().map(String::as_str));
            let normalized = modules.filter_map(|key| specifier::normalize_module_key(key).ok());
            [
                update.globals.iter().chain(&update.removed_globals).cloned().collect(),
                imports.chain(update.removed_imports.iter().cloned()).collect(),
                normalized.collect(),
            ]
        };
        let (all, parts) = (names(self), names(earlier));
        parts.iter().zip(&all).all(|(part, all)| part.iter().all(|name| all.contains(name)))
    }
}

fn empty_array() -> Value {
    let mut inputs = Writer::new();
    inputs.array(0);
    inputs.finish()
}

fn check_bridges<'k>(mut keys: impl Iterator<Item = &'k str>) -> Result<(), Error> {
    keys.try_for_each(|key| {
        specifier::check_bridge_key(key)
            .map_err(|reason| type_error(format!("imports[{:?}] {reason}", shown(key))))
    })
}

fn check_modules<'k>(keys: impl Iterator<Item = &'k str>) -> Result<(), Error> {
    let mut known = HashSet::new();
    for key in keys {
        let refused = |reason: &str| type_error(format!("modules[{:?}] {reason}", shown(key)));
        let normalized = specifier::normalize_module_key(key).map_err(refused)?;
        if !known.insert(normalized) {
            return Err(refused("is the same module as another key"));
        }
    }
    Ok(())
}
