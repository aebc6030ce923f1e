//! Characters that a program does not have: look-alikes, escapes, entities of HTML.

use super::{
    literals::may_follow_literal,
    source::{Advice, Source},
};

/// Characters that look like one of the language, with that one.
const LOOK_ALIKES: &[(&str, &str)] = &[
    ("“”„‟«»″", "\""),
    ("‘’‚‛‹›′´", "'"),
    ("–—−‐‑‒―", "-"),
    ("×∗", "*"),
    ("÷⁄", "/"),
    ("≠", "!=="),
    ("≤", "<="),
    ("≥", ">="),
    ("→⇒", "=>"),
    ("∧", "&&"),
    ("∨", "||"),
    ("¬", "!"),
    ("。．", "."),
    ("、", ","),
    ("\u{37e}", ";"),
];

const ELLIPSIS: &str = "the dots are no code: write out what they stand for";

const ENTITIES: &[(&str, &str)] = &[
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&amp;", "&"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&#34;", "\""),
    ("&nbsp;", " "),
];

/// A character from a text processor, or from another script.
pub(super) fn look_alike(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let quote = ["'", "\""].into_iter().find(|quote| source.rest().starts_with(quote));
    let line = source.rest().lines().next().unwrap_or_default();
    let found = if quote.is_some() && source.failure.message.starts_with("Unterminated") {
        // The string has a closing quote, but of another kind.
        line.char_indices().find(|(at, char)| {
            let after = line.get(at + char.len_utf8()..).unwrap_or_default();
            meant(*char) == quote && may_follow_literal(after)
        })
    } else {
        line.char_indices().next()
    };
    let (offset, char) = found.filter(|(_, char)| !char.is_ascii())?;
    let at = source.text.len() - source.rest().len() + offset;
    let code = u32::from(char);
    if char == '…' {
        return Some(Advice::at(ELLIPSIS, at));
    }
    if matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}')
    {
        return Some(Advice::at(format!("remove the invisible character U+{code:04X}"), at));
    }
    let full_width = matches!(code, 0xff01..=0xff5e).then(|| char::from_u32(code - 0xfee0));
    let meant = meant(char).map(str::to_owned);
    let meant = meant.or_else(|| full_width.flatten().map(String::from))?;
    let clause = format!("write {meant} in place of {char} (U+{code:04X})");
    Some(Advice::at(clause, at))
}

/// `...` as a statement.
pub(super) fn ellipsis(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.from(source.at).strip_prefix("...")?;
    let alone =
        rest.trim_start_matches([' ', ';']).starts_with(['\n', '\r', '/']) || rest.is_empty();
    let begins = source.to(source.at).trim_end_matches([' ', '\t']);
    let first = begins.is_empty() || begins.ends_with(['\n', '{', ';']);
    (alone && first).then(|| Advice::new(ELLIPSIS))
}

fn meant(char: char) -> Option<&'static str> {
    LOOK_ALIKES.iter().find(|(looks, _)| looks.contains(char)).map(|(_, meant)| *meant)
}

/// An escape outside of a string: the whole text was escaped once too often.
pub(super) fn escaped(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let mut at = source.text.len() - source.rest().len();
    // The parser notices an escaped quote behind the backslash.
    if source.to(source.at).ends_with('\\') {
        at = source.at - 1;
    }
    let clause = match source.from(at).as_bytes() {
        [b'\\', b'n' | b'r' | b't', ..] => "the line breaks are escaped: send them as they are",
        [b'\\', b'"' | b'\'' | b'`', ..] => "the quotes are escaped: send them without a backslash",
        _ => return None,
    };
    Some(Advice::at(clause, at))
}

/// `&lt;` and the like: the text was escaped for a page. It parses up to the semicolon.
pub(super) fn entity(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let line = source.line_start();
    let starts = source.tokens.backwards().take_while(|token| token.start >= line);
    let here = source.text.len() - source.rest().len();
    let found = starts.map(|token| token.start).chain([here]).filter_map(|at| {
        let rest = source.from(at);
        ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)).map(|found| (at, *found))
    });
    let (at, (entity, meant)) = found.min_by_key(|(at, _)| *at)?;
    Some(Advice::at(format!("'{entity}' is HTML: write {meant}"), at))
}
