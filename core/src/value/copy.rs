//! Copies of messages, or of parts of them, into others.
//!
//! In: a cursor at a node. Out: the same graph at the end of a writer, identity kept: objects outside of the part to
//! which it refers are copied too. The walk keeps a stack of its own.

use rustc_hash::FxHashMap;

use super::{Event, Fault, Str, Value, Writer, reader::Jump, serde::cursor::Cursor};

/// Writes a function or a promise in the copy, under that name.
pub(crate) type Rewrite<'r> = &'r mut dyn FnMut(&mut Writer, Event<'_>, &str) -> Result<(), Fault>;

/// Appends a whole message. A function at its root that has no name gets `name`.
pub(crate) fn copy_message(
    message: &Value,
    writer: &mut Writer,
    name: &str,
    rewrite: Rewrite<'_>,
) -> Result<(), Fault> {
    copy(&mut Cursor::new(message, None), writer, name, rewrite)
}

/// The node at the cursor as a message of its own; functions and promises keep their numbers.
pub(super) fn extract(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let mut writer = Writer::new();
    copy(cursor, &mut writer, "", &mut keep_number)?;
    Ok(writer.finish())
}

/// Writes a function or a promise with its own number.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a rewrite")]
pub(crate) fn keep_number(writer: &mut Writer, event: Event<'_>, name: &str) -> Result<(), Fault> {
    match event {
        Event::HostFunction(number) => {
            writer.host_function(number);
            writer.string(name);
        }
        Event::SandboxFunction(number) => {
            writer.sandbox_function(number);
            writer.string(name);
        }
        Event::HostPromise(number) => writer.host_promise(number),
        Event::SandboxPromise(number) => writer.sandbox_promise(number),
        _ => {}
    }
    Ok(())
}

/// A container whose end has not been copied.
enum Frame<'a> {
    Object,
    Counted(u64),
    Sparse,
    Return(Jump<'a>),
}

fn copy(
    cursor: &mut Cursor<'_>,
    writer: &mut Writer,
    root: &str,
    rewrite: Rewrite<'_>,
) -> Result<(), Fault> {
    let mut copied: FxHashMap<u32, u32> = FxHashMap::default();
    let mut blobs: FxHashMap<u32, u32> = FxHashMap::default();
    let mut frames = vec![Frame::Counted(1)];
    let mut name = Some(root);
    while let Some(frame) = frames.last_mut() {
        match frame {
            Frame::Counted(0) => {
                frames.pop();
                continue;
            }
            Frame::Counted(left) => *left -= 1,
            Frame::Return(_) => {
                if let Some(Frame::Return(jump)) = frames.pop() {
                    cursor.reader.come_back(jump);
                }
                continue;
            }
            Frame::Object => match cursor.reader.key()? {
                Some(key) => match key.text {
                    Str::Utf8(text) => writer.key(text),
                    Str::Utf16(_) => writer.key16(&key.text.units()),
                },
                None => {
                    writer.end_object();
                    frames.pop();
                    continue;
                }
            },
            Frame::Sparse => {
                if let Some(index) = cursor.reader.sparse_index()? {
                    writer.sparse_index(index);
                } else {
                    writer.end_sparse_array();
                    frames.pop();
                    continue;
                }
            }
        }
        let (mut event, mut index) = cursor.event()?;
        if let Event::Ref(object) = event {
            if let Some(&known) = copied.get(&object) {
                writer.reference(known);
                continue;
            }
            frames.push(Frame::Return(cursor.jump(object)?));
            (event, index) = cursor.event()?;
        }
        if let Some(index) = index {
            copied.insert(index, writer.next_object());
        }
        match event {
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                let own = cursor.reader.text()?.to_string_lossy();
                let name = name.take().filter(|_| own.is_empty()).unwrap_or(&own);
                rewrite(writer, event, name)?;
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => rewrite(writer, event, "")?,
            Event::Buffer(blob) => {
                let blob = copy_blob(cursor, writer, &mut blobs, blob)?;
                writer.buffer(blob);
            }
            Event::View { kind, blob, byte_offset, length } => {
                let blob = copy_blob(cursor, writer, &mut blobs, blob)?;
                writer.view(kind, blob, byte_offset, length);
            }
            _ => frames.extend(write(writer, event)),
        }
        name = None;
    }
    Ok(())
}

fn copy_blob(
    cursor: &mut Cursor<'_>,
    writer: &mut Writer,
    known: &mut FxHashMap<u32, u32>,
    blob: u32,
) -> Result<u32, Fault> {
    if let Some(&copy) = known.get(&blob) {
        return Ok(copy);
    }
    let bytes = cursor.blobs.get(blob as usize).map_or(&[][..], Vec::as_slice);
    cursor.spend_bytes(bytes.len())?;
    let copy = writer.blob(bytes.to_vec());
    known.insert(blob, copy);
    Ok(copy)
}

/// Writes one node; returns the frame of its nested nodes.
fn write(writer: &mut Writer, event: Event<'_>) -> Option<Frame<'static>> {
    match event {
        Event::Undefined => writer.undefined(),
        Event::Null => writer.null(),
        Event::Bool(value) => writer.bool(value),
        Event::Int(value) => writer.int(value),
        Event::Double(value) => writer.double(value),
        Event::BigInt { negative, magnitude } => writer.bigint(negative, magnitude),
        Event::String(Str::Utf8(text)) => writer.string(text),
        Event::String(text) => writer.string16(&text.units()),
        Event::Hole => writer.hole(),
        Event::Date(time) => writer.date(time),
        Event::Object => {
            writer.object();
            return Some(Frame::Object);
        }
        Event::SparseArray(length) => {
            writer.sparse_array(length);
            return Some(Frame::Sparse);
        }
        Event::Array(length) => {
            writer.array(length);
            return Some(Frame::Counted(u64::from(length)));
        }
        Event::Map(entries) => {
            writer.map(entries);
            return Some(Frame::Counted(2 * u64::from(entries)));
        }
        Event::Set(members) => {
            writer.set(members);
            return Some(Frame::Counted(u64::from(members)));
        }
        Event::RegExp => {
            writer.regexp();
            return Some(Frame::Counted(2));
        }
        Event::Error(class) => {
            writer.error(class);
            return Some(Frame::Counted(4));
        }
        // The caller writes references, links, and nodes over blobs.
        Event::Ref(_)
        | Event::Buffer(_)
        | Event::View { .. }
        | Event::HostFunction(_)
        | Event::SandboxFunction(_)
        | Event::HostPromise(_)
        | Event::SandboxPromise(_) => {}
    }
    None
}

/// Shows each node of a message; does not follow references.
pub(crate) fn walk(message: &Value, mut see: impl FnMut(&Event<'_>)) -> Result<(), Fault> {
    pass(&mut Cursor::new(message, None), &mut see)
}

/// Passes over one node and its nested nodes.
pub(super) fn pass(cursor: &mut Cursor<'_>, see: &mut dyn FnMut(&Event<'_>)) -> Result<(), Fault> {
    let mut frames = vec![Frame::Counted(1)];
    while let Some(frame) = frames.last_mut() {
        let more = match frame {
            Frame::Counted(0) | Frame::Return(_) => false,
            Frame::Counted(left) => {
                *left -= 1;
                true
            }
            Frame::Object => cursor.reader.key()?.is_some(),
            Frame::Sparse => cursor.reader.sparse_index()?.is_some(),
        };
        if !more {
            frames.pop();
            continue;
        }
        let (event, _) = cursor.event()?;
        see(&event);
        frames.extend(match event {
            Event::Object => Some(Frame::Object),
            Event::SparseArray(_) => Some(Frame::Sparse),
            Event::Array(count) | Event::Set(count) => Some(Frame::Counted(u64::from(count))),
            Event::Map(entries) => Some(Frame::Counted(2 * u64::from(entries))),
            Event::RegExp => Some(Frame::Counted(2)),
            Event::Error(_) => Some(Frame::Counted(4)),
            Event::HostFunction(_) | Event::SandboxFunction(_) => Some(Frame::Counted(1)),
            _ => None,
        });
    }
    Ok(())
}
