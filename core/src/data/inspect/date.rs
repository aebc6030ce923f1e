//! Dates as text: `2026-11-28T00:00:00.000Z`.
//!
//! In: epoch milliseconds. Out: the text of `toISOString`, or `Invalid Date` outside of the range of a Date.

/// The farthest moment from the epoch that a Date has.
const FARTHEST_MS: f64 = 8.64e15;

const DAY_MS: i64 = 86_400_000;

/// Shows a Date.
pub(super) fn date(time: f64) -> String {
    if time.is_nan() || time.abs() > FARTHEST_MS {
        return "Invalid Date".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "a number in the range of a Date")]
    let ms = time.trunc() as i64;
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    let ms = ms.rem_euclid(DAY_MS);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{}{:06}", if year < 0 { '-' } else { '+' }, year.abs()),
    };
    let (seconds, fraction) = (ms / 1000, ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// The year, month and day of a number of days since the epoch. Years begin in March, so that a leap day is the last day
/// of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    /// From 1 March of the year 0 to the epoch.
    const EPOCH_DAYS: i64 = 719_468;
    /// The days of 400 years.
    const ERA_DAYS: i64 = 146_097;
    let days = days + EPOCH_DAYS;
    let era = days.div_euclid(ERA_DAYS);
    let of_era = days.rem_euclid(ERA_DAYS);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let is_next = month >= 10;
    let month = if is_next { month - 9 } else { month + 3 };
    (era * 400 + year + i64::from(is_next), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_shown_as_by_javascript() {
        let cases = [
            (0.0, "1970-01-01T00:00:00.000Z"),
            (-0.0, "1970-01-01T00:00:00.000Z"),
            (-1.0, "1969-12-31T23:59:59.999Z"),
            (1_795_824_000_000.0, "2026-11-28T00:00:00.000Z"),
            (951_782_400_000.0, "2000-02-29T00:00:00.000Z"),
            (253_402_300_800_000.0, "+010000-01-01T00:00:00.000Z"),
            (-62_198_755_200_000.0, "-000001-01-01T00:00:00.000Z"),
            (8.64e15, "+275760-09-13T00:00:00.000Z"),
            (-8.64e15, "-271821-04-20T00:00:00.000Z"),
            (8.64e15 + 1.0, "Invalid Date"),
            (f64::NAN, "Invalid Date"),
            (f64::NEG_INFINITY, "Invalid Date"),
        ];
        for (time, text) in cases {
            assert_eq!(date(time), text);
        }
    }
}
