//! Markdown in HTML.
//!
//! In: markdown of anybody. Out: HTML in which raw HTML is text, links lead to web pages and mail alone, and images are
//! words, so that nothing is loaded. Headings stand below those of cells.

use pulldown_cmark::{
    CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html::push_html,
};

use super::escape::escaped;
use crate::render::plain::visible;

/// A longer markdown is shown as it is written, as nobody reads it anyway.
const MOST_BYTES: usize = 512 << 10;

/// The schemes of links.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

pub(super) fn markdown(text: &str) -> String {
    let text = visible(text);
    if text.len() > MOST_BYTES {
        return format!("<pre>{}</pre>\n", escaped(&text));
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut links = Vec::new();
    let events = Parser::new_ext(&text, options).map(|event| harmless(event, &mut links));
    let mut html = String::from("<div class=\"markdown\">\n");
    push_html(&mut html, events);
    html.push_str("</div>\n");
    html
}

/// The event without what a page must not do. `links` tells of each open link whether it is one.
fn harmless<'t>(event: Event<'t>, links: &mut Vec<bool>) -> Event<'t> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
            level: below(level),
            id: None,
            classes: Vec::new(),
            attrs: Vec::new(),
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Link { link_type, dest_url, .. }) => {
            let target = match link_type {
                LinkType::Email => CowStr::from(format!("mailto:{dest_url}")),
                _ => dest_url,
            };
            let is_allowed = SCHEMES.iter().any(|scheme| {
                target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            });
            links.push(is_allowed);
            if is_allowed {
                let href = escaped(&target);
                markup(format!("<a href=\"{href}\" rel=\"noopener noreferrer\">"))
            } else {
                nothing()
            }
        }
        Event::End(TagEnd::Link) => match links.pop() {
            Some(true) => markup("</a>".to_owned()),
            _ => nothing(),
        },
        Event::Start(Tag::Image { .. }) => Event::Text("[image: ".into()),
        Event::End(TagEnd::Image) => Event::Text("]".into()),
        other => other,
    }
}

/// HTML of our own.
fn markup<'t>(html: String) -> Event<'t> {
    Event::InlineHtml(html.into())
}

fn nothing<'t>() -> Event<'t> {
    Event::Text(CowStr::Borrowed(""))
}

/// The page has the first level, cells the second.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(text: &str) -> String {
        let html = markdown(text);
        html["<div class=\"markdown\">\n".len()..html.len() - "</div>\n".len()].to_owned()
    }

    #[test]
    fn markdown_is_rendered() {
        assert_eq!(inner("# A *b*"), "<h3>A <em>b</em></h3>\n");
        assert_eq!(
            inner("[a](https://x.example/?a=1&b='2') <me@x.example>"),
            "<p><a href=\"https://x.example/?a=1&amp;b=&#39;2&#39;\" rel=\"noopener noreferrer\">a</a> \
             <a href=\"mailto:me@x.example\" rel=\"noopener noreferrer\">me@x.example</a></p>\n"
        );
        assert!(inner("|a|b|\n|-|-|\n|1|2|").contains("<td>1</td>"));
    }

    #[test]
    fn nothing_of_it_is_markup() {
        assert_eq!(inner("a <img src=x onerror=1> b"), "<p>a &lt;img src=x onerror=1&gt; b</p>\n");
        assert_eq!(
            inner("<script>\nalert(1)\n</script>\n"),
            "<p>&lt;script&gt;\nalert(1)\n&lt;/script&gt;\n</p>\n"
        );
        assert_eq!(inner("![a *b*](https://x.example/p.png)"), "<p>[image: a <em>b</em>]</p>\n");
        for target in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "//x.example",
            "/x",
            "#x",
            "&#106;avascript:alert(1)",
            "http\\:/x",
        ] {
            assert_eq!(inner(&format!("[a]({target})")), "<p>a</p>\n", "{target}");
        }
        assert_eq!(inner("<javascript:alert(1)>"), "<p>javascript:alert(1)</p>\n");
        let quoted = inner("[a](<https://x.example/\" onclick=\"b>)");
        assert!(quoted.contains("href=\"https://x.example/&quot; onclick=&quot;b\""), "{quoted}");
        let fence = inner("```a\" onclick=\"b\n</code><b>\n```");
        assert!(!fence.contains("\" onclick") && !fence.contains("<b>"), "{fence}");
    }
}
