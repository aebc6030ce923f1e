//! Options that are one of a list of names.
//!
//! In: a name. Out: an option, and its name again.

use std::cmp::Ordering;

/// An option that is one of a list of names.
pub(crate) trait Named: Sized {
    const NAMES: &'static [&'static str];

    fn of(name: &str) -> Option<Self>;

    fn name(self) -> &'static str;
}

/// Enumerations with the names that code gives them.
macro_rules! named {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl Named for $name {
            const NAMES: &'static [&'static str] = &[$($text),+];

            fn of(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    )+};
}

named! {
    /// The thing that a number counts.
    Style { Decimal = "decimal", Percent = "percent", Currency = "currency", Unit = "unit" }
    CurrencyDisplay { Code = "code", Symbol = "symbol", Narrow = "narrowSymbol", Name = "name" }
    CurrencySign { Standard = "standard", Accounting = "accounting" }
    UnitDisplay { Short = "short", Narrow = "narrow", Long = "long" }
    Notation { Standard = "standard", Scientific = "scientific", Engineering = "engineering", Compact = "compact" }
    CompactDisplay { Short = "short", Long = "long" }
    Grouping { Always = "always", Auto = "auto", Min2 = "min2", Never = "false" }
    SignDisplay { Auto = "auto", Never = "never", Always = "always", ExceptZero = "exceptZero", Negative = "negative" }
    /// The digits that count if both kinds are given.
    Priority { Auto = "auto", More = "morePrecision", Less = "lessPrecision" }
    /// The direction of rounding.
    Mode {
        Ceil = "ceil", Floor = "floor", Expand = "expand", Trunc = "trunc", HalfCeil = "halfCeil", HalfFloor = "halfFloor",
        HalfExpand = "halfExpand", HalfTrunc = "halfTrunc", HalfEven = "halfEven",
    }
    TrailingZeros { Auto = "auto", Strip = "stripIfInteger" }
    Matcher { Lookup = "lookup", BestFit = "best fit" }
}

impl Mode {
    /// Whether a number that lies between two multiples goes to the one that is farther from zero.
    pub(super) fn goes_away(
        self,
        to_half: Ordering,
        is_inexact: bool,
        is_negative: bool,
        is_odd: bool,
    ) -> bool {
        let ties = |goes: bool| to_half.is_gt() || (to_half.is_eq() && goes);
        is_inexact
            && match self {
                Self::Ceil => !is_negative,
                Self::Floor => is_negative,
                Self::Expand => true,
                Self::Trunc => false,
                Self::HalfCeil => ties(!is_negative),
                Self::HalfFloor => ties(is_negative),
                Self::HalfExpand => ties(true),
                Self::HalfTrunc => ties(false),
                Self::HalfEven => ties(is_odd),
            }
    }
}

named! {
    TextWidth { Long = "long", Short = "short", Narrow = "narrow" }
    NumberWidth { Numeric = "numeric", TwoDigit = "2-digit" }
    /// The numbers of hours.
    Cycle { H11 = "h11", H12 = "h12", H23 = "h23", H24 = "h24" }
    /// The length of a whole date or time.
    Length { Full = "full", Long = "long", Medium = "medium", Short = "short" }
    ZoneName {
        Short = "short", Long = "long", ShortOffset = "shortOffset", LongOffset = "longOffset", ShortGeneric = "shortGeneric",
        LongGeneric = "longGeneric",
    }
}

impl Cycle {
    /// Whether hours are told apart by AM and PM.
    pub(crate) fn has_halves(self) -> bool {
        matches!(self, Self::H11 | Self::H12)
    }

    /// The number of an hour, which counts from midnight.
    pub(super) fn hour(self, hour: u8) -> i64 {
        let hour = i64::from(hour);
        match self {
            Self::H11 => hour % 12,
            Self::H12 => (hour + 11) % 12 + 1,
            Self::H23 => hour,
            Self::H24 => (hour + 23) % 24 + 1,
        }
    }
}

named! {
    PluralKind { Cardinal = "cardinal", Ordinal = "ordinal" }
    ListKind { Conjunction = "conjunction", Disjunction = "disjunction", Unit = "unit" }
    /// Whether words such as `tomorrow` may stand for a number.
    Numeric { Always = "always", Auto = "auto" }
    RelativeUnit {
        Second = "second", Minute = "minute", Hour = "hour", Day = "day", Week = "week", Month = "month",
        Quarter = "quarter", Year = "year",
    }
}

named! {
    /// The use of an order.
    Usage { Sort = "sort", Search = "search" }
    /// The differences between texts that count.
    Sensitivity { Base = "base", Accent = "accent", Case = "case", Variant = "variant" }
    CaseFirst { Upper = "upper", Lower = "lower", False = "false" }
    Granularity { Grapheme = "grapheme", Word = "word", Sentence = "sentence" }
}
