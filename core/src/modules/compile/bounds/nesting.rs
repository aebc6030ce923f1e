//! Bounds of the parser's recursion into a source text and of the memory for its trees, known before it starts.
//!
//! In: a source text. Out: a weight that is at least the number of grammar levels open at once in any parse of it, or
//! the place where it exceeds `MAX_WEIGHT`; and the bytes that [`memory`] computes. The parser and every pass after it
//! recurse without a check of their own, and memory is charged for the stack that this bound names (contract: a source
//! that cannot be run is a `link_error`, never the end of the host). The stack itself is as large as any nesting of so
//! many bytes could need (`with_stack_for`), as far as the process has room for that.
//!
//! One level of recursion consumes at least one token, so the weight counts the tokens that may still be "open": those
//! of every open bracket since the last place where a statement or a list item must have ended. Where the lexer cannot
//! decide whether `/` divides, the text is read both ways at once, until one of the readings is over or both are at the
//! same place with the same brackets open; the weight is that of the heaviest.

use super::{
    lexer::{Lexer, Token},
    memory,
    rereads::{REREAD_BYTES, Rereads},
};

/// The lowest weight at which a source is refused. Hand-written code stays below a few hundred.
pub(crate) const MAX_WEIGHT: usize = 32_000;

/// Readings at once. Most are over at the end of a line, so most texts that people wrote have two. Beyond that no other
/// readings begin: the weight may then be too low, but the stack suffices for any text.
const MAX_READINGS: usize = 16;

/// The bytes that all readings may read, with the open brackets that may be copied or compared because readings part or
/// meet; and more for each byte. Beyond that no other readings begin.
const MAX_WORK: usize = 1 << 20;
const WORK_PER_BYTE: usize = 32;

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
    /// An approximate upper bound of the memory that parsing it takes.
    pub(crate) bytes: usize,
}

/// Computes upper bounds of the cost of compiling `text`.
pub(crate) fn weigh(text: &str, typescript: bool) -> Result<Weight, TooDeep> {
    read(text, typescript, |_| ())
}

/// As [`weigh`]; reports each token of each reading.
pub(in super::super) fn read<'a>(
    text: &'a str,
    typescript: bool,
    mut seen: impl FnMut(Token<'a>),
) -> Result<Weight, TooDeep> {
    let mut weight = Weight { levels: 0, bytes: 0 };
    let mut readings = vec![Reading::new(text, typescript)];
    let mut work_left = MAX_WORK + WORK_PER_BYTE * text.len();
    // Whether a reading was left out, and how far the others came.
    let (mut left_out, mut furthest) = (false, 0);
    while let Some(at) = furthest_behind(&readings) {
        let alone = readings.len() == 1;
        let reading = &mut readings[at];
        let begin = reading.lexer.offset();
        let fork = match reading.advance(alone, &mut seen)? {
            Advance::On => None,
            Advance::Forked(fork) => Some(*fork),
            Advance::Ended => {
                work_left = work_left.saturating_sub(reading.lexer.offset() - begin);
                furthest = furthest.max(reading.lexer.offset());
                weight.levels = weight.levels.max(reading.scale.most);
                weight.bytes = weight.bytes.max(reading.bytes());
                readings.swap_remove(at);
                continue;
            }
        };
        work_left = work_left.saturating_sub(readings[at].lexer.offset() - begin);
        let mut spend = |count: usize| {
            work_left = work_left.checked_sub(count + 1)?;
            Some(())
        };
        if let Some(fork) = fork {
            if readings.len() < MAX_READINGS && spend(fork.lexer.depth()).is_some() {
                readings.push(fork);
            } else {
                left_out = true;
            }
        }
        if readings.len() > 1 {
            merge(&mut readings, at, spend);
        }
    }
    if left_out {
        let unread = text.len().saturating_sub(furthest);
        weight.bytes = weight.bytes.saturating_add(memory::of_unread(unread));
    }
    let beside = memory::of_text(text) + memory::of_levels(weight.levels);
    weight.bytes = weight.bytes.saturating_add(beside);
    Ok(weight)
}

fn furthest_behind(readings: &[Reading<'_>]) -> Option<usize> {
    (0..readings.len()).min_by_key(|at| readings[*at].lexer.offset())
}

/// Makes one of a reading and another that continues alike. None if too much was compared before.
fn merge(
    readings: &mut Vec<Reading<'_>>,
    at: usize,
    mut spend: impl FnMut(usize) -> Option<()>,
) -> Option<()> {
    let offset = readings[at].lexer.offset();
    for other in 0..readings.len() {
        if other != at && readings[other].lexer.offset() == offset {
            spend(readings[at].lexer.depth())?;
            if readings[other].lexer.meets(&readings[at].lexer) {
                let merged = readings.swap_remove(at);
                let other = if other == readings.len() { at } else { other };
                readings[other].merge(&merged);
                return Some(());
            }
        }
    }
    Some(())
}

/// Where a reading stands.
enum Advance<'a> {
    On,
    /// There is another reading of the last token.
    Forked(Box<Reading<'a>>),
    /// At the end of the text, or where the parser could only fail.
    Ended,
}

/// One way to read the text up to some place.
#[derive(Clone)]
struct Reading<'a> {
    lexer: Lexer<'a>,
    scale: Scale,
    names: memory::Names,
    members: memory::Members,
    token_bytes: usize,
    most_rereads: u64,
}

impl<'a> Reading<'a> {
    fn new(text: &'a str, typescript: bool) -> Self {
        Self {
            lexer: Lexer::new(text),
            scale: Scale { rereads: Rereads::new(typescript), ..Scale::default() },
            names: memory::Names::default(),
            members: memory::Members::default(),
            token_bytes: 0,
            most_rereads: Rereads::allowed(text),
        }
    }

    /// Reads on up to a fork; or one token, unless this reading is the only one.
    fn advance(
        &mut self,
        alone: bool,
        seen: &mut impl FnMut(Token<'a>),
    ) -> Result<Advance<'a>, TooDeep> {
        loop {
            let swallowed = if self.scale.rereads.swallows() { self.swallow(seen)? } else { None };
            let Some(token) = &self.lexer.next_token() else {
                let offset = self.lexer.offset();
                if self.lexer.exhausted() {
                    return Err(TooDeep { offset });
                }
                match swallowed {
                    // It has counted all that this reading has.
                    Some(swallowed) => *self = swallowed,
                    None => return Ok(Advance::Ended),
                }
                return Ok(Advance::On);
            };
            let fork = self.lexer.fork();
            let other = fork.map(|(lexer, token)| {
                let mut other = Self { lexer, ..self.clone() };
                seen(token);
                other.put(&token).map(|()| other)
            });
            seen(*token);
            self.put(token)?;
            let other = other.transpose()?.or(swallowed);
            if other.is_some() || !alone {
                return Ok(other.map_or(Advance::On, |other| Advance::Forked(Box::new(other))));
            }
        }
    }

    /// The reading in which the parser takes the next token for `=>`.
    fn swallow(&self, seen: &mut impl FnMut(Token<'a>)) -> Result<Option<Self>, TooDeep> {
        let mut other = self.clone();
        let Some(token) = other.lexer.swallow() else { return Ok(None) };
        seen(token);
        other.scale.put_swallowed();
        other.token_bytes += memory::of_token(&token);
        other.within(token.start).map(|()| Some(other))
    }

    fn within(&self, offset: usize) -> Result<(), TooDeep> {
        if self.scale.open > MAX_WEIGHT || self.scale.rereads.total() > self.most_rereads {
            return Err(TooDeep { offset });
        }
        Ok(())
    }

    fn put(&mut self, token: &Token<'_>) -> Result<(), TooDeep> {
        self.scale.put(token);
        let listed = self.names.of(token) + self.members.of(token);
        self.token_bytes += memory::of_token(token) + listed;
        self.within(token.start)
    }

    fn bytes(&self) -> usize {
        let reread = usize::try_from(self.scale.rereads.total()).unwrap_or(usize::MAX);
        [
            REREAD_BYTES.saturating_mul(reread),
            memory::of_comments(self.lexer.comments()),
            memory::of_rare_blanks(self.lexer.rare_blanks()),
        ]
        .into_iter()
        .fold(self.token_bytes, usize::saturating_add)
    }

    /// Goes on for both readings, which must meet here.
    fn merge(&mut self, other: &Self) {
        self.scale.merge(&other.scale);
        self.token_bytes = self.token_bytes.max(other.token_bytes);
        self.lexer.merge(&other.lexer);
    }
}

/// The tokens that are open inside one pair of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Open before the first comma of the current statement, and tokens that commas could not close.
    kept: usize,
    /// Open since the last comma.
    item: usize,
    /// Those of them up to the last `<`.
    angled: usize,
    /// Whether a comma was seen since the statement began.
    listed: bool,
    /// A `;` was read. The next token shows whether it ended everything.
    ending: bool,
}

#[derive(Clone, Default)]
struct Scale {
    levels: Vec<Level>,
    here: Level,
    open: usize,
    most: usize,
    rereads: Rereads,
}

impl Scale {
    fn put(&mut self, token: &Token<'_>) {
        self.end_before(token);
        self.rereads.put(token);
        match token.text.as_bytes() {
            b"(" | b"[" | b"{" | b"${" | b"`" => self.open(),
            b")" | b"]" | b"}" | b"`}" => self.close(),
            b"," => self.end_item(),
            b";" => self.here.ending = true,
            b"<" => {
                self.count(1);
                self.here.angled = self.here.item;
            }
            b"else" | b"while" => {
                self.count(1);
                self.begin_substatement();
            }
            // A literal contains nothing.
            b"'" | b"\"" | b"0" | b"00" | b"/r" => {}
            _ => self.count(1),
        }
    }

    fn put_swallowed(&mut self) {
        self.count(1);
        self.rereads.put_swallowed();
    }

    /// Ends the constructs that must have ended before `token`.
    fn end_before(&mut self, token: &Token<'_>) {
        let ending = std::mem::take(&mut self.here.ending);
        if token.starts_statement
            || (ending && !matches!(token.text.as_bytes(), b"else" | b"while"))
        {
            self.end_statement();
            self.rereads.end_statement();
        }
    }

    fn open(&mut self) {
        self.count(1);
        self.levels.push(std::mem::take(&mut self.here));
        self.count(1);
    }

    fn count(&mut self, tokens: usize) {
        self.here.item += tokens;
        self.open += tokens;
        self.most = self.most.max(self.open);
    }

    fn close(&mut self) {
        if let Some(outer) = self.levels.pop() {
            self.end_statement();
            self.here = outer;
        }
    }

    /// Everything open at this level has ended.
    fn end_statement(&mut self) {
        self.open -= self.here.kept + self.here.item;
        self.here = Level::default();
    }

    /// A comma ends an expression, but no statement around it, and no `<` before it.
    fn end_item(&mut self) {
        if self.here.listed {
            self.here.kept += self.here.angled;
            self.open -= self.here.item - self.here.angled;
        } else {
            self.here.listed = true;
            self.here.kept += self.here.item;
        }
        self.here.item = 0;
        self.here.angled = 0;
    }

    /// A statement within a statement: its commas end nothing around it.
    fn begin_substatement(&mut self) {
        self.here.kept += std::mem::take(&mut self.here.item);
        self.here.angled = 0;
        self.here.listed = false;
    }

    fn merge(&mut self, other: &Self) {
        for (level, other) in self.levels.iter_mut().zip(&other.levels) {
            level.merge(other);
        }
        self.here.merge(&other.here);
        let levels = self.levels.iter().chain([&self.here]);
        self.open = levels.map(|level| level.kept + level.item).sum();
        self.most = self.most.max(other.most).max(self.open);
        self.rereads.merge(&other.rereads);
    }
}

impl Level {
    fn merge(&mut self, other: &Self) {
        self.kept = self.kept.max(other.kept);
        self.item = self.item.max(other.item);
        self.angled = self.angled.max(other.angled);
        // A first comma keeps more open than the others.
        self.listed &= other.listed;
        self.ending &= other.ending;
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
            ("if(a)b,c;else ", "d", ""),
            ("if(a)b,c\nelse ", "d", ""),
            ("if(a)b,c;else while(a)", "d", ""),
            ("A<B,keyof ", "C", ">"),
            ("typeof\u{200b}", "1", ""),
        ] {
            let text = format!("{}{middle}{}", open.repeat(300), close.repeat(300));
            let weight = weigh(&text, true).map_or(MAX_WEIGHT, |weight| weight.levels);
            assert!(weight >= 300, "{open} weighs {weight}");
        }
    }

    #[test]
    fn prefixes_before_type_arguments_stay_open() {
        let level = format!("A<B,{}", "keyof ".repeat(60));
        let text = format!("{}C{}", level.repeat(30), ">".repeat(30));
        assert!(weight(&text) >= 60 * 30);
    }

    #[test]
    fn tokens_that_are_read_again_take_memory() {
        for text in ["(a=(a,b)=>", "f<(a,b)-", "f<(a,b)+", "a<a,"] {
            let bytes = |times| weigh(&text.repeat(times), true).expect("within the bound").bytes;
            assert!(bytes(100) > 30 * bytes(10), "{text}");
        }
    }

    #[test]
    fn readings_that_end_at_the_end_of_the_text_are_few() {
        let started = std::time::Instant::now();
        let text = "{}/r/*1n;".repeat(40_000);
        weigh(&text, true).expect("within the bound");
        // Reading all of it in each reading takes minutes in this build.
        assert!(started.elapsed() < std::time::Duration::from_mins(1), "{:?}", started.elapsed());
    }

    #[test]
    fn many_readings_are_no_reason_to_refuse() {
        let line = "const x = useMemo((): A<B> => ({ m() { } }))\n";
        assert!(weight(&line.repeat(100)) < 5_000);
        let branch = "T extends A<infer X> ? X : ";
        assert!(weight(&format!("type D<T> = {}T", branch.repeat(100))) < 5_000);
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
        assert!(weigh(&"a<".repeat(9_000), true).is_err());
        assert!(weigh(&"f<(a=".repeat(25), true).is_err());
        assert!(weigh(&"f<(a=".repeat(25), false).is_ok());
        assert!(weight(&"a: Map<A, (b: Set<(c: D) => E>) => F>;\n".repeat(10_000)) < 40);
    }
}
