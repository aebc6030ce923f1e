//! From a checked request to an isolate that is about to start.
//!
//! In: the request, the cache of compiled modules, and the pool of instances. Out: the isolate, linked, with everything
//! that was handed to the run; or the end of a run that never begins.

use std::sync::Arc;

use crate::{
    data::outcome::Status,
    isolate::{Embedder, End, Isolate, Pool, Realm, Task, Termination},
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
    let limit = usize::try_from(request.memory_limit()).unwrap_or(usize::MAX);
    let task = Task {
        export: request.function.take().unwrap_or_else(|| "default".to_owned()),
        globals: request.globals.clone(),
        // Moved, because they may be large and linking needs only the names.
        inputs: std::mem::take(&mut request.inputs),
        report: request.report,
    };
    let may_wait = request.hands_over();
    let linker = match program::link(cache, request) {
        Ok(linker) => linker,
        Err(Unlinked::Memory(module)) => return Prepared::Over(End::Oversized(module)),
        Err(Unlinked::Error(error)) => {
            return Prepared::Over(End::Failed(Status::LinkError, error));
        }
    };
    match pool.take(limit, may_wait) {
        Some(instance) => {
            Prepared::Isolate(Isolate::new(instance, embedder, linker, task, limit, termination))
        }
        None => Prepared::Over(End::Memory),
    }
}
