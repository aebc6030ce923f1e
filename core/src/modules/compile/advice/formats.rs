//! Texts that are something else than a program, or a program with something around it.

use super::{
    source::{Advice, FENCED, Source, first_word},
    tokens::LONGEST_PARSED,
};

/// Whether a text begins with a fence of Markdown. Three backticks are a template that is called as the tag of another,
/// so no program that begins with them can run.
pub(in super::super) fn begins_with_fence(text: &str) -> Option<usize> {
    let start = text.trim_start();
    (start.starts_with("```") || start.starts_with("~~~")).then(|| text.len() - start.len())
}

/// A fence behind a sentence, or behind the code.
pub(super) fn fence(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let fences = ["\n```", "\n~~~"].iter().filter_map(|fence| source.text.find(fence));
    let fence = fences.min()? + 1;
    let inside = source.from(fence).split_once('\n').map_or("", |(_, inside)| inside);
    let end = ["\n```", "\n~~~"].iter().filter_map(|fence| inside.find(fence)).min();
    let inside = inside.get(..end.unwrap_or(inside.len())).unwrap_or_default();
    let fenced = source.at < fence && is_module(source, inside);
    let behind = source.at >= fence && is_module(source, source.to(fence));
    let (_, clause) = FENCED.split_once("The ")?;
    (fenced || behind).then(|| Advice::at(format!("the {clause}"), fence))
}

/// A sentence before or after the code, from its first letter to the point.
pub(super) fn sentence(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let line = source.error_line();
    let begins = line.trim_start_matches(MARKS).starts_with(char::is_uppercase);
    let ends = line.trim_end_matches('*').ends_with(['.', ':', '!', '?']);
    if begins && ends && is_prose(line) { around(source) } else { None }
}

/// Words before or after the code.
pub(super) fn prose(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    if !is_prose(source.error_line()) || source.failure.message.starts_with("Unterminated") {
        return None;
    }
    around(source)
}

/// The remedy for a line of words, if the rest is a program, or if there is nothing else.
fn around(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let start = source.line_start();
    let after = || {
        let mut at = start;
        let lines = source.from(start).split_inclusive('\n').take(50);
        let code = lines.skip(1).find(|line| begins_code(line));
        at += code.map(|code| code.as_ptr() as usize - source.from(start).as_ptr() as usize)?;
        Some(source.from(at))
    };
    let nothing_else = || {
        let mut lines = source.text.lines().filter(|line| !line.trim().is_empty());
        let sentence = |line: &str| is_prose(line) && line.ends_with(['.', ':', '!', '?']);
        lines.clone().count() <= 50 && lines.all(|line| sentence(line.trim()))
    };
    let alone = is_module(source, source.to(start))
        || nothing_else()
        || (source.to(start).trim().is_empty()
            && after().is_some_and(|code| is_module(source, code)));
    let line = source.line(start);
    alone.then(|| Advice::at(format!("line {line} is no code: send the code alone"), start))
}

/// The marks of a list, a heading or a quotation.
const MARKS: &[char] =
    &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '#', '>', '.', ')', ' ', '*'];

/// Words as in a sentence, and no sign of a program.
fn is_prose(line: &str) -> bool {
    // The marks of a list, a heading or bold words; a comment that lost its beginning is none.
    let bold = line.strip_prefix("**").filter(|line| line.contains("**"));
    if line.starts_with('*') && bold.is_none() {
        return false;
    }
    let line = bold.map_or_else(|| line.to_owned(), |line| line.replace("**", ""));
    let line = line.trim_start_matches(MARKS);
    let words = || line.split(' ').take(40);
    let plain = |word: &&str| {
        let word = word.trim_end_matches(['.', ',', ':', '!', '?']);
        !word.is_empty() && word.chars().all(|char| char.is_alphabetic() || "'’-".contains(char))
    };
    words().count() >= 3
        && words().take(3).all(|word| plain(&word))
        && !line.contains(['=', '{', '}', ';', '[', ']'])
}

/// Whether a line may be the first one of a program.
fn begins_code(line: &str) -> bool {
    line.starts_with("//")
        || line.starts_with("/*")
        || matches!(
            first_word(line),
            "import"
                | "export"
                | "const"
                | "let"
                | "var"
                | "function"
                | "async"
                | "class"
                | "type"
                | "interface"
                | "enum"
                | "await"
        )
}

fn is_module(source: &Source<'_, '_, '_>, text: &str) -> bool {
    text.len() <= LONGEST_PARSED
        && !text.trim().is_empty()
        && (source.reader.parses)(text, source.typescript)
}

/// Markers that a merge left.
pub(super) fn conflict(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.from(source.at);
    let marker = ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|marker| rest.starts_with(marker));
    marker.then(|| Advice::new("resolve the merge first: keep one of its sides"))
}

/// The changes of a program in place of the program.
pub(super) fn diff(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let text = source.text.trim_start();
    let files = text.starts_with("--- ") && text.contains("\n+++ ");
    (files || text.starts_with("diff --git ") || text.starts_with("@@ -")).then(|| {
        let start = source.text.len() - text.len();
        Advice::at("the text is a diff: send the whole program", start)
    })
}

/// A page in place of a program.
pub(super) fn html(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let text = source.text.trim_start();
    let head = text.get(..text.floor_char_boundary(9))?.to_ascii_lowercase();
    let begins = ["<!doctype", "<html", "<script", "<body", "<head"];
    begins.iter().any(|tag| head.starts_with(tag)).then(|| {
        let start = source.text.len() - text.len();
        Advice::at("the text is HTML: send only the code", start)
    })
}

/// An object of JSON is a block whose first statement is a string, up to the colon.
pub(super) fn json(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let [brace, key, ..] = source.tokens.first.as_slice() else { return None };
    let colon = source.rest().starts_with(':') && source.to(source.at).trim_end().len() == key.end;
    (brace.text == "{" && key.text.starts_with('"') && colon)
        .then(|| Advice::new("the text is JSON: write export default before it"))
}

/// JSX: a tag that is closed.
pub(super) fn jsx(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let line = source.line_start();
    let here = source.text.len() - source.rest().len();
    let before = source.tokens.backwards().take_while(|token| token.start >= line);
    let mut tags = before.map(|token| token.start).chain([here]);
    let at = tags.find(|at| is_tag(source.from(*at)))?;
    Some(Advice::at("JSX does not run here: build the text or the object", at))
}

/// Whether a tag of JSX begins a text, and is closed within a few lines.
fn is_tag(text: &str) -> bool {
    let text = text.get(..text.floor_char_boundary(4 << 10)).unwrap_or_default();
    let Some(name) = text.strip_prefix('<').map(first_word) else { return false };
    let rest = text.get(1 + name.len()..).unwrap_or_default();
    let empty =
        || rest.find('>').and_then(|end| rest.get(..end)).is_some_and(|tag| tag.ends_with('/'));
    if name.is_empty() {
        return rest.starts_with('>') && rest.contains("</>");
    }
    rest.contains(&format!("</{name}>")) || empty()
}

/// A source of TypeScript that is run as JavaScript.
pub(super) fn types(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let short = source.text.len() <= LONGEST_PARSED;
    (!source.typescript && short && (source.reader.runs_without_types)(source.text))
        .then(|| Advice::new("this source is run as JavaScript: leave the types out"))
}

/// A name that is declared or exported twice: the second one is the mistake.
pub(super) fn declared_twice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let message = &source.failure.message;
    let verb = if message.ends_with("has already been declared") {
        "it is declared"
    } else if message.ends_with("multiple default exports.")
        || message.starts_with("Duplicated export")
    {
        "the first is"
    } else {
        return None;
    };
    let second = source.failure.last?;
    let line = source.line(source.at);
    Some(Advice::at(format!("{verb} on line {line}"), second))
}
