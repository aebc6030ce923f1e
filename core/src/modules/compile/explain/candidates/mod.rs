//! The expressions that a failure may be about.
//!
//! In: a module, the engine's description of a failure, and the places around it. Out: the expressions of that kind
//! there, the likeliest first, as plain data: their place, their text, and how their values are found among the variables
//! of the function. The engine's messages name no expression, and its places are those of the last name before the
//! failure. Parses the text once more, so it is for errors alone.

mod operands;
mod question;
mod search;

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_semantic::{Scoping, SemanticBuilder};

pub(crate) use self::operands::{Key, Literal, Operand, Root};
pub(crate) use self::question::{Act, Candidate, Declared, Failure, Question};
use self::{question::Places, search::Search};
use super::{
    super::{
        bounds::stack::with_stack_for,
        module::CompiledModule,
        text::{line_terminators, lines::Lines},
    },
    again::{self, LONGEST},
};
use crate::data::outcome::Position;

/// The expressions of `module` that may have failed, for each question, the likeliest first.
pub(in super::super) fn find(
    module: &CompiledModule,
    questions: &[Question],
) -> Vec<Vec<Candidate>> {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return Vec::new();
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(text, &line_terminators);
        let scoping = SemanticBuilder::new().build(&program).semantic.into_scoping();
        let answer = |question| answer(question, &program, &scoping, &mut lines);
        questions.iter().map(answer).map(Option::unwrap_or_default).collect()
    });
    found.unwrap_or_default()
}

fn answer(
    question: &Question,
    program: &Program<'_>,
    scoping: &Scoping,
    lines: &mut Lines<'_>,
) -> Option<Vec<Candidate>> {
    let mut offset =
        |place: Position| u32::try_from(lines.utf16_offset(place.line, place.column)?).ok();
    let before = offset(question.before)?;
    let after = question.after.and_then(&mut offset).filter(|after| *after > before);
    let function = question.function.and_then(offset);
    let places = Places { function, before, after };
    let candidates = Search::new(program, scoping, &question.failure, places).candidates(program);
    let place = |(at, mut act): (u32, Act)| {
        if let Act::Name { declared: Some(Declared::Line(place)), .. } = &mut act {
            // The search gives the offset.
            *place = lines.position(*place as usize).line;
        }
        Candidate { position: lines.position(at as usize), act }
    };
    Some(candidates.into_iter().map(place).collect())
}
