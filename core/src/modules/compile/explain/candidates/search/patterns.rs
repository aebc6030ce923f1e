//! Patterns that may have failed, of declarations and of assignments.
//!
//! In: a pattern, and the value that it takes apart. Out: a candidate for the pattern and for each one within it.

use oxc_ast::ast::{
    AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty, BindingPattern,
};
use oxc_span::{GetSpan, Span};

use super::{
    super::{
        operands::{Operand, property_key},
        question::{Act, Failure},
    },
    Search,
};

/// Patterns within each other that are looked into.
const DEEPEST: usize = 16;

/// A pattern.
#[derive(Clone, Copy)]
pub(super) enum Pattern<'p, 'a> {
    Binding(&'p BindingPattern<'a>),
    Target(&'p AssignmentTarget<'a>),
    Defaulted(&'p AssignmentTargetMaybeDefault<'a>),
}

/// The inside of a pattern.
enum Inside<'p, 'a> {
    /// The start and the key of the first property, and each property that holds a pattern.
    Object(u32, Option<String>, Vec<(Option<String>, Pattern<'p, 'a>)>),
    /// Each element with its index, and the pattern of the rest.
    Array(Vec<(usize, Pattern<'p, 'a>)>, Option<Pattern<'p, 'a>>),
    /// A pattern with a default value.
    Default(Pattern<'p, 'a>),
    /// No pattern.
    Place,
}

impl<'p, 'a> Pattern<'p, 'a> {
    pub(super) fn is_plain(self) -> bool {
        matches!(self.inside(), Inside::Place)
    }

    fn span(self) -> Span {
        match self {
            Self::Binding(pattern) => pattern.span(),
            Self::Target(target) => target.span(),
            Self::Defaulted(target) => target.span(),
        }
    }

    fn inside(self) -> Inside<'p, 'a> {
        match self {
            Self::Binding(pattern) => of_binding(pattern),
            Self::Target(target) => of_target(target),
            Self::Defaulted(AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(target)) => {
                Inside::Default(Self::Target(&target.binding))
            }
            Self::Defaulted(target) => {
                target.as_assignment_target().map_or(Inside::Place, of_target)
            }
        }
    }
}

fn of_binding<'p, 'a>(pattern: &'p BindingPattern<'a>) -> Inside<'p, 'a> {
    match pattern {
        BindingPattern::ObjectPattern(object) => {
            let first = object.properties.first();
            let start = first.map_or(object.span.start, |first| first.span.start);
            let inner = object.properties.iter().filter_map(|property| {
                let pattern = Pattern::Binding(&property.value);
                (!property.value.is_binding_identifier())
                    .then(|| (property_key(&property.key), pattern))
            });
            let key = first.and_then(|first| property_key(&first.key));
            Inside::Object(start, key, inner.collect())
        }
        BindingPattern::ArrayPattern(array) => {
            let elements = array.elements.iter().enumerate();
            let elements = elements
                .filter_map(|(index, element)| Some((index, Pattern::Binding(element.as_ref()?))));
            let rest = array.rest.as_ref().map(|rest| Pattern::Binding(&rest.argument));
            Inside::Array(elements.collect(), rest)
        }
        BindingPattern::AssignmentPattern(default) => {
            Inside::Default(Pattern::Binding(&default.left))
        }
        BindingPattern::BindingIdentifier(_) => Inside::Place,
    }
}

fn of_target<'p, 'a>(target: &'p AssignmentTarget<'a>) -> Inside<'p, 'a> {
    match target {
        AssignmentTarget::ObjectAssignmentTarget(object) => {
            let first = object.properties.first();
            let start = first.map_or(object.span.start, |first| first.span().start);
            let key = first.and_then(|first| match first {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(name) => {
                    Some(name.binding.name.to_string())
                }
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(property) => {
                    property_key(&property.name)
                }
            });
            let inner = object.properties.iter().filter_map(|property| match property {
                AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(_) => None,
                AssignmentTargetProperty::AssignmentTargetPropertyProperty(property) => {
                    Some((property_key(&property.name), Pattern::Defaulted(&property.binding)))
                }
            });
            Inside::Object(start, key, inner.collect())
        }
        AssignmentTarget::ArrayAssignmentTarget(array) => {
            let elements = array.elements.iter().enumerate();
            let elements = elements.filter_map(|(index, element)| {
                Some((index, Pattern::Defaulted(element.as_ref()?)))
            });
            let rest = array.rest.as_ref().map(|rest| Pattern::Target(&rest.target));
            Inside::Array(elements.collect(), rest)
        }
        _ => Inside::Place,
    }
}

impl Search<'_> {
    /// Whether the failure may be that of a pattern.
    pub(super) fn wants_patterns(&self) -> bool {
        matches!(self.failure, Failure::Destructure | Failure::Iterate)
    }

    /// A pattern that takes the value of `source` apart, within the text `span`, which also has the source. The source may
    /// have a place of its own.
    pub(super) fn pattern(
        &mut self,
        pattern: Pattern<'_, '_>,
        source: impl FnOnce(&Self) -> Option<Operand>,
        place: Option<u32>,
        span: Span,
    ) {
        if self.wants_patterns() && !pattern.is_plain() {
            let describes = self.may_hold(pattern, span) && self.may_describe();
            let source = if describes { source(self) } else { None };
            self.pattern_within(pattern, source.as_ref(), place, span, DEEPEST);
        }
    }

    /// Whether a pattern, or one within it, would be one of the likeliest candidates.
    fn may_hold(&self, pattern: Pattern<'_, '_>, span: Span) -> bool {
        let (here, _) = self.functions.last().copied().unwrap_or_default();
        let inside = pattern.span();
        let before = self.places.before;
        if (inside.start..inside.end).contains(&before) {
            return true;
        }
        let rank = self.rank(inside.start, span, self.failure.is_noted());
        rank.is_some_and(|rank| self.has_room(usize::from(!here), rank))
    }

    fn pattern_within(
        &mut self,
        pattern: Pattern<'_, '_>,
        source: Option<&Operand>,
        place: Option<u32>,
        span: Span,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match pattern.inside() {
            Inside::Object(start, key, properties) => {
                if *self.failure == Failure::Destructure {
                    self.add(start, span, |_| Some(Act::Pattern { source: source.cloned(), key }));
                }
                for (key, inner) in properties {
                    let property = source.filter(|_| self.may_hold(inner, span)).zip(key);
                    let property = property.map(|(source, key)| source.property(&key));
                    self.pattern_within(inner, property.as_ref(), None, span, depth);
                }
            }
            Inside::Array(elements, rest) => {
                if *self.failure == Failure::Iterate {
                    let at = place.unwrap_or(pattern.span().start);
                    self.add(at, span, |_| Some(Act::Iteration { value: source.cloned() }));
                }
                for (index, inner) in elements {
                    if inner.is_plain() {
                        continue;
                    }
                    let element = source.filter(|_| self.may_hold(inner, span));
                    let element = element.map(|source| source.element(index));
                    self.pattern_within(inner, element.as_ref(), None, span, depth);
                }
                if let Some(rest) = rest {
                    let operand = source.map(Operand::rest);
                    self.pattern_within(rest, operand.as_ref(), None, span, depth);
                }
            }
            Inside::Default(inner) => {
                let source = source.map(Operand::defaulted);
                self.pattern_within(inner, source.as_ref(), None, span, depth);
            }
            Inside::Place => {}
        }
    }
}
