//! The runtime of an executor's isolates, which may be one of the executor's own.
//!
//! In: the caller's runtime, or options. Out: a runtime. One of the executor's own is made at its first use and again after
//! a close. Closing it, or dropping the last holder, ends its threads and processes.

use std::sync::{Arc, Mutex, PoisonError};

use isolane::{Error, Runtime, RuntimeOptions};
use isolane_door::CloseFuture;
use tokio::sync::oneshot;

/// The runtime of an executor, whose sessions a [`SessionHost`](isolane_door::SessionHost) opens.
#[derive(Clone, Debug, Default)]
pub enum HostRuntime {
    /// The process's own.
    #[default]
    Shared,
    /// The caller's.
    Given(Runtime),
    /// One that the executor alone uses.
    Own(Arc<OwnRuntime>),
}

impl HostRuntime {
    /// One that the executor alone uses. It is made at once.
    ///
    /// # Errors
    /// As [`OwnRuntime::runtime`].
    pub fn own(options: RuntimeOptions) -> Result<Self, Error> {
        let own = OwnRuntime::new(options);
        own.runtime()?;
        Ok(Self::Own(Arc::new(own)))
    }

    /// The runtime for a session.
    ///
    /// # Errors
    /// As [`OwnRuntime::runtime`].
    pub fn runtime(&self) -> Result<Runtime, Error> {
        match self {
            Self::Shared => Ok(Runtime::shared()),
            Self::Given(runtime) => Ok(runtime.clone()),
            Self::Own(own) => own.runtime(),
        }
    }

    /// Closes it, if the executor alone uses it.
    #[must_use]
    pub fn close(&self) -> CloseFuture {
        let this = self.clone();
        Box::pin(async move {
            if let Self::Own(own) = this {
                own.close().await;
            }
        })
    }
}

/// A runtime that one executor alone uses.
#[derive(Debug)]
pub struct OwnRuntime {
    options: RuntimeOptions,
    open: Mutex<Option<Runtime>>,
}

impl OwnRuntime {
    /// A runtime with these options.
    #[must_use]
    pub fn new(options: RuntimeOptions) -> Self {
        Self { options, open: Mutex::default() }
    }

    /// The runtime, which is made if it is not open.
    ///
    /// # Errors
    /// Misuse of an option; a system that refuses threads or processes.
    pub fn runtime(&self) -> Result<Runtime, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*open {
            return Ok(runtime.clone());
        }
        let runtime = Runtime::new(&self.options)?;
        *open = Some(runtime.clone());
        Ok(runtime)
    }

    /// Closes the runtime, if it is open. The next use makes another one.
    pub async fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(runtime) = open else { return };
        let (sender, closed) = oneshot::channel();
        runtime.close(move || {
            // The executor may wait no more.
            let _ = sender.send(());
        });
        // An error would mean that it is closed already.
        let _ = closed.await;
    }
}
