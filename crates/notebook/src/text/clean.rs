//! Bytes of a stream as characters: UTF-8, without escape sequences and control characters.
//!
//! In: bytes as they come, cut anywhere. Out: pieces of text, newlines and carriage returns. Invalid UTF-8 becomes U+FFFD.

/// A piece of cleaned text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Characters of one line.
    Text(&'t str),
    /// The end of a line.
    Newline,
    /// The line starts anew if more of it comes.
    Return,
}

/// The state of a stream between two chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cleaner {
    /// The beginning of a character whose end has not come.
    partial: Vec<u8>,
    escape: Escape,
}

/// The place in an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// In `ESC [ …`, up to a final byte.
    Control,
    /// In `ESC ] …` and its like, up to BEL or `ESC \`.
    Text,
    /// After ESC in such a text.
    TextEnds,
    /// In `ESC ( …`, up to a final byte.
    Charset,
}

impl Cleaner {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], mut out: impl FnMut(Piece<'_>)) {
        let joined;
        let mut rest = bytes;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            rest = &joined;
        }
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text, &mut out);
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.text(std::str::from_utf8(valid).unwrap_or_default(), &mut out);
                    let Some(wrong) = error.error_len() else {
                        self.partial = after.to_vec();
                        return;
                    };
                    self.text("\u{fffd}", &mut out);
                    rest = after.get(wrong..).unwrap_or_default();
                }
            }
        }
    }

    /// The stream has ended, or another one goes on.
    pub(crate) fn finish(&mut self, mut out: impl FnMut(Piece<'_>)) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.text("\u{fffd}", &mut out);
        }
        self.escape = Escape::None;
    }

    fn text(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        let mut plain = 0;
        for (at, letter) in text.char_indices() {
            let is_plain = self.escape == Escape::None && (letter == '\t' || !letter.is_control());
            if is_plain {
                continue;
            }
            if plain < at {
                out(Piece::Text(&text[plain..at]));
            }
            plain = at + letter.len_utf8();
            match (self.escape, letter) {
                (Escape::None, '\n') => out(Piece::Newline),
                (Escape::None, '\r') => out(Piece::Return),
                // An escape sequence does not span lines.
                (_, '\n') if self.escape != Escape::Text => {
                    self.escape = Escape::None;
                    out(Piece::Newline);
                }
                _ => self.escape = self.escape.after(letter),
            }
        }
        if plain < text.len() {
            out(Piece::Text(&text[plain..]));
        }
    }
}

impl Escape {
    fn after(self, letter: char) -> Self {
        match (self, letter) {
            (Self::None, '\u{1b}') => Self::Begun,
            (Self::None, '\u{9b}')
            | (Self::Begun | Self::TextEnds, '[')
            | (Self::Control, '\u{20}'..='\u{3f}') => Self::Control,
            (Self::Begun | Self::Charset, '\u{20}'..='\u{2f}') => Self::Charset,
            (Self::Text, '\u{1b}') => Self::TextEnds,
            (Self::None, '\u{9d}' | '\u{90}') | (Self::Begun, ']' | 'P' | 'X' | '^' | '_') => {
                Self::Text
            }
            (Self::Text, letter) if !matches!(letter, '\u{7}' | '\u{9c}') => Self::Text,
            _ => Self::None,
        }
    }
}

/// A whole text, cleaned: leading blank lines and trailing white space go, too.
pub(crate) fn cleaned(text: &str) -> String {
    let (mut lines, mut line, mut returned) = (String::new(), String::new(), false);
    let mut cleaner = Cleaner::default();
    cleaner.push(text.as_bytes(), |piece| match piece {
        Piece::Text(text) => {
            if std::mem::take(&mut returned) {
                line.clear();
            }
            line.push_str(text);
        }
        Piece::Newline => {
            returned = false;
            lines.push_str(&line);
            lines.push('\n');
            line.clear();
        }
        Piece::Return => returned = true,
    });
    lines.push_str(&line);
    trimmed(&lines).to_owned()
}

/// A text without leading blank lines and trailing white space.
pub(crate) fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.len() - text.trim_start().len();
    let start = text[..first].rfind('\n').map_or(0, |at| at + 1);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_go_and_returns_start_anew() {
        assert_eq!(cleaned("\u{1b}[31mred\u{1b}[0m\u{7}"), "red");
        assert_eq!(cleaned("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b"), "ab");
        assert_eq!(cleaned("10%\r20%\r30%\r\nend\r"), "30%\nend");
        assert_eq!(cleaned("\n  \n  a\n\n b \n \n"), "  a\n\n b");
        assert_eq!(cleaned("\u{1b}(Bx\u{1b}=y"), "xy");
        assert_eq!(cleaned("a\tb\u{0}\u{8}c"), "a\tbc");
    }

    #[test]
    fn chunks_may_be_cut_anywhere() {
        let bytes = "é\u{1b}[1mü\u{1b}[0m\u{1f600}\n".as_bytes();
        let mut cleaner = Cleaner::default();
        let mut text = String::new();
        for byte in bytes.iter().chain(b"\xffz\xc3") {
            cleaner.push(&[*byte], |piece| match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Newline => text.push('\n'),
                Piece::Return => text.push('\r'),
            });
        }
        cleaner.finish(|piece| assert_eq!(piece, Piece::Text("\u{fffd}")));
        assert_eq!(text, "éü\u{1f600}\n\u{fffd}z");
    }
}
