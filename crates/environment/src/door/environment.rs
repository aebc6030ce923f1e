//! The system `typescript-environment`: an environment that other languages hold.
//!
//! In: `execute(input, bindings)`, `kill(eid)`, `docs()`, `toolDocs(tool)`, `shutdown()`; `number()` is asked for by a
//! `process-service` that is to use it. Out: their answers.

use std::sync::Arc;

use isolane::{Caller, Error, OptionValue, RuntimeOptions, Value, wrong_type};
use isolane_door::{Called, Context, Given, System, no_method};

use super::{
    Args, ENVIRONMENTS,
    foreign::ForeignHost,
    given::{Options, size},
    thrown::message,
    type_error,
};
use crate::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionInput, ToolInfo,
    TypeScriptEnvironment, TypeScriptEnvironmentOptions,
};

/// The options, in the order in which errors list them.
const NAMES: &[&str] = &[
    "isolation",
    "concurrency",
    "memory_limit_bytes",
    "default_timeout_ms",
    "globals",
    "imports",
    "modules",
];

pub(super) struct EnvironmentSystem {
    environment: Arc<TypeScriptEnvironment>,
    number: u64,
}

impl EnvironmentSystem {
    pub(super) fn open(options: &Given, context: &Context) -> Result<Self, Error> {
        let spelling = context.spelling;
        let given = Options::new(options, NAMES, spelling)?;
        let isolation = match given.get("isolation") {
            (_, value) if value.is_absent() => None,
            (_, Given::Text(text)) => {
                let mut options = RuntimeOptions { spelling, ..RuntimeOptions::default() };
                options.set("isolation", OptionValue::Text(text.clone()))?;
                Some(options.isolation)
            }
            (name, other) => return Err(wrong_type(&name, "a string", other.kind())),
        };
        let options = TypeScriptEnvironmentOptions {
            isolation,
            concurrency: given.whole("concurrency")?.map(size),
            memory_limit_bytes: given.whole("memory_limit_bytes")?,
            default_timeout_ms: given.whole("default_timeout_ms")?,
            globals: given.inputs("globals")?,
            imports: given.imports("imports")?,
            modules: given.texts("modules")?,
            runtime: context.runtime.clone(),
            worker_folder: Some(context.worker_folder.clone()),
            spelling,
        };
        let environment = Arc::new(TypeScriptEnvironment::new(options)?);
        let number = ENVIRONMENTS.add(Arc::downgrade(&environment));
        Ok(Self { environment, number })
    }
}

impl Drop for EnvironmentSystem {
    fn drop(&mut self) {
        ENVIRONMENTS.remove(self.number);
    }
}

impl System for EnvironmentSystem {
    fn call(&self, method: &str, args: Vec<Given>, _caller: &Caller) -> Result<Called, Error> {
        let mut args = Args::new(args);
        let environment = Arc::clone(&self.environment);
        Ok(match method {
            "execute" => {
                let input = input(&args.next())?;
                let host = Arc::new(ForeignHost::read(input.eid, &args.next())?);
                let bindings = EnvironmentBindings::new(input.eid, host);
                Called::new(async move {
                    let ended = environment.execute(input, bindings).await;
                    ended.map(|state| message(&state)).map_err(|error| thrown(&error))
                })
            }
            "kill" => {
                let eid = args.whole("eid")?;
                Called::new(async move {
                    let killed = environment.kill(eid).await;
                    killed.map(|()| Value::undefined()).map_err(|error| thrown(&error))
                })
            }
            "docs" => Called::new(async move { Ok(message(&environment.generate_docs().await)) }),
            "toolDocs" => {
                let read = args.next().json().and_then(|json| serde_json::from_value(json).ok());
                let tool: ToolInfo = read.ok_or_else(|| type_error("this is no tool"))?;
                Called::new(
                    async move { Ok(message(&environment.generate_tool_docs(&tool).await)) },
                )
            }
            "shutdown" => Called::new(async move {
                environment.shutdown().await;
                Ok(Value::undefined())
            }),
            _ => return Err(no_method(method)),
        })
    }

    fn ask(&self, method: &str, _args: Vec<Given>) -> Result<Value, Error> {
        match method {
            "number" => Ok(message(&self.number)),
            _ => Err(no_method(method)),
        }
    }
}

/// Reads `{ eid, code, options?: { timeoutMs } }`.
fn input(given: &Given) -> Result<ExecutionInput, Error> {
    let read = given.json().map(serde_json::from_value);
    match read {
        Some(Ok(input)) => Ok(input),
        Some(Err(fault)) => Err(type_error(format!("the input is wrong: {fault}"))),
        None => Err(wrong_type("the input", "{ eid, code, options }", given.kind())),
    }
}

fn thrown(error: &EnvironmentError) -> Value {
    isolane::HostError::new("Error", error.message()).to_value()
}
