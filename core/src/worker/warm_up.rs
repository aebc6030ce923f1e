//! A run of our own, before the first of a host.
//!
//! In: a worker that was just forked and that nobody needs yet. Out: the same, its isolate as pristine as
//! before, and every page at hand that a small run touches. A fork shares all pages and hands on none of those
//! of files: each is a fault when it is touched first, which together take longer than a small run does. So
//! they are taken while the worker waits.

use std::sync::Arc;

use crate::{
    isolate::{NullEmbedder, Pool, Realm, Termination},
    modules::{cache::Cache, request::Request},
    runtime::prepare::{Prepared, prepare},
};

/// Something of each part of a small run: types to erase, a function, a promise, an object to clone.
const PROGRAM: &str = "const twice = (n: number): number => n * 2;\n\
                       export default await Promise.resolve({ text: `${twice(21)}`, list: [twice(1)] });";

/// Runs it, and restores the isolate.
pub(crate) fn warm_up(pool: &Pool<Realm>, cache: &Arc<Cache>) {
    let request = Request::new(PROGRAM.to_owned().into());
    let termination = Arc::<Termination>::default();
    if let Prepared::Isolate(mut isolate) =
        prepare(request, cache, pool, Arc::new(NullEmbedder), termination)
    {
        isolate.start();
        pool.give_back(isolate.finish());
    }
}
