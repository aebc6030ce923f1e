//! The Markdown of the table of sessions.
//!
//! In: the folder of the tables. Out: cases, checked for form and not yet decoded (tags stay tags). The README has the
//! format. A violation panics with file and line, as in `parse.mjs`.

use std::{fs, path::Path};

use serde_json::{Map, Value as Json};

/// One case of the table.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) heading: String,
    pub(crate) options: Map<String, Json>,
    pub(crate) runtime: Option<Json>,
    pub(crate) modules: Vec<(String, Vec<u16>)>,
    /// Opening the session is this misuse.
    pub(crate) misuse: Option<Json>,
    pub(crate) acts: Vec<Act>,
}

/// One fence of a case, after those that say how its session is opened.
#[derive(Debug)]
pub(crate) enum Act {
    Cell(Box<Cell>),
    Steps(Vec<Json>),
    /// The result of the cell with that name.
    Result(String, Json),
}

/// A cell, and its result if it is awaited at once.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) work: Work,
    pub(crate) options: Map<String, Json>,
    pub(crate) result: Option<Json>,
    pub(crate) misuse: Option<Json>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Source { text: Vec<u16>, typescript: bool },
    Call { name: Json, args: Vec<Json> },
}

/// All cases of the tables in `folder`.
pub(crate) fn cases(folder: &Path) -> Vec<Case> {
    let entries = fs::read_dir(folder).expect("the folder of the tables is there");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("plain names"))
        .filter(|name| {
            Path::new(name).extension().is_some_and(|end| end == "md") && name != "README.md"
        })
        .collect();
    files.sort();
    let read = |file: &String| fs::read_to_string(folder.join(file)).expect("a table is text");
    files.iter().flat_map(|file| cases_of(file, &read(file))).collect()
}

fn cases_of(file: &str, text: &str) -> Vec<Case> {
    let fail = |at: usize, why: &str| -> ! { panic!("{file}:{}: {why}", at + 1) };
    let lines: Vec<&str> = text.split('\n').collect();
    let mut found: Vec<Case> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(heading) = line.strip_prefix("## ") {
            let (file, heading) = (file.to_owned(), heading.trim().to_owned());
            found.push(Case { file, heading, ..Case::default() });
        } else if let Some(info) = line.strip_prefix("```") {
            let end = (at + 1..lines.len()).find(|end| lines[*end] == "```");
            let (Some(end), Some(case)) = (end, found.last_mut()) else {
                fail(at, "a fence outside of a case or without an end")
            };
            if let Err(why) = add_fence(case, info.trim(), &lines[at + 1..end].join("\n")) {
                fail(at, &why);
            }
            at = end;
        }
        at += 1;
    }
    found
}

fn add_fence(case: &mut Case, info: &str, text: &str) -> Result<(), String> {
    let mut words = info.split(' ');
    let (kind, name, rest) = (words.next().unwrap_or_default(), words.next(), words.next());
    if kind == "ts" || kind == "js" {
        match name {
            None => case.acts.push(Act::Cell(Box::new(Cell::source(unescape(text), kind == "ts")))),
            Some(name) => case.modules.push((name.to_owned(), unescape(text))),
        }
        return Ok(());
    }
    let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let unknown = || Err(format!("unknown fence '{info}'"));
    match (kind, name, rest) {
        ("json", Some("options"), None) => case.options = object(json)?,
        ("json", Some("runtime"), None) => case.runtime = Some(json),
        ("json", Some("call"), None) => {
            case.acts.push(Act::Cell(Box::new(Cell::call(object(json)?))));
        }
        ("json", Some("steps"), None) => case.acts.push(Act::Steps(list(json)?)),
        ("json", Some("result"), Some(of)) => case.acts.push(Act::Result(of.to_owned(), json)),
        ("json", Some("misuse"), None) if case.acts.is_empty() => case.misuse = Some(json),
        ("json", Some(name @ ("cell" | "result" | "misuse")), None) => {
            let Some(Act::Cell(cell)) = case.acts.last_mut() else {
                return Err(format!("a {name} without a cell right before"));
            };
            match name {
                "cell" => cell.options = object(json)?,
                "result" => cell.result = Some(json),
                _ => cell.misuse = Some(json),
            }
        }
        _ => return unknown(),
    }
    Ok(())
}

impl Cell {
    fn source(text: Vec<u16>, typescript: bool) -> Self {
        Self::new(Work::Source { text, typescript }, Map::new())
    }

    fn call(mut options: Map<String, Json>) -> Self {
        let name = options.shift_remove("name").unwrap_or_default();
        let args = options.shift_remove("args").and_then(|args| list(args).ok());
        Self::new(Work::Call { name, args: args.unwrap_or_default() }, options)
    }

    fn new(work: Work, options: Map<String, Json>) -> Self {
        Self { work, options, result: None, misuse: None }
    }

    /// The name under which the case awaits it later.
    pub(crate) fn name(&self) -> Option<&str> {
        self.options.get("as").and_then(Json::as_str)
    }

    /// The name of its session.
    pub(crate) fn session(&self) -> &str {
        self.options.get("in").and_then(Json::as_str).unwrap_or("main")
    }
}

fn object(json: Json) -> Result<Map<String, Json>, String> {
    match json {
        Json::Object(object) => Ok(object),
        other => Err(format!("no object: {other}")),
    }
}

fn list(json: Json) -> Result<Vec<Json>, String> {
    match json {
        Json::Array(list) => Ok(list),
        other => Err(format!("no list: {other}")),
    }
}

/// `⟦uD800⟧` stands for that code unit or character.
fn unescape(source: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, marked)) = rest.split_once("⟦u") {
        let Some((hex, after)) = marked.split_once('⟧') else { break };
        let code = u32::from_str_radix(hex, 16).expect("a code point in hex");
        units.extend(before.encode_utf16());
        match u16::try_from(code) {
            Ok(unit) => units.push(unit),
            Err(_) => {
                let char = char::from_u32(code).expect("a code point");
                units.extend(char.encode_utf16(&mut [0; 2]).iter());
            }
        }
        rest = after;
    }
    units.extend(rest.encode_utf16());
    units
}
