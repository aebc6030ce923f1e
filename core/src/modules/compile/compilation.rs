//! One compilation, from the parser to the code for the engine.
//!
//! In: a text without a byte order mark, its language, the kind of program that it is, and the memory that compiling may take.
//! Out: a module, and the plan of a cell; or the first error with its remedy.

use std::{collections::HashSet, sync::OnceLock};

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_diagnostics::{Diagnostics, Severity};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::LabeledSpan;

use super::{
    advice::{self, Explained, Reader},
    bounds::{census::Census, memory, nesting::Weight, stack::with_stack_for},
    cell::{self, Cell, CellPlan},
    failure::Failure,
    library,
    module::{Code, CompileError, CompiledModule, Edited, Record},
    parse::{Goal, parser},
    record, refuse,
    text::{
        arrows,
        blanks::{self, Blanks},
        line_terminators,
        lines::{Lines, Silent},
        unicode_sets,
    },
    typescript::{
        erase::{self, Erased},
        types,
    },
};
use crate::data::source::Language;

/// The longest source: oxc counts bytes in 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// Compiles a text without a byte order mark. A cell and a body have a plan. `names` are those of the goal: imported ones
/// that are types, those of which a body says whether it refers to them, or those that a library does not see.
pub(super) fn compile_as(
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
        let (mut blanks, namespaces, cell) = cell::erase(program, scoping, blanks, cell);
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
