//! The candidates of a failure.
//!
//! In: a tree and the places around a failure. Out: every expression of that kind in the failing function, in order of
//! likelihood: those that contain the last place that the engine noted, the smallest first, then those that follow it.

mod functions;
mod origins;
mod patterns;
mod walk;

use oxc_ast::ast::{
    Argument, Expression, IdentifierReference, MemberExpression, Program, SimpleAssignmentTarget,
    Statement,
};
use oxc_ast_visit::VisitJs;
use oxc_semantic::{ReferenceId, Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::{operator::BinaryOperator, symbol::SymbolFlags};

use self::{functions::Failed, origins::Origins};
use super::{
    super::call_site::{last_name, property_place},
    operands::{Operand, member_of, name_in, symbol},
    question::{Act, Declared, Failure, Places},
};
use crate::data::nearest::misspelled;

/// The most candidates that are given.
const MOST: usize = 8;

/// The operations that are described in the first walk. A text may have thousands, each likelier than the one before.
const MOST_DESCRIBED: usize = 32;

pub(super) struct Search<'s> {
    source: &'s str,
    scoping: &'s Scoping,
    failure: &'s Failure,
    places: Places,
    /// The functions that may have failed, where that is known.
    failed: Option<Failed>,
    /// The functions around the place that is visited: whether each may be the one that failed, and its start.
    functions: Vec<(bool, u32)>,
    /// The likeliest candidates in the function that failed, and elsewhere.
    found: [Vec<Found>; 2],
    /// The descriptions that the first walk may still make.
    room: usize,
    /// In the second walk, the ranks of the last candidates that the first one found.
    limits: Option<[Rank; 2]>,
    /// The first declaration of the name, and the first one after the failure.
    declared: [Option<u32>; 2],
    /// The declaration of the name that gives it no value.
    declared_for_types: Option<Declared>,
    /// Whether the place that is visited is for the type checker alone.
    ambient: bool,
    /// Whether the function around it is asynchronous. Arrows do not count: they are no generators.
    asynchronous: bool,
    /// The places where the name is used that is not declared.
    uses: Vec<(u32, ReferenceId)>,
}

struct Found {
    rank: Rank,
    at: u32,
    /// `None` if the first walk had no room to describe it.
    act: Option<Act>,
}

/// The likelihood of a candidate: the lowest is the likeliest.
type Rank = (u8, u32);

impl<'s> Search<'s> {
    pub(super) fn new(
        program: &Program<'s>,
        scoping: &'s Scoping,
        failure: &'s Failure,
        places: Places,
    ) -> Self {
        let failed = functions::failed(program, places);
        let whole = failed.as_ref().is_some_and(|failed| failed.program);
        Self {
            source: program.source_text,
            scoping,
            failure,
            places,
            failed,
            functions: vec![(whole, 0)],
            found: [Vec::new(), Vec::new()],
            room: MOST_DESCRIBED,
            limits: None,
            declared: [None, None],
            declared_for_types: None,
            ambient: false,
            asynchronous: false,
            uses: Vec::new(),
        }
    }

    /// The places and acts of all candidates.
    pub(super) fn candidates(mut self, program: &Program<'_>) -> Vec<(u32, Act)> {
        self.visit_program(program);
        if self.room == 0 {
            // Only the candidates that are left are described.
            let last = |found: Vec<Found>| match found.get(MOST - 1) {
                Some(last) => last.rank,
                None => (u8::MAX, u32::MAX),
            };
            self.limits = Some(std::mem::take(&mut self.found).map(last));
            self.uses.clear();
            self.visit_program(program);
        }
        let [here, elsewhere] = std::mem::take(&mut self.found);
        let found = if self.failed.is_some() { here } else { merged(here, elsewhere) };
        let [first, later] = self.declared;
        let line = later.or(first).map(Declared::Line);
        let elsewhere = line.or(self.declared_for_types.take());
        let mut found: Vec<(u32, Act)> =
            found.into_iter().filter_map(|found| Some((found.at, found.act?))).collect();
        // The likeliest decides.
        if let Some((at, Act::Name { meant, .. })) = found.first_mut() {
            *meant = self.meant(*at);
        }
        let (source, scoping) = (self.source, self.scoping);
        let mut origins = Origins { source, scoping, operands: Vec::new() };
        for (at, act) in &mut found {
            let entity = || is_entity(source, *at).then_some(Declared::Entity);
            match act {
                Act::Call { callee, arguments, .. } => {
                    origins.ask(callee);
                    for argument in arguments.iter_mut().flatten() {
                        origins.ask(argument);
                    }
                }
                Act::Member { object: operand, .. }
                | Act::Conversion { value: operand }
                | Act::Pattern { source: Some(operand), .. }
                | Act::Iteration { value: Some(operand) } => origins.ask(operand),
                Act::Name { declared, .. } if matches!(self.failure, Failure::Name(_)) => {
                    *declared = elsewhere.clone().or_else(entity);
                }
                Act::Name { declared: Some(declared), .. } => {
                    if let Declared::Line(place) = *declared
                        && let Some(specifier) = imported_from(program, place)
                    {
                        *declared = Declared::Import(specifier);
                    }
                }
                Act::Binary { .. }
                | Act::Variable { .. }
                | Act::Wait
                | Act::Import { .. }
                | Act::Pattern { source: None, .. }
                | Act::Iteration { value: None }
                | Act::Name { .. } => {}
            }
        }
        if !origins.operands.is_empty() {
            origins.visit_program(program);
        }
        found
    }

    fn operand(&self, expression: &Expression<'_>) -> Operand {
        Operand::of(expression, self.source, self.scoping)
    }

    /// Adds a candidate. `span` is the text in which the last place before its failure may lie.
    fn add(&mut self, at: u32, span: Span, act: impl FnOnce(&Self) -> Option<Act>) {
        let Some(rank) = self.rank(at, span, self.failure.is_noted()) else { return };
        let (here, _) = self.functions.last().copied().unwrap_or_default();
        self.insert(usize::from(!here), rank, at, act);
    }

    /// Adds a candidate whose place the engine does not note when it fails.
    fn add_unnoted(&mut self, at: u32, span: Span, act: impl FnOnce(&Self) -> Option<Act>) {
        let Some(rank) = self.rank(at, span, false) else { return };
        let (here, _) = self.functions.last().copied().unwrap_or_default();
        self.insert(usize::from(!here), rank, at, act);
    }

    fn insert(
        &mut self,
        index: usize,
        rank: Rank,
        at: u32,
        act: impl FnOnce(&Self) -> Option<Act>,
    ) {
        if !self.has_room(index, rank) {
            return;
        }
        let mut described = None;
        if self.may_describe() {
            described = act(self);
            if described.is_none() {
                return;
            }
        }
        let found = &mut self.found[index];
        let place = found.partition_point(|other| other.rank <= rank);
        found.insert(place, Found { rank, at, act: described });
        found.truncate(MOST);
    }

    /// Whether a candidate of that rank would be one of the likeliest.
    fn has_room(&self, index: usize, rank: Rank) -> bool {
        let known = self.failed.is_some();
        (index == 0 || !known)
            && self.limits.is_none_or(|limits| rank <= limits[index])
            && self.found[index].partition_point(|other| other.rank <= rank) < MOST
    }

    /// Whether one more operation may be described in this walk.
    fn may_describe(&mut self) -> bool {
        let may = self.room > 0 || self.limits.is_some();
        self.room = self.room.saturating_sub(1);
        may
    }

    fn rank(&self, at: u32, span: Span, noted: bool) -> Option<Rank> {
        let Places { before, after, .. } = self.places;
        if at == before {
            Some((0, 0))
        } else if (span.start..span.end).contains(&before) {
            Some((1, span.size()))
        } else if noted {
            None
        } else if at > before && after.is_none_or(|after| at.min(span.start) <= after) {
            Some((2, at - before))
        } else if matches!(self.failure, Failure::Assign(_)) && at < before {
            Some((3, before - at))
        } else {
            None
        }
    }

    /// Visits the inside of a function, or of the definition of a field.
    fn within(&mut self, span: Span, visit: impl FnOnce(&mut Self)) {
        let here = self.failed.as_ref().is_some_and(|failed| failed.contains(span));
        // The engine's start may be that of the key.
        let start = self.places.function.filter(|_| here).unwrap_or(span.start);
        self.functions.push((here, start.min(span.start)));
        visit(self);
        self.functions.pop();
    }

    /// Visits a part of the text that is only for the type checker.
    fn ambient(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.ambient, true);
        visit(self);
        self.ambient = outer;
    }

    fn call(
        &mut self,
        span: Span,
        callee: &Expression<'_>,
        arguments: &[Argument<'_>],
        constructs: bool,
    ) {
        let inner = callee.get_inner_expression();
        if !self.may_be_builtin(inner) {
            return;
        }
        self.add(last_name(callee), span, |search| {
            let callee = search.operand(inner);
            let argument =
                |index: usize| Some(search.operand(arguments.get(index)?.as_expression()?));
            Some(Act::Call { callee, arguments: [argument(0), argument(1)], constructs })
        });
    }

    /// Whether a failed builtin may be the one called, by its name; anything may be, where none failed.
    fn may_be_builtin(&self, callee: &Expression<'_>) -> bool {
        let Failure::Builtin(name) = self.failure else { return true };
        member_of(callee).and_then(name_in).is_none_or(|key| key == *name)
    }

    fn member(&mut self, at: u32, span: Span, object: &Expression<'_>, key: Option<String>) {
        let named = |wanted: &str| key.as_deref().is_none_or(|key| key == wanted);
        let wanted = match self.failure {
            Failure::Read(name) | Failure::Write(name) => named(name),
            _ => false,
        };
        if wanted && !matches!(object, Expression::Super(_)) {
            self.add(at, span, |search| {
                let object = search.operand(object);
                Some(Act::Member { object, key })
            });
        }
    }

    /// A property that is read; `a?.b` reads nothing of `undefined`.
    fn read(
        &mut self,
        optional: bool,
        at: u32,
        span: Span,
        object: &Expression<'_>,
        key: Option<String>,
    ) {
        if !optional && matches!(self.failure, Failure::Read(_)) {
            self.member(at, span, object, key);
        }
    }

    /// A property that is written.
    fn written(&mut self, span: Span, member: &MemberExpression<'_>) {
        if matches!(self.failure, Failure::Write(_)) {
            self.member(property_place(member), span, member.object(), name_in(member));
        }
    }

    /// A target that is read and written, or read, changed and written.
    fn changed(&mut self, span: Span, target: &SimpleAssignmentTarget<'_>) {
        let computed = target.as_member_expression().filter(|member| member.is_computed());
        if let Some(member) = computed.filter(|_| *self.failure == Failure::Change) {
            self.add(property_place(member), span, |search| {
                let (object, key) = (search.operand(member.object()), name_in(member));
                Some(Act::Member { object, key })
            });
        }
        if *self.failure == Failure::Convert {
            self.add(target.span().start, span, |search| {
                let value = Operand::of_target(target, search.source, search.scoping)?;
                Some(Act::Conversion { value })
            });
        }
    }

    /// An operation with two operands.
    fn operation(
        &mut self,
        operator: BinaryOperator,
        span: Span,
        left: impl FnOnce(&Self) -> Option<Operand>,
        right: &Expression<'_>,
    ) {
        let wanted = match self.failure {
            Failure::Mix => {
                operator.is_arithmetic()
                    || operator.is_bitwise()
                    || operator == BinaryOperator::Addition
            }
            Failure::Shift => operator == BinaryOperator::ShiftRightZeroFill,
            Failure::Relation => {
                matches!(operator, BinaryOperator::In | BinaryOperator::Instanceof)
            }
            _ => false,
        };
        if wanted {
            self.add(span.start, span, |search| {
                Some(Act::Binary { left: left(search)?, right: search.operand(right) })
            });
        }
    }

    /// An assignment to a property: it fails where the property is read-only, or the object takes no new one.
    fn assigned(&mut self, span: Span, member: &MemberExpression<'_>) {
        if !matches!(self.failure, Failure::Assign(_) | Failure::Extend | Failure::Primitive) {
            return;
        }
        let key = name_in(member);
        if matches!((self.failure, &key), (Failure::Assign(name), Some(key)) if name != key) {
            return;
        }
        self.add(property_place(member), span, |search| {
            let object = search.operand(member.object());
            Some(Act::Member { object, key })
        });
    }

    fn assigned_variable(&mut self, name: &IdentifierReference<'_>) {
        self.named(name, name.span, true);
        if matches!(self.failure, Failure::Assign(wanted) if *wanted == name.name.as_str()) {
            self.add(name.span.start, name.span, |search| {
                let symbol = search.symbol(name);
                let imported = symbol.is_some_and(|symbol| search.is_import(symbol));
                Some(Act::Variable { declared: symbol.is_some(), imported })
            });
        }
    }

    fn named(&mut self, name: &IdentifierReference<'_>, span: Span, assigned: bool) {
        let (wanted, declares) = match self.failure {
            Failure::Name(wanted) => (wanted, false),
            Failure::Uninitialized(wanted) => (wanted, true),
            _ => return,
        };
        // The names that no declaration in the text binds are initialized from the start.
        if *wanted != name.name.as_str() || (declares && self.symbol(name).is_none()) {
            return;
        }
        let reference = name.reference_id.get().filter(|_| !declares);
        self.uses.extend(reference.map(|reference| (name.span.start, reference)));
        self.add(name.span.start, span, |search| {
            let symbol = search.symbol(name);
            if !declares {
                return Some(Act::Name { assigned, declared: None, meant: None });
            }
            let place = search.scoping.symbol_span(symbol?).start;
            let declared = Some(Declared::Line(place));
            Some(Act::Name { assigned, declared, meant: None })
        });
    }

    /// The declaration that a name refers to.
    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        symbol(self.scoping, name)
    }

    fn is_import(&self, symbol: SymbolId) -> bool {
        self.scoping.symbol_flags(symbol).contains(SymbolFlags::Import)
    }

    /// The declared name that the name used at `at` nearly is, among those that code may use there.
    fn meant(&self, at: u32) -> Option<String> {
        let Failure::Name(name) = self.failure else { return None };
        let (_, reference) = *self.uses.iter().find(|(place, _)| *place == at)?;
        let scope = self.scoping.get_reference(reference).scope_id();
        let scopes = self.scoping.scope_ancestors(scope);
        let symbols = scopes.flat_map(|scope| self.scoping.get_bindings(scope).values().copied());
        let is_value = |symbol: &SymbolId| {
            let flags = self.scoping.symbol_flags(*symbol);
            flags.intersects(SymbolFlags::Value | SymbolFlags::Import)
                && !flags.contains(SymbolFlags::Ambient)
        };
        let names = symbols.filter(is_value).map(|symbol| self.scoping.symbol_name(symbol));
        misspelled(name, names).map(str::to_owned)
    }

    /// Whether the failure may be that of an iteration. The engine calls the method that an asynchronous one did not find.
    fn may_iterate(&self, asynchronous: bool) -> bool {
        *self.failure == Failure::Iterate || (asynchronous && *self.failure == Failure::Call)
    }

    /// An `import()`, of a written specifier if there is one. Those of the wanted one come first.
    fn imported(&mut self, at: u32, specifier: Option<&str>) {
        if let Failure::Import(wanted) = self.failure
            && specifier.is_none_or(|specifier| specifier == wanted)
        {
            let written = specifier.is_some();
            let rank = (u8::from(!written), at);
            // The engine does not say which function called it.
            self.insert(0, rank, at, |_| Some(Act::Import { written }));
        }
    }

    fn converted(&mut self, span: Span, value: &Expression<'_>) {
        if *self.failure == Failure::Convert {
            self.add(value.span().start, span, |search| {
                Some(Act::Conversion { value: search.operand(value) })
            });
        }
    }
}

/// The specifier of the import that declares the name at `place`.
fn imported_from(program: &Program<'_>, place: u32) -> Option<String> {
    program.body.iter().find_map(|statement| match statement {
        Statement::ImportDeclaration(import)
            if (import.span.start..import.span.end).contains(&place) =>
        {
            Some(import.source.value.to_string())
        }
        _ => None,
    })
}

/// The candidates of both lists, the likeliest first.
fn merged(mut here: Vec<Found>, elsewhere: Vec<Found>) -> Vec<Found> {
    here.extend(elsewhere);
    here.sort_by_key(|found| found.rank);
    here.truncate(MOST);
    here
}

/// Whether the name at a place is that of an entity of HTML.
fn is_entity(source: &str, at: u32) -> bool {
    let around = source.split_at_checked(at as usize);
    let named = |name: &str| ["lt;", "gt;", "amp;", "quot;"].iter().any(|it| name.starts_with(it));
    around.is_some_and(|(before, name)| before.ends_with('&') && named(name))
}
