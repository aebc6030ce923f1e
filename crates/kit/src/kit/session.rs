//! The sessions of a kit.
//!
//! In: cells before they are queued. Out: the state of each, with limits of its own.

use std::{fmt, sync::Arc};

use isolane::{
    CallRequest, CellRequest, Error, Name, RunInterceptor, SessionInterceptor, UpdateRequest,
};

use super::{
    Inner,
    amend::{check_update, number},
    left::Left,
    run::{Kind, RunState, redact},
};
use crate::fetch::FetchFunctions;

/// The state of a session.
pub(super) struct SessionState {
    kit: Arc<Inner>,
    /// The kit's names, which no update may take.
    names: Vec<String>,
    /// The functions that those of cells are made of: a request of an earlier cell may be given up by a later one.
    fetch: Option<FetchFunctions>,
    outside: Arc<RunState>,
    left: Arc<Left>,
    /// Tells the kit that a session is there still.
    token: Arc<()>,
}

impl SessionState {
    pub(super) fn new(kit: &Arc<Inner>, names: Vec<String>) -> Self {
        Self::with(kit, names, kit.run_fetch())
    }

    fn with(kit: &Arc<Inner>, names: Vec<String>, fetch: Option<FetchFunctions>) -> Self {
        let timeout_ms = number(kit.options.timeout_ms);
        let outside = RunState::new(kit, Kind::Code, fetch.clone(), timeout_ms);
        let (left, token) = (Arc::default(), Arc::default());
        Self { kit: Arc::clone(kit), names, fetch, outside, left, token }
    }

    fn cell(&self, timeout_ms: &mut Option<f64>) -> Result<Arc<dyn RunInterceptor>, Error> {
        self.kit.open()?;
        let timeout_ms = *timeout_ms.get_or_insert(number(self.kit.options.timeout_ms));
        Ok(self.state(Kind::Cell, timeout_ms))
    }

    fn state(&self, kind: Kind, timeout_ms: f64) -> Arc<RunState> {
        let fetch = self.fetch.as_ref().map(FetchFunctions::of_cell);
        RunState::in_session(&self.kit, kind, fetch, timeout_ms, Arc::downgrade(&self.left))
    }
}

impl SessionInterceptor for SessionState {
    fn opened(&self, close: Box<dyn Fn() + Send + Sync>) {
        self.kit.live.add_session(&self.token, close);
    }

    fn cell(&self, cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        self.cell(&mut cell.timeout_ms)
    }

    fn call(&self, call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        self.cell(&mut call.timeout_ms)
    }

    fn update(&self, update: &UpdateRequest) -> Result<(), Error> {
        check_update(&self.names, update)
    }

    fn names(&self, names: &mut Vec<Name>) {
        let redactor = &self.kit.secrets.snapshot().outputs;
        for name in names {
            redact(redactor, &mut name.name);
            redact(redactor, &mut name.kind_of);
        }
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::clone(&self.outside) as Arc<dyn RunInterceptor>
    }

    fn held(&self) -> Arc<dyn RunInterceptor> {
        self.state(Kind::Held, number(self.kit.options.timeout_ms))
    }

    fn fork(&self) -> Option<Arc<dyn SessionInterceptor>> {
        Some(Arc::new(Self::with(&self.kit, self.names.clone(), self.fetch.clone())))
    }
}

impl fmt::Debug for SessionState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SessionState").field("names", &self.names).finish_non_exhaustive()
    }
}
