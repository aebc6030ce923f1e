//! Keywords that are misspelled, and keywords that are used as names.

use super::source::{Advice, Source, begins_name, first_word, is_name};

/// Keywords that begin a statement, and that another word follows.
const OF_STATEMENTS: &[&str] = &[
    "const",
    "function",
    "class",
    "return",
    "import",
    "export",
    "throw",
    "interface",
    "type",
    "enum",
    "async",
    "await",
    "let",
    "var",
];

/// Keywords that begin an expression, and that another word follows.
const OF_EXPRESSIONS: &[&str] = &["function", "class", "async", "await", "typeof", "new"];

/// Keywords that a bracket and a block follow.
const BEFORE_A_BLOCK: &[&str] = &["while", "switch", "for", "function", "if"];

/// Keywords that follow the block of `try`.
const BEHIND_TRY: &[&str] = &["catch", "finally"];

/// `cosnt rows = []`, `whlie (…) {`.
pub(super) fn misspelled(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let tokens = &source.tokens;
    let rest = source.rest();
    if source.failure.message.starts_with("Missing catch or finally") {
        let rest = rest.trim_start();
        let near = nearest(first_word(rest), BEHIND_TRY)?;
        let at = source.text.len() - rest.len();
        return Some(Advice::at(format!("did you mean '{near}'?"), at));
    }
    let last = *tokens.back(0)?;
    let (word, keywords): (_, &[&str]) = if rest.starts_with('{') && tokens.closed.is_some() {
        (tokens.closed.filter(|bracket| bracket.text == "(")?.before, BEFORE_A_BLOCK)
    } else if rest.starts_with(is_operand) && last.end == source.at {
        (last, if tokens.begins_statement(0) { OF_STATEMENTS } else { OF_EXPRESSIONS })
    } else {
        return None;
    };
    let known = is_reserved(word.text) || OF_STATEMENTS.contains(&word.text);
    if known || is_variable(source.text, word.text) {
        return None;
    }
    let near = nearest(word.text, keywords)?;
    Some(Advice::at(format!("did you mean '{near}'?"), word.start))
}

/// Whether a text uses a name elsewhere as no keyword can be used.
fn is_variable(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = text.split_at(at);
        let after = after.get(name.len()..).unwrap_or_default();
        let whole = !before.ends_with(is_name) && !after.starts_with(is_name);
        whole && after.trim_start().starts_with(['=', '.', ',', ';', ')', ':', '+', '-', '?'])
    })
}

fn is_operand(char: char) -> bool {
    char.is_alphabetic() || matches!(char, '_' | '$' | '{' | '\'' | '"')
}

/// `const class = 1`, `(case) => …`.
pub(super) fn reserved(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.rest();
    let word = first_word(rest);
    let after = rest.get(word.len()..).unwrap_or_default().trim_start();
    let named = match source.tokens.text(0) {
        "const" | "let" | "var" | "function" | "class" => true,
        "(" | "," => after.starts_with([')', ',']),
        _ => false,
    };
    if !named || !is_reserved(word) {
        return None;
    }
    let says = source.failure.message.contains("reserved");
    let clause = if says { String::new() } else { format!("'{word}' is a reserved word: ") };
    Some(Advice::new(clause + "choose another name"))
}

/// Whether no variable can have that name.
pub(super) fn is_reserved(word: &str) -> bool {
    const RESERVED: &str = " await break case catch class const continue debugger default delete do else enum export \
        extends false finally for function if implements import in instanceof interface let new null package private \
        protected public return static super switch this throw true try typeof var void while with yield ";
    !word.is_empty() && RESERVED.split_ascii_whitespace().any(|reserved| reserved == word)
}

/// The keyword that a word differs from by a slip or two.
fn nearest(word: &str, keywords: &[&'static str]) -> Option<&'static str> {
    let length = word.len();
    if !word.is_ascii() || !(2..=12).contains(&length) {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let most = if length < 8 { 1 } else { 2 };
    let near = keywords.iter().map(|keyword| (slips(&lower, keyword), *keyword));
    let (slips, keyword) = near.min_by_key(|(slips, _)| *slips)?;
    // A short word is near to many.
    (slips <= most && (keyword.len() > 3 || slips == 0)).then_some(keyword)
}

/// The letters to change, add, leave out or swap with the next one.
fn slips(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    let cell = |rows: &[Vec<usize>], i: usize, j: usize| {
        rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(usize::MAX / 2)
    };
    for i in 1..=from.len() {
        rows.push(vec![i]);
        for j in 1..=to.len() {
            let same = from.get(i - 1) == to.get(j - 1);
            let mut least = cell(&rows, i - 1, j - 1) + usize::from(!same);
            least = least.min(cell(&rows, i - 1, j) + 1).min(cell(&rows, i, j - 1) + 1);
            if i > 1
                && j > 1
                && from.get(i - 1) == to.get(j - 2)
                && from.get(i - 2) == to.get(j - 1)
            {
                least = least.min(cell(&rows, i - 2, j - 2) + 1);
            }
            if let Some(row) = rows.get_mut(i) {
                row.push(least);
            }
        }
    }
    cell(&rows, from.len(), to.len())
}

/// Whether a word can be a name.
pub(super) fn is_plain(word: &str) -> bool {
    begins_name(word) && !is_reserved(word)
}
