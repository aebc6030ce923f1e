//! The tokens of a source text, as far as its nesting depends on them.
//!
//! In: a source text. Out: its tokens without comments and blanks; a string, a number or a regular expression is one
//! token, and template literals are brackets. The lexer reports the end of a construct only where it is certain. Where
//! `/` may be a division or begin a regular expression, and the text after it depends on which, `uncertain` is true
//! from there to the end.

/// One token.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    /// Its byte offset.
    pub(super) start: usize,
    /// Its text; a quote for a string, `0` for a number, `/r` for a regular expression, a backtick
    /// and a brace for the end of a template.
    pub(super) text: &'a str,
    /// Whether every expression and statement before it, at its level, must have ended.
    pub(super) starts_statement: bool,
}

/// The tokens that may follow the previous one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator or an opening bracket: an operand comes next.
    Operator,
    /// A token after which `/` can mean either.
    Either,
    /// The end of an operand.
    Operand,
    /// A keyword that takes something after it.
    Keyword,
    /// `}`.
    Brace,
    /// The `)` of `if (…)` and the like: a statement comes next.
    Head,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    typescript: bool,
    /// Open brackets: the byte, and for `(` whether it is the head of a statement.
    open: Vec<(u8, bool)>,
    before: Before,
    after_dot: bool,
    /// Whether the last word was one of `if`, `for`, `while`, `with`.
    head: bool,
    newline: bool,
    uncertain: bool,
    /// Bytes that may still be read ahead in search of the end of a regular expression.
    ahead: usize,
    comments: usize,
    rare_blanks: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, typescript: bool) -> Self {
        let mut lexer = Self {
            text,
            at: 0,
            typescript,
            open: Vec::new(),
            before: Before::Operator,
            after_dot: false,
            head: false,
            newline: false,
            uncertain: false,
            ahead: 4 * text.len() + 4096,
            comments: 0,
            rare_blanks: 0,
        };
        if text.starts_with("#!") {
            lexer.skip_line();
        }
        lexer
    }

    /// Whether no construct after this place can be known to end.
    pub(super) fn uncertain(&self) -> bool {
        self.uncertain
    }

    /// How many comments were read.
    pub(super) fn comments(&self) -> usize {
        self.comments
    }

    /// The number of blanks that are neither spaces, tabs nor line breaks.
    pub(super) fn rare_blanks(&self) -> usize {
        self.rare_blanks
    }

    pub(super) fn next_token(&mut self) -> Option<Token<'a>> {
        if self.uncertain {
            return self.raw();
        }
        if self.open.last().is_some_and(|&(bracket, _)| bracket == b'`') {
            return self.template();
        }
        self.skip_blanks();
        let start = self.at;
        let first = self.byte(0)?;
        let token = if is_word(first) { self.word() } else { self.punctuator(first) };
        self.newline = false;
        Some(Token { start, ..token })
    }

    /// The next run of letters or other byte, without regard to its context.
    fn raw(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = self.at;
        let first = self.byte(0)?;
        self.at += 1;
        if first.is_ascii_alphanumeric() {
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        }
        let text = match first {
            b'(' | b'[' | b'{' => "(",
            b'<' => "<",
            b'?' => "?",
            _ => ".",
        };
        Some(Token { start, text, starts_statement: false })
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_line(&mut self) {
        let end = self.rest().find(['\n', '\r', '\u{2028}', '\u{2029}']);
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' | b'\r' => {
                    self.newline = true;
                    self.at += 1;
                }
                b' ' | b'\t' => self.at += 1,
                0x0b | 0x0c => {
                    self.rare_blanks += 1;
                    self.at += 1;
                }
                b'/' if self.byte(1) == Some(b'/') => {
                    self.comments += 1;
                    self.skip_line();
                }
                b'/' if self.byte(1) == Some(b'*') => {
                    self.comments += 1;
                    self.skip_block_comment();
                }
                0x80.. => match self.rest().chars().next() {
                    Some(char) if char.is_whitespace() || char == '\u{feff}' => {
                        self.newline |= matches!(char, '\u{2028}' | '\u{2029}');
                        self.rare_blanks += 1;
                        self.at += char.len_utf8();
                    }
                    _ => return,
                },
                _ => return,
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let rest = self.rest();
        let length = rest.get(2..).and_then(|body| body.find("*/")).map_or(rest.len(), |at| at + 4);
        let comment = rest.get(..length).unwrap_or(rest);
        self.newline |= comment.contains(['\n', '\r', '\u{2028}', '\u{2029}']);
        self.at += comment.len();
    }

    /// An identifier, keyword, private name or number.
    fn word(&mut self) -> Token<'a> {
        let start = self.at;
        let number = self.byte(0).is_some_and(|byte| byte.is_ascii_digit());
        self.skip_word(number);
        let text = self.text.get(start..self.at).unwrap_or_default();
        let starts_statement = self.statement_may_start() && !CONTINUES.contains(&text);
        let named = self.after_dot || number;
        let was_for = self.head && text == "await";
        self.head = (!named && matches!(text, "if" | "for" | "while" | "with")) || was_for;
        self.before = match text {
            _ if named => Before::Operand,
            "of" => Before::Either,
            _ if TAKES_MORE.contains(&text) => Before::Keyword,
            _ => Before::Operand,
        };
        self.after_dot = false;
        Token { start, text: if number { "0" } else { text }, starts_statement }
    }

    fn skip_word(&mut self, number: bool) {
        while let Some(byte) = self.byte(0) {
            let digit_follows = self.byte(1).is_some_and(|byte| byte.is_ascii_digit());
            match byte {
                b'.' if number && digit_follows => self.at += 1,
                b'\\' if self.byte(1) == Some(b'u') && self.byte(2) == Some(b'{') => {
                    let digits = self.rest().bytes().skip(3).take_while(u8::is_ascii_hexdigit);
                    self.at += 3 + digits.count();
                    self.at += usize::from(self.byte(0) == Some(b'}'));
                }
                0x80.. => match self.rest().chars().next() {
                    Some(char) if !char.is_whitespace() && char != '\u{feff}' => {
                        self.at += char.len_utf8();
                    }
                    _ => return,
                },
                _ if is_word(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    /// Whether a word here would begin a statement or a class member.
    fn statement_may_start(&self) -> bool {
        match self.before {
            Before::Brace => true,
            Before::Operand => self.newline && !self.after_dot,
            _ => false,
        }
    }

    fn punctuator(&mut self, first: u8) -> Token<'a> {
        let start = self.at;
        let dotted = first == b'.' || (first == b'?' && self.byte(1) == Some(b'.'));
        let text = match first {
            b'\'' | b'"' => self.string(first),
            b'/' => self.slash(),
            b'`' => self.bracket("`", Before::Operator),
            b'(' => self.bracket("(", Before::Operator),
            b'[' => self.bracket("[", Before::Operator),
            b'{' => self.bracket("{", Before::Operator),
            b')' | b']' | b'}' => self.closing(first),
            b'+' | b'-' if self.byte(1) == Some(first) => self.operator(2, Before::Either),
            b'=' if self.byte(1) == Some(b'>') => self.operator(2, Before::Operator),
            b'?' if self.byte(1) == Some(b'?') => self.operator(2, Before::Operator),
            b'?' if dotted => self.operator(2, Before::Operator),
            b'>' if self.typescript => self.operator(1, Before::Either),
            b'!' if self.before != Before::Operator => self.operator(1, Before::Either),
            b'<' => {
                self.uncertain |= self.rest().starts_with("<!--");
                self.operator(1, Before::Operator)
            }
            _ => self.operator(1, Before::Operator),
        };
        self.after_dot = dotted;
        self.head = false;
        Token { start, text, starts_statement: false }
    }

    fn operator(&mut self, length: usize, before: Before) -> &'a str {
        let start = self.at;
        self.at += length;
        self.before = before;
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn bracket(&mut self, text: &'static str, before: Before) -> &'a str {
        self.open.push((text.as_bytes()[0], self.head));
        self.at += text.len();
        self.before = before;
        text
    }

    /// A closing bracket that does not match ends the parse, so it closes nothing here.
    fn closing(&mut self, byte: u8) -> &'a str {
        self.at += 1;
        let matching = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let head = match self.open.last() {
            Some(&(bracket, head)) if bracket == matching => head,
            Some(&(b'$', _)) if byte == b'}' => false,
            _ => return ".",
        };
        self.open.pop();
        self.before = match byte {
            b'}' => Before::Brace,
            b')' if head => Before::Head,
            _ => Before::Operand,
        };
        match byte {
            b')' => ")",
            b']' => "]",
            _ => "}",
        }
    }

    fn string(&mut self, quote: u8) -> &'a str {
        self.at += 1;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += if self.rest().starts_with("\r\n") { 2 } else { 1 },
                b'\n' | b'\r' => break,
                _ if byte == quote => break,
                _ => {}
            }
        }
        self.at = self.text.ceil_char_boundary(self.at);
        self.before = Before::Operand;
        "'"
    }

    /// The text of a template up to its end or its next `${`.
    fn template(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at = self.text.ceil_char_boundary(self.at + 1),
                b'`' => {
                    self.open.pop();
                    self.before = Before::Operand;
                    return Some(Token { start, text: "`}", starts_statement: false });
                }
                b'$' if self.byte(0) == Some(b'{') => {
                    self.at += 1;
                    self.open.push((b'$', false));
                    self.before = Before::Operator;
                    return Some(Token { start, text: "${", starts_statement: false });
                }
                _ => {}
            }
        }
        None
    }

    /// A division, or a whole regular expression.
    fn slash(&mut self) -> &'a str {
        let expression = match self.before {
            Before::Operator | Before::Head => true,
            Before::Keyword if self.operand_must_follow() => true,
            // A type may end where no expression could, and the next line may begin with a type or an expression.
            Before::Operand if !(self.newline && self.typescript) => false,
            _ => {
                let end = self.regular_expression_end();
                self.doubt(end);
                false
            }
        };
        match expression.then(|| self.regular_expression_end()).flatten() {
            Some(end) => {
                self.at = end;
                self.skip_word(false);
                self.before = Before::Operand;
                "/r"
            }
            None => self.operator(1, Before::Operator),
        }
    }

    /// Whether the keyword before cannot be an ordinary name, unlike `type` in `type / 2`.
    fn operand_must_follow(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default().trim_end();
        TAKES_AN_OPERAND.iter().any(|keyword| before.ends_with(keyword))
    }

    /// Gives up certainty if the two readings of `/` do not meet again where the second ends.
    fn doubt(&mut self, end: Option<usize>) {
        let Some(end) = end else { return };
        let body = self.text.get(self.at + 1..end.saturating_sub(1)).unwrap_or_default();
        let meets = !body.contains(['\'', '"', '`', '(', ')', '[', ']', '{', '}', ';', ',', '\\'])
            && !matches!(self.text.as_bytes().get(end), Some(b'/' | b'*'));
        self.uncertain |= !meets;
    }

    /// The end of a regular expression that begins here; none if it has no end.
    fn regular_expression_end(&mut self) -> Option<usize> {
        let mut class = false;
        let mut bytes = self.text.as_bytes().iter().enumerate().skip(self.at + 1);
        while let Some((at, &byte)) = bytes.next() {
            let Some(ahead) = self.ahead.checked_sub(1) else {
                self.uncertain = true;
                return None;
            };
            self.ahead = ahead;
            match byte {
                b'\\' => {
                    bytes.next();
                }
                b'\n' | b'\r' => return None,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => return Some(at + 1),
                _ => {}
            }
        }
        None
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'\\' | 0x80..)
}

/// Words that continue a construct before them.
const CONTINUES: [&str; 14] = [
    "else",
    "catch",
    "finally",
    "while",
    "in",
    "instanceof",
    "of",
    "as",
    "satisfies",
    "extends",
    "implements",
    "from",
    "is",
    "with",
];

/// Words after which an operand must follow, so that `/` begins a regular expression.
const TAKES_AN_OPERAND: [&str; 16] = [
    "return",
    "typeof",
    "case",
    "in",
    "instanceof",
    "new",
    "delete",
    "void",
    "do",
    "else",
    "throw",
    "extends",
    "default",
    "await",
    "yield",
    "export",
];

/// Words, ordinary names among them, that may continue with the tokens after them.
const TAKES_MORE: [&str; 50] = [
    "return",
    "typeof",
    "case",
    "in",
    "instanceof",
    "new",
    "delete",
    "void",
    "do",
    "else",
    "throw",
    "extends",
    "default",
    "await",
    "yield",
    "export",
    "import",
    "if",
    "for",
    "while",
    "with",
    "switch",
    "try",
    "catch",
    "finally",
    "class",
    "function",
    "var",
    "let",
    "const",
    "enum",
    "as",
    "satisfies",
    "keyof",
    "readonly",
    "unique",
    "infer",
    "asserts",
    "is",
    "abstract",
    "accessor",
    "declare",
    "async",
    "get",
    "set",
    "static",
    "type",
    "namespace",
    "implements",
    "from",
];
