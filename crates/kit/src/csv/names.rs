//! The names of columns.
//!
//! In: the fields of a header. Out: a name for each, no two alike: an empty field is `column_N`, counted from 1, and a
//! name that is taken gets `_2` until it is free. Each name is found in about constant time, however many are alike.

use std::{borrow::Cow, collections::HashMap};

use crate::room::Room;

/// The property of the fields that no column has. No column has this name.
pub(super) const EXTRA: &str = "__parsed_extra";

/// The end that a taken name gets.
const AGAIN: &[u8] = b"_2";

/// The most bytes that the tables below hold for a column, beside its text.
const COLUMN_BYTES: usize = 320;

/// The names of the columns with these headings; `None` without room for them.
pub(super) fn names<'t>(
    headings: impl Iterator<Item = Cow<'t, [u8]>>,
    room: &mut dyn Room,
) -> Option<Vec<Vec<u8>>> {
    let mut taken = Taken::default();
    taken.free(EXTRA.as_bytes());
    let mut names = Vec::new();
    for (index, heading) in headings.enumerate() {
        if !room.take(COLUMN_BYTES + 2 * heading.len()) {
            return None;
        }
        let heading = match &*heading {
            [] => Cow::Owned(format!("column_{}", index + 1).into_bytes()),
            _ => heading,
        };
        let (root, times) = taken.free(&heading);
        if !room.take(AGAIN.len() * times as usize) {
            return None;
        }
        let mut name = root;
        name.extend(AGAIN.repeat(times as usize));
        names.push(name);
    }
    Some(names)
}

/// The names that are taken. Each is a root and the number of times that [`AGAIN`] follows it.
#[derive(Default)]
struct Taken {
    roots: HashMap<Vec<u8>, u32>,
    /// For each taken name, one behind it that may be free.
    later: HashMap<(u32, u32), u32>,
}

impl Taken {
    /// Takes that name, or the first free one behind it. Returns its root and its times.
    fn free(&mut self, name: &[u8]) -> (Vec<u8>, u32) {
        let mut root = name;
        let mut least = 0;
        while let Some(shorter) = root.strip_suffix(AGAIN) {
            root = shorter;
            least += 1;
        }
        let next = u32::try_from(self.roots.len()).unwrap_or(u32::MAX);
        let number = *self.roots.entry(root.to_vec()).or_insert(next);
        let mut free = least;
        let mut passed = Vec::new();
        while let Some(&later) = self.later.get(&(number, free)) {
            passed.push(free);
            free = later;
        }
        // All names on the way lead straight to the next one from now on.
        for times in passed {
            self.later.insert((number, times), free + 1);
        }
        self.later.insert((number, free), free + 1);
        (root.to_vec(), free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::FixedRoom;

    fn named(headings: &[&str], bytes: usize) -> Option<Vec<String>> {
        let headings = headings.iter().map(|heading| Cow::Borrowed(heading.as_bytes()));
        let names = names(headings, &mut FixedRoom::new(bytes))?;
        Some(names.into_iter().map(|name| String::from_utf8(name).expect("UTF-8")).collect())
    }

    #[test]
    fn no_two_names_are_alike() {
        let cases: [(&[&str], &[&str]); 7] = [
            (&["a", "a", "a"], &["a", "a_2", "a_2_2"]),
            (&["a", "a_2", "a"], &["a", "a_2", "a_2_2"]),
            (&["a_2", "a", "a"], &["a_2", "a", "a_2_2"]),
            (&["", "column_1", ""], &["column_1", "column_1_2", "column_3"]),
            (&["column_2", ""], &["column_2", "column_2_2"]),
            (&["_2", "_2", "_2_2"], &["_2", "_2_2", "_2_2_2"]),
            (&[EXTRA, "__proto__"], &["__parsed_extra_2", "__proto__"]),
        ];
        for (headings, expected) in cases {
            assert_eq!(named(headings, 1 << 20).expect("room"), expected);
        }
    }

    #[test]
    fn many_alike_take_time_and_room_as_their_names_do() {
        let alike = vec!["a"; 30_000];
        // The names have 900 MB.
        assert_eq!(named(&alike, 100 << 20), None);
        let mut mixed = vec!["a"; 3000];
        let long = "a_2".to_owned() + &"_2".repeat(1000);
        mixed.resize(60_000, &long);
        assert_eq!(named(&mixed, 100 << 20), None);
    }
}
