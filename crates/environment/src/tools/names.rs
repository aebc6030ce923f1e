//! Names of tools, and the identifiers by which code calls them.
//!
//! In: a name as its owner gives it. Out: an identifier of TypeScript: `list-issues` is `listIssues`.

use isolane::is_reserved_word;

/// Names by which an object would be something else: an object with `then` is awaited.
const MISLEADING: [&str; 2] = ["__proto__", "then"];

/// Characters that a name may have beside letters and digits.
const SIGNS: &str = "_-./$@";

/// The longest name, in bytes.
const MOST_BYTES: usize = 128;

/// Whether a tool or a service may have that name: at most 128 ASCII letters, digits and `_-./$@`, of which the first is no
/// hyphen, dot or slash.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || SIGNS.contains(c);
    let is_first = |c: char| c.is_ascii_alphanumeric() || "_$@".contains(c);
    name.len() <= MOST_BYTES && name.starts_with(is_first) && name.chars().all(is_allowed)
}

/// The identifier by which code calls a tool of that name: `list-issues` is `listIssues`.
#[must_use]
pub fn identifier(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut text = String::new();
    for word in name.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
        let mut rest = word.chars();
        match rest.next() {
            Some(first) if !text.is_empty() => text.push(first.to_ascii_uppercase()),
            Some(first) => text.push(first),
            None => {}
        }
        text.push_str(rest.as_str());
    }
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if is_reserved_word(&text) || MISLEADING.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_identifiers_become_camel_case() {
        for (name, expected) in [
            ("listIssues", "listIssues"),
            ("list_issues", "list_issues"),
            ("list-issues", "listIssues"),
            ("repos/list.all", "reposListAll"),
            ("2fa", "_2fa"),
            ("delete", "delete_"),
            ("then", "then_"),
            ("--a", "a"),
        ] {
            assert_eq!(identifier(name), expected);
        }
        assert!(is_name("list-issues") && is_name("@scope/x") && !is_name("") && !is_name("a b"));
        assert!(!is_name("./a") && !is_name("/a") && !is_name("a:b") && !is_name(&"a".repeat(129)));
    }
}
