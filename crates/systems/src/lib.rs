//! The systems that a face opens by name. Both bindings open them here, so that they know none of them.

use std::sync::Arc;

use isolane::{Error, ErrorKind};
use isolane_door::{Context, Given, System};

/// Whether the system with that name tells texts with a lone surrogate among its options from others.
#[must_use]
pub fn tells_torn(name: &str) -> bool {
    name.ends_with("-executor") || name == "code-loop" || name == "notebook"
}

/// Opens the system with that name.
///
/// # Errors
/// Misuse of an option, as the system words it.
pub fn open(name: &str, options: Given, context: Context) -> Result<Arc<dyn System>, Error> {
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
