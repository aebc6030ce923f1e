//! `Intl.Segmenter`.
//!
//! In: locales, options, and a text. Out: objects that give its segments one after the other. They read the text piece by
//! piece, so that a loop over all segments costs as much as the text is long.

use std::ffi::c_int;

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, Thrown, bool as boolean, sys, undefined},
        locale::warnings,
        state::State,
        trampoline,
    },
    HIDDEN, Service,
    arguments::{Options, choose, locale_name, locales},
    results,
    slots::{self, Slot},
    type_error,
};
use crate::intl::{
    options::{Granularity, Matcher, Named},
    segment,
};

pub(super) static SERVICE: Service = Service {
    name: c"Segmenter",
    is_callable: false,
    make,
    methods: &[(c"resolvedOptions", 0, resolved), (c"segment", 1, segments)],
    bound: None,
};

/// Units of a text that are read at first; a segment that is longer is read again with more of them.
const PIECE: i64 = 128;

/// Segments between two questions whether the run must end.
const CHECKED: usize = 1 << 10;

/// The prototypes of a text's segments, and of an iterator over them.
pub(super) fn prototypes(cx: Cx, global: Raw, iterator: Raw, tag: Raw) -> Outcome<[Raw; 2]> {
    let segments = cx.object()?;
    let containing = cx.c_function(containing, c"containing", 1, 0)?;
    cx.define_str(segments.raw(), "containing", containing, HIDDEN)?;
    let iterate = cx.c_function(iterate, c"[Symbol.iterator]", 0, 0)?;
    cx.define(segments.raw(), cx.atom_of(iterator)?.id, iterate, HIDDEN)?;
    let class = cx.get_str(global, c"Iterator")?;
    let inherited = cx.get_str(class.raw(), c"prototype")?;
    let steps = cx.object()?;
    cx.set_prototype(steps.raw(), inherited.raw())?;
    let next = cx.c_function(next, c"next", 0, 0)?;
    cx.define_str(steps.raw(), "next", next, HIDDEN)?;
    let name = cx.string("Segmenter String Iterator")?;
    cx.define(steps.raw(), cx.atom_of(tag)?.id, name, sys::JS_PROP_CONFIGURABLE)?;
    Ok([segments.into_raw(), steps.into_raw()])
}

fn make(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = Options::of_object(state, cx, args, "Intl.Segmenter")?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    let granularity = choose!(options, "granularity", Granularity, Granularity::Grapheme);
    let is_plain = state.known_locale(&asked, warnings::SEGMENTER).is_plain();
    Ok(Slot::Segmenter { is_plain, granularity })
}

fn resolved(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::Segmenter { is_plain, granularity } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("granularity", granularity.name())?;
    Ok(fields.finish())
}

fn segments(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let Slot::Segmenter { granularity, .. } = *slot else { return Ok(cx.dup(undefined())) };
    let text = cx.to_string(args.first().copied().unwrap_or(undefined()))?;
    let [prototype, _] = state.realm().intrinsics.intl.segments;
    let object = slots::object(state, cx, prototype, Slot::Segments { granularity })?;
    slots::keep_bound(state, cx, object.raw(), &text);
    Ok(object)
}

unsafe extern "C-unwind" fn containing(
    ctx: *mut sys::JSContext,
    this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let Some(Slot::Segments { granularity }) = slots::slot(state, this) else {
            return Err(incompatible(state, "%SegmentsPrototype%.containing"));
        };
        let text = slots::bound(state, cx, this).ok_or(Thrown)?;
        let index =
            cx.to_number(trampoline::args(argc, argv).first().copied().unwrap_or(undefined()))?;
        let index = if index.is_nan() { 0.0 } else { index.trunc() };
        let length = cx.length(text.raw())?;
        #[expect(clippy::cast_precision_loss, reason = "a length below 2^31")]
        if index < 0.0 || index >= length as f64 {
            return Ok(cx.dup(undefined()));
        }
        #[expect(clippy::cast_possible_truncation, reason = "below the length")]
        let index = index as i64;
        let mut at = 0;
        for count in 0_usize.. {
            if count % CHECKED == 0 && state.must_end() {
                break;
            }
            let found = segment_at(state, cx, &text, (at, length), granularity)?;
            if found.end > index {
                return found.object(cx, &text, granularity);
            }
            at = found.end;
        }
        Err(Thrown)
    })
}

unsafe extern "C-unwind" fn iterate(
    ctx: *mut sys::JSContext,
    this: Raw,
    _argc: c_int,
    _argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let Some(Slot::Segments { granularity }) = slots::slot(state, this) else {
            return Err(incompatible(state, "%SegmentsPrototype%[Symbol.iterator]"));
        };
        let text = slots::bound(state, cx, this).ok_or(Thrown)?;
        let [_, prototype] = state.realm().intrinsics.intl.segments;
        let slot = Slot::SegmentIterator { granularity, at: 0 };
        let object = slots::object(state, cx, prototype, slot)?;
        slots::keep_bound(state, cx, object.raw(), &text);
        Ok(object)
    })
}

unsafe extern "C-unwind" fn next(
    ctx: *mut sys::JSContext,
    this: Raw,
    _argc: c_int,
    _argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let Some(Slot::SegmentIterator { granularity, at }) = slots::slot(state, this) else {
            return Err(incompatible(state, "%SegmentIterator.prototype%.next"));
        };
        let text = slots::bound(state, cx, this).ok_or(Thrown)?;
        let length = cx.length(text.raw())?;
        let mut step = results::Fields::new(cx)?;
        if at >= length {
            step.value("value", cx.dup(undefined()))?;
            step.flag("done", true)?;
            return Ok(step.finish());
        }
        let found = segment_at(state, cx, &text, (at, length), granularity)?;
        slots::set_slot(state, this, Slot::SegmentIterator { granularity, at: found.end });
        step.value("value", found.object(cx, &text, granularity)?)?;
        step.flag("done", false)?;
        Ok(step.finish())
    })
}

fn incompatible(state: &State, method: &str) -> Thrown {
    type_error(state, &format!("Method {method} called on incompatible receiver"))
}

/// A segment of a text.
struct Segment {
    text: Local,
    start: i64,
    end: i64,
    is_word: bool,
}

impl Segment {
    fn object(self, cx: Cx, input: &Local, granularity: Granularity) -> Outcome<Local> {
        #[expect(clippy::cast_precision_loss, reason = "an index below 2^31")]
        let start = self.start as f64;
        let mut fields = results::Fields::new(cx)?;
        fields.value("segment", self.text)?;
        fields.number("index", start)?;
        fields.value("input", input.clone())?;
        if granularity == Granularity::Word {
            fields.value("isWordLike", cx.dup(boolean(self.is_word)))?;
        }
        Ok(fields.finish())
    }
}

/// The segment that begins at a place, which must be a boundary before the end of the text.
fn segment_at(
    state: &State,
    cx: Cx,
    text: &Local,
    (start, length): (i64, i64),
    granularity: Granularity,
) -> Outcome<Segment> {
    let slice = |end: i64| -> Outcome<Local> {
        #[expect(clippy::cast_precision_loss, reason = "indices below 2^31")]
        let [from, to] = [start, end].map(|at| cx.number(at as f64));
        let string_slice = state.realm().intrinsics.string_slice;
        cx.call(string_slice, text.raw(), &[from.raw(), to.raw()])
    };
    let mut piece = PIECE;
    loop {
        let end = length.min(start + piece);
        let part = slice(end)?;
        let (found, is_word) = cx.with_units(part.raw(), |units| {
            let (found, is_word) = segment::first(units, granularity);
            let is_certain = end == length || found + segment::LOOKAHEAD < units.len();
            (is_certain.then_some(found), is_word)
        })?;
        if let Some(found) = found {
            let end = start + i64::try_from(found.max(1)).unwrap_or(1);
            return Ok(Segment { text: slice(end)?, start, end, is_word });
        }
        if state.must_end() {
            return Err(Thrown);
        }
        piece = piece.saturating_mul(4);
    }
}
