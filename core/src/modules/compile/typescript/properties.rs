//! Parameters of a constructor that are properties.
//!
//! In: a class. Out: edits that declare a field for each such parameter, first of all fields, and assign it: behind the
//! call of `super`, or at the start of the constructor.

use oxc_ast::ast::{
    BindingPattern, Class, ClassElement, Expression, FormalParameter, MethodDefinitionKind,
    Statement,
};

use super::{super::text::blanks::place, types::Types};

impl Types<'_, '_, '_> {
    /// Declares the fields that the parameters of a constructor are, and assigns them.
    pub(in super::super) fn parameter_properties(&mut self, class: &Class<'_>) {
        let constructor = class.body.body.iter().find_map(|element| match element {
            ClassElement::MethodDefinition(method)
                if method.kind == MethodDefinitionKind::Constructor
                    && method.value.body.is_some() =>
            {
                Some(&method.value)
            }
            _ => None,
        });
        let Some((function, body)) = constructor.and_then(|f| Some((f, f.body.as_ref()?))) else {
            return;
        };
        let (mut fields, mut assignments) = (String::new(), String::from(";"));
        for parameter in function.params.items.iter().filter(|parameter| is_property(parameter)) {
            if let BindingPattern::BindingIdentifier(id) = &parameter.pattern {
                let name = self.blanks.source(place(id.span));
                fields.push_str(&format!("{name};"));
                assignments.push_str(&format!("this.{name} = {name};"));
            }
        }
        if fields.is_empty() {
            return;
        }
        self.blanks.insert(class.body.span.start as usize + 1, &fields);
        let after = super_call(&body.statements)
            .or(body.directives.last().map(|directive| directive.span.end))
            .unwrap_or(body.span.start + 1);
        self.blanks.insert(after as usize, &assignments);
    }
}

/// Whether a parameter is a property, too.
pub(in super::super) fn is_property(parameter: &FormalParameter<'_>) -> bool {
    parameter.accessibility.is_some() || parameter.readonly || parameter.r#override
}

/// The end of the statement that calls `super`, on its own or at the start of a `try`.
fn super_call(statements: &[Statement<'_>]) -> Option<u32> {
    statements.iter().find_map(|statement| match statement {
        Statement::ExpressionStatement(call) => {
            let mut expression = &call.expression;
            while let Expression::ParenthesizedExpression(inner) = expression {
                expression = &inner.expression;
            }
            match expression {
                Expression::CallExpression(inner) if inner.callee.is_super() => Some(call.span.end),
                _ => None,
            }
        }
        Statement::TryStatement(statement) => super_call(&statement.block.body),
        _ => None,
    })
}
