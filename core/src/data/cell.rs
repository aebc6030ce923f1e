//! The cells of a session as callers see them.

#![expect(unreachable_pub, reason = "callers see it from the next commits on")]

/// The kind of declaration that gave a session a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// `const`, and a top-level `using`.
    Const,
    /// `let`.
    Let,
    /// `var`, in blocks too.
    Var,
    /// `function`, also generators and asynchronous ones.
    Function,
    /// `class`.
    Class,
    /// A name that an `import` statement binds.
    Import,
    /// A TypeScript `enum`.
    Enum,
    /// A TypeScript `namespace`.
    Namespace,
}
