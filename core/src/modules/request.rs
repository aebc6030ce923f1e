//! The request of a run, with every check on it.
//!
//! In: options as a binding read them from its caller. Out: nothing, or an [`Error`] for the caller, before anything
//! starts.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::link::specifier;
use crate::{
    binding::{interception::Interception, native::NativeFunctions},
    data::{
        extension,
        options::{Spelling, shown, spell, type_error},
        source::{Language, SourceText},
    },
    error::{Error, ErrorKind},
    value::{Value, Writer},
};

/// The memory limit of a run without one of its own: 128 MiB.
pub(crate) const DEFAULT_MEMORY_LIMIT_BYTES: u64 = 128 << 20;

/// The label of an entry without one of its own.
pub(crate) const DEFAULT_FILENAME: &str = "<runCode>";

/// The form of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A module, of which the run selects an export.
    #[default]
    Module,
    /// A module whose export may be missing: its value is `undefined` then.
    Program,
    /// A module that is compiled and linked, and not evaluated. The run succeeds without a value if that goes well.
    Linked,
    /// A module whose default export the extension runs: `run(body)`. Its outcome is the run's.
    Body,
}

/// A run's use of the extension of the process ([`install_extension`](crate::install_extension)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionRequest {
    /// Those of the extension's names that code sees, as it sees globals.
    pub names: Vec<String>,
    /// Those of the extension's properties that `globalThis` has.
    pub properties: Vec<String>,
}

impl ExtensionRequest {
    /// Checks the names, beside those of the caller.
    pub(super) fn check(&self, globals: &[String]) -> Result<(), Error> {
        let Some(extension) = extension::installed() else {
            return Err(type_error("extension: the process has none".to_owned()));
        };
        let is_unknown = |known: &[&str], names: &[String]| {
            names.iter().position(|name| !known.contains(&name.as_str()))
        };
        let unknown =
            is_unknown(extension.names, &self.names).map(|at| &self.names[at]).or_else(|| {
                is_unknown(extension.properties, &self.properties).map(|at| &self.properties[at])
            });
        if let Some(name) = unknown {
            let shown = shown(name);
            return Err(type_error(format!("extension: '{}' has no '{shown}'", extension.name)));
        }
        match globals.iter().find(|global| self.names.contains(global)) {
            Some(name) => {
                let shown = shown(name);
                Err(type_error(format!("globals.{shown}: this name is taken already")))
            }
            None => Ok(()),
        }
    }
}

/// A request of a binding for one run. Names are here, values in one message beside them.
#[derive(Clone, Debug)]
pub struct Request {
    /// The entry.
    pub source: SourceText,
    /// The label of the entry.
    pub filename: Option<String>,
    /// The entry's language.
    pub language: Language,
    /// The export to select, `default` when `None`.
    pub function: Option<String>,
    /// Further modules: key and source.
    pub modules: Vec<(String, SourceText)>,
    /// The names of the globals, in the order of their values in `inputs`.
    pub globals: Vec<String>,
    /// The bridged modules with the names of their exports, in the order of their values in
    /// `inputs`.
    pub imports: Vec<(String, Vec<String>)>,
    /// One message: an array of the extension's input, if it is asked for, then the globals' values, then the values of
    /// the imports' exports, then the array of the arguments. An input that is `undefined` asks for the extension as it is
    /// in the realm's image, which costs nothing.
    pub inputs: Value,
    /// Whether the caller gave a sink for reports.
    pub report: bool,
    /// The limit as the caller wrote it.
    pub memory_limit_bytes: Option<f64>,
    /// The milliseconds after which the run is ended, as the caller wrote them. They count from its first turn.
    pub timeout_ms: Option<f64>,
    /// The form of the entry. A body needs the extension.
    pub shape: Shape,
    /// The part of the extension that the run sees, if there is one.
    pub extension: Option<Arc<ExtensionRequest>>,
    /// Code of the host between the run and its caller.
    pub interception: Option<Interception>,
    /// Functions that are answered in Rust, with the numbers that they have in `inputs`.
    pub native: NativeFunctions,
    /// The spelling of options in errors.
    pub spelling: Spelling,
}

impl Request {
    /// A run of that source, with nothing handed over.
    #[must_use]
    pub fn new(source: SourceText) -> Self {
        let mut inputs = Writer::new();
        inputs.array(1);
        inputs.array(0);
        Self {
            source,
            filename: None,
            language: Language::default(),
            function: None,
            modules: Vec::new(),
            globals: Vec::new(),
            imports: Vec::new(),
            inputs: inputs.finish(),
            report: false,
            memory_limit_bytes: None,
            timeout_ms: None,
            shape: Shape::default(),
            extension: None,
            interception: None,
            native: NativeFunctions::default(),
            spelling: Spelling::default(),
        }
    }

    /// Checks everything that can be known before anything starts.
    ///
    /// # Errors
    /// The first mistake, with the name of its option.
    pub fn check(&self) -> Result<(), Error> {
        non_empty(self.function.as_deref(), "execute.fn")?;
        non_empty(self.filename.as_deref(), "filename")?;
        if let Some(limit) = self.memory_limit_bytes {
            check_memory_limit(limit, self.spelling)?;
        }
        check_timeout(self.timeout_ms, self.spelling)?;
        for (key, _) in &self.imports {
            specifier::check_bridge_key(key)
                .map_err(|reason| type_error(format!("imports[{:?}] {reason}", shown(key))))?;
        }
        self.check_modules()?;
        self.globals.iter().try_for_each(|name| check_global_name(name))?;
        match &self.extension {
            Some(extension) => extension.check(&self.globals),
            None if self.shape == Shape::Body => {
                Err(type_error("shape: a body needs the extension".to_owned()))
            }
            None => Ok(()),
        }
    }

    fn check_modules(&self) -> Result<(), Error> {
        let entry = specifier::entry_path(self.filename());
        let mut keys: HashMap<String, &str> = HashMap::new();
        for (key, _) in &self.modules {
            let refused = |reason: &str| type_error(format!("modules[{:?}] {reason}", shown(key)));
            let normalized = specifier::normalize_module_key(key).map_err(&refused)?;
            if entry.as_ref() == Some(&normalized) {
                return Err(refused("is where the entry sits"));
            }
            if let Some(other) = keys.insert(normalized, key) {
                return Err(refused(&format!("is the same module as {:?}", shown(other))));
            }
        }
        Ok(())
    }

    /// Whether the caller handed over anything by name. Without, a run can wait only for values in its arguments.
    pub(crate) fn hands_over(&self) -> bool {
        !(self.globals.is_empty() && self.imports.is_empty() && self.extension.is_none())
    }

    /// The label of the entry.
    pub(crate) fn filename(&self) -> &str {
        self.filename.as_deref().unwrap_or(DEFAULT_FILENAME)
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        timeout(self.timeout_ms)
    }

    pub(crate) fn memory_limit(&self) -> u64 {
        self.memory_limit_bytes.map_or(DEFAULT_MEMORY_LIMIT_BYTES, whole)
    }
}

pub(super) fn non_empty(value: Option<&str>, option: &str) -> Result<(), Error> {
    match value {
        Some("") => Err(type_error(format!("{option} must not be empty"))),
        _ => Ok(()),
    }
}

pub(super) fn check_memory_limit(limit: f64, spelling: Spelling) -> Result<(), Error> {
    check_safe_integer("memory_limit_bytes", limit, 1.0, spelling)
}

pub(super) fn check_timeout(timeout_ms: Option<f64>, spelling: Spelling) -> Result<(), Error> {
    timeout_ms.map_or(Ok(()), |ms| check_safe_integer("timeout_ms", ms, 1.0, spelling))
}

/// The largest whole number that every language can write.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

pub(super) fn check_safe_integer(
    option: &str,
    value: f64,
    least: f64,
    spelling: Spelling,
) -> Result<(), Error> {
    if value.fract() == 0.0 && (least..=MAX_SAFE_INTEGER).contains(&value) {
        return Ok(());
    }
    let name = spell(option, spelling);
    let message = format!("{name} must be a safe integer of at least {least}, got {value}");
    Err(Error::new(ErrorKind::Range, message))
}

/// The time after which a run is ended.
pub(crate) fn timeout(timeout_ms: Option<f64>) -> Option<Duration> {
    timeout_ms.map(|ms| Duration::from_millis(whole(ms)))
}

/// A number that was checked to be a safe integer.
pub(super) fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a safe integer that is not negative"
    )]
    {
        number as u64
    }
}

pub(super) fn check_global_name(name: &str) -> Result<(), Error> {
    let shown = shown(name);
    if FIXED_GLOBALS.contains(&name) {
        return Err(type_error(format!(
            "globals.{shown}: this name cannot be given another value"
        )));
    }
    if is_reserved_word(name) {
        return Err(type_error(format!("globals.{shown}: a reserved word cannot be a global")));
    }
    let mut chars = name.chars();
    let starts =
        chars.next().is_some_and(|c| c == '$' || c == '_' || unicode_ident::is_xid_start(c));
    if starts
        && chars.all(|c| {
            matches!(c, '$' | '_' | '\u{200C}' | '\u{200D}') || unicode_ident::is_xid_continue(c)
        })
    {
        return Ok(());
    }
    Err(type_error(format!("globals[{shown:?}]: a global must be a valid identifier")))
}

/// Whether strict module code cannot bind that word.
#[must_use]
pub fn is_reserved_word(word: &str) -> bool {
    RESERVED_WORDS.contains(&word)
}

/// Names whose value is fixed on the global object, or that name the global object.
const FIXED_GLOBALS: &[&str] = &["undefined", "NaN", "Infinity", "globalThis"];

/// Words that strict module code cannot bind.
const RESERVED_WORDS: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];
