//! Keys, as a keyboard of the United States has them.
//!
//! In: a character. Out: the parameters of the events that a key of it makes; nothing for characters without a key, which
//! are inserted as they are.

use serde_json::{Value as Json, json};

/// Characters with Shift, and those of the same keys without it.
const SHIFTED: (&str, &str) = ("!@#$%^&*()_+{}|:\"<>?~", "1234567890-=[]\\;',./`");

/// Other keys: the character, its code, and its number on Windows.
const OTHERS: [(char, &str, u32); 12] = [
    (' ', "Space", 32),
    ('-', "Minus", 189),
    ('=', "Equal", 187),
    ('[', "BracketLeft", 219),
    (']', "BracketRight", 221),
    ('\\', "Backslash", 220),
    (';', "Semicolon", 186),
    ('\'', "Quote", 222),
    (',', "Comma", 188),
    ('.', "Period", 190),
    ('/', "Slash", 191),
    ('`', "Backquote", 192),
];

const SHIFT: u32 = 8;

/// The two events of a key: that it goes down, and up.
pub(super) fn key(character: char) -> Option<[Json; 2]> {
    let shifted = SHIFTED.0.chars().zip(SHIFTED.1.chars()).find(|(with, _)| *with == character);
    let base = shifted.map_or(character.to_ascii_lowercase(), |(_, without)| without);
    let (code, number) = match base {
        '\n' | '\r' => return Some(events("Enter", "Enter", 13, "\r", 0)),
        '\t' => return Some(events("Tab", "Tab", 9, "", 0)),
        'a'..='z' => {
            let letter = base.to_ascii_uppercase();
            (format!("Key{letter}"), u32::from(letter))
        }
        '0'..='9' => (format!("Digit{base}"), u32::from(base)),
        _ => {
            let (_, code, number) = OTHERS.into_iter().find(|(of, ..)| *of == base)?;
            (code.to_owned(), number)
        }
    };
    let is_shifted = shifted.is_some() || character.is_ascii_uppercase();
    let text = character.to_string();
    Some(events(&text, &code, number, &text, if is_shifted { SHIFT } else { 0 }))
}

/// The key that removes what is selected.
pub(super) fn delete() -> [Json; 2] {
    events("Delete", "Delete", 46, "", 0)
}

fn events(key: &str, code: &str, number: u32, text: &str, modifiers: u32) -> [Json; 2] {
    let event = |kind: &str| {
        json!({
            "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers,
        })
    };
    let mut down = event(if text.is_empty() { "rawKeyDown" } else { "keyDown" });
    if !text.is_empty() {
        down["text"] = text.into();
        down["unmodifiedText"] = text.into();
    }
    [down, event("keyUp")]
}
