//! The tests of the notebook through its public interface: one program, so that the crate is linked once.

mod calls;
mod cases;
mod host;
mod misuse;
mod support;
