//! A text as a date, as V8 reads it.
//!
//! In: a text as bytes of UTF-8. Out: the parts of a date and a time, which exist in the calendar or nearly do, or `None`.
//! The form of the language (ISO 8601) is tried first. The rest of the text after it, or all of it, is read as the
//! dates of logs, mails and tables are written: words before the first number mean nothing, and neither does a text in
//! parentheses; a number before a colon is a part of a time.

use super::tokens::{Token, Tokens, Word};

/// The parts of a date and a time that a text gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) year: i32,
    /// From 1.
    pub(super) month: i32,
    pub(super) day: i32,
    /// Hour, minute, second and millisecond.
    pub(super) time: [i32; 4],
    /// Seconds east of UTC; `None` is local time.
    pub(super) offset_seconds: Option<i64>,
}

/// Years are small integers in V8.
const LARGEST_YEAR: i32 = (1 << 30) - 1;

/// Digits of a fraction that count.
const FRACTION_DIGITS: usize = 9;

/// The parts that a text gives; `None` where it is no date.
pub(super) fn parse(text: &[u8]) -> Option<Parts> {
    let mut tokens = Tokens::new(text);
    let mut draft = Draft::default();
    let mut token = draft.iso(&mut tokens)?;
    let mut has_read_number = draft.day.count > 0;
    while token != Token::End {
        draft.legacy(token, &mut tokens, &mut has_read_number)?;
        token = tokens.next();
    }
    let (year, month, day) = draft.day.finish()?;
    let time = draft.time.finish()?;
    let offset_seconds = draft.zone.finish()?;
    Some(Parts { year, month, day, time, offset_seconds })
}

/// The parts as far as they are read.
#[derive(Default)]
struct Draft {
    day: Day,
    time: Time,
    zone: Zone,
}

impl Draft {
    /// Reads the language's own form. Out: the first token that does not belong to it, or `None` if no form can follow.
    fn iso(&mut self, tokens: &mut Tokens) -> Option<Token> {
        if let Some(sign) = tokens.peek().sign() {
            let token = tokens.next();
            let Some(year) = tokens.peek().fixed(6).filter(|year| sign > 0 || *year != 0) else {
                // The sign is not kept: it is read again as what it is.
                if tokens.peek().fixed(6).is_some() {
                    tokens.next();
                }
                return Some(token);
            };
            tokens.next();
            self.day.add(sign * year);
        } else if let Some(year) = tokens.peek().fixed(4) {
            tokens.next();
            self.day.add(year);
        } else {
            return Some(tokens.next());
        }
        for most in [12, 31] {
            if !tokens.skip(b'-') {
                break;
            }
            let part = tokens.peek().fixed(2).filter(|part| (1..=most).contains(part));
            let Some(part) = part else { return Some(tokens.next()) };
            tokens.next();
            self.day.add(part);
        }
        if tokens.peek() == Token::Word(Word::Separator) {
            tokens.next();
            self.iso_time(tokens)?;
        } else if tokens.peek() != Token::End {
            return Some(tokens.next());
        }
        if self.zone.hour.is_none() && self.time.count == 0 {
            self.zone.set(0);
        }
        self.day.is_iso = true;
        Some(Token::End)
    }

    /// Reads the time after the `T`, to the end of the text.
    fn iso_time(&mut self, tokens: &mut Tokens) -> Option<()> {
        let mut part = |tokens: &mut Tokens, most: i32| -> Option<i32> {
            let part = tokens.peek().fixed(2).filter(|part| *part <= most)?;
            tokens.next();
            self.time.add(part);
            Some(part)
        };
        let hour = part(tokens, 24)?;
        // 24:00 is the end of a day.
        let most = if hour == 24 { 0 } else { 59 };
        tokens.skip(b':').then_some(())?;
        part(tokens, most)?;
        if tokens.skip(b':') {
            part(tokens, most)?;
            if tokens.skip(b'.') {
                let Token::Number(value, length) = tokens.next() else { return None };
                if hour == 24 && value > 0 {
                    return None;
                }
                self.time.add(milliseconds(value, length));
            }
        }
        if tokens.peek().is_z() {
            tokens.next();
            self.zone.set(0);
        } else if let Some(sign) = tokens.peek().sign() {
            tokens.next();
            self.zone.sign = Some(sign);
            let (hour, minute) = match tokens.peek().fixed(4) {
                Some(both) => {
                    tokens.next();
                    (both / 100, both % 100)
                }
                None => {
                    let hour = tokens.next().fixed(2)?;
                    tokens.skip(b':').then_some(())?;
                    (hour, tokens.next().fixed(2)?)
                }
            };
            if hour > 23 || minute > 59 {
                return None;
            }
            self.zone.hour = Some(hour);
            self.zone.minute = Some(minute);
        }
        (tokens.peek() == Token::End).then_some(())
    }

    /// Reads a token of all other forms.
    fn legacy(&mut self, token: Token, tokens: &mut Tokens, has_number: &mut bool) -> Option<()> {
        match token {
            Token::Number(value, _) => {
                *has_number = true;
                self.legacy_number(value, tokens)?;
            }
            Token::Word(word) => match word {
                Word::HalfDay(hours) if self.time.count > 0 => self.time.half_day = Some(hours),
                Word::Month(month) => {
                    self.day.named_month = Some(month);
                    tokens.skip(b'-');
                }
                Word::Zone(hours, _) if *has_number => self.zone.set(hours),
                // Any other word is refused after a number, and right before one.
                _ if *has_number || matches!(tokens.peek(), Token::Number(..)) => return None,
                _ => {}
            },
            Token::Symbol(b'+' | b'-') if self.zone.is_utc() || self.time.count > 0 => {
                self.zone.sign = token.sign();
                *has_number = true;
                self.legacy_offset(tokens)?;
            }
            Token::Symbol(b'+' | b'-' | b')') if *has_number => return None,
            _ => {}
        }
        Some(())
    }

    fn legacy_number(&mut self, value: i32, tokens: &mut Tokens) -> Option<()> {
        if tokens.skip(b':') {
            if tokens.skip(b':') {
                // One colon more stands for a part that is zero.
                (self.time.count == 0).then_some(())?;
                self.time.add(value);
                self.time.add(0);
            } else {
                self.time.add(value).then_some(())?;
                tokens.skip(b'.');
            }
        } else if self.time.expects(value) && tokens.peek() == Token::Symbol(b'.') {
            tokens.next();
            self.time.add(value);
            let Token::Number(value, length) = tokens.next() else { return None };
            self.time.add_last(milliseconds(value, length));
        } else {
            tokens.skip(b'.');
            if self.zone.expects(value) {
                self.zone.minute = Some(value);
            } else if self.time.expects(value) {
                self.time.add_last(value);
                let after = tokens.peek();
                let may_follow = matches!(after, Token::End | Token::Blank)
                    || after.is_z()
                    || after.sign().is_some();
                may_follow.then_some(())?;
            } else {
                self.day.add(value).then_some(())?;
                tokens.skip(b'-');
            }
        }
        Some(())
    }

    /// Reads the number after the sign of an offset, which may be missing.
    fn legacy_offset(&mut self, tokens: &mut Tokens) -> Option<()> {
        let (mut value, mut length) = (0, 0);
        if let Token::Number(found, digits) = tokens.peek() {
            tokens.next();
            (value, length) = (found, digits);
        }
        let (hour, minute) = match length {
            _ if tokens.peek() == Token::Symbol(b':') => (value, None),
            1 | 2 => (value, Some(0)),
            3 | 4 => (value / 100, Some(value % 100)),
            _ => return None,
        };
        self.zone.hour = Some(hour);
        self.zone.minute = minute;
        Some(())
    }
}

/// Milliseconds of a fraction of a second with so many digits.
fn milliseconds(value: i32, digits: usize) -> i32 {
    match digits {
        1 => value * 100,
        2 => value * 10,
        3 => value,
        // Exponents up to six.
        _ => value / 10_i32.pow(u32::try_from(digits.min(FRACTION_DIGITS) - 3).unwrap_or(0)),
    }
}

/// Numbers of a date in the order in which they stand.
#[derive(Default)]
struct Day {
    parts: [i32; 3],
    count: usize,
    named_month: Option<i32>,
    is_iso: bool,
}

impl Day {
    fn add(&mut self, part: i32) -> bool {
        let Some(place) = self.parts.get_mut(self.count) else { return false };
        *place = part;
        self.count += 1;
        true
    }

    /// Year, month and day.
    fn finish(mut self) -> Option<(i32, i32, i32)> {
        let is_day = |value: i32| (1..=31).contains(&value);
        if self.count == 0 {
            return None;
        }
        while self.add(1) {}
        let [first, second, third] = self.parts;
        let (mut year, month, day) = match self.named_month {
            None if self.is_iso || !is_day(first) => (first, second, third),
            None => (third, first, second),
            Some(month) if !is_day(first) => (first, month, second),
            Some(month) => (second, month, first),
        };
        if !self.is_iso {
            year += match year {
                0..=49 => 2000,
                50..=99 => 1900,
                _ => 0,
            };
        }
        let exists = year.abs() <= LARGEST_YEAR && (1..=12).contains(&month) && is_day(day);
        exists.then_some((year, month, day))
    }
}

/// Numbers of a time in the order in which they stand.
#[derive(Default)]
struct Time {
    parts: [i32; 4],
    count: usize,
    /// The hours that AM or PM adds.
    half_day: Option<i32>,
}

impl Time {
    fn add(&mut self, part: i32) -> bool {
        let Some(place) = self.parts.get_mut(self.count) else { return false };
        *place = part;
        self.count += 1;
        true
    }

    /// Adds the last part that is given.
    fn add_last(&mut self, part: i32) {
        self.add(part);
        self.count = self.parts.len();
    }

    /// Whether a number may be the next part, after a colon or a point.
    fn expects(&self, value: i32) -> bool {
        match self.count {
            1 | 2 => (0..60).contains(&value),
            3 => (0..1000).contains(&value),
            _ => false,
        }
    }

    fn finish(mut self) -> Option<[i32; 4]> {
        if let Some(hours) = self.half_day {
            (self.parts[0] <= 12).then_some(())?;
            self.parts[0] = self.parts[0] % 12 + hours;
        }
        let [hour, minute, second, millisecond] = self.parts;
        let exists = hour < 24 && minute < 60 && second < 60 && millisecond < 1000;
        (exists || self.parts == [24, 0, 0, 0]).then_some(self.parts)
    }
}

/// The offset of a zone from UTC.
#[derive(Default)]
struct Zone {
    sign: Option<i32>,
    hour: Option<i32>,
    minute: Option<i32>,
}

impl Zone {
    fn set(&mut self, hours: i32) {
        self.sign = Some(if hours < 0 { -1 } else { 1 });
        self.hour = Some(hours.abs());
        self.minute = Some(0);
    }

    fn is_utc(&self) -> bool {
        self.hour == Some(0) && self.minute == Some(0)
    }

    /// Whether a number may be the minutes, after the hours and a colon.
    fn expects(&self, value: i32) -> bool {
        self.hour.is_some() && self.minute.is_none() && (0..60).contains(&value)
    }

    /// Seconds; the outer `None` is an offset that is too large.
    #[expect(clippy::option_option, reason = "no offset differs from an impossible one")]
    fn finish(self) -> Option<Option<i64>> {
        let Some(sign) = self.sign else { return Some(None) };
        let seconds =
            i64::from(self.hour.unwrap_or(0)) * 3600 + i64::from(self.minute.unwrap_or(0)) * 60;
        (seconds <= i64::from(LARGEST_YEAR)).then_some(Some(i64::from(sign) * seconds))
    }
}
