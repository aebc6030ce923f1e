//! Sessions: an isolate that stays, and cells that run in it one after another.
//!
//! In: a session's capabilities, then one [`Work`] after another. Out: a [`Turn`](super::Turn) each time a cell stops,
//! its end, and what it did to the state.
//!
//! `tables` is the data that a session has beside the tables of any run: `declared` has its names, `present` the cell
//! that runs, `seats` the cells that wait. `parts` is the data that a realm has for sessions, and `work` the cells on
//! their way. `names` binds the names that cells declare, `capabilities` those that the host gives, and `listing` lists
//! the former. `modules` notes the modules that were loaded, and `remains` forgets cells of which nothing lives. `code`
//! loads a cell, and `cell` goes from the linked cell to its end. Where cells interleave, `seating` tells whose turn it
//! is.
//!
//! Above them stands the session: `isolate` has it and its checkpoints, `image` keeps the tables beside the heap for a
//! checkpoint, and `blocks` the parts that several images share. `turns` enters the engine, and `interleave` has the cells
//! in flight and the points to which they go back.

mod blocks;
mod capabilities;
pub(super) mod cell;
pub(super) mod code;
mod declared;
mod image;
mod interleave;
mod isolate;
mod listing;
mod modules;
mod names;
pub(super) mod parts;
mod present;
mod remains;
pub(super) mod seating;
mod seats;
pub(super) mod tables;
#[cfg(test)]
mod tests;
mod turns;
mod work;

pub(crate) use self::{
    interleave::Addressee,
    isolate::SessionIsolate,
    work::{CellSeat, Concluded, Work},
};
