//! isolane for Python: the native half.
//!
//! In: Python values and calls. Out: messages and requests of the core, and events as Python
//! objects. The core makes all decisions, checks and messages. The API is in Python
//! (`python/isolane`). No thread of the core holds a Python object or waits for the interpreter's
//! lock: events are queued, and the thread or loop that started the run fetches them. So the
//! interpreter may end, fork or be busy at any time.
//!
//! | file | translates |
//! |---|---|
//! | `runtime.rs` | `Runtime`, and the start of a run |
//! | `execution.rs` | `RunHandle` and `HostCall`: the operations on a run |
//! | `door.rs` | `System`: systems; their calls, which are runs here; runs and sessions that they amend |
//! | `host.rs` | `Mailbox`: the events of a run, for the thread or loop that started it |
//! | `host_sessions.rs` | `SessionHost`: sessions of systems, with the functions of Python |
//! | `message.rs` | messages, read at once or in several turns of a loop |
//! | `command.rs` | nothing: the command line, for `__main__.py` |
//! | `native.rs` | `NativeFunction`: a function that is answered in Rust |
//! | `session.rs` | `Session`: the operations on a session, and their answers |
//! | `options.rs`, `options/` | the arguments of `run_code` and of sessions as requests |
//! | `outcome.rs` | `ExecutionResult` |
//! | `value/` | `Value`: Python objects to messages and back, and refusals of values that Python cannot represent |
//! | `error.rs` | `Error` |
//! | `interpreter.rs` | nothing: it refuses sub-interpreters |

mod command;
mod door;
mod error;
mod execution;
mod host;
mod host_sessions;
mod interpreter;
mod lock;
mod message;
mod native;
mod options;
mod outcome;
mod runtime;
mod session;
mod value;

use pyo3::prelude::*;

// Locks guard the objects of this module, but no test has run it without the interpreter's lock. So a
// free-threaded interpreter turns the lock on.
#[pymodule(name = "_isolane", gil_used = true)]
fn isolane_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // First, because classes are kept for the whole process.
    interpreter::refuse_sub_interpreters(module.py())?;
    value::detect_half_floats(module.py());
    module.add_class::<door::PySystem>()?;
    module.add_class::<execution::PyHostCall>()?;
    module.add_class::<execution::PyRunHandle>()?;
    module.add_class::<host::PyMailbox>()?;
    module.add_class::<host_sessions::PyCellEnd>()?;
    module.add_class::<message::PyMessage>()?;
    module.add_class::<native::PyNativeFunction>()?;
    module.add_class::<runtime::PyRuntime>()?;
    module.add_class::<session::PyAnswer>()?;
    module.add_class::<session::PySession>()?;
    module.add_class::<value::Functions>()?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(door::open_system, module)?)?;
    module.add_function(wrap_pyfunction!(host_sessions::check_session, module)?)?;
    module.add_function(wrap_pyfunction!(native::kit_function, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::start, module)?)?;
    module.add_function(wrap_pyfunction!(session::open_session, module)?)?;
    module.add_function(wrap_pyfunction!(options::option_names, module)?)?;
    module.add_function(wrap_pyfunction!(value::describe, module)?)?;
    module.add_function(wrap_pyfunction!(options::unknown_keyword, module)?)?;
    module.add("REPORT_SINK", isolane::REPORT_SINK)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
