//! The value of a default export, as far as its source shows it.
//!
//! In: a module from which a name is imported that it does not export. Out: the name of its default export, and the
//! properties of that, if it is an object that is written out. Parses the text once more: for errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ExportDefaultDeclarationKind, Expression, ObjectExpression, ObjectPropertyKind, Program,
    Statement,
};

use super::{
    super::{bounds::stack::with_stack_for, module::CompiledModule},
    again::{self, LONGEST},
};

/// A default export.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DefaultExport {
    /// The name of the function, the class or the variable.
    pub(crate) name: Option<String>,
    /// The properties of an object.
    pub(crate) members: Vec<String>,
}

/// The default export of a module. A long text is not read: code can make the same import fail again and again.
pub(in super::super) fn find(module: &CompiledModule) -> DefaultExport {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return DefaultExport::default();
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        program.body.iter().find_map(|statement| exported(statement, &program))
    });
    // The module was parsed before, so it does not nest too deeply.
    found.unwrap_or_default().unwrap_or_default()
}

fn exported(statement: &Statement<'_>, program: &Program<'_>) -> Option<DefaultExport> {
    let name = match statement {
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.name(),
            ExportDefaultDeclarationKind::ClassDeclaration(class) => class.name(),
            value => match value.as_expression()?.get_inner_expression() {
                Expression::Identifier(variable) => Some(variable.name),
                Expression::ObjectExpression(object) => {
                    return Some(DefaultExport { name: None, members: members(object) });
                }
                _ => None,
            },
        }?
        .to_string(),
        Statement::ExportNamedDeclaration(export) => {
            let mut names = export.specifiers.iter();
            names.find(|name| name.exported.name() == "default")?.local.name().to_string()
        }
        _ => return None,
    };
    let object = program.body.iter().find_map(|statement| constant(statement, &name));
    Some(DefaultExport { members: object.map(members).unwrap_or_default(), name: Some(name) })
}

/// The object that a statement gives to a constant of that name.
fn constant<'p, 'a>(statement: &'p Statement<'a>, name: &str) -> Option<&'p ObjectExpression<'a>> {
    let Statement::VariableDeclaration(variables) = statement else { return None };
    let mut declarators = variables.declarations.iter().filter(|_| variables.kind.is_const());
    let declared =
        declarators.find(|one| one.id.get_identifier_name().is_some_and(|id| id == name));
    match declared?.init.as_ref()?.get_inner_expression() {
        Expression::ObjectExpression(object) => Some(object),
        _ => None,
    }
}

fn members(object: &ObjectExpression<'_>) -> Vec<String> {
    let keys = object.properties.iter().filter_map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
            property.key.static_name()
        }
        _ => None,
    });
    keys.map(|key| key.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::source::Language, modules::compile::compile};

    #[test]
    fn a_long_text_is_not_read() {
        let short = "export default { parse() {} }".to_owned();
        let long = format!("{short}\n{}", "f();\n".repeat(LONGEST / 5));
        for (text, members) in [(short, vec!["parse".to_owned()]), (long, Vec::new())] {
            let module = compile(&text, Language::JavaScript, &[], usize::MAX).expect("a module");
            assert_eq!(find(&module), DefaultExport { name: None, members });
        }
    }
}
