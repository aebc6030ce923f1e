//! The function that failed.
//!
//! In: a tree and the places around a failure. Out: the texts that may be that of the function. The engine does not give
//! the place of a function's first token, but that of the last name or blank before it: of `map` in `rows.map((row) =>`,
//! of the key of a method. The function that makes the fields of a class has no place at all.

use oxc_ast::ast::{
    ArrowFunctionExpression, Class, Function, Program, PropertyDefinition, StaticBlock,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::Span;
use oxc_syntax::scope::ScopeFlags;

use super::super::question::Places;

/// The texts that may be that of the function that failed.
pub(super) struct Failed {
    /// Whether it may be the code outside of all functions.
    pub(super) program: bool,
    /// Functions, or the definitions of the fields of a class, in the order of their starts.
    parts: Vec<Span>,
}

impl Failed {
    pub(super) fn contains(&self, part: Span) -> bool {
        let found = self.parts.binary_search_by_key(&part.start, |part| part.start);
        found.is_ok_and(|index| self.parts[index] == part)
    }
}

/// The functions that may have failed; `None` where nothing tells.
pub(super) fn failed(program: &Program<'_>, places: Places) -> Option<Failed> {
    let mut functions = Functions { source: program.source_text, ..Functions::default() };
    functions.visit_program(program);
    let Functions { parts, .. } = functions;
    // A place at the very start of a function belongs to the code around it.
    let contains = |part: &&Part| (part.span.start + 1..part.span.end).contains(&places.before);
    let spans = |parts: Vec<&Part>| parts.into_iter().map(|part| part.span).collect();
    let Some(start) = places.function else {
        let fields = || parts.iter().filter(|part| part.class.is_some());
        let class = fields().rfind(contains).map(|part| part.class);
        let fields = fields().filter(|part| class.is_none_or(|class| class == part.class));
        let failed = Failed { program: false, parts: spans(fields.collect()) };
        return (!failed.parts.is_empty()).then_some(failed);
    };
    let first = First::new(program.source_text, start);
    let starting = || parts.iter().filter(|part| part.first.iter().any(|at| first.may_be(*at)));
    let program = start == 0;
    if places.before == start {
        let failed = Failed { program, parts: spans(starting().collect()) };
        return (program || !failed.parts.is_empty()).then_some(failed);
    }
    // The parts are in the order of their starts, so the last one that contains the place is the innermost.
    let innermost = starting().rfind(contains).or_else(|| {
        let functions = || parts.iter().filter(|part| part.class.is_none());
        if program { None } else { functions().rfind(contains) }
    });
    match innermost {
        Some(part) => Some(Failed { program: false, parts: vec![part.span] }),
        None => program.then(|| Failed { program, parts: Vec::new() }),
    }
}

/// The tokens for which the engine gives a place.
struct First {
    start: u32,
    /// The start, or the next offset: on line 1 the engine counts some tokens from 0.
    from: u32,
    /// The next name or blank.
    end: u32,
}

impl First {
    fn new(source: &str, start: u32) -> Self {
        let text = source.get(start as usize..).unwrap_or_default();
        let shifted = start == 0 && !text.starts_with(is_name);
        let from = start + u32::from(shifted && text.is_char_boundary(1));
        let text = source.get(from as usize..).unwrap_or_default();
        let mut chars = text.char_indices().skip_while(|(_, char)| is_name(*char));
        let end = loop {
            match chars.next() {
                None => break text.len(),
                Some((_, quote @ ('"' | '\''))) => {
                    while let Some((_, char)) = chars.next().filter(|(_, char)| *char != quote) {
                        if char == '\\' {
                            chars.next();
                        }
                    }
                }
                Some((at, char)) if char.is_whitespace() || is_name(char) => break at,
                Some(_) => {}
            }
        };
        Self { start, from, end: from + u32::try_from(end).unwrap_or(0) }
    }

    fn may_be(&self, token: u32) -> bool {
        token == self.from || (self.start..self.end).contains(&token)
    }
}

fn is_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$')
}

/// A function, or the definition of a field.
struct Part {
    span: Span,
    /// The tokens that may be the first one for the engine.
    first: Vec<u32>,
    /// The class of a field, by its number, and whether the field is static.
    class: Option<(usize, bool)>,
}

#[derive(Default)]
struct Functions<'s> {
    source: &'s str,
    parts: Vec<Part>,
    /// The classes around the place that is visited, and the number of all classes so far.
    classes: Vec<usize>,
    count: usize,
}

impl Functions<'_> {
    fn function(&mut self, span: Span, first: Vec<u32>) {
        self.parts.push(Part { span, first, class: None });
    }
}

impl<'a> VisitJs<'a> for Functions<'_> {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if function.body.is_some() {
            let mut first = vec![function.span.start, function.params.span.start];
            first.extend(function.id.as_ref().map(|name| name.span.start));
            self.function(function.span, first);
        }
        walk_js::walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.function(function.span, vec![function.span.start, function.params.span.start]);
        walk_js::walk_arrow_function_expression(self, function);
    }

    fn visit_static_block(&mut self, block: &StaticBlock<'a>) {
        let text = self.source.get(block.span.start as usize..).unwrap_or_default();
        let brace = text.find('{').and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
        self.function(block.span, vec![block.span.start, block.span.start + brace]);
        walk_js::walk_static_block(self, block);
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.classes.push(self.count);
        self.count += 1;
        walk_js::walk_class(self, class);
        self.classes.pop();
    }

    fn visit_property_definition(&mut self, field: &PropertyDefinition<'a>) {
        let class = self.classes.last().map(|class| (*class, field.r#static));
        if field.value.is_some() {
            self.parts.push(Part { span: field.span, first: Vec::new(), class });
        }
        walk_js::walk_property_definition(self, field);
    }
}
