//! The size of a program, and the work and memory that its analysis may take.
//!
//! In: a syntax tree. Out: the numbers of nodes, scopes, symbols and references, which the analysis reserves memory for;
//! a bound of its memory, with the errors that it may find; and a bound of its steps beyond a fixed number for each node.
//! It looks up a name in each scope around, and again for each parameter around. It notes a `var` in each block up to its
//! function. It looks for a private name in each member of a class, and it compares an unknown name with all others. So
//! for a hostile source time or memory would grow with the square or the cube of its length.

use std::{cell::Cell, collections::HashSet};

use oxc_ast::{
    AstKind,
    ast::{
        BindingIdentifier, BindingPattern, CatchParameter, ClassElement, Declaration,
        ExportDefaultDeclarationKind, ExportNamedDeclaration, FormalParameters,
        IdentifierReference, LabelIdentifier, ModuleExportName, PrivateIdentifier, Program,
        PropertyKey, Statement, TSEnumMemberName, VariableDeclaration,
    },
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Stats;
use oxc_span::{GetSpan, Span};
use oxc_syntax::{
    operator::{BinaryOperator, UnaryOperator},
    scope::{ScopeFlags, ScopeId},
};
use rustc_hash::FxHashSet;

use super::{super::failure::Failure, names::hash};

/// The steps of work that any program may take, and more for each byte. A million steps take 2 to 5 ms. Of 1,320 files of
/// npm packages none takes more than 1.2 million, or 3 for each byte.
const MAX_WORK: u64 = 1 << 26;
const WORK_PER_BYTE: u64 = 32;

/// The steps of noting a `var` in a block.
const WORK_PER_HOIST: u64 = 64;

/// The memory of the analysis. Entries of hash tables and lists that have just grown were measured.
const BYTES_PER_SCOPE: u64 = 200;
const BYTES_PER_SYMBOL: u64 = 200;
const BYTES_PER_REFERENCE: u64 = 72;
const BYTES_PER_ELEMENT: u64 = 128;
const BYTES_PER_HOIST: u64 = 116;
/// Text that is inserted before a name in a namespace, beside the name itself.
const BYTES_PER_QUALIFIER: u64 = 96;
/// An early error, of which each name, and each construct that is not allowed everywhere, may be one.
const BYTES_PER_ERROR: u64 = 360;

/// Makes numbers of scopes differ in most bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The shortest text whose names are compared, as it may have many errors.
const LONG: usize = 4 << 10;

/// The size of a program.
#[derive(Default)]
pub(in super::super) struct Census<'a> {
    pub(in super::super) stats: Stats,
    work: u64,
    hoists: u64,
    /// The bytes of what may be inserted into namespaces.
    inserted: u64,
    /// Members of classes.
    elements: u64,
    /// Names that are declared again, and constructs that may be errors.
    suspects: u64,
    /// The nodes around the place that is visited.
    nodes: u64,
    scopes: Vec<Scope>,
    /// The hashes of the names in each scope, unless the text is short.
    names: Option<FxHashSet<u64>>,
    /// The lists of parameters around.
    parameters: u64,
    /// Whether the last variable is a `var`.
    hoisted: bool,
    labels: Vec<&'a str>,
    classes: Vec<Class<'a>>,
    /// The private names so far.
    private_names: u64,
    /// Blocks of namespaces around, and the names that these export by name.
    namespaces: u64,
    inner_exports: u64,
    /// The names that the module exports by name.
    exports: Vec<&'a str>,
    /// The first import or export that is not at the top, and its keyword.
    misplaced: Option<(&'static str, u32)>,
    text: &'a str,
    /// Functions around that have `arguments` of their own.
    functions: u64,
    /// Whether the text means something else in the function of a script, or nothing.
    is_of_module: bool,
}

/// A scope around the place that is visited.
#[derive(Clone, Copy, Default)]
struct Scope {
    number: u32,
    /// The scope of the variables that are declared with `var`.
    function: u32,
    /// The number of scopes from this one up to that.
    blocks: u64,
}

/// A class around the place that is visited.
struct Class<'a> {
    declared: HashSet<&'a str>,
    elements: u64,
    /// The private names before it.
    private_names: u64,
}

impl<'a> Census<'a> {
    pub(in super::super) fn of(program: &Program<'a>) -> Self {
        let names = (program.source_text.len() >= LONG).then(FxHashSet::default);
        let mut census = Self { names, text: program.source_text, ..Self::default() };
        census.visit_program(program);
        let nodes = u64::from(census.stats.nodes);
        census.spend(census.inner_exports.saturating_mul(nodes));
        if !program.source_type.is_typescript() {
            census.unknown_exports(program);
        }
        census
    }

    /// Whether the text means something else in the function of a script, or nothing: it has `import.meta`, `arguments` that
    /// belong to no function of its own, or `<!--`, which begins a comment there.
    pub(in super::super) fn is_of_module(&self) -> bool {
        self.is_of_module
    }

    /// Whether the operator of a comparison begins with `<!--`.
    fn begins_comment(&self, right: usize) -> bool {
        let operator = right.checked_sub(1);
        operator.and_then(|at| self.text.get(at..)).is_some_and(|rest| rest.starts_with("<!--"))
    }

    /// Whether the analysis may take too long for a text of so many bytes.
    pub(in super::super) fn is_too_long(&self, bytes: usize) -> bool {
        self.work > MAX_WORK.saturating_add(WORK_PER_BYTE.saturating_mul(bytes as u64))
    }

    /// An upper bound of the memory in bytes that the analysis takes.
    pub(in super::super) fn bytes(&self) -> usize {
        let Stats { scopes, symbols, references, .. } = self.stats;
        let bytes = [
            (BYTES_PER_SCOPE, scopes.into()),
            (BYTES_PER_SYMBOL, symbols.into()),
            (BYTES_PER_REFERENCE, references.into()),
            (BYTES_PER_ELEMENT, self.elements),
            (BYTES_PER_HOIST, self.hoists),
            (1, self.inserted),
            (BYTES_PER_ERROR, self.suspects),
        ]
        .into_iter()
        .fold(0_u64, |sum, (each, count)| sum.saturating_add(each.saturating_mul(count)));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Notes a name that may become a property of a namespace.
    fn qualify(&mut self, name: &str) {
        if self.namespaces > 0 {
            let bytes = BYTES_PER_QUALIFIER + 2 * name.len() as u64;
            self.inserted = self.inserted.saturating_add(bytes);
        }
    }

    /// Notes an import or an export that is in a function or in a block. The program and the statement itself are nodes.
    fn place(&mut self, keyword: &'static str, span: Span) {
        if self.nodes > 2 && self.namespaces == 0 && self.misplaced.is_none() {
            self.misplaced = Some((keyword, span.start));
        }
    }

    /// The first import or export that is not at the top: TypeScript leaves this check to its type checker. The parser has
    /// the same words.
    pub(in super::super) fn misplaced(&self) -> Option<Failure> {
        let (keyword, at) = self.misplaced?;
        let message = format!(
            "'{keyword} statement' declaration can only be used at the top level of a module"
        );
        Some(Failure::at(message, at as usize))
    }

    fn scope(&self) -> Scope {
        self.scopes.last().copied().unwrap_or_default()
    }

    /// Notes a name in a scope. If it is there already, that may be an error.
    fn declare(&mut self, name: &str, scope: u32) {
        if let Some(names) = &mut self.names
            && !names.insert(hash(name).wrapping_add(u64::from(scope).wrapping_mul(SPREAD)))
        {
            self.suspects += 1;
        }
    }

    fn spend(&mut self, steps: u64) {
        self.work = self.work.saturating_add(steps);
    }

    fn depth(&self) -> u64 {
        self.scopes.len() as u64
    }

    /// Compares a name that is not known with others.
    fn suggest(&mut self, name: &str, others: u64) {
        let length = name.len() as u64 + 1;
        self.spend((2 * length * length).saturating_mul(others));
    }

    /// An exported name that the module does not declare is compared with all that it declares.
    fn unknown_exports(&mut self, program: &Program<'a>) {
        let exports = std::mem::take(&mut self.exports);
        if exports.is_empty() {
            return;
        }
        let declared: HashSet<_> = program.body.iter().flat_map(top_names).collect();
        for name in exports.into_iter().filter(|name| !declared.contains(name)) {
            self.suggest(name, u64::from(self.stats.symbols));
        }
    }

    fn jump(&mut self, label: Option<&LabelIdentifier<'a>>) {
        self.spend(self.nodes);
        self.suspects += 1;
        if let Some(label) = label {
            let labels = self.labels.len() as u64;
            self.spend(labels);
            if self.work <= MAX_WORK && !self.labels.contains(&label.name.as_str()) {
                self.suggest(&label.name, labels);
            }
        }
    }

    fn enter_class(&mut self, class: &oxc_ast::ast::Class<'a>) {
        let elements = &class.body.body;
        self.elements += elements.len() as u64;
        if let Some(id) = &class.id {
            self.declare(&id.name, self.scope().number);
        }
        let private = |element: &ClassElement<'a>| match element.property_key() {
            Some(PropertyKey::PrivateIdentifier(name)) => Some(name.name.as_str()),
            _ => None,
        };
        self.classes.push(Class {
            declared: elements.iter().filter_map(private).collect(),
            elements: elements.len() as u64,
            private_names: self.private_names,
        });
    }

    fn leave_class(&mut self) {
        if let Some(class) = self.classes.pop() {
            let uses = self.private_names - class.private_names;
            let uses = uses.saturating_sub(class.declared.len() as u64);
            self.spend(uses.saturating_mul(class.elements));
        }
    }
}

/// The names that a statement of a module declares, except in blocks.
fn top_names<'a>(statement: &Statement<'a>) -> Vec<&'a str> {
    let declaration = match statement {
        Statement::ImportDeclaration(import) => {
            let names = import.specifiers.iter().flatten();
            return names.map(|name| name.local().name.as_str()).collect();
        }
        Statement::ExportDeclaration(export) => Some(&export.declaration),
        Statement::ExportDefaultDeclaration(export) => {
            let id = match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => &function.id,
                ExportDefaultDeclarationKind::ClassDeclaration(class) => &class.id,
                _ => return Vec::new(),
            };
            return id.iter().map(|id| id.name.as_str()).collect();
        }
        other => other.as_declaration(),
    };
    match declaration {
        Some(Declaration::VariableDeclaration(variables)) => {
            let patterns = variables.declarations.iter().map(|declarator| &declarator.id);
            let ids = patterns.flat_map(BindingPattern::get_binding_identifiers);
            ids.map(|id| id.name.as_str()).collect()
        }
        Some(other) => other.id().iter().map(|id| id.name.as_str()).collect(),
        None => Vec::new(),
    }
}

impl<'a> Visit<'a> for Census<'a> {
    #[inline]
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.stats.nodes += 1;
        self.nodes += 1;
        match kind {
            AstKind::BreakStatement(jump) => self.jump(jump.label.as_ref()),
            AstKind::ContinueStatement(jump) => self.jump(jump.label.as_ref()),
            AstKind::LabeledStatement(labeled) => {
                self.spend(self.nodes);
                self.suspects += 1;
                self.labels.push(labeled.label.name.as_str());
            }
            AstKind::Super(_)
            | AstKind::AwaitExpression(_)
            | AstKind::YieldExpression(_)
            | AstKind::TSInferType(_)
            | AstKind::TSNamespaceDeclaration(_)
            | AstKind::TSExternalModuleDeclaration(_)
            | AstKind::TSGlobalDeclaration(_) => {
                self.spend(self.nodes);
                self.suspects += 1;
            }
            AstKind::Function(function) => {
                self.functions += 1;
                if let Some(id) = &function.id {
                    self.declare(&id.name, self.scope().number);
                }
            }
            AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Delete => {
                self.suspects += 1;
            }
            AstKind::NumericLiteral(number) => {
                let octal = number.raw.is_some_and(|raw| {
                    raw.len() > 1
                        && raw.bytes().all(|byte| byte.is_ascii_digit())
                        && raw.starts_with('0')
                });
                self.suspects += u64::from(octal);
            }
            AstKind::BinaryExpression(binary) if binary.operator == BinaryOperator::LessThan => {
                self.is_of_module |= self.begins_comment(binary.right.span().start as usize);
            }
            AstKind::ImportMeta(_) => {
                self.is_of_module = true;
                self.suspects += 1;
            }
            AstKind::WithStatement(_) | AstKind::MethodDefinition(_) | AstKind::NewTarget(_) => {
                self.suspects += 1;
            }
            AstKind::ImportDeclaration(import) => self.place("import", import.span),
            AstKind::ExportDeclaration(export) => self.place("export", export.span),
            AstKind::ExportNamedDeclaration(export) => self.place("export", export.span),
            AstKind::ExportFromDeclaration(export) => self.place("export", export.span),
            AstKind::ExportAllDeclaration(export) => self.place("export", export.span),
            AstKind::ExportDefaultDeclaration(export) => self.place("export", export.span),
            AstKind::TSModuleBlock(_) => self.namespaces += 1,
            AstKind::Class(class) => self.enter_class(class),
            _ => {}
        }
    }

    #[inline]
    fn leave_node(&mut self, kind: AstKind<'a>) {
        self.nodes -= 1;
        match kind {
            AstKind::LabeledStatement(_) => {
                self.labels.pop();
            }
            AstKind::TSModuleBlock(_) => self.namespaces -= 1,
            AstKind::Function(_) => self.functions -= 1,
            AstKind::Class(_) => self.leave_class(),
            _ => {}
        }
    }

    #[inline]
    fn enter_scope(&mut self, flags: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.stats.scopes += 1;
        let (number, outer) = (self.stats.scopes, self.scope());
        self.scopes.push(if flags.is_var() {
            Scope { number, function: number, blocks: 0 }
        } else {
            Scope { number, blocks: outer.blocks + 1, ..outer }
        });
    }

    #[inline]
    fn leave_scope(&mut self) {
        self.scopes.pop();
    }

    #[inline]
    fn visit_binding_identifier(&mut self, id: &BindingIdentifier<'a>) {
        self.stats.nodes += 1;
        self.stats.symbols += 1;
        self.qualify(&id.name);
        let Scope { number, function, blocks } = self.scope();
        if self.hoisted {
            self.hoists = self.hoists.saturating_add(blocks);
            self.spend(WORK_PER_HOIST.saturating_mul(blocks));
        }
        self.declare(&id.name, if self.hoisted { function } else { number });
        if matches!(id.name.as_str(), "arguments" | "eval" | "let" | "await") {
            self.spend(self.nodes);
            self.suspects += 1;
        }
    }

    #[inline]
    fn visit_identifier_reference(&mut self, id: &IdentifierReference<'a>) {
        self.stats.nodes += 1;
        self.stats.references += 1;
        self.qualify(&id.name);
        self.spend(self.depth() * (self.parameters + 1));
        self.is_of_module |= self.functions == 0 && id.name.as_str() == "arguments";
        if matches!(id.name.as_str(), "arguments" | "eval" | "await" | "yield") {
            self.spend(self.nodes);
            self.suspects += 1;
        }
    }

    #[inline]
    fn visit_ts_enum_member_name(&mut self, name: &TSEnumMemberName<'a>) {
        self.stats.symbols += 1;
        walk::walk_ts_enum_member_name(self, name);
    }

    fn visit_variable_declaration(&mut self, variables: &VariableDeclaration<'a>) {
        let outer = std::mem::replace(&mut self.hoisted, variables.kind.is_var());
        walk::walk_variable_declaration(self, variables);
        self.hoisted = outer;
    }

    fn visit_formal_parameters(&mut self, parameters: &FormalParameters<'a>) {
        self.parameters += 1;
        walk::walk_formal_parameters(self, parameters);
        self.parameters -= 1;
    }

    fn visit_catch_parameter(&mut self, parameter: &CatchParameter<'a>) {
        self.parameters += 1;
        walk::walk_catch_parameter(self, parameter);
        self.parameters -= 1;
    }

    fn visit_private_identifier(&mut self, id: &PrivateIdentifier<'a>) {
        self.private_names += 1;
        self.suspects += 1;
        let name = id.name.as_str();
        self.spend(self.classes.len() as u64);
        if self.work <= MAX_WORK && !self.classes.iter().any(|class| class.declared.contains(name))
        {
            let declared = self.classes.iter().map(|class| class.declared.len() as u64).sum();
            self.suggest(name, declared);
        }
        walk::walk_private_identifier(self, id);
    }

    fn visit_export_named_declaration(&mut self, export: &ExportNamedDeclaration<'a>) {
        if self.namespaces > 0 {
            self.inner_exports += export.specifiers.len() as u64;
        }
        for specifier in &export.specifiers {
            if let ModuleExportName::IdentifierReference(local) = &specifier.local {
                self.exports.push(local.name.as_str());
            }
        }
        walk::walk_export_named_declaration(self, export);
    }
}
