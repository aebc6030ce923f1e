//! The names that cells have declared and imported, as tables.
//!
//! In: names with their kinds, and the engine's keys of them. Out: tables for the cells that follow, and images
//! of these tables.

use std::{collections::HashMap, sync::Arc};

use crate::{
    data::{cell::NameKind, portable::portable},
    isolate::engine::{Atom, Local},
    modules::compile::cell::CellPlan,
};

/// The names that cells have declared, in order.
#[derive(Clone, Default)]
pub(super) struct Declared {
    names: Vec<(Arc<str>, NameKind)>,
    index: HashMap<Arc<str>, usize>,
}

impl Declared {
    pub(super) fn kind(&self, name: &str) -> Option<NameKind> {
        self.index.get(name).and_then(|&index| self.names.get(index)).map(|(_, kind)| *kind)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, NameKind)> {
        self.names.iter().map(|(name, kind)| (&**name, *kind))
    }

    pub(super) fn declare(&mut self, name: &str, kind: NameKind) {
        match self.index.get(name).and_then(|&index| self.names.get_mut(index)) {
            Some(known) => known.1 = kind,
            None => {
                let name: Arc<str> = name.into();
                self.index.insert(Arc::clone(&name), self.names.len());
                self.names.push((name, kind));
            }
        }
    }
}

/// The imports that are live, by the key of their name.
#[derive(Default)]
pub(super) struct Imports {
    /// The object in the chain, once there is an import.
    pub(super) object: Option<Local>,
    pub(super) names: HashMap<u32, Import>,
}

/// A name of another module.
pub(super) struct Import {
    /// The key of the name here, which the table's key is.
    pub(super) key: Atom,
    pub(super) namespace: Local,
    pub(super) imported: Atom,
}

impl Imports {
    pub(super) fn image(&self) -> Self {
        let names = self.names.iter().map(|(key, import)| (*key, import.image())).collect();
        Self { object: self.object.as_ref().map(Local::image), names }
    }
}

impl Import {
    pub(super) fn image(&self) -> Self {
        Self {
            key: self.key.image(),
            namespace: self.namespace.image(),
            imported: self.imported.image(),
        }
    }
}

portable!(struct Declared { names, index });
portable!(struct Imports { object, names });
portable!(struct Import { key, namespace, imported });

/// The names of a cell that runs, by the engine's key.
#[derive(Default)]
pub(super) struct Slots {
    pub(super) plan: Arc<CellPlan>,
    pub(super) keys: Vec<Atom>,
    pub(super) index: HashMap<u32, usize>,
}

impl Slots {
    /// As [`Local::image`].
    pub(super) fn image(&self) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            keys: self.keys.iter().map(Atom::image).collect(),
            index: self.index.clone(),
        }
    }
}
