//! The list of the names that cells have declared.
//!
//! In: the bindings of a session. Out: each name with its kind, and the class and the size of its value. No code of the
//! sandbox runs: no getter is read, and no Proxy is asked.

use crate::{
    data::{cell::Name, text::bounded},
    isolate::{
        engine::{
            Local, Outcome, Raw, Thrown, double_of, int_of, is_array, is_map, is_object, is_proxy,
            is_set, is_string, sys, tag_of, typed_array_type,
        },
        state::State,
    },
};

/// Bytes of the name of a class.
const CLASS_LIMIT: usize = 200;

/// The names that a list has at most: the host holds it, and no limit counts it.
const MOST_NAMES: usize = 10_000;

/// The characters of a name that a list shows.
const MOST_CHARACTERS: usize = 256;

/// The type of a name without a value.
const UNINITIALIZED: &str = "uninitialized";

/// The class of an object of which no other is known.
const OBJECT: &str = "Object";

impl State {
    /// The names in the order of their first declaration.
    pub(super) fn names(&self) -> Vec<Name> {
        let Ok(session) = self.session() else { return Vec::new() };
        let declared = std::sync::Arc::clone(&session.declared.borrow());
        let named = declared.iter().take(MOST_NAMES).map(|(name, kind)| {
            let value = self.name_value(name).unwrap_or_else(|Thrown| {
                drop(self.realm().cx.exception());
                None
            });
            let (kind_of, size) = match &value {
                Some(value) => (self.kind_of(value.raw()), self.size_of(value.raw())),
                None => (UNINITIALIZED.to_owned(), None),
            };
            Name { name: shown(name), kind, kind_of, size }
        });
        named.collect()
    }

    fn kind_of(&self, value: Raw) -> String {
        let kind = match tag_of(value) {
            sys::JS_TAG_UNINITIALIZED => UNINITIALIZED,
            sys::JS_TAG_UNDEFINED => "undefined",
            sys::JS_TAG_NULL => "null",
            sys::JS_TAG_BOOL => "boolean",
            sys::JS_TAG_INT | sys::JS_TAG_FLOAT64 => "number",
            sys::JS_TAG_SHORT_BIG_INT | sys::JS_TAG_BIG_INT => "bigint",
            sys::JS_TAG_SYMBOL => "symbol",
            _ if is_string(value) => "string",
            _ if is_proxy(value) => "Proxy",
            _ if self.realm().cx.is_function(value) => "function",
            _ => return self.class_of(value),
        };
        kind.to_owned()
    }

    /// The name of the nearest constructor in the chain of prototypes.
    fn class_of(&self, object: Raw) -> String {
        const LONGEST_CHAIN: usize = 64;
        let cx = self.realm().cx;
        let mut at = cx.dup(object);
        for _ in 0..LONGEST_CHAIN {
            let Ok(prototype) = cx.prototype(at.raw()) else { break };
            if !is_object(prototype.raw()) || is_proxy(prototype.raw()) {
                break;
            }
            let constructor = cx.own_data(prototype.raw(), c"constructor");
            let named = constructor.filter(|constructor| cx.is_function(constructor.raw()));
            let name = named.map(|constructor| self.function_name(constructor.raw()));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                return bounded(name, CLASS_LIMIT);
            }
            at = prototype;
        }
        drop(cx.exception());
        OBJECT.to_owned()
    }

    fn size_of(&self, value: Raw) -> Option<u64> {
        let (cx, intrinsics) = (self.realm().cx, self.realm().intrinsics);
        let size = if is_proxy(value) {
            return None;
        } else if is_string(value) || is_array(value) {
            cx.length(value).and_then(|length| u64::try_from(length).map_err(|_| Thrown))
        } else if is_map(value) {
            cx.call(intrinsics.map_size, value, &[]).and_then(|size| number(&size))
        } else if is_set(value) {
            cx.call(intrinsics.set_size, value, &[]).and_then(|size| number(&size))
        } else if typed_array_type(value).is_some() {
            cx.call(intrinsics.typed_array_length, value, &[]).and_then(|size| number(&size))
        } else {
            return None;
        };
        size.map_err(|Thrown| drop(cx.exception())).ok()
    }
}

/// A name, cut where it is long.
fn shown(name: &str) -> String {
    match name.char_indices().nth(MOST_CHARACTERS) {
        None => name.to_owned(),
        Some(_) => {
            let cut = name.char_indices().nth(MOST_CHARACTERS - 1).map_or(0, |(at, _)| at);
            format!("{}…", name.get(..cut).unwrap_or_default())
        }
    }
}

/// A count of the engine.
fn number(value: &Local) -> Outcome<u64> {
    match tag_of(value.raw()) {
        sys::JS_TAG_INT => u64::try_from(int_of(value.raw())).map_err(|_| Thrown),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        sys::JS_TAG_FLOAT64 => Ok(double_of(value.raw()) as u64),
        _ => Err(Thrown),
    }
}
