//! A run of our own, before the first run of a host.
//!
//! In: a worker that was just forked and is not in use yet. Out: the same worker, its isolate as pristine as before,
//! with every page mapped that a small run touches. A fork shares all pages and maps none of those of files. Each first
//! touch is a fault, and these faults together take longer than a small run. So the worker takes them while it waits.

use std::sync::Arc;

use crate::{
    isolate::{NullEmbedder, Pool, Realm, Termination},
    modules::{cache::Cache, request::Request},
    runtime::prepare::{Prepared, prepare},
};

/// A little of each part of a small run: types to erase, a function, a promise, an object to clone.
const PROGRAM: &str = "const twice = (n: number): number => n * 2;\n\
                       export default await Promise.resolve({ text: `${twice(21)}`, list: [twice(1)] });";

/// Runs the program and restores the isolate.
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
