//! The modules of one run: those compiled and linked before it starts, and those that a dynamic `import()` adds.
//!
//! In: questions of the isolate, by name. Out: scripts, bridges and positions. An isolate uses compiling and linking
//! only through this file.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    cache::Cache,
    compile::{
        CompileError, CompiledModule, compile_library,
        explain::{Candidate, Question, call_site::Call},
    },
    link::{
        graph::{Graph, LinkError},
        specifier::{self, ModuleKey, Resolved, Specifiers},
    },
    request::{Request, Shape},
};
pub(crate) use super::{
    compile::explain::{self, RegularExpression, call_site, ending::Ending},
    session_program::SessionProgram,
};
use crate::data::{
    outcome::{ExecutionError, Position},
    source::{Language, SourceText},
    text::{MESSAGE_LIMIT, bounded},
};

/// A classic script of our own.
#[derive(Debug, Default)]
pub(crate) struct Script {
    text: String,
    bytecode: OnceLock<Arc<[u8]>>,
}

impl Script {
    pub(crate) fn new(text: String) -> Self {
        Self { text, bytecode: OnceLock::new() }
    }
}

/// A text for the engine, with the bytecode of the first isolate that loaded it.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Module(Arc<CompiledModule>),
    Script(Arc<Script>),
}

impl Code {
    /// The text that the engine compiles.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Module(module) => module.code(),
            Self::Script(script) => &script.text,
        }
    }

    /// Its bytecode, if an isolate has compiled it before.
    pub(crate) fn bytecode(&self) -> Option<Arc<[u8]>> {
        self.kept().get().cloned()
    }

    /// Keeps bytecode for later runs. The first bytecode to arrive stays.
    pub(crate) fn keep_bytecode(&self, bytecode: Vec<u8>) -> Arc<[u8]> {
        Arc::clone(self.kept().get_or_init(|| bytecode.into()))
    }

    fn kept(&self) -> &OnceLock<Arc<[u8]>> {
        match self {
            Self::Module(module) => module.bytecode(),
            Self::Script(script) => &script.bytecode,
        }
    }
}

/// A module as the isolate loads it.
#[derive(Clone, Debug)]
pub(crate) enum Module {
    /// Source text.
    Source(Code),
    /// Values of the host: the names of its exports, and the index of the first value among the inputs.
    Bridge { exports: Vec<String>, first: usize },
}

/// The reason why a program cannot be linked, or an import of it resolved.
#[derive(Debug)]
pub(crate) enum Unlinked {
    /// Compiling takes more memory than there is.
    Memory(Box<Oversized>),
    /// The source has an error.
    Error(Box<ExecutionError>),
}

/// Bytes of a file's name that a message about memory shows.
const SHOWN_FILENAME: usize = 1 << 10;

/// Bytes of a specifier that an error shows.
const SHOWN_SPECIFIER: usize = 200;

/// A module that the run has no room to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Oversized {
    pub(crate) filename: String,
    /// An upper bound of the bytes that compiling it takes at once.
    pub(crate) needed_bytes: u64,
}

/// The memory of the code that was compiled since the last call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compiled {
    /// Bytes that stay: texts, code, maps.
    pub(crate) kept_bytes: usize,
    /// The most bytes that compiling took at once, including those that stayed by then.
    pub(crate) peak_bytes: usize,
}

/// The isolate's questions about modules.
pub(crate) trait Linker: Send {
    /// The name of the entry.
    fn entry(&self) -> &str;

    /// The module that a specifier means, by name. A module that is not linked yet (a dynamic import) is checked now,
    /// with all its imports, if that takes at most `room_bytes`.
    fn resolve(
        &mut self,
        importer: &str,
        specifier: &str,
        room_bytes: usize,
    ) -> Result<String, Unlinked>;

    /// A specifier that is longer than so many bytes means nothing.
    fn longest_specifier_bytes(&self) -> usize;

    /// The code compiled since the last call, for the accounting.
    fn take_compiled(&mut self) -> Compiled;

    /// The module of that name.
    fn module(&self, name: &str) -> Option<Module>;

    /// A classic script, with the bytecode that earlier runs made of the same text.
    fn script(&self, text: String) -> Code;

    /// A library, with its name in the engine ([`compile_library`](super::compile::compile_library)). The code is a
    /// script.
    fn library(
        &mut self,
        filename: &str,
        source: &SourceText,
        language: Language,
        hidden: &[String],
        room_bytes: usize,
    ) -> Result<(String, Code), Unlinked>;

    /// The compiled module of a file.
    fn compiled(&self, file: &str) -> Option<&Arc<CompiledModule>>;

    /// Every file.
    fn files(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// The files in whose texts the word `await` is.
    fn awaiting(&self) -> Vec<String> {
        let awaits =
            |file: &&str| self.compiled(file).is_some_and(|module| module.text().contains("await"));
        self.files().filter(awaits).map(str::to_owned).collect()
    }

    /// Whether a stack may name this file.
    fn knows(&self, file: &str) -> bool {
        self.compiled(file).is_some()
    }

    /// Whether a file has functions of a system, by which code calls the host.
    fn is_of_helpers(&self, _file: &str) -> bool {
        false
    }

    /// Notes that an error names a place in this file, which its stack keeps.
    fn note_error(&self, _file: &str) {}

    /// Whether the engine has another text of a file than the author's.
    fn is_edited(&self, file: &str) -> bool {
        self.compiled(file).is_some_and(|module| module.is_edited())
    }

    /// The author's text of a part of compiled code (`text`) that has this place in it.
    fn written(&self, file: &str, place: (u32, u32), text: &str) -> Option<&str> {
        self.compiled(file)?.written(place, text)
    }

    /// Maps a place in compiled code (line from 1, column from 1 in bytes) to the author's text.
    fn original(&self, file: &str, line: u32, column: u32) -> Option<Position> {
        self.compiled(file)?.original(line, column)
    }

    /// The positions of calls in a module, `None` where the given one stays. None if reading takes more than
    /// `room_bytes`.
    fn calls(&self, file: &str, calls: &[Call], room_bytes: usize) -> Vec<Option<Position>> {
        let module = self.compiled(file).filter(|module| module.takes_bytes() <= room_bytes);
        module.map(|module| module.calls(calls)).unwrap_or_default()
    }

    /// Whether the function around each place in a module is called at once by a statement of its own. Nothing is known if
    /// reading takes more than `room_bytes`.
    fn immediate(&self, file: &str, places: &[Position], room_bytes: usize) -> Vec<bool> {
        let module = self.compiled(file).filter(|module| module.takes_bytes() <= room_bytes);
        module.map(|module| module.immediate(places)).unwrap_or_default()
    }

    /// For each question the expressions of a module that the failure may be about, the likeliest first, and the bytes of
    /// text that were read for all. None if reading takes more than `room_bytes`.
    fn candidates(
        &self,
        file: &str,
        questions: &[Question],
        room_bytes: usize,
    ) -> (Vec<Vec<Candidate>>, usize) {
        let module = self.compiled(file).filter(|module| module.takes_bytes() <= room_bytes);
        let found = module.map(|module| (module.candidates(questions), module.text().len()));
        found.unwrap_or_default()
    }

    /// The loop of a module that a backward jump between two places leads to.
    fn looped(&self, file: &str, before: Position, after: Option<Position>) -> Option<Position> {
        self.compiled(file)?.looped(before, after)
    }

    /// The end of the entry, of which the run selects that export. Nothing is known if reading takes more than
    /// `room_bytes`.
    fn ending(&self, export: &str, room_bytes: usize) -> Ending {
        let entry = self.compiled(&engine_name(self.entry()));
        let module = entry.filter(|module| module.takes_bytes() <= room_bytes);
        module.map(|module| module.ending(export)).unwrap_or_default()
    }

    /// The specifiers that the caller gave: of bridges, then of modules.
    fn importable(&self) -> Vec<String>;

    /// The regular expressions of a module. The engine does not say which one it refuses.
    fn regular_expressions(&self, file: &str) -> Vec<RegularExpression> {
        self.compiled(file).map(|module| module.regular_expressions()).unwrap_or_default()
    }

    /// The modules of a session, if this is one.
    fn session(&mut self) -> Option<&mut SessionProgram> {
        None
    }
}

/// Compiles the entry and every module that it statically reaches, and checks every import.
pub(crate) fn link(cache: &Arc<Cache>, request: Request) -> Result<Box<dyn Linker>, Unlinked> {
    let room_bytes = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    let mut program = Program::new(cache, request);
    program.sources.room_bytes.set(room_bytes);
    program.extend(&ModuleKey::Entry).map_err(unlinked)?;
    Ok(Box::new(program))
}

/// The modules of a run.
struct Program {
    graph: Graph,
    sources: Sources,
    /// Bridges by key: export names, and the index of the first value among the inputs.
    bridges: HashMap<String, (Vec<String>, usize)>,
    /// Linked modules by their names in the engine.
    keys: HashMap<String, ModuleKey>,
    /// Libraries by their names in the engine.
    libraries: HashMap<String, Arc<CompiledModule>>,
}

/// The input of compiling.
struct Sources {
    cache: Arc<Cache>,
    filename: String,
    entry: SourceText,
    language: Language,
    /// If the entry is a body: the names of which it says whether it refers to them.
    body: Option<Vec<String>>,
    modules: HashMap<String, SourceText>,
    /// The bytes that compiling and its results may take, counted from the moment when `compiled` was zero.
    room_bytes: Cell<usize>,
    compiled: Cell<Compiled>,
}

/// Prefix of a bridge's key in its engine name. No file name starts with it.
pub(super) const BRIDGE: char = '\u{1}';

impl Program {
    fn new(cache: &Arc<Cache>, request: Request) -> Self {
        let filename = engine_name(request.filename());
        let names = || request.extension.as_ref().map(|extension| extension.names.clone());
        let body = (request.shape == Shape::Body).then(|| names().unwrap_or_default());
        let mut first = request.globals.len();
        let modules: HashMap<String, SourceText> = request
            .modules
            .into_iter()
            .filter_map(|(key, source)| Some((specifier::normalize_module_key(&key).ok()?, source)))
            .collect();
        let specifiers =
            Specifiers::new(&filename, modules.keys().cloned(), request.imports.iter().cloned());
        let mut graph = Graph::new(&filename, specifiers);
        graph.change_globals(&request.globals, &[]);
        let mut bridges = HashMap::new();
        for (key, exports) in request.imports {
            let count = exports.len();
            bridges.insert(key, (exports, first));
            first += count;
        }
        let sources = Sources {
            cache: Arc::clone(cache),
            entry: request.source,
            language: request.language,
            body,
            modules,
            filename: filename.clone(),
            room_bytes: Cell::default(),
            compiled: Cell::default(),
        };
        Self { graph, sources, bridges, keys: HashMap::new(), libraries: HashMap::new() }
    }

    fn extend(&mut self, root: &ModuleKey) -> Result<(), LinkError> {
        let sources = &self.sources;
        self.graph.extend(root, &mut |key, erase| sources.compile(key, erase))?;
        self.name_modules();
        Ok(())
    }

    /// Maps engine names to the modules that are linked now.
    fn name_modules(&mut self) {
        for (key, _) in self.graph.modules().skip(self.keys.len()) {
            self.keys.insert(engine_name(&self.graph.label(key)), key.clone());
        }
    }
}

impl Sources {
    fn compile(
        &self,
        key: &ModuleKey,
        erase: &[String],
    ) -> Result<Arc<CompiledModule>, CompileError> {
        static EMPTY: SourceText = SourceText { text: String::new(), lone_surrogate: None };
        let (label, source, language) = match key {
            ModuleKey::Entry | ModuleKey::Cell(_) => {
                (self.filename.as_str(), &self.entry, self.language)
            }
            ModuleKey::Module(key) => {
                let typescript = specifier::is_typescript_name(key);
                let language = if typescript { Language::TypeScript } else { self.language };
                (specifier::label(key), self.modules.get(key).unwrap_or(&EMPTY), language)
            }
        };
        well_formed(source)?;
        let Compiled { kept_bytes, .. } = self.compiled.get();
        let room_bytes = self.room_bytes.get().saturating_sub(kept_bytes);
        let label = engine_name(label);
        let module = match (&self.body, key) {
            (Some(names), ModuleKey::Entry) => {
                self.cache.body(&label, &source.text, language, names, room_bytes)?
            }
            _ => self.cache.module(&label, &source.text, language, erase, room_bytes)?,
        };
        self.count(&module);
        Ok(module)
    }

    /// Counts the memory of a module that was compiled.
    fn count(&self, module: &CompiledModule) {
        let Compiled { kept_bytes, peak_bytes } = self.compiled.get();
        self.compiled.set(Compiled {
            kept_bytes: kept_bytes + module.size_bytes(),
            peak_bytes: peak_bytes.max(kept_bytes + module.takes_bytes()),
        });
    }
}

impl Linker for Program {
    fn entry(&self) -> &str {
        &self.sources.filename
    }

    fn resolve(
        &mut self,
        importer: &str,
        specifier: &str,
        room_bytes: usize,
    ) -> Result<String, Unlinked> {
        let is_library = self.libraries.contains_key(importer);
        let importer = self.keys.get(importer).cloned().unwrap_or(ModuleKey::Entry);
        if is_library || (importer == ModuleKey::Entry && self.sources.body.is_some()) {
            return Err(no_import(specifier));
        }
        let sources = &self.sources;
        sources.room_bytes.set(room_bytes);
        let compile = &mut |key: &ModuleKey, erase: &[String]| sources.compile(key, erase);
        let resolved = self.graph.import(&importer, specifier, compile).map_err(unlinked)?;
        self.name_modules();
        Ok(match resolved {
            Resolved::Module(key) => engine_name(&self.graph.label(&key)),
            Resolved::Bridge(key) => format!("{BRIDGE}{key}"),
        })
    }

    fn longest_specifier_bytes(&self) -> usize {
        self.graph.longest_specifier_bytes()
    }

    fn take_compiled(&mut self) -> Compiled {
        self.sources.compiled.take()
    }

    fn module(&self, name: &str) -> Option<Module> {
        if let Some(key) = name.strip_prefix(BRIDGE) {
            let (exports, first) = self.bridges.get(key)?;
            return Some(Module::Bridge { exports: exports.clone(), first: *first });
        }
        let module = self.graph.module(self.keys.get(name)?)?;
        Some(Module::Source(Code::Module(Arc::clone(module))))
    }

    fn script(&self, text: String) -> Code {
        Code::Script(self.sources.cache.script(text))
    }

    fn library(
        &mut self,
        filename: &str,
        source: &SourceText,
        language: Language,
        hidden: &[String],
        room_bytes: usize,
    ) -> Result<(String, Code), Unlinked> {
        let name = engine_name(filename);
        let compiled = well_formed(source)
            .and_then(|text| self.sources.cache.library(&name, text, language, hidden, room_bytes));
        let module = compiled.map_err(|error| unlinked(LinkError::of_text(filename, error)))?;
        self.sources.count(&module);
        self.libraries.insert(name.clone(), Arc::clone(&module));
        Ok((name, Code::Module(module)))
    }

    fn compiled(&self, file: &str) -> Option<&Arc<CompiledModule>> {
        match self.keys.get(file) {
            Some(key) => self.graph.module(key),
            None => self.libraries.get(file),
        }
    }

    fn files(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.keys.keys().chain(self.libraries.keys()).map(String::as_str))
    }

    fn importable(&self) -> Vec<String> {
        importable(self.bridges.keys(), self.sources.modules.keys())
    }
}

/// The specifiers of bridges, then of modules.
pub(super) fn importable<'k>(
    bridges: impl Iterator<Item = &'k String>,
    modules: impl Iterator<Item = &'k String>,
) -> Vec<String> {
    let mut bridges: Vec<String> = bridges.cloned().collect();
    let mut modules: Vec<String> = modules.map(|key| format!("./{key}")).collect();
    bridges.sort_unstable();
    modules.sort_unstable();
    bridges.append(&mut modules);
    bridges
}

/// A label in the form of the engine's C strings, and without the sign by which [`shown`] knows a generation.
pub(super) fn engine_name(label: &str) -> String {
    label.replace('\0', "\u{2400}").replace(GENERATION, "\u{2404}")
}

/// Stands before and after the number in the name of a cell, or of a module that was replaced: several files of a
/// session may have one label.
pub(crate) const GENERATION: char = '\u{4}';

/// The number before the label of a file, which tells it from others of that label.
pub(super) fn number_of(file: &str) -> Option<u32> {
    let (number, _) = file.strip_prefix(GENERATION)?.split_once(GENERATION)?;
    number.parse().ok()
}

/// The label of a file, without what tells it from others of that label.
pub(crate) fn shown(file: &str) -> &str {
    let rest = file.strip_prefix(GENERATION).and_then(|rest| rest.split_once(GENERATION));
    rest.map_or(file, |(_, label)| label)
}

/// Checks the text of a library, as an extension's `compile` reads it, and runs nothing. The error has the place.
///
/// Takes about 200 µs for 50 lines, and at most 128 MiB.
///
/// # Errors
/// The first error of the text, or a RangeError if it takes too much memory.
pub fn check_library(
    filename: &str,
    source: &SourceText,
    language: Language,
) -> Result<(), Box<ExecutionError>> {
    const MOST_BYTES: usize = 128 << 20;
    let compiled =
        well_formed(source).and_then(|text| compile_library(text, language, &[], MOST_BYTES));
    let Err(error) = compiled else { return Ok(()) };
    Err(match unlinked(LinkError::of_text(filename, error)) {
        Unlinked::Error(error) => error,
        Unlinked::Memory(module) => Box::new(ExecutionError {
            name: "RangeError".to_owned(),
            message: "the source takes too much memory to compile".to_owned(),
            filename: Some(module.filename),
            ..ExecutionError::default()
        }),
    })
}

/// The text of a source, unless it has a lone surrogate.
pub(super) fn well_formed(source: &SourceText) -> Result<&str, CompileError> {
    match source.lone_surrogate {
        None => Ok(&source.text),
        Some(at) => {
            let position = position_of(&source.text, at);
            let message = "The source has a lone surrogate, which is no character";
            Err(CompileError::new(message, position))
        }
    }
}

/// The error of a dynamic import in the body of a function or in a library.
pub(super) fn no_import(specifier: &str) -> Unlinked {
    let shown = bounded(specifier.to_owned(), SHOWN_SPECIFIER);
    let message = format!("import() is not available here: use require('{shown}')");
    let name = "Error".to_owned();
    Unlinked::Error(Box::new(ExecutionError { name, message, ..ExecutionError::default() }))
}

pub(super) fn unlinked(error: LinkError) -> Unlinked {
    if let Some(needed_bytes) = error.needed_bytes {
        let filename = bounded(error.filename, SHOWN_FILENAME);
        return Unlinked::Memory(Box::new(Oversized {
            filename,
            needed_bytes: needed_bytes as u64,
        }));
    }
    Unlinked::Error(Box::new(ExecutionError {
        name: error.name.to_owned(),
        message: bounded(error.message, MESSAGE_LIMIT),
        stack: None,
        specifier: error.specifier.map(|specifier| bounded(specifier, MESSAGE_LIMIT)),
        filename: Some(bounded(error.filename, MESSAGE_LIMIT)),
        line: error.position.map(|position| position.line),
        column: error.position.map(|position| position.column),
        cause: None,
        is_failure: false,
    }))
}

/// The line and column of a place counted in UTF-16 code units.
pub(super) fn position_of(text: &str, utf16_offset: usize) -> Position {
    let (mut line, mut column, mut at) = (1, 1, 0);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if at >= utf16_offset {
            break;
        }
        at += char.len_utf16();
        let ends_line = match char {
            '\n' | '\u{2028}' | '\u{2029}' => true,
            '\r' => chars.peek() != Some(&'\n'),
            _ => false,
        };
        if ends_line {
            (line, column) = (line + 1, 1);
        } else {
            column += u32::try_from(char.len_utf16()).unwrap_or(1);
        }
    }
    Position { line, column }
}
