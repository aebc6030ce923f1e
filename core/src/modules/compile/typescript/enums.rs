//! Enums, written anew in place.
//!
//! In: an enum. Out: edits that make a function of its braces and an assignment of each member. An initializer stays
//! where it is, with the names of other members as properties.

use oxc_ast::ast::{TSEnumDeclaration, TSEnumMember, TSEnumMemberName};
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::{
    super::text::blanks::{between, place},
    constants::{Constant, number},
    produce::{Block, Site},
    types::Types,
};

impl<'a> Types<'_, 'a, '_> {
    pub(in super::super) fn enumeration(
        &mut self,
        declaration: &TSEnumDeclaration<'a>,
        site: Site,
    ) {
        let parent = self.exporter(site).map(|block| block.owner);
        let owner = self.namespaces.enumeration(&declaration.id, parent);
        let Span { start, end, .. } = declaration.body.span;
        let (head, export) = self.head(&declaration.id, site);
        let object = self.exporter(site).map(|block| block.parameter.clone());
        let mut frame = self.frame(&declaration.id, start..end, object.as_deref());
        frame.closing.push_str(&export);
        frame.embed(site);
        self.blanks.replace(head..start as usize, &frame.opening);
        for member in &declaration.body.members {
            self.namespaces.note_name(static_name(&member.id));
        }
        self.blocks.push(Block { body: start..end, owner, parameter: frame.parameter });
        let mut last = Some(Constant::Number(-1.0));
        for member in &declaration.body.members {
            last = self.enum_member(member, last);
            self.constants.members.insert((owner, static_name(&member.id)), last);
        }
        self.blocks.pop();
        self.blanks.insert(end as usize, &frame.closing);
    }

    /// Writes a member as an assignment. Returns the part of its value that is known.
    fn enum_member(
        &mut self,
        member: &TSEnumMember<'a>,
        last: Option<Constant>,
    ) -> Option<Constant> {
        let value = match (&member.initializer, last) {
            (Some(initializer), _) => self.constant(initializer),
            (None, Some(Constant::Number(last))) => Some(Constant::Number(last + 1.0)),
            (None, _) => None,
        };
        let object = self.blocks.last().map(|block| block.parameter.as_str()).unwrap_or_default();
        let key = self.key(&member.id);
        let (opening, closing) = match value {
            Some(Constant::String | Constant::Text) => {
                (format!("{object}[{key}] = "), ";".to_owned())
            }
            _ => (format!("{object}[{object}[{key}] = "), format!("] = {key};")),
        };
        let written = match value {
            Some(Constant::Number(value)) => Some(value),
            _ => None,
        };
        match &member.initializer {
            // TypeScript makes zero of minus zero.
            Some(initializer)
                if !written.is_some_and(|value| value == 0.0 && value.is_sign_negative()) =>
            {
                let Span { start, end, .. } = initializer.span();
                self.blanks.replace(between(member.span.start, start), &opening);
                self.visit_expression(initializer);
                self.blanks.insert(end as usize, &closing);
            }
            _ => {
                let value = written.map_or("void 0".to_owned(), number);
                self.blanks.replace(place(member.span), &format!("{opening}{value}{closing}"));
            }
        }
        let comma = self.blanks.next_token(member.span.end as usize);
        if self.blanks.byte(comma) == Some(b',') {
            self.blanks.erase(comma..comma + 1);
        }
        value
    }

    /// The name of a member as an expression on one line.
    fn key(&self, id: &TSEnumMemberName<'_>) -> String {
        match id {
            TSEnumMemberName::Identifier(name) => format!("\"{}\"", name.name),
            TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => {
                on_one_line(self.blanks.source(place(name.span)))
            }
            TSEnumMemberName::ComputedTemplateString(name) => {
                on_one_line(self.blanks.source(place(name.span)))
            }
        }
    }
}

/// The value of a member's name.
fn static_name<'a>(id: &TSEnumMemberName<'a>) -> &'a str {
    match id {
        TSEnumMemberName::Identifier(name) => name.name.as_str(),
        TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => {
            name.value.as_str()
        }
        TSEnumMemberName::ComputedTemplateString(name) => {
            name.quasis.first().map(|quasi| quasi.value.raw.as_str()).unwrap_or_default()
        }
    }
}

/// The same literal, a string or a template, without line terminators.
pub(in super::super) fn on_one_line(literal: &str) -> String {
    let mut line = String::with_capacity(literal.len());
    let mut chars = literal.chars().peekable();
    while let Some(char) = chars.next() {
        let escaped = char == '\\';
        let next = if escaped { chars.next() } else { Some(char) };
        let Some(next) = next else { break };
        if next == '\r' {
            chars.next_if_eq(&'\n');
        }
        match (escaped, next) {
            // It continues the line.
            (true, '\r' | '\n' | '\u{2028}' | '\u{2029}') => {}
            (false, '\r' | '\n') => line.push_str("\\n"),
            (false, '\u{2028}') => line.push_str("\\u2028"),
            (false, '\u{2029}') => line.push_str("\\u2029"),
            (true, next) => line.extend(['\\', next]),
            (false, next) => line.push(next),
        }
    }
    line
}
