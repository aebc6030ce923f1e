//! The Markdown of the table of tools.
//!
//! In: its text. Out: its cases. A mistake in the table is a panic that names the case.

use isolane::Language;
use serde_json::{Map, Value as Json};

/// A case of the table.
pub(crate) struct Case {
    pub(crate) heading: String,
    pub(crate) source: String,
    pub(crate) language: Language,
    /// Name, source and language.
    pub(crate) libraries: Vec<(String, String, Language)>,
    pub(crate) kit: Map<String, Json>,
    pub(crate) options: Map<String, Json>,
    pub(crate) expected: Expected,
}

/// The expected end of a case.
pub(crate) enum Expected {
    Result(Map<String, Json>),
    Misuse(Json),
}

/// All cases.
pub(crate) fn cases(table: &str) -> Vec<Case> {
    table.split("\n## ").skip(1).map(case).collect()
}

fn case(text: &str) -> Case {
    let (heading, rest) = text.split_once('\n').expect("a heading ends");
    let mut source = None;
    let mut libraries = Vec::new();
    let (mut kit, mut options, mut expected) = (Map::new(), Map::new(), None);
    for part in rest.split("\n```\n") {
        let Some((_, fence)) = part.split_once("```") else { continue };
        let (info, content) = fence.split_once('\n').expect("a fence has lines");
        let json = || -> Json { serde_json::from_str(content).expect(heading) };
        let object = || json().as_object().cloned().expect(heading);
        match info.split_once(' ').unwrap_or((info, "")) {
            ("json", "kit") => kit = object(),
            ("json", "options") => options = object(),
            ("json", "result") => expected = Some(Expected::Result(object())),
            ("json", "misuse") => expected = Some(Expected::Misuse(json())),
            ("ts", "") => source = Some((content.to_owned(), Language::TypeScript)),
            ("js", "") => source = Some((content.to_owned(), Language::JavaScript)),
            ("ts", name) => {
                libraries.push((name.to_owned(), content.to_owned(), Language::TypeScript));
            }
            ("js", name) => {
                libraries.push((name.to_owned(), content.to_owned(), Language::JavaScript));
            }
            _ => panic!("{heading}: there is no fence '{info}'"),
        }
    }
    let (source, language) = source.expect(heading);
    let expected = expected.expect(heading);
    let heading = heading.to_owned();
    Case { heading, source, language, libraries, kit, options, expected }
}
