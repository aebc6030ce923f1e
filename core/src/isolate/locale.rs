//! Locale methods, which say that they depend on no locale.
//!
//! In: calls of `toLocaleString`, `localeCompare` and the like. Out: the engine's own result; and if the call asked for
//! a locale or gave options, a log of level `warn`, one for each method and run. A caller with a console of its own
//! gets no such log. No code of the sandbox runs to find out what a call asks for.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::{CStr, c_int};

use super::{
    State,
    crossing::bridge,
    engine::{Cx, Local, Outcome, Raw, Thrown, is_array, is_string, sys, tag_of},
};

use crate::data::outcome::LogLevel;

/// A locale method; its place in [`METHODS`] is the number that the engine calls it by.
struct Method {
    class: &'static CStr,
    name: &'static CStr,
    /// The position of the locale among the arguments, which is also the number of parameters that have a meaning here.
    locale: usize,
    /// Whether options may follow the locale.
    has_options: bool,
}

const METHODS: [Method; METHOD_COUNT] = [
    Method::formatting(c"Number", c"toLocaleString"),
    Method::formatting(c"BigInt", c"toLocaleString"),
    Method::formatting(c"Array", c"toLocaleString"),
    Method::formatting(TYPED_ARRAY, c"toLocaleString"),
    Method::formatting(c"Date", c"toLocaleString"),
    Method::formatting(c"Date", c"toLocaleDateString"),
    Method::formatting(c"Date", c"toLocaleTimeString"),
    Method { class: c"String", name: c"localeCompare", locale: 1, has_options: true },
    Method { class: c"String", name: c"toLocaleLowerCase", locale: 0, has_options: false },
    Method { class: c"String", name: c"toLocaleUpperCase", locale: 0, has_options: false },
];

pub(super) const METHOD_COUNT: usize = 10;

/// The class that all typed arrays inherit from. No global name leads to it.
const TYPED_ARRAY: &CStr = c"TypedArray";

/// The language tag of no language in particular.
const ROOT: &str = "und";

impl Method {
    const fn formatting(class: &'static CStr, name: &'static CStr) -> Self {
        Self { class, name, locale: 0, has_options: true }
    }

    fn prototype(&self, cx: Cx, global: Raw) -> Outcome<Local> {
        let class = if self.class == TYPED_ARRAY {
            let class = cx.get_str(global, c"Uint8Array")?;
            cx.prototype(class.raw())?
        } else {
            cx.get_str(global, self.class)?
        };
        cx.get_str(class.raw(), c"prototype")
    }

    /// Whether a call asks for a locale, or gives options.
    fn asks_for_locale(&self, cx: Cx, args: &[Raw]) -> Outcome<bool> {
        let given = |at: usize| args.get(at).copied().filter(|arg| !is_undefined(*arg));
        if self.has_options && given(self.locale + 1).is_some() {
            return Ok(true);
        }
        given(self.locale).map_or(Ok(false), |locale| Ok(!is_root(cx, locale)?))
    }
}

/// Replaces the engine's locale methods by ones that log.
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
    bridge::enter(ctx, |state| {
        let cx = Cx(ctx);
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let method = METHODS.get(number).ok_or(Thrown)?;
        let args = bridge::args(argc, argv);
        let meant = args.get(..method.locale).unwrap_or(args);
        let result = cx.call(state.realm().intrinsics.locale_methods[number], this, meant)?;
        if method.asks_for_locale(cx, args)? {
            state.warn_of_locale(number, method);
        }
        Ok(result)
    })
}

fn is_undefined(value: Raw) -> bool {
    tag_of(value) == sys::JS_TAG_UNDEFINED
}

/// Whether an argument asks for no locale: the root, or an empty list.
fn is_root(cx: Cx, locale: Raw) -> Outcome<bool> {
    if is_array(locale) {
        return Ok(cx.length(locale)? == 0);
    }
    // Longer texts are not read.
    if !is_string(locale) || usize::try_from(cx.length(locale)?) != Ok(ROOT.len()) {
        return Ok(false);
    }
    cx.with_bytes(locale, |text| text.eq_ignore_ascii_case(ROOT.as_bytes()))
}

impl State {
    /// Logs, once for each method, that it ignores its locale.
    fn warn_of_locale(&self, number: usize, method: &Method) {
        let mut warned = self.warned_locale_methods.get();
        if self.own_console.get() || std::mem::replace(&mut warned[number], true) {
            return;
        }
        self.warned_locale_methods.set(warned);
        let Method { class, name, has_options, .. } = method;
        let (class, name) = (class.to_string_lossy(), name.to_string_lossy());
        let ignored = if *has_options { "its locale and options" } else { "its locale" };
        self.log_text(
            LogLevel::Warn,
            &format!("{class}.prototype.{name} ignores {ignored}: this sandbox has no Intl"),
        );
    }
}
