//! `atob` and `btoa` as HTML has them.
//!
//! In: a string of bytes, a character each, or its Base64. Out: the other one, or `InvalidCharacterError`.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use isolane::{Completion, NativeAnswer, NativeCall, NativeFunction, Value};

use crate::thrown;

/// Decodes with or without padding, and ignores unused bits, as HTML does.
pub(crate) const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A thread for long work handles larger arguments, because the calling thread serves other runs too.
const LARGE_BYTES: usize = 64 << 10;

/// The most bytes that the work holds for each byte of its arguments: the text, its bytes, and the answer as a text and
/// as a message.
const WORK_PER_BYTE: usize = 3;

/// `btoa(text)`: Base64 of a string whose characters are bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Btoa;

impl NativeFunction for Btoa {
    fn name(&self) -> &'static str {
        "btoa"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        answer_with(call, |text| {
            let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
            bytes
                .ok()
                .map(|bytes| FORGIVING.encode(bytes))
                .ok_or("btoa takes characters up to U+00FF")
        })
    }
}

/// `atob(text)`: the bytes of Base64, a character each. White space is ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Atob;

impl NativeFunction for Atob {
    fn name(&self) -> &'static str {
        "atob"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        answer_with(call, |mut text| {
            text.retain(|c| !matches!(c, '\t' | '\n' | '\x0C' | '\r' | ' '));
            // Padding is at the end of a whole number of quantums, or absent.
            let is_whole = !text.ends_with('=') || text.len().is_multiple_of(4);
            let bytes = FORGIVING.decode(&text).ok().filter(|_| is_whole);
            let text = bytes.map(|bytes| bytes.into_iter().map(char::from).collect());
            text.ok_or("atob takes Base64")
        })
    }
}

/// Answers with the text that `work` makes of the argument, or throws its message.
fn answer_with(
    call: NativeCall,
    work: impl FnOnce(String) -> Result<String, &'static str> + Send + 'static,
) -> NativeAnswer {
    let held_bytes = call.args.held_bytes();
    if held_bytes <= LARGE_BYTES {
        return text_of(&call, work).into();
    }
    NativeAnswer::blocking(move || {
        // Without room the run has ended, and nobody reads the error.
        let Some(_charge) = call.run.charge(held_bytes.saturating_mul(WORK_PER_BYTE)) else {
            return thrown("RangeError", "the text is too long");
        };
        text_of(&call, work)
    })
}

fn text_of(
    call: &NativeCall,
    work: impl FnOnce(String) -> Result<String, &'static str>,
) -> Completion {
    let (text,): (String,) = call.arguments()?;
    match work(text) {
        Ok(text) => Value::serialize(&text).or_else(|error| thrown("Error", error.to_string())),
        Err(message) => thrown("InvalidCharacterError", message),
    }
}
