//! The input of the server, which notices its end, and lines that are too long.
//!
//! In: bytes of a host. Out: the same; at the end, or at a failure, a token is cancelled. The protocol's library lets
//! calls go on for a while after the end, for nobody. It drops lines that are too long: their ids go to the transport.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use isolane_environment::CancellationToken;
use rmcp::model::RequestId;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::mpsc::UnboundedSender,
};

use super::lines::Lines;

pub(super) struct Input<R> {
    source: R,
    closing: CancellationToken,
    lines: Lines,
    /// Takes the ids of lines that are too long. Each of them costs the host 16 MiB.
    too_long: UnboundedSender<Option<RequestId>>,
}

impl<R> Input<R> {
    /// Reads from `source`, and cancels `closing` at its end.
    pub(super) fn new(
        source: R,
        closing: CancellationToken,
        too_long: UnboundedSender<Option<RequestId>>,
    ) -> Self {
        Self { source, closing, lines: Lines::default(), too_long }
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
        for id in self.lines.push(&buffer.filled()[before..]) {
            // A transport that is gone answers nothing.
            let _ = self.too_long.send(id);
        }
        Poll::Ready(read)
    }
}
