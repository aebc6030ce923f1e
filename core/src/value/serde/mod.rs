//! Conversions between messages and serde.

pub(super) mod cursor;
pub(super) mod de;
pub(super) mod fault;
pub(crate) mod host_object;
mod members;
mod reading;
pub(super) mod ser;
mod transcode;
