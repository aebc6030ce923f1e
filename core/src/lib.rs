//! Runs a model's JavaScript and TypeScript in an isolate, with exactly the capabilities that its host hands over.
//!
//! [`run_code`] starts a run and returns a handle at once: an [`Execution`]. It is a future, can terminate the run, and
//! shows reports while the run is running. The outcome is one [`ExecutionResult`]; [`ExecutionResult::into_value`]
//! makes it a value or an error, for `?`.
//! Values cross as messages ([`Value`]), with serde on either side; host functions are closures ([`HostFunction`]).
//! Language bindings use the layer below: [`Runtime::start`], [`Request`], [`Host`], [`RunHandle`].

#![cfg_attr(
    not(any(target_os = "linux", target_os = "macos", windows)),
    allow(dead_code, unused_imports, reason = "only `worker` uses some items")
)]

mod binding;
mod data;
mod error;
mod intl;
mod isolate;
mod modules;
mod os;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod protocol;
mod runtime;
mod rust;
mod testing;
pub mod value;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod worker;

pub use binding::door::{Callback, Caller, Reply, Terminated, start_call};
pub use binding::handle::{EventPoller, RunHandle};
pub use binding::host::{ASYNC_FUNCTION, Completion, Host, HostCall, REPORT_SINK, Refusal};
pub use binding::interception::{Interception, Rest, RunInterceptor};
pub use binding::mailbox::{HostEvent, Mailbox, Wake};
pub use binding::mailbox_host::{MailboxHost, Validate};
pub use binding::native::{
    Answering, EndHook, MakeAnswer, NativeAnswer, NativeCall, NativeFunction, NativeFunctions,
    NativeMode, NativeRecord, NativeRun,
};
pub use binding::visit::{Collection, MessageVisitor, Refused, refusal};
pub use data::cause::{Cause, KEPT_THROWS, LARGE_THROW_BYTES};
pub use data::cell::{CellOutcome, EndedBy, Name, NameKind, SessionState, ValueFrom};
pub use data::console_line::console_line;
pub use data::date::iso_date;
pub use data::extension::{Extension, ExtensionFunction, ExtensionReturns, install_extension};
pub use data::inspect::{inspect, inspect_limit, inspect_marked};
pub use data::outcome::{ExecutionError, ExecutionLog, ExecutionResult, LogLevel, Status};
pub use data::status_error::StatusError;
pub use data::text::{MESSAGE_LIMIT, STACK_LIMIT};
pub use data::{
    options::{
        OptionDeclaration, OptionKind, OptionSet, Spelling, unknown_keyword, unknown_name,
        unknown_option, wrong_type,
    },
    runtime_options::{Isolation, OptionValue, RuntimeOptions},
    source::{Language, SourceText},
};
pub use error::{Error, ErrorKind};
pub use isolane_confine::Confinement;
pub use isolate::stalled::STALLED;
pub use modules::compile::async_function::async_function;
pub use modules::compile::requested::requested_modules;
pub use modules::program::check_library;
pub use modules::request::{ExtensionRequest, Request, Shape, is_reserved_word};
pub use modules::session_interceptor::SessionInterceptor;
pub use modules::session_request::{CallRequest, CellRequest, SessionRequest, UpdateRequest};
pub use os::process::process_id;
pub use runtime::{Runtime, SessionHandle, Stats, WeakSessionHandle};
pub use rust::{
    Answer, BoxedError, CallOptions, Callable, CellOptions, Cells, ErrorCode, Execute, Execution,
    ExecutionOptions, Fallible, FutureCallable, HostError, HostFunction, HostPromise, Input,
    Inputs, IntoOutput, Meter, Parameters, Plain, Report, Reports, Returned, SandboxCall,
    SandboxFunction, SandboxPromise, Session, SessionOptions, SessionUpdate, Terminator,
    futures_runtime, run_code, spawn,
};
pub use value::path::{Step, answer_of};
pub use value::{Charge, Value};
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub use worker::{WorkerAllocator, worker_main};

/// Tests the Rust examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct RustPage;

/// Tests the examples of this page of `docs/`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/packages.md")]
struct PackagesPage;
