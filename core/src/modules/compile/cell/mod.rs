//! Cells of a session, compiled from source text.
//!
//! In: the text of a cell and its language. Out: the text of a module for the engine, and a plan of the names that the
//! cell declares. The module's default export is a function. Its parameter has a setter for each name, which binds the
//! name in the session; so a declaration becomes an assignment, and names that are read stay as they are. The cell's value
//! becomes `p[1]` at the end, and `p[2]` at a top-level `return`; so the engine returns no promise, whose `then` it would
//! call. All of this is edited in place, so every line is that of the source. Keeps the promises of sessions on declarations and values.
//! The body of a function is compiled in the same way, but that its declarations stay as they are.
//!
//! `hidden` finds names that the source does not have, `plan` lists the declared names, `statements` walks what is not
//! in functions, `completion` finds the value of the last statement, `variables` and `declarations` write declarations,
//! `module` writes imports, exports, and what goes around the source.

mod completion;
mod declarations;
mod hidden;
mod module;
mod plan;
mod statements;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::{Arc, OnceLock};

use oxc_allocator::Allocator;
use oxc_ast::{
    ast::{Expression, Program, Statement},
    builder::AstBuilder,
};
use oxc_span::GetSpan;

use self::hidden::Hidden;
pub(super) use self::{module::end_of, plan::Cell};
use super::{
    CompileError, Goal, blanks::Blanks, compile_as, lines::Silent, module::Code,
    module::CompiledModule, module::Imported, parser, with_stack_for, without_mark,
};
use crate::data::{cell::NameKind, source::Language};

/// A cell ready to be linked and run.
#[derive(Clone, Debug)]
pub(crate) struct CompiledCell {
    /// Its text for the engine, and its requests. Nothing can be imported from it.
    pub(crate) module: Arc<CompiledModule>,
    pub(crate) plan: Arc<CellPlan>,
    /// The engine's bytecode, stored by the first isolate that loads such a cell. Opaque here.
    pub(crate) bytecode: OnceLock<Arc<[u8]>>,
}

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

/// Compiles one cell. `erase` lists imported names that are types in their module, as linking found out.
///
/// Costs about what [`super::compile`] costs, with the same limits.
pub(crate) fn compile_cell(
    text: &str,
    language: Language,
    erase: &[String],
    room_bytes: usize,
) -> Result<CompiledCell, CompileError> {
    let (module, plan) = compile_with_object(text, language, erase, room_bytes, Goal::Cell)?;
    let (module, plan) = (Arc::new(module), Arc::new(plan.unwrap_or_default()));
    Ok(CompiledCell { module, plan, bytecode: OnceLock::new() })
}

/// Compiles the body of a function: a text of statements with `await` and `return` at its top, without `import` and
/// `export`. Its code is a module, whose default export is an asynchronous function of `p`. The function sets `p[0]` to
/// an array of those of `names` that the text refers to and does not declare, if there are any; `p[1]` to the value of
/// the last statement, at its end; and `p[2]` to the value of a `return` at the top. A text that is an object in braces
/// is that object.
///
/// Costs about what [`super::compile`] costs, with the same limits.
pub(crate) fn compile_body(
    text: &str,
    language: Language,
    names: &[String],
    room_bytes: usize,
) -> Result<CompiledModule, CompileError> {
    compile_with_object(text, language, names, room_bytes, Goal::Body).map(|(module, _)| module)
}

/// Compiles a text. Braces that can be an object are one.
fn compile_with_object(
    text: &str,
    language: Language,
    names: &[String],
    room_bytes: usize,
    goal: Goal,
) -> Result<(CompiledModule, Option<CellPlan>), CompileError> {
    let text = without_mark(text);
    let compiled = |text: &str| compile_as(text, language, names, room_bytes, goal);
    let object = braces(text, language, room_bytes).and_then(|braces| {
        let bracketed = braces.bracketed(text);
        let compiled = compiled(&bracketed).ok()?;
        Some((braces.restored(compiled.0, text), compiled.1))
    });
    object.map_or_else(|| compiled(text), Ok)
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

const LINE_TERMINATORS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// The braces that a source begins and ends with, if it is an object.
#[derive(Clone, Copy)]
struct Braces {
    open: usize,
    close: usize,
}

fn braces(text: &str, language: Language, room_bytes: usize) -> Option<Braces> {
    let line = if text.starts_with("#!") { text.find(LINE_TERMINATORS)? } else { 0 };
    let rest = text.get(line..)?;
    let first = Blanks::new(rest, &Silent::default()).next_token(0);
    let typescript = language == Language::TypeScript;
    if rest.as_bytes().get(first) != Some(&b'{') {
        return None;
    }
    let object = with_stack_for(rest, typescript, |weight| {
        let allocator = Allocator::default();
        let fits = weight.bytes <= room_bytes;
        let parsed = fits.then(|| parser(&allocator, rest, typescript, true).parse_expression());
        match parsed {
            Some(Ok(Expression::ObjectExpression(object))) => Some(object.span),
            _ => None,
        }
    });
    let span = object.ok().flatten()?;
    Some(Braces { open: line + span.start as usize, close: line + span.end as usize - 1 })
}

/// The tree of a module that was compiled before.
pub(super) fn parse_again<'a>(module: &'a CompiledModule, allocator: &'a Allocator) -> Program<'a> {
    let parser = || parser(allocator, module.text(), module.typescript, true);
    let mut program = parser().parse().program;
    if module.is_object
        && let Ok(object) = parser().parse_expression()
    {
        let builder = AstBuilder::new(allocator);
        program.directives.clear();
        program.body.clear();
        program.body.push(Statement::new_expression_statement(object.span(), object, &builder));
    }
    program
}

impl Braces {
    /// The text with parentheses around the braces.
    fn bracketed(self, text: &str) -> String {
        let part = |place| text.get(place).unwrap_or_default();
        let (before, after) = (part(0..self.open), part(self.close + 1..text.len()));
        format!("{before}({}){after}", part(self.open..self.close + 1))
    }

    /// The module of the bracketed text as that of the text itself, in which the parentheses are inserted.
    fn restored(self, mut module: CompiledModule, text: &str) -> CompiledModule {
        let (open, close) = (self.open, self.close + 1);
        if let Code::Edited(edited) = &mut module.code {
            edited.edits = edited.edits.within_parentheses(open, close);
        }
        let place = |at: usize| match at {
            at if at > close + 1 => at - 2,
            at if at > open => at - 1,
            at => at,
        };
        let silent = &mut module.line_terminators;
        for span in silent.spans.iter_mut().chain(&mut silent.comments) {
            *span = place(span.start)..place(span.end);
        }
        for at in &mut silent.swallowed {
            *at = place(*at);
        }
        module.text = text.into();
        module.is_object = true;
        module
    }
}
