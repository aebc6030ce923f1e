//! The Markdown of the table.
//!
//! In: the folder of the tables. Out: cases, checked for form and not yet decoded (tags stay tags). The README has the
//! format. A violation panics with file and line, as in `parse.mjs`.

use std::{fs, path::Path};

use serde_json::{Map, Value as Json};

/// One case of the table.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) heading: String,
    /// Whether the entry's fence has the language `ts`.
    pub(crate) typescript: bool,
    pub(crate) source: Vec<u16>,
    pub(crate) modules: Vec<(String, Vec<u16>)>,
    pub(crate) options: Map<String, Json>,
    pub(crate) handle: Vec<Json>,
    pub(crate) expected: Expected,
}

/// The expected result of a case.
#[derive(Debug)]
pub(crate) enum Expected {
    Result(Json),
    Misuse(Json),
}

/// The cases of every table in `folder`, a list for each file.
pub(crate) fn cases(folder: &Path) -> Vec<Vec<Case>> {
    let entries = fs::read_dir(folder).expect("the folder of the tables is there");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("plain names"))
        .filter(|name| {
            Path::new(name).extension().is_some_and(|end| end == "md") && name != "README.md"
        })
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(folder.join(file)).expect("a table is text");
            cases_of(file, &text)
        })
        .collect()
}

/// A case while it is read.
#[derive(Default)]
struct Draft {
    heading: String,
    at: usize,
    prose: bool,
    entry: Option<(bool, Vec<u16>)>,
    modules: Vec<(String, Vec<u16>)>,
    json: Map<String, Json>,
}

fn cases_of(file: &str, text: &str) -> Vec<Case> {
    let fail = |at: usize, why: &str| -> ! { panic!("{file}:{}: {why}", at + 1) };
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found: Vec<Draft> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(heading) = line.strip_prefix("## ") {
            let heading = heading.trim().to_owned();
            if found.iter().any(|other| other.heading == heading) {
                fail(at, &format!("'{heading}' is there twice"));
            }
            found.push(Draft { heading, at, ..Draft::default() });
        } else if let Some(info) = line.strip_prefix("```") {
            let end = (at + 1..lines.len()).find(|end| lines[*end] == "```");
            let (Some(end), Some(draft)) = (end, found.last_mut()) else {
                fail(at, "a fence outside of a case or without an end")
            };
            let text = lines[at + 1..end].join("\n");
            if let Err(why) = add_fence(draft, info.trim(), &text) {
                fail(at, &why);
            }
            at = end;
        } else if let Some(draft) = found.last_mut() {
            draft.prose |= is_prose(line).unwrap_or_else(|why| fail(at, why));
        }
        at += 1;
    }
    found
        .into_iter()
        .map(|draft| {
            let (at, heading) = (draft.at, draft.heading.clone());
            whole(file, draft).unwrap_or_else(|why| fail(at, &format!("'{heading}' {why}")))
        })
        .collect()
}

fn add_fence(draft: &mut Draft, info: &str, text: &str) -> Result<(), String> {
    let mut words = info.split(' ');
    let (kind, name, rest) = (words.next().unwrap_or_default(), words.next(), words.next());
    match (kind, name, rest) {
        ("ts" | "js", None, None) if draft.entry.is_some() => Err("a second entry".to_owned()),
        ("ts" | "js", None, None) => {
            draft.entry = Some((kind == "ts", unescape(text)));
            Ok(())
        }
        ("ts" | "js", Some(name), None) => {
            if draft.modules.iter().any(|(known, _)| known == name) {
                return Err(format!("a second module '{name}'"));
            }
            draft.modules.push((name.to_owned(), unescape(text)));
            Ok(())
        }
        ("json", Some(name @ ("options" | "handle" | "result" | "misuse")), None) => {
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            match draft.json.insert(name.to_owned(), value) {
                Some(_) => Err(format!("a second {name}")),
                None => Ok(()),
            }
        }
        _ => Err(format!("unknown fence '{info}'")),
    }
}

/// Whether a line is prose about the rule. A line that leaves a case out of a language concerns the language's own
/// face; see the runner.
fn is_prose(line: &str) -> Result<bool, &'static str> {
    const MALFORMED: &str = "a skip line is `skip: language (reason)`";
    let Some(skip) = line.strip_prefix("skip:") else { return Ok(!line.trim().is_empty()) };
    let languages = [" node (", " python (", " rust ("];
    let reason = languages.iter().find_map(|start| skip.strip_prefix(start)).ok_or(MALFORMED)?;
    if reason.len() > 1 && reason.ends_with(')') { Ok(false) } else { Err(MALFORMED) }
}

fn whole(file: &str, mut draft: Draft) -> Result<Case, &'static str> {
    let (typescript, source) = draft.entry.ok_or("has no entry")?;
    if !draft.prose {
        return Err("gives no rule");
    }
    let expected = match (draft.json.remove("result"), draft.json.remove("misuse")) {
        (Some(result), None) => Expected::Result(result),
        (None, Some(misuse)) => Expected::Misuse(misuse),
        _ => return Err("has to have either a result or a misuse"),
    };
    let handle = match draft.json.remove("handle") {
        None => Vec::new(),
        Some(Json::Array(steps)) => steps,
        Some(_) => return Err("has handle steps that are no list"),
    };
    let options = match draft.json.remove("options") {
        None => Map::new(),
        Some(Json::Object(options)) => options,
        Some(_) => return Err("has options that are no object"),
    };
    let (file, heading) = (file.to_owned(), draft.heading);
    let modules = draft.modules;
    Ok(Case { file, heading, typescript, source, modules, options, handle, expected })
}

/// `⟦uD800⟧` stands for that code unit or character.
fn unescape(source: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("⟦u") {
        let (before, marked) = rest.split_at(start);
        let inside = &marked["⟦u".len()..];
        let end = inside.find('⟧').filter(|end| *end > 0);
        let code = end.and_then(|end| u32::from_str_radix(&inside[..end], 16).ok());
        let (Some(end), Some(code)) = (end, code) else { break };
        units.extend(before.encode_utf16());
        match (u16::try_from(code), char::from_u32(code)) {
            (Ok(unit), _) => units.push(unit),
            (_, Some(char)) => units.extend(char.encode_utf16(&mut [0; 2]).iter()),
            _ => panic!("no code point is {code:X}"),
        }
        rest = &inside[end + '⟧'.len_utf8()..];
    }
    units.extend(rest.encode_utf16());
    units
}
