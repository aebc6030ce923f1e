//! The ways into the compiler: a module, a library, a cell, the body of a function.
//!
//! In: a text and its language. Out: the compiled module, and the plan of a cell. A cell or a body that is an object in braces
//! is compiled as one.

use std::sync::{Arc, OnceLock};

use oxc_allocator::Allocator;
use oxc_ast::ast::Expression;

use super::{
    bounds::stack::with_stack_for,
    cell::{CellPlan, CompiledCell},
    compilation::compile_as,
    module::{Code, CompileError, CompiledModule},
    parse::{Goal, parser, without_mark},
    text::{blanks::Blanks, lines::Silent},
};
use crate::data::source::Language;

/// Compiles one module. `erase` lists unused imported names that are types in their module, as linking found out.
///
/// Takes about 200 µs for 50 lines of TypeScript. Uses a separate stack if the source nests deeply. A text that may
/// take more than `room_bytes` to compile is not parsed.
pub(crate) fn compile(
    text: &str,
    language: Language,
    erase: &[String],
    room_bytes: usize,
) -> Result<CompiledModule, CompileError> {
    compile_as(without_mark(text), language, erase, room_bytes, Goal::Module)
        .map(|(module, _)| module)
}

/// Compiles a library: a text of statements that may return at its top, without `await`, `import` and `export` there.
/// Its code is a script, whose value is a function of `exports`, `module` and `require`. `hidden` lists names that it
/// does not see.
///
/// Costs about what [`compile`] costs, with the same limits.
pub(crate) fn compile_library(
    text: &str,
    language: Language,
    hidden: &[String],
    room_bytes: usize,
) -> Result<CompiledModule, CompileError> {
    compile_as(without_mark(text), language, hidden, room_bytes, Goal::Library)
        .map(|(module, _)| module)
}

/// Compiles one cell. `erase` lists imported names that are types in their module, as linking found out.
///
/// Costs about what [`compile`] costs, with the same limits.
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
/// Costs about what [`compile`] costs, with the same limits.
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
