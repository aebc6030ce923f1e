//! Texts that are dates: `Date.parse`, and the constructor when it is given a text.
//!
//! In: a text. Out: its time as V8 reads it, or NaN. The engine has a parser of its own, which takes a text that begins
//! with a blank for another day, and days that do not exist for real ones (`docs/upstream/quickjs-date-parse.md`). All
//! other calls of the constructor are the engine's own.

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

mod parse;
mod tokens;

use std::ffi::c_int;

use self::parse::Parts;
use super::{
    engine::{Cx, Outcome, Raw, is_date, is_string, sys, tag_of, undefined},
    primitive::{Hint, primitive},
    realm::originals::Dates,
    state::State,
    trampoline,
};

/// Years of one turn of the calendar, and its milliseconds.
const TURN_YEARS: i32 = 400;
const TURN_MS: f64 = 146_097.0 * 86_400_000.0;

/// The largest time of a date.
const LARGEST_MS: f64 = 8.64e15;

/// Replaces the constructor, and `Date.parse`.
pub(super) fn install(cx: Cx, global: Raw) -> Outcome<Dates> {
    let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
    let original = cx.get_str(global, c"Date")?;
    let prototype = cx.get_str(original.raw(), c"prototype")?;
    let constructor = cx.c_constructor(construct, c"Date", 7, 0)?;
    cx.set_constructor(constructor.raw(), prototype.raw())?;
    let parse = cx.c_function(parse_text, c"parse", 1, 0)?;
    cx.define_str(constructor.raw(), "now", cx.get_str(original.raw(), c"now")?, hidden)?;
    cx.define_str(constructor.raw(), "parse", parse, hidden)?;
    cx.define_str(constructor.raw(), "UTC", cx.get_str(original.raw(), c"UTC")?, hidden)?;
    cx.define_str(global, "Date", constructor, hidden)?;
    let symbol = cx.get_str(global, c"Symbol")?;
    let to_primitive = cx.get_str(symbol.raw(), c"toPrimitive")?;
    Ok(Dates { constructor: original.into_raw(), to_primitive: to_primitive.into_raw() })
}

unsafe extern "C-unwind" fn construct(
    ctx: *mut sys::JSContext,
    new_target: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let original = state.realm().intrinsics.dates.constructor;
        if tag_of(new_target) == sys::JS_TAG_UNDEFINED {
            return cx.call(original, undefined(), &[]);
        }
        let args = trampoline::args(argc, argv);
        let [value] = args else { return cx.construct_for(original, new_target, args) };
        if is_date(*value) {
            return cx.construct_for(original, new_target, args);
        }
        let primitive = primitive(state, cx, *value, Hint::Default)?;
        if !is_string(primitive.raw()) {
            return cx.construct_for(original, new_target, &[primitive.raw()]);
        }
        let time = cx.number(time_of(state, cx, primitive.raw())?);
        cx.construct_for(original, new_target, &[time.raw()])
    })
}

unsafe extern "C-unwind" fn parse_text(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let text = trampoline::args(argc, argv).first().copied().unwrap_or(undefined());
        let text = cx.to_string(text)?;
        Ok(cx.number(time_of(state, cx, text.raw())?))
    })
}

/// The time of a text in milliseconds, or NaN.
fn time_of(state: &State, cx: Cx, text: Raw) -> Outcome<f64> {
    let Some(parts) = cx.with_bytes(text, parse::parse)? else { return Ok(f64::NAN) };
    let Some(offset_seconds) = parts.offset_seconds else { return local_time(state, cx, &parts) };
    #[expect(clippy::cast_precision_loss, reason = "less than 2^40")]
    let time = utc_ms(&parts) - offset_seconds as f64 * 1000.0;
    Ok(if time.abs() <= LARGEST_MS { time } else { f64::NAN })
}

/// The time of a date and a time in UTC.
#[expect(clippy::cast_precision_loss, reason = "days of at most 2^30 years")]
fn utc_ms(parts: &Parts) -> f64 {
    let [hour, minute, second, millisecond] = parts.time.map(f64::from);
    let days =
        days_before(i64::from(parts.year), i64::from(parts.month)) + i64::from(parts.day - 1);
    days as f64 * 86_400_000.0
        + hour * 3_600_000.0
        + minute * 60_000.0
        + second * 1000.0
        + millisecond
}

/// Days from 1970 to the first day of a month, which counts from 1.
fn days_before(year: i64, month: i64) -> i64 {
    // Years that begin in March have the day that not all have at their end.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * month + 2) / 5;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
        - 719_468
}

/// The time of a date and a time of the local zone, by the engine's own constructor.
fn local_time(state: &State, cx: Cx, parts: &Parts) -> Outcome<f64> {
    let intrinsics = &state.realm().intrinsics;
    // The constructor takes a year below 100 for one of the 20th century.
    let turns = i32::from((0..100).contains(&parts.year));
    let [hour, minute, second, millisecond] = parts.time;
    let year = parts.year + turns * TURN_YEARS;
    let parts = [year, parts.month - 1, parts.day, hour, minute, second, millisecond];
    let parts = parts.map(|part| cx.number(f64::from(part)).raw());
    let date = cx.construct(intrinsics.dates.constructor, &parts)?;
    let time = cx.call(intrinsics.date_get_time, date.raw(), &[])?;
    let time = cx.to_number(time.raw())?;
    Ok(time - f64::from(turns) * TURN_MS)
}
