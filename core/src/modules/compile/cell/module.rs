//! The module around a cell.
//!
//! In: the edited statements, and the imports and exports that are no types. Out: the finished edits, the record and the
//! plan. Imports are erased: the plan has them, and the isolate binds them. The first line hands over functions. Exports by
//! name are erased, too: the record keeps their requests, so that linking checks them.

use oxc_ast::ast::{ImportDeclarationSpecifier, Program, Statement};
use oxc_semantic::Scoping;
use oxc_span::GetSpan;

use super::{
    super::{
        failure::Failure,
        module::{Imported, Record},
        text::blanks::{Blanks, place},
    },
    hidden::Hidden,
    plan::{Cell, CellPlan},
};

impl<'a> Cell<'a> {
    pub(in super::super) fn of(text: &str, scoping: &Scoping) -> Self {
        Self::new(Hidden::of(text, scoping))
    }

    /// The same for the body of a function, with those of these names that it refers to and does not declare.
    pub(in super::super) fn into_body(mut self, scoping: &Scoping, names: &[String]) -> Self {
        let free = scoping.root_unresolved_references();
        let is_free = |name: &&String| free.keys().any(|known| known.as_str() == name.as_str());
        self.body = Some(names.iter().filter(is_free).cloned().collect());
        self
    }

    /// Finishes a cell, whose last token ends at `end`.
    pub(in super::super) fn finish(
        mut self,
        program: &Program<'a>,
        end: usize,
        record: &mut Record,
        blanks: &mut Blanks<'_>,
    ) -> Result<CellPlan, Failure> {
        self.imports_of(program, blanks);
        record.exports.clear();
        record.stars.clear();
        if let Some(hashbang) = &program.hashbang {
            blanks.erase(place(hashbang.span));
        }
        let hidden = &self.hidden;
        let (parameter, names) = (hidden.parameter(), hidden.names());
        let (completion, default) = (hidden.completion(), hidden.default());
        let mut opening = format!("export default async({parameter})=>{{");
        if let Some(referred) = self.body.as_ref().filter(|referred| !referred.is_empty()) {
            let referred: Vec<_> = referred.iter().map(|name| format!("\"{name}\"")).collect();
            opening.push_str(&format!("{parameter}[0]=[{}];", referred.join(",")));
        }
        opening.push_str(&format!("let {completion},{default};"));
        let beginning = hidden.function();
        for name in &self.functions {
            opening.push_str(&format!("{names}{name}={beginning}{name};"));
        }
        if let Some(name) = self.default_function {
            opening.push_str(&format!("{default}={beginning}{name};"));
        }
        blanks.prepend(&opening);
        let value = if self.value == super::CellValue::Default { default } else { completion };
        blanks.insert(end, &format!(";{parameter}[1]={value}}}"));
        self.into_plan()
    }

    /// Notes and erases imports, and erases exports by name.
    fn imports_of(&mut self, program: &Program<'a>, blanks: &mut Blanks<'_>) {
        let mut request = 0;
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => {
                    self.imports.push(request);
                    for specifier in import.specifiers.iter().flatten() {
                        let local = specifier.local();
                        let imported = imported(specifier);
                        self.import(local.name.as_str(), local.span.start, request, imported);
                    }
                }
                Statement::ExportFromDeclaration(_)
                | Statement::ExportAllDeclaration(_)
                | Statement::ExportNamedDeclaration(_) => {}
                _ => continue,
            }
            request += usize::from(!matches!(statement, Statement::ExportNamedDeclaration(_)));
            blanks.erase_statement(place(statement.span()), true);
        }
    }
}

fn imported(specifier: &ImportDeclarationSpecifier<'_>) -> Imported {
    match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(named) => {
            Imported::Name(named.imported.name().to_string())
        }
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => {
            Imported::Name("default".to_owned())
        }
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => Imported::Namespace,
    }
}

/// Where the last token of a program ends. Only comments follow.
pub(in super::super) fn end_of(program: &Program<'_>) -> usize {
    let statement = program.body.last().map(|statement| statement.span().end);
    let directive = program.directives.last().map(|directive| directive.span.end);
    statement.or(directive).unwrap_or_default() as usize
}
