//! The tests of the kit through its public interface: one program, so that the kit is linked once.

mod addresses;
mod costs;
mod csv;
mod json_form;
mod native_functions;
mod patterns;
mod redaction;
mod secrets;
mod store;
mod store_cost;
mod store_life;
mod utilities;
