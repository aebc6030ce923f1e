//! The policy: which tools code may call without a question, after a question, or not at all.
//!
//! In: patterns with decisions, a tool. Out: a decision. The longest pattern that matches counts, so their order does not
//! matter; of patterns that are equally long, the stricter decision counts. A pattern may have the name that a tool has in
//! its server, or the one that code calls it by.

use isolane::{Error, ErrorKind};
use isolane_environment::tool_identifier;

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

/// The names of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// In its server: `github.delete-repo`.
    pub(crate) full: String,
    /// In code: `github.deleteRepo`.
    pub(crate) shown: String,
}

impl Names {
    pub(crate) fn new(service: &str, tool: &str) -> Self {
        let shown = format!("{service}.{}", tool_identifier(tool));
        Self { full: format!("{service}.{tool}"), shown }
    }

    fn match_with(&self, pattern: &str) -> bool {
        matches(pattern, &self.full) || matches(pattern, &self.shown)
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

    /// The patterns that match none of the tools. Patterns that fit one of these services, which are switched off, do
    /// not count.
    pub(crate) fn unmatched(&self, tools: &[Names], off: &[String]) -> Vec<&str> {
        let patterns = self.0.iter().map(|(pattern, _)| pattern.as_str());
        let is_off = |pattern: &str| {
            let (service, _) = pattern.split_once('.').unwrap_or((pattern, ""));
            off.iter().filter_map(|name| name.split('.').next()).any(|name| matches(service, name))
        };
        let unmatched =
            patterns.filter(|pattern| !tools.iter().any(|tool| tool.match_with(pattern)));
        unmatched.filter(|pattern| !is_off(pattern)).collect()
    }

    /// The decision about a tool. A tool that no pattern matches is asked about if it can destroy.
    pub(crate) fn decide(&self, tool: &Names, is_destructive: bool) -> Decision {
        let default = if is_destructive { Decision::Ask } else { Decision::Allow };
        let matching = self.0.iter().filter(|(pattern, _)| tool.match_with(pattern));
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
        let decide = |service: &str, tool: &str, is_destructive| {
            policy.decide(&Names::new(service, tool), is_destructive)
        };
        assert_eq!(decide("shop", "buy", false), Decision::Ask);
        assert_eq!(decide("github", "list", true), Decision::Allow);
        assert_eq!(decide("github", "delete_repo", false), Decision::Deny);
        assert_eq!(decide("files", "read_file", false), Decision::Ask);
        let services: Vec<_> = policy.services().collect();
        let named =
            [("github", "github.*"), ("github", "github.delete_*"), ("files", "files.*file")];
        assert_eq!(services, named);
    }

    #[test]
    fn tools_that_can_destroy_are_asked_about() {
        let none = Policy::default();
        assert_eq!(none.decide(&Names::new("github", "delete_repo"), true), Decision::Ask);
        assert_eq!(none.decide(&Names::new("github", "list"), false), Decision::Allow);
    }

    #[test]
    fn a_tool_has_the_name_of_its_server_and_that_of_code() {
        let tool = Names::new("github", "delete-repo");
        for pattern in ["github.delete-repo", "github.deleteRepo", "github.delete*"] {
            let policy = policy(&[(pattern, "deny")]);
            assert_eq!(policy.decide(&tool, false), Decision::Deny);
            assert_eq!(policy.unmatched(std::slice::from_ref(&tool), &[]), [""; 0]);
        }
        let policy = policy(&[("*.delete_repo", "deny"), ("github.delete_repo", "deny")]);
        assert_eq!(policy.decide(&tool, false), Decision::Allow);
        let tools = [tool];
        assert_eq!(policy.unmatched(&tools, &[]), ["*.delete_repo", "github.delete_repo"]);
        assert_eq!(policy.unmatched(&tools, &["github".to_owned()]), [""; 0]);
    }

    #[test]
    fn patterns_that_match_nothing_are_found_wherever_their_stars_are() {
        let policy = policy(&[
            ("*.nosuch", "deny"),
            ("git*.delete_*", "deny"),
            ("github.delete_*", "deny"),
            ("*.say", "ask"),
            ("off.x", "deny"),
            ("o*.y", "deny"),
            ("*", "ask"),
        ]);
        let tools = [Names::new("github", "say")];
        let unmatched = policy.unmatched(&tools, &["off.beta".to_owned()]);
        assert_eq!(unmatched, ["git*.delete_*", "github.delete_*"]);
        let unmatched = policy.unmatched(&tools, &[]);
        assert_eq!(unmatched, ["*.nosuch", "git*.delete_*", "github.delete_*", "off.x", "o*.y"]);
    }

    #[test]
    fn a_pattern_that_no_tool_can_match_is_refused() {
        for pattern in ["", "github", "github delete", "github.dé"] {
            let error = Policy::default().insert(pattern, Decision::Deny).expect_err(pattern);
            assert!(error.message().starts_with(&format!("policy: '{pattern}' is no pattern; ")));
        }
    }
}
