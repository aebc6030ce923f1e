//! The names that a cell declares, as they are found.
//!
//! In: a declaration, its kind, its place. Out: each name once, in source order; or the error of a name that is declared
//! twice. The parser finds most of these errors; here no engine would, since the declarations become assignments.

use std::collections::HashMap;

use super::super::module::Imported;
use super::{super::failure::Failure, hidden::Hidden};
use crate::data::cell::NameKind;

/// The names that a cell declares, and the place of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellPlan {
    /// In source order, each name once.
    pub(crate) names: Vec<Declared>,
    /// The requests of the record to evaluate before the cell, in source order.
    pub(crate) imports: Vec<usize>,
    /// The source of the value, unless the cell returns.
    pub(crate) value: CellValue,
    /// Whether the text means something else in the function of a script, or nothing.
    pub(crate) is_of_module: bool,
}

/// A name that a cell declares at its top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) kind: NameKind,
    /// Of an import: the request, by its index in the record, and the name there.
    pub(crate) import: Option<(usize, Imported)>,
}

/// The source of a cell's value, unless the cell returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CellValue {
    /// It has none.
    #[default]
    None,
    /// `export default`.
    Default,
    /// The last statement, which is an expression.
    Expression,
    /// Other statements, as far as they gave one.
    Completion,
}

impl CellPlan {
    /// The approximate memory in bytes that it holds, and held while the cell was compiled.
    pub(crate) fn size_bytes(&self) -> usize {
        const PER_NAME: usize = 256;
        let name = |declared: &Declared| PER_NAME + declared.name.len();
        self.names.iter().map(name).sum::<usize>() + size_of_val(self.imports.as_slice())
    }
}

impl Default for CellPlan {
    fn default() -> Self {
        Self { names: Vec::new(), imports: Vec::new(), value: CellValue::None, is_of_module: false }
    }
}

/// A cell while its text is edited.
pub(in super::super) struct Cell<'a> {
    pub(super) hidden: Hidden,
    /// Of the body of a function, whose declarations stay: the names that it is to hand over.
    pub(super) body: Option<Vec<String>>,
    names: Vec<Found<'a>>,
    index: HashMap<&'a str, usize>,
    /// The first name that is declared a second time.
    clash: Option<Failure>,
    /// The requests that are imports.
    pub(super) imports: Vec<usize>,
    /// The functions at the top.
    pub(super) functions: Vec<&'a str>,
    /// The function that is the cell's value.
    pub(super) default_function: Option<&'a str>,
    pub(super) value: CellValue,
    /// Whether the value of a statement is kept.
    pub(super) completes: bool,
    /// The number of resources so far.
    pub(super) resources: usize,
    /// The parameters of `catch` around, each with the number of those.
    pub(super) caught: HashMap<&'a str, usize>,
}

struct Found<'a> {
    name: &'a str,
    kind: NameKind,
    at: u32,
    import: Option<(usize, Imported)>,
}

impl<'a> Cell<'a> {
    pub(super) fn new(hidden: Hidden) -> Self {
        Self {
            hidden,
            body: None,
            names: Vec::new(),
            index: HashMap::new(),
            clash: None,
            imports: Vec::new(),
            functions: Vec::new(),
            default_function: None,
            value: CellValue::None,
            completes: false,
            resources: 0,
            caught: HashMap::new(),
        }
    }

    /// Whether its declarations stay as they are.
    pub(in super::super) fn is_body(&self) -> bool {
        self.body.is_some()
    }

    /// Notes a declaration at a place.
    pub(super) fn declare(&mut self, name: &'a str, kind: NameKind, at: u32) {
        let Some(known) = self.index.get(name).and_then(|index| self.names.get_mut(*index)) else {
            return self.add(Found { name, kind, at, import: None });
        };
        match (known.kind, kind) {
            (NameKind::Var, NameKind::Var)
            | (NameKind::Enum, NameKind::Enum)
            | (
                NameKind::Namespace | NameKind::Function | NameKind::Class | NameKind::Enum,
                NameKind::Namespace,
            ) => {}
            (NameKind::Namespace, NameKind::Function | NameKind::Class | NameKind::Enum) => {
                known.kind = kind;
            }
            _ => {
                let (first, second) = (known.at.min(at) as usize, known.at.max(at) as usize);
                let clash = || Failure::declared_twice(name, first, second);
                self.clash.get_or_insert_with(clash);
            }
        }
    }

    /// Notes an imported name.
    pub(super) fn import(&mut self, name: &'a str, at: u32, request: usize, imported: Imported) {
        if self.index.contains_key(name) {
            self.declare(name, NameKind::Import, at);
        } else {
            self.add(Found { name, kind: NameKind::Import, at, import: Some((request, imported)) });
        }
    }

    fn add(&mut self, found: Found<'a>) {
        self.index.insert(found.name, self.names.len());
        self.names.push(found);
    }

    /// The plan, unless a name is declared twice.
    pub(super) fn into_plan(mut self) -> Result<CellPlan, Failure> {
        if let Some(clash) = self.clash {
            return Err(clash);
        }
        self.names.sort_by_key(|found| found.at);
        let declared =
            |Found { name, kind, import, .. }| Declared { name: str::to_owned(name), kind, import };
        let names = self.names.into_iter().map(declared).collect();
        Ok(CellPlan { names, imports: self.imports, value: self.value, is_of_module: false })
    }
}
