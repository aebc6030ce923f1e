//! How many bytes compiling a source takes, known before it is parsed.
//!
//! In: a text and its tokens. Out: about the most that syntax trees, scopes, diagnostics, printed code
//! and maps take at once. None of it is the engine's, so nothing else would count it: `a;a;a;…` takes a
//! hundred times its length. Measured for some sixty kinds of token over megabytes of each; the most
//! that any took is what is counted for all, but for the few that take far more than the others.

use super::lexer::Token;

/// The most that a token took as JavaScript (an arrow function, a statement of one name); as
/// TypeScript it is also printed anew, with a map.
const PER_TOKEN: usize = 160;
const PER_TYPESCRIPT_TOKEN: usize = 224;
/// A token whose kind is not known may stand for any.
const PER_UNCERTAIN_TOKEN: usize = 512;
/// An import or export is also kept in the module's record.
const PER_RECORD: usize = 512;
/// An enum becomes a function, and its members are computed.
const PER_ENUM: usize = 1_536;
/// The text is kept, and read once more by the engine.
const PER_BYTE: usize = 3;

pub(super) fn of_text(text: &str) -> usize {
    PER_BYTE * text.len()
}

pub(super) fn of_token(token: Token<'_>, uncertain: bool, typescript: bool) -> usize {
    if uncertain {
        return PER_UNCERTAIN_TOKEN;
    }
    let more = match token.text {
        "enum" => PER_ENUM,
        "import" | "export" => PER_RECORD,
        _ => 0,
    };
    more + if typescript { PER_TYPESCRIPT_TOKEN } else { PER_TOKEN }
}
