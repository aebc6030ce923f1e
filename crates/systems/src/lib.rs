//! The systems that a face opens by name. Both bindings open them here, so that they know none of them.

use std::sync::Arc;

use isolane::{Error, ErrorKind, NativeFunction, Value};
use isolane_door::{Context, System, read_options};

/// Opens the system with that name; the options are a message.
///
/// # Errors
/// Misuse of an option, as the system words it.
pub fn open(name: &str, options: &Value, context: Context) -> Result<Arc<dyn System>, Error> {
    if name == "kit" {
        return isolane_kit::door::open(options, context);
    }
    let tells_torn = name.ends_with("-executor") || matches!(name, "code-loop" | "notebook");
    let options = read_options(options, &context.caller, tells_torn)?;
    match name {
        "typescript-environment" => isolane_environment::door::open_environment(options, context),
        "process-service" => isolane_environment::door::open_service(options, context),
        "local-executor" | "container-executor" | "confined-executor" => {
            isolane_executors::door::open_program(name, &options, context)
        }
        "isolate-executor" => isolane_executors::door::open_isolate(&options, context),
        "code-loop" => isolane_executors::door::open_loop(&options, &context),
        "http-server" => isolane_http::door::open(options, &context),
        "notebook" => isolane_notebook::door::open(options, context),
        "notebook-registry" => isolane_notebook::door::open_registry(&options, &context),
        "notebook-renderers" => Ok(isolane_notebook::door::open_renderers(&context)),
        _ => Err(Error::new(ErrorKind::Type, format!("there is no system '{name}'"))),
    }
}

/// The function with that name that is answered in Rust and needs no system.
#[must_use]
pub fn function(name: &str) -> Option<Arc<dyn NativeFunction>> {
    isolane_kit::function(name)
}
