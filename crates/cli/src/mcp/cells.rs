//! The calls of tools that each cell makes.
//!
//! In: the calls of a request, as its cell begins. Out: the calls of the cell that runs, for the functions inside. At the
//! end of the cell its calls end.

use std::{
    any::Any,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{
    CallRequest, CellRequest, Error, Execution, Interception, NativeRun, Rest, RunInterceptor,
    SessionInterceptor,
};
use isolane_environment::ToolCalls;

/// Gives each cell its calls. One serves all sessions.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// Those of the cell that is about to begin.
    next: Mutex<Option<Arc<ToolCalls>>>,
    /// Held while a cell begins, so that no other one takes its calls.
    beginning: Mutex<()>,
}

impl Cells {
    /// Begins a cell, which has these calls.
    pub(super) fn begin(
        &self,
        calls: Option<Arc<ToolCalls>>,
        begin: impl FnOnce() -> Execution,
    ) -> Execution {
        let _beginning = lock(&self.beginning);
        *lock(&self.next) = calls;
        let execution = begin();
        *lock(&self.next) = None;
        execution
    }

    fn taken(&self) -> Arc<dyn RunInterceptor> {
        Arc::new(Cell { calls: lock(&self.next).take() })
    }
}

impl SessionInterceptor for Cells {
    fn cell(&self, _: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.taken())
    }

    fn call(&self, _: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.taken())
    }

    /// Outside of cells nothing calls tools.
    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::new(Cell { calls: None })
    }
}

/// One cell.
#[derive(Debug)]
struct Cell {
    calls: Option<Arc<ToolCalls>>,
}

impl RunInterceptor for Cell {
    fn ended(&self, _: bool, _: Rest) {
        if let Some(calls) = &self.calls {
            calls.end();
        }
    }
}

/// The calls of the cell that runs.
pub(super) fn calls_of(run: &NativeRun) -> Option<Arc<ToolCalls>> {
    let interceptor: &dyn Any = &**run.interception().map(Interception::interceptor)?;
    interceptor.downcast_ref::<Cell>()?.calls.clone()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
