//! isolane for Python: the native half.
//!
//! In: Python values and calls. Out: messages and requests of the core, and events as Python
//! objects. Nothing is decided here: words, checks and statuses are the core's, and what a handle
//! is, is said in Python (`python/isolane`). No thread of the core ever holds a Python object or
//! waits for the interpreter's lock: events are queued, and the thread or loop that started the
//! run fetches them. So the interpreter may end, fork or be busy whenever it likes.
//!
//! | file | translates |
//! |---|---|
//! | `runtime.rs` | `Runtime`, and the start of a run |
//! | `execution.rs` | `RunHandle` and `HostCall`: what may be done to a run |
//! | `host.rs` | `Mailbox`: what a run asks, as events for the thread or loop that started it |
//! | `message.rs` | messages, read at once or in several turns of a loop |
//! | `native.rs` | `NativeFunction`: a function that is answered in Rust |
//! | `options.rs` | the arguments of `run_code` as a `Request` |
//! | `outcome.rs` | `ExecutionResult` |
//! | `value/` | `Value`: Python objects to messages and back, and what Python cannot hold |
//! | `error.rs` | `Error` |
//! | `interpreter.rs` | nothing: which interpreters may import the module |

mod error;
mod execution;
mod host;
mod interpreter;
mod lock;
mod message;
mod native;
mod options;
mod outcome;
mod runtime;
mod value;

use pyo3::prelude::*;

// Objects of this module are guarded by locks of their own, but whether the rest of it holds up
// without the interpreter's lock has not been tried: a free-threaded interpreter turns it on.
#[pymodule(name = "_isolane", gil_used = true)]
fn isolane_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Before anything else: classes are kept for the whole process.
    interpreter::refuse_sub_interpreters(module.py())?;
    value::ask(module.py());
    module.add_class::<execution::PyHostCall>()?;
    module.add_class::<execution::PyRunHandle>()?;
    module.add_class::<host::PyMailbox>()?;
    module.add_class::<message::PyMessage>()?;
    module.add_class::<native::PyNativeFunction>()?;
    module.add_class::<runtime::PyRuntime>()?;
    module.add_function(wrap_pyfunction!(native::kit_function, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::start, module)?)?;
    module.add_function(wrap_pyfunction!(options::option_names, module)?)?;
    module.add("REPORT_SINK", isolane::REPORT_SINK)
}
