//! Compiled modules that are kept, so that a second run of the same source parses nothing.
//!
//! In: a module's label, language and text. Out: the module that was compiled of exactly these before, with its
//! bytecode. The key is the whole text, which is compared and not only hashed. The size is bounded in bytes; the least
//! recently used module goes first.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    compile::{
        CompileError, CompiledModule, cell::CompiledCell, compile, compile_body, compile_cell,
        compile_library,
    },
    program::Script,
};
use crate::{data::source::Language, os::sync::Mutex};

pub(crate) struct Cache {
    limit_bytes: usize,
    hasher: RandomState,
    kept: Mutex<Kept>,
    /// How many modules were too large to keep.
    too_large: AtomicU64,
}

#[derive(Default)]
struct Kept {
    modules: HashMap<u64, Vec<Entry>>,
    scripts: HashMap<String, Arc<Script>>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    label: Box<str>,
    language: Language,
    erase: Vec<String>,
    content: Content,
    bytes: usize,
    used: u64,
}

#[derive(Clone)]
enum Content {
    Module(Arc<CompiledModule>),
    Cell(Arc<CompiledCell>),
}

impl Content {
    fn module(&self) -> &Arc<CompiledModule> {
        match self {
            Self::Module(module) => module,
            Self::Cell(cell) => &cell.module,
        }
    }
}

/// A label, a text, its language, and the names that are types, or the other names of [`compile_body`] and
/// [`compile_library`].
type Key<'k> = (&'k str, &'k str, Language, &'k [String]);

/// In place of the label of a cell, which is not in its bytecode. No module has this label.
const CELL: &str = "\u{4}";

/// In front of the label of a body and of that of a library. No label begins so.
const BODY: char = '\u{5}';
const LIBRARY: char = '\u{6}';

/// Number of scripts kept. Each list of global names that callers use has one script.
const SCRIPTS: usize = 1_000;

impl Cache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            hasher: RandomState::new(),
            kept: Mutex::default(),
            too_large: AtomicU64::new(0),
        }
    }

    /// The compiled module, from the cache or compiled now. In both cases it fails if compiling takes more than
    /// `room_bytes`.
    pub(crate) fn module(
        &self,
        label: &str,
        text: &str,
        language: Language,
        erase: &[String],
        room_bytes: usize,
    ) -> Result<Arc<CompiledModule>, CompileError> {
        let compile = || Ok(Content::Module(Arc::new(compile(text, language, erase, room_bytes)?)));
        let content = self.content((label, text, language, erase), room_bytes, compile)?;
        Ok(Arc::clone(content.module()))
    }

    /// As `module`, of the body of a function ([`compile_body`]).
    pub(crate) fn body(
        &self,
        label: &str,
        text: &str,
        language: Language,
        names: &[String],
        room_bytes: usize,
    ) -> Result<Arc<CompiledModule>, CompileError> {
        let compile =
            || Ok(Content::Module(Arc::new(compile_body(text, language, names, room_bytes)?)));
        let label = format!("{BODY}{label}");
        let content = self.content((&label, text, language, names), room_bytes, compile)?;
        Ok(Arc::clone(content.module()))
    }

    /// As `module`, of a library ([`compile_library`]).
    pub(crate) fn library(
        &self,
        label: &str,
        text: &str,
        language: Language,
        hidden: &[String],
        room_bytes: usize,
    ) -> Result<Arc<CompiledModule>, CompileError> {
        let compile =
            || Ok(Content::Module(Arc::new(compile_library(text, language, hidden, room_bytes)?)));
        let label = format!("{LIBRARY}{label}");
        let content = self.content((&label, text, language, hidden), room_bytes, compile)?;
        Ok(Arc::clone(content.module()))
    }

    /// As `module`, of a cell of any session.
    pub(crate) fn cell(
        &self,
        text: &str,
        language: Language,
        erase: &[String],
        room_bytes: usize,
    ) -> Result<Arc<CompiledCell>, CompileError> {
        let compile =
            || Ok(Content::Cell(Arc::new(compile_cell(text, language, erase, room_bytes)?)));
        match self.content((CELL, text, language, erase), room_bytes, compile)? {
            Content::Cell(cell) => Ok(cell),
            // No module has that label.
            Content::Module(_) => Ok(Arc::new(compile_cell(text, language, erase, room_bytes)?)),
        }
    }

    fn content(
        &self,
        key: Key<'_>,
        room_bytes: usize,
        compile: impl FnOnce() -> Result<Content, CompileError>,
    ) -> Result<Content, CompileError> {
        let hash = self.hasher.hash_one(key);
        if let Some(known) = self.find(hash, key) {
            // A run's limits do not depend on modules that others compiled before.
            let takes_bytes = known.module().takes_bytes();
            let fits = takes_bytes <= room_bytes;
            return if fits { Ok(known) } else { Err(CompileError::out_of_memory(takes_bytes)) };
        }
        let content = compile()?;
        self.keep(hash, key, &content);
        Ok(content)
    }

    /// A script by its text. Its bytecode is made once.
    pub(crate) fn script(&self, text: String) -> Arc<Script> {
        let mut kept = self.kept.lock();
        if let Some(known) = kept.scripts.get(&text) {
            return Arc::clone(known);
        }
        let script = Arc::new(Script::new(text.clone()));
        if kept.scripts.len() >= SCRIPTS {
            kept.scripts.clear();
        }
        kept.scripts.insert(text, Arc::clone(&script));
        script
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.kept.lock().bytes
    }

    /// How many modules were compiled and not kept, because each takes more than half of the cache.
    pub(crate) fn too_large(&self) -> u64 {
        self.too_large.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        *self.kept.lock() = Kept::default();
    }

    fn find(&self, hash: u64, (label, text, language, erase): Key<'_>) -> Option<Content> {
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let clock = kept.clock;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let entry = kept.modules.get_mut(&hash)?.iter_mut().find(|entry| {
            *entry.label == *label
                && entry.language == language
                && entry.erase == erase
                && entry.content.module().text() == text
        })?;
        entry.used = clock;
        Some(entry.content.clone())
    }

    fn keep(&self, hash: u64, (label, _, language, erase): Key<'_>, content: &Content) {
        // The bytecode comes later and is about as large as the text.
        let module = content.module();
        let bytes = module.size_bytes() + module.code().len() + 512;
        if bytes > self.limit_bytes / 2 {
            self.too_large.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut kept = self.kept.lock();
        let used = kept.clock;
        kept.bytes += bytes;
        kept.modules.entry(hash).or_default().push(Entry {
            label: label.into(),
            language,
            erase: erase.to_vec(),
            content: content.clone(),
            bytes,
            used,
        });
        if kept.bytes > self.limit_bytes {
            kept.shrink(self.limit_bytes / 4 * 3);
        }
    }
}

impl Kept {
    /// Drops the least recently used modules until at most `to` bytes are kept.
    fn shrink(&mut self, to: usize) {
        let mut ages: Vec<(u64, usize)> =
            self.modules.values().flatten().map(|entry| (entry.used, entry.bytes)).collect();
        ages.sort_unstable();
        let mut left = self.bytes;
        let oldest_kept = ages
            .into_iter()
            .find(|(_, bytes)| {
                let keep = left <= to;
                left -= if keep { 0 } else { *bytes };
                keep
            })
            .map_or(u64::MAX, |(used, _)| used);
        self.modules.retain(|_, entries| {
            entries.retain(|entry| entry.used >= oldest_kept);
            !entries.is_empty()
        });
        self.bytes = self.modules.values().flatten().map(|entry| entry.bytes).sum();
    }
}
