//! Modules compiled from source text; the only importer of oxc.
//!
//! In: a text and its language. Out: the text for the engine, a record of its imports and exports, and positions of the
//! original; or a `CompileError` with the position of the first error. JavaScript is parsed for its errors and its
//! record and runs unchanged, except for parentheses where the engine needs them. TypeScript is not type-checked, and
//! nothing is lowered: blanks take the place of its types, and what produces code, such as an enum, is written anew where
//! it stands. So every line is that of the source. Keeps the contract's rule that a hostile source harms no host: for any
//! text, time is about linear in its length and the stack suffices.

mod advice;
mod arrows;
mod blanks;
pub(crate) mod call_site;
pub(crate) mod cell;
mod census;
mod constants;
mod default_export;
mod edits;
pub(crate) mod ending;
mod enums;
mod erase;
pub(crate) mod explain;
mod exported;
mod fate;
mod immediate;
mod lexer;
mod library;
mod line_terminators;
mod lines;
mod loops;
mod memory;
mod module;
mod names;
mod namespaces;
mod nesting;
mod produce;
mod properties;
#[cfg(test)]
mod readings_tests;
mod record;
mod refuse;
mod regexps;
pub(crate) mod requested;
mod rereads;
#[cfg(test)]
mod tests;
mod types;
mod unicode_sets;

use std::collections::HashSet;

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_diagnostics::{Diagnostics, Severity};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{LabeledSpan, SourceType};

pub(crate) use self::advice::can_be_name;
use self::advice::{Explained, Failure, Reader};
use self::blanks::Blanks;
use self::cell::{Cell, CellPlan};
use self::census::Census;
use self::erase::Erased;
use self::lines::{Lines, Silent};
use self::module::{Code, Edited};
pub(crate) use self::module::{
    CompileError, CompiledModule, ExportTarget, Imported, ImportedName, Record, Request,
};
use self::nesting::Weight;
pub(crate) use self::regexps::RegularExpression;
use std::sync::OnceLock;

use crate::data::source::Language;
use crate::os::addresses;

/// The stack that one unit of weight may take in any pass. The measured maximum is 914 bytes, of nested tuple types.
const STACK_PER_WEIGHT: usize = (2 << 10) * crate::os::sanitized::FRAMES;

/// The most stack that a byte of any source takes, whatever the parser makes of it: a level of nesting has at least one
/// byte. The measured maximum is 1,828 bytes, of nested tuple types.
const STACK_PER_BYTE: usize = STACK_PER_WEIGHT;

/// The stack that any source may take.
const STACK_BASE: usize = (384 << 10) * crate::os::sanitized::FRAMES;

/// The longest source: oxc counts bytes in 32 bits.
const MAX_BYTES: usize = 1 << 30;

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

/// The kind of program that a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Module,
    Cell,
    /// A module that may return at the top.
    Returning,
    /// The body of a function, as a cell whose declarations stay.
    Body,
    /// A function of the ways in and out of a library.
    Library,
}

/// A text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Compiles a text without a byte order mark. A cell and a body have a plan. `names` are those of the goal: imported ones
/// that are types, those of which a body says whether it refers to them, or those that a library does not see.
fn compile_as(
    text: &str,
    language: Language,
    names: &[String],
    room_bytes: usize,
    goal: Goal,
) -> Result<(CompiledModule, Option<CellPlan>), CompileError> {
    if text.len() > MAX_BYTES {
        return Err(CompileError::without_position("The source is longer than 1 GiB"));
    }
    if let Some(offset) = advice::begins_with_fence(text) {
        let position = Lines::new(text, &Silent::default()).position(offset);
        return Err(CompileError::new(advice::FENCED, position));
    }
    let typescript = language == Language::TypeScript;
    let compilation = |weight: Weight| {
        if weight.bytes > room_bytes {
            return Err(CompileError::out_of_memory(weight.bytes));
        }
        Compilation { text, names, weight, room_bytes, goal }.run(typescript)
    };
    with_stack_for(text, typescript, compilation).map_err(|deep| {
        let position = Lines::new(text, &Silent::default()).position(deep.offset);
        CompileError::new("The source is too deeply nested", position)
    })?
}

/// Runs `work` with enough stack for any pass over that text. The weight of a text rests on an idea of what the parser
/// does, so a mistake there must not overflow the stack.
fn with_stack_for<T>(
    text: &str,
    typescript: bool,
    work: impl FnOnce(Weight) -> T,
) -> Result<T, nesting::TooDeep> {
    let weight = nesting::weigh(text, typescript)?;
    let stack = stack_for(text, &weight);
    Ok(stacker::maybe_grow(stack, stack, || work(weight)))
}

/// The stack for a text: as much as any nesting in it could take. Where the process has no room for that, as much as it has
/// room for, and no less than its weight takes. The system gives memory only to the part that is touched.
fn stack_for(text: &str, weight: &Weight) -> usize {
    let weighed = STACK_BASE + weight.levels * STACK_PER_WEIGHT;
    let most = text.len().saturating_mul(STACK_PER_BYTE).saturating_add(STACK_BASE);
    let here = stacker::remaining_stack().unwrap_or_default();
    let halves = std::iter::successors(Some(most), |stack| Some(stack / 2));
    let mut stacks = halves.take_while(|stack| *stack > weighed);
    stacks.find(|stack| *stack <= here || addresses::are_free(*stack)).unwrap_or(weighed)
}

fn source_type(typescript: bool) -> SourceType {
    if typescript { SourceType::ts().with_module(true) } else { SourceType::mjs() }
}

/// A parser. Only a cell may return at its top.
fn parser<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    typescript: bool,
    returns: bool,
) -> Parser<'a> {
    let options =
        ParseOptions { allow_return_outside_function: returns, ..ParseOptions::default() };
    Parser::new(allocator, text, source_type(typescript)).with_options(options)
}

#[derive(Clone, Copy)]
struct Compilation<'c> {
    text: &'c str,
    names: &'c [String],
    weight: Weight,
    room_bytes: usize,
    goal: Goal,
}

impl Compilation<'_> {
    fn run(&self, typescript: bool) -> Result<(CompiledModule, Option<CellPlan>), CompileError> {
        let allocator = Allocator::default();
        let parsed = parser(&allocator, self.text, typescript, self.returns()).parse();
        let mut program = parsed.program;
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(self.text, &line_terminators);
        if let Some(failure) = first_error(&parsed.diagnostics, parsed.panicked) {
            return Err(self.explain(failure, &program, self.weight.bytes, &mut lines));
        }
        if let Some(refusal) = refuse::refusal(&program, self.goal) {
            let position = lines.position(refusal.offset as usize);
            return Err(CompileError::new(&refusal.message, position));
        }
        let census = Census::of(&program);
        let takes_bytes = analysis_bytes(self.text, &self.weight, &allocator, &census);
        if takes_bytes > self.room_bytes {
            return Err(CompileError::out_of_memory(takes_bytes));
        }
        if census.is_too_long(self.text.len()) {
            return Err(CompileError::without_position("The source takes too long to compile"));
        }
        let (scoping, early) = analyze(&program, &census);
        let blanks = Blanks::new(self.text, &line_terminators);
        let early = if typescript {
            early
                .or_else(|| census.misplaced())
                .or_else(|| erase::redeclared_import(&program, &scoping))
        } else {
            early
        };
        let compiled = if matches!(self.goal, Goal::Cell | Goal::Body) {
            let early = early.filter(|_| !typescript || !self.is_returning_module());
            let cell = || self.cell(&mut program, &scoping, &mut lines, blanks);
            early.map_or_else(cell, Err)
        } else if typescript {
            let compiled = self.typescript(&mut program, &scoping, &mut lines, blanks);
            let early = early.filter(|_| !self.runs_erased(compiled.as_ref().ok(), takes_bytes));
            early.map_or(compiled, Err).map(|(record, code)| (record, code, None))
        } else {
            let record = || record::read(&program, &mut lines, &HashSet::new());
            let record = early.map_or_else(record, Err);
            let end = cell::end_of(&program);
            let blanks = || unicode_sets::replace(&program, arrows::bracket(&program, blanks));
            let code = || code(self.wrapped(&program, end, blanks()));
            record.map(|record| (record, code(), None))
        };
        let (record, code, mut plan) =
            compiled.map_err(|failure| self.explain(failure, &program, takes_bytes, &mut lines))?;
        let mut takes_bytes = takes_bytes;
        if let Some(plan) = &mut plan {
            plan.is_of_module = census.is_of_module();
            takes_bytes =
                takes_bytes.saturating_add(plan.size_bytes() + code.added_bytes(self.text));
            if takes_bytes > self.room_bytes {
                return Err(CompileError::out_of_memory(takes_bytes));
            }
        }
        let bytecode = OnceLock::new();
        let text = self.text.into();
        let module = CompiledModule {
            text,
            typescript,
            code,
            is_object: false,
            line_terminators,
            record,
            bytecode,
            takes_bytes,
        };
        Ok((module, plan))
    }

    fn returns(&self) -> bool {
        self.goal != Goal::Module
    }

    /// Imported names that are types.
    fn erase(&self) -> &[String] {
        if matches!(self.goal, Goal::Body | Goal::Library) { &[] } else { self.names }
    }

    /// The code with a library's function around it. The last token of the program ends at `end`.
    fn wrapped<'t>(&self, program: &Program<'_>, end: usize, blanks: Blanks<'t>) -> Blanks<'t> {
        if self.goal == Goal::Library {
            library::wrap(program, end, self.names, blanks)
        } else {
            blanks
        }
    }

    /// Whether the text of a cell is a module, but for its `return`.
    fn is_returning_module(&self) -> bool {
        Self { goal: Goal::Returning, ..*self }.run(true).is_ok()
    }

    fn cell(
        &self,
        program: &mut Program<'_>,
        scoping: &Scoping,
        lines: &mut Lines<'_>,
        blanks: Blanks<'_>,
    ) -> Result<(Record, Code, Option<CellPlan>), Failure> {
        let typescript = program.source_type.is_typescript();
        if let Some(failure) = erase::undefined_export(program, scoping).filter(|_| typescript) {
            return Err(failure);
        }
        let (end, cell) = (cell::end_of(program), Cell::of(self.text, scoping));
        let cell = if self.goal == Goal::Body { cell.into_body(scoping, self.names) } else { cell };
        let (mut blanks, namespaces, cell) = types::erase_cell(program, scoping, blanks, cell);
        let mut unused = HashSet::new();
        if typescript {
            let erase = self.erase();
            let erased =
                erase::erase_type_imports(program, scoping, erase, &namespaces, &mut blanks, true);
            erase::erase_type_exports(program, scoping, &namespaces, &mut blanks);
            unused = erased.unused;
        }
        let mut record = record::read(program, lines, &unused)?;
        let finish = |cell: Cell<'_>| cell.finish(program, end, &mut record, &mut blanks);
        let plan = cell.map(finish).transpose()?;
        Ok((record, code(blanks), plan))
    }

    /// Whether an early error is one that only the types of the source have. For TypeScript's own compiler, too, a program
    /// is what is left without types: oxc refuses a function of the name of a parameter, or two methods of one name.
    fn runs_erased(&self, compiled: Option<&(Record, Code)>, takes_bytes: usize) -> bool {
        let room = self.room_bytes.saturating_sub(takes_bytes);
        let runs = |text| is_module_within(text, false, self.returns(), room, usize::MAX);
        compiled.is_some_and(|(_, code)| runs(code.text(self.text)))
    }

    /// The error of a text that does not compile, with its remedy if there is one.
    fn explain(
        &self,
        failure: Failure,
        program: &Program<'_>,
        takes_bytes: usize,
        lines: &mut Lines<'_>,
    ) -> CompileError {
        let typescript = program.source_type.is_typescript();
        let room = self.room_bytes.saturating_sub(takes_bytes);
        let parses = |text: &str, typescript| {
            is_module_within(text, typescript, self.returns(), room, advice::MOST_LEVELS)
        };
        let runs_without_types = |text: &str| {
            let is_left = |code: &str| code != text && blanks::are_all(code, text);
            let goal = if self.returns() { Goal::Returning } else { Goal::Module };
            let compiled = || compile_as(text, Language::TypeScript, &[], room, goal);
            parses(text, true)
                && compiled().is_ok_and(|(it, _)| is_left(it.code()) && parses(it.code(), false))
        };
        let reader = Reader { parses: &parses, runs_without_types: &runs_without_types };
        let Explained { message, at, if_given } =
            failure.explain(program, typescript, lines, &reader);
        let position = at.map(|offset| lines.position(offset));
        CompileError { position, if_given, ..CompileError::without_position(&message) }
    }

    fn typescript(
        &self,
        program: &mut Program<'_>,
        scoping: &Scoping,
        lines: &mut Lines<'_>,
        blanks: Blanks<'_>,
    ) -> Result<(Record, Code), Failure> {
        if let Some(failure) = erase::undefined_export(program, scoping) {
            return Err(failure);
        }
        let end = cell::end_of(program);
        let (mut blanks, namespaces) = types::erase(program, scoping, blanks);
        let erased = erase::erase_type_imports(
            program,
            scoping,
            self.erase(),
            &namespaces,
            &mut blanks,
            false,
        );
        erase::erase_type_exports(program, scoping, &namespaces, &mut blanks);
        let record = finish_record(record::read(program, lines, &erased.unused)?, erased);
        Ok((record, code(self.wrapped(program, end, blanks))))
    }
}

fn code(blanks: Blanks<'_>) -> Code {
    let edited = |(code, edits)| Code::Edited(Edited { code, edits });
    blanks.into_code().map_or(Code::AsWritten, edited)
}

/// A bound of the memory of a program that is parsed and will be analyzed, and no less than that of parsing it.
fn analysis_bytes(
    text: &str,
    weight: &Weight,
    allocator: &Allocator,
    census: &Census<'_>,
) -> usize {
    let beside = memory::of_text(text) + memory::of_levels(weight.levels);
    weight.bytes.max((allocator.capacity() + beside).saturating_add(census.bytes()))
}

/// The scopes and symbols of a program, and its first early error.
fn analyze(program: &Program<'_>, census: &Census<'_>) -> (Scoping, Option<Failure>) {
    let analyzer = SemanticBuilder::new().with_stats(census.stats).with_check_syntax_error(true);
    let analyzed = analyzer.build(program);
    let early = first_error(&analyzed.diagnostics, false);
    (analyzed.semantic.into_scoping(), early)
}

/// Whether a text is a module without errors, which takes at most so much memory and nests in at most so many levels.
fn is_module_within(
    text: &str,
    typescript: bool,
    returns: bool,
    room_bytes: usize,
    levels: usize,
) -> bool {
    let fits = |weight: &Weight| weight.bytes <= room_bytes && weight.levels <= levels;
    let parses =
        |weight: Weight| fits(&weight) && is_module(text, typescript, returns, &weight, room_bytes);
    with_stack_for(text, typescript, parses) == Ok(true)
}

/// Whether a text is a module without an error that is known before it runs, and its analysis takes at most `room_bytes`.
fn is_module(
    text: &str,
    typescript: bool,
    returns: bool,
    weight: &Weight,
    room_bytes: usize,
) -> bool {
    let allocator = Allocator::default();
    let parsed = parser(&allocator, text, typescript, returns).parse();
    if first_error(&parsed.diagnostics, parsed.panicked).is_some() {
        return false;
    }
    let census = Census::of(&parsed.program);
    let fits = analysis_bytes(text, weight, &allocator, &census) <= room_bytes;
    fits && !census.is_too_long(text.len()) && analyze(&parsed.program, &census).1.is_none()
}

/// Records as types the names that the source exports and the erased program does not.
fn finish_record(mut record: Record, erased: Erased) -> Record {
    let mut types = erased.exported;
    for export in &record.exports {
        types.remove(&export.name);
    }
    record.type_exports = types;
    record.type_stars = erased.type_stars;
    record
}

/// The first error in source order, if there is any.
fn first_error(diagnostics: &Diagnostics, panicked: bool) -> Option<Failure> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let first = errors
        .min_by_key(|diagnostic| diagnostic.labels.first().map_or(u32::MAX, LabeledSpan::offset));
    let nameless = || panicked.then(|| Failure::without_place("The source cannot be parsed"));
    first.map(Failure::new).or_else(nameless)
}
