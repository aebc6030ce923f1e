//! isolane for Node.js: the native half.
//!
//! In: frames of bytes that `lib/` writes, one native call each. Out: frames of events, many in one
//! call. Nothing is decided here. Values cross as the core's own messages, which JavaScript reads
//! and writes itself: walking a value through the native interface would cost a call per node.
//!
//! | file | translates |
//! |---|---|
//! | `runtime.rs` | `Runtime` |
//! | `bridge.rs` | nothing: the numbers and tables that a thread has beside the core |
//! | `events.rs` | `HostEvent` |
//! | `execution.rs` | `RunHandle`: what may be done to a run |
//! | `host.rs` | `MailboxHost`: how the thread that started a run is woken |
//! | `native.rs` | `NativeFunction`: a function that is answered in Rust |
//! | `options.rs` | `Request`, and the words for bad options |
//! | `outcome.rs` | `ExecutionResult` |
//! | `value.rs` `large.rs` | `Value`, and the frames that carry it; those that are read bit by bit |
//! | `limits.rs` `collisions.rs` `patterns.rs` | what V8 cannot build in proportion to its bytes |
//! | `error.rs` | `Error` |
//! | `wire.rs` | nothing: the numbers of frames |

#![expect(unreachable_pub, reason = "the interface generator asks for public items")]

mod bridge;
mod collisions;
mod error;
mod events;
mod execution;
mod host;
mod large;
mod limits;
mod native;
mod options;
mod outcome;
mod patterns;
mod runtime;
mod value;
mod wire;
