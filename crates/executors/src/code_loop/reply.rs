//! A model's reply: its parts as they come, and the code in them.
//!
//! In: the parts of one turn. Out: events of its text, and a [`Reply`] with the programs that are to run. Text behind a
//! fenced block is held back, and cut off unless the model emits code as parts too: models invent output there.

use futures_util::StreamExt as _;
use tokio::task::yield_now;

use super::{
    event::LoopEvent,
    events::Events,
    fences::{Block, Finder},
    nesting::Nesting,
};
use crate::{CodeBlockDelimiters, ModelError, ModelReply, Part};

/// The bytes of text that are searched, and the parts that are taken, before others have their turn on the thread.
const BYTES_AT_ONCE: usize = 256 << 10;
const PARTS_AT_ONCE: usize = 1024;

/// The bytes of text behind a block up to which a stream is read on. Code may yet come as a part, and takes the place of
/// the block; a model that goes on for longer only invents output.
const MOST_BEHIND_BYTES: usize = 64 << 10;

/// The reply of one turn.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) parts: Vec<Part>,
    /// The text of the turn: its parts that are no thoughts, up to the end of a block.
    pub(super) text: String,
    pub(super) code: Code,
}

/// The code of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// The indices of parts.
    Parts(Vec<usize>),
    /// A block in the text.
    Block(Block),
    /// None.
    None,
}

/// A program that is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) language: String,
    pub(super) code: String,
}

impl Reply {
    /// The programs, in order.
    pub(super) fn programs(&self) -> Vec<Program> {
        match &self.code {
            Code::None => Vec::new(),
            Code::Block(block) => {
                let code = self.text.get(block.code.clone()).unwrap_or_default().to_owned();
                vec![Program { language: block.language.clone(), code }]
            }
            Code::Parts(indices) => {
                let program = |&index: &usize| match self.parts.get(index)? {
                    Part::ExecutableCode(part) => {
                        Some(Program { language: part.language(), code: part.code().to_owned() })
                    }
                    _ => None,
                };
                indices.iter().filter_map(program).collect()
            }
        }
    }
}

/// Reads a reply to its end.
pub(super) async fn read(reply: ModelReply, speech: &mut Speech<'_>) -> Result<(), ModelError> {
    match reply {
        ModelReply::Parts(parts) => {
            for (index, part) in parts.into_iter().enumerate() {
                speech.take(index, part).await;
            }
        }
        ModelReply::Stream(parts) => {
            let mut parts = parts.enumerate();
            while let Some((index, part)) = parts.next().await {
                speech.take(index, part?).await;
                if speech.is_over() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// The parts of a turn so far.
pub(super) struct Speech<'s> {
    turn: u32,
    events: &'s Events,
    finder: Finder,
    parts: Vec<Part>,
    /// Whether any part is code.
    has_code: bool,
    /// The text so far, and as much of it as was searched and told.
    text: String,
    searched: usize,
    told: usize,
    /// The first block of the text so far, up to the first fence that may close it.
    found: Option<Block>,
    /// The fences of the block, as long as it is not known which of them closes it.
    nesting: Option<Nesting>,
    /// The block that runs if the text ends here. The text behind it is held back.
    block: Option<Block>,
}

impl<'s> Speech<'s> {
    pub(super) fn new(turn: u32, events: &'s Events, delimiters: &[CodeBlockDelimiters]) -> Self {
        Self {
            turn,
            events,
            finder: Finder::new(delimiters),
            parts: Vec::new(),
            has_code: false,
            text: String::new(),
            searched: 0,
            told: 0,
            found: None,
            nesting: None,
            block: None,
        }
    }

    /// The text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The turn is over.
    pub(super) fn end(mut self) -> Reply {
        self.close(true);
        let indices = code_parts(&self.parts);
        let code = match self.block.take().filter(|_| indices.is_empty()) {
            Some(block) => Code::Block(block),
            None if indices.is_empty() => Code::None,
            None => Code::Parts(indices),
        };
        let end = match &code {
            Code::Block(block) => block.end,
            Code::Parts(_) | Code::None => self.text.len(),
        };
        self.tell(end);
        self.text.truncate(end);
        if let Code::Block(_) = code {
            cut_off(&mut self.parts, end);
        }
        Reply { parts: self.parts, text: self.text, code }
    }

    /// Takes the next part. Its text is searched in pieces, between which others have their turn, and so they have after a
    /// number of parts.
    async fn take(&mut self, index: usize, part: Part) {
        self.has_code |= matches!(part, Part::ExecutableCode(_));
        if let Some(text) = part.as_said() {
            self.text.push_str(text);
        }
        let rest = match self.parts.last_mut() {
            Some(last) => last.append(part),
            None => Some(part),
        };
        self.parts.extend(rest);
        while self.searched < self.text.len() {
            self.search();
            if self.searched < self.text.len() {
                yield_now().await;
            }
        }
        if (index + 1).is_multiple_of(PARTS_AT_ONCE) {
            yield_now().await;
        }
    }

    /// Searches the next piece of the text for a block.
    fn search(&mut self) {
        self.searched = self.text.floor_char_boundary(self.searched + BYTES_AT_ONCE);
        if let Some(block) = self.finder.find(&self.text[..self.searched])
            && self.found.as_ref() != Some(&block)
        {
            self.nesting = Nesting::new(&block, &self.text);
            self.found = Some(block.clone());
            self.block = Some(block);
        }
        self.close(false);
        self.tell(self.block.as_ref().map_or(self.searched, |block| block.end));
    }

    /// Looks for the fence that closes the block.
    fn close(&mut self, is_whole: bool) {
        let text = &self.text[..self.searched];
        let closed = self.nesting.as_mut().and_then(|nesting| nesting.close(text, is_whole));
        if closed.is_some() {
            (self.block, self.nesting) = (closed, None);
        }
    }

    /// Whether so much text follows a block that no more of it is waited for.
    fn is_over(&self) -> bool {
        let is_far = |block: &Block| self.text.len() - block.end > MOST_BEHIND_BYTES;
        !self.has_code && self.block.as_ref().is_some_and(is_far)
    }

    fn tell(&mut self, end: usize) {
        if let Some(text) = self.text.get(self.told..end).filter(|text| !text.is_empty()) {
            self.events.push(LoopEvent::Text { turn: self.turn, text: text.to_owned() });
            self.told = end;
        }
    }
}

/// The indices of the parts with code, but for those that are directly followed by a result.
fn code_parts(parts: &[Part]) -> Vec<usize> {
    let is_result = |part: Option<&Part>| matches!(part, Some(Part::CodeExecutionResult(_)));
    let code = parts.iter().enumerate().filter(|(_, part)| matches!(part, Part::ExecutableCode(_)));
    code.map(|(index, _)| index).filter(|index| !is_result(parts.get(index + 1))).collect()
}

/// Cuts the text of parts off at that place. Parts of other kinds stay.
fn cut_off(parts: &mut Vec<Part>, end: usize) {
    let mut left = end;
    parts.retain_mut(|part| {
        let Some(length) = part.as_said().map(str::len) else { return true };
        let kept = length.min(left);
        left -= kept;
        if let Part::Text(text) = part
            && kept < length
        {
            let beginning = text.text().get(..kept).unwrap_or_default().to_owned();
            text.set_text(beginning);
        }
        kept > 0 || length == 0
    });
}
