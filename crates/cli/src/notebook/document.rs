//! The file of a notebook.
//!
//! In: the text of a file: a notebook of Jupyter (nbformat 4), or `{ "cells": [source | { source, language }] }`. Out: its
//! cells of code, and the text again with their outputs. Whatever else the text has stays as it was, to the byte.

use std::{collections::BTreeMap, ops::Range, path::Path};

use isolane::{Spelling, unknown_name};
use isolane_notebook::{
    CallResult, CellResult, Language, Truncation, jupyter_metadata, jupyter_outputs,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Serializer, Value as Json, json, ser::PrettyFormatter, value::RawValue};

use crate::exit::Ended;

/// The version of Jupyter's format that is read: 4, since 2015.
const NBFORMAT: u64 = 4;

/// A cell of code that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) language: Language,
    pub(crate) code: String,
    /// Its place among the cells of the file, texts included.
    place: usize,
}

/// A cell that has run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) result: CellResult,
    pub(crate) truncation: Option<Truncation>,
}

/// A file, and its cells of code.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    is_jupyter: bool,
    pub(crate) cells: Vec<Cell>,
}

/// The texts of the cells within the text of a file.
#[derive(Deserialize)]
struct Raw<'t> {
    #[serde(borrow)]
    cells: Vec<&'t RawValue>,
}

impl Document {
    /// # Errors
    /// Misuse: no JSON, no cells, an older format, a language that there is not.
    pub(crate) fn read(text: &str, file: &Path) -> Result<Self, Ended> {
        // Editors of Windows write a byte-order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let refused = |message: String| Ended::misuse(format!("{}: {message}", file.display()));
        let json: Json =
            serde_json::from_str(&text).map_err(|error| refused(format!("no JSON: {error}")))?;
        let is_jupyter = json.get("nbformat").is_some();
        let cells = if is_jupyter { of_jupyter(&json) } else { of_list(&json) };
        let mut cells = cells.map_err(refused)?;
        cells.retain(|cell| !cell.code.trim().is_empty());
        Ok(Self { text, is_jupyter, cells })
    }

    /// Whether it is a notebook of Jupyter.
    pub(crate) fn is_jupyter(&self) -> bool {
        self.is_jupyter
    }

    /// The text of the file with the outputs of the cells that have run.
    pub(crate) fn with(&self, done: &[Done]) -> String {
        let mut text = self.text.clone();
        let Ok(raw) = serde_json::from_str::<Raw<'_>>(&self.text) else { return text };
        // From the back, so that the places before stay right.
        for done in done.iter().rev() {
            let Some(raw) = raw.cells.get(self.cells[done.result.index].place) else { continue };
            let (range, new) = self.edited(raw.get(), done);
            text.replace_range(range, &new);
        }
        text
    }

    /// The text of a cell with its outputs, and its range in the text of the file.
    fn edited(&self, raw: &str, done: &Done) -> (Range<usize>, String) {
        let range = within(&self.text, raw);
        let fields: [(&str, Json); 2] = if self.is_jupyter {
            let count = json!(done.result.index + 1);
            [
                ("execution_count", count),
                ("outputs", jupyter_outputs(&done.result, done.truncation)),
            ]
        } else {
            let mut shaped = shaped(done);
            [("status", shaped["status"].take()), ("outputs", shaped["outputs"].take())]
        };
        let Ok(old) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw) else {
            let mut cell =
                json!({ "source": serde_json::from_str::<Json>(raw).unwrap_or_default() });
            for (key, value) in fields {
                cell[key] = value;
            }
            return (range.clone(), self.written(&cell, range.start));
        };
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for (key, value) in fields {
            edits.push(match old.get(key) {
                Some(value_now) => {
                    let place = within(raw, value_now.get());
                    let new = self.written(&value, range.start + place.start);
                    (place, new)
                }
                None => {
                    let end = raw.trim_end_matches('}').trim_end().len();
                    let margin = self.margin(range.start + end);
                    let space =
                        if raw.contains('\n') { format!("\n{margin}") } else { " ".to_owned() };
                    let new = self.written(&value, range.start + end);
                    (end..end, format!(",{space}\"{key}\": {new}"))
                }
            });
        }
        if self.is_jupyter
            && let Some(told) = told(&old)
        {
            let place = within(raw, told.get());
            let new = self.written(&jupyter_metadata(&done.result), range.start + place.start);
            edits.push((place, new));
        }
        edits.sort_by_key(|(place, _)| place.start);
        let mut text = raw.to_owned();
        for (place, new) in edits.into_iter().rev() {
            text.replace_range(place, &new);
        }
        (range, text)
    }

    /// JSON as the file has it: with its indentation, on the line of that place.
    fn written(&self, json: &Json, place: usize) -> String {
        let Some(step) = self.step() else { return json.to_string() };
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(step.as_bytes());
        let mut writer = Serializer::with_formatter(&mut bytes, formatter);
        json.serialize(&mut writer).expect("a vector takes all bytes, and keys are texts");
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        // A text in JSON has no line breaks of its own.
        text.replace('\n', &format!("\n{}", self.margin(place)))
    }

    /// The blanks at the beginning of the line of a place.
    fn margin(&self, place: usize) -> &str {
        let line = self.text[..place].rfind('\n').map_or(0, |end| end + 1);
        let line = &self.text[line..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The blanks of one level, unless all stands on one line.
    fn step(&self) -> Option<&str> {
        let line = self.text.find('\n')? + 1;
        if self.text[line..].trim().is_empty() {
            return None;
        }
        Some(self.margin(line)).filter(|step| !step.is_empty()).or(Some(" "))
    }
}

/// The line of `--json`: the cells as a result of the library has them, and the texts that were cut.
pub(crate) fn line(done: &[Done]) -> String {
    json!({ "cells": done.iter().map(shaped).collect::<Vec<_>>() }).to_string()
}

/// The result of a cell in JSON, as an entry of `details.cells` of a call.
fn shaped(done: &Done) -> Json {
    let cells = vec![done.result.clone()];
    let result = CallResult { cells, truncation: done.truncation, ..CallResult::default() };
    let mut details = result.to_json(Spelling::Camel, false)["details"].take();
    let mut cell = details["cells"][0].take();
    if done.truncation.is_some() {
        cell["truncation"] = details["meta"]["truncation"].take();
    }
    cell
}

/// The range of a part of a text.
fn within(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// That which an earlier run told of a cell in its metadata.
fn told<'r>(cell: &BTreeMap<String, &'r RawValue>) -> Option<&'r RawValue> {
    let metadata: BTreeMap<String, &RawValue> =
        serde_json::from_str(cell.get("metadata")?.get()).ok()?;
    metadata.get("isolane").copied()
}

fn of_jupyter(json: &Json) -> Result<Vec<Cell>, String> {
    match json["nbformat"].as_u64() {
        Some(NBFORMAT) => {}
        Some(old) if old < NBFORMAT => {
            return Err(format!(
                "its nbformat is {old}; `jupyter nbconvert --to notebook` converts it to {NBFORMAT}"
            ));
        }
        _ => return Err(format!("its nbformat is {}; {NBFORMAT} is read", json["nbformat"])),
    }
    let metadata = &json["metadata"];
    let named = [&metadata["kernelspec"]["language"], &metadata["language_info"]["name"]];
    let named = named.into_iter().find_map(Json::as_str).unwrap_or("python");
    let Some(cells) = json["cells"].as_array() else { return Err("it has no cells".to_owned()) };
    let code = cells.iter().enumerate().filter(|(_, cell)| cell["cell_type"] == "code");
    code.map(|(place, cell)| {
        let refused = |message: &str| format!("cells[{place}]: {message}");
        let source = joined(&cell["source"]).ok_or_else(|| refused("its source is no text"))?;
        let own = cell["metadata"]["vscode"]["languageId"].as_str();
        let (language, code) = match magic(&source) {
            Some(magic) => magic,
            None => {
                let word = own.unwrap_or(named);
                let language = language(word);
                (language.ok_or_else(|| refused(&no_language(word)))?, source)
            }
        };
        Ok(Cell { language, code, place })
    })
    .collect()
}

fn of_list(json: &Json) -> Result<Vec<Cell>, String> {
    let Some(cells) = json["cells"].as_array() else {
        return Err("it is no notebook: there must be a list of cells".to_owned());
    };
    cells.iter().enumerate().map(|(place, cell)| of_entry(place, cell)).collect()
}

/// An entry of a list of cells. The keys that `--write` adds are none that is read.
fn of_entry(place: usize, cell: &Json) -> Result<Cell, String> {
    const KEYS: [&str; 4] = ["source", "language", "status", "outputs"];
    let refused = |message: String| format!("cells[{place}]: {message}");
    let one = Map::from_iter([("source".to_owned(), cell.clone())]);
    let fields = match cell {
        Json::String(_) => &one,
        Json::Object(fields) => fields,
        _ => return Err(refused("it must be a text or { source, language }".to_owned())),
    };
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let error = unknown_name("", key, &["source", "language"].map(str::to_owned));
        return Err(refused(error.message().to_owned()));
    }
    let source = fields.get("source").and_then(joined);
    let code = source.ok_or_else(|| refused("it has no source".to_owned()))?;
    let language = match fields.get("language") {
        None => Language::Js,
        Some(word) => {
            let word = word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            language(&word).ok_or_else(|| refused(no_language(&word)))?
        }
    };
    Ok(Cell { language, code, place })
}

/// A text, or its lines.
fn joined(source: &Json) -> Option<String> {
    match source {
        Json::String(text) => Some(text.clone()),
        Json::Array(lines) => lines.iter().map(Json::as_str).collect(),
        _ => None,
    }
}

/// The language of a first line such as `%%javascript`, and the code, whose lines keep their numbers.
fn magic(source: &str) -> Option<(Language, String)> {
    let begin = source.len() - source.trim_start().len();
    let (first, rest) = source[begin..].split_once('\n').unwrap_or((&source[begin..], ""));
    let language = language(first.strip_prefix("%%")?.split_whitespace().next()?)?;
    Some((language, format!("{}\n{rest}", &source[..begin])))
}

fn language(word: &str) -> Option<Language> {
    match word.to_ascii_lowercase().as_str() {
        "js" | "ts" | "javascript" | "typescript" => Some(Language::Js),
        "py" | "python" | "python3" => Some(Language::Py),
        _ => None,
    }
}

fn no_language(word: &str) -> String {
    format!("cells are JavaScript, TypeScript or Python, not {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Result<Document, String> {
        let read = Document::read(text, Path::new("a.ipynb"));
        read.map_err(|ended| ended.message().unwrap_or_default().to_owned())
    }

    fn cells(json: &Json) -> Result<Vec<Cell>, String> {
        document(&json.to_string()).map(|document| document.cells)
    }

    #[test]
    fn a_cell_of_jupyter_has_the_language_of_its_notebook_unless_it_says_so() {
        let json = json!({
            "nbformat": 4,
            "metadata": { "kernelspec": { "language": "python" } },
            "cells": [
                { "cell_type": "markdown", "source": "# Sales" },
                { "cell_type": "code", "source": ["a = 1\n", "a"] },
                { "cell_type": "code", "source": "\n%%javascript --isolated\n1 + 1" },
                { "cell_type": "code", "source": "2", "metadata": { "vscode": { "languageId": "typescript" } } },
                { "cell_type": "code", "source": " \n" },
            ],
        });
        let cell = |language, code: &str, place| Cell { language, code: code.to_owned(), place };
        let expected = [
            cell(Language::Py, "a = 1\na", 1),
            cell(Language::Js, "\n\n1 + 1", 2),
            cell(Language::Js, "2", 3),
        ];
        assert_eq!(cells(&json).as_deref(), Ok(&expected[..]));
    }

    #[test]
    fn a_list_of_cells_is_typescript_unless_it_says_so() {
        let json = json!({ "cells": ["1", { "source": "2", "language": "python" }] });
        let languages: Vec<Language> =
            cells(&json).expect("cells").iter().map(|cell| cell.language).collect();
        assert_eq!(languages, [Language::Js, Language::Py]);
        document("\u{feff}{ \"cells\": [] }").expect("a byte-order mark is none of it");
    }

    #[test]
    fn a_file_that_is_no_notebook_is_refused_with_the_place() {
        let table = [
            (json!([]), "a.ipynb: it is no notebook: there must be a list of cells"),
            (
                json!({ "cells": [1] }),
                "a.ipynb: cells[0]: it must be a text or { source, language }",
            ),
            (
                json!({ "cells": ["", { "souce": "" }] }),
                "a.ipynb: cells[1]: unknown option 'souce'; did you mean 'source'?",
            ),
            (
                json!({ "cells": [{ "source": "", "language": "ruby" }] }),
                "a.ipynb: cells[0]: cells are JavaScript, TypeScript or Python, not ruby",
            ),
            (
                json!({ "nbformat": 3, "worksheets": [] }),
                "a.ipynb: its nbformat is 3; `jupyter nbconvert --to notebook` converts it to 4",
            ),
            (json!({ "nbformat": 5 }), "a.ipynb: its nbformat is 5; 4 is read"),
            (
                json!({ "nbformat": 4, "cells": [{ "cell_type": "code", "source": 1 }] }),
                "a.ipynb: cells[0]: its source is no text",
            ),
        ];
        for (json, message) in table {
            assert_eq!(cells(&json), Err(message.to_owned()));
        }
    }

    /// The text of a file whose cells have run without output.
    fn run(text: &str, indices: &[usize]) -> String {
        let document = document(text).expect("cells");
        let done = indices.iter().map(|index| Done { result: done(*index), truncation: None });
        document.with(&done.collect::<Vec<_>>())
    }

    fn done(index: usize) -> CellResult {
        CellResult {
            index,
            title: None,
            language: Language::Js,
            code: String::new(),
            name: None,
            status: isolane_notebook::CellStatus::Complete,
            output: String::new(),
            outputs: vec![isolane_notebook::Output::Text("7".to_owned())],
            duration_ms: 0.0,
            work_ms: 0.0,
            exit_code: Some(0),
            status_events: Vec::new(),
            markdown: false,
            error: None,
            state: None,
        }
    }

    #[test]
    fn all_but_the_outputs_stays_as_it_was() {
        let before = "{ \"cells\": [\n  \"1\", {\n    \"outputs\": [12345678901234567890123, 1E5],\n    \"source\": \"\\u00e9\"\n  },\n\
                      {\"source\":\"3\"}], \"more\": 1.50 }";
        let outputs = |margin: &str| {
            format!(
                "[\n{margin}  {{\n{margin}    \"type\": \"text\",\n{margin}    \"text\": \"7\"\n{margin}  }}\n{margin}]"
            )
        };
        let second = format!(
            "{{\n    \"outputs\": {},\n    \"source\": \"\\u00e9\",\n    \"status\": \"complete\"\n  }}",
            outputs("    ")
        );
        let third =
            format!("{{\"source\":\"3\", \"status\": \"complete\", \"outputs\": {}}}", outputs(""));
        assert_eq!(run(before, &[]), before);
        let expected = format!("{{ \"cells\": [\n  \"1\", {second},\n{third}], \"more\": 1.50 }}");
        assert_eq!(run(before, &[1, 2]), expected);
        assert_eq!(
            run("{\"cells\":[\"1\"]}", &[0]),
            "{\"cells\":[{\"source\":\"1\",\"status\":\"complete\",\"outputs\":[{\"type\":\"text\",\"text\":\"7\"}]}]}"
        );
    }
}
