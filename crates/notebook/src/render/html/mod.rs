//! A result as a page of HTML.
//!
//! In: a result. Out: one file, without scripts, which loads nothing. Its policy (Content-Security-Policy) says so to the
//! browser, should anything slip through. `escape` writes texts, `code` code, `markdown`, `json` and `image` the outputs of those kinds;
//! `page.css` is the style.

mod code;
mod escape;
mod image;
mod json;
mod markdown;

use self::{code::highlighted, escape::escaped, image::image, json::Members, markdown::markdown};
use super::{
    facts,
    options::{HtmlOptions, Theme},
    plain,
};
use crate::{CallResult, CellResult, CellStatus, Language, Output};

const STYLE: &str = include_str!("page.css");

/// The colours on light, and those on dark.
const LIGHT: &str = include_str!("light.css");
const DARK: &str = include_str!("dark.css");

/// Images are data, styles are the page's own; there is nothing else.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The status events that show while the others are folded.
const EVENTS: usize = 3;

/// The longest row of a text, in characters, by which the length of its preview is reckoned.
const ROW_CHARACTERS: usize = 200;

/// The page of a result: of each cell its title, language, status and time, its code, its outputs, its error with the place.
/// Long codes and outputs fold. Costs time and room in proportion to the result: each character of text takes 6 bytes at the
/// most, one of code 30, and of all values 20,000 members are shown.
#[must_use]
pub fn render_html(result: &CallResult, options: &HtmlOptions) -> String {
    let title = escaped(&plain::line(options.title.as_deref().unwrap_or("Notebook"), usize::MAX));
    let (scheme, colors) = match options.theme {
        Theme::Auto => {
            ("light dark", format!("{LIGHT}@media (prefers-color-scheme: dark) {{\n{DARK}}}\n"))
        }
        Theme::Light => ("light", LIGHT.to_owned()),
        Theme::Dark => ("dark", DARK.to_owned()),
    };
    let mut page = Page { options, members: Members::new(options.expanded), out: String::new() };
    page.out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"{scheme}\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{colors}{STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"about\">{}</p>\n</header>\n",
        summary(result)
    );
    if let Some(notice) = &result.notice {
        page.out.push_str(&format!("<p class=\"notice\">{}</p>\n", escaped(notice)));
    }
    for (index, cell) in result.cells.iter().enumerate() {
        page.cell(index, cell, result);
    }
    if let Some(cut) = result.truncation {
        page.out.push_str(&format!("<p class=\"note\">The output was cut: {cut}.</p>\n"));
    }
    page.out.push_str("</main>\n</body>\n</html>\n");
    page.out
}

/// `2 cells · Python, JavaScript · 1.2 s · 1 failed`.
fn summary(result: &CallResult) -> String {
    let cells = &result.cells;
    let mut words = vec![match cells.len() {
        1 => "1 cell".to_owned(),
        count => format!("{count} cells"),
    }];
    let mut languages: Vec<&str> = Vec::new();
    for cell in cells {
        if !languages.contains(&cell.language.title()) {
            languages.push(cell.language.title());
        }
    }
    if !languages.is_empty() {
        words.push(languages.join(", "));
        words.push(facts::time(cells.iter().map(|cell| cell.duration_ms).sum()));
    }
    for (status, word) in [
        (CellStatus::Error, "failed"),
        (CellStatus::Running, "running"),
        (CellStatus::Pending, "not run"),
    ] {
        match cells.iter().filter(|cell| cell.status == status).count() {
            0 => {}
            count => words.push(format!("{count} {word}")),
        }
    }
    words.join(" · ")
}

struct Page<'o> {
    options: &'o HtmlOptions,
    members: Members,
    out: String,
}

impl Page<'_> {
    fn cell(&mut self, index: usize, cell: &CellResult, result: &CallResult) {
        let number = index + 1;
        let (word, sign) = facts::status(cell);
        let title = match &cell.title {
            Some(title) => format!(
                "<span class=\"number\">{number}</span> {}",
                escaped(&plain::line(title, 500))
            ),
            None => format!("Cell {number}"),
        };
        let time = facts::duration(cell).map(|time| format!("<li>{time}</li>")).unwrap_or_default();
        self.out.push_str(&format!(
            "<section class=\"cell {}\" aria-labelledby=\"cell-{number}\">\n<header>\n<h2 id=\"cell-{number}\">{title}</h2>\n\
             <ul class=\"facts\"><li>{}</li><li class=\"status\"><span aria-hidden=\"true\">{sign}</span> {word}</li>{time}</ul>\n\
             </header>\n",
            cell.status.as_str(),
            cell.language.title(),
        ));
        let label = format!("Code of cell {number}, {}", cell.language.title());
        let write = |code: &str| highlighted(code, cell.language);
        self.text_as("code", &label, plain::visible(&cell.code).trim_end(), write);
        for output in &cell.outputs {
            self.output(number, output);
        }
        self.events(cell);
        self.error(number, cell, result);
        self.out.push_str("</section>\n");
    }

    fn output(&mut self, number: usize, output: &Output) {
        match output {
            Output::Stream { name: "stderr", text } => {
                self.text(
                    "stderr",
                    &format!("Standard error of cell {number}"),
                    &plain::output(text),
                );
            }
            Output::Stream { text, .. } | Output::Text(text) => {
                self.text("output", &format!("Output of cell {number}"), &plain::output(text));
            }
            Output::Markdown(text) => self.out.push_str(&markdown(text)),
            Output::Json(value) => self.out.push_str(&self.members.value(value)),
            Output::Image(shown) => self.out.push_str(&image(shown, number)),
            // It stands below all outputs, with its place.
            Output::Error { .. } => {}
        }
    }

    /// A text, which is safe to show. A long one folds.
    fn text(&mut self, class: &str, label: &str, text: &str) {
        self.text_as(class, label, text, escaped);
    }

    /// The same with its HTML.
    fn text_as(&mut self, class: &str, label: &str, text: &str, write: impl Fn(&str) -> String) {
        if text.is_empty() {
            return;
        }
        let most = usize::try_from(self.options.preview_lines).unwrap_or(usize::MAX);
        let end =
            text.match_indices('\n').nth(most.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        let end = end.min(text.floor_char_boundary(most.saturating_mul(ROW_CHARACTERS)));
        let pre = |text: &str| {
            format!(
                "<pre class=\"{class}\" role=\"group\" aria-label=\"{label}\"><code>{}</code></pre>",
                write(text)
            )
        };
        if self.options.expanded || end == text.len() {
            self.out.push_str(&pre(text));
            self.out.push('\n');
            return;
        }
        let ellipsis = if text[end..].starts_with('\n') { "\n…" } else { "…" };
        let all = match text.matches('\n').count() + 1 {
            1 => format!("Show all of it ({})", facts::size(text.len())),
            lines => format!("Show all {lines} lines"),
        };
        self.out.push_str(&format!(
            "<div class=\"fold\">{}<details><summary>{all}</summary>{}</details></div>\n",
            pre(&format!("{}{ellipsis}", text[..end].trim_end())),
            pre(text)
        ));
    }

    fn events(&mut self, cell: &CellResult) {
        let events: Vec<String> = cell
            .status_events
            .iter()
            .map(|event| format!("<li>{}</li>", escaped(&facts::event(event))))
            .collect();
        if events.is_empty() {
            return;
        }
        let shown = if self.options.expanded { events.len() } else { EVENTS.min(events.len()) };
        self.out.push_str(&format!("<ul class=\"events\">{}</ul>\n", events[..shown].concat()));
        let more = match events.len() - shown {
            0 => return,
            1 => "1 more event".to_owned(),
            more => format!("{more} more events"),
        };
        self.out.push_str(&format!(
            "<details class=\"more\"><summary>{more}</summary><ul class=\"events\">{}</ul></details>\n",
            events[shown..].concat()
        ));
    }

    fn error(&mut self, number: usize, cell: &CellResult, result: &CallResult) {
        let Some(error) = facts::error_of(cell) else { return };
        self.out.push_str("<div class=\"failure\">\n");
        if facts::is_from_outside(cell) {
            self.out.push_str(&format!("<p><strong>{}</strong></p>\n", escaped(&error.message)));
        } else {
            let rest = if error.message.is_empty() {
                String::new()
            } else {
                format!(": {}", escaped(&error.message))
            };
            self.out.push_str(&format!(
                "<p class=\"message\"><strong>{}</strong>{rest}</p>\n",
                escaped(&error.name)
            ));
            let trace = facts::trace(&error);
            let what = if cell.language == Language::Py { "Traceback" } else { "Stack" };
            self.text("trace", &format!("{what} of cell {number}"), &trace);
            if let Some(scene) = facts::scene(cell, &result.cells) {
                self.out.push_str(&format!(
                    "<pre class=\"scene\" tabindex=\"0\" role=\"region\" aria-label=\"Place of the error of cell {number}\"><code>{}</code></pre>\n",
                    escaped(&scene.join("\n"))
                ));
            }
        }
        if let Some(state) = facts::state(cell) {
            self.out.push_str(&format!("<p class=\"note\">{state}</p>\n"));
        }
        self.out.push_str("</div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of a theme, by name, as their luminance (WCAG 2).
    fn colors(css: &str) -> Vec<(&str, f64)> {
        let declarations = css.split("--").skip(1).filter_map(|rest| rest.split_once(": #"));
        let luminance = |hex: &str| {
            let part = |at: usize| {
                let byte = u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
                let part = f64::from(byte) / 255.0;
                if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
        };
        declarations.map(|(name, hex)| (name, luminance(hex))).collect()
    }

    #[test]
    fn texts_stand_out_from_every_ground() {
        for css in [LIGHT, DARK] {
            let (mut texts, mut grounds) = (Vec::new(), Vec::new());
            for (name, luminance) in colors(css) {
                match name {
                    "line" => {}
                    "ground" | "paper" | "code" | "bad-ground" | "warm-ground" => {
                        grounds.push(luminance);
                    }
                    _ => texts.push(luminance),
                }
            }
            assert_eq!((texts.len(), grounds.len()), (6, 5));
            for (text, ground) in
                texts.iter().flat_map(|text| grounds.iter().map(move |ground| (text, ground)))
            {
                let contrast = (text.max(*ground) + 0.05) / (text.min(*ground) + 0.05);
                assert!(contrast >= 4.5, "{contrast}: {css}");
            }
        }
    }
}
