//! The tokens of a text that is read as a date.
//!
//! In: a text as bytes of UTF-8. Out: one [`Token`] after the other, and [`Token::End`] for ever after. Blanks, signs and
//! words are the same as V8's; a zero byte ends the text there too.

/// The least character of a word: all letters, some signs, and everything beyond ASCII.
const LEAST_OF_WORDS: u8 = b'A';

/// Digits of a number that count; the rest only make it longer.
const SIGNIFICANT_DIGITS: usize = 9;

/// Characters that decide which word a word is.
pub(super) const PREFIX: usize = 3;

/// Blanks beyond ASCII. V8 reads the line breaks there as parts of words.
const BLANKS: [&[u8]; 17] = [
    "\u{a0}".as_bytes(),
    "\u{1680}".as_bytes(),
    "\u{2000}".as_bytes(),
    "\u{2001}".as_bytes(),
    "\u{2002}".as_bytes(),
    "\u{2003}".as_bytes(),
    "\u{2004}".as_bytes(),
    "\u{2005}".as_bytes(),
    "\u{2006}".as_bytes(),
    "\u{2007}".as_bytes(),
    "\u{2008}".as_bytes(),
    "\u{2009}".as_bytes(),
    "\u{200a}".as_bytes(),
    "\u{202f}".as_bytes(),
    "\u{205f}".as_bytes(),
    "\u{3000}".as_bytes(),
    "\u{feff}".as_bytes(),
];

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Its value, and the count of its digits.
    Number(i32, usize),
    /// One of `:`, `-`, `+`, `.` and `)`.
    Symbol(u8),
    Blank,
    Word(Word),
    /// Something that means nothing, among it a text in parentheses.
    Unknown,
    End,
}

/// A word, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// From 1.
    Month(i32),
    /// The hours that it adds.
    HalfDay(i32),
    /// The hours of its offset, and whether it is the one letter `Z`.
    Zone(i32, bool),
    /// The letter between a date and a time.
    Separator,
    Other,
}

impl Token {
    /// The value of a number that has exactly so many digits.
    pub(super) fn fixed(self, digits: usize) -> Option<i32> {
        match self {
            Self::Number(value, length) if length == digits => Some(value),
            _ => None,
        }
    }

    /// The sign that it is: 1 or -1.
    pub(super) fn sign(self) -> Option<i32> {
        match self {
            Self::Symbol(b'+') => Some(1),
            Self::Symbol(b'-') => Some(-1),
            _ => None,
        }
    }

    pub(super) fn is_z(self) -> bool {
        matches!(self, Self::Word(Word::Zone(_, true)))
    }
}

/// The tokens of a text, of which one is known ahead.
pub(super) struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
    ahead: Token,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        let mut tokens = Self { text, at: 0, ahead: Token::End };
        tokens.ahead = tokens.scan();
        tokens
    }

    pub(super) fn peek(&self) -> Token {
        self.ahead
    }

    pub(super) fn next(&mut self) -> Token {
        let next = self.scan();
        std::mem::replace(&mut self.ahead, next)
    }

    /// Goes past a symbol, if that is next.
    pub(super) fn skip(&mut self, symbol: u8) -> bool {
        let found = self.ahead == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    /// The next byte, which is zero at the end.
    fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn scan(&mut self) -> Token {
        match self.byte() {
            0 => Token::End,
            b'0'..=b'9' => self.number(),
            symbol @ (b':' | b'-' | b'+' | b'.' | b')') => {
                self.at += 1;
                Token::Symbol(symbol)
            }
            b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | b' ' => {
                self.at += 1;
                Token::Blank
            }
            b'(' => {
                self.parentheses();
                Token::Unknown
            }
            LEAST_OF_WORDS.. => match self.wide_blank() {
                Some(length) => {
                    self.at += length;
                    Token::Blank
                }
                None => self.word(),
            },
            _ => {
                self.at += 1;
                Token::Unknown
            }
        }
    }

    fn number(&mut self) -> Token {
        let start = self.at;
        while self.byte() == b'0' {
            self.at += 1;
        }
        let (mut value, first) = (0_i32, self.at);
        while self.byte().is_ascii_digit() {
            if self.at - first < SIGNIFICANT_DIGITS {
                value = value * 10 + i32::from(self.byte() - b'0');
            }
            self.at += 1;
        }
        Token::Number(value, self.at - start)
    }

    /// Goes past a text in parentheses, which may be nested, and may end with the whole text.
    fn parentheses(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.byte() {
                b'(' => depth += 1,
                b')' => depth -= 1,
                0 => return,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    fn wide_blank(&self) -> Option<usize> {
        if !matches!(self.byte(), 0xc2 | 0xe1..=0xe3 | 0xef) {
            return None;
        }
        let rest = self.text.get(self.at..)?;
        BLANKS.iter().find(|blank| rest.starts_with(blank)).map(|blank| blank.len())
    }

    fn word(&mut self) -> Token {
        let (mut prefix, mut length) = ([0; PREFIX], 0);
        while self.byte() >= LEAST_OF_WORDS && self.wide_blank().is_none() {
            if let Some(place) = prefix.get_mut(length) {
                *place = self.byte() | 0x20;
            }
            length += 1;
            self.at += 1;
        }
        Token::Word(meaning(prefix, length))
    }
}

/// The meaning of a word by its first characters. Months alone may be longer.
fn meaning(prefix: [u8; PREFIX], length: usize) -> Word {
    let month = match &prefix {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => 0,
    };
    if month != 0 {
        return Word::Month(month);
    }
    if length > PREFIX {
        return Word::Other;
    }
    match &prefix {
        b"am\0" => Word::HalfDay(0),
        b"pm\0" => Word::HalfDay(12),
        b"ut\0" | b"utc" | b"gmt" => Word::Zone(0, false),
        b"z\0\0" => Word::Zone(0, true),
        b"est" | b"cdt" => Word::Zone(-5, false),
        b"edt" => Word::Zone(-4, false),
        b"cst" | b"mdt" => Word::Zone(-6, false),
        b"mst" | b"pdt" => Word::Zone(-7, false),
        b"pst" => Word::Zone(-8, false),
        b"t\0\0" => Word::Separator,
        _ => Word::Other,
    }
}
