//! What a caller may ask of a run, and every check on it.

/// The language of the entry and of every module whose name does not say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// Standard ECMAScript modules, run as they stand.
    JavaScript,
    /// TypeScript, whose types are erased and not checked.
    #[default]
    TypeScript,
}
