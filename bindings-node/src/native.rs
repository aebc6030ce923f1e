//! Functions that are answered in Rust, as JavaScript hands them over.
//!
//! In: the name of a function of the kit. Out: an object that crosses as a function. Its calls never reach
//! JavaScript.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]

use std::sync::Arc;

use isolane::NativeFunctions;
use napi::{Error, Result};
use napi_derive::napi;

use crate::bridge::with_bridge;

/// A function that is answered in Rust.
#[napi]
pub struct NativeFunction {
    function: Arc<dyn isolane::NativeFunction>,
}

#[napi]
impl NativeFunction {
    /// The function's name, for a place that gives it none.
    #[napi(getter)]
    #[must_use]
    pub fn name(&self) -> String {
        self.function.name().to_owned()
    }
}

/// The functions of a run that are answered in Rust, before the run starts.
#[napi]
#[derive(Default)]
pub struct NativeTable {
    pub(crate) functions: NativeFunctions,
}

#[napi]
impl NativeTable {
    /// An empty table.
    #[napi(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number under which a function crosses.
    #[napi]
    #[must_use]
    pub fn number(&self, function: &NativeFunction) -> u32 {
        self.functions.number(&function.function)
    }
}

/// The function of the kit with that name.
///
/// # Errors
/// If the kit has no such function.
#[napi(catch_unwind)]
pub fn kit_function(name: String) -> Result<NativeFunction> {
    match isolane_systems::function(&name) {
        Some(function) => Ok(NativeFunction { function }),
        None => Err(Error::from_reason(format!("the kit has no function '{name}'"))),
    }
}

/// The number under which a function crosses into a run or session that has started.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn native_number(bridge: u32, run: u32, function: &NativeFunction) -> Result<u32> {
    with_bridge(bridge, |bridge| {
        let native = bridge.runs.borrow().get(&run).map(|run| run.native.clone());
        let native = native.or_else(|| bridge.session(run).map(|session| session.native));
        // Nothing is sent to a run that has settled, so any number is correct.
        native.map_or(0, |native| native.number(&function.function))
    })
}
