//! `Intl.DateTimeFormat`, and the locale methods of dates.
//!
//! In: locales, options, and times. Out: texts, parts, and the resolved options.

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, is_date, sys, tag_of, undefined},
        locale::warnings,
        state::State,
    },
    Service,
    arguments::{Options, choose, locale_name, locales},
    number::check_numbering,
    range_error, results,
    slots::Slot,
    type_error,
};
use crate::intl::{
    Part,
    date::{DateOptions, MonthWidth},
    options::{Cycle, Length, Matcher, Named, NumberWidth, TextWidth, ZoneName},
    zone::Zone,
};

pub(super) static SERVICE: Service = Service {
    name: c"DateTimeFormat",
    is_callable: true,
    make,
    methods: &[(c"resolvedOptions", 0, resolved), (c"formatToParts", 1, to_parts)],
    bound: Some((c"format", 1, format)),
};

const OWNER: &str = "Intl.DateTimeFormat";

/// The largest time of a date.
const LARGEST_MS: f64 = 8.64e15;

/// The fields that a call must have, and those that it gets if it has none of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Any; else those of a date.
    AnyOrDate,
    /// Any; else those of a date and a time.
    AnyOrAll,
    Date,
    Time,
}

/// Reads an option that is a width, or `undefined`.
macro_rules! width {
    ($options:expr, $name:literal, $kind:ident) => {
        $options.one_of($name, $kind::NAMES)?.as_deref().and_then($kind::of)
    };
}

fn make(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = read(state, cx, args, Needs::AnyOrDate)?;
    let is_plain = state.known_locale(&asked, warnings::DATE_TIME_FORMAT).is_plain();
    Ok(Slot::Date { is_plain, options })
}

/// The text of a date by a call of one of its locale methods: `toLocaleString`, `toLocaleDateString` and
/// `toLocaleTimeString`, in this order. In: the number of the method's warning, and its place in that order.
pub(in crate::isolate) fn localized(
    state: &State,
    cx: Cx,
    date: Raw,
    args: &[Raw],
    (method, order): (usize, usize),
) -> Outcome<Local> {
    let time = cx.call(state.realm().intrinsics.date_get_time, date, &[])?;
    let time = cx.to_number(time.raw())?;
    if time.is_nan() {
        return cx.string("Invalid Date");
    }
    let asked = locales(state, cx, args)?;
    let needs = [Needs::AnyOrAll, Needs::Date, Needs::Time];
    let needs = needs.get(order).copied().unwrap_or(Needs::AnyOrAll);
    let options = read(state, cx, args, needs)?;
    state.known_locale(&asked, method);
    results::date_text(cx, &options.parts(&options.zone.at(time)))
}

fn read(state: &State, cx: Cx, args: &[Raw], needs: Needs) -> Outcome<DateOptions> {
    if args.get(1).is_some_and(|options| tag_of(*options) == sys::JS_TAG_NULL) {
        return Err(type_error(state, "Cannot convert undefined or null to object"));
    }
    let options = Options::coerced(state, cx, args, OWNER)?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    if let Some(calendar) = options.text("calendar")? {
        let fits = |part: &str| {
            (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !calendar.split('-').all(fits) {
            return Err(range_error(state, &format!("Invalid calendar : {calendar}")));
        }
    }
    check_numbering(state, &options)?;
    let halves = options.flag("hour12")?;
    let cycle = width!(options, "hourCycle", Cycle);
    let mut read = DateOptions {
        // As in V8, hours without halves go from 1 to 24 unless the cycle is named.
        cycle: match halves {
            Some(true) => Cycle::H12,
            Some(false) => Cycle::H24,
            None => cycle.unwrap_or(Cycle::H12),
        },
        zone: match options.text("timeZone")? {
            Some(name) => Zone::of(&name).ok_or_else(|| {
                range_error(state, &format!("Invalid time zone specified: {name}"))
            })?,
            None => local_zone(state, cx)?,
        },
        ..DateOptions::NONE
    };
    read.weekday = width!(options, "weekday", TextWidth);
    read.era = width!(options, "era", TextWidth);
    read.year = width!(options, "year", NumberWidth);
    read.month = width!(options, "month", MonthWidth);
    read.day = width!(options, "day", NumberWidth);
    read.day_period = width!(options, "dayPeriod", TextWidth);
    read.hour = width!(options, "hour", NumberWidth);
    read.minute = width!(options, "minute", NumberWidth);
    read.second = width!(options, "second", NumberWidth);
    let fraction = options.whole("fractionalSecondDigits", 1, 3)?.unwrap_or(0);
    read.fraction = u8::try_from(fraction).unwrap_or(0);
    read.zone_name = width!(options, "timeZoneName", ZoneName);
    options.one_of("formatMatcher", &["basic", "best fit"])?;
    read.date_style = width!(options, "dateStyle", Length);
    read.time_style = width!(options, "timeStyle", Length);
    let style = match (read.date_style, read.time_style) {
        (Some(_), _) => Some("dateStyle"),
        (None, Some(_)) => Some("timeStyle"),
        (None, None) => None,
    };
    if let Some(style) = style {
        let wrong = match needs {
            Needs::Date if read.time_style.is_some() => Some("timeStyle"),
            Needs::Time if read.date_style.is_some() => Some("dateStyle"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(type_error(state, &format!("Invalid option : {wrong}")));
        }
        if let Some(field) = first_field(&read) {
            let message = format!("Can't set option {field} when {style} is used");
            return Err(type_error(state, &message));
        }
        return Ok(read);
    }
    let is_enough = match needs {
        Needs::AnyOrDate | Needs::AnyOrAll => read.has_date() || read.has_time(),
        Needs::Date => read.has_date(),
        Needs::Time => read.has_time(),
    };
    if !is_enough {
        let numeric = Some(NumberWidth::Numeric);
        if needs != Needs::Time {
            (read.year, read.day) = (numeric, numeric);
            read.month = Some(MonthWidth::Number(NumberWidth::Numeric));
        }
        if matches!(needs, Needs::Time | Needs::AnyOrAll) {
            (read.hour, read.minute, read.second) = (numeric, numeric, numeric);
        }
    }
    Ok(read)
}

/// The zone of the machine. Without a name for it, that of the engine's offset.
fn local_zone(state: &State, cx: Cx) -> Outcome<Zone> {
    const HOUR_MS: f64 = 3_600_000.0;
    /// The first of January of a year.
    const YEAR: f64 = 2024.0;
    const YEAR_MS: f64 = 1_704_067_200_000.0;
    if let Some(zone) = Zone::of_machine() {
        return Ok(zone);
    }
    let intrinsics = &state.realm().intrinsics;
    let parts = [YEAR, 0.0, 1.0].map(|part| cx.number(part).raw());
    let local = cx.construct(intrinsics.dates.constructor, &parts)?;
    let local = cx.call(intrinsics.date_get_time, local.raw(), &[])?;
    Ok(Zone::of_hours((YEAR_MS - cx.to_number(local.raw())?) / HOUR_MS))
}

/// The first field that is given beside a style.
fn first_field(read: &DateOptions) -> Option<&'static str> {
    let given = [
        ("weekday", read.weekday.is_some()),
        ("era", read.era.is_some()),
        ("year", read.year.is_some()),
        ("month", read.month.is_some()),
        ("day", read.day.is_some()),
        ("dayPeriod", read.day_period.is_some()),
        ("hour", read.hour.is_some()),
        ("minute", read.minute.is_some()),
        ("second", read.second.is_some()),
        ("fractionalSecondDigits", read.fraction > 0),
        ("timeZoneName", read.zone_name.is_some()),
    ];
    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// The parts of the text of an argument: now, if it is `undefined`.
fn parts_of(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Vec<Part>> {
    let Slot::Date { options, .. } = slot else { return Ok(Vec::new()) };
    let value = args.first().copied().unwrap_or(undefined());
    let intrinsics = &state.realm().intrinsics;
    let time = if tag_of(value) == sys::JS_TAG_UNDEFINED {
        let now = cx.construct(intrinsics.dates.constructor, &[])?;
        let now = cx.call(intrinsics.date_get_time, now.raw(), &[])?;
        cx.to_number(now.raw())?
    } else if is_date(value) {
        let time = cx.call(intrinsics.date_get_time, value, &[])?;
        cx.to_number(time.raw())?
    } else {
        cx.to_number(value)?
    };
    if time.is_nan() || time.abs() > LARGEST_MS {
        return Err(range_error(state, "Invalid time value"));
    }
    Ok(options.parts(&options.zone.at(time.trunc())))
}

fn format(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    results::date_text(cx, &parts_of(state, cx, slot, args)?)
}

fn to_parts(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    results::parts(cx, &parts_of(state, cx, slot, args)?)
}

fn resolved(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    /// Fields in the order in which they are told, each with its letter in a pattern.
    const FIELDS: [(char, &str); 9] = [
        ('W', "weekday"),
        ('G', "era"),
        ('y', "year"),
        ('M', "month"),
        ('d', "day"),
        ('B', "dayPeriod"),
        ('h', "hour"),
        ('m', "minute"),
        ('s', "second"),
    ];
    let Slot::Date { is_plain, options } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("calendar", "gregory")?;
    fields.text("numberingSystem", "latn")?;
    fields.text("timeZone", options.zone.name())?;
    if options.hour.is_some() || options.time_style.is_some() {
        fields.text("hourCycle", options.cycle.name())?;
        fields.flag("hour12", options.cycle.has_halves())?;
    }
    let is_style = options.date_style.is_some() || options.time_style.is_some();
    if !is_style {
        let pattern = options.pattern();
        let width_of = |letter: char| {
            let (_, after) = pattern.split_once(&format!("{{{letter}"))?;
            after.chars().next()
        };
        for (letter, name) in FIELDS {
            let Some(width) = width_of(letter) else { continue };
            let width = match width {
                'n' => "numeric",
                '2' => "2-digit",
                'l' => "long",
                's' => "short",
                _ => "narrow",
            };
            fields.text(name, width)?;
        }
        if options.fraction > 0 {
            fields.number("fractionalSecondDigits", options.fraction)?;
        }
        if let Some(name) = options.zone_name {
            fields.text("timeZoneName", name.name())?;
        }
    }
    if let Some(style) = options.date_style {
        fields.text("dateStyle", style.name())?;
    }
    if let Some(style) = options.time_style {
        fields.text("timeStyle", style.name())?;
    }
    Ok(fields.finish())
}
