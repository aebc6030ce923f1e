//! The request of a run, with every check on it.
//!
//! In: options as a binding read them from its caller. Out: nothing, or an [`Error`] for the caller, before anything
//! starts.

use std::collections::HashMap;

use super::link::specifier;
use crate::{
    binding::native::NativeFunctions,
    data::{
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
    /// One message: an array of the globals' values, then the values of the imports' exports,
    /// then the array of the arguments.
    pub inputs: Value,
    /// Whether the caller gave a sink for reports.
    pub report: bool,
    /// The limit as the caller wrote it.
    pub memory_limit_bytes: Option<f64>,
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
        for (key, _) in &self.imports {
            specifier::check_bridge_key(key)
                .map_err(|reason| type_error(format!("imports[{:?}] {reason}", shown(key))))?;
        }
        self.check_modules()?;
        self.globals.iter().try_for_each(|name| check_global_name(name))
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
        !(self.globals.is_empty() && self.imports.is_empty())
    }

    /// The label of the entry.
    pub(crate) fn filename(&self) -> &str {
        self.filename.as_deref().unwrap_or(DEFAULT_FILENAME)
    }

    pub(crate) fn memory_limit(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a safe integer of at least 1"
        )]
        self.memory_limit_bytes.map_or(DEFAULT_MEMORY_LIMIT_BYTES, |limit| limit as u64)
    }
}

pub(super) fn non_empty(value: Option<&str>, option: &str) -> Result<(), Error> {
    match value {
        Some("") => Err(type_error(format!("{option} must not be empty"))),
        _ => Ok(()),
    }
}

pub(super) fn check_memory_limit(limit: f64, spelling: Spelling) -> Result<(), Error> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    if limit.fract() == 0.0 && (1.0..=MAX_SAFE_INTEGER).contains(&limit) {
        return Ok(());
    }
    let name = spell("memory_limit_bytes", spelling);
    Err(Error::new(
        ErrorKind::Range,
        format!("{name} must be a safe integer of at least 1, got {limit}"),
    ))
}

pub(super) fn check_global_name(name: &str) -> Result<(), Error> {
    let shown = shown(name);
    if FIXED_GLOBALS.contains(&name) {
        return Err(type_error(format!(
            "globals.{shown}: this name cannot be given another value"
        )));
    }
    if RESERVED_WORDS.contains(&name) {
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
