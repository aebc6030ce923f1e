//! The conversation as the model sees it: its code, and the results.
//!
//! In: a reply and the results of its programs. Out: a content of the model, and one of the user. A part goes back as
//! a part, and a fenced block as text, unless the caller wants one form for both.

use super::{
    builder::{AsText, Settings},
    fences::Block,
    reply::{Code, Reply},
};
use crate::{Content, Outcome, Part, Role};

/// The content of a reply.
pub(super) fn reply(settings: &Settings, reply: &Reply) -> Content {
    let mut parts = reply.parts.clone();
    match (&reply.code, settings.as_text) {
        (Code::Parts(indices), AsText::Text) => {
            for &index in indices {
                if let Some(part) = parts.get_mut(index) {
                    *part = fenced(part);
                }
            }
        }
        (Code::Block(block), AsText::Parts) => parts = with_code_part(parts, block, &reply.text),
        _ => {}
    }
    Content::model(parts)
}

/// The content of results.
pub(super) fn results(settings: &Settings, code: &Code, results: &[(Outcome, String)]) -> Content {
    let as_text = match settings.as_text {
        AsText::Auto => matches!(code, Code::Block(_)),
        AsText::Text => true,
        AsText::Parts => false,
    };
    let (opening, closing) = &settings.result_delimiters;
    let part = |(outcome, output): &(Outcome, String)| {
        if as_text {
            Part::text(format!("{opening}{output}{closing}"))
        } else {
            Part::result(*outcome, output.as_str())
        }
    };
    Content::new(Role::User, results.iter().map(part).collect())
}

/// A part with code as the text of a fenced block.
fn fenced(part: &Part) -> Part {
    let Part::ExecutableCode(code) = part else { return part.clone() };
    let language = match code.language() {
        language if language.is_empty() => "tool_code".to_owned(),
        language => language,
    };
    Part::text(format!("```{language}\n{}\n```", code.code()))
}

/// The parts with a part of code in the place of a block, which may begin in one text and end in another.
fn with_code_part(parts: Vec<Part>, block: &Block, text: &str) -> Vec<Part> {
    let code = text.get(block.code.clone()).unwrap_or_default();
    let mut code = Some(Part::code(&block.language, code));
    let mut at = 0;
    let mut kept = Vec::new();
    for mut part in parts {
        let Some(length) = part.as_said().map(str::len) else {
            kept.push(part);
            continue;
        };
        let (start, end) = (at, at + length);
        at = end;
        if end <= block.start {
            kept.push(part);
            continue;
        }
        if start < block.start
            && let Part::Text(said) = &mut part
        {
            let before = said.text().get(..block.start - start).unwrap_or_default().to_owned();
            said.set_text(before);
            kept.push(part);
        }
        kept.extend(code.take());
    }
    kept
}
