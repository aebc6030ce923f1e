//! Checks of the static graph from a root: every specifier, then every name, before anything runs.
//!
//! In: a root, the meanings of specifiers, and a way to compile a module. Out: a `Graph` that contains every reachable
//! module, or the first error in source order, depth first, as a reader would meet it: a module is read at its first
//! import, and its names are checked on the way back. Nothing recurses, so cycles and thousands of modules are fine. A
//! failed extension changes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{
    data::{outcome::Position, portable::portable},
    modules::compile::{
        CompileError, CompiledModule, Imported, ImportedName, Request, can_be_name,
    },
};

use super::{
    resolve::{self, Node, Resolution, Target},
    specifier::{self, HINTED, ModuleKey, Resolved, Specifiers, list, nearest, quote},
};

/// Compiles a module. The names are imports to erase, because their modules export them as types.
pub(crate) type Compile<'c> =
    dyn FnMut(&ModuleKey, &[String]) -> Result<Arc<CompiledModule>, CompileError> + 'c;

/// The reason why a graph cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkError {
    /// `SyntaxError`, or `ReferenceError` for a module that does not exist.
    pub(crate) name: &'static str,
    /// One line.
    pub(crate) message: String,
    /// The specifier as written, for an error in an import.
    pub(crate) specifier: Option<String>,
    /// The label of the file that has the error.
    pub(crate) filename: String,
    /// The place in that file.
    pub(crate) position: Option<Position>,
    /// The bytes that compiling the module takes, where they are more than the run may hold. The module may be valid.
    pub(crate) needed_bytes: Option<usize>,
}

impl LinkError {
    /// That of a text outside of any graph.
    pub(crate) fn of_text(filename: &str, error: CompileError) -> Self {
        Self {
            name: error.name,
            message: error.message,
            specifier: None,
            filename: filename.to_owned(),
            position: error.position,
            needed_bytes: error.needed_bytes,
        }
    }
}

/// The checked modules of a run.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    filename: String,
    specifiers: Specifiers,
    nodes: Vec<Node>,
    index: HashMap<ModuleKey, usize>,
    /// The names of the host's globals, which need no import.
    globals: Vec<String>,
}

portable!(struct Graph { filename, specifiers, nodes, index, globals });

impl Graph {
    /// An empty graph; `filename` is the entry's label.
    pub(crate) fn new(filename: &str, specifiers: Specifiers) -> Self {
        let (filename, globals) = (filename.to_owned(), Vec::new());
        Self { filename, specifiers, nodes: Vec::new(), index: HashMap::new(), globals }
    }

    /// Adds names of globals, and takes others away.
    pub(crate) fn change_globals(&mut self, added: &[String], removed: &[String]) {
        let kept = std::mem::take(&mut self.globals).into_iter();
        self.globals =
            kept.filter(|name| !removed.contains(name) && !added.contains(name)).collect();
        self.globals.extend_from_slice(added);
    }

    /// The names of the globals.
    pub(crate) fn globals(&self) -> &[String] {
        &self.globals
    }

    /// Adds `root` and every module that it reaches. Modules of the graph are not checked again.
    pub(crate) fn extend(
        &mut self,
        root: &ModuleKey,
        compile: &mut Compile<'_>,
    ) -> Result<(), LinkError> {
        if self.index.contains_key(root) {
            return Ok(());
        }
        let before = self.nodes.len();
        let linked = self.load(root, compile).and_then(|failure| {
            let erase = self.check(before, failure)?;
            self.erase(erase, compile)
        });
        if linked.is_err() {
            for node in self.nodes.drain(before..) {
                self.index.remove(&node.key);
            }
        }
        linked
    }

    /// Resolves a dynamic `import(specifier)` in `importer` and adds all modules that it reaches.
    pub(crate) fn import(
        &mut self,
        importer: &ModuleKey,
        specifier: &str,
        compile: &mut Compile<'_>,
    ) -> Result<Resolved, LinkError> {
        let resolved =
            self.specifiers.resolve(importer, specifier).map_err(|message| LinkError {
                name: "ReferenceError",
                message,
                specifier: Some(beginning(specifier)),
                filename: self.label(importer),
                position: None,
                needed_bytes: None,
            })?;
        if let Resolved::Module(key) = &resolved {
            self.extend(key, compile)?;
        }
        Ok(resolved)
    }

    /// A longer specifier means nothing.
    pub(crate) fn longest_specifier_bytes(&self) -> usize {
        self.specifiers.most_bytes()
    }

    /// The module that a specifier of a linked module means.
    pub(crate) fn resolve(&self, importer: &ModuleKey, specifier: &str) -> Option<Resolved> {
        self.specifiers.resolve(importer, specifier).ok()
    }

    /// A linked module.
    pub(crate) fn module(&self, key: &ModuleKey) -> Option<&Arc<CompiledModule>> {
        self.node(key).map(|node| &node.module)
    }

    /// Every linked module, in the order in which they were first reached.
    pub(crate) fn modules(&self) -> impl Iterator<Item = (&ModuleKey, &Arc<CompiledModule>)> {
        self.nodes.iter().map(|node| (&node.key, &node.module))
    }

    /// The names that a linked module exports, at most `most`.
    #[cfg(test)]
    pub(crate) fn export_names(&self, key: &ModuleKey, most: usize) -> Vec<String> {
        let target = self.index.get(key).map_or(Target::Unknown, |&index| Target::Node(index));
        resolve::export_names(&self.nodes, &self.specifiers, &target, most)
    }

    /// The module's name in errors and stacks.
    pub(crate) fn label(&self, key: &ModuleKey) -> String {
        match key {
            ModuleKey::Entry => self.filename.clone(),
            ModuleKey::Cell(number) => self.specifiers.cell_label(*number).to_owned(),
            ModuleKey::Module(key) => specifier::label(key).to_owned(),
        }
    }

    /// Adds a cell with every module that it reaches. The cell itself is not kept, since nothing imports it.
    pub(crate) fn extend_by_cell(
        &mut self,
        number: u32,
        label: &str,
        compile: &mut Compile<'_>,
    ) -> Result<(), LinkError> {
        self.specifiers.add_cell(number, label);
        let key = ModuleKey::Cell(number);
        let first = self.nodes.len();
        let linked = self.extend(&key, compile);
        if linked.is_err() {
            self.specifiers.forget_cell(number);
            return linked;
        }
        // The modules that it has added go one place up.
        self.index.remove(&key);
        self.nodes.remove(first);
        for index in self.index.values_mut().filter(|index| **index > first) {
            *index -= 1;
        }
        for target in self.nodes.iter_mut().skip(first).flat_map(|node| &mut node.targets) {
            if let Target::Node(index) = target
                && *index > first
            {
                *index -= 1;
            }
        }
        Ok(())
    }

    /// Forgets a cell, of which nothing imports any more.
    pub(crate) fn forget_cell(&mut self, number: u32) {
        self.specifiers.forget_cell(number);
    }

    /// Exchanges the modules and bridges that specifiers may mean. Forgets the modules among `replaced`, those of which
    /// an import means something else by now, and everything that imports one of these. Returns their keys: they are
    /// compiled and checked again by the next import.
    pub(crate) fn replace(
        &mut self,
        modules: impl IntoIterator<Item = String>,
        bridges: impl IntoIterator<Item = (String, Vec<String>)>,
        replaced: &HashSet<Resolved>,
    ) -> HashSet<ModuleKey> {
        self.specifiers = std::mem::take(&mut self.specifiers).replaced(modules, bridges);
        let mut importers: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut stale = Vec::new();
        for &index in self.index.values() {
            let Some(node) = self.nodes.get(index) else { continue };
            for target in &node.targets {
                if let Target::Node(below) = target {
                    importers.entry(*below).or_default().push(index);
                }
            }
            if self.is_stale(node, replaced) {
                stale.push(index);
            }
        }
        let mut forgotten = HashSet::new();
        while let Some(index) = stale.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            if self.index.remove(&node.key).is_some() {
                forgotten.insert(node.key.clone());
                stale.extend(importers.get(&index).into_iter().flatten());
            }
        }
        forgotten
    }

    /// Whether a module was replaced, or imports something that was.
    fn is_stale(&self, node: &Node, replaced: &HashSet<Resolved>) -> bool {
        let requests = node.module.record().requests.iter().zip(&node.targets);
        replaced.contains(&Resolved::Module(node.key.clone()))
            || requests.into_iter().any(|(request, target)| {
                let now = self.specifiers.resolve(&node.key, &request.specifier);
                match (now, target) {
                    (Ok(Resolved::Module(key)), Target::Node(index)) => {
                        self.nodes.get(*index).is_none_or(|below| below.key != key)
                    }
                    (Ok(Resolved::Bridge(key)), Target::Bridge(old)) => {
                        key != *old || replaced.contains(&Resolved::Bridge(key))
                    }
                    _ => true,
                }
            })
    }

    fn node(&self, key: &ModuleKey) -> Option<&Node> {
        self.index.get(key).and_then(|&index| self.nodes.get(index))
    }

    /// Loads depth first. After an error, the modules read before it are still checked, and the error is returned with
    /// its place. An error of the root itself returns at once.
    fn load(
        &mut self,
        root: &ModuleKey,
        compile: &mut Compile<'_>,
    ) -> Result<Option<Failure>, LinkError> {
        let first = self.add(root, compile)?;
        let mut path = vec![first];
        while let Some(&at) = path.last() {
            let Some(node) = self.nodes.get(at) else { break };
            let Some(request) = node.module.record().requests.get(node.targets.len()) else {
                path.pop();
                continue;
            };
            let position = (at, node.targets.len());
            let target = match self.specifiers.resolve(&node.key, &request.specifier) {
                Ok(Resolved::Bridge(key)) => Target::Bridge(key),
                Ok(Resolved::Module(key)) => match self.index.get(&key) {
                    Some(&index) => Target::Node(index),
                    None => match self.add(&key, compile) {
                        Ok(index) => {
                            path.push(index);
                            Target::Node(index)
                        }
                        Err(error) => return Ok(Some(Failure { position, error })),
                    },
                },
                Err(message) => {
                    let message = message + &self.global_instead(request);
                    let error =
                        self.error(node, request, "ReferenceError", message, request.position);
                    return Ok(Some(Failure { position, error }));
                }
            };
            if let Some(node) = self.nodes.get_mut(at) {
                node.targets.push(target);
            }
        }
        Ok(None)
    }

    fn add(&mut self, key: &ModuleKey, compile: &mut Compile<'_>) -> Result<usize, LinkError> {
        let module = compile(key, &[]).map_err(|error| self.compile_error(key, error))?;
        self.index.insert(key.clone(), self.nodes.len());
        self.nodes.push(Node::new(key.clone(), module));
        Ok(self.nodes.len() - 1)
    }

    /// Checks the names of the nodes from `first` on, in reading order. Returns for each node the unused names that
    /// must be erased.
    fn check(
        &self,
        first: usize,
        failure: Option<Failure>,
    ) -> Result<HashMap<usize, Vec<String>>, LinkError> {
        let mut erase: HashMap<usize, Vec<String>> = HashMap::new();
        let mut entered = vec![false; self.nodes.len() - first];
        let mut path = vec![(first, 0)];
        while let Some((at, next)) = path.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            let Some(request) = node.module.record().requests.get(next) else { continue };
            if let Some(failure) = &failure
                && failure.position == (at, next)
            {
                return Err(failure.error.clone());
            }
            let target = node.targets.get(next).unwrap_or(&Target::Unknown);
            if let Target::Node(below) = target
                && *below > first
                && let Some(entered) = entered.get_mut(below - first)
                && !std::mem::replace(entered, true)
            {
                path.push((at, next));
                path.push((*below, 0));
                continue;
            }
            let names = self.check_names(node, request, target)?;
            if !names.is_empty() {
                erase.entry(at).or_default().extend(names);
            }
            path.push((at, next + 1));
        }
        failure.map_or(Ok(erase), |failure| Err(failure.error))
    }

    fn check_names(
        &self,
        node: &Node,
        request: &Request,
        target: &Target,
    ) -> Result<Vec<String>, LinkError> {
        let mut erase = Vec::new();
        for imported in &request.names {
            let Imported::Name(name) = &imported.imported else { continue };
            let type_only = match target {
                Target::Node(index) => resolve::is_type(&self.nodes, *index, name, imported.unused),
                _ => false,
            };
            match resolve::resolve(&self.nodes, &self.specifiers, target, name) {
                Resolution::Found => {}
                Resolution::Missing if type_only && imported.unused => {
                    erase.extend(imported.local.clone());
                }
                Resolution::Missing => {
                    let message = self.missing(request, target, name, type_only, imported);
                    return Err(self.error(
                        node,
                        request,
                        "SyntaxError",
                        message,
                        imported.position,
                    ));
                }
                Resolution::Ambiguous => {
                    let message = format!(
                        "Export {} of module {} is ambiguous: several 'export *' lead to different bindings of that name",
                        quote(name),
                        quote(&request.specifier)
                    );
                    return Err(self.error(
                        node,
                        request,
                        "SyntaxError",
                        message,
                        imported.position,
                    ));
                }
            }
        }
        Ok(erase)
    }

    /// The remedy for an import of globals, from a module that does not exist.
    fn global_instead(&self, request: &Request) -> String {
        let names: Vec<&str> = request
            .names
            .iter()
            .filter_map(|name| match &name.imported {
                Imported::Name(name) if self.globals.contains(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        match names.as_slice() {
            [] => String::new(),
            [name] => format!("; {} is a global: use it without an import", quote(name)),
            names => {
                let names = list(names.iter().copied());
                format!("; {names} are globals: use them without an import")
            }
        }
    }

    fn missing(
        &self,
        request: &Request,
        target: &Target,
        name: &str,
        type_only: bool,
        imported: &ImportedName,
    ) -> String {
        let module = quote(&request.specifier);
        if type_only {
            let verb = if imported.local.is_some() { "import type" } else { "export type" };
            return format!(
                "Module {module} exports {} only as a type: write '{verb}'",
                quote(name)
            );
        }
        let names = resolve::export_names(&self.nodes, &self.specifiers, target, HINTED);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let offer = if names.is_empty() {
            "it exports nothing".to_owned()
        } else {
            format!("it exports {}", list(names.iter().copied()))
        };
        let remedy = match (&imported.local, names.as_slice()) {
            (Some(local), ["default"]) => self.of_default(request, target, name, local),
            (Some(local), _) => remedy(name, local, &names),
            (None, _) => None,
        };
        let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        if name == "default" {
            return format!("Module {module} has no default export; {offer}{remedy}");
        }
        format!("Module {module} has no export {}; {offer}{remedy}", quote(name))
    }

    /// The import to write of a module that has a default export alone, if that has the name, or a property of the name.
    fn of_default(
        &self,
        request: &Request,
        target: &Target,
        name: &str,
        local: &str,
    ) -> Option<String> {
        let Target::Node(index) = target else { return None };
        let default = self.nodes.get(*index)?.module.default_export();
        let bounded = |name: &str| name.len() <= 200;
        if default.name.as_deref() == Some(name) {
            return bounded(local).then(|| format!("write import {local}"));
        }
        let is_member = default.members.iter().any(|member| member == name);
        let of_file = || {
            let file = request.specifier.rsplit('/').next()?;
            file.split('.').next().map(str::to_owned)
        };
        let object = default.name.or_else(of_file).filter(|object| can_be_name(object))?;
        let named = is_member && bounded(&object) && can_be_name(name) && bounded(name);
        named.then(|| format!("write import {object}, then {object}.{name}"))
    }

    /// Compiles again the modules that import types without the keyword and without using them.
    fn erase(
        &mut self,
        erase: HashMap<usize, Vec<String>>,
        compile: &mut Compile<'_>,
    ) -> Result<(), LinkError> {
        for (index, names) in erase {
            let Some(key) = self.nodes.get(index).map(|node| node.key.clone()) else { continue };
            let module = compile(&key, &names).map_err(|error| self.compile_error(&key, error))?;
            let mut node = Node::new(key, module);
            for request in &node.module.record().requests {
                let target = match self.specifiers.resolve(&node.key, &request.specifier) {
                    Ok(Resolved::Bridge(key)) => Target::Bridge(key),
                    Ok(Resolved::Module(key)) => {
                        self.index.get(&key).map_or(Target::Unknown, |&index| Target::Node(index))
                    }
                    Err(_) => Target::Unknown,
                };
                node.targets.push(target);
            }
            if let Some(old) = self.nodes.get_mut(index) {
                *old = node;
            }
        }
        Ok(())
    }

    fn compile_error(&self, key: &ModuleKey, error: CompileError) -> LinkError {
        let means_one = |specifier: &str| self.specifiers.resolve(key, specifier).is_ok();
        let if_given = error.if_given.filter(|given| means_one(&given.specifier));
        let message = if_given.map_or(error.message, |given| given.message);
        LinkError::of_text(&self.label(key), CompileError { message, if_given: None, ..error })
    }

    fn error(
        &self,
        node: &Node,
        request: &Request,
        name: &'static str,
        message: String,
        position: Position,
    ) -> LinkError {
        LinkError {
            name,
            message,
            specifier: Some(beginning(&request.specifier)),
            filename: self.label(&node.key),
            position: Some(position),
            needed_bytes: None,
        }
    }
}

/// The import to write instead of that of `name` as `local`, if the names of the module leave no doubt.
fn remedy(name: &str, local: &str, names: &[&str]) -> Option<String> {
    let bounded = |name: &str| name.len() <= 200;
    match (name, names) {
        (_, []) => None,
        ("default", _) if !bounded(local) => None,
        ("default", _) if names.contains(&local) => Some(format!("write import {{ {local} }}")),
        ("default", _) => Some(match nearest(local, names).filter(|near| bounded(near)) {
            Some(near) => format!("did you mean import {{ {near} }}?"),
            None => format!("write import * as {local}"),
        }),
        (_, [_]) => None,
        _ => nearest(name, names).map(|near| format!("did you mean {}?", quote(near))),
    }
}

/// The part of a specifier that errors show.
fn beginning(specifier: &str) -> String {
    const SHOWN_BYTES: usize = 64 << 10;
    specifier.get(..specifier.floor_char_boundary(SHOWN_BYTES)).unwrap_or_default().to_owned()
}

/// An error met while loading, with its node and request.
struct Failure {
    position: (usize, usize),
    error: LinkError,
}
