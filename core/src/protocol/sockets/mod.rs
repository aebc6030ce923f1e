//! Sockets between a host and its workers.
//!
//! Writing to a socket whose other side is gone is an error and not a signal. Some systems set that with each write and
//! others once for the socket. The code does both, and each is empty where it is not needed. The same holds for the
//! host's writes, which never wait. The buffers are large, because a value that exceeds them takes several turns of
//! both sides.

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
