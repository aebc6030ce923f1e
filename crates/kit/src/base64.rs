//! `atob` and `btoa` as HTML has them.
//!
//! In: a string of bytes, a character each, or its Base64. Out: the other one, or `InvalidCharacterError`.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use isolane::{NativeAnswer, NativeCall, NativeFunction, Value};

use crate::thrown;

/// Decodes with or without padding, and ignores bits that stand for nothing, as HTML does.
const FORGIVING: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// `btoa(text)`: Base64 of a string whose characters are bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Btoa;

impl NativeFunction for Btoa {
    fn name(&self) -> &'static str {
        "btoa"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let (text,): (String,) = match call.arguments() {
            Ok(arguments) => arguments,
            Err(error) => return Err(error).into(),
        };
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        match bytes {
            Ok(bytes) => text_of(&FORGIVING.encode(bytes)),
            Err(_) => thrown("InvalidCharacterError", "btoa takes characters up to U+00FF").into(),
        }
    }
}

/// `atob(text)`: the bytes of Base64, a character each. White space does not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Atob;

impl NativeFunction for Atob {
    fn name(&self) -> &'static str {
        "atob"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let (mut text,): (String,) = match call.arguments() {
            Ok(arguments) => arguments,
            Err(error) => return Err(error).into(),
        };
        text.retain(|c| !matches!(c, '\t' | '\n' | '\x0C' | '\r' | ' '));
        // Padding stands at the end of a whole number of quantums, or nowhere.
        let is_padded = text.ends_with('=');
        match FORGIVING.decode(&text) {
            Ok(bytes) if !is_padded || text.len().is_multiple_of(4) => {
                text_of(&bytes.into_iter().map(char::from).collect::<String>())
            }
            _ => thrown("InvalidCharacterError", "atob takes Base64").into(),
        }
    }
}

fn text_of(text: &str) -> NativeAnswer {
    match Value::serialize(text) {
        Ok(value) => Ok(value).into(),
        Err(error) => thrown("Error", error.to_string()).into(),
    }
}
