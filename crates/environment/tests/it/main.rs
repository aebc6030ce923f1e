//! The tests of environments and of the process service through their public interface: one program, so that the crate is
//! linked once.

mod events;
mod states;
mod support;
mod tools;
mod typescript;
