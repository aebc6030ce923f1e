//! Values in HTML.
//!
//! In: a value. Out: a short one on its line, a longer one as lists that fold. Their depth and the number of their members
//! are bounded, for each becomes an element.

use serde_json::Value as Json;

use super::escape::escaped;
use crate::{render::plain::shallow, text::json::json_text};

/// The longest value that stands on one line, in characters.
const LINE_CHARACTERS: usize = 80;

/// The levels of lists. Deeper ones are an ellipsis.
const MOST_DEPTH: usize = 50;

/// The longest text within a value, in characters.
const MOST_TEXT: usize = 10_000;

/// The levels and the members that are open from the start, and those of an expanded page.
const OPEN: [(usize, usize); 2] = [(2, 5), (6, 20)];

/// The members of all values of a page.
#[derive(Debug)]
pub(super) struct Members {
    left: usize,
    is_expanded: bool,
}

impl Members {
    pub(super) fn new(is_expanded: bool) -> Self {
        Self { left: 20_000, is_expanded }
    }

    /// The elements for a value.
    pub(super) fn value(&mut self, value: &Json) -> String {
        let shallow = shallow(value, MOST_DEPTH);
        let value = &*shallow;
        let line = match value {
            Json::Array(items) if items.len() > LINE_CHARACTERS => None,
            Json::Object(fields) if fields.len() > LINE_CHARACTERS => None,
            value => Some(json_text(value, usize::MAX)).filter(|text| !text.contains('\n')),
        };
        let mut out = String::from("<div class=\"json\">");
        match line {
            Some(line) => out.push_str(&format!("<code>{}</code>", escaped(&line))),
            None => self.node("", value, 0, &mut out),
        }
        out.push_str("</div>\n");
        out
    }

    /// `label` is HTML.
    fn node(&mut self, label: &str, value: &Json, depth: usize, out: &mut String) {
        let (about, count) = match value {
            Json::Array(items) if !items.is_empty() => {
                (counted(items.len(), "item", "items"), items.len())
            }
            Json::Object(fields) if !fields.is_empty() => {
                (counted(fields.len(), "key", "keys"), fields.len())
            }
            scalar => return self::scalar(label, scalar, out),
        };
        let (levels, members) = OPEN[usize::from(self.is_expanded)];
        let open = if depth == 0 || (depth < levels && count <= members) { " open" } else { "" };
        let brackets = if value.is_array() { ("[", "]") } else { ("{", "}") };
        out.push_str(&format!(
            "<details{open}><summary>{label}{}<span class=\"about\"> {about} </span>{}</summary><ul>",
            brackets.0, brackets.1
        ));
        let mut shown = 0;
        let mut member = |label: &str, value: &Json, out: &mut String| {
            if self.left == 0 {
                return;
            }
            (self.left, shown) = (self.left - 1, shown + 1);
            out.push_str("<li>");
            self.node(label, value, depth + 1, out);
            out.push_str("</li>\n");
        };
        match value {
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    member(&format!("<span class=\"key\">{index}</span>: "), item, out);
                }
            }
            Json::Object(fields) => {
                for (key, value) in fields {
                    let key = escaped(&cut(key));
                    member(&format!("<span class=\"key\">{key}</span>: "), value, out);
                }
            }
            _ => {}
        }
        if shown < count {
            out.push_str(&format!("<li class=\"note\">{} not shown</li>", count - shown));
        }
        out.push_str("</ul></details>");
    }
}

/// `label` is HTML.
fn scalar(label: &str, value: &Json, out: &mut String) {
    let (class, text) = match value {
        Json::String(text) => ("text", Json::String(cut(text)).to_string()),
        Json::Number(number) => ("number", number.to_string()),
        // Empty ones among them.
        other => ("word", other.to_string()),
    };
    out.push_str(&format!("{label}<code class=\"{class}\">{}</code>", escaped(&text)));
}

fn cut(text: &str) -> String {
    let Some((at, _)) = text.char_indices().nth(MOST_TEXT) else { return text.to_owned() };
    format!("{}… ({} characters)", &text[..at], text.chars().count())
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_are_lines_and_long_ones_fold() {
        let shown = |value: &Json| Members::new(false).value(value);
        assert_eq!(
            shown(&json!({ "<a>": [1, null] })),
            "<div class=\"json\"><code>{&quot;&lt;a&gt;&quot;:[1,null]}</code></div>\n"
        );
        let html = shown(&json!({ "<a>": "x".repeat(80), "b": { "c": 1.5 }, "d": [] }));
        let expected = format!(
            "<div class=\"json\"><details open><summary>{{<span class=\"about\"> 3 keys </span>}}</summary><ul>\
             <li><span class=\"key\">&lt;a&gt;</span>: <code class=\"text\">&quot;{}&quot;</code></li>\n\
             <li><details open><summary><span class=\"key\">b</span>: {{<span class=\"about\"> 1 key </span>}}</summary>\
             <ul><li><span class=\"key\">c</span>: <code class=\"number\">1.5</code></li>\n</ul></details></li>\n\
             <li><span class=\"key\">d</span>: <code class=\"word\">[]</code></li>\n</ul></details></div>\n",
            "x".repeat(80)
        );
        assert_eq!(html, expected);
    }

    #[test]
    fn members_and_depth_are_bounded() {
        let html = Members::new(true).value(&(0..30_000).collect::<Json>());
        assert!(html.contains("<li class=\"note\">10000 not shown</li>"));
        let deep = (0..200).fold(json!("bottom"), |inner, _| json!([inner, "x".repeat(50)]));
        let html = Members::new(true).value(&deep);
        assert!(html.matches("<details").count() == 50 && !html.contains("bottom"));
    }
}
