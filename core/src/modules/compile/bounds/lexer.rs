//! The tokens of a source text, as far as its nesting depends on them.
//!
//! In: a source text. Out: its tokens without comments and blanks; a string, a number or a regular expression is one
//! token, and template literals are brackets. A `/` divides or begins a regular expression, and only a parser can
//! decide which. Where the tokens before it leave both open, the lexer reads a division and offers to read the other as
//! well. A reading is over where the parser could only fail: at a bracket that does not match, an unterminated string,
//! a division without a divisor.

/// One token.
#[derive(Clone, Copy)]
pub(in super::super) struct Token<'a> {
    /// Its byte offset.
    pub(in super::super) start: usize,
    /// Its text; a quote for a string, a double one where it may be a directive; `0` for a number, `00` where it may
    /// be a wrong one; `a` for a word without a meaning of its own, `/r` for a regular expression, a backtick and a
    /// brace for the end of a template.
    pub(in super::super) text: &'a str,
    /// Whether every expression and statement before it, at its level, must have ended.
    pub(in super::super) starts_statement: bool,
    /// Whether an operand ends right before it.
    pub(in super::super) after_operand: bool,
    /// Whether an operand or a statement must begin with it.
    pub(in super::super) after_operator: bool,
}

/// The tokens that may follow the previous one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator or an opening bracket: an operand or a type comes next.
    Operator,
    /// A `;` or `{`, or the start: no type comes next.
    Start,
    /// A token after which `/` can mean either.
    Either,
    /// The end of an operand.
    Operand,
    /// A keyword that takes something after it, or a name that can be such a keyword.
    Keyword,
    /// A keyword that takes an operand or a statement after it.
    Prefix,
    /// `}`.
    Brace,
    /// The `)` of `if (…)` and the like: a statement comes next.
    Head,
}

#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(in super::super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Open brackets: the byte of each, and the state after the closing one.
    open: Vec<(u8, Before)>,
    before: Before,
    after_dot: bool,
    /// The state after the closing bracket, if the next token is a `(`.
    head: Before,
    newline: bool,
    /// Whether the token that is read begins a statement.
    starts_statement: bool,
    /// Whether the last token was a division.
    divided: bool,
    /// The start and the end of the regular expression that the last token may be as well.
    otherwise: Option<(usize, usize)>,
    over: bool,
    /// Bytes that may still be read ahead in search of the end of a regular expression.
    ahead: usize,
    comments: usize,
    rare_blanks: usize,
}

impl<'a> Lexer<'a> {
    pub(in super::super) fn new(text: &'a str) -> Self {
        let mut lexer = Self {
            text,
            at: 0,
            open: Vec::new(),
            before: Before::Start,
            after_dot: false,
            head: Before::Operand,
            newline: true,
            starts_statement: false,
            divided: false,
            otherwise: None,
            over: false,
            ahead: 16 * text.len() + 4096,
            comments: 0,
            rare_blanks: 0,
        };
        if text.starts_with("#!") {
            lexer.skip_line();
        }
        lexer
    }

    /// The byte after the last token.
    pub(in super::super) fn offset(&self) -> usize {
        self.at
    }

    /// Whether too much text was read ahead. No source that anybody wrote comes near that.
    pub(in super::super) fn exhausted(&self) -> bool {
        self.ahead == 0
    }

    /// The number of open brackets.
    pub(in super::super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The other reading of the last token, if there is one: a regular expression instead of a division.
    pub(in super::super) fn fork(&mut self) -> Option<(Self, Token<'a>)> {
        let (start, end) = self.otherwise.take()?;
        let mut other = self.clone();
        other.at = end;
        other.before = Before::Operand;
        other.divided = false;
        let token = Token { start, text: "/r", ..NO_TOKEN };
        Some((other, token))
    }

    /// Whether both readings go on alike from here.
    pub(in super::super) fn meets(&self, other: &Self) -> bool {
        self.at == other.at
            && self.open.len() == other.open.len()
            && (self.before, self.after_dot, self.head)
                == (other.before, other.after_dot, other.head)
            && self.divided == other.divided
            && self.open == other.open
    }

    /// How many comments were read.
    pub(in super::super) fn comments(&self) -> usize {
        self.comments
    }

    /// The number of blanks that are neither spaces, tabs nor line breaks.
    pub(in super::super) fn rare_blanks(&self) -> usize {
        self.rare_blanks
    }

    /// The next token; none at the end of the text and of the reading.
    pub(in super::super) fn next_token(&mut self) -> Option<Token<'a>> {
        if self.over {
            return None;
        }
        if self.open.last().is_some_and(|&(bracket, _)| bracket == b'`') {
            return self.template();
        }
        self.skip_blanks();
        let start = self.at;
        let first = self.byte(0)?;
        let after_operand = self.before == Before::Operand;
        let after_operator =
            matches!(self.before, Before::Operator | Before::Start | Before::Prefix);
        let divided = std::mem::take(&mut self.divided);
        let decimal = first == b'.' && self.byte(1).is_some_and(|byte| byte.is_ascii_digit());
        self.starts_statement = false;
        let text = if is_word(first) || decimal { self.word() } else { self.punctuator(first) };
        self.newline = false;
        if self.over || (divided && !begins_operand(first, decimal)) {
            self.over = true;
            return None;
        }
        let starts_statement = self.starts_statement;
        Some(Token { start, text, starts_statement, after_operand, after_operator })
    }

    /// Reads the next token as the parser does after the parameters of a function type, where it takes any one token
    /// for `=>`. None if that changes nothing.
    pub(in super::super) fn swallow(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let start = self.at;
        let first = self.byte(0)?;
        match first {
            b'(' | b')' | b'[' | b']' | b'{' | b'}' => {
                self.operator(1, Before::Either);
            }
            b'`' => {
                self.at += 1;
                self.template()?;
                if self.open.last().is_some_and(|&(bracket, _)| bracket == b'$') {
                    self.open.pop();
                }
                self.before = Before::Either;
            }
            b',' | b';' => {
                self.punctuator(first);
            }
            _ if is_word(first) && self.newline => {
                self.word();
            }
            _ => return None,
        }
        self.newline = false;
        self.after_dot = false;
        Some(Token { start, text: "", ..NO_TOKEN })
    }

    /// Goes on for both readings, which must meet here.
    pub(in super::super) fn merge(&mut self, other: &Self) {
        self.ahead = self.ahead.min(other.ahead);
        self.comments = self.comments.max(other.comments);
        self.rare_blanks = self.rare_blanks.max(other.rare_blanks);
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
        while let Some(byte) = self.byte(0).filter(|byte| !IS_LETTER[usize::from(*byte)]) {
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
                // In a module this is an error, and a comment all the same.
                b'<' if self.newline && self.rest().starts_with("<!--") => {
                    self.comments += 1;
                    self.skip_line();
                }
                0x80.. => match self.rest().chars().next() {
                    Some(char) if is_blank(char) => {
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
    fn word(&mut self) -> &'a str {
        let start = self.at;
        if self.byte(0).is_some_and(|byte| byte.is_ascii_digit() || byte == b'.') {
            return self.number();
        }
        let escaped = self.skip_word();
        let text = self.text.get(start..self.at).unwrap_or_default();
        let text = if has_meaning(text) { text } else { "a" };
        self.starts_statement = self.statement_may_start(text);
        let after_for = self.head;
        // Elsewhere it may be the name of a type: the parser takes keywords, too.
        let keyword = matches!(self.before, Before::Start | Before::Brace | Before::Head);
        (self.before, self.head) = match text.as_bytes() {
            b"#" => {
                self.over = true;
                (Before::Operand, Before::Operand)
            }
            _ if self.after_dot => (Before::Operand, Before::Operand),
            // The parser takes an escaped keyword for that keyword.
            _ if escaped => (Before::Either, Before::Either),
            b"if" | b"for" | b"while" | b"with" if keyword => (Before::Keyword, Before::Head),
            b"if" | b"for" | b"while" | b"with" => (Before::Keyword, Before::Either),
            b"await" => (Before::Either, after_for),
            b"of" | b"yield" => (Before::Either, Before::Operand),
            _ if takes_an_operand(text) => {
                (if keyword { Before::Prefix } else { Before::Either }, Before::Operand)
            }
            _ if takes_more(text) => (Before::Keyword, Before::Operand),
            _ => (Before::Operand, Before::Operand),
        };
        self.after_dot = false;
        text
    }

    /// Skips the rest of a word; whether it has an escape.
    fn skip_word(&mut self) -> bool {
        let mut escaped = false;
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| IS_LETTER[usize::from(**byte)]).count();
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' if self.byte(1) == Some(b'u') && self.byte(2) == Some(b'{') => {
                    let digits = self.rest().bytes().skip(3).take_while(u8::is_ascii_hexdigit);
                    self.at += 3 + digits.count();
                    self.at += usize::from(self.byte(0) == Some(b'}'));
                    escaped = true;
                }
                0x80.. => match self.rest().chars().next() {
                    Some(char) if !is_blank(char) => {
                        self.at += char.len_utf8();
                    }
                    _ => return escaped,
                },
                _ if is_word(byte) => {
                    escaped |= byte == b'\\';
                    self.at += 1;
                }
                _ => return escaped,
            }
        }
        escaped
    }

    fn number(&mut self) -> &'a str {
        self.starts_statement = self.statement_may_start("0");
        let start = self.at;
        self.skip_digits();
        let digits = self.text.as_bytes().get(start..self.at).unwrap_or_default();
        // After an octal number a point begins a property.
        let octal = digits.len() > 1
            && digits.first() == Some(&b'0')
            && digits.iter().all(|byte| matches!(byte, b'0'..=b'7'));
        if self.byte(0) == Some(b'.') && !octal {
            self.at += 1;
            self.skip_digits();
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) && !octal {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(0), Some(b'+' | b'-')));
        }
        // Suffixes and other bases. An escape begins a word of its own.
        while self.byte(0).is_some_and(|byte| is_word(byte) && byte != b'\\') {
            self.at += 1;
        }
        self.before = Before::Operand;
        self.after_dot = false;
        self.head = Before::Operand;
        let digits = self.text.as_bytes().get(start..self.at).unwrap_or_default();
        let wrong = matches!(digits, [b'0', b'0'..=b'9', ..]) || digits.contains(&b'_');
        if wrong { "00" } else { "0" }
    }

    fn skip_digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit() || byte == b'_') {
            self.at += 1;
        }
    }

    /// Whether a word here begins a statement or a class member.
    fn statement_may_start(&self, word: &str) -> bool {
        match self.before {
            Before::Brace => !continues(word),
            Before::Operand => self.newline && !self.after_dot && !continues(word),
            Before::Either => self.newline && !self.after_dot && starts(word),
            _ => false,
        }
    }

    fn punctuator(&mut self, first: u8) -> &'a str {
        let second = self.byte(1);
        let digit_follows = self.byte(2).is_some_and(|byte| byte.is_ascii_digit());
        let optional = first == b'?' && second == Some(b'.') && !digit_follows;
        let dotted = first == b'.' || optional;
        let text = match first {
            b'\'' | b'"' => self.string(first),
            b'/' => self.slash(),
            b'`' => self.bracket("`"),
            b'(' => self.bracket("("),
            b'[' => self.bracket("["),
            b'{' => self.bracket("{"),
            b')' | b']' | b'}' => self.closing(first),
            b'+' | b'-' if second == Some(first) => self.operator(2, self.after_sign()),
            b'=' if second == Some(b'>') => self.operator(2, Before::Operator),
            b'=' if self.rest().starts_with("===") => self.operator(3, Before::Operator),
            b'=' if second == Some(b'=') => self.operator(2, Before::Operator),
            b'&' | b'|' if second == Some(first) => self.operator(2, Before::Operator),
            b'?' if second == Some(b'?') || optional => self.operator(2, Before::Operator),
            // The end of a type, as in `a as B? / c`; or the start of an operand.
            b'?' | b'>' => self.operator(1, Before::Either),
            b'!' if second != Some(b'=') => self.operator(1, self.after_sign()),
            b'.' if self.rest().starts_with("...") => self.operator(3, Before::Operator),
            b';' => self.operator(1, Before::Start),
            b'^' | b'%' if matches!(self.before, Before::Operator | Before::Start) => {
                self.over = true;
                ""
            }
            _ => self.operator(1, Before::Operator),
        };
        self.after_dot = dotted;
        self.head = Before::Operand;
        text
    }

    /// The tokens that may follow `!`, `++` or `--`: those after the operand before it, or its own operand.
    fn after_sign(&self) -> Before {
        match self.before {
            Before::Operand if self.newline => Before::Operator,
            Before::Operand => Before::Operand,
            Before::Operator | Before::Start | Before::Prefix | Before::Head => Before::Operator,
            Before::Either | Before::Keyword | Before::Brace => Before::Either,
        }
    }

    fn operator(&mut self, length: usize, before: Before) -> &'a str {
        let start = self.at;
        self.at += length;
        self.before = before;
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn bracket(&mut self, text: &'static str) -> &'a str {
        self.open.push((text.as_bytes()[0], self.head));
        self.at += text.len();
        self.before = if text == "{" { Before::Start } else { Before::Operator };
        text
    }

    /// A closing bracket that does not match ends the parse.
    fn closing(&mut self, byte: u8) -> &'a str {
        self.at += 1;
        let matching = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let left = match self.open.pop() {
            Some((bracket, left)) if bracket == matching => left,
            Some((b'$', left)) if byte == b'}' => left,
            _ => {
                self.over = true;
                return "";
            }
        };
        self.before = match byte {
            b'}' => Before::Brace,
            b')' => left,
            _ => Before::Operand,
        };
        match byte {
            b')' => ")",
            b']' => "]",
            _ => "}",
        }
    }

    fn string(&mut self, quote: u8) -> &'a str {
        let directive = match self.before {
            Before::Operand => self.newline,
            Before::Start | Before::Brace => {
                let before = self.text.get(..self.at).unwrap_or_default();
                !before.trim_end_matches([' ', '\t', '\r', '\n']).ends_with('{')
            }
            _ => false,
        };
        self.at += 1;
        self.over = true;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at += if self.rest().starts_with("\r\n") { 2 } else { 1 },
                b'\n' | b'\r' => break,
                _ if byte == quote => {
                    self.over = false;
                    break;
                }
                _ => {}
            }
        }
        self.at = self.text.ceil_char_boundary(self.at);
        self.before = Before::Operand;
        if directive { "\"" } else { "'" }
    }

    /// The text of a template up to its end or its next `${`.
    fn template(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'\\' => self.at = self.text.ceil_char_boundary(self.at + 1),
                b'`' => {
                    if self.open.last().is_some_and(|&(bracket, _)| bracket == b'`') {
                        self.open.pop();
                    }
                    self.before = Before::Operand;
                    return Some(Token { start, text: "`}", ..NO_TOKEN });
                }
                b'$' if self.byte(0) == Some(b'{') => {
                    self.at += 1;
                    self.open.push((b'$', Before::Operand));
                    self.before = Before::Operator;
                    return Some(Token { start, text: "${", ..NO_TOKEN });
                }
                _ => {}
            }
        }
        None
    }

    /// A division, or a whole regular expression.
    fn slash(&mut self) -> &'a str {
        let expression = match self.before {
            Before::Operator | Before::Start | Before::Prefix | Before::Head => true,
            // On a line of its own it may begin a statement: `let a\n/b/.test(c)`.
            Before::Operand | Before::Keyword if !self.newline => return self.division(),
            _ => false,
        };
        let start = self.at;
        let end = self.regular_expression_end();
        match end {
            _ if !expression => {
                self.otherwise = end.map(|end| (start, end));
                self.division()
            }
            Some(end) => {
                self.at = end;
                self.before = Before::Operand;
                "/r"
            }
            None => {
                self.over = true;
                ""
            }
        }
    }

    fn division(&mut self) -> &'a str {
        self.divided = true;
        self.operator(if self.byte(1) == Some(b'=') { 2 } else { 1 }, Before::Operator)
    }

    /// The end of a regular expression that begins here, flags included; none if it has no end.
    fn regular_expression_end(&mut self) -> Option<usize> {
        let mut class = false;
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            let byte = *bytes.get(at)?;
            self.ahead = self.ahead.checked_sub(1)?;
            at += 1;
            match byte {
                b'\\' => at += 1,
                b'\n' | b'\r' => return None,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => break,
                _ => {}
            }
        }
        let flags = bytes.get(at..).unwrap_or_default().iter();
        Some(
            at + flags
                .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'_'))
                .count(),
        )
    }
}

const NO_TOKEN: Token<'static> = Token {
    start: 0,
    text: "",
    starts_statement: false,
    after_operand: false,
    after_operator: false,
};

/// Whether the parser takes the character for a blank. It takes U+200B, too, which is none by the language.
pub(in super::super) fn is_blank(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{feff}' | '\u{200b}')
}

/// The bytes of words that have no escape, in ASCII.
const IS_LETTER: [bool; 256] = {
    let mut is_letter = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        is_letter[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        byte += 1;
    }
    is_letter
};

/// Whether a word is one of those that the lexer or a reader of its tokens tells apart, or a private name.
fn has_meaning(word: &str) -> bool {
    word.starts_with('#')
        || matches!(
            word.as_bytes(),
            b"abstract"
                | b"accessor"
                | b"as"
                | b"asserts"
                | b"async"
                | b"await"
                | b"break"
                | b"case"
                | b"catch"
                | b"class"
                | b"const"
                | b"continue"
                | b"declare"
                | b"default"
                | b"delete"
                | b"do"
                | b"else"
                | b"enum"
                | b"export"
                | b"extends"
                | b"finally"
                | b"for"
                | b"from"
                | b"function"
                | b"get"
                | b"global"
                | b"if"
                | b"implements"
                | b"import"
                | b"in"
                | b"infer"
                | b"instanceof"
                | b"interface"
                | b"is"
                | b"keyof"
                | b"let"
                | b"namespace"
                | b"new"
                | b"of"
                | b"private"
                | b"protected"
                | b"public"
                | b"readonly"
                | b"return"
                | b"satisfies"
                | b"set"
                | b"static"
                | b"switch"
                | b"throw"
                | b"try"
                | b"type"
                | b"typeof"
                | b"unique"
                | b"using"
                | b"var"
                | b"void"
                | b"while"
                | b"with"
                | b"yield"
        )
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'\\' | 0x80..)
}

/// Whether an operand can begin with that byte.
fn begins_operand(byte: u8, decimal: bool) -> bool {
    let sign = matches!(byte, b'+' | b'-' | b'!' | b'~' | b'<' | b'@' | b'/');
    // The last ones begin types only, for `swallow`.
    let type_sign = matches!(byte, b'|' | b'&' | b'?');
    is_word(byte)
        || decimal
        || sign
        || type_sign
        || matches!(byte, b'\'' | b'"' | b'`' | b'(' | b'[' | b'{')
}

/// Words that continue a construct before them.
fn continues(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        b"else"
            | b"catch"
            | b"finally"
            | b"while"
            | b"in"
            | b"instanceof"
            | b"of"
            | b"as"
            | b"satisfies"
            | b"extends"
            | b"implements"
            | b"from"
            | b"is"
            | b"with"
    )
}

/// Reserved words that begin a statement and are part of no expression.
fn starts(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        b"const"
            | b"var"
            | b"return"
            | b"if"
            | b"for"
            | b"while"
            | b"switch"
            | b"throw"
            | b"try"
            | b"do"
            | b"export"
            | b"break"
            | b"continue"
    )
}

/// Words after which an operand or a statement follows, so that `/` begins a regular expression.
fn takes_an_operand(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        b"return"
            | b"typeof"
            | b"case"
            | b"in"
            | b"instanceof"
            | b"new"
            | b"delete"
            | b"void"
            | b"do"
            | b"else"
            | b"throw"
            | b"extends"
            | b"default"
    )
}

/// Words, ordinary names among them, that may continue with the tokens after them.
fn takes_more(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        b"export"
            | b"import"
            | b"if"
            | b"for"
            | b"while"
            | b"with"
            | b"switch"
            | b"try"
            | b"catch"
            | b"finally"
            | b"class"
            | b"function"
            | b"var"
            | b"let"
            | b"const"
            | b"enum"
            | b"as"
            | b"satisfies"
            | b"keyof"
            | b"readonly"
            | b"unique"
            | b"infer"
            | b"asserts"
            | b"is"
            | b"abstract"
            | b"accessor"
            | b"declare"
            | b"async"
            | b"get"
            | b"set"
            | b"static"
            | b"type"
            | b"namespace"
            | b"implements"
            | b"from"
    )
}
