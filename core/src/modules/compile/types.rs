//! Types overwritten in place.
//!
//! In: a TypeScript tree. Out: its text with blanks for types, or nothing where the text has to be printed anew:
//! something in it produces code (an enum, a namespace, a parameter property, an alias), or blanks would change its
//! meaning. One walk, which enters no type. The statements that import and export names are left to `erase`.

use std::ops::Range;

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    AccessorProperty, ArrowFunctionExpression, BinaryExpression, BinaryOperator, CallExpression,
    CatchParameter, Class, ClassElement, Decorator, ExportDefaultDeclaration, Expression,
    ExpressionStatement, ForOfStatement, FormalParameter, FormalParameterRest, Function,
    MethodDefinition, MethodDefinitionType, NewExpression, Program, PropertyDefinition,
    PropertyDefinitionType, PropertyKey, ReturnStatement, Statement, TSAsExpression,
    TSInstantiationExpression, TSNonNullExpression, TSSatisfiesExpression, TSTypeAnnotation,
    TSTypeAssertion, TaggedTemplateExpression, ThrowStatement, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};
use oxc_syntax::{
    precedence::{GetPrecedence, Precedence},
    scope::ScopeFlags,
};

use super::{
    blanks::{Blanks, place},
    fate::{self, Fate},
};

/// Erases the types of `program`. None if it has to be printed.
pub(super) fn erase<'t>(program: &Program<'_>, blanks: Blanks<'t>) -> Option<Blanks<'t>> {
    let mut types = Types { blanks, leftmost: (u32::MAX, Leftmost::Statement), printed: false };
    types.visit_program(program);
    (!types.printed).then_some(types.blanks)
}

/// The place of the expression whose first token may be erased.
#[derive(Clone, Copy)]
enum Leftmost {
    /// A statement.
    Statement,
    /// The value of `export default`.
    Default,
    /// The body of an arrow function.
    Body,
    /// After a keyword that ends its statement at the end of a line.
    Restricted,
}

struct Types<'t> {
    blanks: Blanks<'t>,
    /// The start of the last expression that was entered at such a place.
    leftmost: (u32, Leftmost),
    printed: bool,
}

fn between(from: u32, to: u32) -> Range<usize> {
    from as usize..to as usize
}

impl Types<'_> {
    fn erase(&mut self, span: Span) {
        self.blanks.erase(place(span));
    }

    fn enter(&mut self, expression: &Expression<'_>, leftmost: Leftmost) {
        self.leftmost = (expression.span().start, leftmost);
    }

    fn statement(&mut self, statement: &Statement<'_>, in_list: bool) {
        match fate::of_statement(statement) {
            _ if self.printed => return,
            Fate::Printed => {
                self.printed = true;
                return;
            }
            Fate::Erased => return self.blanks.erase_statement(place(statement.span()), in_list),
            Fate::Runs => {}
        }
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
                // Only decorators precede these words, and there are none.
                _ => return self.printed = true,
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

impl<'a> VisitJs<'a> for Types<'_> {
    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            self.statement(statement, true);
        }
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        self.statement(statement, false);
    }

    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        self.enter(&statement.expression, Leftmost::Statement);
        // Without its type it would be a directive.
        let value = without_types(&statement.expression);
        self.printed |=
            value.is_string_literal() && value.span().end != statement.expression.span().end;
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
        // `for (async of` is no loop.
        let left = statement.left.span();
        self.printed |= self.blanks.word(left.start as usize) == "async" && left.size() > 5;
        walk_js::walk_for_of_statement(self, statement);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        // Parentheses alone would keep the operands of the inner operator together.
        self.printed |= without_types(&binary.left).span() != binary.left.span()
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
        walk_js::walk_binary_expression(self, binary);
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
        if start == assertion.span.start {
            self.enter(&assertion.expression, leftmost);
            let word = self.blanks.word(types.end);
            let declares = matches!(word, "function" | "class" | "async");
            let next = self.blanks.byte(types.end);
            self.printed |= match leftmost {
                Leftmost::Statement => declares || matches!(next, Some(b'{' | b'"' | b'\'')),
                Leftmost::Default => declares,
                Leftmost::Body => next == Some(b'{'),
                Leftmost::Restricted => self.blanks.breaks_line(types),
            };
        }
        walk_js::walk_ts_type_assertion(self, assertion);
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

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let end = declarator.id.span().end as usize;
        self.annotation(end, declarator.definite, declarator.type_annotation.as_deref());
        walk_js::walk_variable_declarator(self, declarator);
    }

    fn visit_catch_parameter(&mut self, parameter: &CatchParameter<'a>) {
        let end = parameter.pattern.span().end as usize;
        self.annotation(end, false, parameter.type_annotation.as_deref());
        walk_js::walk_catch_parameter(self, parameter);
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        let property =
            parameter.accessibility.is_some() || parameter.readonly || parameter.r#override;
        self.printed |= property;
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

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        let parameters = place(arrow.params.span);
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
        // The engine takes such a field for a modifier where no semicolon ends it.
        let (key, end) = (property.key.span(), property.span.end);
        self.printed |= key.end == end
            && matches!(self.blanks.word(key.start as usize), "get" | "set" | "static");
        self.modifiers(property.span, property.key.span());
        let end = self.key_end(&property.key, property.computed);
        let marked = property.optional || property.definite;
        self.annotation(end, marked, property.type_annotation.as_deref());
        walk_js::walk_property_definition(self, property);
        self.blanks.end_statement(property.span.end as usize);
    }

    fn visit_accessor_property(&mut self, _: &AccessorProperty<'a>) {
        self.printed = true;
    }

    fn visit_decorator(&mut self, _: &Decorator<'a>) {
        self.printed = true;
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
