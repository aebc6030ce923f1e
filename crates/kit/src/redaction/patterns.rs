//! The patterns of values: the texts that the automaton looks for.
//!
//! In: values. Out: for each, the value itself and what every base64 of a text with the value in it contains; both for the
//! bytes of UTF-8 and, if it is not ASCII, for those of a server that mistakes them for Latin-1 or writes Latin-1.

use base64::{
    Engine,
    engine::{
        GeneralPurpose,
        general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
    },
};
use zeroize::Zeroizing;

use super::LEAST_BYTES;

/// A text that the automaton looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// The number of its value.
    pub(super) value: usize,
    /// The bytes of that value, by which the longest is known.
    pub(super) value_bytes: usize,
    /// The bytes of the pattern.
    pub(super) length: usize,
    pub(super) is_base64: bool,
}

/// The patterns of the values, and their texts.
pub(super) fn patterns(values: &[&str]) -> (Vec<Zeroizing<Vec<u8>>>, Vec<Pattern>) {
    let mut texts = Vec::new();
    let mut patterns = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let mut add = |text: Zeroizing<Vec<u8>>, is_base64| {
            let length = text.len();
            texts.push(text);
            patterns.push(Pattern { value: number, value_bytes: value.len(), length, is_base64 });
        };
        for bytes in charsets(value) {
            for bytes_before in 0..3 {
                let standard = inner_base64(&STANDARD_NO_PAD, &bytes, bytes_before);
                let url_safe = inner_base64(&URL_SAFE_NO_PAD, &bytes, bytes_before);
                if url_safe != standard {
                    add(url_safe, true);
                }
                add(standard, true);
            }
            add(bytes, false);
        }
    }
    (texts, patterns)
}

/// The bytes of a value in UTF-8; as a server sends them that reads headers as Latin-1 and writes UTF-8; and in Latin-1.
fn charsets(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut charsets = vec![Zeroizing::new(value.as_bytes().to_vec())];
    if value.is_ascii() {
        return charsets;
    }
    // Buffers that never move leave no copy.
    let mut encoded_twice = Zeroizing::new(String::with_capacity(2 * value.len()));
    encoded_twice.extend(value.bytes().map(char::from));
    charsets.push(Zeroizing::new(encoded_twice.as_bytes().to_vec()));
    // Between characters of ASCII: so no text in UTF-8 has it in the middle of a character.
    let inner = value.trim_matches(|c: char| !c.is_ascii());
    let mut latin1 = Zeroizing::new(Vec::with_capacity(inner.len()));
    latin1.extend(inner.chars().map_while(|c| u8::try_from(c).ok()));
    if latin1.len() == inner.chars().count() && latin1.len() >= LEAST_BYTES {
        charsets.push(latin1);
    }
    charsets
}

/// The characters of the value's base64 that depend on nothing before or behind the value, if so many bytes precede it
/// in a group of three.
fn inner_base64(engine: &GeneralPurpose, value: &[u8], bytes_before: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; bytes_before]);
    bytes.extend_from_slice(value);
    let text = Zeroizing::new(engine.encode(&*bytes).into_bytes());
    // Characters of six bits: without those that share bits with their neighbours.
    let first = (8 * bytes_before).div_ceil(6);
    let end = 8 * bytes.len() / 6;
    Zeroizing::new(text.get(first..end).unwrap_or_default().to_vec())
}
