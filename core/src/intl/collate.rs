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

    /// The order of two texts.
    pub(crate) fn compare(self, one: Sorted<'_>, other: Sorted<'_>) -> Ordering {
        thread_local! {
            /// Most calls give no options, and sort.
            static PLAIN: Option<Collator> = CollatorOptions::PLAIN.collator();
        }
        if self == Self::PLAIN {
            return PLAIN.with(|collator| compare(collator.as_ref(), one, other));
        }
        compare(self.collator().as_ref(), one, other)
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
