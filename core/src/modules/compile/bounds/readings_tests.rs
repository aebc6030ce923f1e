//! The bounds of nesting against the parser: each token of a random text that parses must be one of some reading, and no
//! pass may use more stack than the weight of the text says.

use std::{
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
};

use oxc_allocator::Allocator;
use oxc_parser::{Kind, Parser, config::TokensParserConfig};

use super::{
    super::{
        entries::{compile, compile_cell},
        parse::source_type,
    },
    nesting,
    stack::{STACK_BASE, STACK_PER_WEIGHT},
};
use crate::data::source::Language;
#[cfg(target_os = "linux")]
use crate::testing::backed::backed_bytes;

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % end as u64).expect("less than the end")
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const PIECES: &[&str] = &[
    "a",
    "b",
    "1",
    "'s'",
    "`t`",
    "`${",
    "}",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "/",
    "/",
    "/",
    "/=",
    "/x/",
    "/x/",
    "/[/]/g",
    "/(/",
    "/'/",
    "\n",
    "\n",
    "\n",
    " ",
    ";",
    ",",
    ":",
    "?",
    "?.",
    ".",
    "...",
    "=",
    "=>",
    "==",
    "+",
    "-",
    "++",
    "--",
    "!",
    "~",
    "*",
    "&&",
    "|",
    "&",
    "<",
    ">",
    ">>",
    "@",
    "#p",
    "1.",
    ".5",
    "07.",
    "if",
    "for",
    "while",
    "do",
    "else",
    "return",
    "typeof",
    "in",
    "of",
    "instanceof",
    "new",
    "delete",
    "void",
    "case",
    "default",
    "throw",
    "extends",
    "await",
    "yield",
    "async",
    "let",
    "var",
    "const",
    "class",
    "function",
    "enum",
    "as",
    "satisfies",
    "keyof",
    "infer",
    "is",
    "asserts",
    "abstract",
    "declare",
    "namespace",
    "module",
    "type",
    "interface",
    "import",
    "export",
    "from",
    "break",
    "continue",
    "debugger",
    "switch",
    "try",
    "catch",
    "finally",
    "with",
    "static",
    "get",
    "set",
    "this",
    "super",
    "null",
    "true",
    "readonly",
    "unique",
    "accessor",
    "using",
    "\\u{69}f",
    "\\u0069n",
    "t\\u{79}peof",
    "<!--",
    "-->",
    "//c\n",
    "/*c*/",
    "/*\n*/",
    "\u{2028}",
    "\u{a0}",
    "import.meta",
    "new.target",
];

/// Pieces of texts that parse, to be mixed with the others.
const PHRASES: &[&str] = &[
    "a",
    "a;",
    "(a)",
    "[a]",
    "{}",
    "{a}",
    "({})",
    "function f(){}",
    "class A{}",
    "class A{x\n}",
    "class A extends B{}",
    "if(a)",
    "if(a){}",
    "while(a)",
    "do a;while(a)",
    "do{}while(a)",
    "for(;;)",
    "for(a of b)",
    "for(const a of ",
    "for await(a of b)",
    "switch(a){case ",
    "x:",
    "()=>{}",
    "a=>",
    "async()=>{}",
    "async function f(){await ",
    "function*g(){yield ",
    "var a",
    "let a",
    "let a:T",
    "let a:T[]",
    "let a:A<B>",
    "let a:{}",
    "let a:()=>void",
    "let a:T?",
    "let a!:T",
    "type A=B",
    "type A=B<C>",
    "type A={}",
    "type A=typeof a",
    "type A=keyof ",
    "interface A{}",
    "interface A{a:B\n}",
    "enum E{}",
    "namespace N{}",
    "declare function f():T",
    "function f():T",
    "declare module 'm'",
    "import 'm'",
    "import a from 'm'",
    "import{a}from 'm'",
    "export{a}",
    "export*from 'm'",
    "export default ",
    "export default a",
    "import x=a.b",
    "a as T",
    "a as T?",
    "a as T!",
    "a as A<B>",
    "a satisfies T",
    "a!",
    "a++",
    "a--",
    "<T>a",
    "f<T>(a)",
    "f<T>",
    "new A<T>",
    "new A",
    "a`t`",
    "`t`",
    "'use strict'",
    "x=a",
    "x={}",
    "x=class{}",
    "x=function(){}",
    "throw a",
    "break x",
    "continue x",
    "a?b:",
    "a?.b",
    "a?.[b]",
    "a.if",
    "a.typeof",
    "a.in",
    "this.#p",
    "try{}catch{}",
    "try{}finally{}",
    "label:{}",
    "static",
    "@d class A{}",
    "@(a)class A{}",
    "using x=a",
    "a=b",
    "return",
    "await a",
    "(a,b)",
    "(a=b)",
    "`${a}`",
    "if(a)b;else ",
    "debugger",
    "import('m')",
    "new A()",
    "(a):T=>b",
    "async x=>a",
    "x as (a,b)",
    "let x:(a,b)",
    "x as()",
    "let x:(a?b:c)",
    "type A=(a,b)",
    "x as new(a)",
    "let x:<T>(a)",
    "f<(a,b)",
    "(x as(a,b))",
    "class A{x:(a,b)",
    "if(x as(a,b))",
    "[x as(a,b)]",
    "{x as(a,b)}",
    "f(a:(a,b)",
    "function f():(a,b)",
    "interface A{a:(b,c)",
    "()=>(a,b)",
    "x?(a):(b,c)",
];

fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(4) {
        let from = if random.below(3) == 0 { PIECES } else { PHRASES };
        text.push_str(random.pick(from));
        text.push_str(random.pick(&["", "", "\n", " "]));
    }
    text.push_str(
        random.pick(&["/", "/", "/x/", "/'/", "/[/'\"]/", "/(/g", "/=/", "/`/", "/a b/"]),
    );
    for _ in 0..random.below(4) {
        let from = if random.below(3) == 0 { PHRASES } else { PIECES };
        text.push_str(random.pick(from));
        text.push_str(random.pick(&["", "", "", " "]));
    }
    text.push_str(random.pick(&["", "", "", "}", ")", "}}", ")}", "\n/1"]));
    text
}

/// Where the tokens of any reading start, and whether each is a regular expression.
fn tokens(text: &str, typescript: bool) -> HashSet<(usize, bool)> {
    let mut found = HashSet::new();
    nesting::read(text, typescript, |token| {
        found.insert((token.start, token.text == "/r"));
    })
    .expect("small");
    found
}

#[test]
fn every_token_is_one_of_some_reading() {
    let rounds = std::env::var("ISOLANE_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let mut random = Random(rounds.unwrap_or(7));
    let mut parsed_texts = 0;
    let mut wrong = Vec::new();
    for _ in 0..rounds.unwrap_or(100_000) {
        let text = text(&mut random);
        for typescript in [false, true] {
            let found = tokens(&text, typescript);
            let allocator = Allocator::default();
            let parser = Parser::new(&allocator, &text, source_type(typescript));
            let parser = parser.with_config(TokensParserConfig);
            // Where it collects tokens, the parser has an assertion that some texts do not keep.
            let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse()));
            let Some(parsed) = parsed.ok().filter(|parsed| !parsed.panicked) else { continue };
            parsed_texts += 1;
            for token in &parsed.tokens {
                let start = token.start() as usize;
                let known = match token.kind() {
                    Kind::RegExp => found.contains(&(start, true)),
                    Kind::Slash
                    | Kind::SlashEq
                    | Kind::LParen
                    | Kind::RParen
                    | Kind::LBrack
                    | Kind::RBrack
                    | Kind::LCurly
                    | Kind::Str
                    | Kind::Semicolon
                    | Kind::Comma => found.contains(&(start, false)),
                    _ => true,
                };
                if !known {
                    wrong.push(format!("{text:?} at {start}, typescript {typescript}"));
                    break;
                }
            }
        }
        if wrong.len() > 20 {
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed_texts > 1_000, "{parsed_texts} texts parse");
}

/// How much of the `bytes` of its stack below here a thread has touched.
#[cfg(target_os = "linux")]
fn touched_stack(bytes: usize) -> usize {
    let here = 0_u8;
    let page = (&raw const here).addr() & !4095;
    backed_bytes(page - bytes, bytes)
}

#[cfg(target_os = "linux")]
const NESTS: &[(&str, &str, &str)] = &[
    ("[", "1", "]"),
    ("(", "1", ")"),
    ("{", "", "}"),
    ("({a:", "1", "})"),
    ("!", "1", ""),
    ("- ", "1", ""),
    ("typeof ", "1", ""),
    ("a=>", "1", ""),
    ("(a)=>", "1", ""),
    ("(a=", "1", ")=>1"),
    ("1+", "1", ""),
    ("1**", "1", ""),
    ("a=", "1", ""),
    ("a?1:", "1", ""),
    ("a.", "a", ""),
    ("`${", "1", "}`"),
    ("if(a)", "b", ""),
    ("if(a)b;else ", "b", ""),
    ("if(a){b}else ", "b", ""),
    ("f(", "1", ")"),
    ("(function(){", "", "})"),
    ("(class{a=", "1", "})"),
    ("class A extends ", "a", "{}"),
    ("type T=[", "A", "]"),
    ("let x:A<", "A", ">"),
    ("A<", "A", ">"),
    ("<a>", "1", ""),
    ("async(", "1", ")"),
    ("new ", "a", ""),
    ("[...", "a", "]"),
    ("namespace N{", "", "}"),
    ("do ", "b", ";while(1);"),
    ("await ", "1", ""),
    ("x:", "1", ""),
    ("for(;;)", "b", ""),
    ("switch(a){case 1:", "b", "}"),
    ("try{", "b", "}catch{}"),
    ("a&&", "1", ""),
    ("a||b&&", "1", ""),
    ("a??", "1", ""),
    ("a,", "1", ""),
    ("a[", "1", "]"),
    ("a()", "", ""),
    ("a.b()", "", ""),
    ("a`x`", "", ""),
    ("a!", "", ""),
    ("let [", "a", "]=b"),
    ("[a=", "1", "]"),
    ("a as T|", "1", ""),
    ("'s'+", "'s'", ""),
    ("a+b*", "1", ""),
    ("keyof ", "A", ""),
    ("a extends b?c:", "d", ""),
    ("()=>", "a", ""),
    ("{a:", "b", "}"),
    ("with(a)", "b", ""),
    ("while(a)", "b", ""),
    ("(a,", "b", ")"),
    ("a?.b", "", ""),
    ("x as ()=>", "y", ""),
    ("@a(", "b", ")class A{}"),
];

/// The stack that compiling a text touches, and the levels of its weight.
#[cfg(target_os = "linux")]
fn stack_of(text: String, language: Language) -> Option<(usize, usize)> {
    let weight = nesting::weigh(&text, language == Language::TypeScript).ok()?;
    let room = STACK_BASE + weight.levels * STACK_PER_WEIGHT;
    // Larger than any stack that the system keeps for another thread.
    let below = (2 * room + (48 << 20)).next_multiple_of(4096);
    let thread = std::thread::Builder::new().stack_size(below + (16 << 20));
    let measured = thread.spawn(move || {
        let before = touched_stack(below);
        let _ = compile(&text, language, &[], usize::MAX);
        let _ = compile_cell(&text, language, &[], usize::MAX);
        touched_stack(below) - before
    });
    Some((measured.expect("a thread").join().expect("it is measured"), weight.levels))
}

#[cfg(target_os = "linux")]
#[test]
fn no_pass_takes_more_stack_than_the_weight_says() {
    for &(open, middle, close) in NESTS {
        for before in ["", "type X=", "let x:"] {
            for language in [Language::JavaScript, Language::TypeScript] {
                if !before.is_empty() && language == Language::JavaScript {
                    continue;
                }
                let count = 2_000;
                let text = format!("{before}{}{middle}{}", open.repeat(count), close.repeat(count));
                let Some((used, levels)) = stack_of(text, language) else { continue };
                assert!(
                    used < STACK_BASE + levels * STACK_PER_WEIGHT / 2,
                    "{before}{open} {language:?}: {used} for {levels}"
                );
            }
        }
    }
}
