//! Modules of JavaScript among the files of a notebook.
//!
//! In: the code of a cell. Out: the modules that it imports, and those that they import, as they are in the files now; of
//! these the ones that the session does not have, or has otherwise. A file that cannot be read is a module that is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use isolane::{Language, requested_modules};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::{JsOptions, files::Files, text::words::grouped};

/// The most modules of a session.
const MOST_MODULES: usize = 1000;

/// The most bytes of their texts together.
const MOST_BYTES: usize = 16 << 20;

/// The modules that a session has of the files.
#[derive(Debug)]
pub(super) struct Modules {
    files: Arc<Files>,
    language: Language,
    /// Those of the host, which go before files.
    given: Arc<BTreeSet<String>>,
    known: Arc<BTreeMap<String, Module>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Module {
    text: Arc<str>,
    /// The paths that it may import.
    imports: Vec<String>,
}

/// The modules that have changed since the last cell, by their paths; `None` for a file that is gone.
#[derive(Debug)]
pub(super) struct Changes(BTreeMap<String, Option<Module>>);

impl Changes {
    pub(super) fn added(&self) -> BTreeMap<String, String> {
        let text = |(path, module): (&String, &Option<Module>)| {
            Some((key_of(path), module.as_ref()?.text.to_string()))
        };
        self.0.iter().filter_map(text).collect()
    }

    pub(super) fn removed(&self) -> Vec<String> {
        let gone = self.0.iter().filter(|(_, module)| module.is_none());
        gone.map(|(path, _)| key_of(path)).collect()
    }
}

impl Modules {
    pub(super) fn new(files: Arc<Files>, options: &JsOptions) -> Self {
        let given = options.modules.keys().filter_map(|key| joined("", key));
        Self {
            files,
            language: options.language,
            given: Arc::new(given.collect()),
            known: Arc::default(),
        }
    }

    /// The modules that the session needs before a cell with this code.
    ///
    /// # Errors
    /// The reason why the cell cannot run: there are too many modules.
    pub(super) async fn changes(&self, code: &str) -> Result<Option<Changes>, String> {
        // Most cells import nothing.
        if !code.contains("import") && !code.contains("export") {
            return Ok(None);
        }
        let stop = CancellationToken::new();
        let _guard = stop.clone().drop_guard();
        let code = code.to_owned();
        let search = Search {
            files: Arc::clone(&self.files),
            language: self.language,
            given: Arc::clone(&self.given),
            known: Arc::clone(&self.known),
            found: BTreeMap::new(),
            stop,
        };
        let changes = spawn_blocking(move || search.changes(&code)).await;
        let changes = changes.unwrap_or_else(|_| Err("its modules cannot be read".to_owned()))?;
        Ok(Some(changes).filter(|changes| !changes.0.is_empty()))
    }

    /// The session has them.
    pub(super) fn keep(&mut self, changes: Changes) {
        let known = Arc::make_mut(&mut self.known);
        for (path, module) in changes.0 {
            match module {
                Some(module) => drop(known.insert(path, module)),
                None => drop(known.remove(&path)),
            }
        }
    }
}

/// A search in the files, on a thread that may block.
struct Search {
    files: Arc<Files>,
    language: Language,
    given: Arc<BTreeSet<String>>,
    known: Arc<BTreeMap<String, Module>>,
    /// Each path that was asked for: its module, if there is one.
    found: BTreeMap<String, Option<Module>>,
    stop: CancellationToken,
}

impl Search {
    fn changes(mut self, code: &str) -> Result<Changes, String> {
        let mut wanted = imports("", code, self.language);
        while let Some(path) = wanted.pop() {
            if self.found.contains_key(&path)
                || self.given.contains(&path)
                || self.stop.is_cancelled()
            {
                continue;
            }
            let module = self.read(&path);
            if let Some(module) = &module {
                wanted.extend(module.imports.iter().cloned());
            }
            self.found.insert(path, module);
            self.check()?;
        }
        let known = &self.known;
        let has_changed =
            |(path, module): &(String, Option<Module>)| known.get(path) != module.as_ref();
        Ok(Changes(self.found.into_iter().filter(has_changed).collect()))
    }

    fn read(&self, path: &str) -> Option<Module> {
        let text = self.files.text(path, &self.stop)?;
        let known = self.known.get(path).filter(|known| *known.text == *text);
        if let Some(known) = known {
            return Some(known.clone());
        }
        let is_typescript = matches!(path.rsplit_once('.'), Some((_, "ts" | "mts")));
        let language = if is_typescript { Language::TypeScript } else { self.language };
        let imports = imports(path, &text, language);
        Some(Module { text: text.into(), imports })
    }

    fn check(&self) -> Result<(), String> {
        let kept = self.known.iter().filter(|(path, _)| !self.found.contains_key(*path));
        let found = self.found.values().flatten();
        let texts = kept.map(|(_, module)| module).chain(found).map(|module| module.text.len());
        let (count, bytes) = texts.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
        let tried = self.found.len();
        if count > MOST_MODULES || tried > 4 * MOST_MODULES {
            return Err(format!(
                "the files that were imported are more than {}",
                grouped(MOST_MODULES as u64)
            ));
        }
        if bytes > MOST_BYTES {
            let mib = MOST_BYTES >> 20;
            return Err(format!("the files that were imported have more than {mib} MiB together"));
        }
        Ok(())
    }
}

/// The name of a file among the modules of a session.
fn key_of(path: &str) -> String {
    format!("./{path}")
}

/// The paths of the files that a text at a path may import.
fn imports(path: &str, text: &str, language: Language) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut paths = Vec::new();
    for specifier in requested_modules(text, language) {
        let is_relative = specifier.starts_with("./") || specifier.starts_with("../");
        let Some(path) = joined(folder, &specifier).filter(|_| is_relative) else { continue };
        // A name of JavaScript may mean a file of TypeScript.
        let written = [(".js", ".ts"), (".mjs", ".mts")].into_iter();
        let other = written.filter_map(|(js, ts)| Some(format!("{}{ts}", path.strip_suffix(js)?)));
        paths.extend(other);
        paths.push(path);
    }
    paths
}

/// A specifier in a folder as a path from the root; `None` if it leads out.
fn joined(folder: &str, specifier: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in specifier.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty() && !specifier.ends_with('/')).then(|| parts.join("/"))
}
