//! Results of cells and misuse beside what a case expects.
//!
//! In: tagged expectations, and what the core gave. Out: nothing, or the first difference.

use isolane::{Error, ErrorKind, ExecutionResult, Name};
use serde_json::{Map, Value as Json, json};

use super::{
    compare::{compare, compare_some},
    host::SessionNumber,
    js::Js,
    stage::Stage,
    tagged::tag,
};

/// Compares the keys that the case gives. Left out, the status is `success` and the session `kept`.
pub(crate) fn result(
    stage: &Stage,
    session: SessionNumber,
    expected: &Json,
    got: &ExecutionResult,
) -> Result<(), String> {
    let mut expected = expected.as_object().ok_or("the result is no object")?.clone();
    expected.entry("status").or_insert_with(|| json!("success"));
    expected.entry("session").or_insert_with(|| json!("kept"));
    let said = expected.shift_remove("error");
    // The fields that explain a failure best come first.
    error(said.as_ref(), got)?;
    let value = |message| stage.read(session, message);
    let mut logs = Vec::new();
    for log in &got.logs {
        logs.push(Js::record([
            ("level", Js::text(log.level.as_str())),
            ("args", value(&log.args)?),
            ("timestamp", Js::Number(log.timestamp)),
        ]));
    }
    let reports = got.reports.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let cell = got.cell.as_ref().ok_or("the result of a cell has no part of a cell")?;
    let text = |text: &Option<String>| text.as_deref().map(Js::text);
    let present = [
        ("status", Some(Js::text(got.status.as_str()))),
        ("session", Some(Js::text(cell.session.as_str()))),
        ("result", got.result.as_ref().map(value).transpose()?),
        ("text", text(&cell.text)),
        ("uncloned", text(&cell.uncloned)),
        ("valueFrom", cell.value_from.map(|from| Js::text(from.as_str()))),
        ("reports", Some(Js::list(reports))),
        ("logs", Some(Js::list(logs))),
    ];
    compare_some(&expected, &present, "result").map_err(|why| match &got.error {
        Some(error) => format!("{why}\n      with error {error:?}"),
        None => format!("{why}\n      of {cell:?}"),
    })
}

fn error(expected: Option<&Json>, got: &ExecutionResult) -> Result<(), String> {
    let absent = expected.is_some_and(|expected| matches!(tag(expected), Some(("$absent", _))));
    let (Some(expected), false) = (expected, absent) else {
        return match &got.error {
            Some(error) if absent => Err(format!("error: expected none, got {error:?}")),
            _ => Ok(()),
        };
    };
    let Some(error) = &got.error else {
        return Err(format!("error: expected {expected}, got none; result {:?}", got.result));
    };
    let text = |text: &Option<String>| text.as_deref().map(Js::text);
    let number = |number: Option<u32>| number.map(|number| Js::Number(f64::from(number)));
    let present = [
        ("name", Some(Js::text(&error.name))),
        ("message", Some(Js::text(&error.message))),
        ("stack", text(&error.stack)),
        ("specifier", text(&error.specifier)),
        ("filename", text(&error.filename)),
        ("line", number(error.line)),
        ("column", number(error.column)),
    ];
    let expected = expected.as_object().ok_or("the error is no object")?;
    compare_some(expected, &present, "error")
        .map_err(|why| format!("{why}\n      of {} {error:?}", got.status.as_str()))
}

/// Compares an error of the core with the name and message of an exception in JavaScript.
pub(crate) fn misuse(expected: &Json, error: &Error) -> Result<(), String> {
    let name = match error.kind() {
        ErrorKind::Type => "TypeError",
        ErrorKind::Range => "RangeError",
        ErrorKind::Serialization => "SerializationError",
        kind => kind.name().unwrap_or("Error"),
    };
    let expected = expected.as_object().ok_or("the misuse is no object")?;
    let got = [("name", Some(Js::text(name))), ("message", Some(Js::text(error.message())))];
    compare_some(expected, &got, "misuse")
}

/// Compares all names.
pub(crate) fn names(expected: &Json, names: &[Name]) -> Result<(), String> {
    let shown: Vec<Js> = names.iter().map(shown).collect();
    compare(expected, &Js::list(shown), "names")
}

fn shown(name: &Name) -> Js {
    let [kind, kind_of] = [name.kind.as_str(), &name.kind_of].map(Js::text);
    let fields = [("name", Js::text(&name.name)), ("kind", kind), ("type", kind_of)];
    match name.size {
        Some(size) => {
            let [name, kind, kind_of] = fields;
            #[expect(clippy::cast_precision_loss, reason = "a small count")]
            let size = Js::Number(size as f64);
            Js::record([name, kind, kind_of, ("size", size)])
        }
        None => Js::record(fields),
    }
}

/// The name and message that a case expects of a thrown value.
pub(crate) fn thrown(expected: &Json, value: &Js) -> Result<(), String> {
    let shown: Map<String, Json> =
        expected.as_object().ok_or("the rejection is no object")?.clone();
    let Js::Object(object) = value else { return Err(format!("rejected with {value:?}")) };
    let super::js::Object::Error { name, message, .. } = &*object.borrow() else {
        return Err(format!("rejected with {value:?}"));
    };
    let got =
        [("name", Some(Js::String(name.clone()))), ("message", Some(Js::String(message.clone())))];
    compare_some(&shown, &got, "rejection")
}
