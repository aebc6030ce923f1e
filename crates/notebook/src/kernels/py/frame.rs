//! Frames of a kernel, of which the host trusts none.
//!
//! In: bytes from the kernel's private descriptor. Out: frames, or the reason why the kernel cannot be trusted any more.
//! `kernel/channel.py` describes the format.

use isolane::Value;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::{
    CellError, Image,
    host::desk::{HostCall, MOST_HELD_BYTES},
    kernels::note,
    text::screen::Stream,
};

/// The bytes of a frame before its payload: its kind and its cell.
const HEAD: usize = 5;

/// The most that the arguments of a call may take once they are read. None within [`MOST_HELD_BYTES`] takes more: no node
/// weighs a hundred and twenty times its bytes; long data of a `write` weigh about their bytes. The desk refuses less than
/// that, with an error for the cell.
const MOST_READ_BYTES: usize = 128 * MOST_HELD_BYTES;

/// The bytes of a node that names a blob, at least.
const NAMING_BYTES: usize = 5;

/// A frame. Each names the cell that it is for; 0 is none.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// Bytes of a stream.
    Stream { cell: u32, stream: Stream, bytes: Vec<u8> },
    /// A display.
    Display { cell: u32, display: Display },
    /// The kernel takes cells.
    Ready { version: String, path: String },
    /// It answers a heartbeat.
    Beat,
    /// The interpreter is older than the kernel needs.
    Old { version: String },
    /// A cell has ended, with the error that it raised.
    Done { cell: u32, error: Option<CellError> },
    /// Code calls a function of the host. The number is the kernel's own, for the answer.
    Call { cell: u32, number: u64, call: HostCall },
}

/// A display of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Display {
    Text(String),
    Markdown(String),
    Json(Json),
    Image(Image),
    /// A status event of a helper of the kernel.
    Event(Json),
}

/// Why no more frames come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The kernel has closed its end.
    Closed,
    /// It sent what is no frame, or one that is too long.
    Malformed,
}

/// The next frame, whose payload has at most so many bytes. `newest` is the last cell that was begun.
///
/// Arguments of a call that have more than `held_bytes` are not read: the desk refuses them.
pub(super) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    most: u64,
    held_bytes: usize,
    newest: impl Fn() -> u32,
) -> Result<Frame, Fault> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.map_err(|_| Fault::Closed)?;
    let length = u64::from(u32::from_be_bytes(length));
    if length < HEAD as u64 || length > most.saturating_add(HEAD as u64) {
        return Err(Fault::Malformed);
    }
    let mut body = vec![0; HEAD];
    from.read_exact(&mut body).await.map_err(|_| Fault::Closed)?;
    // Bytes that code writes to the descriptor are no frame: nobody waits for the rest of one.
    if !is_head(&body, newest()) {
        return Err(Fault::Malformed);
    }
    from.take(length - HEAD as u64).read_to_end(&mut body).await.map_err(|_| Fault::Closed)?;
    if (body.len() as u64) < length {
        return Err(Fault::Closed);
    }
    parse(&body, held_bytes).ok_or(Fault::Malformed)
}

/// Whether a frame can begin so.
fn is_head(head: &[u8], newest: u32) -> bool {
    let [kind, cell @ ..] = head else { return false };
    let cell = <[u8; 4]>::try_from(cell).map(u32::from_be_bytes);
    b"oejc".contains(kind) && cell.is_ok_and(|cell| cell <= newest)
}

fn parse(body: &[u8], held_bytes: usize) -> Option<Frame> {
    let (head, payload) = body.split_first_chunk::<HEAD>()?;
    let [kind, cell @ ..] = head;
    let cell = u32::from_be_bytes(*cell);
    match kind {
        b'o' => Some(Frame::Stream { cell, stream: Stream::Stdout, bytes: payload.to_vec() }),
        b'e' => Some(Frame::Stream { cell, stream: Stream::Stderr, bytes: payload.to_vec() }),
        // A text may have lone surrogates.
        b'j' => {
            let message: Json = serde_json::from_str(&String::from_utf8_lossy(payload)).ok()?;
            self::message(cell, &message)
        }
        b'c' => call(cell, payload, held_bytes),
        _ => None,
    }
}

fn message(cell: u32, message: &Json) -> Option<Frame> {
    let text = |key: &str| message.get(key).and_then(Json::as_str).map(str::to_owned);
    let display = |display| Frame::Display { cell, display };
    Some(match message.get("type")?.as_str()? {
        "ready" => Frame::Ready { version: text("version")?, path: text("path")? },
        "beat" => Frame::Beat,
        "old" => Frame::Old { version: text("version")? },
        "text" => display(Display::Text(text("text")?)),
        "markdown" => display(Display::Markdown(text("text")?)),
        "json" => display(Display::Json(message.get("value")?.clone())),
        "image" => {
            let (data, mime_type) = (text("data")?, text("mimeType")?);
            display(Display::Image(Image { data, mime_type }))
        }
        "event" => display(Display::Event(note::event(message.get("event")?)?)),
        "done" => {
            let error = match message.get("error") {
                None => None,
                Some(error) => Some(self::error(error)?),
            };
            Frame::Done { cell, error }
        }
        _ => return None,
    })
}

/// A call: a message with its number, its helper and its name, then the arguments: their nodes, and blobs to the end. Each
/// of these parts has its length (4 bytes, big endian) in front.
fn call(cell: u32, payload: &[u8], held_bytes: usize) -> Option<Frame> {
    let (head, rest) = part(payload)?;
    let head: Json = serde_json::from_slice(head).ok()?;
    let text = |key: &str| head.get(key).and_then(Json::as_str).map(str::to_owned);
    let number = head.get("id")?.as_u64()?;
    let (helper, name, bytes) = (text("helper")?, text("name")?, payload.len());
    let args = if bytes > held_bytes {
        // The desk refuses it by its size.
        Value::undefined()
    } else {
        arguments(rest)?
    };
    Some(Frame::Call { cell, number, call: HostCall { helper, name, args, bytes } })
}

fn arguments(parts: &[u8]) -> Option<Value> {
    let (nodes, mut rest) = part(parts)?;
    let mut blobs = Vec::new();
    while !rest.is_empty() {
        let blob;
        (blob, rest) = part(rest)?;
        blobs.push(blob.to_vec());
        if blobs.len() > nodes.len() / NAMING_BYTES {
            return None;
        }
    }
    Value::from_untrusted(nodes.to_vec(), blobs, MOST_READ_BYTES).ok()
}

/// The next part, and the bytes behind it.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn error(error: &Json) -> Option<CellError> {
    let text = |key: &str| error.get(key).and_then(Json::as_str).map(str::to_owned);
    let number =
        |key: &str| error.get(key).and_then(Json::as_u64).and_then(|at| u32::try_from(at).ok());
    Some(CellError {
        name: text("name")?,
        message: text("message")?,
        stack: text("traceback"),
        filename: text("filename"),
        line: number("line"),
        column: number("column"),
    })
}

impl Frame {
    /// The bytes that it holds, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Stream { bytes, .. } => bytes.len(),
            Self::Display { display, .. } => match display {
                Display::Text(text) | Display::Markdown(text) => text.len(),
                Display::Json(value) | Display::Event(value) => value.to_string().len(),
                Display::Image(image) => image.data.len(),
            },
            Self::Call { call, .. } => call.bytes,
            Self::Ready { .. } | Self::Old { .. } | Self::Beat | Self::Done { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, cell: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len() + HEAD).expect("a length");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(cell.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    const CALL: &[u8] = br#"{"id":1,"helper":"tool","name":"a"}"#;

    fn parts(parts: &[&[u8]]) -> Vec<u8> {
        let length = |part: &[u8]| u32::try_from(part.len()).expect("a length").to_be_bytes();
        parts.iter().flat_map(|part| [&length(part), *part].concat()).collect()
    }

    #[tokio::test]
    async fn a_call_has_a_value() {
        let args = crate::door::message(&serde_json::json!({ "a": 1 }));
        let payload = parts(&[CALL, args.nodes()]);
        let call =
            HostCall { bytes: payload.len(), ..HostCall::new("tool".into(), "a".into(), args) };
        let expected = Frame::Call { cell: 3, number: 1, call };
        assert_eq!(parsed(&frame(b'c', 3, &payload)).await, Ok(expected));
    }

    async fn parsed(bytes: &[u8]) -> Result<Frame, Fault> {
        read(&mut &*bytes, 100, MOST_HELD_BYTES, || 7).await
    }

    #[tokio::test]
    async fn frames_are_read() {
        let bytes = b"a\xff".to_vec();
        let stream = Frame::Stream { cell: 1, stream: Stream::Stderr, bytes };
        assert_eq!(parsed(&frame(b'e', 1, b"a\xff")).await, Ok(stream));
        let done = br#"{"type":"done","error":{"name":"E","message":"m","line":3}}"#;
        let error = CellError {
            name: "E".into(),
            message: "m".into(),
            line: Some(3),
            ..CellError::default()
        };
        let expected = Frame::Done { cell: 7, error: Some(error) };
        assert_eq!(parsed(&frame(b'j', 7, done)).await, Ok(expected));
    }

    #[tokio::test]
    async fn all_else_is_malformed() {
        let long = frame(b'o', 1, &[b'x'; 101]);
        for bytes in [
            frame(b'x', 1, b""),
            frame(b'j', 1, b"{"),
            frame(b'j', 1, b"[]"),
            frame(b'j', 1, br#"{"type":"other"}"#),
            frame(b'j', 1, br#"{"type":"done","error":{}}"#),
            frame(b'c', 1, b""),
            frame(b'c', 1, &parts(&[br#"{"id":-1,"helper":"tool","name":"a"}"#, b"\x01"])),
            frame(b'c', 1, &parts(&[br#"{"id":1,"helper":"tool","name":"a"}"#])),
            // No message: nothing, a function of a host, two values, an array without its elements, a blob without a name.
            frame(b'c', 1, &parts(&[CALL, b""])),
            frame(b'c', 1, &parts(&[CALL, b"\x1b\0\0\0\0\x07\0"])),
            frame(b'c', 1, &parts(&[CALL, b"\x01\x01"])),
            frame(b'c', 1, &parts(&[CALL, b"\x12\xff\xff\xff\xff\x0f"])),
            frame(b'c', 1, &parts(&[CALL, b"\x01\x01\x01\x01\x01", b"x"])),
            // Their rest is not waited for.
            frame(b'o', 8, b"abc")[..4 + HEAD].to_vec(),
            vec![0, 0, 0, 50, b'x', 0, 0, 0, 1],
            long,
            vec![0, 0, 0, 4, 0, 0, 0, 0],
        ] {
            assert_eq!(parsed(&bytes).await, Err(Fault::Malformed), "{bytes:?}");
        }
        let whole = frame(b'o', 1, b"abc");
        assert_eq!(parsed(&whole[..whole.len() - 1]).await, Err(Fault::Closed));
        assert_eq!(parsed(b"").await, Err(Fault::Closed));
    }
}
