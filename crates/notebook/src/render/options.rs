//! The options of renderers: their defaults, and how they are read.
//!
//! In: options as a caller wrote them. Out: typed ones, or misuse.

use std::io::stdout;

use anstream::{AutoStream, ColorChoice};
use isolane::Spelling;
use serde_json::Value as Json;

use crate::{
    Misuse,
    given::{Group, MOST, wrong_type},
};

/// The columns of a terminal that are few enough, and those that are too many.
const WIDTHS: (u64, u64) = (20, 10_000);

/// The lines of a code or an output that are shown of a long one.
const PREVIEW_LINES: u64 = 10;

/// The colours of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the reader's system has it.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// Whether a text for a terminal has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// If stdout of this process shows them: a terminal, and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Yes.
    Always,
    /// No.
    Never,
}

impl Color {
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::Auto => AutoStream::choice(&stdout()) != ColorChoice::Never,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// The options of [`render_html`](super::render_html).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtmlOptions {
    /// The title of the page, `Notebook` by default.
    pub title: Option<String>,
    /// Its colours.
    pub theme: Theme,
    /// Whether long texts and values are open from the start.
    pub expanded: bool,
    /// The lines of a longer text that show while it is folded. 10 by default.
    pub preview_lines: u64,
}

impl Default for HtmlOptions {
    fn default() -> Self {
        Self { title: None, theme: Theme::default(), expanded: false, preview_lines: PREVIEW_LINES }
    }
}

impl HtmlOptions {
    /// Reads `{ title, theme, expanded, previewLines }`.
    ///
    /// # Errors
    /// Misuse: an unknown key, a value of the wrong type.
    pub fn from_json(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = ["title", "theme", "expanded", "preview_lines"];
        let group = Group::new("", given, &keys, spelling)?;
        let theme = group.choice("theme", &["auto", "light", "dark"])?;
        Ok(Self {
            title: group.text("title")?,
            theme: [Theme::Auto, Theme::Light, Theme::Dark][theme.unwrap_or(0)],
            expanded: switch(&group, "expanded")?,
            preview_lines: group.count("preview_lines", 1, MOST)?.unwrap_or(PREVIEW_LINES),
        })
    }
}

/// The options of [`render_terminal`](super::render_terminal) and [`render_call`](super::render_call).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalOptions {
    /// The columns of a line, 20 at least. 80 by default.
    pub width: u64,
    /// Whether there are colours.
    pub color: Color,
    /// Whether long texts are shown whole.
    pub expanded: bool,
    /// The lines of a longer text that are shown: the first of a code, the last of an output. 10 by default.
    pub preview_lines: u64,
    /// A line above all, if there is to be one.
    pub title: Option<String>,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self {
            width: 80,
            color: Color::default(),
            expanded: false,
            preview_lines: PREVIEW_LINES,
            title: None,
        }
    }
}

impl TerminalOptions {
    /// Reads `{ width, color, expanded, previewLines, title }`.
    ///
    /// # Errors
    /// Misuse: an unknown key, a value of the wrong type, a width that is not from 20 to 10,000.
    pub fn from_json(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = ["width", "color", "expanded", "preview_lines", "title"];
        let group = Group::new("", given, &keys, spelling)?;
        let color = group.choice("color", &["auto", "always", "never"])?;
        Ok(Self {
            width: group.count("width", WIDTHS.0, WIDTHS.1)?.unwrap_or(80),
            color: [Color::Auto, Color::Always, Color::Never][color.unwrap_or(0)],
            expanded: switch(&group, "expanded")?,
            preview_lines: group.count("preview_lines", 1, MOST)?.unwrap_or(PREVIEW_LINES),
            title: group.text("title")?,
        })
    }
}

fn switch(group: &Group<'_>, key: &str) -> Result<bool, Misuse> {
    match group.value(key) {
        None => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(wrong_type(&group.path(key), "true or false", other)),
    }
}
