//! Dates and times as texts.
//!
//! In: the fields of a date in a zone, and [`DateOptions`]. Out: the parts of its text. The table has a pattern for each
//! combination of widths, as ICU finds it: `{` letter, width `}` stands for a field, and all else for itself.

use super::{
    Part,
    options::{Cycle, Length, Named, NumberWidth, TextWidth, ZoneName},
    zone::{Zone, ZoneTime},
};

const DATES: &str = include_str!("data/dates.txt");
const TIMES: &str = include_str!("data/times.txt");
/// Parts of a day, for each half of an hour: long, short and narrow.
const PERIODS: &str = include_str!("data/periods.txt");

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The width of a month: of its number or of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonthWidth {
    Number(NumberWidth),
    Text(TextWidth),
}

impl MonthWidth {
    pub(crate) const NAMES: &'static [&'static str] =
        &["2-digit", "numeric", "long", "short", "narrow"];

    pub(crate) fn of(name: &str) -> Option<Self> {
        TextWidth::of(name).map(Self::Text).or_else(|| NumberWidth::of(name).map(Self::Number))
    }

    fn index(self) -> usize {
        match self {
            Self::Number(width) => 1 + width as usize,
            Self::Text(width) => 3 + width as usize,
        }
    }
}

/// The options of a format, all of them resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DateOptions {
    pub(crate) weekday: Option<TextWidth>,
    pub(crate) era: Option<TextWidth>,
    pub(crate) year: Option<NumberWidth>,
    pub(crate) month: Option<MonthWidth>,
    pub(crate) day: Option<NumberWidth>,
    pub(crate) day_period: Option<TextWidth>,
    pub(crate) hour: Option<NumberWidth>,
    pub(crate) minute: Option<NumberWidth>,
    pub(crate) second: Option<NumberWidth>,
    /// Digits behind the seconds, or zero.
    pub(crate) fraction: u8,
    pub(crate) cycle: Cycle,
    pub(crate) zone_name: Option<ZoneName>,
    pub(crate) date_style: Option<Length>,
    pub(crate) time_style: Option<Length>,
    pub(crate) zone: Zone,
}

impl DateOptions {
    /// No fields at all.
    pub(crate) const NONE: Self = Self {
        weekday: None,
        era: None,
        year: None,
        month: None,
        day: None,
        day_period: None,
        hour: None,
        minute: None,
        second: None,
        fraction: 0,
        cycle: Cycle::H12,
        zone_name: None,
        date_style: None,
        time_style: None,
        zone: Zone::UTC,
    };

    pub(crate) fn has_date(&self) -> bool {
        self.weekday.is_some() || self.year.is_some() || self.month.is_some() || self.day.is_some()
    }

    pub(crate) fn has_time(&self) -> bool {
        self.day_period.is_some()
            || self.hour.is_some()
            || self.minute.is_some()
            || self.second.is_some()
            || self.fraction > 0
    }

    /// The pattern of all fields.
    pub(crate) fn pattern(&self) -> String {
        let is_style = self.date_style.is_some() || self.time_style.is_some();
        let (date, time) = if is_style { self.style_patterns() } else { self.field_patterns() };
        if date.is_empty() || time.is_empty() {
            return date + &time;
        }
        let is_at = match self.date_style {
            Some(style) => matches!(style, Length::Full | Length::Long),
            None => self.month == Some(MonthWidth::Text(TextWidth::Long)),
        };
        let is_weekday_alone = !is_style
            && self.weekday.is_some()
            && self.era.is_none()
            && self.year.is_none()
            && self.month.is_none()
            && self.day.is_none();
        let joins_weekday = is_weekday_alone
            && self.hour.is_some()
            && self.fraction == 0
            && self.zone_name.is_none()
            && (self.minute.is_some() || (self.second.is_none() && self.cycle.has_halves()));
        let between = match () {
            () if joins_weekday => " ",
            () if is_at => " at ",
            () => ", ",
        };
        format!("{date}{between}{time}")
    }

    fn style_patterns(&self) -> (String, String) {
        let date = self.date_style.map_or("", |style| match style {
            Length::Full => "{Wl}, {Ml} {dn}, {yn}",
            Length::Long => "{Ml} {dn}, {yn}",
            Length::Medium => "{Ms} {dn}, {yn}",
            Length::Short => "{Mn}/{dn}/{y2}",
        });
        let Some(style) = self.time_style else { return (date.to_owned(), String::new()) };
        let hour = if self.cycle.has_halves() { "{hn}" } else { "{h2}" };
        let second = if style == Length::Short { "" } else { ":{s2}" };
        let half = if self.cycle.has_halves() { "\u{202f}{a-}" } else { "" };
        let zone = if matches!(style, Length::Full | Length::Long) { " {z-}" } else { "" };
        (date.to_owned(), format!("{hour}:{{m2}}{second}{half}{zone}"))
    }

    fn field_patterns(&self) -> (String, String) {
        let text = |width: Option<TextWidth>| width.map_or(0, |width| 1 + width as usize);
        let number = |width: Option<NumberWidth>| width.map_or(0, |width| 1 + width as usize);
        let mut date = text(self.weekday);
        date = date * 4 + text(self.era);
        date = date * 3 + number(self.year);
        date = date * 6 + self.month.map_or(0, MonthWidth::index);
        date = date * 3 + number(self.day);
        let mut time = text(self.day_period);
        time = time * 3 + number(self.hour);
        time = time * 3 + number(self.minute);
        time = time * 3 + number(self.second);
        time = time * 4 + usize::from(self.fraction.min(3));
        time = time * 4 + self.cycle as usize;
        time = time * 2 + usize::from(self.zone_name.is_some());
        (looked_up(DATES, date).to_owned(), looked_up(TIMES, time).to_owned())
    }

    /// The parts of the text of a time.
    pub(crate) fn parts(&self, time: &ZoneTime) -> Vec<Part> {
        let pattern = self.pattern();
        let mut parts = Vec::new();
        let mut rest = pattern.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::new("literal", before));
            }
            let Some((field, after)) = after.split_once('}') else { break };
            let mut letters = field.chars();
            if let (Some(letter), Some(width)) = (letters.next(), letters.next()) {
                let (kind, text) = self.field(letter, width, time);
                parts.push(Part::new(kind, text));
            }
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::new("literal", rest));
        }
        parts
    }

    /// The part of the day; half hours stand for all that are not whole, as far as the format has minutes and seconds.
    fn period(&self, width: char, time: &ZoneTime) -> &'static str {
        let is_past = (self.minute.is_some() && time.minute > 0)
            || (self.second.is_some() && time.second > 0);
        let column = match width {
            'l' => 0,
            's' => 1,
            _ => 2,
        };
        let row = PERIODS.lines().nth(usize::from(time.hour) * 2 + usize::from(is_past));
        row.unwrap_or_default().split('|').nth(column).unwrap_or_default()
    }

    fn field(&self, letter: char, width: char, time: &ZoneTime) -> (&'static str, String) {
        let number = |value: i64| match width {
            '2' => format!("{:02}", value % 100),
            _ => value.to_string(),
        };
        let name = |name: &str| match width {
            's' => name.chars().take(3).collect(),
            'i' => name.chars().take(1).collect(),
            _ => name.to_owned(),
        };
        match letter {
            'W' => ("weekday", name(WEEKDAYS[time.weekday % 7])),
            'G' => {
                let names = match width {
                    'l' => ["Before Christ", "Anno Domini"],
                    's' => ["BC", "AD"],
                    _ => ["B", "A"],
                };
                ("era", names[usize::from(time.year > 0)].to_owned())
            }
            'y' => ("year", number(if time.year > 0 { time.year } else { 1 - time.year })),
            'M' if matches!(width, 'n' | '2') => ("month", number(i64::from(time.month))),
            'M' => ("month", name(MONTHS[usize::from(time.month + 11) % 12])),
            'd' => ("day", number(i64::from(time.day))),
            'h' => ("hour", number(self.cycle.hour(time.hour))),
            'm' => ("minute", number(i64::from(time.minute))),
            's' => ("second", number(i64::from(time.second))),
            'f' => {
                let digits = width.to_digit(10).and_then(|digits| usize::try_from(digits).ok());
                let all = format!("{:03}", time.millisecond);
                ("fractionalSecond", all.chars().take(digits.unwrap_or(3)).collect())
            }
            'a' => ("dayPeriod", if time.hour < 12 { "AM" } else { "PM" }.to_owned()),
            'B' => ("dayPeriod", self.period(width, time).to_owned()),
            _ => {
                let name = match self.time_style {
                    Some(Length::Full) => ZoneName::Long,
                    Some(_) => ZoneName::Short,
                    None => self.zone_name.unwrap_or(ZoneName::Short),
                };
                ("timeZoneName", self.zone.display(name, time))
            }
        }
    }
}

/// The pattern of a combination: the second section of a table has its line in the first.
fn looked_up(table: &'static str, combination: usize) -> &'static str {
    let (patterns, numbers) = table.split_once("\n\n").unwrap_or_default();
    // The first pattern is the empty one, so that its line is that before the first break.
    let number = numbers.split([' ', '\n']).nth(combination).unwrap_or_default();
    let line = usize::from_str_radix(number, 36).unwrap_or(0);
    patterns.split('\n').nth(line).unwrap_or_default()
}
