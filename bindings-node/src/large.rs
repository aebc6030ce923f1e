//! Messages that JavaScript reads bit by bit.
//!
//! In: messages that are too large to be read, or copied into a frame, in one turn of the event loop. Out:
//! their nodes, lent as they are, and their blobs, some at a time. Such a message waits here under a number
//! until JavaScript has read it or has given it up.

use std::{thread, vec};

use isolane::value::Value;
use napi::{Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    bridge::with_bridge,
    value::{MANY_BLOBS, into_javascript},
};

/// One of them, and what JavaScript has not fetched of it.
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
            // To free a million blocks takes longer than the event loop may stand still. Where there is
            // no thread for it, that is so.
            let _ = thread::Builder::new().spawn(move || drop(blobs));
        }
    }
}

/// The nodes of a large message, once.
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

/// The next blobs of a large message, in order: some of them, none after the last.
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

/// Lets go of a large message.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn drop_large(bridge: u32, number: u32) -> Result<()> {
    with_bridge(bridge, |bridge| drop(bridge.larges.borrow_mut().remove(&number)))
}
