//! Specifiers and the modules that they mean.
//!
//! In: the keys of `modules` and `imports`, the entry's `filename`, and a specifier with its importer. Out: the module
//! key, the entry or the bridge that it means, or the reason why it means none. Relative specifiers
//! resolve against the importing module, bare ones among `imports`. Nothing resolves outside the caller's modules and
//! imports.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::portable::portable;

/// The reason why a key or a specifier is refused: a sentence without a subject.
pub(crate) type Reason = &'static str;

/// A module of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ModuleKey {
    /// The source that `runCode` was called with.
    Entry,
    /// A cell of a session, by its number. Nothing imports it.
    Cell(u32),
    /// An entry of `modules`, by its normalized key.
    Module(String),
}

/// The meaning of a specifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resolved {
    /// A module with source text.
    Module(ModuleKey),
    /// An entry of `imports`, by its key.
    Bridge(String),
}

/// Checks a key of `imports`: bare, or a `node:` name.
pub(crate) fn check_bridge_key(key: &str) -> Result<(), Reason> {
    if key.is_empty() {
        Err("is empty")
    } else if is_relative(key) {
        Err("is relative: give source text under modules")
    } else if key.starts_with('/') {
        Err("is absolute: use a bare name")
    } else if has_scheme(key) && key.strip_prefix("node:").is_none_or(str::is_empty) {
        Err("is a URL: use a bare name")
    } else {
        Ok(())
    }
}

/// Checks a key of `modules` and normalizes it: `./a/../b.js` is `./b.js`.
pub(crate) fn normalize_module_key(key: &str) -> Result<String, Reason> {
    if !is_relative(key) {
        return Err("is not relative: it must begin with ./");
    }
    let path = join("", key).ok_or("climbs above the root of the modules")?;
    if path.is_empty() || key.ends_with('/') {
        return Err("names a directory");
    }
    Ok(format!("./{path}"))
}

/// The name of a module in errors and stacks: its key without `./`.
pub(crate) fn label(key: &str) -> &str {
    key.strip_prefix("./").unwrap_or(key)
}

/// Whether a file name alone makes a module TypeScript.
pub(crate) fn is_typescript_name(key: &str) -> bool {
    matches!(key.rsplit_once('.'), Some((_, "ts" | "mts")))
}

/// The entry's path as a key of `modules` would spell it; none if `filename` is only a label.
pub(crate) fn entry_path(filename: &str) -> Option<String> {
    if filename.starts_with('/') || filename.starts_with('\\') || has_scheme(filename) {
        return None;
    }
    let path = join("", filename).filter(|path| !path.is_empty() && !filename.ends_with('/'))?;
    Some(format!("./{path}"))
}

/// All possible meanings of the specifiers of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specifiers {
    /// The entry's label.
    filename: String,
    entry: Option<String>,
    /// The labels of cells, with the paths at which they sit.
    cells: BTreeMap<u32, (String, Option<String>)>,
    modules: BTreeSet<String>,
    /// Bridges by key, with their export names.
    bridges: BTreeMap<String, BTreeSet<String>>,
    /// The length of the longest key, if that exceeds `LONG_BYTES`.
    most_bytes: usize,
}

/// A specifier that is longer than this and than every key means nothing. Steps up and down may make one longer than
/// the key that it means. Nobody writes so many, but code that runs can make any number of them.
const LONG_BYTES: usize = 64 << 10;

portable!(enum ModuleKey { 0: Entry, 1: Cell(number), 2: Module(key) });
portable!(enum Resolved { 0: Module(key), 1: Bridge(key) });
portable!(struct Specifiers { filename, entry, cells, modules, bridges, most_bytes });

impl Specifiers {
    /// `modules` are normalized keys; a bridge comes with the names that it exports.
    pub(crate) fn new(
        filename: &str,
        modules: impl IntoIterator<Item = String>,
        bridges: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Self {
        let bridges = bridges.into_iter().map(|(key, names)| (key, names.into_iter().collect()));
        let bridges: BTreeMap<String, BTreeSet<String>> = bridges.collect();
        let modules: BTreeSet<String> = modules.into_iter().collect();
        let longest = modules.iter().chain(bridges.keys()).map(String::len).max().unwrap_or(0);
        Self {
            filename: filename.to_owned(),
            entry: entry_path(filename),
            cells: BTreeMap::new(),
            most_bytes: longest.max(filename.len()).max(LONG_BYTES),
            modules,
            bridges,
        }
    }

    /// The same cells, with other modules and bridges.
    pub(crate) fn replaced(
        self,
        modules: impl IntoIterator<Item = String>,
        bridges: impl IntoIterator<Item = (String, Vec<String>)>,
    ) -> Self {
        Self { cells: self.cells, ..Self::new(&self.filename, modules, bridges) }
    }

    /// Adds a cell.
    pub(crate) fn add_cell(&mut self, number: u32, label: &str) {
        self.cells.insert(number, (label.to_owned(), entry_path(label)));
    }

    pub(crate) fn forget_cell(&mut self, number: u32) {
        self.cells.remove(&number);
    }

    /// The label of a cell.
    pub(crate) fn cell_label(&self, number: u32) -> &str {
        self.cells.get(&number).map(|(label, _)| label.as_str()).unwrap_or_default()
    }

    /// The key at which a file sits, or would sit.
    fn base<'k>(&'k self, importer: &'k ModuleKey) -> &'k str {
        let path = match importer {
            ModuleKey::Entry => self.entry.as_deref(),
            ModuleKey::Cell(number) => self.cells.get(number).and_then(|(_, path)| path.as_deref()),
            ModuleKey::Module(key) => Some(key.as_str()),
        };
        path.unwrap_or("./")
    }

    /// A longer specifier means nothing, whatever its text.
    pub(crate) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// The names that a bridge exports.
    pub(crate) fn bridge_exports(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.bridges.get(key)
    }

    /// Resolves `specifier` in `importer`, or returns a message with the reason why it means nothing.
    pub(crate) fn resolve(
        &self,
        importer: &ModuleKey,
        specifier: &str,
    ) -> Result<Resolved, String> {
        if specifier.len() > self.most_bytes {
            let (shown, from) = (quote(specifier), self.importer_label(importer));
            return Err(format!(
                "Cannot find module {shown} imported from {from}: the specifier is longer than any that means one"
            ));
        }
        if is_relative(specifier) {
            return self.resolve_relative(importer, specifier);
        }
        if self.bridges.contains_key(specifier) {
            return Ok(Resolved::Bridge(specifier.to_owned()));
        }
        let from = self.importer_label(importer);
        let shown = quote(specifier);
        let names: Vec<&str> = self.bridges.keys().map(String::as_str).take(HINTED).collect();
        let given = if names.is_empty() { String::new() } else { hint(&names, None, "imports") };
        Err(if specifier.starts_with('/') {
            format!("Cannot import {shown} in {from}: absolute paths lead nowhere, use ./ or ../")
        } else if is_of_node(specifier) {
            let other = names.iter().copied().find(|name| bare(name) == bare(specifier));
            let hint = other.map_or(given, |other| hint(&names, Some(other), "imports"));
            format!(
                "Cannot find module {shown} imported from {from}: no import of that name was given, and Node's modules are not available{hint}"
            )
        } else if has_scheme(specifier) {
            format!(
                "Cannot import {shown} in {from}: URLs are not loaded, only the given modules and imports are{given}"
            )
        } else {
            let module = self.module_of_that_name(importer, specifier);
            let hint =
                module.unwrap_or_else(|| hint(&names, nearest(specifier, &names), "imports"));
            format!("Cannot find module {shown} imported from {from}{hint}")
        })
    }

    /// Names the module that a bare specifier would mean with `./` before it.
    fn module_of_that_name(&self, importer: &ModuleKey, specifier: &str) -> Option<String> {
        let base = self.base(importer);
        let directory = label(base).rfind('/').and_then(|end| label(base).get(..end));
        let key = format!("./{}", join(directory.unwrap_or_default(), specifier)?);
        let mut keys = self.modules.iter().take(HINTED);
        let meant = keys.find(|given| **given == key || stem(given) == key)?;
        let meant = relative(directory.unwrap_or_default(), label(meant));
        Some(format!("; did you mean {}?", quote(&meant)))
    }

    fn resolve_relative(&self, importer: &ModuleKey, specifier: &str) -> Result<Resolved, String> {
        let base = self.base(importer);
        let from = self.importer_label(importer);
        let directory = label(base).rfind('/').and_then(|end| label(base).get(..end));
        let directory = directory.unwrap_or_default();
        let Some(path) = join(directory, specifier) else {
            let shown = quote(specifier);
            return Err(format!(
                "Cannot import {shown} in {from}: it climbs above the root of the modules"
            ));
        };
        let key = format!("./{path}");
        let source = [".js", ".mjs"]
            .iter()
            .zip([".ts", ".mts"])
            .find_map(|(js, ts)| key.strip_suffix(js).map(|stem| format!("{stem}{ts}")));
        let candidates = [Some(&key), source.as_ref()];
        let found = candidates.into_iter().flatten().find_map(|key| self.module(key));
        found.map(Resolved::Module).ok_or_else(|| {
            let hint = match self.bridge_of_that_name(specifier) {
                Some(bridge) => format!("; did you mean {}?", quote(bridge)),
                None => self.hint_module(directory, specifier, &key),
            };
            format!("Cannot find module {} imported from {from}{hint}", quote(specifier))
        })
    }

    /// The import that a relative specifier would mean without its path, if no module has such a name.
    fn bridge_of_that_name(&self, specifier: &str) -> Option<&str> {
        let name = specifier.trim_start_matches("../").trim_start_matches("./");
        let wanted = [name, stem(name)];
        let near = |key: &String| stem(label(key)).ends_with(stem(name));
        if self.modules.iter().take(HINTED).any(near) {
            return None;
        }
        let (key, _) = wanted.into_iter().find_map(|name| self.bridges.get_key_value(name))?;
        Some(key)
    }

    /// Names the existing modules as a file in that directory would import them. `key` is the requested key.
    fn hint_module(&self, directory: &str, specifier: &str, key: &str) -> String {
        let keys: Vec<&str> = self.modules.iter().map(String::as_str).take(HINTED).collect();
        let names: Vec<String> = keys.iter().map(|key| relative(directory, label(key))).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // First a key that differs only in its extension, then a key relative to the root.
        let from_root = join("", specifier);
        let meant = keys
            .iter()
            .position(|given| stem(given) == stem(key))
            .or_else(|| keys.iter().position(|given| Some(label(given)) == from_root.as_deref()))
            .and_then(|index| names.get(index).copied());
        hint(&names, meant.or_else(|| nearest(specifier, &names)), "modules")
    }

    fn module(&self, key: &str) -> Option<ModuleKey> {
        if self.modules.contains(key) {
            Some(ModuleKey::Module(key.to_owned()))
        } else if self.entry.as_deref() == Some(key) {
            Some(ModuleKey::Entry)
        } else {
            None
        }
    }

    fn importer_label(&self, importer: &ModuleKey) -> String {
        match importer {
            ModuleKey::Entry => quote(&self.filename),
            ModuleKey::Cell(number) => quote(self.cell_label(*number)),
            ModuleKey::Module(key) => quote(label(key)),
        }
    }
}

/// Puts quotes around a name, cut to a length that a message can carry.
pub(super) fn quote(name: &str) -> String {
    if name.len() <= 200 {
        return format!("'{name}'");
    }
    format!("'{}…'", name.get(..name.floor_char_boundary(197)).unwrap_or_default())
}

/// The number of names that a hint considers.
pub(super) const HINTED: usize = 512;

/// Whether a specifier means a module of Node.
fn is_of_node(specifier: &str) -> bool {
    const MODULES: &str = " assert async_hooks buffer child_process cluster crypto dns events fs http http2 https module \
        net os path perf_hooks process querystring readline stream string_decoder timers tls tty url util v8 vm \
        worker_threads zlib ";
    let name = specifier.split('/').next().unwrap_or_default();
    specifier.starts_with("node:") || MODULES.split_ascii_whitespace().any(|module| module == name)
}

/// The name of a module without `node:`.
fn bare(specifier: &str) -> &str {
    specifier.strip_prefix("node:").unwrap_or(specifier)
}

/// Names the alternatives: the name that may be meant, or all of them when they are few.
fn hint(names: &[&str], meant: Option<&str>, what: &str) -> String {
    match meant {
        _ if names.is_empty() => format!("; no {what} were given"),
        Some(meant) => format!("; did you mean {}?", quote(meant)),
        None => format!("; {what} given: {}", list(names.iter().copied())),
    }
}

/// The names in quotes, cut short if there are many.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut text = String::new();
    for (index, name) in names.enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if index == 10 || text.len() > 300 {
            text.push('…');
            break;
        }
        text.push_str(&quote(name));
    }
    text
}

/// The name that differs from `wanted` in at most a third of its letters.
pub(super) fn nearest<'n>(wanted: &str, names: &[&'n str]) -> Option<&'n str> {
    let most = (wanted.len() / 3).min(3);
    if most == 0 || wanted.len() > 64 {
        return None;
    }
    let near = names.iter().filter(|name| name.len().abs_diff(wanted.len()) <= most);
    near.map(|name| (distance(wanted, name), *name))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// The number of bytes to change, add or leave out to turn one name into the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(to.bytes()) {
            let change = diagonal + usize::from(a != b);
            diagonal = *cell;
            *cell = change.min(left + 1).min(diagonal + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

fn is_relative(specifier: &str) -> bool {
    matches!(specifier, "." | "..") || specifier.starts_with("./") || specifier.starts_with("../")
}

/// Whether the specifier begins like a URL: a letter, then letters, digits, `+`, `-`, `.`, up to a colon.
fn has_scheme(specifier: &str) -> bool {
    specifier.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Joins a relative path to a directory, both without a leading `./`; none if it leaves the root.
fn join(directory: &str, path: &str) -> Option<String> {
    let mut joined = String::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if joined.is_empty() => return None,
            ".." => joined.truncate(joined.rfind('/').unwrap_or(0)),
            _ if joined.is_empty() => joined.push_str(part),
            _ => joined.extend(["/", part]),
        }
    }
    Some(joined)
}

/// The specifier of a path in a file of that directory, both without a leading `./`.
fn relative(directory: &str, path: &str) -> String {
    let (mut from, mut to) = (directory, path);
    while let (Some((left, from_rest)), Some((right, to_rest))) = (first(from), to.split_once('/'))
        && left == right
    {
        (from, to) = (from_rest, to_rest);
    }
    let up = from.split('/').filter(|part| !part.is_empty()).count();
    if up == 0 { format!("./{to}") } else { format!("{}{to}", "../".repeat(up)) }
}

/// The first part of a directory, and the rest of it.
fn first(directory: &str) -> Option<(&str, &str)> {
    if directory.is_empty() {
        None
    } else {
        Some(directory.split_once('/').unwrap_or((directory, "")))
    }
}

/// A path without the extension of its file.
fn stem(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = path.get(name..).and_then(|file| file.rfind('.')).filter(|dot| *dot > 0);
    dot.and_then(|dot| path.get(..name + dot)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_imports_are_bare_or_node_names() {
        for key in ["fs", "@scope/pkg", "a/b", "node:fs", "a b", ".hidden", "#internal"] {
            assert_eq!(check_bridge_key(key), Ok(()), "{key}");
        }
        for key in ["", ".", "./a", "../a", "/a", "https://x", "data:x", "node:", "C:/x"] {
            assert!(check_bridge_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn keys_of_modules_are_normalized() {
        for (key, expected) in [
            ("./a.js", "./a.js"),
            ("./a/../b.js", "./b.js"),
            (".//a/./b.js", "./a/b.js"),
            ("./a/b/../../c", "./c"),
            ("./é 😀.js", "./é 😀.js"),
        ] {
            assert_eq!(normalize_module_key(key).as_deref(), Ok(expected));
        }
        for key in
            ["", "a.js", "/a.js", "../a.js", "./a/../../b.js", "./", ".", "./a/", "https://x/y.js"]
        {
            assert!(normalize_module_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn a_filename_is_a_path_or_a_label() {
        assert_eq!(entry_path("<runCode>").as_deref(), Some("./<runCode>"));
        assert_eq!(entry_path("lib/main.ts").as_deref(), Some("./lib/main.ts"));
        assert_eq!(entry_path("./main.ts").as_deref(), Some("./main.ts"));
        for filename in ["/a/b.ts", "../a.ts", "file:///a.ts", "C:\\a.ts", "x:", ".", "a/"] {
            assert_eq!(entry_path(filename), None, "{filename}");
        }
    }

    fn specifiers(filename: &str) -> Specifiers {
        let modules = ["./math.js", "./lib/a.ts", "./lib/b.mts", "./both.js", "./both.ts"];
        let bridges =
            [("fs".to_owned(), vec!["readFile".to_owned()]), ("node:os".to_owned(), vec![])];
        Specifiers::new(filename, modules.map(str::to_owned), bridges)
    }

    fn resolve(filename: &str, importer: &str, specifier: &str) -> String {
        let importer = match importer {
            "" => ModuleKey::Entry,
            key => ModuleKey::Module(key.to_owned()),
        };
        match specifiers(filename).resolve(&importer, specifier) {
            Ok(Resolved::Module(ModuleKey::Entry)) => "entry".to_owned(),
            Ok(Resolved::Module(ModuleKey::Cell(_))) => "cell".to_owned(),
            Ok(Resolved::Module(ModuleKey::Module(key))) => key,
            Ok(Resolved::Bridge(key)) => format!("bridge {key}"),
            Err(message) => message,
        }
    }

    #[test]
    fn specifiers_resolve_within_what_was_given() {
        for (filename, importer, specifier, expected) in [
            ("<runCode>", "", "./math.js", "./math.js"),
            ("<runCode>", "", "./lib/../math.js", "./math.js"),
            ("lib/main.ts", "", "./a.ts", "./lib/a.ts"),
            ("lib/main.ts", "", "../math.js", "./math.js"),
            ("lib/main.ts", "./math.js", "./lib/main.ts", "entry"),
            ("lib/main.ts", "./math.js", "./lib/main.js", "entry"),
            ("/abs/main.ts", "", "./math.js", "./math.js"),
            ("https://x/main.ts", "", "./lib/a.js", "./lib/a.ts"),
            ("<runCode>", "./lib/a.ts", "./b.mjs", "./lib/b.mts"),
            ("<runCode>", "./lib/a.ts", "../both.js", "./both.js"),
            ("<runCode>", "", "fs", "bridge fs"),
            ("<runCode>", "./lib/a.ts", "node:os", "bridge node:os"),
            (
                "<runCode>",
                "",
                "./math",
                "Cannot find module './math' imported from '<runCode>'; did you mean './math.js'?",
            ),
            (
                "<runCode>",
                "./lib/a.ts",
                "./nothing.js",
                "Cannot find module './nothing.js' imported from 'lib/a.ts'; modules given: '../both.js', '../both.ts', './a.ts', './b.mts', '../math.js'",
            ),
            (
                "src/main.ts",
                "",
                "./lib/a.ts",
                "Cannot find module './lib/a.ts' imported from 'src/main.ts'; did you mean '../lib/a.ts'?",
            ),
            (
                "src/deep/in/main.ts",
                "",
                "./math.js",
                "Cannot find module './math.js' imported from 'src/deep/in/main.ts'; did you mean '../../../math.js'?",
            ),
            (
                "<runCode>",
                "./lib/a.ts",
                "./b.cjs",
                "Cannot find module './b.cjs' imported from 'lib/a.ts'; did you mean './b.mts'?",
            ),
            (
                "a.ts",
                "",
                "./mathh.js",
                "Cannot find module './mathh.js' imported from 'a.ts'; did you mean './math.js'?",
            ),
            (
                "a.ts",
                "",
                "../x.js",
                "Cannot import '../x.js' in 'a.ts': it climbs above the root of the modules",
            ),
            (
                "a.ts",
                "",
                "lodash",
                "Cannot find module 'lodash' imported from 'a.ts'; imports given: 'fs', 'node:os'",
            ),
            (
                "a.ts",
                "",
                "/math.js",
                "Cannot import '/math.js' in 'a.ts': absolute paths lead nowhere, use ./ or ../",
            ),
            (
                "a.ts",
                "",
                "https://x/y.js",
                "Cannot import 'https://x/y.js' in 'a.ts': URLs are not loaded, only the given modules and imports are; imports given: 'fs', 'node:os'",
            ),
        ] {
            assert_eq!(resolve(filename, importer, specifier), expected, "{specifier}");
        }
    }

    #[test]
    fn bare_specifiers_that_mean_nothing_have_a_hint() {
        for (filename, importer, specifier, expected) in [
            (
                "a.ts",
                "./lib/a.ts",
                "os",
                "Cannot find module 'os' imported from 'lib/a.ts': no import of that name was given, and Node's modules are not available; did you mean 'node:os'?",
            ),
            (
                "a.ts",
                "",
                "node:fs",
                "Cannot find module 'node:fs' imported from 'a.ts': no import of that name was given, and Node's modules are not available; did you mean 'fs'?",
            ),
            (
                "a.ts",
                "",
                "path/posix",
                "Cannot find module 'path/posix' imported from 'a.ts': no import of that name was given, and Node's modules are not available; imports given: 'fs', 'node:os'",
            ),
            (
                "a.ts",
                "./lib/a.ts",
                "b.mts",
                "Cannot find module 'b.mts' imported from 'lib/a.ts'; did you mean './b.mts'?",
            ),
            (
                "a.ts",
                "",
                "lib/a",
                "Cannot find module 'lib/a' imported from 'a.ts'; did you mean './lib/a.ts'?",
            ),
        ] {
            assert_eq!(resolve(filename, importer, specifier), expected, "{specifier}");
        }
    }

    #[test]
    fn suggestions_are_specifiers_as_the_importer_would_write_them() {
        for (directory, path, expected) in [
            ("", "a.js", "./a.js"),
            ("", "lib/a.js", "./lib/a.js"),
            ("lib", "lib/a.js", "./a.js"),
            ("lib", "a.js", "../a.js"),
            ("src/x", "src/y/a.js", "../y/a.js"),
            ("lib", "library/a.js", "../library/a.js"),
            ("a/b", "a", "../../a"),
        ] {
            assert_eq!(relative(directory, path), expected, "{directory} {path}");
            assert_eq!(join(directory, expected).as_deref(), Some(path));
        }
        assert_eq!(
            ["./a.b/c", "./.hidden", "./a.d.ts"].map(stem),
            ["./a.b/c", "./.hidden", "./a.d"]
        );
    }

    #[test]
    fn names_in_messages_are_bounded() {
        for specifier in ["é".repeat(100_000), format!("./{}", "a/".repeat(100_000))] {
            let message = resolve("a.ts", "", &specifier);
            assert!(message.len() < 400, "{}", message.len());
            assert!(message.ends_with("longer than any that means one"), "{message}");
        }
        let long = format!("./{}math.js", "a/../".repeat(1_000));
        assert_eq!(resolve("a.ts", "", &long), "./math.js");
        let key = "k".repeat(100_000);
        let specifiers = Specifiers::new("a.ts", [], [(key.clone(), vec![])]);
        assert_eq!(specifiers.resolve(&ModuleKey::Entry, &key), Ok(Resolved::Bridge(key.clone())));
        let many: Vec<String> = (0..5_000).map(|n| format!("name{n}")).collect();
        assert!(list(many.iter().map(String::as_str)).len() < 400);
    }
}
