//! A result, or a call that has not run, for a terminal.
//!
//! In: the result or the arguments, and options. Out: lines no wider than asked for. Their colours are the only escape
//! sequences: no text of a cell has one.

use anstyle::{AnsiColor, Style};

use super::{
    facts,
    options::TerminalOptions,
    plain::{self, MOST_DEPTH, shallow, visible},
    rows::{columns, rows},
};
use crate::{Args, CallResult, CellResult, CellStatus, Language, Output, text::json::json_text};

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// The mark before lines of code.
const CODE: &str = "│ ";

/// The status events that are shown, and those of an expanded result.
const EVENTS: (usize, usize) = (3, 10);

/// The lines of a result: of each cell its title, status and time, its code, its output, its error. No line break at the
/// end. A long code shows its first lines, a long output its last ones, unless `expanded`. Costs time in proportion to the
/// result.
#[must_use]
pub fn render_terminal(result: &CallResult, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    if let Some(notice) = &result.notice {
        page.put(YELLOW, "", &plain::output(notice));
        page.gap();
    }
    for (index, cell) in result.cells.iter().enumerate() {
        if index > 0 {
            page.gap();
        }
        let (word, sign) = facts::status(cell);
        let style = match cell.status {
            CellStatus::Complete => GREEN,
            CellStatus::Error => RED,
            CellStatus::Running => YELLOW,
            CellStatus::Pending => FAINT,
        };
        let about =
            [Some(cell.language.title().to_owned()), Some(word.to_owned()), facts::duration(cell)];
        let heading = facts::heading(index, result.cells.len(), cell.title.as_deref());
        page.head(style, sign, &heading, &about.into_iter().flatten().collect::<Vec<_>>());
        page.code(&cell.code);
        page.outputs(cell);
        page.events(cell);
        page.error(cell, &result.cells);
    }
    if let Some(cut) = result.truncation {
        page.gap();
        page.put(FAINT, "", &format!("[output truncated: {cut}]"));
    }
    page.end()
}

/// The lines of a call before it runs: of each cell its title, its language and its code.
#[must_use]
pub fn render_call(args: &Args, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    for (index, cell) in args.cells.iter().enumerate() {
        if index > 0 {
            page.gap();
        }
        let mut about = vec![cell.language.title().to_owned()];
        match cell.timeout {
            None => {}
            Some(1) => about.push("at most 1 second".to_owned()),
            Some(seconds) => about.push(format!("at most {seconds} seconds")),
        }
        if cell.reset {
            about.push("from an empty state".to_owned());
        }
        let heading = facts::heading(index, args.cells.len(), cell.title.as_deref());
        page.head(FAINT, "▸", &heading, &about);
        page.code(&cell.code);
    }
    page.end()
}

struct Page<'o> {
    options: &'o TerminalOptions,
    width: usize,
    is_colored: bool,
    out: String,
}

impl<'o> Page<'o> {
    fn new(options: &'o TerminalOptions) -> Self {
        // The reader of options checks the width; a caller of Rust may give any.
        let width = usize::try_from(options.width).unwrap_or(usize::MAX).max(8);
        let mut page =
            Self { options, width, is_colored: options.color.is_on(), out: String::new() };
        if let Some(title) = &options.title {
            page.put(BOLD, "", &plain::line(title, usize::MAX));
            page.gap();
        }
        page
    }

    fn end(mut self) -> String {
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out
    }

    fn gap(&mut self) {
        self.out.push('\n');
    }

    fn styled(&mut self, style: Style, text: &str) {
        if self.is_colored && style != PLAIN && !text.is_empty() {
            self.out.push_str(&format!("{style}{text}{style:#}"));
        } else {
            self.out.push_str(text);
        }
    }

    /// The lines of a text that is safe to show, each behind a margin.
    fn put(&mut self, style: Style, margin: &str, text: &str) {
        for row in rows(text, self.width - columns(margin)) {
            self.row(style, margin, &row);
        }
    }

    fn row(&mut self, style: Style, margin: &str, row: &str) {
        self.styled(FAINT, margin);
        self.styled(style, row);
        self.out.push('\n');
    }

    /// `✓ [1/2] load · Python · complete · 12 ms`, on two lines if one is too narrow.
    fn head(&mut self, style: Style, sign: &str, heading: &str, about: &[String]) {
        let about = about.join(" · ");
        self.styled(style, sign);
        self.out.push(' ');
        if heading.is_empty() {
            return self.behind_sign(FAINT, &about);
        }
        if columns(heading) + columns(&about) + 5 <= self.width {
            self.styled(BOLD, heading);
            return self.row(FAINT, "", &format!(" · {about}"));
        }
        self.behind_sign(BOLD, heading);
        self.put(FAINT, "  ", &about);
    }

    /// The rows of a text behind a sign.
    fn behind_sign(&mut self, style: Style, text: &str) {
        for (index, row) in rows(text, self.width - 2).into_iter().enumerate() {
            self.row(style, if index == 0 { "" } else { "  " }, &row);
        }
    }

    /// The first rows of a code.
    fn code(&mut self, code: &str) {
        if code.trim().is_empty() {
            return;
        }
        let rows = rows(visible(code).trim_end(), self.width - columns(CODE));
        let shown = self.most().min(rows.len());
        for row in &rows[..shown] {
            self.row(PLAIN, CODE, row);
        }
        self.more(CODE, rows.len() - shown, "more");
    }

    /// The last rows of all that a cell showed, but for its error.
    fn outputs(&mut self, cell: &CellResult) {
        let mut all: Vec<(Style, String)> = Vec::new();
        for output in &cell.outputs {
            let (style, text) = match output {
                Output::Stream { name: "stderr", text } => (YELLOW, plain::output(text)),
                Output::Stream { text, .. } | Output::Text(text) | Output::Markdown(text) => {
                    (PLAIN, plain::output(text))
                }
                Output::Json(value) => {
                    let text = json_text(&shallow(value, MOST_DEPTH), usize::MAX);
                    (PLAIN, visible(&text).into_owned())
                }
                Output::Image(image) => (FAINT, format!("[image: {}]", facts::image(image))),
                Output::Error { .. } => continue,
            };
            if !text.is_empty() {
                all.extend(rows(&text, self.width).into_iter().map(|row| (style, row)));
            }
        }
        let hidden = all.len().saturating_sub(self.most());
        self.more("", hidden, "before");
        for (style, row) in &all[hidden..] {
            self.row(*style, "", row);
        }
    }

    fn events(&mut self, cell: &CellResult) {
        let most = if self.options.expanded { EVENTS.1 } else { EVENTS.0 };
        let shown = most.min(cell.status_events.len());
        for event in &cell.status_events[..shown] {
            self.put(FAINT, "→ ", &facts::event(event));
        }
        match cell.status_events.len() - shown {
            0 => {}
            1 => self.put(FAINT, "→ ", "1 more event"),
            more => self.put(FAINT, "→ ", &format!("{more} more events")),
        }
    }

    fn error(&mut self, cell: &CellResult, cells: &[CellResult]) {
        let Some(error) = facts::error_of(cell) else { return };
        if facts::is_from_outside(cell) {
            self.put(FAINT, "", &plain::output(&error.message));
        } else {
            let message = plain::output(&facts::message(&error));
            if cell.language == Language::Py {
                self.trace(&facts::trace(&error));
                self.put(RED, "", &message);
            } else {
                self.put(RED, "", &message);
                self.trace(&facts::trace(&error));
            }
            for line in facts::scene(cell, cells).into_iter().flatten() {
                // A caret on a line of its own would point at nothing.
                if columns(&line) <= self.width {
                    self.row(PLAIN, "", &line);
                }
            }
        }
        if let Some(state) = facts::state(cell) {
            self.put(FAINT, "", &state);
        }
    }

    /// The last rows of the frames of an error.
    fn trace(&mut self, trace: &str) {
        if trace.is_empty() {
            return;
        }
        let rows = rows(trace, self.width);
        let hidden = rows.len().saturating_sub(self.most());
        self.more("", hidden, "before");
        for row in &rows[hidden..] {
            self.row(FAINT, "", row);
        }
    }

    /// The rows that one text may have.
    fn most(&self) -> usize {
        if self.options.expanded {
            return usize::MAX;
        }
        usize::try_from(self.options.preview_lines).unwrap_or(usize::MAX)
    }

    /// Tells how many rows are left out.
    fn more(&mut self, margin: &str, hidden: usize, where_: &str) {
        match hidden {
            0 => {}
            1 => self.put(FAINT, margin, &format!("… 1 line {where_}")),
            _ => self.put(FAINT, margin, &format!("… {hidden} lines {where_}")),
        }
    }
}
