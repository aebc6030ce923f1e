//! The part of a cell's result that a run does not have, and the names that cells declare: plain data, with the same
//! fields and words in every language.
//!
//! Nothing here decides anything. `isolate/` and `runtime/` do, by structure.

/// The effect of a cell on the state of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Everything that the cell did is there.
    Kept,
    /// The state is the one from before the cell.
    RolledBack,
    /// The state is that of a new session, with its capabilities.
    Reset,
}

impl SessionState {
    /// The word for this effect, in every language.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::RolledBack => "rolledBack",
            Self::Reset => "reset",
        }
    }
}

/// An event in a session that ends cells which nobody has ended by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// Another cell was ended, and the session was rolled back: `SessionRolledBack`.
    Rollback,
    /// The session was reset: `SessionReset`.
    Reset,
    /// The session was closed: `SessionClosed`.
    Close,
}

/// The name and the message of cells and calls that end because their session was reset.
pub(crate) const RESET: (&str, &str) = ("SessionReset", "the session was reset");

/// The name of cells and calls that end because their session was rolled back.
pub(crate) const ROLLED_BACK: &str = "SessionRolledBack";

/// The part of a cell that its value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueFrom {
    /// `return` at the top level, or the outcome of a call.
    Return,
    /// `export default`.
    Default,
    /// The last statement, which is an expression.
    Expression,
    /// The completion value of any other last statement, as the language defines it for scripts.
    Completion,
}

impl ValueFrom {
    /// The word for this part, in every language.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Return => "return",
            Self::Default => "default",
            Self::Expression => "expression",
            Self::Completion => "completion",
        }
    }
}

/// The kind of declaration that a name of a session is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named like the language's declarations")]
pub enum NameKind {
    Const,
    Let,
    Var,
    Function,
    Class,
    Import,
    Enum,
    Namespace,
}

impl NameKind {
    /// The word for this kind, in every language.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Const => "const",
            Self::Let => "let",
            Self::Var => "var",
            Self::Function => "function",
            Self::Class => "class",
            Self::Import => "import",
            Self::Enum => "enum",
            Self::Namespace => "namespace",
        }
    }
}

/// A name that cells of a session have declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name itself.
    pub name: String,
    /// The kind of its latest declaration.
    pub kind: NameKind,
    /// The `typeof` of its value, or the class for an object: `Map`, `Array`, `Promise`, `Order`. `uninitialized` if it
    /// has no value. The other languages call this field `type`.
    pub kind_of: String,
    /// A count, where the value has one: the length of an array or a string, the size of a Map or Set.
    pub size: Option<u64>,
}

/// The part of a cell's result that a run does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellOutcome {
    /// The effect of the cell on the state of the session.
    pub session: SessionState,
    /// The event in the session that ended the cell, if the cell's status is `terminated` for that.
    pub ended_by: Option<EndedBy>,
    /// On success, the text that a console would show of the value, at most 16 KiB of UTF-8; absent for `undefined`.
    pub text: Option<String>,
    /// On success with a value that cannot cross: the message of the `SerializationError`. The result's own value is
    /// absent then.
    pub uncloned: Option<String>,
    /// On success, the part of the cell that the value is from; absent if the cell has no value.
    pub value_from: Option<ValueFrom>,
}

impl CellOutcome {
    /// The outcome of a cell that gave no value.
    pub(crate) fn without_value(session: SessionState) -> Self {
        Self { session, ended_by: None, text: None, uncloned: None, value_from: None }
    }
}
