//! The tests of the kit through its public interface: one program, so that the kit is linked once.
//!
//! `place` says how the tests of runs and tools run in processes.

mod addresses;
mod browser;
#[cfg(unix)]
mod chromium;
mod costs;
mod csv;
mod fetch;
mod fetch_connections;
mod fetch_encodings;
mod fetch_functions;
mod fetch_secrets;
mod fetch_support;
mod json_form;
mod kit;
mod kit_hostile;
mod kit_runs;
mod native_functions;
mod patterns;
#[path = "../../../../core/tests/it/place.rs"]
mod place;
mod proxy;
mod redaction;
mod secrets;
mod store;
mod store_cost;
mod store_life;
mod store_short;
mod tools;
mod utilities;
mod web;
