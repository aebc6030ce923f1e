//! The statements of a cell that are in no function.
//!
//! In: such a statement, and whether the cell's value can be one that it gives. Out: edits: its declarations become
//! assignments, and the values that may be the last are kept. Expressions are visited for their types alone.

use oxc_ast::ast::{
    BlockStatement, CatchClause, Expression, ForStatementInit, ForStatementLeft, Program,
    ReturnStatement, Statement, TryStatement, VariableDeclaration,
};
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::{
    super::{
        text::blanks::place,
        typescript::{
            fate::{self, Fate},
            types::Types,
        },
    },
    completion::{gives, resets},
    declarations::is_anonymous,
    plan::CellValue,
    variables::Position,
};

/// The surroundings of a statement.
#[derive(Clone, Copy)]
struct Site {
    place: Place,
    /// Whether its value can be that of the cell.
    wanted: bool,
    /// Whether a jump from it can lead to a place where the value counts.
    jumps: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In the list of the cell itself.
    Top,
    /// In another list.
    List,
    /// On its own: a branch, the body of a loop.
    Single,
}

impl<'a> Types<'_, 'a, '_> {
    /// Edits the whole cell.
    pub(in super::super) fn visit_cell(&mut self, program: &Program<'a>) {
        self.note_bound(&program.body);
        let default = program.body.iter().any(|statement| self.is_default(statement));
        let mut runs = program.body.iter().rev().filter(|statement| {
            !matches!(statement, Statement::EmptyStatement(_))
                && fate::of_statement(statement, &self.namespaces) != Fate::Erased
        });
        let last = runs.next();
        let given = program.body.iter().any(gives);
        if !default
            && !given
            && let Some(directive) = program.directives.last()
        {
            // In a cell it is an expression.
            self.keep(directive.expression.span, directive.span, "", |_| ());
        }
        let site = Site { place: Place::Top, wanted: !default, jumps: false };
        self.cell_statements(&program.body, site);
        let expression = match last {
            None => !program.directives.is_empty(),
            Some(last) => matches!(last, Statement::ExpressionStatement(_)),
        };
        if let Some(cell) = &mut self.cell {
            cell.value = match (default, cell.completes) {
                (true, _) => CellValue::Default,
                (false, true) if expression => CellValue::Expression,
                (false, true) => CellValue::Completion,
                (false, false) => CellValue::None,
            };
        }
    }

    fn cell_statements(&mut self, statements: &[Statement<'a>], site: Site) {
        let first = match site {
            Site { wanted: false, .. } => statements.len(),
            Site { jumps: true, .. } => 0,
            // A later statement gives a value in any case, and nothing leaves the list before.
            _ => statements.iter().rposition(gives).unwrap_or_default(),
        };
        for (index, statement) in statements.iter().enumerate() {
            let wanted = index >= first;
            // At the top, before the first value that counts, there is none yet.
            if wanted && resets(statement) && (site.place != Place::Top || index > first) {
                self.reset(statement.span().start as usize, "");
            }
            self.cell_statement(statement, Site { wanted, ..site });
        }
    }

    /// Begins anew, without a value.
    fn reset(&mut self, at: usize, before: &str) {
        if let Some(cell) = &mut self.cell {
            cell.completes = true;
            let text = format!("{before}{}=void 0;", cell.hidden.completion());
            self.blanks.insert(at, &text);
        }
    }

    fn cell_statement(&mut self, statement: &Statement<'a>, site: Site) {
        let (top, in_list) = (site.place == Place::Top, site.place != Place::Single);
        let declares = self.declares();
        let inner = Site { place: Place::List, ..site };
        let single = Site { place: Place::Single, ..site };
        match fate::of_statement(statement, &self.namespaces) {
            Fate::Produces => return self.produce(statement, in_list),
            Fate::Erased => {
                return self.blanks.erase_statement(place(statement.span()), in_list);
            }
            Fate::Runs => {}
        }
        match statement {
            Statement::ExpressionStatement(it) if site.wanted => {
                let before = if is_anonymous(&it.expression) { "0," } else { "" };
                self.keep(it.expression.span(), it.span, before, |types| {
                    types.visit_expression(&it.expression);
                });
            }
            Statement::BlockStatement(block) => self.cell_statements(&block.body, inner),
            Statement::IfStatement(it) => {
                self.visit_expression(&it.test);
                self.cell_statement(&it.consequent, single);
                if let Some(alternate) = &it.alternate {
                    self.cell_statement(alternate, single);
                }
            }
            Statement::LabeledStatement(it) => {
                self.cell_statement(&it.body, Site { jumps: true, ..single });
            }
            Statement::TryStatement(it) => self.cell_try(it, inner),
            Statement::ReturnStatement(it) => self.cell_return(it),
            Statement::SwitchStatement(it) => {
                self.visit_expression(&it.discriminant);
                for case in &it.cases {
                    if let Some(test) = &case.test {
                        self.visit_expression(test);
                    }
                    self.cell_statements(&case.consequent, Site { jumps: true, ..inner });
                }
            }
            Statement::VariableDeclaration(it) if declares && (top || it.kind.is_var()) => {
                self.cell_variables(it, it.span, Position::Statement { in_list });
            }
            _ if top && declares && self.cell_declaration(statement) => {}
            _ => self.cell_loop(statement, inner, in_list),
        }
    }

    /// Whether declarations become the session's.
    pub(super) fn declares(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| !cell.is_body())
    }

    fn cell_loop(&mut self, statement: &Statement<'a>, site: Site, in_list: bool) {
        match statement {
            Statement::ForStatement(it) => {
                match &it.init {
                    Some(ForStatementInit::VariableDeclaration(variables)) => {
                        self.loop_variables(variables, Position::Init);
                    }
                    Some(init) => self.visit_for_statement_init(init),
                    None => {}
                }
                for part in [&it.test, &it.update].into_iter().flatten() {
                    self.visit_expression(part);
                }
                self.body(&it.body, site);
            }
            Statement::ForInStatement(it) => {
                match &it.left {
                    ForStatementLeft::VariableDeclaration(variables) => {
                        self.loop_variables(variables, Position::Target);
                    }
                    left => self.visit_for_statement_left(left),
                }
                self.visit_expression(&it.right);
                self.body(&it.body, site);
            }
            Statement::ForOfStatement(it) => {
                match &it.left {
                    ForStatementLeft::VariableDeclaration(variables) => {
                        self.loop_variables(variables, Position::Target);
                    }
                    left => self.for_of_target(left),
                }
                self.visit_expression(&it.right);
                self.body(&it.body, site);
            }
            Statement::WhileStatement(it) => {
                self.visit_expression(&it.test);
                self.body(&it.body, site);
            }
            Statement::DoWhileStatement(it) => {
                self.body(&it.body, site);
                self.visit_expression(&it.test);
            }
            other => self.statement(other, in_list),
        }
    }

    /// The variables of a loop. Only those of `var` are the cell's.
    fn loop_variables(&mut self, variables: &VariableDeclaration<'a>, position: Position) {
        if variables.kind.is_var() && self.declares() {
            self.cell_variables(variables, variables.span, position);
        } else {
            self.visit_variable_declaration(variables);
        }
    }

    /// The body of a loop. Each round begins where the one before ended.
    fn body(&mut self, body: &Statement<'a>, site: Site) {
        let resets = site.wanted && resets(body);
        if resets {
            self.reset(body.span().start as usize, "{");
        }
        self.cell_statement(body, Site { place: Place::Single, jumps: true, ..site });
        if resets {
            self.blanks.insert(body.span().end as usize, "}");
        }
    }

    fn cell_try(&mut self, it: &TryStatement<'a>, site: Site) {
        self.cell_statements(&it.block.body, site);
        if let Some(handler) = &it.handler {
            self.cell_catch(handler, site);
        }
        if let Some(finalizer) = &it.finalizer {
            self.cell_finally(finalizer, site);
        }
    }

    /// `return a` becomes `return void(p[2]=(a))`: the engine would call the `then` of a promise that it returns.
    fn cell_return(&mut self, it: &ReturnStatement<'a>) {
        const KEYWORD: usize = "return".len();
        let Some(cell) = &self.cell else { return };
        let opening = format!(" void({}[2]=", cell.hidden.parameter());
        match &it.argument {
            Some(value) => {
                let Span { start, end, .. } = value.span();
                self.blanks.insert(start as usize, &format!("{opening}("));
                self.visit_expression(value);
                self.blanks.insert(end as usize, "))");
            }
            None => {
                let end = it.span.start as usize + KEYWORD;
                self.blanks.insert(end, &format!("{opening}void 0)"));
            }
        }
        self.end(it.span);
    }

    fn cell_catch(&mut self, handler: &CatchClause<'a>, site: Site) {
        let parameter = handler.param.as_ref();
        if let Some(parameter) = parameter {
            self.visit_catch_parameter(parameter);
        }
        let name = parameter.and_then(|parameter| parameter.pattern.get_identifier_name());
        let name = name.map(|name| name.as_str());
        self.note_caught(name, true);
        if site.wanted {
            // A value that the block gave before it threw does not count.
            self.reset(handler.body.span.start as usize + 1, "");
        }
        self.cell_statements(&handler.body.body, site);
        self.note_caught(name, false);
    }

    fn note_caught(&mut self, name: Option<&'a str>, enters: bool) {
        if let (Some(cell), Some(name)) = (&mut self.cell, name) {
            let count = cell.caught.entry(name).or_default();
            *count = if enters { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// A `finally` gives no value, unless it is left by a jump.
    fn cell_finally(&mut self, finalizer: &BlockStatement<'a>, site: Site) {
        let names = self.cell.as_ref().map(|it| (it.hidden.completion(), it.hidden.saved()));
        let Some((value, saved)) = names.filter(|_| site.wanted && site.jumps) else {
            return self.cell_statements(&finalizer.body, Site { wanted: false, ..site });
        };
        let Span { start, end, .. } = finalizer.span;
        self.blanks.insert(start as usize + 1, &format!("let {saved}={value};"));
        self.reset(start as usize + 1, "");
        self.cell_statements(&finalizer.body, site);
        self.blanks.insert(end as usize - 1, &format!(";{value}={saved};"));
    }

    /// Keeps the value of an expression.
    fn keep(
        &mut self,
        expression: Span,
        statement: Span,
        before: &str,
        visit: impl FnOnce(&mut Self),
    ) {
        if let Some(cell) = &mut self.cell {
            cell.completes = true;
            let opening = format!("{}=({before}", cell.hidden.completion());
            self.blanks.insert(expression.start as usize, &opening);
            visit(self);
            self.blanks.insert(expression.end as usize, ")");
            self.end(statement);
        }
    }

    /// Visits an expression that gives its name to a function or a class without one.
    pub(super) fn named_value(&mut self, name: &str, value: &Expression<'a>) {
        let anonymous = is_anonymous(value);
        let Span { start, end, .. } = value.span();
        if anonymous {
            self.blanks.insert(start as usize, &format!("{{[\"{name}\"]:"));
        }
        self.visit_expression(value);
        if anonymous {
            self.blanks.insert(end as usize, &format!("}}[\"{name}\"]"));
        }
    }
}
