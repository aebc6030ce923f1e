//! The walk over a tree, which offers each expression of the failure's kind as a candidate.

use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, AssignmentTarget,
    AssignmentTargetPropertyIdentifier, AwaitExpression, BinaryExpression, BindingIdentifier,
    CallExpression, CatchParameter, Class, ComputedMemberExpression, Declaration, Expression,
    ForOfStatement, ForStatementLeft, FormalParameters, Function, IdentifierReference,
    ImportDeclaration, ImportDeclarationSpecifier, ImportExpression, NewExpression,
    PropertyDefinition, SimpleAssignmentTarget, SpreadElement, Statement, StaticBlock,
    StaticMemberExpression, TSEnumDeclaration, TSGlobalDeclaration, TSNamespaceDeclaration,
    TaggedTemplateExpression, TemplateLiteral, ThisExpression, UnaryExpression, UpdateExpression,
    VariableDeclaration, VariableDeclarator, YieldExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};
use oxc_syntax::{
    operator::{AssignmentOperator, UnaryOperator},
    scope::ScopeFlags,
};

use super::{
    super::{
        operands::{Operand, key_of, name_in},
        question::{Act, Declared, Failure},
    },
    Search,
    patterns::Pattern,
};
use crate::modules::compile::explain::call_site::{last_name, property_place};

impl<'a> VisitJs<'a> for Search<'_> {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if function.body.is_none() {
            return self.ambient(|search| walk_js::walk_function(search, function, flags));
        }
        let outer = std::mem::replace(&mut self.asynchronous, function.r#async);
        self.within(function.span, |search| walk_js::walk_function(search, function, flags));
        self.asynchronous = outer;
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.within(function.span, |search| {
            walk_js::walk_arrow_function_expression(search, function);
        });
    }

    fn visit_static_block(&mut self, block: &StaticBlock<'a>) {
        self.within(block.span, |search| walk_js::walk_static_block(search, block));
    }

    fn visit_property_definition(&mut self, field: &PropertyDefinition<'a>) {
        self.visit_property_key(&field.key);
        if let Some(value) = &field.value {
            self.within(field.span, |search| search.visit_expression(value));
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(
            self.failure,
            Failure::Call | Failure::ClassCall | Failure::Builtin(_) | Failure::Untold
        ) {
            self.call(call.span, &call.callee, &call.arguments, false);
        }
        walk_js::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        if matches!(self.failure, Failure::Call | Failure::Construct | Failure::Builtin(_)) {
            self.call(new.span, &new.callee, &new.arguments, true);
        }
        walk_js::walk_new_expression(self, new);
    }

    fn visit_tagged_template_expression(&mut self, tagged: &TaggedTemplateExpression<'a>) {
        if matches!(self.failure, Failure::Call | Failure::ClassCall) {
            self.call(tagged.span, &tagged.tag, &[], false);
        }
        walk_js::walk_tagged_template_expression(self, tagged);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        let key = Some(member.property.name.to_string());
        // A property that is only written is the assignment's.
        self.read(member.optional, member.property.span.start, member.span, &member.object, key);
        walk_js::walk_static_member_expression(self, member);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        let key = key_of(&member.expression);
        self.read(
            member.optional,
            member.expression.span().start,
            member.span,
            &member.object,
            key,
        );
        walk_js::walk_computed_member_expression(self, member);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        let source = |search: &Self| Some(search.operand(&assignment.right));
        let place = Some(assignment.right.span().start);
        self.pattern(Pattern::Target(&assignment.left), source, place, assignment.span);
        if let Some(target) = assignment.left.as_simple_assignment_target() {
            if assignment.operator != AssignmentOperator::Assign {
                self.changed(assignment.span, target);
            }
            if let Some(operator) = assignment.operator.to_binary_operator() {
                self.converted(assignment.span, &assignment.right);
                let left =
                    |search: &Self| Operand::of_target(target, search.source, search.scoping);
                self.operation(operator, assignment.span, left, &assignment.right);
            }
        }
        // The target is written after the right side has been evaluated.
        if let AssignmentTarget::AssignmentTargetIdentifier(name) = &assignment.left {
            self.named(name, assignment.span, true);
        }
        if let Some(member) = assignment.left.as_member_expression() {
            self.assigned(assignment.span, member);
            self.written(assignment.span, member);
        }
        walk_js::walk_assignment_expression(self, assignment);
    }

    fn visit_update_expression(&mut self, update: &UpdateExpression<'a>) {
        self.changed(update.span, &update.argument);
        walk_js::walk_update_expression(self, update);
    }

    fn visit_simple_assignment_target(&mut self, target: &SimpleAssignmentTarget<'a>) {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                self.assigned_variable(name);
            }
            target => {
                if let Some(member) = target.as_member_expression() {
                    self.assigned(member.span(), member);
                    self.written(member.span(), member);
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
        if unary.operator.is_arithmetic() || unary.operator.is_bitwise() {
            self.converted(unary.span, &unary.argument);
        }
        walk_js::walk_unary_expression(self, unary);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        self.converted(binary.span, &binary.left);
        self.converted(binary.span, &binary.right);
        let left = |search: &Self| Some(search.operand(&binary.left));
        self.operation(binary.operator, binary.span, left, &binary.right);
        walk_js::walk_binary_expression(self, binary);
    }

    fn visit_await_expression(&mut self, wait: &AwaitExpression<'a>) {
        if *self.failure == Failure::Wait {
            self.add(wait.span.start, wait.span, |_| Some(Act::Wait));
        }
        walk_js::walk_await_expression(self, wait);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        let specifier = match import.source.get_inner_expression() {
            Expression::StringLiteral(text) => Some(text.value.as_str()),
            Expression::TemplateLiteral(text) => text.single_quasi().map(|text| text.as_str()),
            _ => None,
        };
        self.imported(import.span.start, specifier);
        walk_js::walk_import_expression(self, import);
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
            && self.may_iterate(self.asynchronous)
        {
            self.add_unnoted(argument.span().start, yields.span, |search| {
                Some(Act::Iteration { value: Some(search.operand(argument)) })
            });
        }
        walk_js::walk_yield_expression(self, yields);
    }

    fn visit_for_of_statement(&mut self, each: &ForOfStatement<'a>) {
        if self.may_iterate(each.r#await) {
            self.add_unnoted(each.right.span().start, each.right.span(), |search| {
                Some(Act::Iteration { value: Some(search.operand(&each.right)) })
            });
        }
        if each.r#await && *self.failure == Failure::Wait {
            self.add(each.span.start, each.span, |_| Some(Act::Wait));
        }
        let head = Span::new(each.left.span().start, each.right.span().end);
        let element = |search: &Self| {
            let whole = search.operand(&each.right).text;
            Some(Operand::without_value(format!("an element of {whole}")))
        };
        if let ForStatementLeft::VariableDeclaration(declaration) = &each.left {
            for declarator in &declaration.declarations {
                self.pattern(Pattern::Binding(&declarator.id), element, None, head);
            }
        } else if let Some(target) = each.left.as_assignment_target() {
            self.pattern(Pattern::Target(target), element, None, head);
        }
        walk_js::walk_for_of_statement(self, each);
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let Some(init) = &declarator.init {
            let source = |search: &Self| Some(search.operand(init));
            let (pattern, place) = (Pattern::Binding(&declarator.id), Some(init.span().start));
            self.pattern(pattern, source, place, declarator.span);
        }
        walk_js::walk_variable_declarator(self, declarator);
    }

    fn visit_formal_parameters(&mut self, parameters: &FormalParameters<'a>) {
        let (_, start) = self.functions.last().copied().unwrap_or_default();
        let head = Span::new(start, parameters.span.end);
        for (index, parameter) in parameters.items.iter().enumerate() {
            let default = parameter.initializer.as_ref();
            let argument = |search: &Self| {
                let argument = Operand::argument(index);
                Some(match default {
                    Some(default) => {
                        let literal = search.operand(default).literal;
                        Operand { literal, ..argument.defaulted() }
                    }
                    None => argument,
                })
            };
            self.pattern(Pattern::Binding(&parameter.pattern), argument, None, head);
        }
        walk_js::walk_formal_parameters(self, parameters);
    }

    fn visit_catch_parameter(&mut self, parameter: &CatchParameter<'a>) {
        self.pattern(Pattern::Binding(&parameter.pattern), |_| None, None, parameter.span);
        walk_js::walk_catch_parameter(self, parameter);
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.named(name, name.span, false);
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        if matches!(self.failure, Failure::Name(wanted) if *wanted == name.name.as_str()) {
            if self.ambient {
                self.declared_for_types.get_or_insert(Declared::Alone);
                return;
            }
            let [first, later] = &mut self.declared;
            *first = first.or(Some(name.span.start));
            *later = later.or((name.span.start > self.places.before).then_some(name.span.start));
        }
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        let parent = class.heritage.as_ref().map(|heritage| &heritage.expression);
        if let Some(parent) = parent.filter(|_| *self.failure == Failure::Extends) {
            self.add(last_name(parent.get_inner_expression()), class.span, |search| {
                Some(Act::Call {
                    callee: search.operand(parent),
                    arguments: [None, None],
                    constructs: true,
                })
            });
        }
        if class.declare {
            return self.ambient(|search| walk_js::walk_class(search, class));
        }
        walk_js::walk_class(self, class);
    }

    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        if declaration.declare {
            return self.ambient(|search| walk_js::walk_variable_declaration(search, declaration));
        }
        walk_js::walk_variable_declaration(self, declaration);
    }

    fn visit_ts_enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>) {
        if declaration.declare {
            return self.ambient(|search| walk_js::walk_ts_enum_declaration(search, declaration));
        }
        walk_js::walk_ts_enum_declaration(self, declaration);
    }

    fn visit_ts_namespace_declaration(&mut self, declaration: &TSNamespaceDeclaration<'a>) {
        if declaration.declare {
            return self.ambient(|search| {
                walk_js::walk_ts_namespace_declaration(search, declaration);
            });
        }
        walk_js::walk_ts_namespace_declaration(self, declaration);
    }

    fn visit_ts_global_declaration(&mut self, declaration: &TSGlobalDeclaration<'a>) {
        self.ambient(|search| walk_js::walk_ts_global_declaration(search, declaration));
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        if import.import_kind.is_type() {
            return self.ambient(|search| walk_js::walk_import_declaration(search, import));
        }
        walk_js::walk_import_declaration(self, import);
    }

    fn visit_import_declaration_specifier(&mut self, import: &ImportDeclarationSpecifier<'a>) {
        if let ImportDeclarationSpecifier::ImportSpecifier(one) = import
            && one.import_kind.is_type()
        {
            return self.ambient(|search| {
                walk_js::walk_import_declaration_specifier(search, import);
            });
        }
        walk_js::walk_import_declaration_specifier(self, import);
    }

    fn visit_this_expression(&mut self, this: &ThisExpression) {
        if matches!(self.failure, Failure::Uninitialized(wanted) if wanted == "this") {
            let act = Act::Name { assigned: false, declared: None, meant: None };
            self.add(this.span.start, this.span, |_| Some(act));
        }
    }

    fn visit_declaration(&mut self, declaration: &Declaration<'a>) {
        if let (Failure::Name(wanted), Some(name)) = (self.failure, declaration.id())
            && declaration.is_type()
            && *wanted == name.name.as_str()
        {
            self.declared_for_types = Some(Declared::Type);
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
            if name.is_some_and(|name| *wanted == name.name.as_str()) {
                self.declared_for_types = Some(Declared::Type);
            }
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
