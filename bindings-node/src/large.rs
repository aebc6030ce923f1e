//! Large messages, which JavaScript reads in slices.
//!
//! In: messages that are too large to be read, or copied into a frame, in one turn of the event loop. Out:
//! their nodes, without a copy, and their blobs, some at a time. Such a message waits under a number until
//! JavaScript has read or dropped it.

use std::{thread, vec};

use isolane::value::Value;
use napi::{Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    bridge::with_bridge,
    value::{MANY_BLOBS, into_javascript},
};

/// The parts of a large message that JavaScript has not fetched yet.
#[derive(Debug)]
pub(crate) struct Large {
    nodes: Vec<u8>,
    blobs: vec::IntoIter<Vec<u8>>,
}

impl From<Value> for Large {
    fn from(message: Value) -> Self {
        let (nodes, blobs) = message.into_parts();
        Self { nodes, blobs: blobs.into_iter() }
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        let blobs = std::mem::take(&mut self.blobs);
        if blobs.len() > MANY_BLOBS {
            // Freeing a million blocks would block the event loop for too long. If no thread can be started,
            // this thread frees them nevertheless.
            let _ = thread::Builder::new().spawn(move || drop(blobs));
        }
    }
}

/// The nodes of a large message; they can be taken once.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn large_nodes(env: &Env, bridge: u32, number: u32) -> Result<Uint8ArraySlice<'_>> {
    let nodes = with_bridge(bridge, |bridge| {
        let mut larges = bridge.larges.borrow_mut();
        larges.get_mut(&number).map(|large| std::mem::take(&mut large.nodes))
    })?;
    into_javascript(env, nodes.unwrap_or_default())
}

/// The next blobs of a large message, in order; empty after the last one.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn large_blobs(env: &Env, bridge: u32, number: u32) -> Result<Vec<Uint8ArraySlice<'_>>> {
    let blobs: Vec<_> = with_bridge(bridge, |bridge| {
        let mut larges = bridge.larges.borrow_mut();
        larges.get_mut(&number).map(|large| large.blobs.by_ref().take(MANY_BLOBS).collect())
    })?
    .unwrap_or_default();
    blobs.into_iter().map(|blob| into_javascript(env, blob)).collect()
}

/// Frees a large message.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn drop_large(bridge: u32, number: u32) -> Result<()> {
    with_bridge(bridge, |bridge| drop(bridge.larges.borrow_mut().remove(&number)))
}
