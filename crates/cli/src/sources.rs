//! The sources of a run: the file, and the folder of modules.
//!
//! In: paths. Out: texts, with the names that they have in errors and imports.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Component, Path},
};

use isolane::Language;

use crate::exit::Ended;

/// The endings of files that are handed over.
const ENDINGS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// The most modules that a folder may have.
const MOST_MODULES: usize = 10_000;

/// The entry and the modules.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) entry: String,
    /// The name of the entry, which is its place among the modules.
    pub(crate) filename: String,
    pub(crate) language: Language,
    /// By relative specifier.
    pub(crate) modules: BTreeMap<String, String>,
}

impl Sources {
    /// Reads the file, `-` for stdin. `modules` are the sources of the folder.
    pub(crate) fn read(
        file: &Path,
        folder: Option<&Path>,
        mut modules: BTreeMap<String, String>,
    ) -> Result<Self, Ended> {
        let entry = text(file)?;
        let is_stdin = file == Path::new("-");
        let filename = if is_stdin { "<stdin>".to_owned() } else { name(file, folder) };
        modules.remove(&format!("./{filename}"));
        Ok(Self { entry, language: language(file), filename, modules })
    }

    /// The text of a file by its name in errors.
    pub(crate) fn text(&self, filename: &str) -> Option<&str> {
        if filename == self.filename {
            return Some(&self.entry);
        }
        self.modules.get(&format!("./{filename}")).map(String::as_str)
    }
}

/// The sources of a folder, by relative specifier.
pub(crate) fn folder(folder: &Path) -> Result<BTreeMap<String, String>, Ended> {
    let mut modules = BTreeMap::new();
    add(folder, "./", &mut modules)?;
    Ok(modules)
}

/// The text of a file, `-` for stdin.
pub(crate) fn text(file: &Path) -> Result<String, Ended> {
    if file == Path::new("-") { read_stdin() } else { read(file) }
}

fn read_stdin() -> Result<String, Ended> {
    let mut bytes = Vec::new();
    io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Ended::misuse(format!("cannot read stdin: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Ended::misuse("stdin is no UTF-8"))
}

/// The text of a file, which a message names if it cannot be read.
pub(crate) fn read(file: &Path) -> Result<String, Ended> {
    fs::read_to_string(file)
        .map_err(|error| Ended::misuse(format!("cannot read {}: {error}", file.display())))
}

pub(crate) fn language(file: &Path) -> Language {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("js" | "mjs" | "cjs") => Language::JavaScript,
        _ => Language::TypeScript,
    }
}

/// The path below the folder, or as it was given if it begins at the current one; else the last part.
fn name(file: &Path, folder: Option<&Path>) -> String {
    let last = || file.file_name().map(|name| name.to_string_lossy().into_owned());
    let below = folder.and_then(|folder| {
        let (file, folder) = (file.canonicalize().ok()?, folder.canonicalize().ok()?);
        file.strip_prefix(folder).ok().and_then(slashed)
    });
    let given = || if folder.is_none() { slashed(file) } else { None };
    below.or_else(given).or_else(last).unwrap_or_default()
}

/// A path of names alone, with slashes.
fn slashed(path: &Path) -> Option<String> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!names.is_empty()).then(|| names.join("/"))
}

/// Adds the sources of a folder. Folders of packages, hidden files and links are left out.
fn add(folder: &Path, prefix: &str, modules: &mut BTreeMap<String, String>) -> Result<(), Ended> {
    let refused =
        |error: io::Error| Ended::misuse(format!("cannot read {}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let kind = entry.file_type().map_err(refused)?;
        let path = entry.path();
        if kind.is_dir() {
            add(&path, &format!("{prefix}{name}/"), modules)?;
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if kind.is_file() && ENDINGS.contains(&ending) && !name.ends_with(".d.ts") {
            modules.insert(format!("{prefix}{name}"), read(&path)?);
            if modules.len() > MOST_MODULES {
                let message = format!("--modules: more than {MOST_MODULES} sources");
                return Err(Ended::misuse(message));
            }
        }
    }
    Ok(())
}
