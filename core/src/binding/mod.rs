//! Everything that a language binding uses beside values: the host's side of a run and the handle on it.

pub(crate) mod adaptive_spin;
pub(crate) mod fair_queue;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod inbound;
