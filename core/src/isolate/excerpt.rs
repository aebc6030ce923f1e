//! Beginnings of texts.
//!
//! In: a string of the sandbox, of any length. Out: the shown part of it, with a mark where it was cut. Only this part
//! is ever copied out of the engine, so it need not be charged.

use super::{
    engine::{Local, Outcome, Raw, Thrown, int, is_string},
    state::State,
};
use crate::data::text::{MESSAGE_LIMIT, bounded};

impl State {
    /// The first units of a string.
    pub(super) fn beginning(&self, string: Raw, units: usize) -> Outcome<Local> {
        let realm = self.realm();
        let units = i32::try_from(units).unwrap_or(i32::MAX);
        realm.cx.call(realm.intrinsics.string_slice, string, &[int(0), int(units)])
    }

    /// At most `limit` bytes of a string in UTF-8, with the ellipsis that marks a cut.
    pub(super) fn excerpt(&self, string: Raw, limit: usize) -> String {
        bounded(self.text_of(self.beginning(string, limit + 1)), limit)
    }

    /// The text of a short string, empty where there is none: on a full stack nothing can be called.
    fn text_of(&self, string: Outcome<Local>) -> String {
        let cx = self.realm().cx;
        match string.and_then(|text| cx.text(text.raw())) {
            Ok(text) => text.into_lossy(),
            Err(Thrown) => {
                drop(cx.exception());
                String::new()
            }
        }
    }

    /// The first units of a property key, without a mark where it was cut.
    pub(super) fn key_beginning(&self, key: u32, units: usize) -> String {
        let cx = self.realm().cx;
        let text = cx.atom_string(key).and_then(|text| self.beginning(text.raw(), units));
        self.text_of(text)
    }

    /// A property key, shown in at most `limit` bytes.
    pub(super) fn key_excerpt(&self, key: u32, limit: usize) -> String {
        // A unit takes a byte at least, so the bound cuts, and marks, each text that was cut here.
        bounded(self.key_beginning(key, limit + 1), limit)
    }

    /// `Symbol(description)`.
    pub(super) fn symbol_text(&self, symbol: Raw) -> String {
        // A symbol as a key reads as its description.
        let key = self.realm().cx.atom_of(symbol);
        let description = key.map(|key| self.key_excerpt(key.id, MESSAGE_LIMIT));
        format!("Symbol({})", description.unwrap_or_default())
    }

    /// A function's own name, where it is plain text.
    pub(super) fn function_name(&self, function: Raw) -> String {
        let name = self.realm().cx.own_data(function, c"name");
        let name = name.filter(|name| is_string(name.raw()));
        name.map(|name| self.excerpt(name.raw(), MESSAGE_LIMIT)).unwrap_or_default()
    }
}
