//! Methods that depend on a locale, and the warning for a locale that is not there.
//!
//! In: calls of `toLocaleString`, `localeCompare` and the like. Out: the texts of `Intl`, or the engine's own result; and
//! if the call asked for a locale other than en-US, a log of level `warn`, one for each method and run. A caller with a
//! console of its own gets no such log. `warnings` has the numbers of these logs.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

pub(super) mod warnings;

use std::ffi::{CStr, c_int};

use self::warnings::{CONSTRUCTORS, METHOD_COUNT};
use super::{
    engine::{Cx, Local, Outcome, Raw, Thrown, is_array, sys, tag_of, typed_array_type, undefined},
    intl::{
        self,
        arguments::{Locale, locales},
    },
    state::State,
    trampoline,
};

use crate::data::outcome::LogLevel;

/// A method that depends on a locale; its place in [`METHODS`] is the number that the engine calls it by.
struct Method {
    class: &'static CStr,
    name: &'static CStr,
    /// The position of the locale among the arguments, which is also the number of parameters before it.
    locale: usize,
    kind: Kind,
}

/// The way to answer a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Date,
    /// The method is called of each element.
    Elements,
    Compare,
    /// The engine's own result depends on no locale.
    Own,
}

const METHODS: [Method; METHOD_COUNT] = [
    Method { class: c"Number", name: c"toLocaleString", locale: 0, kind: Kind::Number },
    Method { class: c"BigInt", name: c"toLocaleString", locale: 0, kind: Kind::Number },
    Method { class: c"Array", name: c"toLocaleString", locale: 0, kind: Kind::Elements },
    Method { class: TYPED_ARRAY, name: c"toLocaleString", locale: 0, kind: Kind::Elements },
    Method { class: c"Date", name: c"toLocaleString", locale: 0, kind: Kind::Date },
    Method { class: c"Date", name: c"toLocaleDateString", locale: 0, kind: Kind::Date },
    Method { class: c"Date", name: c"toLocaleTimeString", locale: 0, kind: Kind::Date },
    Method { class: c"String", name: c"localeCompare", locale: 1, kind: Kind::Compare },
    Method { class: c"String", name: c"toLocaleLowerCase", locale: 0, kind: Kind::Own },
    Method { class: c"String", name: c"toLocaleUpperCase", locale: 0, kind: Kind::Own },
];

/// The class that all typed arrays inherit from. No global name leads to it.
const TYPED_ARRAY: &CStr = c"TypedArray";

/// The language tag of no language in particular.
const ROOT: &str = "und";

impl Method {
    fn prototype(&self, cx: Cx, global: Raw) -> Outcome<Local> {
        let class = if self.class == TYPED_ARRAY {
            let class = cx.get_str(global, c"Uint8Array")?;
            cx.prototype(class.raw())?
        } else {
            cx.get_str(global, self.class)?
        };
        cx.get_str(class.raw(), c"prototype")
    }

    fn full_name(&self) -> String {
        format!("{}.prototype.{}", self.class.to_string_lossy(), self.name.to_string_lossy())
    }
}

/// Replaces the engine's locale methods by ours.
///
/// Returns the engine's own. A BigInt inherits its method from `Object.prototype`; its `toString` takes the place.
pub(super) fn install(cx: Cx, global: Raw) -> Outcome<[Raw; METHOD_COUNT]> {
    let mut originals = [sys::JS_UNDEFINED; METHOD_COUNT];
    for ((number, method), original) in (0..).zip(&METHODS).zip(&mut originals) {
        let prototype = method.prototype(cx, global)?;
        let own = cx.own_data(prototype.raw(), method.name);
        *original = own.map_or_else(|| cx.get_str(prototype.raw(), c"toString"), Ok)?.into_raw();
        let length = c_int::try_from(method.locale).map_err(|_| Thrown)?;
        let function = cx.c_function(call, method.name, length, number)?;
        let name = method.name.to_str().map_err(|_| Thrown)?;
        let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
        cx.define_str(prototype.raw(), name, function, hidden)?;
    }
    Ok(originals)
}

unsafe extern "C-unwind" fn call(
    ctx: *mut sys::JSContext,
    this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let method = METHODS.get(number).ok_or(Thrown)?;
        let args = trampoline::args(argc, argv);
        let before = args.get(..method.locale).unwrap_or(args);
        let given = args.get(method.locale..).unwrap_or_default();
        let given = given.get(..2).unwrap_or(given);
        let is_given = given.iter().any(|arg| tag_of(*arg) != sys::JS_TAG_UNDEFINED);
        let intrinsics = &state.realm().intrinsics;
        match method.kind {
            Kind::Number => {
                // `valueOf` of numbers or bigints: any other `this` throws.
                let (_, value_of) = intrinsics.value_of[if number == 0 { 0 } else { 3 }];
                let value = cx.call(value_of, this, &[])?;
                intl::number::localized(state, cx, value.raw(), given, number)
            }
            Kind::Date => {
                const FIRST: usize = 4;
                let order = number.saturating_sub(FIRST);
                intl::date::localized(state, cx, this, given, (number, order))
            }
            Kind::Elements if is_given && (is_array(this) || typed_array_type(this).is_some()) => {
                elements(state, cx, this, given)
            }
            Kind::Elements => cx.call(intrinsics.locale_methods[number], this, &[]),
            Kind::Compare => {
                if matches!(tag_of(this), sys::JS_TAG_UNDEFINED | sys::JS_TAG_NULL) {
                    // The engine's own function throws.
                    return cx.call(intrinsics.locale_methods[number], this, before);
                }
                let one = cx.to_string(this)?;
                let other = cx.to_string(before.first().copied().unwrap_or(undefined()))?;
                intl::collator::localized(state, cx, [one.raw(), other.raw()], given, number)
            }
            Kind::Own => {
                let result = cx.call(intrinsics.locale_methods[number], this, before)?;
                if is_given {
                    let asked = locales(state, cx, given)?;
                    state.known_locale(&asked, number);
                }
                Ok(result)
            }
        }
    })
}

/// The texts of all elements, each by its own method.
fn elements(state: &State, cx: Cx, array: Raw, args: &[Raw]) -> Outcome<Local> {
    // A list that is longer than its elements would go on for long without a call of the engine.
    const CHECKED: i64 = 1 << 10;
    const MOST_PARTS: usize = 1 << 10;
    let length = cx.length(array)?;
    let mut text = cx.string("")?;
    // Each call copies the text before, so it gets many parts.
    let concat = state.realm().intrinsics.string_concat;
    let append = |text: Local, parts: &mut Vec<Local>| {
        let raw: Vec<Raw> = parts.iter().map(Local::raw).collect();
        let text = cx.call(concat, text.raw(), &raw);
        parts.clear();
        text
    };
    let mut parts = Vec::new();
    let separator = cx.string(",")?;
    for index in 0..length {
        if index % CHECKED == 0 && state.must_end() {
            return Err(Thrown);
        }
        let element = cx.get_index(array, u32::try_from(index).map_err(|_| Thrown)?)?;
        if parts.len() >= MOST_PARTS {
            text = append(text, &mut parts)?;
        }
        if index > 0 {
            parts.push(cx.dup(separator.raw()));
        }
        if matches!(tag_of(element.raw()), sys::JS_TAG_UNDEFINED | sys::JS_TAG_NULL) {
            continue;
        }
        let method = cx.get_str(element.raw(), c"toLocaleString")?;
        let own = cx.call(method.raw(), element.raw(), args)?;
        parts.push(cx.to_string(own.raw())?);
    }
    append(text, &mut parts)
}

/// Whether a tag begins like a language. All languages have two or three letters; for other words, such as the `default`
/// that people write, each engine takes its default locale.
fn may_be_language(tag: &str) -> bool {
    tag.split('-').next().is_some_and(|language| language.len() <= 3)
}

impl State {
    /// The locale for a call that asks for these, with a warning if that is another one. In: the number of the warning.
    pub(super) fn known_locale(&self, asked: &[String], number: usize) -> Locale {
        let known = asked.first().and_then(|tag| Locale::of(tag));
        let is_root = asked.first().is_none_or(|tag| tag == ROOT || !may_be_language(tag));
        let known = known.or_else(|| {
            let next = asked.iter().find_map(|tag| Locale::of(tag));
            if !is_root && self.is_first_warning(number) {
                let name = match (METHODS.get(number), number.checked_sub(METHOD_COUNT)) {
                    (Some(method), _) => method.full_name(),
                    (None, number) => {
                        let name = number.and_then(|number| CONSTRUCTORS.get(number));
                        format!("Intl.{}", name.copied().unwrap_or_default())
                    }
                };
                let asked = asked.first().map(String::as_str).unwrap_or_default();
                let text =
                    format!("{name} takes en-US for {asked}: this sandbox has no other locale");
                self.log_text(LogLevel::Warn, &text);
            }
            next
        });
        known.unwrap_or(Locale::UnitedStates)
    }

    fn is_first_warning(&self, number: usize) -> bool {
        let mut warned = self.warned_locale_methods.get();
        let Some(place) = warned.get_mut(number) else { return false };
        if self.own_console.get() || std::mem::replace(place, true) {
            return false;
        }
        self.warned_locale_methods.set(warned);
        true
    }
}
