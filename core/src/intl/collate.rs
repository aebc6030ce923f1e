//! The order of texts.
//!
//! In: two texts, and [`CollatorOptions`]. Out: their order by the Unicode Collation Algorithm with the data of the CLDR's
//! root, which is that of English. Costs the length of the part that decides.

use std::cmp::Ordering;

use icu_collator::{
    Collator, CollatorPreferences,
    options::{AlternateHandling, CaseLevel, CollatorOptions as IcuOptions, Strength},
    preferences::{CollationCaseFirst, CollationNumericOrdering},
    provider as collation,
};
use icu_normalizer::provider as normalization;
use icu_provider::{DataError, DataErrorKind, DataMarker, DataProvider, DataRequest, DataResponse};

use super::options::{CaseFirst, Sensitivity, Usage};

/// The options of a collator, all of them resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CollatorOptions {
    pub(crate) usage: Usage,
    pub(crate) sensitivity: Sensitivity,
    pub(crate) ignores_punctuation: bool,
    pub(crate) is_numeric: bool,
    pub(crate) case_first: CaseFirst,
}

/// A text as the engine offers it.
#[derive(Clone, Copy)]
pub(crate) enum Sorted<'t> {
    Utf8(&'t str),
    /// With a lone surrogate.
    Utf16(&'t [u16]),
}

impl CollatorOptions {
    /// The options of a collator that is given none.
    pub(crate) const PLAIN: Self = Self {
        usage: Usage::Sort,
        sensitivity: Sensitivity::Variant,
        ignores_punctuation: false,
        is_numeric: false,
        case_first: CaseFirst::False,
    };

    /// The order of two texts; `None` once `stops` says so, which is asked between pieces of long texts. Holds memory for
    /// one piece at a time.
    pub(crate) fn compare(
        self,
        one: Sorted<'_>,
        other: Sorted<'_>,
        stops: impl Fn() -> bool,
    ) -> Option<Ordering> {
        thread_local! {
            /// Most calls give no options, and sort.
            static PLAIN: Option<Collator> = CollatorOptions::PLAIN.collator();
        }
        if self == Self::PLAIN {
            return PLAIN.with(|collator| in_pieces(collator.as_ref(), one, other, stops));
        }
        in_pieces(self.collator().as_ref(), one, other, stops)
    }

    fn collator(self) -> Option<Collator> {
        let mut options = IcuOptions::default();
        let (strength, case_level) = match self.sensitivity {
            Sensitivity::Base => (Strength::Primary, CaseLevel::Off),
            Sensitivity::Accent => (Strength::Secondary, CaseLevel::Off),
            Sensitivity::Case => (Strength::Primary, CaseLevel::On),
            Sensitivity::Variant => (Strength::Tertiary, CaseLevel::Off),
        };
        options.strength = Some(strength);
        options.case_level = Some(case_level);
        options.alternate_handling = Some(if self.ignores_punctuation {
            AlternateHandling::Shifted
        } else {
            AlternateHandling::NonIgnorable
        });
        let mut preferences = CollatorPreferences::default();
        preferences.numeric_ordering = Some(if self.is_numeric {
            CollationNumericOrdering::True
        } else {
            CollationNumericOrdering::False
        });
        preferences.case_first = Some(match self.case_first {
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
            CaseFirst::False => CollationCaseFirst::False,
        });
        Collator::try_new_unstable(&Root, preferences, options).ok()
    }
}

/// Bytes or units of a piece. The library needs some ten bytes for each, and time that grows with the square of a run of
/// marks or digits.
const PIECE: usize = 2048;

/// So much before the first difference is compared with it: marks, contractions and digits hang together.
const BEFORE: usize = 64;

/// The order of texts. Of long ones the common beginning is passed over, and the rest is compared piece by piece.
fn in_pieces(
    collator: Option<&Collator>,
    mut one: Sorted<'_>,
    mut other: Sorted<'_>,
    stops: impl Fn() -> bool,
) -> Option<Ordering> {
    if one.length() <= PIECE && other.length() <= PIECE {
        return Some(compare(collator, one, other));
    }
    let common = one.common(other).saturating_sub(BEFORE);
    (one, other) = (one.split(common).1, other.split(common).1);
    while !(one.is_empty() && other.is_empty()) {
        if stops() {
            return None;
        }
        let (piece, rest) = one.split(PIECE);
        let (other_piece, other_rest) = other.split(PIECE);
        let order = compare(collator, piece, other_piece);
        if order.is_ne() {
            return Some(order);
        }
        (one, other) = (rest, other_rest);
    }
    Some(Ordering::Equal)
}

impl Sorted<'_> {
    fn length(self) -> usize {
        match self {
            Self::Utf8(text) => text.len(),
            Self::Utf16(units) => units.len(),
        }
    }

    fn is_empty(self) -> bool {
        self.length() == 0
    }

    /// The length of the beginning that both texts have, of texts in the same form.
    fn common(self, other: Self) -> usize {
        fn length<T: PartialEq>(one: &[T], other: &[T]) -> usize {
            one.iter().zip(other).take_while(|(one, other)| one == other).count()
        }
        match (self, other) {
            (Self::Utf8(one), Self::Utf8(other)) => length(one.as_bytes(), other.as_bytes()),
            (Self::Utf16(one), Self::Utf16(other)) => length(one, other),
            _ => 0,
        }
    }

    /// At most that much of the text, and the rest. No character is split; a piece has one at least.
    fn split(self, most: usize) -> (Self, Self) {
        match self {
            Self::Utf8(text) => {
                let (piece, rest) = text.split_at(text.floor_char_boundary(most));
                (Self::Utf8(piece), Self::Utf8(rest))
            }
            Self::Utf16(units) => {
                let most = most.min(units.len());
                let is_high = |unit: &u16| (0xd800..0xdc00).contains(unit);
                let splits =
                    most > 1 && most < units.len() && units.get(most - 1).is_some_and(is_high);
                let (piece, rest) = units.split_at(most - usize::from(splits));
                (Self::Utf16(piece), Self::Utf16(rest))
            }
        }
    }
}

fn compare(collator: Option<&Collator>, one: Sorted<'_>, other: Sorted<'_>) -> Ordering {
    let units = |text: Sorted<'_>| match text {
        Sorted::Utf8(text) => text.encode_utf16().collect(),
        Sorted::Utf16(units) => units.to_vec(),
    };
    let Some(collator) = collator.map(Collator::as_borrowed) else {
        return units(one).cmp(&units(other));
    };
    match (one, other) {
        (Sorted::Utf8(one), Sorted::Utf8(other)) => collator.compare(one, other),
        (Sorted::Utf16(one), Sorted::Utf16(other)) => collator.compare_utf16(one, other),
        _ => collator.compare_utf16(&units(one), &units(other)),
    }
}

/// The compiled data without the tailorings of languages, which take 1 MB and more.
struct Root;

impl DataProvider<collation::CollationTailoringV1> for Root {
    fn load(
        &self,
        request: DataRequest,
    ) -> Result<DataResponse<collation::CollationTailoringV1>, DataError> {
        let marker = <collation::CollationTailoringV1 as DataMarker>::INFO;
        Err(DataErrorKind::IdentifierNotFound.with_req(marker, request))
    }
}

/// Data that the libraries have.
macro_rules! compiled {
    ($($data:ident: $($marker:ident),+;)+) => {$($(
        impl DataProvider<$data::$marker> for Root {
            fn load(
                &self,
                request: DataRequest,
            ) -> Result<DataResponse<$data::$marker>, DataError> {
                $data::Baked.load(request)
            }
        }
    )+)+};
}

compiled! {
    collation: CollationRootV1, CollationDiacriticsV1, CollationJamoV1, CollationMetadataV1, CollationReorderingV1,
        CollationSpecialPrimariesV1;
    normalization: NormalizerNfdDataV1, NormalizerNfdTablesV1;
}
