//! Fences inside of a fenced block.
//!
//! In: the block up to its first closing fence, and a text that grows. Out: the block up to the fence that closes it, once
//! that is known. Programs that write Markdown have fences in their strings: a fence with a word opens one inside of the
//! block, and the next one without a word closes that one. Where fences do not pair up, the first one counts: the model
//! went on in its line. The time is proportional to the text.

use super::fences::Block;

const FENCE: &str = "\n```";

/// The fences of one block.
#[derive(Debug)]
pub(super) struct Nesting {
    /// The block up to its first closing fence.
    first: Block,
    /// The place of the next fence that was not looked at, or a place before that.
    at: usize,
    /// The fences that are open there.
    depth: usize,
}

impl Nesting {
    /// The fences of a block that was found in a text. None for a block that is not fenced: its end is known.
    pub(super) fn new(first: &Block, text: &str) -> Option<Self> {
        let at = first.end.checked_sub(FENCE.len())?;
        let is_fenced =
            text.get(first.start..)?.starts_with("```") && text.get(at..first.end)? == FENCE;
        is_fenced.then(|| Self { first: first.clone(), at, depth: 1 })
    }

    /// The block, if the text shows where it ends. The text begins with the text of the call before.
    pub(super) fn close(&mut self, text: &str, is_whole: bool) -> Option<Block> {
        while self.depth > 0 {
            let Some(found) = text.get(self.at..).and_then(|rest| rest.find(FENCE)) else {
                // The beginning of one may be the end of the text.
                let seen = text.len().saturating_sub(FENCE.len());
                self.at = text.floor_char_boundary(seen).max(self.at);
                return None;
            };
            self.at += found;
            let behind = self.at + FENCE.len();
            match text[behind..].chars().next() {
                // A word may yet come.
                None if !is_whole => return None,
                Some(letter) if letter.is_ascii_alphabetic() => self.depth += 1,
                _ => self.depth -= 1,
            }
            if self.depth > 0 {
                self.at = behind;
            }
        }
        let code = self.first.code.start..self.at.max(self.first.code.end);
        Some(Block { code, end: self.at + FENCE.len(), ..self.first.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fences::Finder, *};

    /// The code of the block, once it is known where it ends.
    fn code(text: &str, is_whole: bool) -> Option<&str> {
        let delimiters = ["python", "js"].map(|word| (format!("```{word}\n"), FENCE.to_owned()));
        let first = Finder::new(&delimiters).find(text)?;
        let block = Nesting::new(&first, text)?.close(text, is_whole)?;
        assert_eq!(&text[block.code.end..block.end], FENCE);
        Some(&text[block.code])
    }

    #[test]
    fn a_fence_with_a_word_is_inside_of_the_block() {
        let inside = "s = '''\n```js\nf()\n```\n'''";
        let text = format!("```python\n{inside}\n```\nmore\n```\n");
        assert_eq!(code(&text, true), Some(inside));
        assert_eq!(code("```python\nx\n```\n```js\ny\n```", true), Some("x"));
        for text in ["x\n```999", "x\n``` tail", "x\n```\u{e9}", "x\n```\r\n", "x\n```"] {
            assert_eq!(code(&format!("```python\n{text}"), true), Some("x"), "{text:?}");
        }
    }

    #[test]
    fn fences_that_do_not_pair_up_close_nothing() {
        for text in ["x\n```js", "x\n```tool_output\n1\n```", "x\n```It is 9.\n```js\ny\n```"] {
            assert_eq!(code(&format!("```python\n{text}"), true), None, "{text:?}");
        }
    }

    #[test]
    fn a_text_in_pieces_has_the_same_block() {
        let text = "é\n```python\ns = '''\n```js\né\n```\n'''\n```\nthen\n```js\n```";
        let mut finder = Finder::new(&[("```python\n".to_owned(), FENCE.to_owned())]);
        let mut nesting = None;
        let mut ends = Vec::new();
        for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
            let Some(first) = finder.find(&text[..end]) else { continue };
            let nesting =
                nesting.get_or_insert_with(|| Nesting::new(&first, text).expect("a fence"));
            ends.extend(nesting.close(&text[..end], false).map(|block| block.end));
        }
        ends.dedup();
        assert_eq!(ends, [text.find("\nthen").expect("the end")]);
        assert_eq!(code("```python\nx\n```", false), None);
    }

    #[test]
    fn a_text_is_looked_at_once() {
        let text = "```python\nx".to_owned() + &"\n```js\n".repeat(200_000);
        let first = Finder::new(&[("```python\n".to_owned(), FENCE.to_owned())]).find(&text);
        let first = first.expect("a block");
        let mut nesting = Nesting::new(&first, &text).expect("a fence");
        let mut looked = 0;
        for end in (first.end..text.len()).step_by(5) {
            let before = nesting.at;
            assert_eq!(nesting.close(&text[..end], false), None);
            assert!(nesting.at >= before && end - nesting.at <= FENCE.len() + 1);
            looked += nesting.at - before;
        }
        assert!(looked <= text.len());
    }
}
