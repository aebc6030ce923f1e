//! `Intl.NumberFormat`, and `toLocaleString` of numbers.
//!
//! In: locales, options, and numbers, bigints or texts of numbers. Out: texts, parts, and the resolved options.

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, is_string, sys, tag_of, undefined},
        locale::warnings,
        primitive::{Hint, primitive},
        state::State,
    },
    Service,
    arguments::{Options, choose, locale_name, locales},
    range_error, results,
    slots::Slot,
    type_error,
};
use crate::intl::{
    money::Currency,
    number::{Digits, Number, NumberOptions},
    options::{
        CompactDisplay, CurrencyDisplay, CurrencySign, Grouping, Matcher, Mode, Named, Notation,
        Priority, SignDisplay, Style, TrailingZeros, UnitDisplay,
    },
    units,
};

pub(super) static SERVICE: Service = Service {
    name: c"NumberFormat",
    is_callable: true,
    make,
    methods: &[(c"resolvedOptions", 0, resolved), (c"formatToParts", 1, to_parts)],
    bound: Some((c"format", 1, format)),
};

const OWNER: &str = "Intl.NumberFormat";

/// The most digits behind the point in V8 of Node.js 20; later ones have 100.
const MOST_FRACTION: u16 = 20;

/// Increments of rounding that there are.
const INCREMENTS: [u16; 15] = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];

fn make(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Slot> {
    let asked = locales(state, cx, args)?;
    let options = Options::coerced(state, cx, args, OWNER)?;
    choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
    check_numbering(state, &options)?;
    let options = read(state, &options)?;
    let is_plain = state.known_locale(&asked, warnings::NUMBER_FORMAT).is_plain();
    Ok(Slot::Number { is_plain, options })
}

/// The text of a number by a call of its method `toLocaleString`.
pub(in crate::isolate) fn localized(
    state: &State,
    cx: Cx,
    number: Raw,
    args: &[Raw],
    method: usize,
) -> Outcome<Local> {
    let number = mathematical(state, cx, number)?;
    let is_plain = args.iter().all(|arg| tag_of(*arg) == sys::JS_TAG_UNDEFINED);
    let options = if is_plain {
        NumberOptions::PLAIN
    } else {
        let asked = locales(state, cx, args)?;
        let options = Options::coerced(state, cx, args, OWNER)?;
        choose!(options, "localeMatcher", Matcher, Matcher::BestFit);
        check_numbering(state, &options)?;
        let options = read(state, &options)?;
        state.known_locale(&asked, method);
        options
    };
    results::text(cx, &options.parts(number))
}

/// Reads the option `numberingSystem`, of which only digits of Latin are known.
pub(super) fn check_numbering(state: &State, options: &Options) -> Outcome<()> {
    let Some(system) = options.text("numberingSystem")? else { return Ok(()) };
    let fits = |part: &str| {
        (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if system.split('-').all(fits) {
        return Ok(());
    }
    Err(range_error(state, &format!("Invalid numberingSystem : {system}")))
}

fn read(state: &State, options: &Options) -> Outcome<NumberOptions> {
    let mut read = NumberOptions::PLAIN;
    read.style = choose!(options, "style", Style, Style::Decimal);
    let currency = options.text("currency")?;
    if let Some(code) = &currency {
        let bytes = <[u8; 3]>::try_from(code.as_bytes()).ok();
        let bytes = bytes.filter(|bytes| bytes.iter().all(u8::is_ascii_alphabetic));
        let Some(bytes) = bytes else {
            return Err(range_error(state, &format!("Invalid currency code : {code}")));
        };
        read.currency = bytes.map(|byte| byte.to_ascii_uppercase());
    } else if read.style == Style::Currency {
        return Err(type_error(state, "Currency code is required with currency style."));
    }
    read.currency_display =
        choose!(options, "currencyDisplay", CurrencyDisplay, CurrencyDisplay::Symbol);
    read.currency_sign = choose!(options, "currencySign", CurrencySign, CurrencySign::Standard);
    match options.text("unit")? {
        Some(name) => {
            let (unit, per) = match name.split_once("-per-") {
                Some((unit, per)) => (units::number(unit), units::number(per).map(Some)),
                None => (units::number(&name), Some(None)),
            };
            let (Some(unit), Some(per)) = (unit, per) else {
                let message = format!("Invalid unit argument for Intl.NumberFormat() '{name}'");
                return Err(range_error(state, &message));
            };
            read.unit = (unit, per);
        }
        None if read.style == Style::Unit => {
            return Err(type_error(state, "Invalid unit argument for Intl.NumberFormat() ''"));
        }
        None => {}
    }
    read.unit_display = choose!(options, "unitDisplay", UnitDisplay, UnitDisplay::Short);
    read.notation = choose!(options, "notation", Notation, Notation::Standard);
    let code = String::from_utf8_lossy(&read.currency);
    let (least, most) = match read.style {
        Style::Currency => (Currency::of(&code).digits, Currency::of(&code).digits),
        Style::Percent => (0, 0),
        _ => (0, 3),
    };
    read.digits = read_digits(state, options, (least, most), read.notation)?;
    read.compact_display =
        choose!(options, "compactDisplay", CompactDisplay, CompactDisplay::Short);
    read.grouping = read_grouping(options, read.notation)?;
    read.sign = choose!(options, "signDisplay", SignDisplay, SignDisplay::Auto);
    Ok(read)
}

/// Reads the options of digits. In: the least and the most digits behind the point if the options say nothing.
pub(super) fn read_digits(
    state: &State,
    options: &Options,
    (least, mut most): (u8, u8),
    notation: Notation,
) -> Outcome<Digits> {
    let byte = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
    let least_whole = options.whole("minimumIntegerDigits", 1, 21)?.unwrap_or(1);
    let least_fraction = options.given("minimumFractionDigits")?;
    let most_fraction = options.given("maximumFractionDigits")?;
    let least_significant = options.given("minimumSignificantDigits")?;
    let most_significant = options.given("maximumSignificantDigits")?;
    let digits = options.owned_by("SetNumberFormatDigitOptions");
    let priority = choose!(digits, "roundingPriority", Priority, Priority::Auto);
    let increment = options.whole("roundingIncrement", 1, 5000)?.unwrap_or(1);
    if !INCREMENTS.contains(&increment) {
        return Err(range_error(state, "roundingIncrement value is out of range."));
    }
    let mode = choose!(options, "roundingMode", Mode, Mode::HalfExpand);
    let zeros = choose!(options, "trailingZeroDisplay", TrailingZeros, TrailingZeros::Auto);
    if increment != 1 {
        most = least;
    }
    let has_significant = least_significant.is_some() || most_significant.is_some();
    let has_fraction = least_fraction.is_some() || most_fraction.is_some();
    let is_auto = priority == Priority::Auto;
    let is_compact = notation == Notation::Compact;
    let needs_significant = !is_auto || has_significant;
    let needs_fraction = !is_auto || !(needs_significant || (!has_fraction && is_compact));
    let whole = |name, value: &Option<Local>, least, most, absent| match value {
        Some(value) => options.whole_of(name, value, least, most),
        None => Ok(absent),
    };
    let mut read = Digits {
        least_whole: byte(least_whole),
        fraction: None,
        significant: None,
        priority,
        increment,
        mode,
        zeros,
    };
    if needs_significant {
        let least = whole("minimumSignificantDigits", &least_significant, 1, 21, 1)?;
        let most = whole("maximumSignificantDigits", &most_significant, least, 21, 21)?;
        read.significant = Some((byte(least), byte(most)));
    }
    if needs_fraction {
        let name = "maximumFractionDigits";
        let low = least_fraction.as_ref();
        let low =
            low.map(|value| options.whole_of("minimumFractionDigits", value, 0, MOST_FRACTION));
        let low = low.transpose()?;
        let high =
            most_fraction.as_ref().map(|value| options.whole_of(name, value, 0, MOST_FRACTION));
        let high = high.transpose()?;
        let (least, most) = (u16::from(least), u16::from(most));
        let (low, high) = match (low, high) {
            (None, None) => (least, most.max(least)),
            (None, Some(high)) => (least.min(high), high),
            (Some(low), None) => (low, most.max(low)),
            (Some(low), Some(high)) if low > high => {
                return Err(range_error(state, &format!("{name} value is out of range.")));
            }
            (Some(low), Some(high)) => (low, high),
        };
        read.fraction = Some((byte(low), byte(high)));
    }
    if !needs_significant && !needs_fraction {
        read.fraction = Some((0, 0));
        read.significant = Some((1, 2));
        read.priority = Priority::More;
    }
    if increment != 1 {
        if read.significant.is_some() || read.fraction.is_none() {
            return Err(type_error(state, "RoundingType is not fractionDigits"));
        }
        if read.fraction.is_some_and(|(least, most)| least != most) {
            let message = "maximumFractionDigits not equal to minimumFractionDigits";
            return Err(range_error(state, message));
        }
    }
    Ok(read)
}

fn read_grouping(options: &Options, notation: Notation) -> Outcome<Grouping> {
    const NAMES: [&str; 5] = ["min2", "auto", "always", "true", "false"];
    let absent = if notation == Notation::Compact { Grouping::Min2 } else { Grouping::Auto };
    let Some(value) = options.given("useGrouping")? else { return Ok(absent) };
    if tag_of(value.raw()) == sys::JS_TAG_BOOL {
        let is_true = options.truthy(&value)?;
        return Ok(if is_true { Grouping::Always } else { Grouping::Never });
    }
    if !options.truthy(&value)? {
        return Ok(Grouping::Never);
    }
    let text = options.text_of(&value)?;
    match text.as_str() {
        "true" | "false" => Ok(absent),
        name if NAMES.contains(&name) => Ok(Grouping::of(name).unwrap_or(absent)),
        name => Err(options.out_of_range(name, "useGrouping")),
    }
}

fn format(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let Slot::Number { options, .. } = slot else { return Ok(cx.dup(undefined())) };
    let number = args.first().copied().unwrap_or(undefined());
    results::text(cx, &options.parts(mathematical(state, cx, number)?))
}

fn to_parts(state: &State, cx: Cx, slot: &Slot, args: &[Raw]) -> Outcome<Local> {
    let Slot::Number { options, .. } = slot else { return Ok(cx.dup(undefined())) };
    let number = args.first().copied().unwrap_or(undefined());
    results::parts(cx, &options.parts(mathematical(state, cx, number)?))
}

/// A value as a number of any length.
fn mathematical(state: &State, cx: Cx, value: Raw) -> Outcome<Number> {
    /// Digits of the largest bigint of the engine, and bytes that the parts of a text take for each.
    const LARGEST_BIGINT: usize = 400_000;
    const PART_BYTES: usize = 64;
    let value = primitive(state, cx, value, Hint::Number)?;
    let is_bigint = matches!(tag_of(value.raw()), sys::JS_TAG_BIG_INT | sys::JS_TAG_SHORT_BIG_INT);
    if !is_bigint && !is_string(value.raw()) {
        return cx.to_number(value.raw()).map(Number::of_double);
    }
    let text = cx.to_string(value.raw())?;
    if !is_bigint {
        let number = cx.to_number(text.raw())?;
        // Numbers in other forms, and those beyond a double, are what they are as doubles.
        if !number.is_finite() || number == 0.0 {
            return Ok(Number::of_double(number));
        }
        let is_decimal = cx.with_bytes(text.raw(), |text| {
            text.iter().all(|byte| {
                matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-' | b'\t'..=b'\r' | b' ')
            })
        })?;
        if !is_decimal {
            return Ok(Number::of_double(number));
        }
    }
    let held = usize::try_from(cx.length(text.raw())?).unwrap_or(0);
    // The digits, and the parts of the text made of them: no number has more digits before its point than a bigint.
    let bytes = held.saturating_mul(4) + held.min(LARGEST_BIGINT) * PART_BYTES;
    state.charge(bytes);
    let number =
        cx.with_bytes(text.raw(), |text| Number::of_text(String::from_utf8_lossy(text).trim()));
    state.discharge(bytes);
    number
}

fn resolved(_: &State, cx: Cx, slot: &Slot, _: &[Raw]) -> Outcome<Local> {
    let Slot::Number { is_plain, options } = slot else { return Ok(cx.dup(undefined())) };
    let mut fields = results::Fields::new(cx)?;
    fields.text("locale", locale_name(*is_plain))?;
    fields.text("numberingSystem", "latn")?;
    fields.text("style", options.style.name())?;
    match options.style {
        Style::Currency => {
            fields.text("currency", &String::from_utf8_lossy(&options.currency))?;
            fields.text("currencyDisplay", options.currency_display.name())?;
            fields.text("currencySign", options.currency_sign.name())?;
        }
        Style::Unit => {
            let (unit, per) = options.unit;
            let unit = units::name(unit);
            match per {
                Some(per) => fields.text("unit", &format!("{unit}-per-{}", units::name(per)))?,
                None => fields.text("unit", unit)?,
            }
            fields.text("unitDisplay", options.unit_display.name())?;
        }
        _ => {}
    }
    put_digits(&mut fields, &options.digits)?;
    match options.grouping {
        Grouping::Never => fields.flag("useGrouping", false)?,
        grouping => fields.text("useGrouping", grouping.name())?,
    }
    fields.text("notation", options.notation.name())?;
    if options.notation == Notation::Compact {
        fields.text("compactDisplay", options.compact_display.name())?;
    }
    fields.text("signDisplay", options.sign.name())?;
    put_rounding(&mut fields, &options.digits)?;
    Ok(fields.finish())
}

/// Puts the counts of digits.
pub(super) fn put_digits(fields: &mut results::Fields, digits: &Digits) -> Outcome<()> {
    fields.number("minimumIntegerDigits", digits.least_whole)?;
    if let Some((least, most)) = digits.significant {
        fields.number("minimumSignificantDigits", least)?;
        fields.number("maximumSignificantDigits", most)?;
    }
    if let Some((least, most)) = digits.fraction {
        fields.number("minimumFractionDigits", least)?;
        fields.number("maximumFractionDigits", most)?;
    }
    Ok(())
}

/// Puts the ways of rounding.
pub(super) fn put_rounding(fields: &mut results::Fields, digits: &Digits) -> Outcome<()> {
    fields.text("roundingMode", digits.mode.name())?;
    fields.number("roundingIncrement", digits.increment)?;
    fields.text("trailingZeroDisplay", digits.zeros.name())?;
    fields.text("roundingPriority", digits.priority.name())
}
