//! From a checked request to an isolate that is about to start.
//!
//! In: the request, the cache of compiled modules, and the pool of instances. Out: the isolate, linked, with everything
//! that was handed to the run; or the end of a run that never begins.

use std::sync::Arc;

use crate::{
    data::outcome::{ExecutionError, Status},
    isolate::{Embedder, End, Isolate, Pool, Realm, Task, Termination, extension_fault},
    modules::{
        cache::Cache,
        program::{self, Unlinked},
        request::Request,
    },
};

/// The outcome of [`prepare`].
pub(crate) enum Prepared {
    Isolate(Box<Isolate>),
    Over(End),
}

/// Compiles and links the source, and puts it into a pristine instance.
pub(crate) fn prepare(
    mut request: Request,
    cache: &Arc<Cache>,
    pool: &Pool<Realm>,
    embedder: Arc<dyn Embedder>,
    termination: Arc<Termination>,
) -> Prepared {
    let (may_wait, is_extended) = (request.hands_over(), request.extension.is_some());
    let limit = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    let task = Task {
        export: request.function.take().unwrap_or_else(|| "default".to_owned()),
        globals: request.globals.clone(),
        // Moved, because they may be large and linking needs only the names.
        inputs: std::mem::take(&mut request.inputs),
        report: request.report,
        shape: request.shape,
        extension: request.extension.clone(),
    };
    let linker = match program::link(cache, request) {
        Ok(linker) => linker,
        Err(Unlinked::Memory(module)) => return Prepared::Over(End::Oversized(module)),
        Err(Unlinked::Error(error)) => {
            return Prepared::Over(End::Failed(Status::LinkError, error));
        }
    };
    let taken =
        if is_extended { pool.take_extended(limit, may_wait) } else { pool.take(limit, may_wait) };
    match taken {
        Some(instance) => {
            Prepared::Isolate(Isolate::new(instance, embedder, linker, task, limit, termination))
        }
        None => Prepared::Over(no_instance(is_extended)),
    }
}

/// The end of a run for which no instance could be made.
fn no_instance(is_extended: bool) -> End {
    match extension_fault().filter(|_| is_extended) {
        Some(message) => {
            let name = "InternalError".to_owned();
            let error =
                ExecutionError { name, message, is_failure: true, ..ExecutionError::default() };
            End::Failed(Status::Error, Box::new(error))
        }
        None => End::Memory,
    }
}
