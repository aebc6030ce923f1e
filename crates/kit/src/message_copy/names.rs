//! Names that are there once.
//!
//! In: the names of an object or a Map, in order. Out: the same, but that `name` is `name_2` when it comes again, as
//! `parseCSV` has it. Any number of names takes time in proportion to them.

use std::collections::HashMap;

use isolane::value::{Str, Writer};

use crate::wtf8;

/// The names of one object or Map so far, as WTF-8, each with the number that it gets next.
#[derive(Default)]
pub(super) struct Names(HashMap<Vec<u8>, u32>);

impl Names {
    /// Writes the name of a property.
    pub(super) fn write_key(&mut self, name: Str<'_>, writer: &mut Writer) {
        match self.numbered(name) {
            Ok(name) => writer.key(&name),
            Err(units) => writer.key16(&units),
        }
    }

    /// Writes the name of an entry.
    pub(super) fn write_text(&mut self, name: Str<'_>, writer: &mut Writer) {
        match self.numbered(name) {
            Ok(name) => writer.string(&name),
            Err(units) => writer.string16(&units),
        }
    }

    /// The name with a number, if it has been there: in UTF-16 if it is not well-formed.
    fn numbered(&mut self, name: Str<'_>) -> Result<String, Vec<u16>> {
        let bytes = match name {
            Str::Utf8(text) => text.as_bytes().to_vec(),
            Str::Utf16(units) => wtf8::from_utf16(units),
        };
        let unused = self.unused(bytes);
        self.0.insert(unused.clone(), 2);
        String::from_utf8(unused).map_err(|error| wtf8::to_utf16(error.as_bytes()))
    }

    fn unused(&mut self, name: Vec<u8>) -> Vec<u8> {
        let Some(&known) = self.0.get(&name) else { return name };
        let mut number = known;
        loop {
            let numbered = [&name, "_".as_bytes(), number.to_string().as_bytes()].concat();
            number = number.saturating_add(1);
            if !self.0.contains_key(&numbered) {
                self.0.insert(name, number);
                return numbered;
            }
        }
    }
}
