//! The calls that positions in a source text belong to.
//!
//! In: positions that the engine gave for calls in progress, with what was called as far as it is known. The engine
//! reports the last position that it noted before the call. Where the arguments contain a name, that position is inside
//! them: in ``new RangeError(`no ${key}`)`` it is `key`. Out: the last name of each callee, which is the position that
//! the engine gives for other calls. Parses the text once more, so it is for errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionExpression, CallExpression, Expression, Function, MemberExpression, NewExpression,
    PropertyDefinition, StaticBlock,
};
use oxc_ast_visit::{
    Visit,
    walk::{
        walk_arrow_function_expression, walk_call_expression, walk_function, walk_new_expression,
        walk_property_definition, walk_static_block,
    },
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::{
    super::{
        bounds::stack::with_stack_for,
        module::CompiledModule,
        text::{line_terminators, lines::Lines},
    },
    again::{self, LONGEST},
};
use crate::data::outcome::Position;

/// A call in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) place: Position,
    pub(crate) called: Called,
}

/// The function that a call called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// By its own name, which may be another one at the call; empty if it has none.
    Function(String),
    /// A class, by `new`.
    Class(String),
    /// Nothing is known of it.
    Unknown,
}

/// The position of each call; `None` where there is no such call, and the engine's position stays.
pub(in super::super) fn find(module: &CompiledModule, calls: &[Call]) -> Vec<Option<Position>> {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return Vec::new();
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(text, &line_terminators);
        let sites = calls.iter().map(|call| {
            let at = lines.utf16_offset(call.place.line, call.place.column);
            let at = at.and_then(|at| u32::try_from(at).ok());
            Site { at: at.unwrap_or(u32::MAX), called: &call.called, found: None }
        });
        let mut finder = Finder { sites: sites.collect() };
        finder.visit_program(&program);
        let place = |site: Site<'_>| site.found.map(|(_, at)| lines.position(at as usize));
        finder.sites.into_iter().map(place).collect()
    });
    found.unwrap_or_default()
}

struct Site<'c> {
    at: u32,
    called: &'c Called,
    /// The likeliest call so far.
    found: Option<(Likelihood, u32)>,
}

/// The likelihood that a call is the one in progress.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likelihood {
    /// The place is in its arguments.
    Around,
    /// The place is that of its callee.
    There,
    /// The callee has the name of the function.
    Named,
}

struct Finder<'c> {
    sites: Vec<Site<'c>>,
}

impl Finder<'_> {
    /// Calls are visited from the outside in, so the last one of several that are equally likely is the innermost.
    fn look(&mut self, call: Span, callee: &Expression<'_>, constructs: bool) {
        let place = last_name(callee);
        let arguments = callee.span().end..call.end;
        for site in &mut self.sites {
            if !(arguments.contains(&site.at) || site.at == place) {
                continue;
            }
            let likelihood = match site.called {
                Called::Class(name) => {
                    let named = callee.get_identifier_reference();
                    if !constructs || named.is_none_or(|callee| callee.name != name.as_str()) {
                        continue;
                    }
                    Likelihood::Named
                }
                Called::Function(name) if is_named(callee, name) => Likelihood::Named,
                _ if site.at == place => Likelihood::There,
                _ => Likelihood::Around,
            };
            if site.found.is_none_or(|(found, _)| found <= likelihood) {
                site.found = Some((likelihood, place));
            }
        }
    }

    /// A call within a function has nothing to do with those around the function. A place at its very start belongs to
    /// the code around it.
    fn enter(&mut self, function: Span) {
        for site in &mut self.sites {
            if (function.start + 1..function.end).contains(&site.at) {
                site.found = None;
            }
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.look(call.span, &call.callee, false);
        walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.look(new.span, &new.callee, true);
        walk_new_expression(self, new);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.enter(function.span);
        walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.enter(function.span);
        walk_arrow_function_expression(self, function);
    }

    fn visit_property_definition(&mut self, field: &PropertyDefinition<'a>) {
        self.enter(field.span);
        walk_property_definition(self, field);
    }

    fn visit_static_block(&mut self, block: &StaticBlock<'a>) {
        self.enter(block.span);
        walk_static_block(self, block);
    }
}

/// Whether a callee ends in that name.
fn is_named(callee: &Expression<'_>, name: &str) -> bool {
    let callee = callee.get_inner_expression();
    let member = match callee {
        Expression::ChainExpression(chain) => chain.expression.as_member_expression(),
        callee => callee.as_member_expression(),
    };
    match member {
        Some(MemberExpression::PrivateFieldExpression(member)) => {
            name.strip_prefix('#') == Some(member.field.name.as_str())
        }
        Some(member) => member.static_property_name() == Some(name),
        None => callee.get_identifier_reference().is_some_and(|callee| callee.name == name),
    }
}

/// The engine's position for a call of this callee: the property, or the start of the callee.
pub(in super::super) fn last_name(callee: &Expression<'_>) -> u32 {
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
pub(in super::super) fn property_place(member: &MemberExpression<'_>) -> u32 {
    match member {
        MemberExpression::StaticMemberExpression(member) => member.property.span.start,
        MemberExpression::ComputedMemberExpression(member) => member.expression.span().start,
        MemberExpression::PrivateFieldExpression(member) => member.field.span.start,
    }
}
