//! Texts and their parts, as values of the sandbox.
//!
//! In: parts, or fields of resolved options. Out: strings, arrays and plain objects.

use super::super::engine::{Cx, Elements, Local, Outcome, sys};
use crate::intl::{Part, joined};

/// The text of all parts.
pub(super) fn text(cx: Cx, parts: &[Part]) -> Outcome<Local> {
    cx.string(&joined(parts))
}

/// The text of all parts of a date, with plain blanks: V8 has the narrow ones before AM and PM in parts alone.
pub(super) fn date_text(cx: Cx, parts: &[Part]) -> Outcome<Local> {
    cx.string(&joined(parts).replace('\u{202f}', " "))
}

/// An array of the parts.
pub(super) fn parts(cx: Cx, parts: &[Part]) -> Outcome<Local> {
    let mut elements = Elements::new(cx);
    for part in parts {
        let mut object = Fields::new(cx)?;
        object.text("type", part.kind)?;
        object.text("value", &part.text)?;
        elements.push(object.finish());
    }
    elements.take_array()
}

/// An array of the parts, of which those that are no literals have the name of a unit.
pub(super) fn parts_of_unit(cx: Cx, parts: &[Part], unit: &str) -> Outcome<Local> {
    let mut elements = Elements::new(cx);
    for part in parts {
        let mut object = Fields::new(cx)?;
        object.text("type", part.kind)?;
        object.text("value", &part.text)?;
        if part.kind != "literal" {
            object.text("unit", unit)?;
        }
        elements.push(object.finish());
    }
    elements.take_array()
}

/// An array of texts.
pub(super) fn texts(cx: Cx, texts: impl Iterator<Item = String>) -> Outcome<Local> {
    let mut elements = Elements::new(cx);
    for text in texts {
        elements.push(cx.string(&text)?);
    }
    elements.take_array()
}

/// A plain object whose properties are given one after the other.
pub(super) struct Fields {
    cx: Cx,
    object: Local,
}

impl Fields {
    pub(super) fn new(cx: Cx) -> Outcome<Self> {
        Ok(Self { cx, object: cx.object()? })
    }

    pub(super) fn value(&mut self, name: &str, value: Local) -> Outcome<()> {
        self.cx.define_str(self.object.raw(), name, value, sys::JS_PROP_C_W_E)
    }

    pub(super) fn text(&mut self, name: &str, text: &str) -> Outcome<()> {
        self.value(name, self.cx.string(text)?)
    }

    pub(super) fn number(&mut self, name: &str, number: impl Into<f64>) -> Outcome<()> {
        self.value(name, self.cx.number(number.into()))
    }

    pub(super) fn flag(&mut self, name: &str, flag: bool) -> Outcome<()> {
        self.value(name, self.cx.dup(super::super::engine::bool(flag)))
    }

    pub(super) fn finish(self) -> Local {
        self.object
    }
}
