//! The opener of an executor's sessions in the Rust face.
//!
//! In: the executor's part of a request. Out: sessions. A binding brings an opener of its own, whose requests have the
//! functions of its caller.

use std::sync::Arc;

use isolane::{Error, ErrorKind, Isolation, Runtime, RuntimeOptions, SessionOptions};
use isolane_door::{Amend, HostSession, SessionHost};

use super::own_runtime::{HostRuntime, OwnRuntime};

/// The message of options that exclude each other.
pub(super) const BOTH: &str = "runtime and isolation exclude each other";

/// The opener of the Rust face.
#[derive(Clone, Debug, Default)]
pub(super) struct RustHost {
    pub(super) options: SessionOptions,
    pub(super) runtime: Option<Runtime>,
    /// The runtime of the isolation that was asked for.
    own: Option<Arc<OwnRuntime>>,
}

impl RustHost {
    /// The runtime of its sessions.
    pub(super) fn runtime(&self) -> Result<HostRuntime, Error> {
        match (&self.runtime, &self.own) {
            (Some(_), Some(_)) => Err(Error::new(ErrorKind::Type, BOTH)),
            (Some(runtime), None) => Ok(HostRuntime::Given(runtime.clone())),
            (None, None) => Ok(HostRuntime::Shared),
            (None, Some(own)) => Ok(HostRuntime::Own(Arc::clone(own))),
        }
    }

    pub(super) fn set_isolation(&mut self, isolation: Isolation) {
        let options = RuntimeOptions { isolation, ..RuntimeOptions::default() };
        self.own = Some(Arc::new(OwnRuntime::new(options)));
    }
}

impl SessionHost for RustHost {
    fn open(&self, runtime: &Runtime, amend: Amend<'_>) -> Result<Arc<dyn HostSession>, Error> {
        let session = runtime.session_with(self.options.clone(), amend)?;
        Ok(Arc::new(session))
    }
}
