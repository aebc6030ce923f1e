//! The arguments of a call: the cells that a model wants to run.
//!
//! In: the argument object of the model's tool call, as it came. Out: cells, or misuse with its path. Its keys are the
//! same in every language.

use isolane::Spelling;
use serde_json::Value as Json;

use crate::{
    Limits, Misuse,
    given::{Group, whole_number, wrong_type},
};

/// The language of a cell, and so its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Python.
    Py,
    /// JavaScript or TypeScript.
    Js,
}

impl Language {
    /// `py` or `js`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Py => "py",
            Self::Js => "js",
        }
    }

    /// How code of it spells the names of options.
    pub(crate) fn spelling(self) -> Spelling {
        match self {
            Self::Py => Spelling::Snake,
            Self::Js => Spelling::Camel,
        }
    }

    /// The name in texts: `Python`, `JavaScript`.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Py => "Python",
            Self::Js => "JavaScript",
        }
    }
}

/// A cell to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellInput {
    /// Its kernel.
    pub language: Language,
    /// Its source.
    pub code: String,
    /// A short label.
    pub title: Option<String>,
    /// The seconds that it may take, in place of [`Limits::timeout_seconds`].
    pub timeout: Option<u64>,
    /// Whether its kernel begins anew before it.
    pub reset: bool,
}

impl CellInput {
    /// A cell without a title, with the limits of the notebook.
    #[must_use]
    pub fn new(language: Language, code: impl Into<String>) -> Self {
        Self { language, code: code.into(), title: None, timeout: None, reset: false }
    }
}

/// The arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// At least one.
    pub cells: Vec<CellInput>,
}

impl Args {
    /// Reads the argument object of a tool call.
    ///
    /// # Errors
    /// Misuse: an unknown key, a missing one, a value of the wrong type, a number out of range.
    pub fn from_json(given: &Json) -> Result<Self, Misuse> {
        if !given.is_object() {
            return Err(wrong_type("args", "an object", given));
        }
        let group = Group::new("", given, &["cells"], Spelling::Snake)?;
        let cells = match group.value("cells") {
            Some(Json::Array(cells)) => cells,
            Some(other) => return Err(wrong_type("cells", "a list", other)),
            None => return Err(Misuse::new("cells", " is missing")),
        };
        let cells = cells.iter().enumerate().map(|(index, cell)| read_cell(index, cell));
        Ok(Self { cells: cells.collect::<Result<_, _>>()? })
    }

    /// Checks everything that does not depend on kernels.
    pub(crate) fn check(
        &self,
        limits: &Limits,
        has: impl Fn(Language) -> bool,
    ) -> Result<(), Misuse> {
        if self.cells.is_empty() {
            return Err(Misuse::new("cells", " must have at least one cell"));
        }
        if self.cells.len() as u64 > limits.max_cells {
            let rest =
                format!(" must have at most {} cells, got {}", limits.max_cells, self.cells.len());
            return Err(Misuse::range("cells", &rest));
        }
        for (index, cell) in self.cells.iter().enumerate() {
            let place = format!("cells[{index}]");
            if !has(cell.language) {
                let rest = format!(": the {} backend is switched off", cell.language.title());
                return Err(Misuse::new(format!("{place}.language"), &rest));
            }
            let bytes = cell.code.len() as u64;
            if bytes > limits.code_bytes {
                let rest = format!(" must have at most {} bytes, got {bytes}", limits.code_bytes);
                return Err(Misuse::range(format!("{place}.code"), &rest));
            }
            if let Some(timeout) = cell.timeout {
                let path = format!("{place}.timeout");
                whole_number(&path, &timeout.into(), 1, limits.max_timeout_seconds)?;
            }
        }
        Ok(())
    }
}

fn read_cell(index: usize, given: &Json) -> Result<CellInput, Misuse> {
    let place = format!("cells[{index}]");
    if !given.is_object() {
        return Err(wrong_type(&place, "an object", given));
    }
    let keys = ["language", "code", "title", "timeout", "reset"];
    let group = Group::new(&format!("{place}."), given, &keys, Spelling::Snake)?;
    let missing = |key: &str| Misuse::new(group.path(key), " is missing");
    let language = group.choice("language", &["py", "js"])?.ok_or_else(|| missing("language"))?;
    let text = |key: &str| match group.value(key) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong_type(&group.path(key), "a string", other)),
    };
    let reset = match group.value("reset") {
        None => false,
        Some(Json::Bool(reset)) => *reset,
        Some(other) => return Err(wrong_type(&group.path("reset"), "true or false", other)),
    };
    Ok(CellInput {
        language: if language == 0 { Language::Py } else { Language::Js },
        code: text("code")?.ok_or_else(|| missing("code"))?,
        title: text("title")?.filter(|title| !title.is_empty()),
        timeout: group.count("timeout", 1, 600)?,
        reset,
    })
}
