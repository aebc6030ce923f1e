//! The executor of isolates for faces.
//!
//! In: `options` that are not those of sessions, the `isolation`, and the binding's opener of sessions. Out: calls:
//! `execute`, whose first step is done on the caller's thread, and `close`.

use std::sync::Arc;

use isolane::{Caller, Error, ErrorKind, OptionValue, Runtime, RuntimeOptions, Value};
use isolane_door::{Called, Context, Given, System, no_method};

use super::{
    options::Options,
    program::{execution, traits},
};
use crate::{HostRuntime, IsolateCodeExecutor};

const ISOLATE: &[&str] =
    &["stateful", "show_value", "retry_attempts", "output_limit_bytes", "timeout_ms"];

/// Opens an executor of isolates.
///
/// # Errors
/// Misuse of an option; a runtime that cannot be made.
pub fn open(options: &Given, context: Context) -> Result<Arc<dyn System>, Error> {
    let Context { spelling, runtime, worker_folder, sessions, .. } = context;
    let misuse = |message| Error::new(ErrorKind::Type, message);
    let sessions = sessions.ok_or_else(|| misuse("there are no sessions"))?;
    let executor = Options::read(options.get("options"), ISOLATE, spelling)?.isolate()?;
    let runtime: HostRuntime = match (runtime, options.get("isolation")) {
        (Some(_), given) if !given.is_absent() => {
            return Err(misuse("runtime and isolation exclude each other"));
        }
        (runtime, given) if given.is_absent() => given_runtime(runtime),
        (_, given) => {
            let Given::Text(isolation) = given else {
                return Err(misuse("isolation must be 'thread' or 'process'"));
            };
            let worker_folder = Some(worker_folder);
            let mut own = RuntimeOptions { worker_folder, spelling, ..RuntimeOptions::default() };
            own.set("isolation", OptionValue::Text(isolation.clone()))?;
            HostRuntime::own(own)?
        }
    };
    Ok(Arc::new(Isolates(executor.with_host(sessions, runtime))))
}

fn given_runtime(runtime: Option<Runtime>) -> HostRuntime {
    runtime.map_or(HostRuntime::Shared, HostRuntime::Given)
}

struct Isolates(IsolateCodeExecutor);

impl System for Isolates {
    fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
        match method {
            // Its first step opens the session and queues the cell.
            "execute" => Ok(Called::begun(execution(Arc::new(self.0.clone()), args, caller))),
            "close" => {
                let executor = self.0.clone();
                Ok(Called::new(async move {
                    executor.close().await;
                    Ok(Value::undefined())
                }))
            }
            _ => Err(no_method(method)),
        }
    }

    fn ask(&self, method: &str, _args: Vec<Given>) -> Result<Value, Error> {
        match method {
            "traits" => Ok(traits(&self.0)),
            _ => Err(no_method(method)),
        }
    }

    fn tells_torn(&self) -> bool {
        true
    }
}
