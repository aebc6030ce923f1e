//! A question about a failure, and the expressions that answer it, as plain data.

use super::operands::Operand;
use crate::data::outcome::Position;

/// A failure, as the engine tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A value was called that is no function.
    Call,
    /// A class extends a value that is no constructor.
    Extends,
    /// A call failed, and the error does not say why yet: this crate made it, or the stack is full.
    Untold,
    /// A value was constructed that is no constructor.
    Construct,
    /// The builtin of that name refused its arguments, or its object.
    Builtin(String),
    /// A class was called without `new`.
    ClassCall,
    /// A property of `undefined` or `null` was read.
    Read(String),
    /// A property of `undefined` or `null` was written.
    Write(String),
    /// `undefined` or `null` was destructured.
    Destructure,
    /// A value was iterated that is not iterable.
    Iterate,
    /// A constant or a read-only property was assigned.
    Assign(String),
    /// A property was added to an object that takes none, or written that has only a getter.
    Extend,
    /// A bigint and a number met in one operation.
    Mix,
    /// A value was converted to a text or a number that cannot be.
    Convert,
    /// A bigint was shifted to the right as if it had no sign.
    Shift,
    /// A property of `undefined` or `null` was read and written, by a key that is no text yet.
    Change,
    /// `in` or `instanceof` has a value on its right that it cannot have.
    Relation,
    /// A property was deleted that must stay.
    Delete,
    /// A property of a primitive value was written.
    Primitive,
    /// A name was used that is not declared there.
    Name(String),
    /// A name was used before its declaration was reached, or `this` before `super()`.
    Uninitialized(String),
    /// A function waits for ever.
    Wait,
    /// An `import()` of that specifier failed.
    Import(String),
}

impl Failure {
    /// Whether the last place that the engine notes before the failure is that of the expression: it notes the place of every
    /// call.
    pub(super) fn is_noted(&self) -> bool {
        matches!(
            self,
            Self::Call | Self::Construct | Self::ClassCall | Self::Builtin(_) | Self::Untold
        )
    }
}

/// The question, in positions of the original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) failure: Failure,
    /// The start of the function that failed, as the engine gives it: `search/functions.rs` says what it means. There is
    /// none for the function that makes the fields of a class.
    pub(crate) function: Option<Position>,
    /// The last place that the engine noted before the failure.
    pub(crate) before: Position,
    /// The next place that it noted after the failure.
    pub(crate) after: Option<Position>,
}

/// An expression that may have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) position: Position,
    pub(crate) act: Act,
}

/// The operation that failed, with its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The call or construction of a value, with its first two arguments.
    Call { callee: Operand, arguments: [Option<Operand>; 2], constructs: bool },
    /// The reading or writing of a property; the key is only known where it is written in the text.
    Member { object: Operand, key: Option<String> },
    /// A pattern, with its first key, and the value that it takes apart.
    Pattern { source: Option<Operand>, key: Option<String> },
    /// An iteration.
    Iteration { value: Option<Operand> },
    /// The assignment of a variable, or of a name that is not declared in the text.
    Variable { declared: bool, imported: bool },
    /// An `await`.
    Wait,
    /// An `import()`, and whether the specifier is written in the text.
    Import { written: bool },
    /// The conversion of a value.
    Conversion { value: Operand },
    /// An operation with two operands.
    Binary { left: Operand, right: Operand },
    /// A name that is read or assigned, with a declaration of it, and the name declared for that place that is nearly the
    /// same.
    Name { assigned: bool, declared: Option<Declared>, meant: Option<String> },
}

/// A declaration in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// On that line.
    Line(u32),
    /// As a type.
    Type,
    /// For the type checker alone: `declare`, a signature, an imported type.
    Alone,
    /// As no name: the text has an entity of HTML there, as in `i &lt; 3`.
    Entity,
    /// By an import of that specifier.
    Import(String),
}

/// The offsets of a question.
#[derive(Clone, Copy)]
pub(super) struct Places {
    /// The start of the failing function, if the engine told it.
    pub(super) function: Option<u32>,
    pub(super) before: u32,
    pub(super) after: Option<u32>,
}
