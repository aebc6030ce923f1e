//! isolane for Node.js: the native half.
//!
//! In: frames of bytes that `lib/` writes, one native call each. Out: frames of events, many in one
//! call. The core makes all decisions. Values cross as the core's own messages, which JavaScript reads
//! and writes itself, because the native interface would take a call for each node of a value.
//!
//! | file | translates |
//! |---|---|
//! | `runtime.rs` | `Runtime` |
//! | `bridge.rs` | nothing: the numbers and tables that a thread has beside the core |
//! | `events.rs` | `HostEvent` |
//! | `session.rs` `session_options.rs` | `SessionHandle`, and the requests of sessions |
//! | `answers.rs` | answers of sessions that arrive later |
//! | `command.rs` | nothing: the command line, for `cli.cjs` |
//! | `door.rs` | `System`: systems; their calls, which are runs here; runs and sessions that they amend |
//! | `execution.rs` | `RunHandle`: the operations on a run |
//! | `host.rs` | `MailboxHost`: the wake-up of the thread that started a run |
//! | `host_sessions.rs` | `SessionHost`: sessions of systems, with the functions of JavaScript |
//! | `native.rs` | `NativeFunction`: a function that is answered in Rust |
//! | `options.rs` | `Request`, and the messages for bad options |
//! | `outcome.rs` | `ExecutionResult` |
//! | `value.rs` `large.rs` | `Value`, and the frames that carry it; large messages |
//! | `limits.rs` `collisions.rs` `patterns.rs` | refusals of messages that V8 would build too slowly |
//! | `error.rs` | `Error` |
//! | `wire.rs` | nothing: the numbers of frames |

#![expect(unreachable_pub, reason = "the interface generator asks for public items")]

mod answers;
mod bridge;
mod collisions;
mod command;
mod door;
mod error;
mod events;
mod execution;
mod host;
mod host_sessions;
mod large;
mod limits;
mod native;
mod options;
mod outcome;
mod patterns;
mod runtime;
mod session;
mod session_options;
mod value;
mod wire;
