//! The patterns of values: the texts that the automaton looks for.
//!
//! In: values. Out: for each, the value itself and what every base64 of a text with the value in it contains.

use base64::{
    Engine,
    engine::{
        GeneralPurpose,
        general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
    },
};
use zeroize::Zeroizing;

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
        add(Zeroizing::new(value.as_bytes().to_vec()), false);
        for bytes_before in 0..3 {
            let standard = inner_base64(&STANDARD_NO_PAD, value, bytes_before);
            let url_safe = inner_base64(&URL_SAFE_NO_PAD, value, bytes_before);
            if url_safe != standard {
                add(url_safe, true);
            }
            add(standard, true);
        }
    }
    (texts, patterns)
}

/// The characters of the value's base64 that depend on nothing before or behind the value, if so many bytes precede it
/// in a group of three.
fn inner_base64(engine: &GeneralPurpose, value: &str, bytes_before: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; bytes_before]);
    bytes.extend_from_slice(value.as_bytes());
    let text = Zeroizing::new(engine.encode(&*bytes).into_bytes());
    // Characters of six bits: without those that share bits with their neighbours.
    let first = (8 * bytes_before).div_ceil(6);
    let end = 8 * bytes.len() / 6;
    Zeroizing::new(text.get(first..end).unwrap_or_default().to_vec())
}
