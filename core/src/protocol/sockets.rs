//! What the sockets between host and workers are like.
//!
//! Writing to one whose other side is gone is an error and not a signal. A system asks for that with each write
//! or once for the socket: the code does both, and each is nothing where it is not needed. The same holds of a
//! host's writing, which never waits for room. And there is room for much under way: a large value takes as many
//! turns of both sides as it does not fit.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{
    ASKS_CLOSING, CLOSING, NO_SIGNAL, NO_WAIT, Stream, at_once, is_full, make_room, no_signal,
    no_wait, pair, read, read_hosts,
};
#[cfg(windows)]
pub(crate) use self::windows::{
    ASKS_CLOSING, CLOSING, NO_SIGNAL, NO_WAIT, Stream, at_once, is_full, make_room, no_wait, pair,
    read, read_hosts,
};
