//! Lines, wrapped to the columns of a terminal.
//!
//! In: a text that is safe to show. Out: rows, none wider than asked for, as a terminal counts: wide characters have two
//! columns, combining ones none. Tabs become blanks.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns of a tab.
const TAB: usize = 4;

/// The rows of a text. `width` must be [`TAB`] at least, so that everything fits.
pub(super) fn rows(text: &str, width: usize) -> Vec<String> {
    let mut rows = Rows { width, done: Vec::new(), row: String::new(), columns: 0 };
    for line in text.split('\n') {
        for cluster in line.graphemes(true) {
            let wide = cluster.width();
            if cluster == "\t" {
                let blanks = TAB - rows.columns % TAB;
                rows.put(&" ".repeat(blanks), blanks);
            } else if wide > 2 {
                // Some scripts join any number of letters.
                for letter in cluster.chars() {
                    rows.put(letter.encode_utf8(&mut [0; 4]), letter.width().unwrap_or(0));
                }
            } else {
                rows.put(cluster, wide);
            }
        }
        rows.end();
    }
    rows.done
}

struct Rows {
    width: usize,
    done: Vec<String>,
    row: String,
    columns: usize,
}

impl Rows {
    fn put(&mut self, text: &str, columns: usize) {
        if self.columns + columns > self.width {
            self.end();
        }
        self.row.push_str(text);
        self.columns += columns;
    }

    fn end(&mut self) {
        self.done.push(std::mem::take(&mut self.row));
        self.columns = 0;
    }
}

/// The columns of a text on one line without tabs.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_no_wider_than_the_terminal() {
        assert_eq!(rows("abcdef\n\ngh", 4), ["abcd", "ef", "", "gh"]);
        assert_eq!(rows("担当者", 5), ["担当", "者"]);
        assert_eq!(rows("e\u{301}e\u{301}abcd", 5), ["e\u{301}e\u{301}abc", "d"]);
        assert_eq!(rows("a\tb", 8), ["a   b"]);
        assert_eq!(rows("abcde\tb", 7), ["abcde", "   b"]);
        // A family of one emoji is not torn.
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(rows(&family.repeat(4), 4), [family.repeat(2), family.repeat(2)]);
        for text in ["x担", "क्", "ᄀ", "e\u{301}", "👩\u{200d}", "\u{fe0f}"] {
            let text = text.repeat(20_000);
            let long = rows(&text, 79);
            assert!(long.iter().all(|row| columns(row) <= 79), "{text:.9}");
            assert_eq!(long.concat(), text);
        }
    }
}
