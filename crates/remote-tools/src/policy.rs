//! The policy: which tools code may call without a question, after a question, or not at all.
//!
//! In: patterns with decisions, a tool. Out: a decision. The longest pattern that matches counts, so their order does not
//! matter; of patterns that are equally long, the stricter decision counts.

use isolane::{Error, ErrorKind};

/// Whether code may call a tool. The stricter one is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Code calls the tool.
    Allow,
    /// Somebody is asked before each call.
    Ask,
    /// The tool is not there.
    Deny,
}

impl Decision {
    const NAMES: [(&str, Self); 3] =
        [("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny)];

    /// The decision of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(other, _)| *other == name).map(|(_, decision)| *decision)
    }
}

/// Patterns with decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy(Vec<(String, Decision)>);

impl Policy {
    /// Adds a pattern.
    ///
    /// # Errors
    /// A pattern that no tool can match.
    pub(crate) fn insert(&mut self, pattern: &str, decision: Decision) -> Result<(), Error> {
        let is_sign = |c: char| c.is_ascii_alphanumeric() || "_-./$@*".contains(c);
        let is_whole = pattern.contains('.') || pattern == "*";
        if pattern.is_empty() || !pattern.chars().all(is_sign) || !is_whole {
            let shown: String = pattern.chars().take(100).collect();
            let message = format!(
                "policy: '{shown}' is no pattern; write service.tool, where * stands for any characters: github.delete_*"
            );
            return Err(Error::new(ErrorKind::Type, message));
        }
        self.0.push((pattern.to_owned(), decision));
        Ok(())
    }

    /// The services that patterns name without a `*`, each with its pattern.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&str, &str)> {
        let named =
            |(pattern, _): &'_ (String, Decision)| pattern.split_once('.').map(|(s, _)| s.len());
        self.0.iter().filter_map(move |entry| {
            let service = &entry.0[..named(entry)?];
            (!service.contains('*')).then_some((service, entry.0.as_str()))
        })
    }

    /// The decision about a tool, by its full name. A tool that no pattern matches is asked about if it can destroy.
    pub(crate) fn decide(&self, tool: &str, is_destructive: bool) -> Decision {
        let default = if is_destructive { Decision::Ask } else { Decision::Allow };
        let matching = self.0.iter().filter(|(pattern, _)| matches(pattern, tool));
        let weight = |pattern: &str| pattern.chars().filter(|c| *c != '*').count();
        matching
            .map(|(pattern, decision)| (weight(pattern), *decision))
            .max()
            .map_or(default, |(_, decision)| decision)
    }
}

/// Whether a pattern matches a name. Costs the product of their lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut from) = (0, 0);
    // Where the latest star is, and where the name goes on behind what it stands for.
    let mut star = None;
    while from < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, from));
            at += 1;
        } else if pattern.get(at) == Some(&name[from]) {
            at += 1;
            from += 1;
        } else if let Some((star_at, star_from)) = star {
            star = Some((star_at, star_from + 1));
            at = star_at + 1;
            from = star_from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(patterns: &[(&str, &str)]) -> Policy {
        let mut policy = Policy::default();
        for (pattern, decision) in patterns {
            let decision = Decision::of(decision).expect("a decision");
            policy.insert(pattern, decision).expect("a pattern");
        }
        policy
    }

    #[test]
    fn patterns_match_with_stars() {
        for (pattern, name, expected) in [
            ("github.delete_*", "github.delete_repo", true),
            ("github.delete_*", "github.delete_", true),
            ("github.delete_*", "github.undelete_repo", false),
            ("*", "github.x", true),
            ("*.delete_*", "a.delete_b", true),
            ("*_a_*b", "x.c_a_a_bb", true),
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*c", "a.bcd", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_longest_pattern_counts_and_then_the_stricter_one() {
        let policy = policy(&[
            ("*", "ask"),
            ("github.*", "allow"),
            ("github.delete_*", "deny"),
            ("*.delete_me", "ask"),
            ("*.read_file", "allow"),
            ("files.*file", "ask"),
        ]);
        assert_eq!(policy.decide("shop.buy", false), Decision::Ask);
        assert_eq!(policy.decide("github.list", true), Decision::Allow);
        assert_eq!(policy.decide("github.delete_repo", false), Decision::Deny);
        assert_eq!(policy.decide("files.read_file", false), Decision::Ask);
        let services: Vec<_> = policy.services().collect();
        let named =
            [("github", "github.*"), ("github", "github.delete_*"), ("files", "files.*file")];
        assert_eq!(services, named);
    }

    #[test]
    fn tools_that_can_destroy_are_asked_about() {
        let none = Policy::default();
        assert_eq!(none.decide("github.delete_repo", true), Decision::Ask);
        assert_eq!(none.decide("github.list", false), Decision::Allow);
    }

    #[test]
    fn a_pattern_that_no_tool_can_match_is_refused() {
        for pattern in ["", "github", "github delete", "github.dé"] {
            let error = Policy::default().insert(pattern, Decision::Deny).expect_err(pattern);
            assert!(error.message().starts_with(&format!("policy: '{pattern}' is no pattern; ")));
        }
    }
}
