//! Results without secrets.
//!
//! In: the result of a run, and the JSON text of a tool's value. Out: the same with a replacement for each value of a
//! secret. It may take long, so it is done where nobody waits for that thread.

use std::borrow::Cow;

use isolane::{ExecutionError, ExecutionResult, MESSAGE_LIMIT, STACK_LIMIT, Value, value::Writer};

use crate::{json_form::json_form, message_copy::Redacting, room::FixedRoom};

/// Takes the value of a tool out of the pair with its JSON text.
pub(super) fn take_json(result: &mut ExecutionResult) -> Option<String> {
    let (text, value) = result.result.take()?.deserialize::<(String, Value)>().ok()?;
    result.result = Some(value);
    Some(text)
}

/// Takes secrets out of a result, and out of the JSON text that belongs to it.
pub(super) fn redact_result(
    result: &mut ExecutionResult,
    json: Option<String>,
    redacting: &Redacting<'_>,
) -> Option<String> {
    if redacting.is_idle() {
        return json;
    }
    let cut = redacting.of_cut(MESSAGE_LIMIT);
    for log in &mut result.logs {
        if let Some(new) = cut.message(&log.args) {
            log.args = new;
        }
    }
    if let Some(error) = &mut result.error {
        redact_error(redacting, error);
    }
    if let Some(cell) = &mut result.cell {
        let texts = cell.text.iter_mut().chain(&mut cell.uncloned);
        texts.for_each(|text| redact(&cut, text));
    }
    redact_value(result, json, redacting)
}

/// Takes secrets out of the value and its JSON text.
fn redact_value(
    result: &mut ExecutionResult,
    json: Option<String>,
    redacting: &Redacting<'_>,
) -> Option<String> {
    let changed = result.result.as_ref().and_then(|value| redacting.message(value));
    let json = match &changed {
        // The value has been in JSON form before.
        Some(value) => json.and_then(|_| json_of(value)),
        None => json,
    };
    if let Some(changed) = changed {
        result.result = Some(changed);
    }
    // A secret may be made of more than one value: the result becomes a text without it.
    match json.as_deref().map(|json| redacting.text(json)) {
        Some(Cow::Owned(text)) => {
            let mut writer = Writer::new();
            writer.string(&text);
            let value = writer.finish();
            let json = json_of(&value);
            result.result = Some(value);
            json
        }
        _ => json,
    }
}

fn json_of(value: &Value) -> Option<String> {
    // A result that has ended belongs to no run.
    json_form(value, "result", &mut FixedRoom::new(usize::MAX)).ok()
}

fn redact(redacting: &Redacting<'_>, text: &mut String) {
    if let Cow::Owned(new) = redacting.text(text) {
        *text = new;
    }
}

fn redact_error(redacting: &Redacting<'_>, error: &mut ExecutionError) {
    let ExecutionError { name, message, stack, specifier, filename, .. } = error;
    if let Some(stack) = stack {
        redact(&redacting.of_cut(STACK_LIMIT), stack);
    }
    let others = specifier.iter_mut().chain(filename);
    let texts = [name, message].into_iter().chain(others);
    texts.for_each(|text| redact(&redacting.of_cut(MESSAGE_LIMIT), text));
}
