//! Bindings of exported names, across modules.
//!
//! In: the nodes of a graph, a module and a name. Out: the one binding that ECMAScript's ResolveExport finds. It goes
//! through re-exports and stars, except that no star exports `default`; two bindings of one name count as none. The
//! search is a loop that visits each module once per name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{
    data::portable::portable,
    modules::compile::{CompiledModule, ExportTarget, Imported},
};

use super::specifier::{ModuleKey, Specifiers};

/// The target of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A node by its index.
    Node(usize),
    /// A bridge by its key.
    Bridge(String),
    /// Not loaded, because an error comes first.
    Unknown,
}

/// A module of the graph with the targets of its requests.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) key: ModuleKey,
    pub(super) module: Arc<CompiledModule>,
    /// One for each request of the record.
    pub(super) targets: Vec<Target>,
    /// Index into the record's exports by name.
    pub(super) exports: HashMap<String, usize>,
}

portable!(enum Target { 0: Node(index), 1: Bridge(key), 2: Unknown });
portable!(struct Node { key, module, targets, exports });

impl Node {
    pub(super) fn new(key: ModuleKey, module: Arc<CompiledModule>) -> Self {
        let names = module.record().exports.iter().enumerate();
        let exports = names.map(|(index, export)| (export.name.clone(), index)).collect();
        Self { key, module, targets: Vec::new(), exports }
    }
}

/// The result of resolving a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// One binding, or possibly one once everything is loaded.
    Found,
    /// Several different bindings under one name, through stars.
    Ambiguous,
    /// No binding.
    Missing,
}

/// Resolves `name` of `target`.
pub(super) fn resolve(
    nodes: &[Node],
    specifiers: &Specifiers,
    target: &Target,
    name: &str,
) -> Resolution {
    let mut search = Search { nodes, specifiers, found: HashSet::new(), unknown: false };
    search.run(target, name);
    match search.found.len() {
        0 if search.unknown => Resolution::Found,
        0 => Resolution::Missing,
        1 => Resolution::Found,
        _ => Resolution::Ambiguous,
    }
}

/// Whether the TypeScript module `start` exports `name`, and only as a type. With `perhaps`, whether it may: the
/// question comes through an erased `export type *`, whose module need not be loaded.
pub(super) fn is_type(nodes: &[Node], start: usize, name: &str, perhaps: bool) -> bool {
    let mut visited = HashSet::new();
    let mut work = vec![start];
    while let Some(node) =
        work.pop().filter(|&index| visited.insert(index)).and_then(|i| nodes.get(i))
    {
        let record = node.module.record();
        if record.type_exports.contains(name)
            || (perhaps && name != "default" && !record.type_stars.is_empty())
        {
            return true;
        }
        if name != "default" {
            work.extend(record.stars.iter().filter_map(|&star| match node.targets.get(star) {
                Some(Target::Node(index)) if !visited.contains(index) => Some(*index),
                _ => None,
            }));
        }
    }
    false
}

/// The names that `target` exports, at most `most` of them, its own names first.
pub(super) fn export_names(
    nodes: &[Node],
    specifiers: &Specifiers,
    target: &Target,
    most: usize,
) -> Vec<String> {
    let mut names = Vec::new();
    let mut visited = HashSet::new();
    let mut work = std::collections::VecDeque::from([(target.clone(), true)]);
    while let Some((target, direct)) = work.pop_front() {
        let own: Vec<String> = match &target {
            Target::Bridge(key) => {
                specifiers.bridge_exports(key).into_iter().flatten().cloned().collect()
            }
            Target::Node(index) if visited.insert(*index) => {
                let Some(node) = nodes.get(*index) else { continue };
                let record = node.module.record();
                let stars = record.stars.iter().filter_map(|&star| node.targets.get(star));
                work.extend(stars.map(|target| (target.clone(), false)));
                record.exports.iter().map(|export| export.name.clone()).collect()
            }
            _ => continue,
        };
        for name in own {
            if names.len() >= most {
                return names;
            }
            if (direct || name != "default") && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The resolution of a name: the module or bridge, and the binding there.
#[derive(PartialEq, Eq, Hash)]
enum Binding<'g> {
    Local(usize, &'g str),
    Namespace(usize),
    Bridge(&'g str, &'g str),
    BridgeNamespace(&'g str),
}

struct Search<'g> {
    nodes: &'g [Node],
    specifiers: &'g Specifiers,
    found: HashSet<Binding<'g>>,
    unknown: bool,
}

impl<'g> Search<'g> {
    fn run(&mut self, target: &'g Target, name: &'g str) {
        let mut visited: HashSet<(usize, &str)> = HashSet::new();
        let mut work = vec![(target, name)];
        while let Some((target, name)) = work.pop() {
            let index = match target {
                Target::Node(index) => *index,
                Target::Bridge(key) => {
                    self.bridge(key, name);
                    continue;
                }
                Target::Unknown => {
                    self.unknown = true;
                    continue;
                }
            };
            let Some(node) = self.nodes.get(index) else { continue };
            if !visited.insert((index, name)) {
                continue;
            }
            let record = node.module.record();
            let export = node.exports.get(name).and_then(|&export| record.exports.get(export));
            match export.map(|export| &export.target) {
                Some(ExportTarget::Local { binding }) => {
                    self.found.insert(Binding::Local(index, binding));
                }
                Some(ExportTarget::Indirect { request, imported }) => {
                    let target = node.targets.get(*request).unwrap_or(&Target::Unknown);
                    match imported {
                        Imported::Name(name) => work.push((target, name)),
                        Imported::Namespace => self.namespace(target),
                    }
                }
                None if name == "default" => {}
                None => work.extend(
                    record
                        .stars
                        .iter()
                        .map(|&star| (node.targets.get(star).unwrap_or(&Target::Unknown), name)),
                ),
            }
        }
    }

    fn bridge(&mut self, key: &'g str, name: &'g str) {
        if self.specifiers.bridge_exports(key).is_some_and(|names| names.contains(name)) {
            self.found.insert(Binding::Bridge(key, name));
        }
    }

    fn namespace(&mut self, target: &'g Target) {
        match target {
            Target::Node(index) => drop(self.found.insert(Binding::Namespace(*index))),
            Target::Bridge(key) => drop(self.found.insert(Binding::BridgeNamespace(key))),
            Target::Unknown => self.unknown = true,
        }
    }
}
