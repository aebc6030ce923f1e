//! The members of containers, as serde asks for them.
//!
//! In: a [`Reading`] inside an object, a Map, an array, a buffer or a variant. Out: its entries or elements, each
//! fault with its step of the path.

use serde::de::{
    Deserialize, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
    value::{StrDeserializer, UnitDeserializer},
};

use super::{
    de::{Node, Wish},
    reading::{Reading, Scalar},
};
use crate::value::{Fault, ViewKind, path::Step, tag};

/// The properties of an object.
pub(super) struct Properties<'c, 'a> {
    pub(super) reading: &'c mut Reading<'a>,
    /// Whether a property that is `undefined` counts as absent.
    pub(super) struct_like: bool,
    /// The key whose value has not been read.
    pub(super) key: Option<String>,
    pub(super) ended: bool,
}

impl Properties<'_, '_> {
    /// Passes over the rest, which the visitor did not read.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        if self.key.take().is_some() {
            self.reading.pass()?;
        }
        while !self.ended {
            match self.reading.key()? {
                Some(_) => self.reading.pass()?,
                None => self.ended = true,
            }
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Properties<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        loop {
            if self.ended {
                return Ok(None);
            }
            let Some(key) = self.reading.key()? else {
                self.ended = true;
                return Ok(None);
            };
            if self.struct_like && self.reading.cursor.reader.peek() == Some(tag::UNDEFINED) {
                self.reading.pass()?;
                continue;
            }
            let read = seed.deserialize(key.as_str().into_deserializer());
            self.key = Some(key);
            return read.map(Some);
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let key = self.key.take().unwrap_or_default();
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(key)))
    }
}

/// The entries of a Map.
pub(super) struct Entries<'c, 'a> {
    pub(super) reading: &'c mut Reading<'a>,
    pub(super) left: u32,
    pub(super) index: usize,
    /// Whether the value of the last key has not been read.
    pub(super) pending: bool,
}

impl Entries<'_, '_> {
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        if self.pending {
            self.reading.pass()?;
        }
        for _ in 0..self.left {
            self.reading.pass()?;
            self.reading.pass()?;
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        self.pending = true;
        let key = seed.deserialize(Node(self.reading));
        key.map(Some).map_err(|fault| fault.at(Step::MapKey(self.index)))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let index = self.index;
        self.index += 1;
        self.pending = false;
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Member(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// The elements of an array or the members of a Set.
pub(super) struct Elements<'c, 'a> {
    reading: &'c mut Reading<'a>,
    left: u32,
    index: usize,
    step: fn(usize) -> Step,
}

pub(super) fn elements<'de, V: Visitor<'de>>(
    reading: &mut Reading<'_>,
    left: u32,
    step: fn(usize) -> Step,
    visitor: V,
) -> Result<V::Value, Fault> {
    let mut elements = Elements { reading, left, index: 0, step };
    let value = visitor.visit_seq(&mut elements)?;
    for _ in 0..elements.left {
        elements.reading.pass()?;
    }
    Ok(value)
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, '_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let index = self.index;
        self.index += 1;
        let read = seed.deserialize(Node(self.reading));
        read.map(Some).map_err(|fault| fault.at((self.step)(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// The elements of a sparse array, holes included.
pub(super) struct Sparse<'c, 'a> {
    pub(super) reading: &'c mut Reading<'a>,
    /// The next index that has an element.
    pub(super) next: Option<u32>,
    pub(super) index: u32,
    pub(super) length: u32,
}

impl Sparse<'_, '_> {
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        while self.next.is_some() {
            self.reading.pass()?;
            self.next = self.reading.cursor.reader.sparse_index()?;
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut Sparse<'_, '_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        if self.index >= self.length {
            return Ok(None);
        }
        let index = self.index;
        self.index += 1;
        let read = if self.next == Some(index) {
            let value = seed.deserialize(Node(self.reading));
            if value.is_ok() {
                self.next = self.reading.cursor.reader.sparse_index()?;
            }
            value
        } else {
            self.reading.cursor.spend(1)?;
            seed.deserialize(UnitDeserializer::new())
        };
        read.map(Some).map_err(|fault| fault.at(Step::Index(index as usize)))
    }
}

/// The elements of a typed array.
pub(super) struct Numbers<'a> {
    pub(super) bytes: std::slice::ChunksExact<'a, u8>,
    pub(super) kind: ViewKind,
}

impl<'de> SeqAccess<'de> for Numbers<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(bytes) = self.bytes.next() else { return Ok(None) };
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len();
        let signed = (unsigned << unused).cast_signed() >> unused;
        #[expect(clippy::cast_possible_truncation, reason = "an element's own width")]
        let float = match self.kind {
            ViewKind::Float16Array => Some(f16_to_f64(unsigned as u16)),
            ViewKind::Float32Array => Some(f64::from(f32::from_bits(unsigned as u32))),
            ViewKind::Float64Array => Some(f64::from_bits(unsigned)),
            _ => None,
        };
        let element = match (self.kind, float) {
            (_, Some(float)) => seed.deserialize(Scalar::Number(float)),
            (
                ViewKind::Int8Array
                | ViewKind::Int16Array
                | ViewKind::Int32Array
                | ViewKind::BigInt64Array,
                None,
            ) => seed.deserialize(signed.into_deserializer()),
            _ => seed.deserialize(unsigned.into_deserializer()),
        };
        element.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.bytes.len())
    }
}

fn f16_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1F);
    let fraction = f64::from(bits & 0x3FF);
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1F if fraction == 0.0 => f64::INFINITY,
        0x1F => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// A variant that is an object of one key.
pub(super) struct Variant<'c, 'a> {
    pub(super) reading: &'c mut Reading<'a>,
    pub(super) name: String,
}

impl<'de> EnumAccess<'de> for Variant<'_, '_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.as_str().into_deserializer();
        let value = seed.deserialize(name)?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        <()>::deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        let read = Node(self.reading).visit(Wish::Anything, visitor);
        read.map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let read = Node(self.reading).visit(Wish::Struct, visitor);
        read.map_err(|fault| fault.at(Step::Key(self.name)))
    }
}
