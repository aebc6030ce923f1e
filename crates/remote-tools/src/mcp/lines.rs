//! Output of a program, within bounds.
//!
//! In: bytes. Out: the same, until a line is too long; lines of its standard error, each cut.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::MOST_MESSAGE_BYTES;

/// The most bytes of a line of the standard error.
const MOST_LINE_BYTES: usize = 4 << 10;

/// Why a program is of no use any more.
pub(super) type Fault = Arc<OnceLock<String>>;

/// Messages, one a line. A line that is too long is a failure: the protocol's library would drop it, and nobody would learn
/// that the call has no answer.
pub(super) struct Messages<R> {
    source: R,
    /// The bytes of the line so far.
    length: usize,
    fault: Fault,
}

impl<R> Messages<R> {
    pub(super) fn new(source: R, fault: Fault) -> Self {
        Self { source, length: 0, fault }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.source).poll_read(context, buffer))?;
        let mut length = self.length;
        let mut is_too_long = false;
        for part in buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n') {
            length += part.len();
            is_too_long |= length > MOST_MESSAGE_BYTES;
            if part.ends_with(b"\n") {
                length = 0;
            }
        }
        self.length = length;
        if is_too_long {
            // A failure comes without bytes.
            buffer.set_filled(before);
            let text = format!("a message of the server is larger than {MOST_MESSAGE_BYTES} bytes");
            // The first fault counts.
            let _ = self.fault.set(text.clone());
            return Poll::Ready(Err(io::Error::other(text)));
        }
        Poll::Ready(Ok(()))
    }
}

/// Hands the lines of a stream on, to its end.
pub(super) async fn each_line(mut stream: impl AsyncRead + Unpin, take: impl Fn(&str)) {
    let mut bytes = vec![0; MOST_LINE_BYTES];
    let mut line: Vec<u8> = Vec::new();
    // The rest of a line that is too long is dropped.
    let mut is_cut = false;
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        for part in bytes[..count].split_inclusive(|byte| *byte == b'\n') {
            let (text, is_end) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            if !is_cut {
                let room = MOST_LINE_BYTES.saturating_sub(line.len());
                is_cut = text.len() > room;
                line.extend_from_slice(&text[..text.len().min(room)]);
            }
            if is_end {
                take(String::from_utf8_lossy(&line).trim_end());
                line.clear();
                is_cut = false;
            }
        }
    }
    if !line.is_empty() {
        take(String::from_utf8_lossy(&line).trim_end());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_a_fault() {
        let fault = Fault::default();
        let mut text = vec![b'a'; MOST_MESSAGE_BYTES - 1];
        text.push(b'\n');
        let mut read = Vec::new();
        let fits = Messages::new(text.as_slice(), Arc::clone(&fault)).read_to_end(&mut read).await;
        assert_eq!(fits.expect("it fits"), MOST_MESSAGE_BYTES);
        assert_eq!(fault.get(), None);
        text.insert(0, b'a');
        let long = Messages::new(text.as_slice(), Arc::clone(&fault)).read_to_end(&mut read).await;
        long.expect_err("it is too long");
        let message = fault.get().expect("a fault");
        assert_eq!(message, "a message of the server is larger than 16777216 bytes");
    }

    #[tokio::test]
    async fn lines_are_cut() {
        let lines = Mutex::new(Vec::new());
        let text = format!("one\r\n{}\nthree", "x".repeat(10_000));
        each_line(text.as_bytes(), |line| lines.lock().expect("no panic").push(line.len())).await;
        assert_eq!(lines.into_inner().expect("no panic"), [3, MOST_LINE_BYTES, 5]);
    }
}
