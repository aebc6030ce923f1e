//! The numbers of the warnings for locales that are not there.
//!
//! In: a method that depends on a locale, or a constructor of `Intl`. Out: its number among all that a run is warned of
//! once. The methods come first.

pub(in crate::isolate) const METHOD_COUNT: usize = 10;

/// All that a run is warned of once: a locale of each method, and of each constructor of `Intl`.
pub(in crate::isolate) const WARNING_COUNT: usize = METHOD_COUNT + 7;

/// The number of the warning of `Intl.NumberFormat`.
pub(in crate::isolate) const NUMBER_FORMAT: usize = METHOD_COUNT;

/// The number of the warning of `Intl.DateTimeFormat`.
pub(in crate::isolate) const DATE_TIME_FORMAT: usize = METHOD_COUNT + 1;

/// The number of the warning of `Intl.Collator`.
pub(in crate::isolate) const COLLATOR: usize = METHOD_COUNT + 2;

/// The number of the warning of `Intl.PluralRules`.
pub(in crate::isolate) const PLURAL_RULES: usize = METHOD_COUNT + 3;

/// The number of the warning of `Intl.RelativeTimeFormat`.
pub(in crate::isolate) const RELATIVE_TIME_FORMAT: usize = METHOD_COUNT + 4;

/// The number of the warning of `Intl.ListFormat`.
pub(in crate::isolate) const LIST_FORMAT: usize = METHOD_COUNT + 5;

/// The number of the warning of `Intl.Segmenter`.
pub(in crate::isolate) const SEGMENTER: usize = METHOD_COUNT + 6;

/// The constructors of `Intl`, in the order of their warnings.
pub(super) const CONSTRUCTORS: [&str; WARNING_COUNT - METHOD_COUNT] = [
    "NumberFormat",
    "DateTimeFormat",
    "Collator",
    "PluralRules",
    "RelativeTimeFormat",
    "ListFormat",
    "Segmenter",
];
