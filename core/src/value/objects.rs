//! Weights of the properties of objects.
//!
//! In: objects, as they are opened, given keys and closed, in the order of a message. Out: the weight of each property
//! for its reader. A record of known keys takes some bytes a property. But Node.js keeps a hidden class for each
//! sequence of keys that an object begins with, so the same ten keys in a hundred orders take far more than a hundred
//! objects of one order. It makes a table of an object with many keys, and another one for keys that are integers. This
//! file models all of that for objects as `lib/decode.ts` makes them.

use std::collections::HashMap;

use super::{Str, weight};

/// A property of an object of a known class, beyond the value.
const PROPERTY: usize = 24;
/// The text of a key at its first use in the message.
const KEY: usize = 40;
/// A class of objects that continues another one.
const CLASS: usize = 120;
/// A class that continues another one which already has a continuation, and for each property so far.
const BRANCH: usize = 160;
const BRANCH_PROPERTY: usize = 24;
/// The most properties of an object that is no table.
const MOST_IN_CLASS: u32 = 18;
/// A property of an object that is a table.
const TABLE_PROPERTY: usize = 72;
/// The store of the elements of an object that has any.
const ELEMENTS: usize = 160;
/// An element of it.
const ELEMENT: usize = 72;

/// The open objects, innermost last, and the keys and classes seen before.
#[derive(Debug, Default)]
pub(super) struct Objects {
    open: Vec<Open>,
    classes: Classes,
    /// For each key, whether it is an index. The last keys are left out if they are none.
    indices: Vec<bool>,
}

#[derive(Debug, Default)]
struct Open {
    class: Class,
    /// Properties whose keys are no indices.
    named: u32,
    has_elements: bool,
}

impl Objects {
    pub(super) fn open(&mut self) {
        self.open.push(Open::default());
    }

    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    /// The weight of a property of the innermost object whose key is new in the message.
    pub(super) fn new_key(&mut self, key: u32, text: Str<'_>) -> usize {
        if is_index(text) {
            self.indices.resize(key as usize + 1, false);
            self.indices[key as usize] = true;
        }
        KEY + weight::of_str(text) + self.known_key(key)
    }

    /// The weight of a property of the innermost object, by the number of its key.
    #[inline]
    pub(super) fn known_key(&mut self, key: u32) -> usize {
        let Some(object) = self.open.last_mut() else { return PROPERTY };
        if self.indices.get(key as usize).is_some_and(|is_index| *is_index) {
            let store = if object.has_elements { 0 } else { ELEMENTS };
            object.has_elements = true;
            return store + ELEMENT;
        }
        object.named = object.named.saturating_add(1);
        if object.named > MOST_IN_CLASS {
            let table = if object.named == MOST_IN_CLASS + 1 { MOST_IN_CLASS as usize } else { 0 };
            return (table + 1) * TABLE_PROPERTY;
        }
        let (class, step) = self.classes.follow(object.class, key);
        object.class = class;
        PROPERTY
            + match step {
                Step::Known => 0,
                Step::First => CLASS,
                Step::Branch => BRANCH + BRANCH_PROPERTY * object.named as usize,
            }
    }
}

/// Whether a key is the text of an array index, or of an integer that an engine may take for one.
fn is_index(key: Str<'_>) -> bool {
    /// The digits of 2^32.
    const MOST_DIGITS: usize = 10;
    match key {
        Str::Utf8(text) => {
            let digits = text.as_bytes();
            (1..=MOST_DIGITS).contains(&digits.len())
                && digits.iter().all(u8::is_ascii_digit)
                && (digits.len() == 1 || digits[0] != b'0')
        }
        Str::Utf16(_) => false,
    }
}

/// A class of objects, by its number; the first is that of the empty object.
type Class = u32;

/// The effect of a property on an object's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A class that existed.
    Known,
    /// A new class, the first to continue its predecessor.
    First,
    /// A new class beside others.
    Branch,
}

/// The classes of a message, and their successors.
#[derive(Debug, Default)]
struct Classes {
    /// For each class, the first key that followed, and its successor. Where all objects are alike, this answers.
    first: Vec<Option<(u32, Class)>>,
    /// All other keys. Hashed with a secret: this table is on the host's side, too, where a compromised worker may
    /// choose the keys.
    others: HashMap<(Class, u32), Class>,
}

impl Classes {
    /// The class of an object of that class with one more key.
    #[inline]
    fn follow(&mut self, class: Class, key: u32) -> (Class, Step) {
        match self.first.get(class as usize) {
            Some(Some((known, next))) if *known == key => (*next, Step::Known),
            Some(Some(_)) => self.branch(class, key),
            _ => (self.begin(class, key), Step::First),
        }
    }

    fn branch(&mut self, class: Class, key: u32) -> (Class, Step) {
        if let Some(&next) = self.others.get(&(class, key)) {
            return (next, Step::Known);
        }
        let next = self.add();
        self.others.insert((class, key), next);
        (next, Step::Branch)
    }

    fn begin(&mut self, class: Class, key: u32) -> Class {
        if self.first.is_empty() {
            self.first.push(None);
        }
        let next = self.add();
        if let Some(first) = self.first.get_mut(class as usize) {
            *first = Some((key, next));
        }
        next
    }

    fn add(&mut self) -> Class {
        self.first.push(None);
        u32::try_from(self.first.len() - 1).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of the properties of an object with these keys.
    fn weigh(objects: &mut Objects, keys: &[u32]) -> usize {
        objects.open();
        let weight = keys.iter().map(|&key| objects.known_key(key)).sum();
        objects.close();
        weight
    }

    #[test]
    fn a_class_is_paid_for_once() {
        let mut objects = Objects::default();
        assert_eq!(weigh(&mut objects, &[1, 2, 3]), 3 * (PROPERTY + CLASS));
        assert_eq!(weigh(&mut objects, &[1, 2, 3]), 3 * PROPERTY);
        assert_eq!(weigh(&mut objects, &[1, 2, 4]), 3 * PROPERTY + BRANCH + 3 * BRANCH_PROPERTY);
        assert_eq!(weigh(&mut objects, &[1, 2, 4]), 3 * PROPERTY);
    }

    #[test]
    fn many_properties_are_a_table() {
        let mut objects = Objects::default();
        let keys: Vec<u32> = (0..MOST_IN_CLASS + 2).collect();
        let first = MOST_IN_CLASS as usize;
        assert_eq!(
            weigh(&mut objects, &keys),
            first * (PROPERTY + CLASS) + (first + 2) * TABLE_PROPERTY
        );
    }

    #[test]
    fn integers_are_elements() {
        let mut objects = Objects::default();
        objects.open();
        let weight = objects.new_key(0, Str::Utf8("17"));
        assert_eq!(weight, KEY + ELEMENTS + ELEMENT);
        assert_eq!(objects.known_key(0), ELEMENT);
        objects.close();
        let indices = ["0", "1", "4294967294", "9999999999"];
        assert!(indices.iter().all(|key| is_index(Str::Utf8(key))));
        let others = ["", "00", "01", "-1", "1.5", "1e3", "a", "12345678901", " 1"];
        assert!(others.iter().all(|key| !is_index(Str::Utf8(key))));
    }
}
