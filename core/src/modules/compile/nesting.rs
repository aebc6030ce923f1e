//! Bounds of the parser's recursion into a source text and of the memory for its trees, known before it starts.
//!
//! In: a source text. Out: a weight that is at least the number of grammar levels open at once in any parse of it, or
//! the place where it exceeds `MAX_WEIGHT`; and the bytes that [`memory`] computes. The parser and every pass after it
//! recurse without a check of their own, so this bound keeps a hostile source from overflowing the stack (contract: a
//! source that cannot be run is a `link_error`, never the end of the host).
//!
//! One level of recursion consumes at least one token, so the weight counts the tokens that may still be "open": those
//! of every open bracket since the last place where a statement or a list item must have ended. Uncertain constructs
//! count as open. The one ambiguity of the lexical grammar, `/`, is decided only where that is safe; elsewhere the
//! count grows and nothing closes.

use super::{
    lexer::{Lexer, Token},
    memory,
};

/// The lowest weight at which a source is refused. Hand-written code stays below a few hundred.
pub(crate) const MAX_WEIGHT: usize = 16_000;

/// Tokens that the parser may read again, because `(a`, `a<(b)` and `a ? (b) : c` begin like other constructs:
/// quadratic in a chain, exponential in a nest; about a microsecond each. A source may have one more for every four of
/// its bytes.
const MAX_REREADS: usize = 1_000_000;

/// The reason why a source is not given to the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooDeep {
    /// Byte offset of the token that exceeded the limit.
    pub(crate) offset: usize,
}

/// The weight of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// An upper bound of its nesting.
    pub(crate) levels: usize,
    /// An approximate upper bound of the memory that compiling it takes.
    pub(crate) bytes: usize,
}

/// Computes upper bounds of the cost of compiling `text`.
pub(crate) fn weigh(text: &str, typescript: bool) -> Result<Weight, TooDeep> {
    let mut bytes = memory::of_text(text, typescript);
    let mut lexer = Lexer::new(text, typescript);
    let mut scale = Scale { typescript, ..Scale::default() };
    let mut names = memory::Names::default();
    let rereads = MAX_REREADS + text.len() / 4;
    while let Some(token) = lexer.next_token() {
        scale.put(token, lexer.uncertain());
        bytes += memory::of_token(token, lexer.uncertain(), typescript) + names.of(token);
        if scale.open > MAX_WEIGHT || scale.rereads > rereads {
            return Err(TooDeep { offset: token.start });
        }
    }
    bytes += memory::of_comments(lexer.comments()) + memory::of_rare_blanks(lexer.rare_blanks());
    Ok(Weight { levels: scale.most, bytes })
}

/// The tokens that are open inside one pair of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Open before the first comma of the current statement, and tokens that commas could not close.
    kept: usize,
    /// Open since the last comma.
    item: usize,
    /// `<` seen since the last comma, and since the statement began.
    item_angles: usize,
    angles: usize,
    /// `<` not closed by a `>` yet.
    arguments: usize,
    /// The number of times that the parser may read these tokens beyond the first.
    again: usize,
    /// Whether the bracket is `(`.
    parenthesis: bool,
    /// `?` seen since the statement began.
    questions: usize,
    /// Whether a comma was seen since the statement began.
    listed: bool,
    /// A `;` was read. The next token tells whether it ended everything.
    ending: bool,
}

#[derive(Default)]
struct Scale {
    typescript: bool,
    levels: Vec<Level>,
    here: Level,
    open: usize,
    most: usize,
    angles: usize,
    questions: usize,
    parentheses: usize,
    rereads: usize,
}

impl Scale {
    fn put(&mut self, token: Token<'_>, uncertain: bool) {
        if !uncertain {
            self.end_before(token);
        }
        self.rereads = self.rereads.saturating_add(self.here.again);
        match token.text {
            "(" | "[" | "{" | "${" | "`" => self.open(token.text, uncertain),
            ")" | "]" | "}" | "`}" if !uncertain => self.close(),
            "," if !uncertain => self.end_item(),
            ";" if !uncertain => self.here.ending = true,
            "<" => self.angle(),
            ">" if !uncertain => {
                self.here.arguments = self.here.arguments.saturating_sub(1);
                self.count(1);
            }
            "?" => {
                self.rereads += 3 * self.questions;
                self.questions += 1;
                self.here.questions += 1;
                self.count(1);
            }
            _ => self.count(1),
        }
    }

    /// Ends the constructs that must have ended before `token`.
    fn end_before(&mut self, token: Token<'_>) {
        let ending = std::mem::take(&mut self.here.ending);
        if token.starts_statement || (ending && !matches!(token.text, "else" | "while")) {
            self.end_statement();
        }
    }

    /// Brackets after `<` are read as a type, then perhaps as an expression.
    fn open(&mut self, bracket: &str, uncertain: bool) {
        self.count(1);
        let parenthesis = bracket == "(";
        self.rereads += if parenthesis { 3 * self.parentheses } else { 0 };
        self.parentheses += usize::from(parenthesis);
        let doubled = self.here.again.saturating_add(1).saturating_mul(self.here.arguments + 1);
        let again = if self.typescript { doubled - 1 } else { 0 };
        if uncertain {
            self.here.again = again;
        } else {
            self.levels.push(std::mem::take(&mut self.here));
            self.here = Level { again, parenthesis, ..Level::default() };
        }
        self.count(1);
    }

    fn angle(&mut self) {
        self.rereads += self.angles;
        self.angles += 1;
        self.here.angles += 1;
        self.here.item_angles += 1;
        self.here.arguments += 1;
        self.count(1);
    }

    fn count(&mut self, tokens: usize) {
        self.here.item += tokens;
        self.open += tokens;
        self.most = self.most.max(self.open);
    }

    /// A closing bracket without an opening one ends the parse, so there is nothing to close here.
    fn close(&mut self) {
        if let Some(outer) = self.levels.pop() {
            self.end_statement();
            self.parentheses -= usize::from(self.here.parenthesis);
            self.here = outer;
        }
    }

    /// Everything open at this level has ended.
    fn end_statement(&mut self) {
        self.open -= self.here.kept + self.here.item;
        self.angles -= self.here.angles;
        self.questions -= self.here.questions;
        let Level { again, parenthesis, .. } = self.here;
        self.here = Level { again, parenthesis, ..Level::default() };
    }

    /// A comma ends an expression, but no statement around it, and no `<` before it.
    fn end_item(&mut self) {
        if self.here.listed {
            let still_open = (2 * self.here.item_angles).min(self.here.item);
            self.here.kept += still_open;
            self.open -= self.here.item - still_open;
        } else {
            self.here.listed = true;
            self.here.kept += self.here.item;
        }
        self.here.item = 0;
        self.here.item_angles = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(text: &str) -> usize {
        weigh(text, true).expect("within the bound").levels
    }

    #[test]
    fn everything_that_nests_weighs_at_least_its_depth() {
        for (open, middle, close) in [
            ("[", "1", "]"),
            ("(", "1", ")"),
            ("({a:", "1", "})"),
            ("{", "", "}"),
            ("!", "1", ""),
            ("typeof ", "1", ""),
            ("typeof\u{a0}", "1", ""),
            ("typeof\n", "1", ""),
            ("a=>", "1", ""),
            ("1+", "1", ""),
            ("a=\n", "1", ""),
            ("a?1:", "1", ""),
            ("a.", "a", ""),
            ("`${", "1", "}`"),
            ("if(a)\n", "b", ""),
            ("if(a)b;else ", "b", ""),
            ("if(a){}else ", "b", ""),
            ("do ", "b", ";while(1);"),
            ("new ", "a", ""),
            ("f<", "A", ">()"),
            ("A<B,", "C", ">"),
            ("class extends ", "a", "{}"),
            ("keyof\n", "a", ""),
            ("a+\\u{62}c+", "1", ""),
            ("/'/.x+[", "1", "]"),
            ("b\n/['\"]/+[", "1", "]"),
            ("{}/['\"]/+[", "1", "]"),
        ] {
            let text = format!("{}{middle}{}", open.repeat(300), close.repeat(300));
            let weight = weigh(&text, true).map_or(MAX_WEIGHT, |weight| weight.levels);
            assert!(weight >= 300, "{open} weighs {weight}");
        }
    }

    #[test]
    fn long_is_not_deep() {
        for line in [
            "const x = [1, 2, 3];\n",
            "const x = f(1)\n",
            "function f(a) { return a / 2 }\n",
            "foo.bar(1, `a ${b} c`)\n",
            "if (a) { b() } else { c() }\n",
            "x.y = /[\"'`]/.test(a) ? b : c;\n",
            "export const s = 'it\\'s' + \"(\";\n",
            "type A<T> = Map<string, T> | null;\n",
            "class A { a() {} b() {} }\n",
            "// don't (\n",
            "/* don't ( */\n",
        ] {
            let text = line.repeat(20_000);
            assert!(weight(&text) < 40, "{line} weighs {}", weight(&text));
        }
        let list = format!("const x = [{}];", "{ a: 'b', c: [1, 2] },\n".repeat(50_000));
        assert!(weight(&list) < 40);
    }

    #[test]
    fn the_bound_says_where() {
        assert_eq!(weigh(&"[".repeat(200_000), true), Err(TooDeep { offset: MAX_WEIGHT / 2 }));
        assert!(weigh(&"a<".repeat(4_000), true).is_err());
        assert!(weigh(&"f<(a=".repeat(25), true).is_err());
        assert!(weigh(&"f<(a=".repeat(25), false).is_ok());
        assert!(weight(&"a: Map<A, (b: Set<(c: D) => E>) => F>;\n".repeat(10_000)) < 40);
    }
}
