//! Imports and exports in a form that the language does not have.

use super::{
    source::{Advice, Source, first_word, shown},
    words::is_plain,
};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    declared(source).or_else(|| misformed(source))
}

/// `const { orders } from 'shop'`
fn declared(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let keyword = source.tokens.back(0)?;
    let (_, after) = source.rest().lines().next()?.split_once('}')?;
    let specifier = after.trim_start().strip_prefix("from")?.trim_start();
    let declares =
        matches!(keyword.text, "const" | "let" | "var") && source.rest().starts_with('{');
    (declares && specifier.starts_with(['\'', '"']))
        .then(|| Advice::at(format!("write import in place of {}", keyword.text), keyword.start))
}

fn misformed(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let tokens = &source.tokens;
    let rest = source.rest();
    let word = first_word(rest);
    let after = rest.get(word.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
    let name = shown(word);
    let clause = match (tokens.text(0), word) {
        ("default", "const" | "let" | "var") if tokens.text(1) == "export" => {
            format!("declare it with {word} first, and export its name")
        }
        ("from", _) if is_plain(word) && imports(source) => {
            format!("write the specifier in quotes: '{name}'")
        }
        ("*", "from") if tokens.text(1) == "import" => {
            "write import * as, and a name for the whole module".to_owned()
        }
        (",", _) if is_plain(word) && tokens.text(2) == "import" => {
            "write all names but the first one in braces".to_owned()
        }
        ("function", "") if tokens.text(1) == "export" && rest.starts_with('(') => {
            "give it a name, or write export default".to_owned()
        }
        ("export", _) if is_plain(word) && ends_statement(after) => {
            format!("write export default {name}, or export {{ {name} }}")
        }
        ("export", _) if is_plain(word) && after.starts_with('=') => {
            format!("write export const {name}")
        }
        ("import", "") if rest.starts_with(['\'', '"']) => {
            "within an expression write await import(…)".to_owned()
        }
        (_, "import") if !after.starts_with(['(', '.']) && source.is_within_function() => {
            "move it to the top of the module".to_owned()
        }
        _ if rest.starts_with(':') && in_names(source) => {
            "an import is renamed with 'as'".to_owned()
        }
        _ => return None,
    };
    Some(Advice::new(clause))
}

impl Source<'_, '_, '_> {
    /// Whether the error begins a statement in a block, and its line is indented.
    fn is_within_function(&self) -> bool {
        let block = self.tokens.innermost().is_some_and(|bracket| bracket.text == "{");
        block && self.at > self.line_start() && self.to(self.at).ends_with([' ', '\t'])
    }
}

/// Whether the error is in an import or in an export from another module.
fn imports(source: &Source<'_, '_, '_>) -> bool {
    let mut tokens = source.tokens.backwards();
    let begins = |text: &str| matches!(text, "import" | "export");
    tokens
        .find(|token| begins(token.text) || matches!(token.text, ";" | "=" | "("))
        .is_some_and(|token| begins(token.text))
}

/// Whether the error is in the braces of an import.
fn in_names(source: &Source<'_, '_, '_>) -> bool {
    let innermost = source.tokens.innermost().filter(|bracket| bracket.text == "{");
    innermost.is_some_and(|brace| matches!(brace.before.text, "import" | "type" | ","))
        && imports(source)
}

fn ends_statement(text: &str) -> bool {
    text.is_empty() || text.starts_with([';', ',', '\n', '\r'])
}
