//! The tests of the server through its sockets: one program, so that the crate is linked once.

mod client;
mod document;
mod door;
mod guard;
mod limits;
mod page;
mod problems;
mod processes;
mod scripted;
mod server;
mod streams;
