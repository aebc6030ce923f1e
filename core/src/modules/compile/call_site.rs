//! The call that a position in a source text belongs to.
//!
//! In: a position that the engine gave for a call in progress. The engine reports the last position that it noted
//! before the call. Where the arguments contain a name, that position is inside them: in
//! ``new RangeError(`no ${key}`)`` it is `key`. Out: the last name of the callee, which is the position that the engine
//! gives for other calls. Parses the text once more, so it is for errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{CallExpression, Expression, MemberExpression, NewExpression};
use oxc_ast_visit::{
    Visit,
    walk::{walk_call_expression, walk_new_expression},
};
use oxc_parser::Parser;
use oxc_span::{GetSpan, Span};

use super::{line_terminators, lines::Lines, module::CompiledModule, source_type, with_stack_for};
use crate::data::outcome::Position;

/// Texts longer than this are not parsed again; their positions stay the engine's.
const LONGEST: usize = 256 << 10;

/// The position of the innermost call whose arguments contain `place`. With `constructing`, only if the call is a `new`
/// of that name.
pub(super) fn find(
    module: &CompiledModule,
    place: Position,
    constructing: Option<&str>,
) -> Option<Position> {
    let (text, typescript) = (module.text(), module.typescript);
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
    /// Calls are visited from the outside in, so the last one that contains the position is the innermost.
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

/// The engine's position for a call of this callee: the property, or the start of the callee.
pub(super) fn last_name(callee: &Expression<'_>) -> u32 {
    let callee = callee.get_inner_expression();
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        Expression::ChainExpression(chain) => {
            chain.expression.as_member_expression().map_or(chain.span.start, property_place)
        }
        _ => callee.span().start,
    }
}

/// The place of a property in the text.
pub(super) fn property_place(member: &MemberExpression<'_>) -> u32 {
    match member {
        MemberExpression::StaticMemberExpression(member) => member.property.span.start,
        MemberExpression::ComputedMemberExpression(member) => member.expression.span().start,
        MemberExpression::PrivateFieldExpression(member) => member.field.span.start,
    }
}
