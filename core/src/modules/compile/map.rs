//! The origin of each piece of printed code in the original text.
//!
//! In: the printer's mappings, in order. Out: for a place in the printed code, the place in the original of the piece
//! that it belongs to. Mappings are stored as variable-length differences, about four bytes each, and decoded from the
//! start on each lookup. Only errors look up.

/// A place: line and column from 0, the column in UTF-16 units. Lines are counted as the printer counts them.
pub(super) type Place = (u32, u32);

/// The mappings of one printed module.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Map {
    bytes: Box<[u8]>,
}

impl Map {
    /// Packs pairs of printed and original places; the printed ones must be ascending.
    pub(super) fn pack(pairs: impl Iterator<Item = (Place, Place)>) -> Self {
        let mut bytes = Vec::with_capacity(pairs.size_hint().0 * 5);
        let mut last = [0_i64; 4];
        for ((line, column), (from_line, from_column)) in pairs {
            if i64::from(line) != last[0] {
                last[1] = 0;
            }
            let next = [line, column, from_line, from_column].map(i64::from);
            for (next, last) in next.into_iter().zip(last) {
                write(&mut bytes, next - last);
            }
            last = next;
        }
        Self { bytes: bytes.into_boxed_slice() }
    }

    /// The original of the last mapping at or before `place`; if there is none, that of the first mapping on its line.
    pub(super) fn find(&self, place: Place) -> Option<Place> {
        let mut found = None;
        let mut bytes = self.bytes.iter().copied();
        let mut last = [0_i64; 4];
        while let Some(line) = read(&mut bytes) {
            if line != 0 {
                last[1] = 0;
            }
            last[0] += line;
            for value in last.iter_mut().skip(1) {
                *value += read(&mut bytes)?;
            }
            let here = (u32::try_from(last[0]).ok()?, u32::try_from(last[1]).ok()?);
            if here > place && (found.is_some() || here.0 > place.0) {
                break;
            }
            found = Some((u32::try_from(last[2]).ok()?, u32::try_from(last[3]).ok()?));
        }
        found
    }

    /// The size of the mappings in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }
}

fn write(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1) ^ (value >> 63);
    while rest > 0x7f {
        bytes.push(u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80);
        rest >>= 7;
    }
    bytes.push(u8::try_from(rest).unwrap_or_default());
}

fn read(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0_i64;
    for shift in (0..35).step_by(7) {
        let byte = bytes.next()?;
        value |= i64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((value >> 1) ^ -(value & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_piece_that_a_place_belongs_to() {
        let pairs =
            [((0, 0), (4, 2)), ((0, 9), (3, 1)), ((2, 5), (70_000, 9_000_000)), ((2, 6), (0, 0))];
        let map = Map::pack(pairs.into_iter());
        for (place, expected) in [
            ((0, 0), (4, 2)),
            ((0, 8), (4, 2)),
            ((0, 9), (3, 1)),
            ((1, 0), (3, 1)),
            ((2, 5), (70_000, 9_000_000)),
            ((9, 9), (0, 0)),
        ] {
            assert_eq!(map.find(place), Some(expected), "{place:?}");
        }
        assert_eq!(Map::default().find((0, 0)), None);
    }
}
