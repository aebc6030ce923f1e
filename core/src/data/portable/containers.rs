//! Numbers, texts and collections as bytes.
//!
//! Numbers are little-endian; a length of eight bytes stands before the items of a collection.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::Hash,
    ops::Range,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{Input, Output, Portable};

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Portable for $type {
            fn write(&self, out: &mut Output) {
                out.put(&self.to_le_bytes());
            }

            fn read(input: &mut Input) -> Option<Self> {
                input.take(size_of::<Self>())?.try_into().ok().map(Self::from_le_bytes)
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, i32, usize);

impl Portable for bool {
    fn write(&self, out: &mut Output) {
        u8::from(*self).write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// An item of a collection, as the collection lends it.
trait Lent {
    fn write_to(self, out: &mut Output);
}

impl<T: Portable> Lent for &T {
    fn write_to(self, out: &mut Output) {
        self.write(out);
    }
}

impl<K: Portable, V: Portable> Lent for (&K, &V) {
    fn write_to(self, out: &mut Output) {
        self.0.write(out);
        self.1.write(out);
    }
}

/// Items, behind their number.
fn write_all(items: impl ExactSizeIterator<Item: Lent>, out: &mut Output) {
    items.len().write(out);
    items.for_each(|item| item.write_to(out));
}

/// Items, behind their number. Each of them takes a byte at least, so their number is bounded by what is there.
fn read_all<T: Portable, C: FromIterator<T>>(input: &mut Input) -> Option<C> {
    let count = usize::read(input)?;
    (0..count).map(|_| T::read(input)).collect()
}

macro_rules! collections {
    ($([$($parameters:tt)*] $type:ty),* $(,)?) => {
        $(impl<$($parameters)*> Portable for $type {
            fn write(&self, out: &mut Output) {
                write_all(self.iter(), out);
            }

            fn read(input: &mut Input) -> Option<Self> {
                read_all(input)
            }
        })*
    };
}

collections! {
    [T: Portable] Vec<T>,
    [T: Portable] Box<[T]>,
    [T: Portable + Eq + Hash] HashSet<T>,
    [T: Portable + Ord] BTreeSet<T>,
    [K: Portable + Eq + Hash, V: Portable] HashMap<K, V>,
    [K: Portable + Ord, V: Portable] BTreeMap<K, V>,
}

impl<T: Portable, const N: usize> Portable for [T; N] {
    fn write(&self, out: &mut Output) {
        for item in self {
            item.write(out);
        }
    }

    fn read(input: &mut Input) -> Option<Self> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::read(input)).collect();
        items?.try_into().ok()
    }
}

impl<A: Portable, B: Portable> Portable for (A, B) {
    fn write(&self, out: &mut Output) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some((A::read(input)?, B::read(input)?))
    }
}

impl<A: Portable, B: Portable, C: Portable> Portable for (A, B, C) {
    fn write(&self, out: &mut Output) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some((A::read(input)?, B::read(input)?, C::read(input)?))
    }
}

impl<T: Portable + Copy> Portable for Cell<T> {
    fn write(&self, out: &mut Output) {
        self.get().write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        T::read(input).map(Self::new)
    }
}

impl<T: Portable> Portable for Option<T> {
    fn write(&self, out: &mut Output) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some(if bool::read(input)? { Some(T::read(input)?) } else { None })
    }
}

impl<T: Portable, E: Portable> Portable for Result<T, E> {
    fn write(&self, out: &mut Output) {
        self.is_ok().write(out);
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some(if bool::read(input)? { Ok(T::read(input)?) } else { Err(E::read(input)?) })
    }
}

/// A moment, as the time of the system's clock. A moment that cannot be had again becomes the present one.
impl Portable for Instant {
    fn write(&self, out: &mut Output) {
        let then = SystemTime::now().checked_sub(self.elapsed());
        let since_epoch = then.and_then(|then| then.duration_since(UNIX_EPOCH).ok());
        let nanos = since_epoch.and_then(|since| u64::try_from(since.as_nanos()).ok());
        nanos.write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        let since_epoch = Option::<u64>::read(input)?.map(Duration::from_nanos);
        let then = since_epoch.and_then(|since| UNIX_EPOCH.checked_add(since));
        let elapsed = then.and_then(|then| then.elapsed().ok()).unwrap_or_default();
        let now = Self::now();
        Some(now.checked_sub(elapsed).unwrap_or(now))
    }
}

/// A thing that can be made again, and is not written.
impl<T> Portable for OnceLock<T> {
    fn write(&self, _: &mut Output) {}

    fn read(_: &mut Input) -> Option<Self> {
        Some(Self::new())
    }
}

impl<T: Portable> Portable for Range<T> {
    fn write(&self, out: &mut Output) {
        self.start.write(out);
        self.end.write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some(T::read(input)?..T::read(input)?)
    }
}

macro_rules! texts {
    ($($type:ty),*) => {
        $(impl Portable for $type {
            fn write(&self, out: &mut Output) {
                out.put_counted(self.as_bytes());
            }

            fn read(input: &mut Input) -> Option<Self> {
                str::from_utf8(input.take_counted()?).ok().map(Into::into)
            }
        })*
    };
}

texts!(String, Box<str>, Arc<str>);
