//! The modules of a session: those that its host gave, and cells, which come one by one.
//!
//! In: cells, updates of the host's modules and bridges, and the isolate's questions. Out: answers as those of any
//! program. Every file has a name of its own in the engine: a number stands before the label of a cell, and before that
//! of a module or bridge which was replaced, so that the engine evaluates it anew. [`shown`](super::program::shown)
//! takes the number off. `cells` forgets the cells of which nothing lives.

mod cells;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
};

use self::cells::Cells;
use super::{
    cache::Cache,
    compile::{CompileError, CompiledModule, cell::CompiledCell},
    link::{
        graph::{Graph, LinkError},
        specifier::{self, ModuleKey, Resolved, Specifiers},
    },
    program::{
        BRIDGE, Code, Compiled, GENERATION, Linker, Module, Script, Unlinked, engine_name,
        importable, no_import, number_of, unlinked, well_formed,
    },
    session_request::UpdateRequest,
};
use crate::data::{
    outcome::Position,
    portable::{Input, Output, Portable, portable},
    source::{Language, SourceText},
};

/// A bridged module.
#[derive(Clone)]
struct Bridge {
    exports: Vec<String>,
    /// The index of the first value among all values that the session was given.
    first: usize,
}

/// A cell, linked and ready to be loaded under the name of the entry.
#[derive(Clone, Debug)]
pub(crate) struct LinkedCell {
    pub(crate) compiled: Arc<CompiledCell>,
    /// The requests to evaluate before it, with the engine's names of their modules.
    pub(crate) imports: Vec<(usize, String)>,
}

/// The program of a session.
#[derive(Clone)]
pub(crate) struct SessionProgram {
    cache: Arc<Cache>,
    language: Language,
    graph: Graph,
    modules: HashMap<String, SourceText>,
    bridges: HashMap<String, Bridge>,
    /// How many values the session was given.
    values: usize,
    /// All that the engine may know by now, by its name there. Functions of replaced modules may live on.
    files: HashMap<String, File>,
    /// The numbers of what was replaced.
    generations: HashMap<Resolved, u32>,
    /// The last number of a cell or a generation.
    number: u32,
    /// The name of the present cell, or the last.
    entry: String,
    cells: Cells,
    compiled: Compiled,
    /// As [`SessionRequest::helpers_file`](super::session_request::SessionRequest::helpers_file).
    helpers_file: Option<String>,
}

#[derive(Clone)]
struct File {
    key: ModuleKey,
    module: Arc<CompiledModule>,
    /// Whether an error that may live names a place in it.
    in_error: Cell<bool>,
    /// Whether it is a library. Its key is that of a cell, as it lives as long as code of it does.
    is_library: bool,
}

portable!(struct Bridge { exports, first });
portable!(struct File { key, module, in_error, is_library });
portable!(struct Compiled { kept_bytes, peak_bytes });

/// The parts of the program that compiling needs.
struct Sources<'s> {
    cache: &'s Cache,
    language: Language,
    modules: &'s HashMap<String, SourceText>,
    generations: &'s HashMap<Resolved, u32>,
    room_bytes: usize,
    compiled: &'s mut Compiled,
    /// The compiled modules, by key.
    made: HashMap<ModuleKey, Arc<CompiledModule>>,
}

impl SessionProgram {
    /// A program without anything.
    pub(crate) fn new(cache: &Arc<Cache>, language: Language) -> Self {
        Self {
            cache: Arc::clone(cache),
            language,
            graph: Graph::new("", Specifiers::default()),
            modules: HashMap::new(),
            bridges: HashMap::new(),
            values: 0,
            files: HashMap::new(),
            generations: HashMap::new(),
            number: 0,
            entry: String::new(),
            cells: Cells::default(),
            compiled: Compiled::default(),
            helpers_file: None,
        }
    }

    /// The same with functions of a system in that file.
    pub(crate) fn with_helpers(self, helpers_file: Option<&String>) -> Self {
        Self { helpers_file: helpers_file.cloned(), ..self }
    }

    /// Writes everything but the cache and the name of the helpers' file.
    pub(crate) fn write(&self, out: &mut Output) {
        self.language.write(out);
        self.graph.write(out);
        self.modules.write(out);
        self.bridges.write(out);
        self.values.write(out);
        self.files.write(out);
        self.generations.write(out);
        self.number.write(out);
        self.entry.write(out);
        self.cells.write(out);
        self.compiled.write(out);
    }

    /// The program that was written.
    pub(crate) fn read(input: &mut Input, cache: &Arc<Cache>) -> Option<Self> {
        Some(Self {
            cache: Arc::clone(cache),
            language: Portable::read(input)?,
            graph: Portable::read(input)?,
            modules: Portable::read(input)?,
            bridges: Portable::read(input)?,
            values: Portable::read(input)?,
            files: Portable::read(input)?,
            generations: Portable::read(input)?,
            number: Portable::read(input)?,
            entry: Portable::read(input)?,
            cells: Portable::read(input)?,
            compiled: Portable::read(input)?,
            helpers_file: None,
        })
    }

    /// Adds, replaces and takes away modules and bridges. The values of the update are the next ones that the session
    /// is given.
    pub(crate) fn update(&mut self, update: &UpdateRequest) {
        let mut replaced = HashSet::new();
        let normalized = |key: &String| specifier::normalize_module_key(key).ok();
        let given = update.modules.iter().map(|(key, source)| (key, Some(source)));
        for (key, source) in given.chain(update.removed_modules.iter().map(|key| (key, None))) {
            let Some(key) = normalized(key) else { continue };
            replaced.insert(Resolved::Module(ModuleKey::Module(key.clone())));
            match source {
                Some(source) => drop(self.modules.insert(key, source.clone())),
                None => drop(self.modules.remove(&key)),
            }
        }
        self.graph.change_globals(&update.globals, &update.removed_globals);
        let mut first = self.values + update.globals.len();
        for (key, exports) in &update.imports {
            replaced.insert(Resolved::Bridge(key.clone()));
            self.bridges.insert(key.clone(), Bridge { exports: exports.clone(), first });
            first += exports.len();
        }
        self.values = first;
        for key in &update.removed_imports {
            replaced.insert(Resolved::Bridge(key.clone()));
            self.bridges.remove(key);
        }
        let modules = self.modules.keys().cloned();
        let bridges =
            self.bridges.iter().map(|(key, bridge)| (key.clone(), bridge.exports.clone()));
        let forgotten = self.graph.replace(modules, bridges, &replaced);
        self.number += 1;
        let forgotten = forgotten.into_iter().map(Resolved::Module);
        for stale in replaced.into_iter().chain(forgotten) {
            self.generations.insert(stale, self.number);
        }
    }

    /// The values that the session was given by all updates.
    pub(crate) fn values(&self) -> usize {
        self.values
    }

    /// Compiles a cell and everything that it imports, and checks every import. It is the entry from now on.
    pub(crate) fn link_cell(
        &mut self,
        source: &SourceText,
        filename: &str,
        language: Language,
        room_bytes: usize,
    ) -> Result<LinkedCell, Unlinked> {
        let number = self.number + 1;
        let label = engine_name(filename);
        let before = self.compiled;
        let mut linked = None;
        let mut sources = Sources {
            cache: &self.cache,
            language: self.language,
            modules: &self.modules,
            generations: &self.generations,
            room_bytes,
            compiled: &mut self.compiled,
            made: HashMap::new(),
        };
        let mut compile = |key: &ModuleKey, erase: &[String]| match key {
            ModuleKey::Cell(_) => {
                let cell = sources.cell(key, source, language, erase)?;
                Ok(Arc::clone(&linked.insert(cell).module))
            }
            _ => sources.module(key, erase),
        };
        let extended = self.graph.extend_by_cell(number, &label, &mut compile);
        let made = sources.made;
        if let Err(error) = extended {
            // Nothing of it is kept.
            self.compiled.kept_bytes = before.kept_bytes;
            return Err(unlinked(error));
        }
        self.number = number;
        self.entry = with_number(number, &label);
        let compiled = linked.expect("the graph has compiled the cell");
        let import = |&request: &usize| {
            let specifier = &compiled.module.record().requests.get(request)?.specifier;
            let resolved = self.graph.resolve(&ModuleKey::Cell(number), specifier)?;
            Some((request, self.name(&resolved)))
        };
        let imports = compiled.plan.imports.iter().filter_map(import).collect();
        self.cells.bytes += compiled.module.size_bytes();
        self.keep(made);
        Ok(LinkedCell { compiled, imports })
    }

    /// Forgets the cells from that number on, whose code the engine has no more.
    pub(crate) fn forget_cells(&mut self, from: u32) {
        let undone = |file: &File| matches!(file.key, ModuleKey::Cell(number) if number >= from);
        let names =
            self.files.iter().filter(|(_, file)| undone(file)).map(|(name, _)| name.clone());
        for name in names.collect::<Vec<_>>() {
            self.forget_cell(&name);
        }
    }

    /// The number that the next cell will have.
    pub(crate) fn next_number(&self) -> u32 {
        self.number + 1
    }

    /// Forgets everything but what the host gave. The engine is as new.
    pub(crate) fn reset(&mut self) {
        let modules = self.modules.keys().cloned();
        let bridges =
            self.bridges.iter().map(|(key, bridge)| (key.clone(), bridge.exports.clone()));
        let mut graph = Graph::new("", Specifiers::new("", modules, bridges));
        graph.change_globals(self.graph.globals(), &[]);
        self.graph = graph;
        self.files.clear();
        self.cells = Cells::default();
        self.compiled = Compiled::default();
    }

    /// A program of the same kind without anything.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(&self.cache, self.language)
    }

    /// Gives the modules that were compiled their names in the engine.
    fn keep(&mut self, made: HashMap<ModuleKey, Arc<CompiledModule>>) {
        for (key, module) in made {
            let name = self.name(&Resolved::Module(key.clone()));
            let in_error = Cell::new(false);
            self.files.insert(name, File { key, module, in_error, is_library: false });
        }
    }

    /// The engine's name of a file that an import means now.
    fn name(&self, resolved: &Resolved) -> String {
        name(&self.generations, &self.graph, resolved)
    }
}

/// The engine's name of a file.
fn name(generations: &HashMap<Resolved, u32>, graph: &Graph, resolved: &Resolved) -> String {
    let label = match resolved {
        Resolved::Module(key) => engine_name(&graph.label(key)),
        Resolved::Bridge(key) => format!("{BRIDGE}{key}"),
    };
    match (resolved, generations.get(resolved)) {
        (Resolved::Module(ModuleKey::Cell(number)), _) | (_, Some(number)) => {
            with_number(*number, &label)
        }
        (_, None) => label,
    }
}

fn with_number(number: u32, label: &str) -> String {
    format!("{GENERATION}{number}{GENERATION}{label}")
}

impl Sources<'_> {
    fn module(
        &mut self,
        key: &ModuleKey,
        erase: &[String],
    ) -> Result<Arc<CompiledModule>, CompileError> {
        static EMPTY: SourceText = SourceText { text: String::new(), lone_surrogate: None };
        let ModuleKey::Module(path) = key else {
            return Err(CompileError::new("No module", Position { line: 1, column: 1 }));
        };
        let typescript = specifier::is_typescript_name(path);
        let language = if typescript { Language::TypeScript } else { self.language };
        let source = self.modules.get(path).unwrap_or(&EMPTY);
        well_formed(source)?;
        let label = engine_name(specifier::label(path));
        // The bytecode has the engine's name in it.
        let label = match self.generations.get(&Resolved::Module(key.clone())) {
            Some(number) => with_number(*number, &label),
            None => label,
        };
        let room_bytes = self.room_bytes.saturating_sub(self.compiled.kept_bytes);
        let module = self.cache.module(&label, &source.text, language, erase, room_bytes)?;
        self.count(key, &module);
        Ok(module)
    }

    fn cell(
        &mut self,
        key: &ModuleKey,
        source: &SourceText,
        language: Language,
        erase: &[String],
    ) -> Result<Arc<CompiledCell>, CompileError> {
        well_formed(source)?;
        let room_bytes = self.room_bytes.saturating_sub(self.compiled.kept_bytes);
        let cell = self.cache.cell(&source.text, language, erase, room_bytes)?;
        self.count(key, &cell.module);
        Ok(cell)
    }

    fn count(&mut self, key: &ModuleKey, module: &Arc<CompiledModule>) {
        let Compiled { kept_bytes, peak_bytes } = *self.compiled;
        *self.compiled = Compiled {
            kept_bytes: kept_bytes + module.size_bytes(),
            peak_bytes: peak_bytes.max(kept_bytes + module.takes_bytes()),
        };
        self.made.insert(key.clone(), Arc::clone(module));
    }
}

impl Linker for SessionProgram {
    fn entry(&self) -> &str {
        &self.entry
    }

    fn resolve(
        &mut self,
        importer: &str,
        specifier: &str,
        room_bytes: usize,
    ) -> Result<String, Unlinked> {
        if self.files.get(importer).is_some_and(|file| file.is_library) {
            return Err(no_import(specifier));
        }
        let importer = self.files.get(importer).map_or(ModuleKey::Entry, |file| file.key.clone());
        let before = self.compiled;
        let mut sources = Sources {
            cache: &self.cache,
            language: self.language,
            modules: &self.modules,
            generations: &self.generations,
            room_bytes,
            compiled: &mut self.compiled,
            made: HashMap::new(),
        };
        let mut compile = |key: &ModuleKey, erase: &[String]| sources.module(key, erase);
        let resolved = self.graph.import(&importer, specifier, &mut compile);
        let made = sources.made;
        let resolved = resolved.map_err(|error| {
            // Nothing of it is kept.
            self.compiled.kept_bytes = before.kept_bytes;
            unlinked(error)
        })?;
        self.keep(made);
        Ok(self.name(&resolved))
    }

    fn longest_specifier_bytes(&self) -> usize {
        self.graph.longest_specifier_bytes()
    }

    fn is_of_helpers(&self, file: &str) -> bool {
        self.helpers_file.as_deref() == Some(super::program::shown(file))
    }

    fn take_compiled(&mut self) -> Compiled {
        mem::take(&mut self.compiled)
    }

    fn module(&self, name: &str) -> Option<Module> {
        let label = super::program::shown(name);
        if let Some(key) = label.strip_prefix(BRIDGE) {
            let Bridge { exports, first } = self.bridges.get(key)?.clone();
            return Some(Module::Bridge { exports, first });
        }
        let file = self.files.get(name)?;
        Some(Module::Source(Code::Module(Arc::clone(&file.module))))
    }

    fn script(&self, text: String) -> Code {
        Code::Script(Arc::new(Script::new(text)))
    }

    /// Each has a number as a cell has: functions of one that was replaced live on, with their own text.
    fn library(
        &mut self,
        filename: &str,
        source: &SourceText,
        language: Language,
        hidden: &[String],
        room_bytes: usize,
    ) -> Result<(String, Code), Unlinked> {
        let number = self.number + 1;
        let name = with_number(number, &engine_name(filename));
        let Compiled { kept_bytes, peak_bytes } = self.compiled;
        let room_bytes = room_bytes.saturating_sub(kept_bytes);
        let compiled = well_formed(source)
            .and_then(|text| self.cache.library(&name, text, language, hidden, room_bytes));
        let module = compiled.map_err(|error| unlinked(LinkError::of_text(filename, error)))?;
        self.number = number;
        self.compiled = Compiled {
            kept_bytes: kept_bytes + module.size_bytes(),
            peak_bytes: peak_bytes.max(kept_bytes + module.takes_bytes()),
        };
        self.cells.bytes += module.size_bytes();
        let (key, in_error) = (ModuleKey::Cell(number), Cell::new(false));
        let file = File { key, module: Arc::clone(&module), in_error, is_library: true };
        self.files.insert(name.clone(), file);
        Ok((name, Code::Module(module)))
    }

    fn compiled(&self, file: &str) -> Option<&Arc<CompiledModule>> {
        self.files.get(file).map(|file| &file.module)
    }

    /// The places in a cell that is forgotten are those in the text that the engine had.
    fn knows(&self, file: &str) -> bool {
        self.files.contains_key(file) || self.cells.forgotten(file)
    }

    fn note_error(&self, file: &str) {
        if let Some(file) = self.files.get(file) {
            file.in_error.set(true);
        }
    }

    fn files(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.files.keys().map(String::as_str))
    }

    fn importable(&self) -> Vec<String> {
        importable(self.bridges.keys(), self.modules.keys())
    }

    fn session(&mut self) -> Option<&mut SessionProgram> {
        Some(self)
    }
}
