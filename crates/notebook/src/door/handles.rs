//! Notebooks and registries that a face names by a key: to open children, to hand a notebook over to a function, to open
//! notebooks in a registry.
//!
//! In: notebooks, registries. Out: keys, which no cell sees. A key is good for as long as its handle is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use uuid::Uuid;

use crate::{Misuse, Notebook, Registry};

static KNOWN: Mutex<BTreeMap<String, Weak<Notebook>>> = Mutex::new(BTreeMap::new());

static REGISTRIES: Mutex<BTreeMap<String, Registry>> = Mutex::new(BTreeMap::new());

/// A registry with a key.
pub(super) struct RegistryHandle {
    key: String,
}

impl RegistryHandle {
    pub(super) fn new(registry: Registry) -> Self {
        let key = Uuid::new_v4().to_string();
        registries().insert(key.clone(), registry);
        Self { key }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for RegistryHandle {
    fn drop(&mut self) {
        registries().remove(&self.key);
    }
}

/// The registry with that key.
///
/// # Errors
/// It is not there any more.
pub(super) fn find_registry(key: &str) -> Result<Registry, Misuse> {
    let found = registries().get(key).cloned();
    found.ok_or_else(|| Misuse::new("registry", " is not there any more"))
}

fn registries() -> MutexGuard<'static, BTreeMap<String, Registry>> {
    REGISTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A notebook with a key.
pub(super) struct Handle {
    key: String,
    /// Kept for the key.
    _notebook: Arc<Notebook>,
}

impl Handle {
    pub(super) fn new(notebook: &Arc<Notebook>) -> Self {
        let key = Uuid::new_v4().to_string();
        known().insert(key.clone(), Arc::downgrade(notebook));
        Self { key, _notebook: Arc::clone(notebook) }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        known().remove(&self.key);
    }
}

/// The notebook with that key.
///
/// # Errors
/// It is not there any more.
pub(super) fn find(key: &str) -> Result<Arc<Notebook>, Misuse> {
    let found = known().get(key).and_then(Weak::upgrade);
    found.ok_or_else(|| Misuse::new("notebook", " is closed"))
}

fn known() -> MutexGuard<'static, BTreeMap<String, Weak<Notebook>>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
