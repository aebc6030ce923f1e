//! The walk that finds suspects.
//!
//! In: a tree and the places around a failure. Out: every expression of that kind in the failing function, in order of
//! likelihood: those that contain the last place that the engine noted, the smallest first, then those that follow it.

use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, AssignmentTarget,
    AssignmentTargetPropertyIdentifier, AwaitExpression, BinaryExpression, BindingIdentifier,
    BindingPattern, CallExpression, CatchParameter, Class, ComputedMemberExpression, Declaration,
    Expression, ForOfStatement, ForStatementLeft, FormalParameters, Function, IdentifierReference,
    ImportDeclarationSpecifier, MemberExpression, NewExpression, Program, SimpleAssignmentTarget,
    SpreadElement, Statement, StaticMemberExpression, TaggedTemplateExpression, TemplateLiteral,
    ThisExpression, UnaryExpression, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};
use oxc_syntax::{
    operator::{BinaryOperator, UnaryOperator},
    scope::ScopeFlags,
};

use super::{
    Act, Declared, Failure, Key, Operand, Root,
    operands::{key_of, name_in, property_key},
};

/// The most suspects that are given.
const MOST: usize = 8;

/// Patterns within each other that are looked into.
const DEEPEST: usize = 16;

pub(super) struct Search<'s> {
    source: &'s str,
    failure: &'s Failure,
    /// The start of the failing function, if the engine told it.
    function: Option<u32>,
    before: u32,
    after: Option<u32>,
    /// The functions around the place that is visited: whether each may be the one that failed, and its start.
    functions: Vec<(bool, u32)>,
    /// Whether a function with that start was found.
    matched: bool,
    /// The likeliest suspects in the function that failed, and elsewhere.
    found: [Vec<Found>; 2],
    /// The first declaration of the name, and the first one after the failure.
    declared: [Option<u32>; 2],
    declared_as_type: bool,
    /// Whether the assigned name is imported.
    imported: bool,
}

struct Found {
    rank: Rank,
    at: u32,
    act: Act,
}

/// The likelihood of a suspect: the lowest is the likeliest.
type Rank = (u8, u32);

impl<'s> Search<'s> {
    pub(super) fn new(
        program: &Program<'s>,
        failure: &'s Failure,
        function: Option<u32>,
        before: u32,
        after: Option<u32>,
    ) -> Self {
        let whole = function.is_none_or(|start| start == 0);
        Self {
            source: program.source_text,
            failure,
            function,
            before,
            after,
            functions: vec![(whole, 0)],
            matched: whole,
            found: [Vec::new(), Vec::new()],
            declared: [None, None],
            declared_as_type: false,
            imported: false,
        }
    }

    /// The places and acts of all suspects.
    pub(super) fn suspects(mut self, program: &Program<'_>) -> Vec<(u32, Act)> {
        self.visit_program(program);
        let [here, elsewhere] = self.found;
        let found = if self.matched { here } else { merged(here, elsewhere) };
        let (imported, [first, later]) = (self.imported, self.declared);
        let line = later.or(first).map(Declared::Line);
        let declared = line.or_else(|| self.declared_as_type.then_some(Declared::Type));
        let mut found: Vec<(u32, Act)> =
            found.into_iter().map(|found| (found.at, found.act)).collect();
        let mut origins = Origins { source: self.source, operands: Vec::new() };
        for (_, act) in &mut found {
            match act {
                Act::Call { callee, first } => {
                    origins.ask(callee);
                    if let Some(first) = first {
                        origins.ask(first);
                    }
                }
                Act::Member { object: operand, .. }
                | Act::Conversion { value: operand }
                | Act::Pattern { source: Some(operand), .. }
                | Act::Iteration { value: Some(operand) } => origins.ask(operand),
                Act::Variable { imported: is } => *is = imported,
                Act::Binary { .. }
                | Act::Wait
                | Act::Pattern { source: None, .. }
                | Act::Iteration { value: None } => {}
                Act::Name { declared: place, .. } => *place = declared,
            }
        }
        if !origins.operands.is_empty() {
            origins.visit_program(program);
        }
        found
    }

    fn operand(&self, expression: &Expression<'_>) -> Operand {
        Operand::of(expression, self.source)
    }

    /// Adds a suspect. `span` is the text in which the last place before its failure may lie.
    fn add(&mut self, at: u32, span: Span, act: impl FnOnce(&Self) -> Option<Act>) {
        let Some(rank) = self.rank(at, span) else { return };
        let (here, _) = self.functions.last().copied().unwrap_or_default();
        let index = usize::from(!here);
        let found = &self.found[index];
        let place = found.partition_point(|other| other.rank <= rank);
        if place < MOST
            && let Some(act) = act(self)
        {
            let found = &mut self.found[index];
            found.insert(place, Found { rank, at, act });
            found.truncate(MOST);
        }
    }

    fn rank(&self, at: u32, span: Span) -> Option<Rank> {
        let (before, after) = (self.before, self.after);
        if at == before {
            Some((0, 0))
        } else if (span.start..span.end).contains(&before) {
            Some((1, span.size()))
        } else if matches!(
            self.failure,
            Failure::Call
                | Failure::Construct
                | Failure::ClassCall
                | Failure::Builtin(_)
                | Failure::Untold
        ) {
            // The engine notes the place of every call.
            None
        } else if at > before && after.is_none_or(|after| at.min(span.start) <= after) {
            Some((2, at - before))
        } else if matches!(self.failure, Failure::Assign(_)) && at < before {
            Some((3, before - at))
        } else {
            None
        }
    }

    /// Visits the inside of a function that starts at one of these places.
    fn within(&mut self, starts: &[u32], visit: impl FnOnce(&mut Self)) {
        let here = self.function.is_some_and(|start| starts.contains(&start));
        self.matched |= here;
        self.functions.push((here, starts.iter().copied().min().unwrap_or_default()));
        visit(self);
        self.functions.pop();
    }

    fn call(&mut self, span: Span, callee: &Expression<'_>, first: Option<&Expression<'_>>) {
        let inner = callee.get_inner_expression();
        self.add(last_name(inner), span, |search| {
            let callee = search.operand(inner);
            let first = first.map(|first| search.operand(first));
            search.may_be_builtin(&callee).then_some(Act::Call { callee, first })
        });
    }

    /// Whether a failed builtin may be the one called, by its name; anything may be, where none failed.
    fn may_be_builtin(&self, callee: &Operand) -> bool {
        match (self.failure, &callee.of) {
            (Failure::Builtin(name), Some((_, Key::Name(key)))) => name == key,
            _ => true,
        }
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

    /// An assignment to a property: it fails where the property is read-only, or the object takes no new one.
    fn assigned(&mut self, span: Span, member: &MemberExpression<'_>) {
        if !matches!(self.failure, Failure::Assign(_) | Failure::Extend | Failure::Primitive) {
            return;
        }
        self.add(property_place(member), span, |search| {
            let (object, key) = (search.operand(member.object()), name_in(member));
            let named = !matches!(
                (search.failure, &key),
                (Failure::Assign(name), Some(key)) if name != key
            );
            named.then_some(Act::Member { object, key })
        });
    }

    fn assigned_variable(&mut self, name: &IdentifierReference<'_>) {
        self.named(name, name.span, true);
        if matches!(self.failure, Failure::Assign(wanted) if *wanted == name.name.as_str()) {
            self.add(name.span.start, name.span, |_| Some(Act::Variable { imported: false }));
        }
    }

    fn named(&mut self, name: &IdentifierReference<'_>, span: Span, assigned: bool) {
        if matches!(self.failure, Failure::Name(wanted) if *wanted == name.name.as_str()) {
            self.add(name.span.start, span, |_| Some(Act::Name { assigned, declared: None }));
        }
    }

    fn converted(&mut self, span: Span, value: &Expression<'_>) {
        if *self.failure == Failure::Convert {
            self.add(value.span().start, span, |search| {
                Some(Act::Conversion { value: search.operand(value) })
            });
        }
    }

    fn target(
        &mut self,
        span: Span,
        target: &AssignmentTarget<'_>,
        right: Option<&Expression<'_>>,
    ) {
        let operand = |search: &Self| right.map(|right| search.operand(right));
        match target {
            AssignmentTarget::ObjectAssignmentTarget(pattern)
                if *self.failure == Failure::Destructure =>
            {
                self.add(pattern.span.start, span, |search| {
                    Some(Act::Pattern { source: operand(search), key: None })
                });
            }
            AssignmentTarget::ArrayAssignmentTarget(pattern)
                if *self.failure == Failure::Iterate =>
            {
                let at = right.map_or(pattern.span.start, |right| right.span().start);
                self.add(at, span, |search| Some(Act::Iteration { value: operand(search) }));
            }
            _ => {}
        }
    }

    /// A pattern that takes `source` apart, within the text `span`, which also has the source.
    fn pattern(
        &mut self,
        pattern: &BindingPattern<'_>,
        source: Option<&Operand>,
        place: Option<u32>,
        span: Span,
        depth: usize,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match pattern {
            BindingPattern::ObjectPattern(object) => {
                if *self.failure == Failure::Destructure {
                    let first = object.properties.first();
                    let at = first.map_or(object.span.start, |first| first.span.start);
                    self.add(at, span, |_| {
                        let key = first.and_then(|first| property_key(&first.key));
                        Some(Act::Pattern { source: source.cloned(), key })
                    });
                }
                for property in &object.properties {
                    let inner = source.zip(property_key(&property.key));
                    let inner = inner.map(|(source, key)| source.property(&key));
                    self.pattern(&property.value, inner.as_ref(), None, span, depth);
                }
            }
            BindingPattern::ArrayPattern(array) => {
                if *self.failure == Failure::Iterate {
                    let at = place.unwrap_or(array.span.start);
                    self.add(at, span, |_| Some(Act::Iteration { value: source.cloned() }));
                }
                for (index, element) in array.elements.iter().enumerate() {
                    let inner = source.map(|source| source.property(&index.to_string()));
                    if let Some(element) = element {
                        self.pattern(element, inner.as_ref(), None, span, depth);
                    }
                }
            }
            BindingPattern::AssignmentPattern(default) => {
                self.pattern(&default.left, None, None, span, depth);
            }
            BindingPattern::BindingIdentifier(_) => {}
        }
    }
}

impl<'a> VisitJs<'a> for Search<'_> {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        let name = function.id.as_ref().map_or(u32::MAX, |name| name.span.start);
        let starts = [function.span.start, function.params.span.start, name];
        self.within(&starts, |search| walk_js::walk_function(search, function, flags));
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        let starts = [function.span.start, function.params.span.start];
        self.within(&starts, |search| {
            walk_js::walk_arrow_function_expression(search, function);
        });
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(
            self.failure,
            Failure::Call | Failure::ClassCall | Failure::Builtin(_) | Failure::Untold
        ) {
            let first = call.arguments.first().and_then(|first| first.as_expression());
            self.call(call.span, &call.callee, first);
        }
        walk_js::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        if matches!(self.failure, Failure::Call | Failure::Construct | Failure::Builtin(_)) {
            let first = new.arguments.first().and_then(|first| first.as_expression());
            self.call(new.span, &new.callee, first);
        }
        walk_js::walk_new_expression(self, new);
    }

    fn visit_tagged_template_expression(&mut self, tagged: &TaggedTemplateExpression<'a>) {
        if matches!(self.failure, Failure::Call | Failure::ClassCall) {
            self.call(tagged.span, &tagged.tag, None);
        }
        walk_js::walk_tagged_template_expression(self, tagged);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        let key = Some(member.property.name.to_string());
        self.member(member.property.span.start, member.span, &member.object, key);
        walk_js::walk_static_member_expression(self, member);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        let key = key_of(&member.expression);
        self.member(member.expression.span().start, member.span, &member.object, key);
        walk_js::walk_computed_member_expression(self, member);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        self.target(assignment.span, &assignment.left, Some(&assignment.right));
        // The target is written after the right side has been evaluated.
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &assignment.left {
            self.named(name, assignment.span, true);
        }
        if let Some(member) = assignment.left.as_member_expression() {
            self.assigned(assignment.span, member);
            if matches!(self.failure, Failure::Write(_)) {
                let (at, key) = (property_place(member), name_in(member));
                self.member(at, assignment.span, member.object(), key);
            }
        }
        walk_js::walk_assignment_expression(self, assignment);
    }

    fn visit_simple_assignment_target(&mut self, target: &SimpleAssignmentTarget<'a>) {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                self.assigned_variable(name);
            }
            target => {
                if let Some(member) = target.as_member_expression() {
                    self.assigned(member.span(), member);
                }
                walk_js::walk_simple_assignment_target(self, target);
            }
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        property: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.assigned_variable(&property.binding);
        walk_js::walk_assignment_target_property_identifier(self, property);
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        if unary.operator == UnaryOperator::Delete
            && matches!(self.failure, Failure::Destructure | Failure::Delete)
        {
            let inner = unary.argument.get_inner_expression();
            if let Some(member) = inner.as_member_expression() {
                self.add(property_place(member), unary.span, |search| {
                    let object = search.operand(member.object());
                    Some(Act::Member { object, key: name_in(member) })
                });
            }
        }
        walk_js::walk_unary_expression(self, unary);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        let arithmetic = binary.operator.is_arithmetic() || binary.operator.is_bitwise();
        let wanted = match self.failure {
            Failure::Mix => arithmetic || binary.operator == BinaryOperator::Addition,
            Failure::Relation => {
                matches!(binary.operator, BinaryOperator::In | BinaryOperator::Instanceof)
            }
            _ => false,
        };
        self.converted(binary.span, &binary.left);
        self.converted(binary.span, &binary.right);
        if wanted {
            self.add(binary.span.start, binary.span, |search| {
                let (left, right) = (search.operand(&binary.left), search.operand(&binary.right));
                Some(Act::Binary { left, right })
            });
        }
        walk_js::walk_binary_expression(self, binary);
    }

    fn visit_await_expression(&mut self, wait: &AwaitExpression<'a>) {
        if *self.failure == Failure::Wait {
            self.add(wait.span.start, wait.span, |_| Some(Act::Wait));
        }
        walk_js::walk_await_expression(self, wait);
    }

    fn visit_spread_element(&mut self, spread: &SpreadElement<'a>) {
        if *self.failure == Failure::Iterate {
            self.add(spread.argument.span().start, spread.span, |search| {
                Some(Act::Iteration { value: Some(search.operand(&spread.argument)) })
            });
        }
        walk_js::walk_spread_element(self, spread);
    }

    fn visit_yield_expression(&mut self, yields: &YieldExpression<'a>) {
        if let Some(argument) = yields.argument.as_ref().filter(|_| yields.delegate)
            && *self.failure == Failure::Iterate
        {
            self.add(argument.span().start, yields.span, |search| {
                Some(Act::Iteration { value: Some(search.operand(argument)) })
            });
        }
        walk_js::walk_yield_expression(self, yields);
    }

    fn visit_for_of_statement(&mut self, each: &ForOfStatement<'a>) {
        // The engine calls a method that `for await` did not find.
        if *self.failure == Failure::Iterate || (each.r#await && *self.failure == Failure::Call) {
            self.add(each.right.span().start, each.right.span(), |search| {
                Some(Act::Iteration { value: Some(search.operand(&each.right)) })
            });
        }
        if each.r#await && *self.failure == Failure::Wait {
            self.add(each.span.start, each.span, |_| Some(Act::Wait));
        }
        if let ForStatementLeft::VariableDeclaration(declaration) = &each.left
            && matches!(self.failure, Failure::Destructure | Failure::Iterate)
        {
            let whole = self.operand(&each.right).text;
            let element = Operand::without_value(format!("an element of {whole}"));
            let head = Span::new(declaration.span.start, each.right.span().end);
            for declarator in &declaration.declarations {
                self.pattern(&declarator.id, Some(&element), None, head, DEEPEST);
            }
        }
        walk_js::walk_for_of_statement(self, each);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(init) = &declarator.init {
            let wanted = matches!(self.failure, Failure::Destructure | Failure::Iterate);
            if wanted && !declarator.id.is_binding_identifier() {
                let source = self.operand(init);
                let place = Some(init.span().start);
                self.pattern(&declarator.id, Some(&source), place, declarator.span, DEEPEST);
            }
        }
        walk_js::walk_variable_declarator(self, declarator);
    }

    fn visit_formal_parameters(&mut self, parameters: &FormalParameters<'a>) {
        if matches!(self.failure, Failure::Destructure | Failure::Iterate) {
            let (_, start) = self.functions.last().copied().unwrap_or_default();
            let head = Span::new(start, parameters.span.end);
            for (index, parameter) in parameters.items.iter().enumerate() {
                let argument = parameter.initializer.is_none().then(|| Operand::argument(index));
                self.pattern(&parameter.pattern, argument.as_ref(), None, head, DEEPEST);
            }
        }
        walk_js::walk_formal_parameters(self, parameters);
    }

    fn visit_catch_parameter(&mut self, parameter: &CatchParameter<'a>) {
        self.pattern(&parameter.pattern, None, None, parameter.span, DEEPEST);
        walk_js::walk_catch_parameter(self, parameter);
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.named(name, name.span, false);
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        if matches!(self.failure, Failure::Name(wanted) if *wanted == name.name.as_str()) {
            let [first, later] = &mut self.declared;
            *first = first.or(Some(name.span.start));
            *later = later.or((name.span.start > self.before).then_some(name.span.start));
        }
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        let parent = class.heritage.as_ref().map(|heritage| &heritage.expression);
        if let Some(parent) = parent.filter(|_| *self.failure == Failure::Extends) {
            self.add(last_name(parent.get_inner_expression()), class.span, |search| {
                Some(Act::Call { callee: search.operand(parent), first: None })
            });
        }
        walk_js::walk_class(self, class);
    }

    fn visit_import_declaration_specifier(&mut self, import: &ImportDeclarationSpecifier<'a>) {
        if let Failure::Assign(wanted) = self.failure {
            self.imported |= *wanted == import.name().as_str();
        }
        walk_js::walk_import_declaration_specifier(self, import);
    }

    fn visit_this_expression(&mut self, this: &ThisExpression) {
        if matches!(self.failure, Failure::Name(wanted) if wanted == "this") {
            let act = Act::Name { assigned: false, declared: None };
            self.add(this.span.start, this.span, |_| Some(act));
        }
    }

    fn visit_declaration(&mut self, declaration: &Declaration<'a>) {
        if let (Failure::Name(wanted), Some(name)) = (self.failure, declaration.id()) {
            self.declared_as_type |= declaration.is_type() && *wanted == name.name.as_str();
        }
        walk_js::walk_declaration(self, declaration);
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        if let Failure::Name(wanted) = self.failure {
            let name = match statement {
                Statement::TSInterfaceDeclaration(declaration) => Some(&declaration.id),
                Statement::TSTypeAliasDeclaration(declaration) => Some(&declaration.id),
                _ => None,
            };
            self.declared_as_type |= name.is_some_and(|name| *wanted == name.name.as_str());
        }
        walk_js::walk_statement(self, statement);
    }

    fn visit_template_literal(&mut self, template: &TemplateLiteral<'a>) {
        for value in &template.expressions {
            self.converted(template.span, value);
        }
        walk_js::walk_template_literal(self, template);
    }
}

/// The calls that variables have their values from, for the operands that ask for it.
struct Origins<'s, 'o> {
    source: &'s str,
    operands: Vec<&'o mut Operand>,
}

impl<'o> Origins<'_, 'o> {
    fn ask(&mut self, operand: &'o mut Operand) {
        if matches!(&operand.root, Some(Root::Name(_))) {
            self.operands.push(operand);
        } else if let Some((object, _)) = &mut operand.of {
            self.ask(object);
        }
    }
}

impl<'a> VisitJs<'a> for Origins<'_, '_> {
    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(name) = &declarator.id
            && let Some(init @ Expression::CallExpression(_)) =
                declarator.init.as_ref().map(Expression::get_inner_expression)
        {
            for operand in &mut self.operands {
                if matches!(&operand.root, Some(Root::Name(asked)) if *asked == name.name.as_str())
                {
                    operand.origin = Operand::of(init, self.source).origin;
                }
            }
        }
        walk_js::walk_variable_declarator(self, declarator);
    }
}

/// The suspects of both lists, the likeliest first.
fn merged(mut here: Vec<Found>, elsewhere: Vec<Found>) -> Vec<Found> {
    here.extend(elsewhere);
    here.sort_by_key(|found| found.rank);
    here.truncate(MOST);
    here
}

/// The engine's position for a call of this callee: the property, or the start of the callee.
fn last_name(callee: &Expression<'_>) -> u32 {
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        Expression::ChainExpression(chain) => {
            chain.expression.as_member_expression().map_or(chain.span.start, property_place)
        }
        _ => callee.span().start,
    }
}

fn property_place(member: &MemberExpression<'_>) -> u32 {
    match member {
        MemberExpression::StaticMemberExpression(member) => member.property.span.start,
        MemberExpression::ComputedMemberExpression(member) => member.expression.span().start,
        MemberExpression::PrivateFieldExpression(member) => member.field.span.start,
    }
}
