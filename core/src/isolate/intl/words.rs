//! `Intl.PluralRules`, `Intl.ListFormat` and `Intl.RelativeTimeFormat`.
//!
//! In: locales, options, and numbers or texts. Out: names of kinds, texts, parts, and the resolved options.

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, is_object, is_string, sys, tag_of, undefined},
        locale::warnings,
        state::State,
    },
    Service,
    arguments::{Options, choose, locale_name, locales},
    number::{check_numbering, put_digits, read_digits},
    range_error, results,
    slots::Slot,
    type_error,
};
use crate::intl::{
    Part,
    number::Number,
    options::{ListKind, Matcher, Named, Notation, Numeric, PluralKind, RelativeUnit, TextWidth},
    words,
};

pub(super) static PLURAL_RULES: Service = Service {
    name: c"PluralRules",
    is_callable: false,
    make: make_plural,
    methods: &[(c"resolvedOptions", 0, resolved_plural), (c"select", 1, select)],
    bound: None,
};

pub(super) static LIST_FORMAT: Service = Service {
    name: c"ListFormat",
    is_callable: false,
    make: make_list,
    methods: &[
        (c"resolvedOptions", 0, resolved_list),
        (c"format", 1, list_text),
        (c"formatToParts", 1, list_parts),
    ],
    bound: None,
};

pub(super) static RELATIVE_TIME_FORMAT: Service = Service {
    name: c"RelativeTimeFormat",
    is_callable: false,
    make: make_relative,
    methods: &[
        (c"resolvedOptions", 0, resolved_relative),
        (c"format", 2, relative_text),
        (c"formatToParts", 2, relative_parts),
    ],
    bound: None,
};

fn make_plural(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = Options::coerced(state, cx, args, "Intl.PluralRules")?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    let kind = choose!(options, "type", PluralKind, PluralKind::Cardinal);
    let digits = read_digits(state, &options, (0, 3), Notation::Standard)?;
    state.known_locale(&asked, warnings::PLURAL_RULES);
    // Plurals are the same in all of English, as V8 tells.
    Ok(Slot::Plural { is_plain: true, kind, digits })
}

fn select(_: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let Slot::Plural { kind, digits, .. } = slot else { return Ok(cx.dup(undefined())) };
    let number = cx.to_number(args.first().copied().unwrap_or(undefined()))?;
    let is_ordinal = *kind == PluralKind::Ordinal;
    cx.string(words::plural(Number::of_double(number), digits, is_ordinal))
}

fn resolved_plural(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::Plural { is_plain, kind, digits } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("type", kind.name())?;
    put_digits(&mut fields, digits)?;
    let names = words::plural_names(*kind == PluralKind::Ordinal);
    let names = results::texts(cx, names.iter().map(|name| (*name).to_owned()))?;
    fields.value("pluralCategories", names)?;
    Ok(fields.finish())
}

fn make_list(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = Options::of_object(state, cx, args, "Intl.ListFormat")?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    let kind = choose!(options, "type", ListKind, ListKind::Conjunction);
    let width = choose!(options, "style", TextWidth, TextWidth::Long);
    let is_plain = state.known_locale(&asked, warnings::LIST_FORMAT).is_plain();
    Ok(Slot::List { is_plain, kind, width })
}

fn list_text(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    with_list(state, cx, slot, args, results::text)
}

fn list_parts(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    with_list(state, cx, slot, args, results::parts)
}

fn with_list(
    state: &State,
    cx: Cx,
    slot: &Slot,
    args: &[Raw],
    give: fn(Cx, &[Part]) -> Outcome<Local>,
) -> Outcome<Local> {
    let Slot::List { kind, width, .. } = slot else { return Ok(cx.dup(undefined())) };
    let mut items = Items { state, texts: Vec::new(), charged: 0 };
    let list = args.first().copied().unwrap_or(undefined());
    if tag_of(list) != sys::JS_TAG_UNDEFINED {
        items.collect(cx, list)?;
    }
    give(cx, &words::list(std::mem::take(&mut items.texts), *kind, *width))
}

/// The texts that an iterable gives. They stay charged until this is dropped.
struct Items<'s> {
    state: &'s State,
    texts: Vec<String>,
    charged: usize,
}

impl Drop for Items<'_> {
    fn drop(&mut self) {
        self.state.discharge(self.charged);
    }
}

impl Items<'_> {
    fn collect(&mut self, cx: Cx, list: Raw) -> Outcome<()> {
        /// A text as a part, and in the whole text.
        const COPIES: usize = 3;
        const ITEM_BYTES: usize = 128;
        let state = self.state;
        let key = cx.atom_of(state.realm().intrinsics.intl.iterator)?;
        let method = match tag_of(list) {
            sys::JS_TAG_NULL => cx.dup(undefined()),
            _ => cx.get(list, key.id)?,
        };
        if !cx.is_function(method.raw()) {
            return Err(type_error(state, "the list is not iterable"));
        }
        let iterator = cx.call(method.raw(), list, &[])?;
        if !is_object(iterator.raw()) {
            return Err(type_error(state, "the iterator of the list is not an object"));
        }
        let next = cx.get_str(iterator.raw(), c"next")?;
        loop {
            let step = cx.call(next.raw(), iterator.raw(), &[])?;
            if !is_object(step.raw()) {
                return Err(type_error(state, "a result of the list's iterator is not an object"));
            }
            let done = cx.get_str(step.raw(), c"done")?;
            if cx.truthy(done.raw())? {
                return Ok(());
            }
            let value = cx.get_str(step.raw(), c"value")?;
            if !is_string(value.raw()) {
                return Err(self.refuse(cx, &iterator, &value));
            }
            let length = usize::try_from(cx.length(value.raw())?).unwrap_or(usize::MAX);
            let bytes = length.saturating_mul(COPIES).saturating_add(ITEM_BYTES);
            state.charge(bytes);
            self.charged += bytes;
            self.texts.push(cx.text(value.raw())?.into_lossy());
        }
    }

    /// Closes an iterator that gave something other than a text.
    fn refuse(&self, cx: Cx, iterator: &Local, value: &Local) -> super::Thrown {
        let close = || -> Outcome<()> {
            let close = cx.get_str(iterator.raw(), c"return")?;
            if cx.is_function(close.raw()) {
                cx.call(close.raw(), iterator.raw(), &[])?;
            }
            Ok(())
        };
        if close().is_err() {
            // The error of the list comes first.
            drop(cx.exception());
        }
        let shown = match tag_of(value.raw()) {
            sys::JS_TAG_SYMBOL => None,
            _ if is_object(value.raw()) => None,
            _ => cx.to_string(value.raw()).and_then(|text| cx.text(text.raw())).ok(),
        };
        let shown =
            shown.map_or_else(|| "a value".to_owned(), crate::isolate::engine::Text::into_lossy);
        type_error(self.state, &format!("Iterable yielded {shown} which is not a string"))
    }
}

fn resolved_list(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::List { is_plain, kind, width } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("type", kind.name())?;
    fields.text("style", width.name())?;
    Ok(fields.finish())
}

fn make_relative(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = Options::coerced(state, cx, args, "Intl.RelativeTimeFormat")?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    check_numbering(state, &options)?;
    let width = choose!(options, "style", TextWidth, TextWidth::Long);
    let numeric = choose!(options, "numeric", Numeric, Numeric::Always);
    let is_plain = state.known_locale(&asked, warnings::RELATIVE_TIME_FORMAT).is_plain();
    Ok(Slot::Relative { is_plain, width, numeric })
}

fn relative(
    state: &State,
    cx: Cx,
    slot: &Slot,
    args: &[Raw],
    method: &str,
) -> Outcome<(Vec<Part>, RelativeUnit)> {
    let Slot::Relative { width, numeric, .. } = slot else {
        return Ok((Vec::new(), RelativeUnit::Second));
    };
    let argument = |index: usize| args.get(index).copied().unwrap_or(undefined());
    let owner = format!("Intl.RelativeTimeFormat.prototype.{method}()");
    let value = cx.to_number(argument(0))?;
    let unit = cx.to_string(argument(1))?;
    let name = cx.with_bytes(unit.raw(), |name| {
        String::from_utf8_lossy(name.get(..1_000).unwrap_or(name)).into_owned()
    })?;
    let unit = words::relative_unit(&name).ok_or_else(|| {
        range_error(state, &format!("Invalid unit argument for {owner} '{name}'"))
    })?;
    if !value.is_finite() {
        return Err(range_error(state, &format!("Value need to be finite number for {owner}")));
    }
    Ok((words::relative(value, unit, *width, *numeric == Numeric::Auto), unit))
}

fn relative_text(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    results::text(cx, &relative(state, cx, slot, args, "format")?.0)
}

fn relative_parts(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let (parts, unit) = relative(state, cx, slot, args, "formatToParts")?;
    results::parts_of_unit(cx, &parts, unit.name())
}

fn resolved_relative(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::Relative { is_plain, width, numeric } = slot else {
        return Ok(cx.dup(undefined()));
    };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("style", width.name())?;
    fields.text("numeric", numeric.name())?;
    fields.text("numberingSystem", "latn")?;
    Ok(fields.finish())
}
