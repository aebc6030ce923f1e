//! Currencies: their digits, symbols and names.
//!
//! In: a code of three capital letters. Out: its row of the table, or nothing for a currency that the table lacks.

/// Rows of `code|digits|symbol|narrow symbol|name of one|name of several`; an empty field is that to its left, or the code.
const TABLE: &str = include_str!("data/currencies.txt");

/// A currency of the table.
pub(crate) struct Currency<'c> {
    pub(crate) digits: u8,
    pub(crate) symbol: &'c str,
    pub(crate) narrow: &'c str,
    pub(crate) one: &'c str,
    pub(crate) other: &'c str,
}

impl<'c> Currency<'c> {
    /// The currency of a code, which stands for all texts of one that the table lacks.
    pub(crate) fn of(code: &'c str) -> Self {
        let row = TABLE.lines().find_map(|row| row.strip_prefix(code)?.strip_prefix('|'));
        let mut fields = row.unwrap_or("2").split('|');
        let digits = fields.next().and_then(|digits| digits.parse().ok()).unwrap_or(2);
        let mut field = |absent| fields.next().filter(|text| !text.is_empty()).unwrap_or(absent);
        let symbol = field(code);
        let narrow = field(symbol);
        let one = field(code);
        let other = field(one);
        Self { digits, symbol, narrow, one, other }
    }
}

/// Whether a symbol and a number have a blank between them: where the symbol ends with a letter or a point.
pub(crate) fn is_apart(symbol: &str) -> bool {
    let is_sign = |last: char| {
        matches!(
            last,
            '$' | '£' | '¥' | '¤' | '֏' | '؋' | '৲' | '৳' | '฿' | '៛' | '\u{20a0}'
                ..='\u{20cf}' | '~' | '+' | '|'
        )
    };
    symbol.chars().last().is_some_and(|last| !is_sign(last))
}
