//! `Intl`, and the methods of numbers, dates and texts that depend on a locale.
//!
//! In: calls of the sandbox. Out: texts as ECMA-402 and V8 have them for en-US, the one locale here; a call that asks
//! for another one gets that, and a log of level `warn` (`locale.rs`). All is answered by functions of ours without state:
//! an object of `Intl` keeps its options in a block of the engine's memory. `slots` has these blocks, `arguments` reads
//! locales and options, `results` gives texts back, and each other file has one constructor of `Intl`; the texts are made
//! by the crate's room `intl`, which knows no engine.

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

pub(super) mod arguments;
pub(super) mod collator;
pub(super) mod date;
pub(super) mod intrinsics;
pub(super) mod number;
mod results;
mod segmenter;
mod slots;
mod words;

use std::ffi::{CStr, c_int};

pub(super) use self::slots::register_class;
use self::{
    intrinsics::{COUNT, Intrinsics},
    slots::Slot,
};
use super::{
    engine::{Cx, Local, Outcome, Raw, Thrown, is_object, sys, tag_of, undefined},
    state::State,
    trampoline,
};
use crate::{
    intl::options::{Matcher, Named},
    value::ErrorClass,
};

/// A constructor of `Intl`.
struct Service {
    name: &'static CStr,
    /// Whether a call without `new` makes an object too.
    is_callable: bool,
    make: fn(&State, Cx, &[Raw]) -> Outcome<Slot>,
    methods: &'static [Method],
    /// A getter whose function belongs to one object.
    bound: Option<(&'static CStr, c_int, Call)>,
}

/// A method of a service's objects: its name, its length, and its body.
type Method = (&'static CStr, c_int, Call);

/// The body of a method: the options of `this`, and the arguments.
type Call = fn(&State, Cx, &Slot, &[Raw]) -> Outcome<Local>;

/// The services, in the order of their numbers.
static SERVICES: [&Service; COUNT] = [
    &number::SERVICE,
    &date::SERVICE,
    &words::PLURAL_RULES,
    &words::RELATIVE_TIME_FORMAT,
    &words::LIST_FORMAT,
    &collator::SERVICE,
    &segmenter::SERVICE,
];

/// Methods of one service are told apart by a number below this.
const METHODS_OF_ONE: c_int = 16;

const HIDDEN: u32 = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;

/// Puts `Intl` on the global object.
pub(super) fn install(cx: Cx, global: Raw, class: u32) -> Outcome<Intrinsics> {
    let symbol = cx.get_str(global, c"Symbol")?;
    let tag = cx.get_str(symbol.raw(), c"toStringTag")?;
    let iterator = cx.get_str(symbol.raw(), c"iterator")?;
    let segments = segmenter::prototypes(cx, global, iterator.raw(), tag.raw())?;
    let tag = cx.atom_of(tag.raw())?;
    let intl = cx.object()?;
    let named = cx.string("Intl")?;
    cx.define(intl.raw(), tag.id, named, sys::JS_PROP_CONFIGURABLE)?;
    let locales = cx.c_function(canonical_locales, c"getCanonicalLocales", 1, 0)?;
    cx.define_str(intl.raw(), "getCanonicalLocales", locales, HIDDEN)?;
    let mut prototypes = [undefined(); COUNT];
    for ((number, service), place) in (0..).zip(SERVICES).zip(&mut prototypes) {
        let constructor = cx.c_constructor(construct, service.name, 0, number)?;
        let prototype = cx.object()?;
        cx.set_constructor(constructor.raw(), prototype.raw())?;
        let name = text_of(service.name)?;
        let tagged = cx.string(&format!("Intl.{name}"))?;
        cx.define(prototype.raw(), tag.id, tagged, sys::JS_PROP_CONFIGURABLE)?;
        for (at, (name, length, _)) in (0..).zip(service.methods) {
            let magic = number * METHODS_OF_ONE + at;
            let method = cx.c_function(method, name, *length, magic)?;
            cx.define_str(prototype.raw(), text_of(name)?, method, HIDDEN)?;
        }
        if let Some((name, ..)) = service.bound {
            let getter = format!("get {}", text_of(name)?);
            let getter = super::engine::c_string(&getter);
            let getter = cx.c_function(bound_getter, &getter, 0, number)?;
            cx.define_getter(prototype.raw(), text_of(name)?, &getter)?;
        }
        let supported = cx.c_function(supported_locales, c"supportedLocalesOf", 1, number)?;
        cx.define_str(constructor.raw(), "supportedLocalesOf", supported, HIDDEN)?;
        cx.define_str(intl.raw(), name, constructor, HIDDEN)?;
        *place = prototype.into_raw();
    }
    cx.define_str(global, "Intl", intl, HIDDEN)?;
    Ok(Intrinsics { class, prototypes, iterator: iterator.into_raw(), segments })
}

fn text_of(name: &'static CStr) -> Outcome<&'static str> {
    name.to_str().map_err(|_| Thrown)
}

unsafe extern "C-unwind" fn construct(
    ctx: *mut sys::JSContext,
    new_target: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let service = SERVICES.get(number).ok_or(Thrown)?;
        let own = state.realm().intrinsics.intl.prototypes[number];
        let prototype = if tag_of(new_target) != sys::JS_TAG_UNDEFINED {
            // Read first, as the language says; it runs code only where that is another constructor.
            Some(cx.get_str(new_target, c"prototype")?)
        } else if service.is_callable {
            None
        } else {
            let message = format!("Constructor Intl.{} requires 'new'", text_of(service.name)?);
            return Err(type_error(state, &message));
        };
        let slot = (service.make)(state, cx, trampoline::args(argc, argv))?;
        let prototype = prototype.filter(|prototype| is_object(prototype.raw()));
        slots::object(state, cx, prototype.map_or(own, |prototype| prototype.raw()), slot)
    })
}

unsafe extern "C-unwind" fn method(
    ctx: *mut sys::JSContext,
    this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let number = usize::try_from(magic / METHODS_OF_ONE).map_err(|_| Thrown)?;
        let at = usize::try_from(magic % METHODS_OF_ONE).map_err(|_| Thrown)?;
        let service = SERVICES.get(number).ok_or(Thrown)?;
        let (name, _, body) = service.methods.get(at).ok_or(Thrown)?;
        let slot = own_slot(state, number, this, name)?;
        body(state, Cx(ctx), &slot, trampoline::args(argc, argv))
    })
}

unsafe extern "C-unwind" fn bound_getter(
    ctx: *mut sys::JSContext,
    this: Raw,
    _argc: c_int,
    _argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let (name, length, _) = SERVICES.get(number).and_then(|it| it.bound).ok_or(Thrown)?;
        own_slot(state, number, this, name)?;
        if let Some(bound) = slots::bound(state, cx, this) {
            return Ok(bound);
        }
        let function = cx.bound_function(call_bound, length, magic, this)?;
        slots::keep_bound(state, cx, this, &function);
        Ok(function)
    })
}

unsafe extern "C-unwind" fn call_bound(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
    data: *mut Raw,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let (name, _, body) = SERVICES.get(number).and_then(|it| it.bound).ok_or(Thrown)?;
        // SAFETY: made with one object as its data.
        let slot = own_slot(state, number, unsafe { *data }, name)?;
        body(state, Cx(ctx), &slot, trampoline::args(argc, argv))
    })
}

unsafe extern "C-unwind" fn supported_locales(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let number = usize::try_from(magic).map_err(|_| Thrown)?;
        let service = SERVICES.get(number).ok_or(Thrown)?;
        let args = trampoline::args(argc, argv);
        let asked = arguments::locales(state, cx, args)?;
        let owner = format!("Intl.{}", text_of(service.name)?);
        let options = arguments::Options::coerced(state, cx, args, &owner)?;
        options.one_of("localeMatcher", <Matcher as Named>::NAMES)?;
        let known = asked.into_iter().filter(|tag| arguments::Locale::of(tag).is_some());
        results::texts(cx, known)
    })
}

unsafe extern "C-unwind" fn canonical_locales(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        results::texts(cx, arguments::locales(state, cx, trampoline::args(argc, argv))?.into_iter())
    })
}

/// The options of an object of that service.
fn own_slot(state: &State, number: usize, this: Raw, method: &CStr) -> Outcome<Slot> {
    let slot = slots::slot(state, this);
    slot.filter(|slot| slot.service() == number).ok_or_else(|| {
        let name = SERVICES.get(number).map_or("", |it| it.name.to_str().unwrap_or(""));
        let method = method.to_str().unwrap_or("");
        let message =
            format!("Method Intl.{name}.prototype.{method} called on incompatible receiver");
        type_error(state, &message)
    })
}

pub(super) fn type_error(state: &State, message: &str) -> Thrown {
    state.throw_error(ErrorClass::TypeError, "TypeError", message)
}

pub(super) fn range_error(state: &State, message: &str) -> Thrown {
    state.throw_error(ErrorClass::RangeError, "RangeError", message)
}
