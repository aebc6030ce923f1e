//! A bound of the tokens that the parser reads more than once.
//!
//! In: the tokens of a text. Out: how many of them the parser may read again, because `(a`, `a<(b)`, `a ? (b) : c` and
//! `infer A extends B` begin like other constructs: it tries one, goes back and tries the other. Two facts bound that.
//! The parser remembers each place where no arrow function began, so a parenthesis is tried once, and nested ones add
//! up. It remembers nothing of types, so attempts within attempts multiply.

use super::lexer::Token;

/// The memory of a token that is read again: the parser keeps its earlier product until the end.
pub(in super::super) const REREAD_BYTES: usize = 48;

/// The tokens that the parser may read again in any text, and more for each byte. It reads some ten in a microsecond.
const ALLOWED: u64 = 8_000_000;
const ALLOWED_PER_BYTE: u64 = 4;

#[derive(Clone, Default)]
pub(in super::super) struct Rereads {
    typescript: bool,
    total: u64,
    levels: Vec<Level>,
    here: Level,
    /// Places tried for arrow functions that this token is part of.
    arrows: u64,
    /// Words in a row that can all be modifiers: from each the parser reads ahead over all that follow.
    modifiers: u64,
    /// Whether the last word was one of those before a `(` that begins no expression.
    after_head: bool,
    last: Last,
}

/// The kind of the last token, as far as types depend on it.
#[derive(Clone, Copy, Default, PartialEq)]
enum Last {
    #[default]
    Other,
    /// `)`, and whether the parser may have read the parameters of a function type.
    Closed(bool),
    /// `?`.
    Question,
    /// `>` or `new`.
    Parameters,
    /// `type` or `interface`.
    Alias,
}

/// Within one pair of brackets.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Level {
    /// The number of times that these tokens are read beyond the first, because of constructs around the brackets.
    again: u64,
    /// `<` before this place that may still be tried as the beginning of type arguments.
    angles: u64,
    /// Whether a `<` was seen since the statement began.
    angled: bool,
    /// `infer A extends` before this place.
    constraints: u32,
    /// `infer` was read.
    inferring: bool,
    /// In the head of an interface, which is tried twice.
    interface: bool,
    /// The head of an arrow function, if this is one.
    head: Head,
    /// Whether an expression or a head of an arrow function begins with this bracket.
    expression: bool,
    /// Whether these brackets are tried for the head of an arrow function.
    tried: bool,
    /// Whether the current parameter has a type or a default.
    free: bool,
    /// A head has just ended.
    headed: bool,
    /// Return types after heads: these are tried from their place to the end of the item.
    returns: u64,
    /// Those of them that end at `=>`.
    short: u64,
    /// A `?` was seen since the item began.
    conditional: bool,
    /// The first parameter is destructured by the bracket that comes.
    destructures: bool,
    /// A binding pattern, if this is a type: the parser scans it, then reads it.
    pattern: bool,
    /// Whether a default was begun in the current item of the pattern.
    initial: bool,
    /// Whether the next token is the first of its item.
    first: bool,
    /// Whether all of this may be in a type; or only the current item, or the statement.
    inside: bool,
    typed: bool,
    alias: bool,
    /// `?` without their `:`.
    questions: u32,
    /// Whether `:` without `?` begins a type here; or does so in the current statement.
    annotates: bool,
    declares: bool,
    class: bool,
    /// Whether these brackets may hold the parameters of a function type.
    parameters: bool,
    /// Whether they do so however they begin.
    forced: bool,
}

/// The progress of `(` as the head of an arrow function.
#[derive(Clone, Copy, Default, PartialEq)]
enum Head {
    /// It is none.
    #[default]
    None,
    /// `(` was read.
    Opened,
    /// Only words were read after it.
    Named,
    /// It may be one.
    Open,
}

impl Rereads {
    pub(in super::super) fn new(typescript: bool) -> Self {
        Self { typescript, ..Self::default() }
    }

    pub(in super::super) fn allowed(text: &str) -> u64 {
        ALLOWED.saturating_add(ALLOWED_PER_BYTE.saturating_mul(text.len() as u64))
    }

    pub(in super::super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether the parser may take the next token for `=>`, even if it is another one.
    pub(in super::super) fn swallows(&self) -> bool {
        self.last == Last::Closed(true)
    }

    /// Such a token.
    pub(in super::super) fn put_swallowed(&mut self) {
        self.last = Last::Other;
        self.here.headed = false;
    }

    pub(in super::super) fn put(&mut self, token: &Token<'_>) {
        if self.arrows > 0 || self.here.is_read_again() {
            let times = self.here.times().saturating_mul(self.arrows + 1);
            self.total = self.total.saturating_add(times - 1);
        }
        let word = token.text.as_bytes().first().is_some_and(|byte| {
            byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'\\' | 0x80..)
        });
        let headed = std::mem::take(&mut self.here.headed);
        let after_head = std::mem::take(&mut self.after_head);
        self.continue_head(token.text, word);
        let last = std::mem::take(&mut self.last);
        if word {
            if last == Last::Alias && self.typescript {
                self.here.alias = true;
            }
            self.word(token.text, token.after_operator, last);
        } else {
            self.modifiers = 0;
            self.punctuator(token, headed, after_head, last);
        }
        self.here.first = matches!(token.text.as_bytes(), b"," | b"(" | b"[" | b"{" | b"${" | b"`");
    }

    /// Everything at this level has ended.
    pub(in super::super) fn end_statement(&mut self) {
        self.arrows -= self.here.returns;
        let Level {
            again,
            head,
            expression,
            tried,
            pattern,
            inside,
            annotates,
            parameters,
            forced,
            ..
        } = self.here;
        self.here = Level {
            again,
            head,
            expression,
            tried,
            pattern,
            inside,
            annotates,
            parameters,
            forced,
            first: true,
            ..Level::default()
        };
    }

    fn word(&mut self, text: &str, after_operator: bool, last: Last) {
        match text.as_bytes() {
            b"if" | b"for" | b"while" | b"with" | b"switch" | b"catch" | b"function" => {
                self.after_head = true;
            }
            b"in" | b"instanceof" => self.end_angles(last),
            b"as" | b"satisfies" if !after_operator => self.here.typed = true,
            b"let" | b"var" | b"const" | b"using" => self.here.declares = true,
            b"class" => self.here.class = true,
            b"type" => self.last = Last::Alias,
            b"new" => self.last = Last::Parameters,
            b"infer" => self.here.inferring = true,
            b"extends" if self.here.inferring => {
                self.here.inferring = false;
                self.here.constraints += 1;
            }
            b"interface" => {
                self.here.interface = true;
                self.last = Last::Alias;
            }
            b"abstract" | b"accessor" | b"async" | b"declare" | b"private" | b"protected"
            | b"public" | b"readonly" | b"static" | b"export" | b"global" => {
                self.modifiers += 1;
                self.total = self.total.saturating_add(self.modifiers);
                return;
            }
            _ => {}
        }
        self.modifiers = 0;
    }

    fn punctuator(&mut self, token: &Token<'_>, headed: bool, after_head: bool, last: Last) {
        match token.text.as_bytes() {
            b"(" => self.open(token, !token.after_operand && !after_head, last),
            b"[" | b"{" | b"${" | b"`" => self.open(token, false, last),
            b")" | b"]" | b"}" | b"`}" => self.close(token.text),
            b"," => self.end_item(),
            b"<" => self.angle(token),
            b">" => {
                self.here.inferring = false;
                self.here.angles = self.here.angles.saturating_sub(1);
                self.last = Last::Parameters;
            }
            b"=>" => {
                self.arrows -= self.here.short;
                self.here.returns -= std::mem::take(&mut self.here.short);
            }
            b"?" => {
                self.here.inferring = false;
                self.here.conditional = true;
                self.here.questions += 1;
                self.last = Last::Question;
            }
            b":" => {
                self.here.inferring = false;
                self.here.free = true;
                self.colon(last);
                if headed && self.typescript {
                    self.arrows += 1;
                    self.here.returns += 1;
                    self.here.short += u64::from(!self.here.conditional);
                }
            }
            b"=" => {
                self.end_angles(last);
                self.here.free = true;
                self.here.initial = true;
                self.here.typed &= self.here.angled;
            }
            b"@" => self.here.free = true,
            // Tokens that no list of type arguments has.
            b"==" | b"===" | b"&&" | b"||" | b"??" | b"?." | b"+" | b"++" | b"--" | b"*" | b"/"
            | b"/=" | b"%" | b"^" | b"~" | b"/r" => self.end_angles(last),
            _ => {}
        }
    }

    /// No list of type arguments has this token, unless the parser takes it for `=>`.
    fn end_angles(&mut self, last: Last) {
        if last != Last::Closed(true) {
            self.here.angles = 0;
        }
    }

    /// A `:` ends the middle of a conditional expression, or begins a type.
    fn colon(&mut self, last: Last) {
        let here = &mut self.here;
        if here.questions > 0 {
            here.questions -= 1;
            if last != Last::Question {
                return;
            }
        }
        let annotates = here.annotates || here.declares || matches!(last, Last::Closed(_));
        here.typed |= self.typescript && annotates;
    }

    /// Finds out whether the brackets around this token are still tried for the head of an arrow function.
    fn continue_head(&mut self, text: &str, word: bool) {
        let here = &mut self.here;
        let named = here.head == Head::Named;
        let may_begin = matches!(text.as_bytes(), b"{" | b"[" | b"...");
        match here.head {
            Head::None => {}
            Head::Opened | Head::Named if word => here.head = Head::Named,
            Head::Opened | Head::Named if may_begin => {
                here.destructures = true;
                self.try_head();
            }
            Head::Named if matches!(text.as_bytes(), b"," | b"=") => self.try_head(),
            Head::Opened | Head::Named => {
                here.head = Head::None;
                here.parameters &= here.forced || matches!(text.as_bytes(), b":" | b"?" | b")");
                here.parameters &= here.forced || text.as_bytes() != b")" || !named;
            }
            Head::Open => {
                let parameter = word
                    || may_begin
                    || matches!(text.as_bytes(), b"," | b"=" | b"?" | b":" | b"@");
                if here.tried && !here.free && !parameter {
                    here.tried = false;
                    self.arrows -= 1;
                }
            }
        }
    }

    fn try_head(&mut self) {
        self.here.head = Head::Open;
        self.here.tried = true;
        self.arrows += 1;
    }

    /// Brackets after `<` are read as a type, then perhaps as an expression.
    fn open(&mut self, token: &Token<'_>, expression: bool, last: Last) {
        let here = &mut self.here;
        if token.after_operand && token.text.as_bytes() != b"[" {
            here.angles = 0;
        }
        if token.text.as_bytes() == b"(" {
            here.short = 0;
        }
        if token.text.as_bytes() == b"{" {
            here.interface = false;
        }
        let inner = here.pattern && (here.initial || (token.text.as_bytes() == b"[" && here.first));
        let times = here.times().saturating_mul(1 + u64::from(inner));
        let bound = matches!(token.text.as_bytes(), b"[" | b"{");
        let destructures = std::mem::take(&mut here.destructures);
        let pattern = bound && (destructures || (here.pattern && !here.initial));
        let head = if expression { Head::Opened } else { Head::None };
        let typed = here.inside || here.typed || here.alias || here.angles > 0;
        let body = token.text.as_bytes() == b"{"
            && (token.after_operand || matches!(last, Last::Closed(_) | Last::Parameters));
        let level = Level {
            again: times - 1,
            head,
            expression,
            pattern,
            first: true,
            inside: typed && !body,
            annotates: token.text.as_bytes() != b"{" || here.class,
            parameters: typed && expression,
            forced: last == Last::Parameters,
            ..Level::default()
        };
        self.levels.push(std::mem::replace(here, level));
    }

    fn close(&mut self, closed: &str) {
        if let Some(outer) = self.levels.pop() {
            self.arrows -= self.here.returns + u64::from(self.here.tried);
            let headed = self.here.expression;
            self.last =
                if closed == ")" { Last::Closed(self.here.parameters) } else { Last::Other };
            self.here = outer;
            self.here.headed = headed;
        }
    }

    /// A comma ends an expression, and the attempts from places in it; but it may be one of type arguments.
    fn end_item(&mut self) {
        let here = &mut self.here;
        here.free = false;
        here.initial = false;
        here.questions = 0;
        here.conditional = here.angled && here.conditional;
        if !here.angled {
            here.typed = false;
            here.class = false;
            here.constraints = 0;
            here.inferring = false;
            self.arrows -= std::mem::take(&mut here.returns);
            here.short = 0;
        }
    }

    fn angle(&mut self, token: &Token<'_>) {
        let here = &mut self.here;
        here.angled = true;
        if !self.typescript {
            return;
        }
        here.angles += if here.interface { 2 } else { 1 };
        if !token.after_operand {
            // Type parameters of an arrow function, or a type assertion.
            here.returns += 1;
            self.arrows += 1;
        }
    }

    /// Goes on for both.
    pub(in super::super) fn merge(&mut self, other: &Self) {
        for (level, other) in self.levels.iter_mut().zip(&other.levels) {
            level.merge(other);
        }
        self.here.merge(&other.here);
        let levels = self.levels.iter().chain([&self.here]);
        self.arrows = levels.map(|level| level.returns + u64::from(level.tried)).sum();
        self.total = self.total.max(other.total);
        self.modifiers = self.modifiers.max(other.modifiers);
        self.after_head &= other.after_head;
        if let Last::Closed(true) | Last::Question = other.last {
            self.last = other.last;
        }
    }
}

impl Level {
    /// Whether a token here is read more than once.
    fn is_read_again(&self) -> bool {
        self.again > 0 || self.angles > 0 || self.constraints > 0
    }

    /// The number of times that a token here is read.
    fn times(&self) -> u64 {
        let times = (self.again + 1).saturating_mul(self.angles + 1);
        times.saturating_mul(1 << self.constraints.min(62)).min(u64::MAX >> 1)
    }

    fn merge(&mut self, other: &Self) {
        self.again = self.again.max(other.again);
        self.angles = self.angles.max(other.angles);
        self.angled |= other.angled;
        self.constraints = self.constraints.max(other.constraints);
        self.inferring |= other.inferring;
        self.interface |= other.interface;
        if !self.tried {
            self.head = other.head;
            self.tried = other.tried;
        }
        self.free |= other.free;
        self.headed |= other.headed;
        self.expression |= other.expression;
        self.returns = self.returns.max(other.returns);
        self.short = self.short.min(other.short);
        self.conditional |= other.conditional;
        self.pattern |= other.pattern;
        self.initial |= other.initial;
        self.first |= other.first;
        self.inside |= other.inside;
        self.typed |= other.typed;
        self.alias |= other.alias;
        self.questions = self.questions.min(other.questions);
        self.annotates |= other.annotates;
        self.declares |= other.declares;
        self.class |= other.class;
        self.parameters |= other.parameters;
        self.forced |= other.forced;
    }
}
