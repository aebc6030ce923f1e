//! The outputs of a cell in Jupyter's form.
//!
//! In: the result of a cell. Out: the list `outputs` of nbformat 4. A value and a display are both `display_data`: a result
//! does not tell them apart.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use isolane_notebook::{CellError, CellResult, Image, Output, Truncation};
use serde_json::{Map, Value as Json, json};

/// The value of `outputs`.
pub(crate) fn of(cell: &CellResult, truncation: Option<Truncation>) -> Json {
    let outputs = cell.outputs.iter().map(|output| one(output, cell.error.as_ref()));
    let cut = truncation.map(|cut| stream("stderr", &format!("[{}]\n", cut_text(cut))));
    outputs.chain(cut).collect()
}

/// The words for a text that was cut.
pub(crate) fn cut_text(cut: Truncation) -> String {
    let Truncation { shown_bytes, total_bytes, shown_lines, total_lines, .. } = cut;
    format!(
        "the output was cut: {shown_lines} of {total_lines} lines, {shown_bytes} of {total_bytes} bytes"
    )
}

fn one(output: &Output, error: Option<&CellError>) -> Json {
    match output {
        Output::Stream { name, text } => stream(name, text),
        Output::Text(text) => display([("text/plain", lines(text))]),
        Output::Markdown(text) => display([("text/markdown", lines(text))]),
        Output::Json(value) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            display([("application/json", value.clone()), ("text/plain", lines(&text))])
        }
        Output::Image(image) => display([(image.mime_type.as_str(), data(image))]),
        Output::Error { name, message } => {
            let line = format!("{name}: {message}");
            let stack = error.and_then(|error| error.stack.as_deref()).unwrap_or(&line);
            let traceback: Vec<&str> = stack.lines().collect();
            json!({ "output_type": "error", "ename": name, "evalue": message, "traceback": traceback })
        }
    }
}

fn stream(name: &str, text: &str) -> Json {
    json!({ "output_type": "stream", "name": name, "text": lines(text) })
}

/// A display, in several media types.
fn display<'d>(data: impl IntoIterator<Item = (&'d str, Json)>) -> Json {
    let data: Map<String, Json> =
        data.into_iter().map(|(kind, value)| (kind.to_owned(), value)).collect();
    json!({ "output_type": "display_data", "data": data, "metadata": {} })
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
