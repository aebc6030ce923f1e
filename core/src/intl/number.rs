//! Numbers as texts.
//!
//! In: a number and its [`NumberOptions`]. Out: the parts of its text, in the order in which they stand.

use super::{
    Part,
    decimal::Decimal,
    money::{self, Currency},
    options::{
        CompactDisplay, CurrencyDisplay, CurrencySign, Grouping, Mode, Notation, Priority,
        SignDisplay, Style, TrailingZeros, UnitDisplay,
    },
    units,
};

/// A blank that does not break a line.
const NO_BREAK: &str = "\u{a0}";

/// The names of a thousand and its powers.
const COMPACT: [(&str, &str); 4] =
    [("K", "thousand"), ("M", "million"), ("B", "billion"), ("T", "trillion")];

/// The digits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    pub(crate) least_whole: u8,
    /// The least and the most digits behind the point, if they count.
    pub(crate) fraction: Option<(u8, u8)>,
    /// The least and the most digits from the first that is not zero, if they count.
    pub(crate) significant: Option<(u8, u8)>,
    /// Which of both counts.
    pub(crate) priority: Priority,
    pub(crate) increment: u16,
    pub(crate) mode: Mode,
    pub(crate) zeros: TrailingZeros,
}

/// The options of a format, all of them resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumberOptions {
    pub(crate) style: Style,
    pub(crate) currency: [u8; 3],
    pub(crate) currency_display: CurrencyDisplay,
    pub(crate) currency_sign: CurrencySign,
    /// The numbers of a unit, and of that per which it is.
    pub(crate) unit: (u8, Option<u8>),
    pub(crate) unit_display: UnitDisplay,
    pub(crate) notation: Notation,
    pub(crate) compact_display: CompactDisplay,
    pub(crate) grouping: Grouping,
    pub(crate) sign: SignDisplay,
    pub(crate) digits: Digits,
}

/// A number to be written.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) is_negative: bool,
    pub(crate) size: Size,
}

/// A number without its sign.
#[derive(Clone, Debug)]
pub(crate) enum Size {
    Nan,
    Infinite,
    Finite(Decimal),
}

impl Number {
    pub(crate) fn of_double(value: f64) -> Self {
        let size = match value {
            value if value.is_nan() => Size::Nan,
            value if value.is_infinite() => Size::Infinite,
            value => Size::Finite(Decimal::of_double(value)),
        };
        Self { is_negative: value.is_sign_negative() && !value.is_nan(), size }
    }

    /// A number of digits, with a sign perhaps, as [`Decimal::of_text`] reads it.
    pub(crate) fn of_text(text: &str) -> Self {
        let size = Size::Finite(Decimal::of_text(text));
        Self { is_negative: text.starts_with('-'), size }
    }
}

impl Digits {
    /// Digits behind the point alone.
    pub(crate) const fn of_fraction(least: u8, most: u8) -> Self {
        Self {
            least_whole: 1,
            fraction: Some((least, most)),
            significant: None,
            priority: Priority::Auto,
            increment: 1,
            mode: Mode::HalfExpand,
            zeros: TrailingZeros::Auto,
        }
    }

    /// Rounds a number, and gives the least count of digits behind its point.
    pub(crate) fn round(&self, number: &mut Decimal, is_negative: bool) -> i32 {
        let of_fraction = self.fraction.map(|(least, most)| (i32::from(least), -i32::from(most)));
        let significant = |number: &Decimal, digits: u8| number.magnitude() - i32::from(digits) + 1;
        let mut of_significant = self.significant.map(|(_, most)| significant(number, most));
        let least_power = match (of_fraction, of_significant) {
            (Some((_, one)), Some(other)) if self.priority == Priority::Less => one.max(other),
            (Some((_, one)), Some(other)) => one.min(other),
            (Some((_, one)), None) => one,
            (None, Some(other)) => other,
            (None, None) => return 0,
        };
        if !number.is_zero() {
            let before = number.magnitude();
            number.round(least_power, u32::from(self.increment), self.mode, is_negative);
            if !number.is_zero() && number.magnitude() != before {
                let same = of_fraction.is_some_and(|(_, power)| Some(power) == of_significant);
                of_significant = of_significant.map(|power| power + i32::from(same));
            }
        }
        let shown = self.significant.map(|(least, _)| -significant(number, least));
        let least = match (of_fraction, of_significant) {
            (Some((least, _)), None) => least,
            (Some((least, power)), Some(other)) => {
                let takes_significant = (other <= power) == (self.priority != Priority::Less);
                if takes_significant { shown.unwrap_or(0) } else { least }
            }
            _ => shown.unwrap_or(0),
        };
        let is_stripped = self.zeros == TrailingZeros::Strip && number.fraction_count() == 0;
        if is_stripped { 0 } else { least.max(0) }
    }
}

impl NumberOptions {
    /// The options of a format that is given none.
    pub(crate) const PLAIN: Self = Self {
        style: Style::Decimal,
        currency: *b"XXX",
        currency_display: CurrencyDisplay::Symbol,
        currency_sign: CurrencySign::Standard,
        unit: (0, None),
        unit_display: UnitDisplay::Short,
        notation: Notation::Standard,
        compact_display: CompactDisplay::Short,
        grouping: Grouping::Auto,
        sign: SignDisplay::Auto,
        digits: Digits::of_fraction(0, 3),
    };

    /// The parts of a number's text.
    pub(crate) fn parts(&self, number: Number) -> Vec<Part> {
        let mut parts = Vec::new();
        let Number { is_negative, mut size } = number;
        let mut power = 0;
        let mut least = 0;
        if let Size::Finite(number) = &mut size {
            if self.style == Style::Percent {
                number.shift(2);
            }
            (power, least) = self.scale(number, is_negative);
        }
        let is_one = matches!(&size, Size::Finite(number)
            if number.is(1) && least == 0 && power == 0);
        let is_zero = matches!(&size, Size::Finite(number) if number.is_zero());
        let is_shown = match self.sign {
            SignDisplay::Auto => is_negative,
            SignDisplay::Never => false,
            SignDisplay::Always => true,
            SignDisplay::ExceptZero => !is_zero && !matches!(size, Size::Nan),
            SignDisplay::Negative => is_negative && !is_zero,
        };
        let sign = match (is_shown, is_negative) {
            (false, _) => "",
            (true, true) => "-",
            (true, false) => "+",
        };
        let is_digit = matches!(size, Size::Finite(_));
        let is_symbol =
            self.style == Style::Currency && self.currency_display != CurrencyDisplay::Name;
        // As in ICU, an amount with the name of a power has no parentheses.
        let in_parentheses = is_symbol
            && sign == "-"
            && (power == 0 || self.notation != Notation::Compact)
            && self.currency_sign == CurrencySign::Accounting;
        match sign {
            _ if in_parentheses => parts.push(Part::new("literal", "(")),
            "-" => parts.push(Part::new("minusSign", "-")),
            "+" => parts.push(Part::new("plusSign", "+")),
            _ => {}
        }
        let code = String::from_utf8_lossy(&self.currency);
        let currency = Currency::of(&code);
        if is_symbol {
            let symbol = match self.currency_display {
                CurrencyDisplay::Code => &code,
                CurrencyDisplay::Narrow => currency.narrow,
                _ => currency.symbol,
            };
            parts.push(Part::new("currency", symbol));
            if is_digit
                && (self.currency_display == CurrencyDisplay::Code || money::is_apart(symbol))
            {
                parts.push(Part::new("literal", NO_BREAK));
            }
        }
        match &size {
            Size::Nan => parts.push(Part::new("nan", "NaN")),
            Size::Infinite => parts.push(Part::new("infinity", "∞")),
            Size::Finite(number) => self.push_digits(number, least, &mut parts),
        }
        if is_digit {
            self.push_power(power, is_symbol, &mut parts);
        }
        match self.style {
            Style::Percent => {
                let kind = if self.notation == Notation::Compact { "unit" } else { "percentSign" };
                parts.push(Part::new(kind, "%"));
            }
            Style::Currency if !is_symbol => {
                parts.push(Part::new("literal", " "));
                let name = if is_one { currency.one } else { currency.other };
                parts.push(Part::new("currency", name));
            }
            Style::Unit => {
                let (unit, per) = self.unit;
                let text = units::text(unit, per, self.unit_display, is_one);
                if text.starts_with(' ') {
                    parts.push(Part::new("literal", " "));
                }
                parts.push(Part::new("unit", text.trim_start_matches(' ')));
            }
            _ => {}
        }
        if in_parentheses {
            parts.push(Part::new("literal", ")"));
        }
        parts
    }

    /// Divides a number by a power of ten for its notation, and rounds it. Out: the power, and the least count of digits
    /// behind the point.
    fn scale(&self, number: &mut Decimal, is_negative: bool) -> (i32, i32) {
        let power_of = |magnitude: i32| match self.notation {
            Notation::Standard => 0,
            Notation::Scientific => magnitude,
            Notation::Engineering => magnitude.div_euclid(3) * 3,
            Notation::Compact => (magnitude.div_euclid(3) * 3).clamp(0, 12),
        };
        if number.is_zero() {
            return (0, self.digits.round(number, is_negative));
        }
        let magnitude = number.magnitude();
        let power = power_of(magnitude);
        number.shift(-power);
        let least = self.digits.round(number, is_negative);
        if number.is_zero() || number.magnitude() == magnitude - power {
            return (power, least);
        }
        let next = power_of(magnitude + 1);
        if next == power {
            return (power, least);
        }
        number.shift(power - next);
        (next, self.digits.round(number, is_negative))
    }

    fn push_digits(&self, number: &Decimal, least: i32, parts: &mut Vec<Part>) {
        let whole = number.whole_text(i32::from(self.digits.least_whole));
        let grouped_from = match self.grouping {
            Grouping::Never => usize::MAX,
            Grouping::Min2 => 5,
            Grouping::Auto if self.notation == Notation::Compact => 5,
            Grouping::Auto | Grouping::Always => 4,
        };
        if whole.len() < grouped_from {
            parts.push(Part::new("integer", whole));
        } else {
            let first = (whole.len() - 1) % 3 + 1;
            let (head, mut rest) = whole.split_at(first);
            parts.push(Part::new("integer", head));
            while let Some((group, after)) = rest.split_at_checked(3) {
                parts.push(Part::new("group", ","));
                parts.push(Part::new("integer", group));
                rest = after;
            }
        }
        let fraction = number.fraction_text(least);
        if !fraction.is_empty() {
            parts.push(Part::new("decimal", "."));
            parts.push(Part::new("fraction", fraction));
        }
    }

    /// The power of ten that a number was divided by.
    fn push_power(&self, power: i32, is_symbol: bool, parts: &mut Vec<Part>) {
        match self.notation {
            Notation::Standard => {}
            Notation::Scientific | Notation::Engineering => {
                parts.push(Part::new("exponentSeparator", "E"));
                if power < 0 {
                    parts.push(Part::new("exponentMinusSign", "-"));
                }
                parts.push(Part::new("exponentInteger", power.unsigned_abs().to_string()));
            }
            Notation::Compact => {
                let name = usize::try_from(power / 3 - 1).ok().and_then(|index| COMPACT.get(index));
                if let Some((short, long)) = name {
                    match self.compact_display {
                        _ if is_symbol => parts.push(Part::new("compact", *short)),
                        CompactDisplay::Short => parts.push(Part::new("compact", *short)),
                        CompactDisplay::Long => {
                            parts.push(Part::new("literal", " "));
                            parts.push(Part::new("compact", *long));
                        }
                    }
                }
            }
        }
    }
}
