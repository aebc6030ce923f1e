//! The options of a child: a notebook with the kernels of another one, and functions and limits of its own.
//!
//! In: options as a caller wrote them, and the limits of the notebook. Out: [`ChildOptions`], or misuse.

use isolane::Spelling;
use serde_json::Value as Json;

use crate::{
    Agent, ArtifactsOptions, CellTool, Limits, Llm, Misuse,
    given::{Group, wrong_type},
};

/// A function of a child.
#[derive(Clone, Debug, Default)]
pub enum ChildFunction<T> {
    /// That of the notebook, if it has one.
    #[default]
    Inherited,
    /// None.
    Absent,
    /// One of its own.
    Own(T),
}

impl<T> ChildFunction<T> {
    /// The same with one made of an own function.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> ChildFunction<U> {
        match self {
            Self::Inherited => ChildFunction::Inherited,
            Self::Absent => ChildFunction::Absent,
            Self::Own(function) => ChildFunction::Own(make(function)),
        }
    }

    /// The function of a child of a notebook that has this one.
    pub(crate) fn or(self, inherited: Option<T>) -> Option<T> {
        match self {
            Self::Inherited => inherited,
            Self::Absent => None,
            Self::Own(function) => Some(function),
        }
    }
}

/// The options of [`Notebook::child`](crate::Notebook::child). An option that is left out is as in the notebook itself.
#[derive(Clone, Debug, Default)]
pub struct ChildOptions {
    /// The tools that cells call as `tool.<name>(args)`.
    pub tools: Option<Vec<CellTool>>,
    /// The function behind `llm`.
    pub llm: ChildFunction<Llm>,
    /// The function behind `agent`.
    pub agent: ChildFunction<Agent>,
    /// The folder for what is too long for a result.
    pub artifacts: Option<ArtifactsOptions>,
    /// The limits of calls and cells.
    pub limits: Option<Limits>,
}

impl ChildOptions {
    /// Reads options that are JSON, with the keys of a language. Limits that are left out are those of `limits`, the
    /// notebook's own. Functions are handed over in the fields.
    ///
    /// # Errors
    /// Misuse: an unknown key, a value of the wrong type, a number out of range.
    pub fn from_json(given: &Json, spelling: Spelling, limits: &Limits) -> Result<Self, Misuse> {
        let group =
            Group::new("", given, &["tools", "llm", "agent", "artifacts", "limits"], spelling)?;
        for key in ["tools", "llm", "agent"] {
            if let Some(other) = group.value(key) {
                return Err(wrong_type(key, "handed over as functions", other));
            }
        }
        let read = |given: &Json| Limits::read(given, spelling, limits);
        let artifacts =
            group.value("artifacts").map(|given| ArtifactsOptions::read(given, spelling));
        Ok(Self {
            artifacts: artifacts.transpose()?,
            limits: group.value("limits").map(read).transpose()?,
            ..Self::default()
        })
    }
}
