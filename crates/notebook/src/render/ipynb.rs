//! Results as a notebook of Jupyter, nbformat 4.5.
//!
//! In: results in the order of their calls. Out: the text of a file `.ipynb`, in which a cell's title is a heading above the
//! cell. The same results give the same text. A value and a display are both `display_data`: a result does not tell them
//! apart. No output has the type `text/html`, so nothing of a cell is markup.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize as _;
use serde_json::{Map, Serializer, Value as Json, json, ser::PrettyFormatter};

use super::{
    facts,
    plain::{MOST_DEPTH, line, shallow},
};
use crate::{CallResult, CellError, CellResult, CellStatus, Image, Language, Output, Truncation};

/// The text of a notebook of Jupyter with the cells of all results: of Python if any cell is, else of TypeScript. A cell in
/// another language than the notebook's has `vscode.languageId` in its metadata, as each cell has what is known of it in
/// `isolane`. Costs time in proportion to the results.
#[must_use]
#[expect(clippy::missing_panics_doc, reason = "a vector takes all bytes, and keys are texts")]
pub fn to_ipynb<'r>(results: impl IntoIterator<Item = &'r CallResult>) -> String {
    let results: Vec<&CallResult> = results.into_iter().collect();
    let mut all = results.iter().flat_map(|result| &result.cells).peekable();
    let is_python = all.peek().is_none() || all.any(|cell| cell.language == Language::Py);
    let (mut cells, mut number, mut count) = (Vec::new(), 0, 0);
    for result in results {
        let last = result.cells.iter().rposition(|cell| cell.status != CellStatus::Pending);
        for (index, cell) in result.cells.iter().enumerate() {
            number += 1;
            count += u64::from(cell.status != CellStatus::Pending);
            if let Some(title) = &cell.title {
                cells.push(heading(number, title));
            }
            let truncation = result.truncation.filter(|_| Some(index) == last);
            let notice = result.notice.as_deref().filter(|_| index == 0);
            let count = (cell.status != CellStatus::Pending).then_some(count);
            cells.push(json!({
                "cell_type": "code",
                "execution_count": count,
                "id": format!("cell-{number}"),
                "metadata": metadata(cell, is_python),
                "outputs": outputs(cell, notice, truncation),
                "source": lines(&cell.code),
            }));
        }
    }
    let notebook = json!({
        "cells": cells,
        "metadata": if is_python { python() } else { typescript() },
        "nbformat": 4,
        "nbformat_minor": 5,
    });
    let mut bytes = Vec::new();
    // As Jupyter writes it.
    let mut writer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b" "));
    notebook.serialize(&mut writer).expect("a vector takes all bytes, and keys are texts");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// The value of `outputs` of a cell of nbformat 4. Text that was cut is told on stderr.
#[must_use]
pub fn jupyter_outputs(cell: &CellResult, truncation: Option<Truncation>) -> Json {
    outputs(cell, None, truncation)
}

/// The value of `isolane` in the metadata of a cell of nbformat 4.
#[must_use]
pub fn jupyter_metadata(cell: &CellResult) -> Json {
    let mut own = Map::new();
    own.insert("durationMs".to_owned(), json!(cell.duration_ms));
    own.insert("language".to_owned(), json!(cell.language.as_str()));
    let texts =
        [("name", cell.name.as_deref()), ("state", cell.state), ("title", cell.title.as_deref())];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text?))));
    own.extend(texts);
    own.insert("status".to_owned(), json!(cell.status.as_str()));
    own.into()
}

fn python() -> Json {
    json!({
        "kernelspec": { "display_name": "Python 3", "language": "python", "name": "python3" },
        "language_info": { "file_extension": ".py", "mimetype": "text/x-python", "name": "python" },
    })
}

/// The kernel of Jupyter that knows TypeScript and top-level `await`.
fn typescript() -> Json {
    json!({
        "kernelspec": { "display_name": "Deno", "language": "typescript", "name": "deno" },
        "language_info": { "file_extension": ".ts", "mimetype": "text/x.typescript", "name": "typescript" },
    })
}

/// A cell with the title of the next one.
fn heading(number: usize, title: &str) -> Json {
    let mut source = "## ".to_owned();
    for letter in line(title, 500).chars() {
        // Nothing of a title is markup.
        if letter.is_ascii_punctuation() {
            source.push('\\');
        }
        source.push(letter);
    }
    json!({ "cell_type": "markdown", "id": format!("title-{number}"), "metadata": {}, "source": [source] })
}

fn metadata(cell: &CellResult, is_python: bool) -> Json {
    let own = jupyter_metadata(cell);
    if is_python && cell.language == Language::Js {
        return json!({ "isolane": own, "vscode": { "languageId": "typescript" } });
    }
    json!({ "isolane": own })
}

fn outputs(cell: &CellResult, notice: Option<&str>, truncation: Option<Truncation>) -> Json {
    let error = facts::error_of(cell);
    let notice = notice.map(|notice| stream("stderr", &format!("[{notice}]\n")));
    let shown = cell.outputs.iter().map(|output| one(output, error.as_ref()));
    let cut = truncation.map(|cut| stream("stderr", &format!("[the output was cut: {cut}]\n")));
    notice.into_iter().chain(shown).chain(cut).collect()
}

fn one(output: &Output, error: Option<&CellError>) -> Json {
    match output {
        Output::Stream { name, text } => stream(name, text),
        Output::Text(text) => display([("text/plain", lines(text))]),
        Output::Markdown(text) => display([("text/markdown", lines(text))]),
        Output::Json(value) => {
            let value = shallow(value, MOST_DEPTH);
            let text = lines(&format!("{value:#}"));
            display([("application/json", value.into_owned()), ("text/plain", text)])
        }
        // A type that is none could be markup.
        Output::Image(image) => match image.check() {
            Ok(()) => display([(image.mime_type.as_str(), data(image))]),
            Err(fault) => display([("text/plain", lines(&format!("[image left out: {fault}]")))]),
        },
        Output::Error { name, message } => {
            let line = format!("{name}: {message}");
            let stack = error.and_then(|error| error.stack.as_deref()).unwrap_or(&line);
            let traceback: Vec<&str> = stack.lines().collect();
            json!({ "ename": name, "evalue": message, "output_type": "error", "traceback": traceback })
        }
    }
}

fn stream(name: &str, text: &str) -> Json {
    json!({ "name": name, "output_type": "stream", "text": lines(text) })
}

/// A display, in several media types.
fn display<'d>(data: impl IntoIterator<Item = (&'d str, Json)>) -> Json {
    let data: Map<String, Json> =
        data.into_iter().map(|(kind, value)| (kind.to_owned(), value)).collect();
    json!({ "data": data, "metadata": {}, "output_type": "display_data" })
}

/// An image: Base64, but for the one type that is a text.
fn data(image: &Image) -> Json {
    let text = || String::from_utf8(STANDARD.decode(&image.data).ok()?).ok();
    match image.mime_type.as_str() {
        "image/svg+xml" => text().map_or_else(|| json!(image.data), |text| lines(&text)),
        _ => json!(image.data),
    }
}

/// A text as a list of lines, each with its line break.
fn lines(text: &str) -> Json {
    text.split_inclusive('\n').collect()
}
