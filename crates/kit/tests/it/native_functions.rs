//! Functions of the store for runs of tests.
//!
//! In: native functions. Out: an object of the sandbox.

use std::{collections::BTreeMap, sync::Arc};

use isolane::{HostFunction, Input, NativeFunction};

/// An object with these functions.
pub(crate) fn input(
    functions: impl IntoIterator<Item = (&'static str, Arc<dyn NativeFunction>)>,
) -> Input {
    let functions = functions.into_iter().map(|(name, f)| (name, HostFunction::native(f)));
    Input::new(functions.collect::<BTreeMap<_, _>>())
}
