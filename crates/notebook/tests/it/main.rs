//! The tests of the notebook through its public interface: one program, so that the crate is linked once.

mod agents;
mod calls;
mod cases;
mod files;
mod host;
mod misuse;
mod render;
mod sessions;
mod support;
