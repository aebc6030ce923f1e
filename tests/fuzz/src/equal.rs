//! Contents of a message, independent of its writer.
//!
//! In: a message. Out: whether it can be read, and its events in an order and a spelling that do not depend on the
//! writer: the bytes of buffers instead of their numbers, an array without its holes, no stacks.

use std::fmt::Write;

use isolane::{
    Value,
    value::{Event, Malformed, Reader, Str},
};

/// Reads the whole message.
pub(crate) fn walk(message: &Value) -> Result<(), Malformed> {
    canonical(message).map(drop)
}

/// The remaining parts of an object that was begun.
enum Frame {
    Object,
    Array { next: u32, length: u32 },
    Sparse,
    Counted(u64),
}

/// The message as text, a node per line.
pub(crate) fn canonical(message: &Value) -> Result<String, Malformed> {
    let mut reader = message.reader();
    let mut text = String::new();
    let mut frames = vec![Frame::Counted(1)];
    while let Some(frame) = frames.last_mut() {
        let more = match frame {
            Frame::Object => match reader.key()? {
                Some(key) => {
                    let _ = writeln!(text, "{:?}:", key.text.units());
                    true
                }
                None => false,
            },
            Frame::Array { next, length } => {
                let more = next < length;
                if more {
                    let _ = writeln!(text, "[{next}]");
                    *next += 1;
                }
                more
            }
            Frame::Sparse => match reader.sparse_index()? {
                Some(index) => {
                    let _ = writeln!(text, "[{index}]");
                    true
                }
                None => false,
            },
            Frame::Counted(left) => {
                let more = *left > 0;
                *left = left.saturating_sub(1);
                more
            }
        };
        if more {
            node(message, &mut reader, &mut text, &mut frames)?;
        } else {
            text.push_str("end\n");
            frames.pop();
        }
    }
    if reader.is_empty() { Ok(text) } else { Err(Malformed) }
}

fn node(
    message: &Value,
    reader: &mut Reader<'_>,
    text: &mut String,
    frames: &mut Vec<Frame>,
) -> Result<(), Malformed> {
    let units = |text: Str<'_>| text.units();
    let event = reader.event()?;
    // Writing to a string cannot fail.
    let _ = match event {
        Event::Int(value) => writeln!(text, "number {:x}", f64::from(value).to_bits()),
        Event::Double(value) if value.is_nan() => writeln!(text, "number NaN"),
        Event::Double(value) => writeln!(text, "number {:x}", value.to_bits()),
        Event::Date(value) if value.is_nan() => writeln!(text, "date NaN"),
        Event::String(value) => writeln!(text, "string {:?}", units(value)),
        Event::Hole => {
            // Removes the line with the index: an array with holes may be written without them.
            let line = text.trim_end().rfind('\n').map_or(0, |at| at + 1);
            text.truncate(line);
            Ok(())
        }
        Event::Object => {
            frames.push(Frame::Object);
            writeln!(text, "object")
        }
        Event::Array(length) => {
            frames.push(Frame::Array { next: 0, length });
            writeln!(text, "array {length}")
        }
        Event::SparseArray(length) => {
            frames.push(Frame::Sparse);
            writeln!(text, "array {length}")
        }
        Event::Map(entries) => {
            frames.push(Frame::Counted(2 * u64::from(entries)));
            writeln!(text, "map {entries}")
        }
        Event::Set(members) => {
            frames.push(Frame::Counted(u64::from(members)));
            writeln!(text, "set {members}")
        }
        Event::RegExp => {
            let (source, flags) = (units(reader.text()?), units(reader.text()?));
            writeln!(text, "regexp {source:?} {flags:?}")
        }
        Event::Error(class) => {
            let (name, said) = (units(reader.text()?), units(reader.text()?));
            let _ = writeln!(text, "error {class:?} {name:?} {said:?}");
            match reader.event()? {
                Event::String(_) | Event::Undefined => {}
                _ => return Err(Malformed),
            }
            frames.push(Frame::Counted(1));
            Ok(())
        }
        Event::Buffer(blob) => writeln!(text, "buffer {:?}", bytes(message, blob)?),
        Event::View { kind, blob, byte_offset, length } => {
            let bytes = bytes(message, blob)?;
            writeln!(text, "view {kind:?} {byte_offset} {length} {bytes:?}")
        }
        Event::HostFunction(_) | Event::SandboxFunction(_) => {
            let name = units(reader.text()?);
            writeln!(text, "{event:?} {name:?}")
        }
        _ => writeln!(text, "{event:?}"),
    };
    Ok(())
}

fn bytes(message: &Value, blob: u32) -> Result<&[u8], Malformed> {
    message.blobs().get(blob as usize).map(Vec::as_slice).ok_or(Malformed)
}
