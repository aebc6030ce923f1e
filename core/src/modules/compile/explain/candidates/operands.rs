//! Expressions as a reader knows them.
//!
//! In: an expression of a tree. Out: a short text of it, and the variables and keys under which its value is found.

use oxc_ast::ast::{
    CallExpression, Expression, IdentifierReference, MemberExpression, PropertyKey,
    SimpleAssignmentTarget,
};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::GetSpan;

use crate::data::text::bounded;

/// The longest text of an expression, in bytes.
const TEXT: usize = 80;

/// The longest text of a part whose content does not matter.
const PART: usize = 24;

/// An expression within another, as text.
const DEEPEST: usize = 16;

/// An operand of a failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// The expression, on one line; arguments of calls are left out.
    pub(crate) text: String,
    /// The variable or argument that it is.
    pub(crate) root: Option<Root>,
    /// The object that it is a property of, with the key.
    pub(crate) of: Option<(Box<Self>, Key)>,
    /// The function that its value came from: `load` of `load()`, and of `rows` after `const rows = load()`.
    pub(crate) origin: Option<Box<Self>>,
    /// The first argument of the constructor that made it: `text` of `new Date(text)`.
    pub(crate) made_of: Option<Box<Self>>,
    /// The kind of value that a literal is, or a literal that is the default.
    pub(crate) literal: Option<Literal>,
    /// Whether another value takes its place if it is `undefined`.
    pub(crate) defaulted: bool,
    /// The call that a pattern took its value from, with the key.
    pub(crate) taken: Option<(Box<Self>, Key)>,
}

/// The key of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// As it is written in the text.
    Name(String),
    /// The element that a pattern takes from an iterable; arrays have it under that index.
    Element(usize),
    /// The value of an operand.
    Value(Box<Operand>),
}

/// A value that the failing function has at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A variable, by its name and by the offset of its declaration.
    Variable(String, u32),
    /// A name that is not declared in the text.
    Global(String),
    /// `this` or `arguments`.
    Own(&'static str),
    /// An argument of the failing function, by its index.
    Argument(usize),
}

/// The kind of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Undefined,
    Null,
    Boolean,
    Number,
    BigInt,
    Symbol,
    String,
    Function,
    Array,
    Object,
}

impl Operand {
    pub(super) fn of(expression: &Expression<'_>, source: &str, scoping: &Scoping) -> Self {
        Self::within(expression, source, scoping, DEEPEST)
    }

    /// The value that a target has before it is assigned; `None` for a target with a cast.
    pub(super) fn of_target(
        target: &SimpleAssignmentTarget<'_>,
        source: &str,
        scoping: &Scoping,
    ) -> Option<Self> {
        if let SimpleAssignmentTarget::AssignmentTargetIdentifier(name) = target {
            let root = Some(root(name, scoping));
            return Some(Self { root, ..Self::without_value(name.name.to_string()) });
        }
        let member = target.as_member_expression()?;
        let object = Self::of(member.object(), source, scoping);
        let key = key_in(member, source, scoping, DEEPEST);
        let text = member_text(member, source, DEEPEST);
        Some(Self { of: Some(Box::new(object)).zip(key), ..Self::without_value(text) })
    }

    fn within(expression: &Expression<'_>, source: &str, scoping: &Scoping, depth: usize) -> Self {
        let expression = expression.get_inner_expression();
        let text = bounded(text(expression, source, DEEPEST), TEXT);
        let Some(depth) = depth.checked_sub(1) else { return Self::without_value(text) };
        let origin = match expression {
            Expression::CallExpression(call) => {
                Some(Self::within(&call.callee, source, scoping, depth))
            }
            _ => None,
        };
        let made_of = match expression {
            Expression::NewExpression(new) => {
                let first = new.arguments.first().and_then(|argument| argument.as_expression());
                first.map(|first| Self::within(first, source, scoping, depth))
            }
            _ => None,
        };
        let of = member_of(expression).and_then(|member| {
            let object = Self::within(member.object(), source, scoping, depth);
            Some((Box::new(object), key_in(member, source, scoping, depth)?))
        });
        Self {
            text,
            root: match expression {
                Expression::Identifier(name) => Some(root(name, scoping)),
                Expression::ThisExpression(_) => Some(Root::Own("this")),
                _ => None,
            },
            of,
            origin: origin.map(Box::new),
            made_of: made_of.map(Box::new),
            literal: literal(expression, scoping),
            defaulted: false,
            taken: None,
        }
    }

    /// The value of a pattern with a default.
    pub(super) fn defaulted(&self) -> Self {
        Self { defaulted: true, ..self.clone() }
    }

    /// An argument of the failing function.
    pub(super) fn argument(index: usize) -> Self {
        let root = Some(Root::Argument(index));
        Self { root, ..Self::without_value(format!("argument {}", index + 1)) }
    }

    /// An operand in words alone.
    pub(super) fn without_value(text: String) -> Self {
        Self {
            text: bounded(text, TEXT),
            root: None,
            of: None,
            origin: None,
            made_of: None,
            literal: None,
            defaulted: false,
            taken: None,
        }
    }

    /// The element of this one that a pattern takes.
    pub(super) fn element(&self, index: usize) -> Self {
        let Self { text, of, .. } = self.property(&index.to_string());
        let of = of.map(|(object, _)| (object, Key::Element(index)));
        Self { of, ..Self::without_value(text) }
    }

    /// The array of the elements that a pattern leaves.
    pub(super) fn rest(&self) -> Self {
        let words = format!("the rest of {}", self.text);
        Self { literal: Some(Literal::Array), ..Self::without_value(words) }
    }

    /// The value of a property of this one.
    pub(crate) fn property(&self, key: &str) -> Self {
        const LONGEST: usize = 256;
        if key.len() > LONGEST {
            return Self::without_value("a property of ".to_owned() + &self.text);
        }
        let index = key.bytes().all(|byte| byte.is_ascii_digit());
        // `argument 1` and `an element of rows` are words.
        let text = match (self.text.contains(' '), index) {
            (true, true) => format!("element {key} of {}", self.text),
            (true, false) => format!("{key} of {}", self.text),
            (false, _) if self.literal == Some(Literal::Number) && !self.text.contains('.') => {
                with_key(&format!("({})", self.text), key)
            }
            (false, _) => with_key(&self.text, key),
        };
        let of = Some((Box::new(self.clone()), Key::Name(key.to_owned())));
        Self { of, ..Self::without_value(text) }
    }
}

/// The declaration in the text that a name refers to.
pub(super) fn symbol(scoping: &Scoping, name: &IdentifierReference<'_>) -> Option<SymbolId> {
    scoping.get_reference(name.reference_id.get()?).symbol_id()
}

fn root(name: &IdentifierReference<'_>, scoping: &Scoping) -> Root {
    let text = name.name.to_string();
    match symbol(scoping, name) {
        Some(symbol) => Root::Variable(text, scoping.symbol_span(symbol).start),
        None if text == "arguments" => Root::Own("arguments"),
        None => Root::Global(text),
    }
}

/// The member expression that an expression is, within a chain of `?.` as well.
pub(super) fn member_of<'e, 'a>(
    expression: &'e Expression<'a>,
) -> Option<&'e MemberExpression<'a>> {
    match expression {
        Expression::ChainExpression(chain) => chain.expression.as_member_expression(),
        other => other.as_member_expression(),
    }
}

/// The key of a member expression; `None` for a private one.
fn key_in(
    member: &MemberExpression<'_>,
    source: &str,
    scoping: &Scoping,
    depth: usize,
) -> Option<Key> {
    match member {
        MemberExpression::ComputedMemberExpression(computed) if name_in(member).is_none() => {
            let key = Operand::within(&computed.expression, source, scoping, depth);
            Some(Key::Value(Box::new(key)))
        }
        member => name_in(member).map(Key::Name),
    }
}

/// The key of a member expression, where it is written in the text.
pub(super) fn name_in(member: &MemberExpression<'_>) -> Option<String> {
    match member {
        MemberExpression::StaticMemberExpression(member) => Some(member.property.name.to_string()),
        MemberExpression::ComputedMemberExpression(member) => key_of(&member.expression),
        MemberExpression::PrivateFieldExpression(_) => None,
    }
}

/// The text of a property of an expression.
fn with_key(object: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && !key.starts_with(|first: char| first.is_ascii_digit())
        && key.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '$'));
    if plain {
        format!("{object}.{key}")
    } else if key.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{object}[{key}]")
    } else {
        format!("{object}[{key:?}]")
    }
}

fn text(expression: &Expression<'_>, source: &str, depth: usize) -> String {
    if let Some(member) = expression.as_member_expression() {
        return member_text(member, source, depth);
    }
    let Some(depth) = depth.checked_sub(1) else { return "…".to_owned() };
    let inner =
        |expression: &Expression<'_>| text(expression.get_inner_expression(), source, depth);
    match expression {
        Expression::Identifier(name) => name.name.to_string(),
        Expression::ThisExpression(_) => "this".to_owned(),
        Expression::Super(_) => "super".to_owned(),
        Expression::ChainExpression(_) => part(source, expression, TEXT),
        Expression::CallExpression(call) => {
            let callee = head(&call.callee, source, depth);
            format!("{callee}{}{}", if call.optional { "?." } else { "" }, arguments(call))
        }
        Expression::NewExpression(new) => {
            let arguments = if new.arguments.is_empty() { "()" } else { "(…)" };
            format!("new {}{arguments}", head(&new.callee, source, depth))
        }
        // `5.` is a number as well.
        Expression::NumericLiteral(number) => {
            part(source, &**number, PART).trim_end_matches('.').to_owned()
        }
        Expression::AwaitExpression(wait) => format!("(await {})", inner(&wait.argument)),
        Expression::ArrayExpression(array) if !array.elements.is_empty() => "[…]".to_owned(),
        Expression::ObjectExpression(object) if !object.properties.is_empty() => "{…}".to_owned(),
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_) => {
            "the function".to_owned()
        }
        Expression::ClassExpression(_) => "the class".to_owned(),
        Expression::ConditionalExpression(_)
        | Expression::LogicalExpression(_)
        | Expression::BinaryExpression(_)
        | Expression::AssignmentExpression(_)
        | Expression::SequenceExpression(_) => format!("({})", part(source, expression, PART)),
        other => part(source, other, PART),
    }
}

fn member_text(member: &MemberExpression<'_>, source: &str, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return "…".to_owned() };
    let object = head(member.object(), source, depth);
    let dot = if member.optional() { "?." } else { "." };
    match member {
        MemberExpression::StaticMemberExpression(member) => {
            format!("{object}{dot}{}", member.property.name)
        }
        MemberExpression::ComputedMemberExpression(computed) => {
            let key = text(computed.expression.get_inner_expression(), source, depth);
            let dot = if computed.optional { "?." } else { "" };
            format!("{object}{dot}[{key}]")
        }
        MemberExpression::PrivateFieldExpression(member) => {
            format!("{object}{dot}#{}", member.field.name)
        }
    }
}

/// The text of an expression that a property or a call follows.
fn head(expression: &Expression<'_>, source: &str, depth: usize) -> String {
    match expression.get_inner_expression() {
        Expression::FunctionExpression(function) => {
            let name = function.id.as_ref().map(|name| format!(" {}", name.name));
            format!("(function{})", name.unwrap_or_default())
        }
        Expression::ArrowFunctionExpression(_) => "(() => …)".to_owned(),
        Expression::ClassExpression(class) => {
            let name = class.id.as_ref().map(|name| format!(" {}", name.name));
            format!("(class{})", name.unwrap_or_default())
        }
        inner @ Expression::NumericLiteral(_) => {
            let number = text(inner, source, depth);
            if number.contains('.') { number } else { format!("({number})") }
        }
        inner @ (Expression::UnaryExpression(_)
        | Expression::UpdateExpression(_)
        | Expression::YieldExpression(_)
        | Expression::ChainExpression(_)) => format!("({})", text(inner, source, depth)),
        inner => text(inner, source, depth),
    }
}

fn arguments(call: &CallExpression<'_>) -> &'static str {
    if call.arguments.is_empty() { "()" } else { "(…)" }
}

/// The text of a node, on one line, cut to a few characters.
fn part(source: &str, node: &impl GetSpan, limit: usize) -> String {
    let span = node.span();
    // A node may be as long as the text; only its beginning is read.
    let start = span.start as usize;
    let end = source.floor_char_boundary((start + 4 * limit).min(span.end as usize));
    let words: Vec<&str> = source.get(start..end).unwrap_or("…").split_whitespace().collect();
    let cut = if end < span.end as usize { "…" } else { "" };
    bounded(words.join(" ") + cut, limit)
}

/// The key that a literal in brackets is.
pub(super) fn key_of(expression: &Expression<'_>) -> Option<String> {
    match expression.get_inner_expression() {
        Expression::StringLiteral(text) => Some(text.value.to_string()),
        Expression::NumericLiteral(number) if number.value.fract() == 0.0 => {
            Some(format!("{}", number.value))
        }
        _ => None,
    }
}

/// The key of a property of a pattern, where it is written in the text.
pub(super) fn property_key(key: &PropertyKey<'_>) -> Option<String> {
    key.static_name().map(|name| name.to_string())
}

fn literal(expression: &Expression<'_>, scoping: &Scoping) -> Option<Literal> {
    Some(match expression {
        Expression::CallExpression(call) if calls_symbol(call, scoping) => Literal::Symbol,
        Expression::Identifier(name) if name.name == "undefined" => Literal::Undefined,
        Expression::UnaryExpression(unary) if unary.operator.is_void() => Literal::Undefined,
        Expression::NullLiteral(_) => Literal::Null,
        Expression::BooleanLiteral(_) => Literal::Boolean,
        Expression::NumericLiteral(_) => Literal::Number,
        Expression::BigIntLiteral(_) => Literal::BigInt,
        Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Literal::String,
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_) => {
            Literal::Function
        }
        Expression::ArrayExpression(_) => Literal::Array,
        Expression::ObjectExpression(_) => Literal::Object,
        _ => return None,
    })
}

/// Whether a call makes a symbol.
fn calls_symbol(call: &CallExpression<'_>, scoping: &Scoping) -> bool {
    let name = call.callee.get_identifier_reference().filter(|name| name.name == "Symbol");
    name.is_some_and(|name| symbol(scoping, name).is_none())
}
