//! Values, functions and promises that enter or leave the sandbox.
//!
//! `clone_in` and `clone_out` turn messages into values and back, with `collecting` for the entries of a Map or a Set.
//! `bridge` gives functions and promises numbers and calls them: `numbered` is the data of these, and `host_function` the
//! objects that stand for functions of the host. `thrown` identifies the throws of the host, which `throws` keeps, and
//! `structured_clone` is the sandbox's own function of that name.

pub(super) mod bridge;
pub(super) mod clone_in;
pub(super) mod clone_out;
pub(super) mod collecting;
pub(super) mod host_function;
pub(super) mod numbered;
pub(super) mod structured_clone;
pub(super) mod thrown;
pub(super) mod throws;
