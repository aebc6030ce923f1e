//! The tests of the core through its public interface: one program, so that the core is linked once.
//!
//! `place` says how the tests of tables, calls and native functions run in processes.

mod alone;
mod api;
mod causes;
mod circles;
mod computing;
mod contract;
mod contract_sessions;
mod executors;
mod explanations;
mod face;
mod fairness;
#[cfg(unix)]
mod fork;
mod hazards;
mod in_flight;
mod interception;
mod memory_limit;
mod native;
mod place;
mod reports;
mod runtime;
mod session_calls;
mod session_face;
mod stopped;
mod stuck;
mod types;
mod walls;
