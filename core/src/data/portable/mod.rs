//! Plain data as bytes, for another process of the same program.
//!
//! In: values of types that are [`Portable`]. Out: bytes, and equal values again. Writer and reader are the same build,
//! so nothing has a name or a version. The reader checks every length, and holds no more than about what it reads.
//! Two pointers to one thing are two pointers to one thing again.

mod containers;

use std::{any::Any, collections::HashMap, sync::Arc};

/// Data that can be written as bytes, and read again.
pub(crate) trait Portable: Sized {
    fn write(&self, out: &mut Output);

    /// `None` if the bytes are not those of such a value.
    fn read(input: &mut Input) -> Option<Self>;
}

/// Bytes that are being written.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The things with several pointers to them, by address, in the order in which they were written.
    shared: HashMap<usize, u32>,
}

/// Bytes that are being read.
pub(crate) struct Input<'b> {
    bytes: &'b [u8],
    shared: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Output {
    /// Writes bytes as they are.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes bytes behind their number.
    pub(crate) fn put_counted(&mut self, bytes: &[u8]) {
        bytes.len().write(self);
        self.put(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, shared: Vec::new() }
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Reads bytes that stand behind their number.
    pub(crate) fn take_counted(&mut self) -> Option<&'b [u8]> {
        let length = usize::read(self)?;
        self.take(length)
    }

    /// Whether everything was read.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<T: Portable + Send + Sync + 'static> Portable for Arc<T> {
    fn write(&self, out: &mut Output) {
        let known = u32::try_from(out.shared.len()).unwrap_or(u32::MAX);
        let place = *out.shared.entry(Self::as_ptr(self).addr()).or_insert(known);
        place.write(out);
        if place == known {
            T::write(self, out);
        }
    }

    fn read(input: &mut Input) -> Option<Self> {
        let place = usize::try_from(u32::read(input)?).ok()?;
        if place < input.shared.len() {
            let known = Arc::clone(input.shared.get(place)?);
            return known.downcast().ok();
        }
        // Its place is taken before its parts have theirs.
        input.shared.push(Arc::new(()));
        let read = Self::new(T::read(input)?);
        *input.shared.get_mut(place)? = Self::clone(&read) as Arc<dyn Any + Send + Sync>;
        Some(read)
    }
}

/// Makes a type portable: a struct by its fields, an enum by the numbers of its variants.
macro_rules! portable {
    (struct $type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::data::portable::Portable for $type {
            fn write(&self, out: &mut $crate::data::portable::Output) {
                $($crate::data::portable::Portable::write(&self.$field, out);)*
            }

            fn read(input: &mut $crate::data::portable::Input) -> Option<Self> {
                Some(Self { $($field: $crate::data::portable::Portable::read(input)?),* })
            }
        }
    };
    (enum $type:ty { $($number:literal: $variant:ident $(($($part:ident),+))? $({$($field:ident),+})?),* $(,)? }) => {
        impl $crate::data::portable::Portable for $type {
            fn write(&self, out: &mut $crate::data::portable::Output) {
                match self {
                    $(Self::$variant $(($($part),+))? $({$($field),+})? => {
                        out.put(&[$number]);
                        $($($crate::data::portable::Portable::write($part, out);)+)?
                        $($($crate::data::portable::Portable::write($field, out);)+)?
                    })*
                }
            }

            fn read(input: &mut $crate::data::portable::Input) -> Option<Self> {
                Some(match *input.take(1)?.first()? {
                    $($number => {
                        $($(let $part = $crate::data::portable::Portable::read(input)?;)+)?
                        Self::$variant $(($($part),+))?
                            $({$($field: $crate::data::portable::Portable::read(input)?),+})?
                    })*
                    _ => return None,
                })
            }
        }
    };
}
pub(crate) use portable;

portable!(struct crate::data::outcome::Position { line, column });
portable!(struct crate::data::source::SourceText { text, lone_surrogate });
portable!(enum crate::data::source::Language { 0: JavaScript, 1: TypeScript });
portable!(enum crate::data::cell::NameKind {
    0: Const, 1: Let, 2: Var, 3: Function, 4: Class, 5: Import, 6: Enum, 7: Namespace,
});

impl Portable for crate::value::Value {
    fn write(&self, out: &mut Output) {
        out.put_counted(self.nodes());
        self.blobs().len().write(out);
        self.blobs().iter().for_each(|blob| out.put_counted(blob));
    }

    fn read(input: &mut Input) -> Option<Self> {
        let nodes = input.take_counted()?.to_vec();
        let count = usize::read(input)?;
        let blobs: Option<Vec<_>> =
            (0..count).map(|_| input.take_counted().map(<[u8]>::to_vec)).collect();
        Some(Self::from_parts(nodes, blobs?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::source::Language;
    use std::collections::{BTreeMap, HashSet};

    #[derive(Debug, PartialEq)]
    enum Shape {
        Point,
        Circle(u32, String),
        Box { sides: Vec<usize> },
    }

    #[derive(Debug, PartialEq)]
    struct All {
        shapes: Vec<Shape>,
        named: BTreeMap<String, Option<bool>>,
        shared: Vec<Arc<Vec<u8>>>,
        text: Arc<str>,
        language: Language,
        set: HashSet<u64>,
        pair: (u8, [u16; 3]),
    }

    portable!(enum Shape { 0: Point, 1: Circle(radius, name), 2: Box { sides } });
    portable!(struct All { shapes, named, shared, text, language, set, pair });

    fn all() -> All {
        let shared = Arc::new(vec![1, 2, 3]);
        All {
            shapes: vec![
                Shape::Point,
                Shape::Circle(7, "é".to_owned()),
                Shape::Box { sides: vec![1, usize::MAX] },
            ],
            named: [("a".to_owned(), Some(true)), ("b".to_owned(), None)].into(),
            shared: vec![Arc::clone(&shared), Arc::default(), shared],
            text: "text".into(),
            language: Language::TypeScript,
            set: [5, u64::MAX].into(),
            pair: (9, [1, 2, 3]),
        }
    }

    #[test]
    fn data_arrives_as_it_was() {
        let mut out = Output::default();
        all().write(&mut out);
        let bytes = out.into_bytes();
        let mut input = Input::new(&bytes);
        let came = All::read(&mut input).expect("readable");
        assert!(input.is_over());
        assert_eq!(came, all());
        assert!(Arc::ptr_eq(&came.shared[0], &came.shared[2]));
        assert!(!Arc::ptr_eq(&came.shared[0], &came.shared[1]));
    }

    #[test]
    fn bytes_that_end_early_or_lie_are_refused() {
        let mut out = Output::default();
        all().write(&mut out);
        let bytes = out.into_bytes();
        for end in 0..bytes.len() {
            assert!(All::read(&mut Input::new(&bytes[..end])).is_none(), "{end}");
        }
        // A length far beyond the rest, another variant, no text, another type behind a shared pointer.
        assert!(Vec::<Shape>::read(&mut Input::new(&[0xff; 64])).is_none());
        assert!(Shape::read(&mut Input::new(&[3])).is_none());
        assert!(String::read(&mut Input::new(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff])).is_none());
        assert!(
            <(Arc<u8>, Arc<u16>)>::read(&mut Input::new(&[0, 0, 0, 0, 9, 0, 0, 0, 0])).is_none()
        );
    }
}
