//! The functions of the host behind the helpers of JavaScript cells.
//!
//! In: calls of cells that may interleave. Out: answers of the desk of the cell that calls, which the core finds by what its
//! code awaits.

use std::{future::ready, sync::Arc};

use isolane::{Completion, HostFunction, Inputs, NativeAnswer, NativeCall, NativeFunction, Value};
use serde_json::json;

use super::intercepted::Recording;
use crate::{
    door::message,
    host::{
        Desk,
        desk::{HostCall, no_cell},
    },
};

/// `call(helper, name, args)`, which gives a promise, and `about()`, which gives `[tools, concurrency, most]` of the cell.
pub(super) fn functions() -> Inputs {
    Inputs::new()
        .with("call", HostFunction::native(Arc::new(Call)))
        .with("about", HostFunction::native(Arc::new(About)))
}

/// Arguments that cannot cross throw at once, unlike those of a function that always gives a promise.
struct Call;

impl NativeFunction for Call {
    fn name(&self) -> &'static str {
        "call"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let Some(desk) = desk_of(&call) else { return no_desk().into() };
        NativeAnswer::later(async move {
            let (helper, name, args): (String, String, Value) = call.arguments()?;
            drop(call);
            let answer = desk.answer(HostCall::new(helper, name, args), ready).await;
            answer.map_err(|error| error.to_value())
        })
    }
}

struct About;

impl NativeFunction for About {
    fn name(&self) -> &'static str {
        "about"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let Some(desk) = desk_of(&call) else { return no_desk().into() };
        let helpers = desk.helpers();
        let [concurrency, most] = helpers.concurrency;
        Ok(message(&json!([helpers.tools, concurrency, most]))).into()
    }
}

/// The desk of the cell that calls; `None` if no cell does.
fn desk_of(call: &NativeCall) -> Option<Arc<Desk>> {
    call.run.interception()?.find::<Recording>()?.desk.clone()
}

fn no_desk() -> Completion {
    Err(no_cell().to_value())
}
