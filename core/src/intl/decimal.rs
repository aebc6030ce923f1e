//! Decimal numbers of any length, and their rounding.
//!
//! In: the shortest text of a double, or a text of digits. Out: digits around a point, rounded as a [`Mode`] says.

use super::options::Mode;

/// A number without its sign: its digits stand behind a point, times a power of ten.
///
/// There are no zeros at either end. No digits at all are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: Vec<u8>,
    /// Digits before the point; negative for zeros behind the point.
    point: i32,
}

impl Decimal {
    /// The shortest number that gives that double.
    pub(crate) fn of_double(value: f64) -> Self {
        Self::of_text(&format!("{:e}", value.abs()))
    }

    /// A number of digits, perhaps a point, and perhaps an exponent; anything else in the text is left out.
    pub(crate) fn of_text(text: &str) -> Self {
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let whole = number.split('.').next().unwrap_or_default();
        let count = whole.bytes().filter(u8::is_ascii_digit).count();
        let digits = number.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        Self { digits, point: count.saturating_add(exponent) }.trimmed()
    }

    fn trimmed(mut self) -> Self {
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self.point = if self.digits.is_empty() {
            0
        } else {
            self.point.saturating_sub(i32::try_from(zeros).unwrap_or(i32::MAX))
        };
        self
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of the first digit; zero for zero.
    pub(crate) fn magnitude(&self) -> i32 {
        if self.is_zero() { 0 } else { self.point.saturating_sub(1) }
    }

    /// Multiplies by a power of ten.
    pub(crate) fn shift(&mut self, power: i32) {
        if !self.is_zero() {
            self.point = self.point.saturating_add(power);
        }
    }

    /// The digit at a power of ten.
    fn digit(&self, power: i32) -> u8 {
        let index = i64::from(self.point) - 1 - i64::from(power);
        usize::try_from(index).ok().and_then(|index| self.digits.get(index)).copied().unwrap_or(0)
    }

    /// Rounds to a multiple of a power of ten, times an increment.
    pub(crate) fn round(&mut self, power: i32, increment: u32, mode: Mode, is_negative: bool) {
        let kept = usize::try_from(i64::from(self.point) - i64::from(power));
        let mut whole: Vec<u8> = match kept {
            Ok(kept) => self.digits.iter().copied().take(kept).collect(),
            Err(_) => Vec::new(),
        };
        if let Ok(kept) = kept {
            if increment == 1 && kept >= self.digits.len() {
                return;
            }
            // Bounded: an increment comes with a fraction of at most twenty digits.
            whole.resize(kept, 0);
        }
        let rest = self.digits.get(kept.unwrap_or(0)..).unwrap_or_default();
        let rest_to_half = match rest {
            _ if kept.is_err() => std::cmp::Ordering::Less,
            [] => std::cmp::Ordering::Less,
            [5] => std::cmp::Ordering::Equal,
            [first, ..] => first.cmp(&5).then(std::cmp::Ordering::Greater),
        };
        let has_rest = !rest.is_empty();
        let remainder = divide(&mut whole, increment);
        let to_half = match (2 * remainder).cmp(&increment) {
            std::cmp::Ordering::Equal if has_rest => std::cmp::Ordering::Greater,
            std::cmp::Ordering::Less if 2 * remainder + 1 == increment => rest_to_half,
            order => order,
        };
        let is_odd = whole.last().is_some_and(|digit| digit % 2 == 1);
        if mode.goes_away(to_half, remainder > 0 || has_rest, is_negative, is_odd) {
            add_one(&mut whole);
        }
        multiply(&mut whole, increment);
        let count = i32::try_from(whole.len()).unwrap_or(i32::MAX);
        *self = Self { digits: whole, point: count.saturating_add(power) }.trimmed();
    }

    /// The digits before the point, at least so many.
    pub(crate) fn whole_text(&self, least: i32) -> String {
        (0..self.point.max(least)).rev().map(|power| char::from(b'0' + self.digit(power))).collect()
    }

    /// The digits behind the point, at least so many.
    pub(crate) fn fraction_text(&self, least: i32) -> String {
        let count = self.fraction_count().max(least);
        (1..=count).map(|place| char::from(b'0' + self.digit(-place))).collect()
    }

    /// The count of digits behind the point.
    pub(crate) fn fraction_count(&self) -> i32 {
        let count = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        count.saturating_sub(self.point).max(0)
    }

    /// The last two digits before the point.
    pub(crate) fn last_two(&self) -> u8 {
        self.digit(1) * 10 + self.digit(0)
    }

    /// Whether it is that small number.
    pub(crate) fn is(&self, value: u8) -> bool {
        self.digits == [value] && self.point == 1
    }
}

/// Divides digits by a small number, and gives the remainder.
fn divide(digits: &mut [u8], by: u32) -> u32 {
    if by == 1 {
        return 0;
    }
    let mut remainder = 0;
    for digit in digits {
        let value = remainder * 10 + u32::from(*digit);
        *digit = u8::try_from(value / by).unwrap_or(9);
        remainder = value % by;
    }
    remainder
}

fn add_one(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

fn multiply(digits: &mut Vec<u8>, by: u32) {
    if by == 1 {
        return;
    }
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let value = u32::from(*digit) * by + carry;
        *digit = u8::try_from(value % 10).unwrap_or(0);
        carry = value / 10;
    }
    while carry > 0 {
        digits.insert(0, u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
}
