//! Notebooks that a face names by a key: to open children, and to hand one over to a function.
//!
//! In: notebooks. Out: keys, which no cell sees. A key is good for as long as its handle is there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use uuid::Uuid;

use crate::{Misuse, Notebook};

static KNOWN: Mutex<BTreeMap<String, Weak<Notebook>>> = Mutex::new(BTreeMap::new());

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
