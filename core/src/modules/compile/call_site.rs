//! The call that a place in a source text belongs to.
//!
//! In: a place that the engine gave for a call that was going on. It remembers, for a call, the last
//! place that it noted before it, and that is within the arguments when they name anything: in
//! `new RangeError(`no ${key}`)` it is `key`. Out: the place that it gives when they do not, the
//! callee's last name. Parses the text once more: for errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{CallExpression, Expression, NewExpression};
use oxc_ast_visit::{
    Visit,
    walk::{walk_call_expression, walk_new_expression},
};
use oxc_parser::Parser;
use oxc_span::{GetSpan, Span};

use super::{line_terminators, lines::Lines, module::CompiledModule, source_type, with_stack_for};
use crate::data::outcome::Position;

/// Texts longer than this are not parsed again; their places stay the engine's.
const LONGEST: usize = 256 << 10;

/// The place of the innermost call whose arguments hold `place`; with `constructing`, only if it
/// is a `new` of that name.
pub(super) fn find(
    module: &CompiledModule,
    place: Position,
    constructing: Option<&str>,
) -> Option<Position> {
    let (text, typescript) = (module.text(), module.printed.is_some());
    if text.len() > LONGEST {
        return None;
    }
    with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = Parser::new(&allocator, text, source_type(typescript)).parse().program;
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(text, &line_terminators);
        let at = u32::try_from(lines.utf16_offset(place.line, place.column)?).ok()?;
        let mut finder = Finder { at, found: None };
        finder.visit_program(&program);
        let Site { at, constructs } = finder.found?;
        let wanted = constructing.is_none_or(|name| constructs.as_deref() == Some(name));
        wanted.then(|| lines.position(at as usize))
    })
    .ok()
    .flatten()
}

struct Site {
    at: u32,
    /// The name after `new`, where there is one.
    constructs: Option<String>,
}

struct Finder {
    at: u32,
    found: Option<Site>,
}

impl Finder {
    /// Visited from the outside in, so the last to hold the place is the innermost.
    fn look(&mut self, call: Span, callee: &Expression<'_>, constructs: bool) {
        if !(callee.span().end..call.end).contains(&self.at) {
            return;
        }
        let name = callee.get_identifier_reference().map(|name| name.name.to_string());
        self.found = Some(Site { at: last_name(callee), constructs: name.filter(|_| constructs) });
    }
}

impl<'a> Visit<'a> for Finder {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.look(call.span, &call.callee, false);
        walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.look(new.span, &new.callee, true);
        walk_new_expression(self, new);
    }
}

/// Where the engine places a call of this callee: at the property, or at its start.
fn last_name(callee: &Expression<'_>) -> u32 {
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        other => other.span().start,
    }
}
