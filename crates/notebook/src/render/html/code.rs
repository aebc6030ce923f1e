//! Code in HTML, in colours.
//!
//! In: a text, and the language that it is taken to be. Out: the same text, with an element around each comment, literal and
//! keyword. It reads no syntax beyond these, so a text that is no code is one, too; a regular expression of JavaScript with a
//! quote in it is taken for a text, up to the end of its line.

use super::escape::escaped;
use crate::Language;

const JS_WORDS: &str = " abstract as async await break case catch class const continue debugger declare default delete do \
    else enum export extends false finally for from function if implements import in infer instanceof interface is keyof let \
    namespace new null of private protected public readonly return satisfies static super switch this throw true try type \
    typeof undefined unique var void while with yield ";

const PY_WORDS: &str = " False None True and as assert async await break case class continue def del elif else except \
    finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield ";

/// The code as HTML.
pub(super) fn highlighted(code: &str, language: Language) -> String {
    let mut out = String::with_capacity(code.len() * 2);
    let mut rest = code;
    while let Some((kind, token)) = next(rest, language) {
        rest = &rest[token.len()..];
        let token = escaped(token);
        if kind.is_empty() {
            out.push_str(&token);
        } else {
            out.push_str(&format!("<span class=\"{kind}\">{token}</span>"));
        }
    }
    out
}

/// The class of the first token, and its text; `None` at the end.
fn next(code: &str, language: Language) -> Option<(&'static str, &str)> {
    let first = code.chars().next()?;
    let is_js = language == Language::Js;
    let comment = if is_js { "//" } else { "#" };
    if code.starts_with(comment) {
        return Some(("comment", to_line_end(code)));
    }
    if let Some(rest) = code.strip_prefix("/*").filter(|_| is_js) {
        let end = rest.find("*/").map_or(code.len(), |at| at + 4);
        return Some(("comment", &code[..end]));
    }
    if let Some(token) = literal(code, 0, is_js) {
        return Some(("text", token));
    }
    if first.is_ascii_digit() {
        let is_digit = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
        return Some(("number", run(code, is_digit)));
    }
    if is_letter(first) {
        let word = run(code, is_letter);
        let is_prefix = word.len() <= 2 && word.chars().all(|letter| "rRbBuUfF".contains(letter));
        if !is_js
            && is_prefix
            && let Some(token) = literal(code, word.len(), is_js)
        {
            return Some(("text", token));
        }
        let words = if is_js { JS_WORDS } else { PY_WORDS };
        let is_keyword = words.contains(&format!(" {word} "));
        return Some((if is_keyword { "word" } else { "" }, word));
    }
    // Signs and white space up to something that may begin a token.
    let begins =
        |letter: char| is_letter(letter) || letter.is_ascii_digit() || "/#'\"`".contains(letter);
    let plain = run(code, |letter| !begins(letter));
    Some(("", if plain.is_empty() { &code[..first.len_utf8()] } else { plain }))
}

/// The literal of a text whose quotes begin at that place; one that has no end goes to that of its line, or of all.
fn literal(code: &str, quotes: usize, is_js: bool) -> Option<&str> {
    let after = &code[quotes..];
    let quote = after.chars().next().filter(|letter| matches!(letter, '\'' | '"' | '`'))?;
    if quote == '`' && !is_js {
        return None;
    }
    let triple = ["'''", "\"\"\""].into_iter().find(|triple| !is_js && after.starts_with(triple));
    let end = match (triple, quote) {
        (Some(triple), _) => triple.to_owned(),
        (None, quote) => quote.to_string(),
    };
    let spans_lines = triple.is_some() || quote == '`';
    let (mut at, mut is_escaped) = (quotes + end.len(), false);
    while let Some(letter) = code[at..].chars().next() {
        if !is_escaped && code[at..].starts_with(&end) {
            return Some(&code[..at + end.len()]);
        }
        if letter == '\n' && !spans_lines && !is_escaped {
            break;
        }
        is_escaped = letter == '\\' && !is_escaped;
        at += letter.len_utf8();
    }
    Some(&code[..at])
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

fn to_line_end(code: &str) -> &str {
    run(code, |letter| letter != '\n')
}

/// The first letters that are such.
fn run(code: &str, is_such: impl Fn(char) -> bool) -> &str {
    &code[..code.find(|letter| !is_such(letter)).unwrap_or(code.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(code: &str, language: Language) -> Vec<(&'static str, &str)> {
        let (mut rest, mut all) = (code, Vec::new());
        while let Some((kind, token)) = next(rest, language) {
            assert!(!token.is_empty(), "{code:?}");
            rest = &rest[token.len()..];
            if !kind.is_empty() {
                all.push((kind, token));
            }
        }
        all
    }

    #[test]
    fn comments_literals_and_keywords_are_found() {
        let js = "const x2 = 1_000.5; // it's\nreturn `a\n${b}` + 'c\\'d' /* e\n */ + \"f\ng";
        let expected = [
            ("word", "const"),
            ("number", "1_000.5"),
            ("comment", "// it's"),
            ("word", "return"),
            ("text", "`a\n${b}`"),
            ("text", "'c\\'d'"),
            ("comment", "/* e\n */"),
            ("text", "\"f"),
        ];
        assert_eq!(tokens(js, Language::Js), expected);
        let py = "def f(a): # b\n  return rb'c' + f\"\"\"d'\n\"\"\" + classes + 0x1f // 2";
        let expected = [
            ("word", "def"),
            ("comment", "# b"),
            ("word", "return"),
            ("text", "rb'c'"),
            ("text", "f\"\"\"d'\n\"\"\""),
            ("number", "0x1f"),
            ("number", "2"),
        ];
        assert_eq!(tokens(py, Language::Py), expected);
    }

    #[test]
    fn any_text_is_code() {
        let pieces = ["'", "\"", "`", "/", "*", "#", "\\", "\n", "é", "1", "a", " ", "\u{1f600}"];
        let count = pieces.len();
        for seed in 0..count.pow(4) {
            let text: String =
                (0..4).map(|place| pieces[seed / count.pow(place) % count]).collect();
            for language in [Language::Js, Language::Py] {
                tokens(&text, language);
                assert!(highlighted(&text, language).len() <= 30 * text.len());
            }
        }
        assert_eq!(
            highlighted("a<'b'", Language::Js),
            "a&lt;<span class=\"text\">&#39;b&#39;</span>"
        );
    }
}
