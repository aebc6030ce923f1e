//! The input of the server, which notices its end.
//!
//! In: bytes of a host. Out: the same; at the end, or at a failure, a token is cancelled. The protocol's library lets
//! calls go on for a while after the end, for nobody.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use isolane_environment::CancellationToken;
use tokio::io::{AsyncRead, ReadBuf};

pub(super) struct Input<R> {
    source: R,
    closing: CancellationToken,
}

impl<R> Input<R> {
    /// Reads from `source`, and cancels `closing` at its end.
    pub(super) fn new(source: R, closing: CancellationToken) -> Self {
        Self { source, closing }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.source).poll_read(context, buffer));
        let is_over = read.is_err() || buffer.filled().len() == before;
        if is_over && buffer.capacity() > before {
            self.closing.cancel();
        }
        Poll::Ready(read)
    }
}
