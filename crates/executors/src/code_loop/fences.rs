//! Fenced blocks of code in a text.
//!
//! In: the delimiters of blocks, and a text that grows. Out: the first block that is closed and not empty. The time is
//! proportional to the text, whatever is in it and in whatever pieces it comes: what is known about one place is kept,
//! and no text is searched twice for the same delimiter.

use std::ops::Range;

use crate::CodeBlockDelimiters;

/// A block in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The place of the opening delimiter.
    pub(super) start: usize,
    /// The code.
    pub(super) code: Range<usize>,
    /// The place behind the closing delimiter.
    pub(super) end: usize,
    /// The word of the fence; empty for `tool_code`, and for delimiters that are no fence with a word.
    pub(super) language: String,
}

/// Finds the first block of a text that grows.
#[derive(Debug)]
pub(super) struct Finder {
    /// The opening delimiters, the longest first.
    openings: Vec<Opening>,
    /// The closing delimiters, each once.
    closings: Vec<Closing>,
    /// Findings about openings before this place stay true when the text grows.
    from: usize,
    /// The openings before that place that are not closed so far, in order. One that is closed no earlier than another
    /// before it is left out, so there are few.
    unclosed: Vec<Open>,
}

#[derive(Debug)]
struct Opening {
    text: String,
    /// The index of its closing delimiter.
    closing: usize,
    /// The line break that ends an opening delimiter may be the one that begins the closing one.
    shared: usize,
}

/// An opening delimiter in the text.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: usize,
    /// The index of the opening delimiter.
    opening: usize,
    /// The place from which on its closing delimiter counts.
    closed_from: usize,
}

impl Finder {
    pub(super) fn new(delimiters: &[CodeBlockDelimiters]) -> Self {
        let (mut openings, mut closings) = (Vec::new(), Vec::<Closing>::new());
        for (opening, text) in delimiters {
            let known = closings.iter().position(|closing| closing.text == *text);
            let closing = known.unwrap_or(closings.len());
            if known.is_none() {
                closings.push(Closing::new(text));
            }
            let shared = usize::from(opening.ends_with('\n') && text.starts_with('\n'));
            openings.push(Opening { text: opening.clone(), closing, shared });
        }
        // Of those of one length the first counts.
        openings.sort_by_key(|opening| std::cmp::Reverse(opening.text.len()));
        Self { openings, closings, from: 0, unclosed: Vec::new() }
    }

    /// The first block of the text, which begins with the text of the call before.
    pub(super) fn find(&mut self, text: &str) -> Option<Block> {
        for index in 0..self.unclosed.len() {
            let open = self.unclosed[index];
            let Some((code, end)) = self.close(text, open) else { continue };
            if !is_blank(&text[code.clone()]) {
                return Some(self.block(open, code, end));
            }
            // It reaches beyond all that was seen.
            self.unclosed.truncate(index);
            self.from = end;
            break;
        }
        let longest = self.openings.first()?.text.len();
        let mut at = self.from;
        let mut is_settled = true;
        while let Some(start) = line_start(text, at) {
            if is_settled {
                self.from = start;
            }
            // A longer delimiter may yet come of a text that ends here.
            is_settled &= start + longest <= text.len();
            at = start + 1;
            let Some(open) = self.opening(text, start) else { continue };
            match self.close(text, open) {
                None if is_settled => self.keep(open),
                None => {}
                Some((code, end)) if is_blank(&text[code.clone()]) => at = end,
                Some((code, end)) => return Some(self.block(open, code, end)),
            }
        }
        if is_settled {
            self.from = text.len();
        }
        None
    }

    /// The longest opening delimiter at that place.
    fn opening(&self, text: &str, start: usize) -> Option<Open> {
        let rest = text.get(start..)?;
        let opening = self.openings.iter().position(|opening| rest.starts_with(&opening.text))?;
        let Opening { text, shared, .. } = &self.openings[opening];
        Some(Open { start, opening, closed_from: start + text.len() - shared })
    }

    /// The code behind an opening delimiter, and the place behind the closing one.
    fn close(&mut self, text: &str, open: Open) -> Option<(Range<usize>, usize)> {
        let opening = &self.openings[open.opening];
        let closing = &mut self.closings[opening.closing];
        let at = closing.next(text, open.closed_from)?;
        let behind = open.start + opening.text.len();
        Some((behind..at.max(behind), at + closing.text.len()))
    }

    /// Keeps an opening that has no closing so far.
    fn keep(&mut self, open: Open) {
        let closing = |open: &Open| self.openings[open.opening].closing;
        let is_closed_first = |other: &Open| {
            closing(other) == closing(&open) && other.closed_from <= open.closed_from
        };
        if !self.unclosed.iter().any(is_closed_first) {
            self.unclosed.push(open);
        }
    }

    fn block(&self, open: Open, code: Range<usize>, end: usize) -> Block {
        let language = language(&self.openings[open.opening].text);
        Block { start: open.start, code, end, language }
    }
}

/// A closing delimiter, and its place in the text.
#[derive(Debug)]
struct Closing {
    text: String,
    /// There is none from this place up to the one that was found, or up to the end of what was searched.
    from: usize,
    found: Option<usize>,
    searched: usize,
}

impl Closing {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), from: 0, found: None, searched: 0 }
    }

    /// The first one from that place on. Asked for places that go forward, or back by no more than the length of a
    /// delimiter, it looks at each byte once.
    fn next(&mut self, text: &str, from: usize) -> Option<usize> {
        if from < self.from {
            let end = text.ceil_char_boundary(self.from + self.text.len());
            if let Some(at) = text[from..end].find(&self.text) {
                return Some(from + at);
            }
        }
        loop {
            match self.found {
                Some(at) if at >= from => return Some(at),
                Some(_) => (self.from, self.found, self.searched) = (from, None, from),
                None if self.searched >= text.len() => return None,
                None => {
                    // The beginning of one may be the end of what was searched.
                    let begin = (self.searched + 1).saturating_sub(self.text.len());
                    let begin = text.floor_char_boundary(begin).max(self.from);
                    self.found = text[begin..].find(&self.text).map(|at| begin + at);
                    self.searched = text.len();
                }
            }
        }
    }
}

/// The first line that begins at that place or behind it, unless the text ends there.
fn line_start(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let start = match from.checked_sub(1) {
        Some(before) => before + bytes.get(before..)?.iter().position(|&byte| byte == b'\n')? + 1,
        None => 0,
    };
    (start < bytes.len()).then_some(start)
}

fn is_blank(code: &str) -> bool {
    code.chars().all(char::is_whitespace)
}

/// The language that a fence names.
fn language(opening: &str) -> String {
    let word = opening.strip_prefix("```").and_then(|rest| rest.strip_suffix('\n'));
    let is_word = |word: &&str| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-#.".contains(&byte))
    };
    match word.filter(is_word) {
        None | Some("tool_code") => String::new(),
        Some(word) => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::LazyLock,
        time::{Duration, Instant},
    };

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<CodeBlockDelimiters> {
        pairs.iter().map(|&(opening, closing)| (opening.to_owned(), closing.to_owned())).collect()
    }

    fn delimiters() -> Vec<CodeBlockDelimiters> {
        pairs(&[("```tool_code\n", "\n```"), ("```python\n", "\n```"), ("<code>", "</code>")])
    }

    fn first_block(text: &str, delimiters: &[CodeBlockDelimiters]) -> Option<Block> {
        Finder::new(delimiters).find(text)
    }

    fn found(text: &str) -> Option<(String, String, usize)> {
        let block = first_block(text, &delimiters())?;
        Some((block.language, text[block.code].to_owned(), block.end))
    }

    fn block(language: &str, code: &str, end: usize) -> (String, String, usize) {
        (language.to_owned(), code.to_owned(), end)
    }

    #[test]
    fn blocks_begin_at_the_start_of_a_line() {
        assert_eq!(found("```python\nx\n```"), Some(block("python", "x", 15)));
        assert_eq!(found("so:\n```tool_code\nx\n```\nthen"), Some(block("", "x", 22)));
        assert_eq!(found("so: ```python\nx\n```"), None);
        assert_eq!(found("a\n<code>x</code>"), Some(block("", "x", 16)));
    }

    #[test]
    fn empty_and_unclosed_blocks_do_not_count() {
        assert_eq!(found("```python\n```\n```python\ny\n```"), Some(block("python", "y", 29)));
        assert_eq!(found("```python\n \n\n```"), None);
        assert_eq!(found("```python\nx"), None);
        assert_eq!(found("<code>\n```python\nx\n```"), Some(block("python", "x", 22)));
        assert_eq!(found("```ruby\nx\n```"), None);
    }

    #[test]
    fn a_block_never_ends_earlier_when_the_text_grows() {
        let text = "é\n<code>\n```python\n```\n```python\nx\n```\n</code> ```python\ny\n```";
        let mut last = 0;
        for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
            let block = first_block(&text[..end], &delimiters());
            assert!(
                block.as_ref().map_or(last == 0, |block| block.end >= last),
                "{end}: {block:?}"
            );
            last = block.map_or(0, |block| block.end);
        }
    }

    /// The rule, in as many steps as it takes.
    fn simple_first_block(text: &str, delimiters: &[CodeBlockDelimiters]) -> Option<Block> {
        let mut from = 0;
        loop {
            let places = text.char_indices().map(|(at, _)| at).filter(|&at| at >= from);
            let mut lines = places.filter(|&at| at == 0 || text[..at].ends_with('\n'));
            let (start, (opening, closing)) = lines.find_map(|at| {
                let here = delimiters.iter().filter(|pair| text[at..].starts_with(&pair.0));
                Some((at, here.min_by_key(|pair| usize::MAX - pair.0.len())?))
            })?;
            let behind = start + opening.len();
            let shared = usize::from(opening.ends_with('\n') && closing.starts_with('\n'));
            let Some(at) = text[behind - shared..].find(closing.as_str()) else {
                from = start + 1;
                continue;
            };
            let at = behind - shared + at;
            let (code, end) = (behind..at.max(behind), at + closing.len());
            if text[code.clone()].trim().is_empty() {
                from = end.max(start + 1);
                continue;
            }
            return Some(Block { start, code, end, language: language(opening) });
        }
    }

    /// Numbers that look random, the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).expect("31 bits") % bound
        }
    }

    #[test]
    fn a_text_in_pieces_has_the_blocks_of_the_simple_rule() {
        // Delimiters that begin alike, share line breaks, lie in one another, and consist of blanks.
        let sets = [
            delimiters(),
            pairs(&[("<c", ">"), ("<code>", "</code>"), ("<code>\n", "</c")]),
            pairs(&[("```\n```x\n", "```"), ("```x\n", "\n```\n"), ("```\n", "\n```")]),
            pairs(&[("\n", "\n"), (" ", "  "), ("aa", "a"), ("a\na", "\n\n"), ("é", "é")]),
            pairs(&[
                ("<a>", "</a>"),
                ("<a>\n<b>\n<c>", "</a>"),
                ("<b>\n", "x</a>"),
                ("<c>", "a>\n"),
            ]),
        ];
        let words = [
            "```python\n",
            "```tool_code\n",
            "\n```",
            "```",
            "``",
            "`",
            "\n",
            " ",
            "x",
            "a",
            "é",
            "<code>",
            "</code>",
            "<c",
            ">",
            "<code>\n",
            "</c",
            "```x\n",
            "```\n",
            "\n```\n",
            "<a>",
            "</a>",
            "<b>\n",
            "<c>",
            "python",
        ];
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut with_block, mut count) = (0, 0);
        for round in 0..6000 {
            let delimiters = &sets[round % sets.len()];
            let own: Vec<&str> = delimiters.iter().flat_map(|(a, b)| [a.as_str(), b]).collect();
            let mut text = String::new();
            for _ in 0..numbers.below(24) {
                match numbers.below(2) {
                    0 => text.push_str(own[numbers.below(own.len())]),
                    _ => text.push_str(words[numbers.below(words.len())]),
                }
            }
            let mut finder = Finder::new(delimiters);
            let mut end = 0;
            while end < text.len() {
                end = text.ceil_char_boundary(end + 1 + numbers.below(4));
                let expected = simple_first_block(&text[..end], delimiters);
                assert_eq!(
                    finder.find(&text[..end]),
                    expected,
                    "{:?} {delimiters:?}",
                    &text[..end]
                );
                count += 1;
            }
            let whole = first_block(&text, delimiters);
            assert_eq!(whole, simple_first_block(&text, delimiters), "{text:?} {delimiters:?}");
            with_block += usize::from(whole.is_some());
        }
        assert!(with_block > 1000 && count > 20_000, "{with_block} {count}");
    }

    /// The time that this thread has run, without the time in which others had its processor, where the system says so.
    fn thread_time() -> Duration {
        static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = statistics.split(' ').next().and_then(|number| number.parse().ok());
        nanoseconds.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
    }

    /// The shortest time in which a text is searched, in pieces of that size.
    fn time(text: &str, delimiters: &[CodeBlockDelimiters], piece: usize) -> Duration {
        let search = || {
            let started = thread_time();
            let mut finder = Finder::new(delimiters);
            let mut end = 0;
            while end < text.len() {
                end = text.ceil_char_boundary(end + piece);
                assert_eq!(finder.find(&text[..end]), None);
            }
            thread_time().saturating_sub(started)
        };
        (0..2).map(|_| search()).min().unwrap_or_default()
    }

    #[test]
    fn the_time_is_proportional_to_the_text() {
        let fences = delimiters();
        let nested = pairs(&[("<a>\n", "</a>"), ("<b>\n", "</b>"), ("```\n", "\n```")]);
        let cases = [
            ("```python\n```\n", "", &fences),
            ("<code>", "", &fences),
            ("<code>\n", "", &fences),
            ("```python\n```\n", "<code>\n", &fences),
            ("<a>\n<b>\n", "", &nested),
            ("```\n```\n", "<a>\n<b>\n", &nested),
            ("\n", "", &fences),
            ("```python\n \n", "", &fences),
        ];
        for (repeated, before, delimiters) in cases {
            let text = |count: usize| before.to_owned() + &repeated.repeat(count);
            for piece in [5, usize::MAX >> 1] {
                let (short, long) = (text(15_000), text(60_000));
                let (short, long) =
                    (time(&short, delimiters, piece), time(&long, delimiters, piece));
                // Four times the text; a search that begins anew takes 16 times as long.
                let most = short * 9 + Duration::from_millis(40);
                assert!(
                    long <= most,
                    "{repeated:?} in pieces of {piece}: {short:?}, then {long:?}"
                );
            }
        }
    }
}
