//! Output of a program, within bounds.
//!
//! In: bytes. Out: messages, until one is too long; lines of its standard error, each cut.

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::MOST_MESSAGE_BYTES;

/// The most bytes of a line of the standard error.
const MOST_LINE_BYTES: usize = 4 << 10;

/// Why a program is of no use any more.
pub(super) type Fault = Arc<OnceLock<String>>;

/// The bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Messages, one a line. The protocol's library drops what it cannot read, and nobody would learn that a call has no
/// answer. So a line that is too long is a failure, and an answer that cannot be read becomes one that says so.
pub(super) struct Messages<R> {
    source: R,
    chunk: Vec<u8>,
    /// The line so far.
    line: Vec<u8>,
    /// Lines for the reader, who has taken so many bytes of them.
    lines: Vec<u8>,
    taken: usize,
    fault: Fault,
}

impl<R> Messages<R> {
    pub(super) fn new(source: R, fault: Fault) -> Self {
        let (line, lines) = Default::default();
        Self { source, chunk: vec![0; CHUNK_BYTES], line, lines, taken: 0, fault }
    }

    /// Takes the next bytes in.
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > MOST_MESSAGE_BYTES {
                let text =
                    format!("a message of the server is larger than {MOST_MESSAGE_BYTES} bytes");
                // The first fault counts.
                let _ = self.fault.set(text.clone());
                return Err(io::Error::other(text));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match unreadable(&line) {
                    Some(answer) => self.lines.extend_from_slice(answer.as_bytes()),
                    None => self.lines.extend_from_slice(&line),
                }
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let left = &self.lines[self.taken..];
            if !left.is_empty() {
                let count = left.len().min(buffer.remaining());
                buffer.put_slice(&left[..count]);
                self.taken += count;
                return Poll::Ready(Ok(()));
            }
            // A long message has left much room behind.
            (self.lines, self.taken) = (Vec::new(), 0);
            let Self { source, chunk, .. } = &mut *self;
            let mut read = ReadBuf::new(chunk);
            ready!(Pin::new(source).poll_read(context, &mut read))?;
            let bytes = read.filled().to_vec();
            if bytes.is_empty() {
                // The end; a line without an end is no message.
                return Poll::Ready(Ok(()));
            }
            self.push(&bytes)?;
        }
    }
}

/// The answer in the place of one that cannot be read. Lines that are no answers are noise, and stay.
fn unreadable(line: &[u8]) -> Option<String> {
    if serde_json::from_slice::<ServerJsonRpcMessage>(line).is_ok() {
        return None;
    }
    let id = answered(line)?;
    let why = match serde_json::from_slice::<Json>(line) {
        Err(error) => error.to_string(),
        Ok(_) => "it is no answer of the protocol".to_owned(),
    };
    let message = format!("the answer of the server cannot be read: {why}");
    let error = json!({ "code": ErrorCode::PARSE_ERROR.0, "message": message });
    Some(format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "error": error })))
}

/// The request that a line answers, whatever is wrong with the answer. Requests of ours have numbers.
fn answered(line: &[u8]) -> Option<u64> {
    let (mut depth, mut is_escaped, mut text_from) = (0_usize, false, None);
    let (mut name, mut id, mut is_answer) = (&line[..0], None, false);
    for (at, byte) in line.iter().enumerate() {
        if let Some(from) = text_from {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    name = &line[from..at];
                    text_from = None;
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => text_from = Some(at + 1),
            b':' if depth == 1 => match name {
                b"id" => {
                    let value = line[at + 1..].split(|byte| b",}".contains(byte)).next();
                    let value = value.and_then(|value| std::str::from_utf8(value).ok());
                    id = value.and_then(|value| value.trim().parse().ok());
                }
                b"result" | b"error" => is_answer = true,
                _ => {}
            },
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    id.filter(|_| is_answer)
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
    async fn an_answer_that_cannot_be_read_says_so() {
        let deep = format!("{{\"id\":7,\"result\":{}{}}}\n", "[".repeat(200), "]".repeat(200));
        for (line, why) in [
            (
                &b"{\"jsonrpc\":\"2.0\",\"id\": 7 ,\"result\":{\"a\":\"\xff\"}}\n"[..],
                "invalid unicode code point",
            ),
            (
                b"{\"result\":{\"id\":5,\"a\":\"\\ud800\\\"}\"},\"id\":7}\n",
                "unexpected end of hex escape",
            ),
            (b"{\"id\":7,\"error\":1e999}\n", "number out of range"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":5}\n", "it is no answer of the protocol"),
            (deep.as_bytes(), "recursion limit exceeded"),
        ] {
            let answer = unreadable(line).expect("an answer");
            let answer: Json = serde_json::from_str(&answer).expect("JSON");
            let message = answer["error"]["message"].as_str().expect("a message");
            let begin = "the answer of the server cannot be read: ";
            assert!(
                answer["id"] == 7 && message.starts_with(&format!("{begin}{why}")),
                "{message}"
            );
        }
        for noise in [
            "Listening on port 3000\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\n",
            "{\"id\":7,\"a\":[{\"result\":1}]}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":5}\n",
            "\n",
            "]]]]{{{\n",
        ] {
            assert_eq!(unreadable(noise.as_bytes()), None, "{noise}");
        }
        let good = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[]}}\n";
        let text = format!("noise\n{good}{{\"id\":8,\"result\":\"\\ud800\"}}\nrest");
        let mut read = String::new();
        let mut messages = Messages::new(text.as_bytes(), Fault::default());
        messages.read_to_string(&mut read).await.expect("read");
        let lines: Vec<&str> = read.lines().collect();
        assert!(
            lines.len() == 3 && lines[1] == good.trim_end() && lines[2].contains("-32700"),
            "{read}"
        );
    }

    #[tokio::test]
    async fn lines_are_cut() {
        let lines = Mutex::new(Vec::new());
        let text = format!("one\r\n{}\nthree", "x".repeat(10_000));
        each_line(text.as_bytes(), |line| lines.lock().expect("no panic").push(line.len())).await;
        assert_eq!(lines.into_inner().expect("no panic"), [3, MOST_LINE_BYTES, 5]);
    }
}
