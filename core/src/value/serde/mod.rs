//! Messages from and to serde.

pub(super) mod cursor;
pub(super) mod de;
pub(super) mod fault;
pub(crate) mod link;
pub(super) mod ser;
