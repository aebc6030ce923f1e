//! Buffers and typed arrays as text.
//!
//! In: such a node of a message, and its bytes. Out: the beginning of its elements: `Uint8Array(2) [ 1, 2 ]`.

use super::texts::number;
use crate::value::{Value, ViewKind};

/// The elements of a typed array that are shown, and the bytes of a buffer.
const MOST_ELEMENTS: usize = 100;
const MOST_BYTES: usize = 50;

/// Shows an ArrayBuffer.
pub(super) fn buffer(text: &mut String, value: &Value, blob: u32) {
    let bytes = value.blobs().get(blob as usize).map_or(&[][..], Vec::as_slice);
    let shown: Vec<String> =
        bytes.iter().take(MOST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let more = match bytes.len().saturating_sub(MOST_BYTES) {
        0 => String::new(),
        more => format!(" ... {more} more {}", if more == 1 { "byte" } else { "bytes" }),
    };
    let (shown, length) = (shown.join(" "), bytes.len());
    text.push_str(&format!(
        "ArrayBuffer {{ [Uint8Contents]: <{shown}{more}>, byteLength: {length} }}"
    ));
}

/// Shows a view of a blob, from that byte on, with so many elements.
pub(super) fn view(
    text: &mut String,
    value: &Value,
    kind: ViewKind,
    (blob, byte_offset, length): (u32, u64, u64),
) {
    text.push_str(&format!("{kind:?}({length})"));
    let (Ok(start), Ok(count)) = (usize::try_from(byte_offset), usize::try_from(length)) else {
        return;
    };
    let size = kind.element_bytes();
    let end = count.checked_mul(size).and_then(|bytes| start.checked_add(bytes));
    let bytes =
        value.blobs().get(blob as usize).zip(end).and_then(|(blob, end)| blob.get(start..end));
    let Some(bytes) = bytes.filter(|_| kind != ViewKind::DataView) else { return };
    if bytes.is_empty() {
        return text.push_str(" []");
    }
    let elements = bytes.chunks_exact(size).take(MOST_ELEMENTS);
    let mut shown: Vec<String> = elements.map(|element| of(kind, element)).collect();
    match count.saturating_sub(MOST_ELEMENTS) {
        0 => {}
        1 => shown.push("... 1 more item".to_owned()),
        more => shown.push(format!("... {more} more items")),
    }
    text.push_str(&format!(" [ {} ]", shown.join(", ")));
}

/// One element.
fn of(kind: ViewKind, bytes: &[u8]) -> String {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, ..] = word;
    match kind {
        ViewKind::DataView | ViewKind::Uint8Array | ViewKind::Uint8ClampedArray => a.to_string(),
        ViewKind::Int8Array => i8::from_le_bytes([a]).to_string(),
        ViewKind::Int16Array => i16::from_le_bytes([a, b]).to_string(),
        ViewKind::Uint16Array => u16::from_le_bytes([a, b]).to_string(),
        ViewKind::Int32Array => i32::from_le_bytes([a, b, c, d]).to_string(),
        ViewKind::Uint32Array => u32::from_le_bytes([a, b, c, d]).to_string(),
        ViewKind::BigInt64Array => format!("{}n", i64::from_le_bytes(word)),
        ViewKind::BigUint64Array => format!("{}n", u64::from_le_bytes(word)),
        ViewKind::Float16Array => number(half(u16::from_le_bytes([a, b]))),
        ViewKind::Float32Array => number(f64::from(f32::from_le_bytes([a, b, c, d]))),
        ViewKind::Float64Array => number(f64::from_le_bytes(word)),
    }
}

/// A number of 16 bits: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::inspect::inspect, value::Writer};

    #[test]
    fn numbers_of_16_bits_are_read() {
        let read = [0x0000, 0x3C00, 0xC000, 0x7BFF, 0x0001, 0x7C00, 0x3555].map(half);
        assert_eq!(read[..5], [0.0, 1.0, -2.0, 65504.0, 2_f64.powi(-24)]);
        assert!(read[5].is_infinite() && half(0x7E00).is_nan());
        assert!((read[6] - 0.333_251_953_125).abs() < 1e-12);
    }

    #[test]
    fn the_beginnings_of_bytes_are_shown() {
        let shown = |kind, bytes: Vec<u8>, length| {
            let mut writer = Writer::new();
            let blob = writer.blob(bytes);
            writer.view(kind, blob, 0, length);
            inspect(&writer.finish(), 10_000)
        };
        assert_eq!(shown(ViewKind::Uint8Array, vec![], 0), "Uint8Array(0) []");
        assert_eq!(shown(ViewKind::Int16Array, vec![254, 255, 1, 0], 2), "Int16Array(2) [ -2, 1 ]");
        assert_eq!(shown(ViewKind::BigInt64Array, vec![255; 8], 1), "BigInt64Array(1) [ -1n ]");
        let long = shown(ViewKind::Uint8Array, vec![7; 102], 102);
        assert!(long.ends_with("7, 7, ... 2 more items ]"), "{long}");
        let mut writer = Writer::new();
        let blob = writer.blob(vec![1, 255]);
        writer.buffer(blob);
        let shown = inspect(&writer.finish(), 100);
        assert_eq!(shown, "ArrayBuffer { [Uint8Contents]: <01 ff>, byteLength: 2 }");
    }
}
