//! The rules of requests: which may be made, and to which addresses.
//!
//! In: the options of the host, and a request. Out: whether it is allowed, or the error. [`allow`] judges a URL and a
//! method before anything is looked up, [`address`] the addresses at every connection. Nothing here opens a socket.

pub mod address;
pub mod allow;
pub mod pattern;
pub mod target;
