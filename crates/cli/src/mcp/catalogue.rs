//! The tools of other servers, as a model learns of them.
//!
//! In: tools; a query. Out: a text for the description of `run_code`; declarations of the tools that fit the query best.

use isolane_environment::{ToolInfo, ToolSet, tool_types};
use serde_json::Value as Json;

/// The most bytes of declarations that stand in the description of `run_code`.
const MOST_INLINE_BYTES: usize = 8 << 10;

/// The tools that are described without a limit of the model's.
pub(super) const DEFAULT_LIMIT: usize = 10;

/// The most tools that are described at once.
pub(super) const MOST: usize = 100;

/// The facts that a model needs about all tools of other servers.
const HOW: &str = "The tools of other servers are functions that the code imports, by `import { name } from 'module'`. A \
     call takes one object and must be awaited. A tool that declares no answer answers text, which is often JSON: parse it. A \
     tool that fails throws. Call many tools in one run, and return what matters only.";

/// The part of the description of `run_code` that tells of the tools.
pub(super) fn summary(tools: &ToolSet) -> String {
    let types = tools.types();
    if types.len() <= MOST_INLINE_BYTES {
        return format!("{HOW}\n\n{types}");
    }
    let mut modules: Vec<(&str, usize)> = Vec::new();
    for tool in tools.infos() {
        match modules.last_mut().filter(|(name, _)| *name == tool.service) {
            Some((_, count)) => *count += 1,
            None => modules.push((&tool.service, 1)),
        }
    }
    let modules: Vec<String> =
        modules.into_iter().map(|(name, count)| format!("'{name}' ({count} tools)")).collect();
    format!(
        "{HOW} Call describe_tools first: it finds tools and gives their declarations. The modules are {}.",
        modules.join(", ")
    )
}

/// The result of a search.
pub(super) struct Found {
    pub(super) types: String,
    /// Names as in the code: `github.createIssue`.
    pub(super) names: Vec<String>,
    /// How many tools fit.
    pub(super) count: usize,
}

/// The tools that fit a query best, at most so many; the first ones without a query.
pub(super) fn find(tools: &ToolSet, query: &str, limit: usize) -> Found {
    let words = words(query);
    let mut fitting: Vec<(usize, &ToolInfo)> = tools
        .infos()
        .iter()
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| words.is_empty() || *score > 0)
        .collect();
    let count = fitting.len();
    // Those of equal scores stay in the order of their names.
    fitting.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let mut found: Vec<ToolInfo> =
        fitting.into_iter().take(limit).map(|(_, tool)| tool.clone()).collect();
    let names = found.iter().map(ToolInfo::shown_name).collect();
    // The tools of a module stand together.
    found.sort_by(|a, b| (&a.service, &a.name).cmp(&(&b.service, &b.name)));
    Found { types: tool_types(&found), names, count }
}

/// How well a tool fits: a word of its name counts more than one of a field, and that more than one of its description.
fn score(tool: &ToolInfo, query: &[String]) -> usize {
    let has = |text: &str, word: &str| {
        words(text).iter().any(|own| own == word || (word.len() > 2 && own.starts_with(word)))
    };
    let schema = tool.description.input_schema.as_ref();
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Json::as_object);
    query
        .iter()
        .map(|word| {
            if has(&tool.name, word) || has(&tool.service, word) {
                4
            } else if fields.is_some_and(|fields| fields.keys().any(|name| has(name, word))) {
                2
            } else {
                usize::from(has(&tool.description.description, word))
            }
        })
        .sum()
}

/// The words of a text, in small letters: `listIssues` has two.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars().take(4000) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_small) {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use isolane_environment::{ToolContext, ToolDescription, ToolHandler};

    use super::*;

    fn tools() -> ToolSet {
        let handler = |args, _: ToolContext| async { Ok(args) };
        let tool = |name: &str, description: &str| {
            let description = ToolDescription {
                description: description.to_owned(),
                ..ToolDescription::default()
            };
            let handler: Arc<dyn ToolHandler> = Arc::new(handler);
            ("github".to_owned(), name.to_owned(), description, handler)
        };
        let mut tools = ToolSet::default();
        let all = [
            tool("listIssues", "Lists the issues of a repository."),
            tool("create_issue", "Opens an issue."),
            tool("delete-repo", "Deletes a repository."),
        ];
        tools.add(all).expect("tools");
        tools
    }

    #[test]
    fn words_of_names_are_found() {
        assert_eq!(words("listIssues of_HTTP2 x-y"), ["list", "issues", "of", "http2", "x", "y"]);
        let names = |query: &str, limit| find(&tools(), query, limit).names;
        assert_eq!(names("repo", 10), ["github.deleteRepo", "github.listIssues"]);
        assert_eq!(names("create issue", 1), ["github.create_issue"]);
        assert_eq!(names("weather", 10), [""; 0]);
        assert_eq!(names("", 2).len(), 2);
        assert_eq!(find(&tools(), "", 2).count, 3);
        assert!(find(&tools(), "repo", 1).types.starts_with("declare module 'github' {\n"));
    }

    #[test]
    fn few_tools_are_declared_at_once_and_many_are_named() {
        assert!(summary(&tools()).contains("export function create_issue("));
        let mut many = tools();
        let long = ToolDescription { description: "x".repeat(900), ..ToolDescription::default() };
        let handler = |args, _: ToolContext| async { Ok(args) };
        let shop = (0..10).map(|number| {
            let handler: Arc<dyn ToolHandler> = Arc::new(handler);
            ("shop".to_owned(), format!("tool{number}"), long.clone(), handler)
        });
        many.add(shop).expect("tools");
        let text = summary(&many);
        assert!(text.ends_with("The modules are 'github' (3 tools), 'shop' (10 tools)."), "{text}");
    }
}
