//! The constant values of enum members, as far as they decide what follows.
//!
//! In: an initializer, and the members and `const` variables before it. Out: its number, or that it is a string, by
//! TypeScript's rules. A member without initializer has the number after that of the member before it, and a string has
//! no entry from value to name. The initializers themselves stay in the code, so no string is computed here.

use std::collections::HashMap;

use oxc_ast::ast::{
    BinaryExpression, BinaryOperator, Expression, IdentifierReference, UnaryOperator,
};
use oxc_semantic::SymbolId;

use super::{
    namespaces::{Member, Owner},
    types::Types,
};

/// The part of a value that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Constant {
    Number(f64),
    /// A constant string, not written as one.
    String,
    /// A string, constant or not, by the way it is written.
    Text,
}

/// The constants up to here.
#[derive(Default)]
pub(in super::super) struct Constants<'a> {
    /// Every member of an enum, with the part of its value that is known.
    pub(in super::super) members: HashMap<(Owner, &'a str), Option<Constant>>,
    pub(in super::super) variables: HashMap<SymbolId, Constant>,
}

impl Types<'_, '_, '_> {
    /// The part that is known of an initializer's value.
    pub(in super::super) fn constant(&self, expression: &Expression<'_>) -> Option<Constant> {
        match expression {
            Expression::NumericLiteral(literal) => Some(Constant::Number(literal.value)),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some(Constant::Text),
            Expression::ParenthesizedExpression(inner) => self.constant(&inner.expression),
            Expression::UnaryExpression(unary) => {
                let Some(Constant::Number(value)) = self.constant(&unary.argument) else {
                    return None;
                };
                let value = match unary.operator {
                    UnaryOperator::UnaryPlus => value,
                    UnaryOperator::UnaryNegation => -value,
                    UnaryOperator::BitwiseNot => f64::from(!to_int_32(value)),
                    _ => return None,
                };
                Some(Constant::Number(value))
            }
            Expression::BinaryExpression(binary) => self.binary(binary),
            Expression::Identifier(id) => {
                let (owner, symbol) = self.named(id);
                let member =
                    owner.and_then(|owner| self.constants.members.get(&(owner, id.name.as_str())));
                let variable = || symbol.and_then(|symbol| self.constants.variables.get(&symbol));
                member.copied().unwrap_or_else(|| variable().copied())
            }
            Expression::StaticMemberExpression(member) => {
                self.member(&member.object, member.property.name.as_str())
            }
            Expression::ComputedMemberExpression(member) => match &member.expression {
                Expression::StringLiteral(name) => self.member(&member.object, name.value.as_str()),
                _ => None,
            },
            _ => None,
        }
    }

    fn binary(&self, binary: &BinaryExpression<'_>) -> Option<Constant> {
        let (left, right) = (self.constant(&binary.left), self.constant(&binary.right));
        if binary.operator == BinaryOperator::Addition {
            if left == Some(Constant::Text) || right == Some(Constant::Text) {
                return Some(Constant::Text);
            }
            if left? == Constant::String || right? == Constant::String {
                return Some(Constant::String);
            }
        }
        let (Constant::Number(left), Constant::Number(right)) = (left?, right?) else {
            return None;
        };
        let (bits, shift) = (to_int_32(left), to_int_32(right).cast_unsigned());
        let value = match binary.operator {
            BinaryOperator::Addition => left + right,
            BinaryOperator::Subtraction => left - right,
            BinaryOperator::Multiplication => left * right,
            BinaryOperator::Division => left / right,
            BinaryOperator::Remainder => left % right,
            // In JavaScript, powers of one may be no number.
            BinaryOperator::Exponential if !right.is_finite() => return None,
            BinaryOperator::Exponential => left.powf(right),
            BinaryOperator::ShiftLeft => f64::from(bits.wrapping_shl(shift)),
            BinaryOperator::ShiftRight => f64::from(bits.wrapping_shr(shift)),
            BinaryOperator::ShiftRightZeroFill => {
                f64::from(bits.cast_unsigned().wrapping_shr(shift))
            }
            BinaryOperator::BitwiseAnd => f64::from(bits & to_int_32(right)),
            BinaryOperator::BitwiseOR => f64::from(bits | to_int_32(right)),
            BinaryOperator::BitwiseXOR => f64::from(bits ^ to_int_32(right)),
            _ => return None,
        };
        Some(Constant::Number(value))
    }

    /// The constant `object.name`.
    fn member(&self, object: &Expression<'_>, name: &str) -> Option<Constant> {
        let owner = self.object(object)?.enumeration?;
        self.constants.members.get(&(owner, name)).copied().flatten()
    }

    /// The namespace and the enum that an expression names.
    fn object(&self, expression: &Expression<'_>) -> Option<Member> {
        match expression {
            Expression::Identifier(id) => self.object_named(id),
            Expression::StaticMemberExpression(member) => {
                let owner = self.object(&member.object)?.namespace?;
                self.namespaces.member(owner, member.property.name.as_str())
            }
            _ => None,
        }
    }

    fn object_named(&self, id: &IdentifierReference<'_>) -> Option<Member> {
        let (owner, symbol) = self.named(id);
        let known = symbol.and_then(|symbol| self.namespaces.by_symbol.get(&symbol).copied());
        known.or_else(|| self.namespaces.member(owner?, id.name.as_str()))
    }
}

/// A number in JavaScript's text.
pub(in super::super) fn number(value: f64) -> String {
    if value.is_nan() {
        "0/0".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "1/0" } else { "-1/0" }.to_owned()
    } else if value.abs() < 1e15 && value.fract() == 0.0 {
        // Minus zero is zero.
        format!("{}", value + 0.0)
    } else {
        format!("{value:e}")
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is what the bits of a number are in JavaScript"
)]
fn to_int_32(value: f64) -> i32 {
    if value.is_finite() { (value.trunc() % 4_294_967_296.0) as i64 as i32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_javascript() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-7.0, "-7"),
            (1.5, "1.5e0"),
            (1e300, "1e300"),
            (2_f64.powi(53), "9.007199254740992e15"),
            (f64::NAN, "0/0"),
            (f64::NEG_INFINITY, "-1/0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn bits_are_those_of_the_integer() {
        for (value, bits) in [
            (-1.5, -1),
            (4_294_967_295.0, -1),
            (2_147_483_648.0, i32::MIN),
            (-4_294_967_297.0, -1),
            (1e300, 0),
            (f64::INFINITY, 0),
        ] {
            assert_eq!(to_int_32(value), bits, "{value}");
        }
    }
}
