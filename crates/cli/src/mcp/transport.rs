//! The transport: messages over stdin and stdout, one a line.
//!
//! In: messages of a host, answers of the server. Out: the same. A line that is too long is answered by an error. A
//! stdout that nobody reads cancels a token: the host is gone, though it may hold stdin open.

use std::io;

use isolane_environment::CancellationToken;
use rmcp::{
    ErrorData, RoleServer,
    model::RequestId,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};

use super::{input::Input, lines::MOST_LINE_BYTES};

pub(super) struct Lined<R: AsyncRead + Unpin, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, Input<R>, W>,
    /// The ids of lines that are too long.
    too_long: UnboundedReceiver<Option<RequestId>>,
    unread: CancellationToken,
}

impl<R, W> Lined<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Cancels `closing` at the end of the input, and `unread` when nobody reads the output any more.
    pub(super) fn new(
        (input, output): (R, W),
        closing: CancellationToken,
        unread: CancellationToken,
    ) -> Self {
        let (sender, too_long) = unbounded_channel();
        let lines = AsyncRwTransport::new_server(Input::new(input, closing, sender), output)
            .with_max_line_length(MOST_LINE_BYTES);
        Self { lines, too_long, unread }
    }
}

impl<R, W> Transport<RoleServer> for Lined<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sending, unread) = (self.lines.send(message), self.unread.clone());
        async move {
            let sent = sending.await;
            if sent.is_err() {
                unread.cancel();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let id = tokio::select! {
                biased;
                Some(id) = self.too_long.recv() => id,
                message = self.lines.receive() => return message,
            };
            let text = format!("a message must have at most {MOST_LINE_BYTES} bytes");
            let error = ErrorData::invalid_request(text, None);
            // The library may drop this future at any time, so a task sends the answer.
            drop(tokio::spawn(self.send(TxJsonRpcMessage::<RoleServer>::error(error, id))));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

/// Cancels the token when nobody reads stdout any more, though nothing is written.
#[cfg(unix)]
pub(super) fn watch(unread: CancellationToken) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let watching = move || {
        let stdout = io::stdout();
        // No events are asked for: those of a broken pipe come all the same.
        let mut waiting = [PollFd::new(&stdout, PollFlags::empty())];
        while poll(&mut waiting, None) == Err(rustix::io::Errno::INTR) {}
        unread.cancel();
    };
    // The thread waits for as long as somebody reads, and ends with the process.
    std::thread::Builder::new().name("isolane-mcp-stdout".to_owned()).spawn(watching).map(drop)
}

/// The system tells it at the next message alone.
#[cfg(not(unix))]
pub(super) fn watch(_: CancellationToken) -> io::Result<()> {
    Ok(())
}
