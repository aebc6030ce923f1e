//! Source text: the bytes themselves, or the choices of a grammar.
//!
//! The first byte determines this, the language and the limit. The rest is the text in UTF-8 or UTF-16, or the input of
//! `program`.

use isolane::{Language, Request, SourceText};

use crate::{
    program,
    run::{self, PATIENCE},
};

/// Limits from one that stops almost every program to one with room to misbehave.
const LIMITS_BYTES: [f64; 4] = [300e3, 1e6, 4e6, 16e6];

/// Runs one program.
///
/// # Panics
/// If the run has a forbidden result.
pub fn check(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else { return };
    let source = match how >> 3 & 3 {
        0 => SourceText::from(String::from_utf8_lossy(rest).into_owned()),
        1 => {
            let pairs = rest.chunks_exact(2);
            let units: Vec<u16> =
                pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            SourceText::from_utf16(&units)
        }
        _ => SourceText::from(program::write(rest, how & 1 == 1)),
    };
    let mut request = Request::new(source);
    request.language = if how & 1 == 1 { Language::TypeScript } else { Language::JavaScript };
    request.memory_limit_bytes = Some(LIMITS_BYTES[usize::from(how >> 1 & 3)]);
    request.report = how & 0x20 != 0;
    run::with_functions(&mut request);
    run::run(request, PATIENCE).expect("valid options");
    run::check_pristine_after(data);
}
