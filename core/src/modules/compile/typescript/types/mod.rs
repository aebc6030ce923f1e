//! Types overwritten in place.
//!
//! In: a TypeScript tree. Out: its text with blanks for types, and with brackets or semicolons where blanks would change
//! its meaning. One walk, which enters no type. Declarations that produce code are left to `produce`, the statements that
//! import and export names to `erase`.

use std::collections::HashSet;

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentTargetPropertyIdentifier, BinaryExpression, BinaryOperator,
    BindingPattern, CallExpression, CatchParameter, Class, ClassElement, ExportDefaultDeclaration,
    Expression, ExpressionStatement, ForOfStatement, ForStatementLeft, FormalParameter,
    FormalParameterRest, Function, IdentifierReference, MethodDefinition, MethodDefinitionType,
    NewExpression, ObjectProperty, Program, PropertyDefinition, PropertyDefinitionType,
    PropertyKey, RegExpLiteral, ReturnStatement, Statement, TSAsExpression,
    TSInstantiationExpression, TSNonNullExpression, TSSatisfiesExpression, TSTypeAnnotation,
    TSTypeAssertion, TaggedTemplateExpression, ThrowStatement, VariableDeclaration,
    VariableDeclarationKind, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::{
    precedence::{GetPrecedence, Precedence},
    scope::ScopeFlags,
};

use super::{
    super::{
        bounds::names::Names,
        cell::Cell,
        text::{
            arrows,
            blanks::{Blanks, between, place},
            unicode_sets,
        },
    },
    constants::{Constant, Constants},
    fate::{self, Fate},
    namespaces::Namespaces,
    produce::Block,
    properties::is_property,
};

/// Erases the types of `program`. Returns its namespaces, too.
pub(in super::super) fn erase<'a, 't>(
    program: &Program<'a>,
    scoping: &Scoping,
    blanks: Blanks<'t>,
) -> (Blanks<'t>, Namespaces<'a>) {
    let mut types = Types::new(program, scoping, blanks, None);
    types.visit_program(program);
    (types.blanks, types.namespaces)
}

impl<'w, 'a, 't> Types<'w, 'a, 't> {
    pub(in super::super) fn new(
        program: &Program<'a>,
        scoping: &'w Scoping,
        blanks: Blanks<'t>,
        cell: Option<Cell<'a>>,
    ) -> Self {
        Self {
            blanks,
            scoping,
            namespaces: Namespaces::new(
                program,
                scoping,
                cell.as_ref().is_some_and(|cell| !cell.is_body()),
            ),
            constants: Constants::default(),
            has_enums: program.source_text.contains("enum"),
            blocks: Vec::new(),
            bound: HashSet::new(),
            exports: HashSet::new(),
            names: Names::default(),
            leftmost: (u32::MAX, Leftmost::Statement),
            in_list: true,
            cell,
        }
    }
}

/// The place of the expression whose first token may be erased.
#[derive(Clone, Copy, PartialEq)]
enum Leftmost {
    /// A statement of a list.
    Listed,
    /// Any other statement.
    Statement,
    /// The value of `export default`.
    Default,
    /// The body of an arrow function.
    Body,
    /// After a keyword that ends its statement at the end of a line.
    Restricted,
}

pub(in super::super) struct Types<'w, 'a, 't> {
    pub(in super::super) blanks: Blanks<'t>,
    pub(in super::super) scoping: &'w Scoping,
    pub(in super::super) namespaces: Namespaces<'a>,
    pub(in super::super) constants: Constants<'a>,
    has_enums: bool,
    /// The enums and the blocks of namespaces around the place that is visited.
    pub(in super::super) blocks: Vec<Block>,
    /// The functions, classes, enums and namespaces whose names are bound by now.
    pub(in super::super) bound: HashSet<SymbolId>,
    /// Those of them that the module exports.
    pub(in super::super) exports: HashSet<SymbolId>,
    pub(in super::super) names: Names,
    /// The start of the last expression that was entered at such a place.
    leftmost: (u32, Leftmost),
    /// Whether the last statement is one of a list.
    in_list: bool,
    /// The cell that the program is.
    pub(in super::super) cell: Option<Cell<'a>>,
}

impl<'a> Types<'_, 'a, '_> {
    fn erase(&mut self, span: Span) {
        self.blanks.erase(place(span));
    }

    fn enter(&mut self, expression: &Expression<'_>, leftmost: Leftmost) {
        self.leftmost = (expression.span().start, leftmost);
    }

    pub(in super::super) fn statement(&mut self, statement: &Statement<'a>, in_list: bool) {
        match fate::of_statement(statement, &self.namespaces) {
            Fate::Produces => return self.produce(statement, in_list),
            Fate::Erased => return self.blanks.erase_statement(place(statement.span()), in_list),
            Fate::Runs => {}
        }
        if let Statement::ExportDeclaration(export) = statement
            && !self.blocks.is_empty()
        {
            return self.member_of_namespace(export);
        }
        self.in_list = in_list;
        walk_js::walk_statement(self, statement);
        if matches!(
            statement,
            Statement::ExpressionStatement(_)
                | Statement::ReturnStatement(_)
                | Statement::ThrowStatement(_)
                | Statement::VariableDeclaration(_)
                | Statement::ExportDeclaration(_)
                | Statement::ExportDefaultDeclaration(_)
        ) {
            self.blanks.end_statement(statement.span().end as usize);
        }
    }

    /// Erases a mark after a name or a pattern, `?` or `!`, and the annotation after it.
    fn annotation(
        &mut self,
        name_end: usize,
        marked: bool,
        annotation: Option<&TSTypeAnnotation<'_>>,
    ) {
        let mark = marked.then(|| self.blanks.next_token(name_end));
        let end = annotation.map(|annotation| annotation.span.end as usize);
        let start = mark.or(annotation.map(|annotation| annotation.span.start as usize));
        if let Some(start) = start {
            self.blanks.erase(start..end.unwrap_or(start + 1));
        }
    }

    /// Erases the mark and the type of a variable.
    pub(in super::super) fn declared_types(&mut self, declarator: &VariableDeclarator<'_>) {
        let end = declarator.id.span().end as usize;
        self.annotation(end, declarator.definite, declarator.type_annotation.as_deref());
    }

    /// Notes the value of a `const` variable that an enum may use.
    pub(in super::super) fn note_constant(
        &mut self,
        kind: VariableDeclarationKind,
        declarator: &VariableDeclarator<'_>,
    ) {
        if self.has_enums
            && kind == VariableDeclarationKind::Const
            && declarator.type_annotation.is_none()
            && let (BindingPattern::BindingIdentifier(id), Some(value)) =
                (&declarator.id, &declarator.init)
            && let Some(value) = self.constant(value)
        {
            // A string that a name stands for is not written there.
            let value = if value == Constant::Text { Constant::String } else { value };
            self.constants.variables.insert(id.symbol_id(), value);
        }
    }

    /// Visits what a `for (of)` assigns.
    pub(in super::super) fn for_of_target(&mut self, left: &ForStatementLeft<'a>) {
        // `for (async of` is no loop.
        let target = left.as_assignment_target();
        let target = target.and_then(|target| target.as_simple_assignment_target());
        let name = target.and_then(|target| target.get_expression()).map(without_types);
        let name = name.and_then(Expression::get_identifier_reference);
        let bracketed = name.is_some_and(|name| name.name == "async");
        let place = place(left.span());
        if bracketed {
            self.blanks.insert(place.start, "(");
        }
        self.visit_for_statement_left(left);
        if bracketed {
            self.blanks.insert(place.end, ")");
        }
    }

    /// Erases the modifiers of a member that JavaScript does not have.
    fn modifiers(&mut self, member: Span, key: Span) {
        let mut at = self.blanks.next_token(member.start as usize);
        let mut first = None;
        let mut leads = true;
        while at < key.start as usize {
            let end = at + self.blanks.word(at).len();
            let next = self.blanks.next_token(end);
            match self.blanks.word(at) {
                "public" | "private" | "protected" | "readonly" | "override" => {
                    self.blanks.erase(at..end);
                    first = first.or(leads.then_some(at));
                }
                "" => break,
                _ => leads = false,
            }
            at = next;
        }
        if let Some(first) = first {
            self.blanks.separate_element(first, at);
        }
    }

    fn erase_element(&mut self, span: Span) {
        self.erase(span);
        let next = self.blanks.next_token(span.end as usize);
        self.blanks.separate_element(span.start as usize, next);
    }

    /// The end of a member's name, with its bracket.
    fn key_end(&self, key: &PropertyKey<'_>, computed: bool) -> usize {
        let end = key.span().end as usize;
        if computed { self.blanks.next_token(end) + 1 } else { end }
    }

    fn class_head(&mut self, class: &Class<'_>) {
        let mut at = class.span.start as usize;
        loop {
            at = self.blanks.next_token(at);
            let word = self.blanks.word(at);
            let end = at + word.len();
            match word {
                "abstract" => self.blanks.erase(at..end),
                "class" => {}
                // Only decorators precede these words, and they are refused.
                _ => return,
            }
            at = end;
            if word == "class" {
                break;
            }
        }
        if let Some(id) = &class.id {
            at = id.span.end as usize;
        }
        if let Some(parameters) = &class.type_parameters {
            self.erase(parameters.span);
            at = parameters.span.end as usize;
        }
        if let Some(heritage) = &class.heritage {
            if let Some(arguments) = &heritage.type_arguments {
                self.erase(arguments.span);
            }
            at = heritage.span().end as usize;
        }
        if let Some(last) = class.implements.last() {
            self.blanks.erase(self.blanks.next_token(at)..last.span.end as usize);
        }
    }
}

impl<'a> VisitJs<'a> for Types<'_, 'a, '_> {
    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        self.note_bound(statements);
        for statement in statements {
            self.statement(statement, true);
        }
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        self.statement(statement, false);
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        let leftmost = if self.in_list { Leftmost::Listed } else { Leftmost::Statement };
        self.enter(&statement.expression, leftmost);
        let value = without_types(&statement.expression);
        if value.is_string_literal() && value.span() != statement.expression.span() {
            // Without its type it would be a directive.
            self.blanks.insert(statement.span.start as usize, "void ");
        }
        walk_js::walk_expression_statement(self, statement);
    }

    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        if let Some(argument) = &statement.argument {
            self.enter(argument, Leftmost::Restricted);
        }
        walk_js::walk_return_statement(self, statement);
    }

    fn visit_throw_statement(&mut self, statement: &ThrowStatement<'a>) {
        self.enter(&statement.argument, Leftmost::Restricted);
        walk_js::walk_throw_statement(self, statement);
    }

    fn visit_yield_expression(&mut self, expression: &YieldExpression<'a>) {
        if let Some(argument) = &expression.argument
            && !expression.delegate
        {
            self.enter(argument, Leftmost::Restricted);
        }
        walk_js::walk_yield_expression(self, expression);
    }

    fn visit_export_default_declaration(&mut self, export: &ExportDefaultDeclaration<'a>) {
        if let Some(expression) = export.declaration.as_expression() {
            self.enter(expression, Leftmost::Default);
        }
        walk_js::walk_export_default_declaration(self, export);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.for_of_target(&statement.left);
        self.visit_expression(&statement.right);
        self.visit_statement(&statement.body);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        // Only a type keeps the operands of the inner operator together.
        let bracketed = without_types(&binary.left).span() != binary.left.span()
            && match without_types(&binary.left) {
                Expression::BinaryExpression(inner) => {
                    binary.operator.precedence() > inner.operator.precedence()
                        || binary.operator == BinaryOperator::Exponential
                }
                Expression::PrivateInExpression(_) => {
                    binary.operator.precedence() > Precedence::Compare
                }
                Expression::UnaryExpression(_) | Expression::AwaitExpression(_) => {
                    binary.operator == BinaryOperator::Exponential
                }
                _ => false,
            };
        let left = binary.left.span();
        if bracketed {
            // At the start of a statement it must not continue the one before.
            let starts = self.leftmost == (left.start, Leftmost::Listed);
            self.blanks.insert(left.start as usize, if starts { ";(" } else { "(" });
        }
        self.visit_expression(&binary.left);
        if bracketed {
            self.blanks.insert(left.end as usize, ")");
        }
        self.visit_expression(&binary.right);
    }

    fn visit_ts_as_expression(&mut self, expression: &TSAsExpression<'a>) {
        walk_js::walk_ts_as_expression(self, expression);
        self.blanks.erase(between(expression.expression.span().end, expression.span.end));
    }

    fn visit_ts_satisfies_expression(&mut self, expression: &TSSatisfiesExpression<'a>) {
        walk_js::walk_ts_satisfies_expression(self, expression);
        self.blanks.erase(between(expression.expression.span().end, expression.span.end));
    }

    fn visit_ts_non_null_expression(&mut self, expression: &TSNonNullExpression<'a>) {
        walk_js::walk_ts_non_null_expression(self, expression);
        self.blanks.erase(between(expression.expression.span().end, expression.span.end));
    }

    fn visit_ts_instantiation_expression(&mut self, expression: &TSInstantiationExpression<'a>) {
        walk_js::walk_ts_instantiation_expression(self, expression);
        self.erase(expression.type_arguments.span);
    }

    fn visit_ts_type_assertion(&mut self, assertion: &TSTypeAssertion<'a>) {
        let types = between(assertion.span.start, assertion.expression.span().start);
        self.blanks.erase(types.clone());
        let (start, leftmost) = self.leftmost;
        let mut bracketed = false;
        if start == assertion.span.start {
            self.enter(&assertion.expression, leftmost);
            let word = self.blanks.word(types.end);
            let declares = matches!(word, "function" | "class" | "async");
            let next = self.blanks.byte(types.end);
            bracketed = match leftmost {
                Leftmost::Listed | Leftmost::Statement => declares || next == Some(b'{'),
                Leftmost::Default => declares,
                Leftmost::Body => next == Some(b'{'),
                Leftmost::Restricted => self.blanks.breaks_line(types.clone()),
            };
        }
        if bracketed {
            self.blanks.put_first(types, b'(');
        }
        walk_js::walk_ts_type_assertion(self, assertion);
        if bracketed {
            self.blanks.insert(assertion.span.end as usize, ")");
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(arguments) = &call.type_arguments {
            self.erase(arguments.span);
        }
        walk_js::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        if let Some(arguments) = &new.type_arguments {
            self.erase(arguments.span);
        }
        walk_js::walk_new_expression(self, new);
    }

    fn visit_tagged_template_expression(&mut self, tagged: &TaggedTemplateExpression<'a>) {
        if let Some(arguments) = &tagged.type_arguments {
            self.erase(arguments.span);
        }
        walk_js::walk_tagged_template_expression(self, tagged);
    }

    fn visit_variable_declaration(&mut self, variables: &VariableDeclaration<'a>) {
        for declarator in &variables.declarations {
            self.visit_variable_declarator(declarator);
            self.note_constant(variables.kind, declarator);
        }
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        self.declared_types(declarator);
        walk_js::walk_variable_declarator(self, declarator);
    }

    fn visit_catch_parameter(&mut self, parameter: &CatchParameter<'a>) {
        let end = parameter.pattern.span().end as usize;
        self.annotation(end, false, parameter.type_annotation.as_deref());
        walk_js::walk_catch_parameter(self, parameter);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if is_property(parameter) {
            self.blanks.erase(between(parameter.span.start, parameter.pattern.span().start));
        }
        let end = parameter.pattern.span().end as usize;
        self.annotation(end, parameter.optional, parameter.type_annotation.as_deref());
        walk_js::walk_formal_parameter(self, parameter);
    }

    fn visit_formal_parameter_rest(&mut self, parameter: &FormalParameterRest<'a>) {
        let end = parameter.rest.span.end as usize;
        self.annotation(end, false, parameter.type_annotation.as_deref());
        walk_js::walk_formal_parameter_rest(self, parameter);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if let Some(parameters) = &function.type_parameters {
            self.erase(parameters.span);
        }
        if let Some(this) = &function.this_param {
            self.blanks.erase_element(place(this.span));
        }
        if let Some(annotation) = &function.return_type {
            self.erase(annotation.span);
        }
        walk_js::walk_function(self, function, flags);
    }

    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        unicode_sets::replace_one(literal, &mut self.blanks);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        let parameters = place(arrow.params.span);
        arrows::bracket_one(arrow, &mut self.blanks);
        if let Some(types) = &arrow.type_parameters {
            // No line may end before the parenthesis: after `async` or `return` it would end there.
            self.erase(types.span);
            let start = types.span.start as usize;
            if self.blanks.breaks_line(start..parameters.start) {
                self.blanks.move_parenthesis(parameters.start, start);
            }
        }
        if let Some(annotation) = &arrow.return_type {
            // No line may end between the parenthesis and the arrow.
            self.erase(annotation.span);
            let end = annotation.span.end as usize;
            if self.blanks.breaks_line(parameters.end..end) {
                self.blanks.move_parenthesis(parameters.end - 1, end - 1);
            }
        }
        if let Some(body) = arrow.body.as_expression() {
            self.enter(body, Leftmost::Body);
        }
        walk_js::walk_arrow_function_expression(self, arrow);
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.class_head(class);
        self.parameter_properties(class);
        walk_js::walk_class(self, class);
    }

    fn visit_class_element(&mut self, element: &ClassElement<'a>) {
        let erased = match element {
            ClassElement::MethodDefinition(method) => {
                method.value.body.is_none()
                    || method.r#type == MethodDefinitionType::TSAbstractMethodDefinition
            }
            ClassElement::PropertyDefinition(property) => {
                property.declare
                    || property.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::AccessorProperty(_) | ClassElement::StaticBlock(_) => false,
        };
        if erased {
            self.erase_element(element.span());
        } else {
            walk_js::walk_class_element(self, element);
        }
    }

    fn visit_method_definition(&mut self, method: &MethodDefinition<'a>) {
        self.modifiers(method.span, method.key.span());
        if method.optional {
            self.annotation(self.key_end(&method.key, method.computed), true, None);
        }
        walk_js::walk_method_definition(self, method);
    }

    fn visit_property_definition(&mut self, property: &PropertyDefinition<'a>) {
        self.modifiers(property.span, property.key.span());
        let end = self.key_end(&property.key, property.computed);
        let marked = property.optional || property.definite;
        self.annotation(end, marked, property.type_annotation.as_deref());
        walk_js::walk_property_definition(self, property);
        // The engine takes such a field for a modifier where no semicolon ends it.
        let key = property.key.span();
        if key.end == property.span.end
            && matches!(self.blanks.word(key.start as usize), "get" | "set" | "static")
        {
            self.blanks.insert(key.end as usize, ";");
        }
        self.blanks.end_statement(property.span.end as usize);
    }

    fn visit_identifier_reference(&mut self, reference: &IdentifierReference<'a>) {
        self.qualify(reference, false);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        match &property.value {
            Expression::Identifier(reference) if property.shorthand => {
                self.qualify(reference, true);
            }
            _ => walk_js::walk_object_property(self, property),
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        property: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.qualify(&property.binding, true);
        if let Some(init) = &property.init {
            self.visit_expression(init);
        }
    }
}

/// The expression within assertions and marks, though not within parentheses.
fn without_types<'e, 'a>(mut expression: &'e Expression<'a>) -> &'e Expression<'a> {
    loop {
        expression = match expression {
            Expression::TSAsExpression(outer) => &outer.expression,
            Expression::TSSatisfiesExpression(outer) => &outer.expression,
            Expression::TSNonNullExpression(outer) => &outer.expression,
            Expression::TSTypeAssertion(outer) => &outer.expression,
            _ => return expression,
        };
    }
}

#[cfg(test)]
mod tests;
