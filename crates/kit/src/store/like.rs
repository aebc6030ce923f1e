//! The patterns of `LIKE` and `GLOB`.
//!
//! In: a pattern and a text, as bytes that should be UTF-8. Out: whether the text matches. The time grows at most with
//! the product of both lengths, and a stopped call ends in between. SQLite's own functions take longer for patterns with
//! many wildcards, and cannot be stopped.

/// The steps between two looks at whether the call must stop.
const STEPS: u32 = 1 << 14;

/// The kind of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `%` and `_`; letters of ASCII in either case; perhaps a character that takes the next one literally.
    Like { escape: Option<char> },
    /// `*`, `?` and sets in brackets; letters as they are.
    Glob,
}

/// The call was stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Any characters, or none.
    Any,
    /// One character of any kind.
    One,
    /// This character; in lower case where case does not count.
    Literal(char),
    /// A character of a set, or outside of it.
    Set { negated: bool, ranges: Vec<(char, char)> },
    /// Nothing: the pattern is broken here.
    Never,
}

/// Whether the text matches the pattern. `is_stopped` is asked from time to time.
pub(super) fn matches(
    kind: Kind,
    pattern: &[u8],
    text: &[u8],
    is_stopped: impl Fn() -> bool,
) -> Result<bool, Stopped> {
    let parts = parse(kind, &String::from_utf8_lossy(pattern));
    let folds = matches!(kind, Kind::Like { .. });
    let mut steps = 0_u32;
    // The place behind the last `Any`, and the text's place for which it was tried.
    let mut retry: Option<(usize, usize)> = None;
    let (mut at, mut place) = (0, 0);
    loop {
        steps += 1;
        if steps.is_multiple_of(STEPS) && is_stopped() {
            return Err(Stopped);
        }
        let next = next_char(text, place);
        match (parts.get(at), next) {
            (Some(Part::Any), _) => {
                at += 1;
                if at == parts.len() {
                    return Ok(true);
                }
                retry = Some((at, place));
                continue;
            }
            (Some(part), Some((c, end))) if part.takes(if folds { fold(c) } else { c }) => {
                (at, place) = (at + 1, end);
                continue;
            }
            (None, None) => return Ok(true),
            // The text has ended, so a longer match of `Any` helps nothing.
            (Some(_), None) => return Ok(false),
            _ => {}
        }
        let Some((behind, tried)) = retry else { return Ok(false) };
        let Some((_, end)) = next_char(text, tried) else { return Ok(false) };
        retry = Some((behind, end));
        (at, place) = (behind, end);
    }
}

impl Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::One => true,
            Self::Literal(literal) => *literal == c,
            Self::Set { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
            Self::Any | Self::Never => false,
        }
    }
}

fn parse(kind: Kind, pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let part = match kind {
            Kind::Like { escape } if escape == Some(c) => {
                rest.next().map_or(Part::Never, |c| Part::Literal(fold(c)))
            }
            Kind::Like { .. } => match c {
                '%' => Part::Any,
                '_' => Part::One,
                c => Part::Literal(fold(c)),
            },
            Kind::Glob => match c {
                '*' => Part::Any,
                '?' => Part::One,
                '[' => set(&mut rest),
                c => Part::Literal(c),
            },
        };
        if part != Part::Any || parts.last() != Some(&Part::Any) {
            parts.push(part);
        }
    }
    parts
}

/// A set in brackets, the first of which has been read.
fn set(rest: &mut std::str::Chars<'_>) -> Part {
    let mut ranges = Vec::new();
    let mut next = rest.next();
    let negated = next == Some('^');
    if negated {
        next = rest.next();
    }
    // A bracket that stands first is part of the set.
    if next == Some(']') {
        ranges.push((']', ']'));
        next = rest.next();
    }
    let mut prior: Option<char> = None;
    loop {
        match next {
            None => return Part::Never,
            Some(']') => return Part::Set { negated, ranges },
            Some('-') if prior.is_some() && !matches!(rest.clone().next(), None | Some(']')) => {
                let to = rest.next().unwrap_or(']');
                ranges.push((prior.take().unwrap_or(to), to));
            }
            Some(c) => {
                ranges.push((c, c));
                prior = Some(c);
            }
        }
        next = rest.next();
    }
}

fn fold(c: char) -> char {
    c.to_ascii_lowercase()
}

/// The character at that place, and the place behind it. A byte that is no UTF-8 is a U+FFFD.
pub(super) fn next_char(text: &[u8], place: usize) -> Option<(char, usize)> {
    let first = *text.get(place)?;
    if first < 0x80 {
        return Some((char::from(first), place + 1));
    }
    let rest = text.get(place..text.len().min(place + 4))?;
    let valid = match std::str::from_utf8(rest) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(rest.get(..error.valid_up_to())?).unwrap_or_default(),
    };
    let c = valid.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((c, place + if valid.is_empty() { 1 } else { c.len_utf8() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, text: &str) -> bool {
        matches(Kind::Like { escape: Some('!') }, pattern.as_bytes(), text.as_bytes(), || false)
            .expect("no stop")
    }

    fn glob(pattern: &str, text: &str) -> bool {
        matches(Kind::Glob, pattern.as_bytes(), text.as_bytes(), || false).expect("no stop")
    }

    #[test]
    fn like_matches_as_sqlite_does() {
        for (pattern, text, matched) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("a%", "Abc", true),
            ("%c", "abC", true),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "ac", false),
            ("_", "ä", true),
            ("Ä", "ä", false),
            ("%%_%%", "", false),
            ("%a%b%c%", "xaxbxcx", true),
            ("%ab", "aab", true),
            ("%ab%ab", "abab", true),
            ("%ab%ab", "abaab", true),
            ("%ab%ab", "aab", false),
            ("!%", "%", true),
            ("!%", "x", false),
            ("a!", "a", false),
            ("!!", "!", true),
        ] {
            assert_eq!(like(pattern, text), matched, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn glob_matches_as_sqlite_does() {
        for (pattern, text, matched) in [
            ("a*", "abc", true),
            ("a*", "Abc", false),
            ("?", "ä", true),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[^]a]", "]", false),
            ("[a-]", "-", true),
            ("[-a]", "-", true),
            ("[a", "a", false),
            ("*[0-9]", "x7", true),
            ("[", "[", false),
        ] {
            assert_eq!(glob(pattern, text), matched, "{text} GLOB {pattern}");
        }
    }

    #[test]
    fn a_long_match_is_stopped() {
        let (pattern, text) = ("%aaaaaaaaaaaaaaaab".repeat(20), "a".repeat(100_000));
        let kind = Kind::Like { escape: None };
        assert_eq!(matches(kind, pattern.as_bytes(), text.as_bytes(), || true), Err(Stopped));
    }
}
