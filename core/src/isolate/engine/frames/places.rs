//! The engine's tables of places.
//!
//! In: the table of a function and an instruction. Out: the places around it. A table has a step for each place that the
//! engine noted: of code, of lines, of columns.

use std::ffi::c_int;

/// A line and a column from 1, the column in bytes, in the engine's numbers.
pub(super) type RawPlace = (c_int, c_int);

/// The last place in a function's table up to the instruction at `pc`, and the first place after it.
pub(super) fn around(table: &[u8], start: RawPlace, pc: usize) -> (RawPlace, Option<RawPlace>) {
    let mut bytes = table.iter().copied();
    let (mut at, mut before) = (0, start);
    while let Some((steps, place)) = step(&mut bytes, before) {
        at += steps;
        if at > pc {
            return (before, Some(place));
        }
        before = place;
    }
    (before, None)
}

/// The bytes of code to the next place in a table, and that place.
fn step(bytes: &mut impl Iterator<Item = u8>, from: RawPlace) -> Option<(usize, RawPlace)> {
    /// The engine packs small steps into one byte: the step of the line, from -1, and that of the instruction.
    const FIRST: u8 = 1;
    const LINES: u8 = 5;
    let step = bytes.next()?;
    let (code, lines) = if step == 0 {
        (usize::try_from(unsigned(bytes)?).ok()?, signed(bytes)?)
    } else {
        let step = step - FIRST;
        (usize::from(step / LINES), c_int::from(step % LINES) - 1)
    };
    let (line, column) = from;
    Some((code, (line.checked_add(lines)?, column.checked_add(signed(bytes)?)?)))
}

fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..32).step_by(7) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The engine puts the sign into the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<c_int> {
    let value = unsigned(bytes)?;
    Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
}
