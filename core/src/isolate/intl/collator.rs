//! `Intl.Collator`, and `localeCompare`.
//!
//! In: locales, options, and two texts. Out: their order, and the resolved options.

use std::cmp::Ordering;

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, Seen, Thrown, int, sys, tag_of, undefined},
        locale::warnings,
        state::State,
    },
    Service,
    arguments::{Options, choose, locale_name, locales},
    results,
    slots::Slot,
};
use crate::intl::{
    collate::{CollatorOptions, Sorted},
    options::{CaseFirst, Matcher, Named, Sensitivity, Usage},
};

pub(super) static SERVICE: Service = Service {
    name: c"Collator",
    is_callable: true,
    make,
    methods: &[(c"resolvedOptions", 0, resolved)],
    bound: Some((c"compare", 2, compare)),
};

fn make(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = read(state, cx, args)?;
    let is_plain = state.known_locale(&asked, warnings::COLLATOR).is_plain();
    Ok(Slot::Collator { is_plain, options })
}

fn read(state: &State, cx: Cx, args: &[Raw]) -> Outcome<CollatorOptions> {
    let options = Options::coerced(state, cx, args, "Intl.Collator")?;
    let usage = choose!(options, "usage", Usage, Usage::Sort);
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    options.text("collation")?;
    let is_numeric = options.flag("numeric")?.unwrap_or(false);
    let case_first = choose!(options, "caseFirst", CaseFirst, CaseFirst::False);
    let sensitivity = choose!(options, "sensitivity", Sensitivity, Sensitivity::Variant);
    let ignores_punctuation = options.flag("ignorePunctuation")?.unwrap_or(false);
    Ok(CollatorOptions { usage, sensitivity, ignores_punctuation, is_numeric, case_first })
}

/// The order of two texts by a call of `localeCompare`. In: both texts, and the arguments after them.
pub(in crate::isolate) fn localized(
    state: &State,
    cx: Cx,
    texts: [Raw; 2],
    args: &[Raw],
    method: usize,
) -> Outcome<Local> {
    let is_plain = args.iter().all(|arg| tag_of(*arg) == sys::JS_TAG_UNDEFINED);
    let options = if is_plain {
        CollatorOptions::PLAIN
    } else {
        let asked = locales(state, cx, args)?;
        let options = read(state, cx, args)?;
        state.known_locale(&asked, method);
        options
    };
    order(state, cx, options, texts)
}

fn compare(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let Slot::Collator { options, .. } = slot else { return Ok(cx.dup(undefined())) };
    let text = |index: usize| cx.to_string(args.get(index).copied().unwrap_or(undefined()));
    let (one, other) = (text(0)?, text(1)?);
    order(state, cx, *options, [one.raw(), other.raw()])
}

fn order(
    state: &State,
    cx: Cx,
    options: CollatorOptions,
    [one, other]: [Raw; 2],
) -> Outcome<Local> {
    let stops = || state.must_end();
    let order = cx.with_text(one, |one| {
        cx.with_text(other, |other| options.compare(sorted(one), sorted(other), stops))
    })??;
    let order = order.ok_or(Thrown)?;
    Ok(cx.dup(int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })))
}

fn sorted(seen: Seen<'_>) -> Sorted<'_> {
    match seen {
        Seen::Utf8(text) => Sorted::Utf8(text),
        Seen::Utf16(units) => Sorted::Utf16(units),
    }
}

fn resolved(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::Collator { is_plain, options } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("usage", options.usage.name())?;
    fields.text("sensitivity", options.sensitivity.name())?;
    fields.flag("ignorePunctuation", options.ignores_punctuation)?;
    fields.text("collation", "default")?;
    fields.flag("numeric", options.is_numeric)?;
    fields.text("caseFirst", options.case_first.name())?;
    Ok(fields.finish())
}
