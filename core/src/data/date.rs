//! Dates as text.
//!
//! In: epoch milliseconds. Out: the text of `Date.prototype.toISOString`.

/// The most milliseconds before or after the epoch that a Date may have.
const MOST_MS: f64 = 8.64e15;

/// The text of a date in UTC, as `Date.prototype.toISOString` writes it; `None` for an invalid one.
#[must_use]
pub fn iso_date(epoch_ms: f64) -> Option<String> {
    if epoch_ms.is_nan() || epoch_ms.abs() > MOST_MS {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
    let ms = epoch_ms as i64;
    let (days, ms) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let year = match year {
        0..=9_999 => format!("{year:04}"),
        _ if year < 0 => format!("-{:06}", -year),
        _ => format!("+{year:06}"),
    };
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    Some(format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"))
}

/// The year, month and day of a day since the epoch. Years of this calculation begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::iso_date;

    #[test]
    fn dates_are_those_of_javascript() {
        for (ms, text) in [
            (0.0, "1970-01-01T00:00:00.000Z"),
            (-1.0, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000.0, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_123.0, "2024-02-29T00:00:00.123Z"),
            (-62_198_755_200_000.0, "-000001-01-01T00:00:00.000Z"),
            (8.64e15, "+275760-09-13T00:00:00.000Z"),
            (-8.64e15, "-271821-04-20T00:00:00.000Z"),
        ] {
            assert_eq!(iso_date(ms).as_deref(), Some(text));
        }
        assert_eq!(iso_date(f64::NAN), None);
        assert_eq!(iso_date(8.64e15 + 1.0), None);
    }
}
