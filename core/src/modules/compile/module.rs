//! A compiled module: plain data, free of compiler types, all that linking and running need.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use crate::data::{outcome::Position, portable::portable};

use super::text::{
    edits::Edits,
    lines::{Lines, Silent},
};

/// The reason why a source is no module that can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompileError {
    /// The name of the error: always `SyntaxError`.
    pub(crate) name: &'static str,
    /// One line, bounded.
    pub(crate) message: String,
    /// The place in the original text.
    pub(crate) position: Option<Position>,
    /// The bytes that compiling takes, where there is no room for them. The source may be valid.
    pub(crate) needed_bytes: Option<usize>,
    /// Another message, where the remedy depends on the modules of the run.
    pub(crate) if_given: Option<IfGiven>,
}

/// The message of an error if the run has a module of some name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IfGiven {
    /// The specifier of that module.
    pub(crate) specifier: String,
    /// One line, bounded.
    pub(crate) message: String,
}

/// The name under which a statement imports a binding from another module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Imported {
    /// An export by name; the default export is `default`.
    Name(String),
    /// The module namespace object.
    Namespace,
}

/// One binding that a statement imports from another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportedName {
    /// The name in the other module.
    pub(crate) imported: Imported,
    /// The name in this module; none in a re-export.
    pub(crate) local: Option<String>,
    /// The place of the name.
    pub(crate) position: Position,
    /// TypeScript only: nothing refers to the local binding, neither as a value nor as a type.
    pub(crate) unused: bool,
}

/// One statement that requests another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The specifier, with escapes resolved.
    pub(crate) specifier: String,
    /// The place of the specifier.
    pub(crate) position: Position,
    /// The start of the statement.
    pub(crate) statement: Position,
    /// The imported names, in source order; none for `import 'x'` and `export * from 'x'`.
    pub(crate) names: Vec<ImportedName>,
}

/// The target of an exported name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExportTarget {
    /// A binding of this module.
    Local {
        /// The local name. Two exports of one binding are not ambiguous. `*default*` for a value.
        binding: String,
    },
    /// A binding of the module that a request names.
    Indirect {
        /// Index into `requests`.
        request: usize,
        /// The name in that module.
        imported: Imported,
    },
}

/// One exported name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    /// The name that importers use.
    pub(crate) name: String,
    /// The target of the name.
    pub(crate) target: ExportTarget,
}

/// The imports and exports of a module at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Every statement that requests a module, in source order.
    pub(crate) requests: Vec<Request>,
    /// Every exported name except those of stars, in source order.
    pub(crate) exports: Vec<Export>,
    /// The requests, by index, that are `export * from`.
    pub(crate) stars: Vec<usize>,
    /// Names that TypeScript exports only as types.
    pub(crate) type_exports: HashSet<String>,
    /// Specifiers of erased `export type * from`: each name there is a type here.
    pub(crate) type_stars: Vec<String>,
}

/// A module ready to be linked and run.
#[derive(Clone, Debug)]
pub(crate) struct CompiledModule {
    pub(super) text: Box<str>,
    pub(super) typescript: bool,
    pub(super) code: Code,
    /// Whether the text is a cell that is an object, in braces that would be those of a block.
    pub(super) is_object: bool,
    pub(super) line_terminators: Silent,
    pub(super) record: Record,
    /// The engine's bytecode of the code, stored by the first isolate that loads it. Opaque here.
    pub(super) bytecode: OnceLock<Arc<[u8]>>,
    /// An upper bound of the memory that compiling took.
    pub(super) takes_bytes: usize,
}

/// The text for the engine.
#[derive(Clone, Debug)]
pub(super) enum Code {
    /// The original.
    AsWritten,
    /// The original with blanks for types, and with insertions.
    Edited(Edited),
}

/// Code with the lines of its original, and the list of insertions.
#[derive(Clone, Debug)]
pub(super) struct Edited {
    pub(super) code: Box<str>,
    pub(super) edits: Edits,
}

portable!(enum Imported { 0: Name(name), 1: Namespace });
portable!(struct ImportedName { imported, local, position, unused });
portable!(struct Request { specifier, position, statement, names });
portable!(enum ExportTarget { 0: Local { binding }, 1: Indirect { request, imported } });
portable!(struct Export { name, target });
portable!(struct Record { requests, exports, stars, type_exports, type_stars });
portable!(enum Code { 0: AsWritten, 1: Edited(edited) });
portable!(struct Edited { code, edits });
portable!(struct CompiledModule {
    text, typescript, code, is_object, line_terminators, record, bytecode, takes_bytes,
});

impl Code {
    /// The bytes of what was inserted, while it is and after.
    pub(super) fn added_bytes(&self, original: &str) -> usize {
        let Self::Edited(edited) = self else { return 0 };
        2 * edited.code.len().saturating_sub(original.len()) + 4 * edited.edits.size()
    }

    /// The text to give to the engine.
    pub(super) fn text<'t>(&'t self, original: &'t str) -> &'t str {
        match self {
            Self::AsWritten => original,
            Self::Edited(edited) => &edited.code,
        }
    }
}

impl CompiledModule {
    /// The text to give to the engine: the original (without a byte order mark), or an edited one with the same lines.
    pub(crate) fn code(&self) -> &str {
        self.code.text(&self.text)
    }

    /// The original text, without a byte order mark.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The place for the engine's bytecode of the code.
    pub(crate) fn bytecode(&self) -> &OnceLock<Arc<[u8]>> {
        &self.bytecode
    }

    /// The imports and exports of the module.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// An upper bound of the memory in bytes that compiling took at once.
    pub(crate) fn takes_bytes(&self) -> usize {
        self.takes_bytes
    }

    /// The approximate memory in bytes that the module holds.
    pub(crate) fn size_bytes(&self) -> usize {
        let code = match &self.code {
            Code::AsWritten => 0,
            Code::Edited(edited) => edited.code.len() + edited.edits.size(),
        };
        let names: usize =
            self.record.requests.iter().map(|request| 128 + request.names.len() * 96).sum();
        size_of::<Self>() + self.text.len() + code + names + self.record.exports.len() * 96
    }

    /// Whether the text for the engine is not the original.
    pub(crate) fn is_edited(&self) -> bool {
        matches!(self.code, Code::Edited(_))
    }

    /// The original of a function, of which `part` is the code and the place (line and column from 1) the engine's: the
    /// last name up to its first bracket, or a name within.
    pub(crate) fn written(&self, (line, column): (u32, u32), part: &str) -> Option<&str> {
        /// So often a part may occur within itself.
        const MOST_TRIES: usize = 64;
        let Code::Edited(Edited { code, edits }) = &self.code else { return None };
        let column = engine_column(code, line, column);
        let lines = Lines::new(&self.text, &self.line_terminators);
        let start = lines.engine_line(line)?.start;
        let place = edits.code(start) + usize::try_from(column).ok()?.max(1) - 1;
        let place = code.floor_char_boundary(place);
        let next = |from: usize| Some(from + code.get(from..)?.find(part)?);
        let mut from = code.floor_char_boundary(place.saturating_sub(part.len()));
        if part.starts_with('(') {
            from = place;
        }
        let starts =
            std::iter::successors(next(from), |start| next(code.ceil_char_boundary(start + 1)));
        let start = starts.take(MOST_TRIES).find(|start| start + part.len() > place)?;
        self.text.get(edits.source(start)..edits.source(start + part.len()))
    }

    /// The original position of a place that the engine reports in `code`: line and column from 1, the column in bytes.
    /// Reads the whole text, so it is for errors alone.
    pub(crate) fn original(&self, line: u32, column: u32) -> Option<Position> {
        let column = engine_column(self.code(), line, column);
        let mut lines = Lines::new(&self.text, &self.line_terminators);
        let offset = match &self.code {
            Code::AsWritten => {
                let line = lines.engine_line(line)?;
                let column = usize::try_from(column).ok()?.checked_sub(1)?;
                (line.start + column).min(line.end)
            }
            Code::Edited(Edited { edits, .. }) => {
                // An insertion changes no line, so the line starts where it does in the source.
                let line = lines.engine_line(line)?;
                let column = usize::try_from(column.saturating_sub(1)).ok()?;
                edits.source(edits.code(line.start) + column).min(line.end)
            }
        };
        Some(lines.position(offset))
    }
}

/// The true column of a place. On line 1 the engine counts some tokens from 0 and others from 1: it points at the start
/// of an identifier, or just before a token that follows a blank or a sign. So a column that does not point at an
/// identifier is one too small, except the very first.
fn engine_column(code: &str, line: u32, column: u32) -> u32 {
    let index = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(&byte) = code.as_bytes().get(index).filter(|_| line == 1) else { return column };
    let exact = match column {
        0 | 1 => !matches!(byte, b' ' | b'\t' | 0x0b | 0x0c),
        _ => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..),
    };
    if exact { column } else { column.saturating_add(1) }
}

/// Cuts a message to one line of at most 1 KiB.
pub(super) fn one_line(message: &str) -> String {
    let mut line = String::new();
    for word in message.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 1024 {
            line.truncate(line.floor_char_boundary(1021));
            line.push('…');
            break;
        }
    }
    line
}

impl CompileError {
    pub(crate) fn new(message: &str, position: Position) -> Self {
        Self { position: Some(position), ..Self::without_position(message) }
    }

    /// An error without a position.
    pub(super) fn without_position(message: &str) -> Self {
        let message = one_line(message);
        Self { name: "SyntaxError", message, position: None, needed_bytes: None, if_given: None }
    }

    /// The error of a source that takes more memory than there is.
    pub(crate) fn out_of_memory(needed_bytes: usize) -> Self {
        let message = "The source takes more memory to compile than the run may hold";
        Self { needed_bytes: Some(needed_bytes), ..Self::without_position(message) }
    }
}
