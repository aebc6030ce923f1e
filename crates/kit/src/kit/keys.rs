//! Kits by keys: a face hands a kit to another system as a text among its options.
//!
//! In: a kit. Out: its key, which is good for as long as the kit is there, and the kit again.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Kit, Owner};

/// The number in the next key.
static NEXT: AtomicU64 = AtomicU64::new(1);

static KITS: Mutex<BTreeMap<String, Weak<Owner>>> = Mutex::new(BTreeMap::new());

impl Kit {
    /// The key of the kit in this process. It does not keep the kit open.
    #[must_use]
    pub fn key(&self) -> String {
        let key =
            self.owner.key.get_or_init(|| format!("kit {}", NEXT.fetch_add(1, Ordering::Relaxed)));
        kits().entry(key.clone()).or_insert_with(|| Arc::downgrade(&self.owner));
        key.clone()
    }

    /// The kit with that key, if it is there still.
    #[must_use]
    pub fn with_key(key: &str) -> Option<Self> {
        let owner = kits().get(key).and_then(Weak::upgrade)?;
        Some(Self { inner: Arc::clone(&owner.inner), owner })
    }
}

/// The kit with that key is gone.
pub(super) fn forget(key: &str) {
    kits().remove(key);
}

fn kits() -> MutexGuard<'static, BTreeMap<String, Weak<Owner>>> {
    KITS.lock().unwrap_or_else(PoisonError::into_inner)
}
