//! Runs a model's JavaScript and TypeScript in an isolate, with exactly the capabilities that its
//! host hands over.
//!
//! [`run_code`] starts a run and returns a handle at once: an [`Execution`], which is a future, can
//! be ended, and shows reports while it goes on. What comes of it is one [`ExecutionResult`], or a value
//! and an error for `?` with [`ExecutionResult::into_value`].
//! Values cross as messages ([`Value`]), with serde on either side; host functions are closures
//! ([`HostFunction`]). A language binding uses what is below that: [`Runtime::start`], [`Request`],
//! [`Host`], [`Remote`].

#![cfg_attr(
    not(any(target_os = "linux", target_os = "macos", windows)),
    allow(dead_code, unused_imports, reason = "what only `worker` uses")
)]

mod begin;
mod cache;
mod clock;
mod compile;
mod confinement;
#[cfg(test)]
mod costs;
mod error;
mod execution;
mod face;
#[cfg(test)]
mod fault_tests;
mod host;
mod inspect;
mod isolate;
mod laps;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod ledger;
mod link;
mod options;
mod outcome;
mod path;
mod patience;
mod process;
mod program;
mod record;
mod registry;
mod run;
mod runtime;
mod sanitized;
mod scheduler;
mod stack;
mod status_error;
mod sync;
mod text;
mod thread;
mod turns;
pub mod value;
mod watchdog;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod worker;

pub use confinement::Confinement;
pub use error::{Error, ErrorKind};
pub use execution::{Listener, Remote};
pub use face::{
    BoxedError, Callable, ErrorCode, Execute, Execution, ExecutionOptions, Fallible,
    FutureCallable, HostError, HostFunction, HostPromise, Input, Inputs, IntoOutput, Parameters,
    Plain, Report, Reports, Returned, SandboxCall, SandboxFunction, SandboxPromise, Terminator,
    run_code,
};
pub use host::{ASYNC_FUNCTION, Completion, Host, HostCall, REPORT_SINK, Refusal};
pub use options::{
    Isolation, Language, OptionSet, Request, RuntimeOptions, SourceText, Spelling, unknown_option,
    wrong_type,
};
pub use outcome::{ExecutionError, ExecutionLog, ExecutionResult, LogLevel, Status};
pub use path::Step;
pub use patience::Patience;
pub use runtime::{Runtime, Stats};
pub use status_error::StatusError;
pub use turns::Turns;
pub use value::Value;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub use worker::{WorkerAllocator, worker_main};

/// Keeps the README's Rust.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
