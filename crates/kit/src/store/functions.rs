//! SQL functions that take the place of SQLite's own.
//!
//! In: a connection. Out: `instr`, `like`, `glob`, `replace`, `trim`, `ltrim`, `rtrim` and `unhex` with the same
//! results, which take time in proportion to their arguments, or end when the call must stop. SQLite's own can take time in proportion to the product of two long values, and SQLite interrupts no
//! function. As `like` and `glob` are ours, SQLite does not use an index for their patterns.

#![expect(unsafe_code, reason = "functions for C code")]

use std::{
    collections::HashSet,
    ffi::{CStr, c_char, c_int, c_void},
    slice,
};

use memchr::memmem;
use rusqlite::{
    Connection,
    ffi::{
        SQLITE_BLOB, SQLITE_DETERMINISTIC, SQLITE_INNOCUOUS, SQLITE_INTERRUPT, SQLITE_LIMIT_LENGTH,
        SQLITE_NULL, SQLITE_OK, SQLITE_UTF8, sqlite3_context, sqlite3_context_db_handle,
        sqlite3_create_function_v2, sqlite3_free, sqlite3_limit, sqlite3_malloc64,
        sqlite3_result_blob64, sqlite3_result_error, sqlite3_result_error_code,
        sqlite3_result_error_nomem, sqlite3_result_error_toobig, sqlite3_result_int64,
        sqlite3_result_text64, sqlite3_result_value, sqlite3_user_data, sqlite3_value,
        sqlite3_value_blob, sqlite3_value_bytes, sqlite3_value_text, sqlite3_value_type,
    },
};

use super::{like, memory};

/// The longest pattern of `LIKE` and `GLOB`, bytes.
pub(super) const MOST_PATTERN_BYTES: c_int = 1_000;

/// One function: its context and arguments to its result.
type Body = fn(&Call<'_>) -> Result<(), Failure>;

/// A function of ours.
struct Function {
    name: &'static CStr,
    arguments: c_int,
    body: Body,
}

static FUNCTIONS: [Function; 12] = [
    Function { name: c"instr", arguments: 2, body: instr },
    Function { name: c"replace", arguments: 3, body: replace },
    Function { name: c"like", arguments: 2, body: like_function },
    Function { name: c"like", arguments: 3, body: like_function },
    Function { name: c"glob", arguments: 2, body: glob_function },
    Function { name: c"trim", arguments: 1, body: |call| trim(call, true, true) },
    Function { name: c"trim", arguments: 2, body: |call| trim(call, true, true) },
    Function { name: c"ltrim", arguments: 1, body: |call| trim(call, true, false) },
    Function { name: c"ltrim", arguments: 2, body: |call| trim(call, true, false) },
    Function { name: c"rtrim", arguments: 1, body: |call| trim(call, false, true) },
    Function { name: c"rtrim", arguments: 2, body: |call| trim(call, false, true) },
    Function { name: c"unhex", arguments: 2, body: unhex },
];

/// Puts all of them into a connection.
///
/// # Errors
/// SQLite has no memory left.
pub(super) fn install(sqlite: &Connection) -> rusqlite::Result<()> {
    for function in &FUNCTIONS {
        let data = std::ptr::from_ref(function).cast_mut().cast::<c_void>();
        // SAFETY: the connection is open; the data is static; `run` reads it as what it is.
        let code = unsafe {
            sqlite3_create_function_v2(
                sqlite.handle(),
                function.name.as_ptr(),
                function.arguments,
                SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                data,
                Some(run),
                None,
                None,
                None,
            )
        };
        if code != SQLITE_OK {
            return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
        }
    }
    Ok(())
}

/// A failure of a function.
enum Failure {
    /// The call must stop.
    Stopped,
    NoMemory,
    TooLong,
    Message(&'static CStr),
}

/// A call of a function.
struct Call<'a> {
    context: *mut sqlite3_context,
    arguments: &'a [*mut sqlite3_value],
}

unsafe extern "C" fn run(
    context: *mut sqlite3_context,
    count: c_int,
    arguments: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite gives `count` arguments, and the data of `install`.
    let (function, arguments) = unsafe {
        let function = sqlite3_user_data(context).cast::<Function>();
        (&*function, slice::from_raw_parts(arguments, usize::try_from(count).unwrap_or(0)))
    };
    let call = Call { context, arguments };
    let done = if memory::is_stopped() { Err(Failure::Stopped) } else { (function.body)(&call) };
    let Err(failure) = done else { return };
    // SAFETY: the context is that of the running call.
    unsafe {
        match failure {
            Failure::Stopped => sqlite3_result_error_code(context, SQLITE_INTERRUPT),
            Failure::NoMemory => sqlite3_result_error_nomem(context),
            Failure::TooLong => sqlite3_result_error_toobig(context),
            Failure::Message(text) => sqlite3_result_error(context, text.as_ptr(), -1),
        }
    }
}

impl Call<'_> {
    fn is(&self, argument: usize, kind: c_int) -> bool {
        // SAFETY: an argument of the running call.
        unsafe { sqlite3_value_type(self.arguments[argument]) == kind }
    }

    /// The text of an argument; `None` for NULL.
    ///
    /// # Errors
    /// There is no memory for it.
    fn text(&self, argument: usize) -> Result<Option<&[u8]>, Failure> {
        if self.is(argument, SQLITE_NULL) {
            return Ok(None);
        }
        let value = self.arguments[argument];
        // SAFETY: an argument of the running call. Nothing converts it until the function ends, so the text stays.
        let (text, bytes) = unsafe { (sqlite3_value_text(value), sqlite3_value_bytes(value)) };
        if text.is_null() {
            return Err(Failure::NoMemory);
        }
        // SAFETY: the text has that many bytes.
        Ok(Some(unsafe { slice::from_raw_parts(text, usize::try_from(bytes).unwrap_or(0)) }))
    }

    /// The text of an argument up to its first NUL, as C code reads it.
    fn c_text(&self, argument: usize) -> Result<Option<&[u8]>, Failure> {
        let text = self.text(argument)?;
        Ok(text.map(|text| &text[..memchr::memchr(0, text).unwrap_or(text.len())]))
    }

    /// The bytes of a blob.
    fn blob(&self, argument: usize) -> &[u8] {
        let value = self.arguments[argument];
        // SAFETY: as in `text`.
        let (blob, bytes) = unsafe { (sqlite3_value_blob(value), sqlite3_value_bytes(value)) };
        if blob.is_null() {
            return &[];
        }
        // SAFETY: the blob has that many bytes.
        unsafe { slice::from_raw_parts(blob.cast(), usize::try_from(bytes).unwrap_or(0)) }
    }

    fn answer_number(&self, number: usize) {
        // SAFETY: the context is that of the running call.
        unsafe { sqlite3_result_int64(self.context, i64::try_from(number).unwrap_or(i64::MAX)) }
    }

    fn answer_argument(&self, argument: usize) {
        // SAFETY: the context and the argument are those of the running call.
        unsafe { sqlite3_result_value(self.context, self.arguments[argument]) }
    }

    /// Memory of SQLite for a result of so many bytes.
    fn room(&self, bytes: usize) -> Result<Room, Failure> {
        // SAFETY: the context is that of the running call; a negative limit only reads it.
        let most = unsafe {
            sqlite3_limit(sqlite3_context_db_handle(self.context), SQLITE_LIMIT_LENGTH, -1)
        };
        if c_int::try_from(bytes).map_or(true, |bytes| bytes > most) {
            return Err(Failure::TooLong);
        }
        // SAFETY: any size may be asked for.
        let start = unsafe { sqlite3_malloc64(bytes.max(1) as u64) }.cast::<u8>();
        if start.is_null() {
            return Err(Failure::NoMemory);
        }
        Ok(Room { start, filled: 0, bytes })
    }

    fn answer_text(&self, room: Room) {
        let (start, bytes) = room.into_parts();
        // SAFETY: SQLite allocated and takes the memory, all of which is written.
        unsafe {
            let text = start.cast::<c_char>();
            let encoding = u8::try_from(SQLITE_UTF8).unwrap_or(1);
            sqlite3_result_text64(self.context, text, bytes as u64, Some(sqlite3_free), encoding);
        }
    }

    fn answer_blob(&self, room: Room) {
        let (start, bytes) = room.into_parts();
        // SAFETY: as in `answer_text`.
        unsafe {
            sqlite3_result_blob64(self.context, start.cast(), bytes as u64, Some(sqlite3_free));
        }
    }
}

/// Memory of SQLite that is being filled.
struct Room {
    start: *mut u8,
    filled: usize,
    bytes: usize,
}

impl Room {
    /// Appends bytes, for which there is room.
    fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.bytes - self.filled, "the room was counted before");
        // SAFETY: there is room behind the part that is filled, and SQLite's memory is nobody else's.
        unsafe {
            self.start.add(self.filled).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.filled += bytes.len();
    }

    /// The memory, which the caller owns, and the length of the filled part.
    fn into_parts(self) -> (*mut u8, usize) {
        let room = std::mem::ManuallyDrop::new(self);
        (room.start, room.filled)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: the memory is SQLite's, and still ours.
        unsafe { sqlite3_free(self.start.cast()) }
    }
}

/// `instr(text, part)`: the place of the first occurrence, from 1; 0 if there is none.
fn instr(call: &Call<'_>) -> Result<(), Failure> {
    if call.is(0, SQLITE_BLOB) && call.is(1, SQLITE_BLOB) {
        let found = memmem::find(call.blob(0), call.blob(1));
        call.answer_number(found.map_or(0, |at| at + 1));
        return Ok(());
    }
    let (Some(text), Some(part)) = (call.text(0)?, call.text(1)?) else { return Ok(()) };
    let characters = |bytes: &[u8]| bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    call.answer_number(memmem::find(text, part).map_or(0, |at| characters(&text[..at]) + 1));
    Ok(())
}

/// `replace(text, part, by)`.
fn replace(call: &Call<'_>) -> Result<(), Failure> {
    let (Some(text), Some(part), Some(by)) = (call.text(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(());
    };
    // C code takes a part that begins with NUL for an empty one.
    if matches!(part.first(), None | Some(0)) {
        call.answer_argument(0);
        return Ok(());
    }
    let finder = memmem::Finder::new(part);
    let mut pace = Pace::default();
    let mut times = 0_usize;
    for _ in finder.find_iter(text) {
        pace.step()?;
        times += 1;
    }
    let length = text.len() - times * part.len();
    let mut room = call.room(length.saturating_add(times.saturating_mul(by.len())))?;
    let mut copied = 0;
    for at in finder.find_iter(text) {
        pace.step()?;
        room.push(&text[copied..at]);
        room.push(by);
        copied = at + part.len();
    }
    room.push(&text[copied..]);
    call.answer_text(room);
    Ok(())
}

/// Looks from time to time whether the call must stop.
#[derive(Default)]
struct Pace(u32);

impl Pace {
    fn step(&mut self) -> Result<(), Failure> {
        /// Steps between two looks.
        const STEPS: u32 = 1 << 13;
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(STEPS) && memory::is_stopped() {
            return Err(Failure::Stopped);
        }
        Ok(())
    }
}

/// `like(pattern, text, escape?)`: `text LIKE pattern ESCAPE escape`.
fn like_function(call: &Call<'_>) -> Result<(), Failure> {
    let mut escape = None;
    if call.arguments.len() == 3 {
        let Some(text) = call.c_text(2)? else { return Ok(()) };
        let text = String::from_utf8_lossy(text);
        let mut characters = text.chars();
        escape = characters.next();
        if escape.is_none() || characters.next().is_some() {
            return Err(Failure::Message(c"ESCAPE expression must be a single character"));
        }
    }
    compare(call, like::Kind::Like { escape })
}

/// `glob(pattern, text)`: `text GLOB pattern`.
fn glob_function(call: &Call<'_>) -> Result<(), Failure> {
    compare(call, like::Kind::Glob)
}

fn compare(call: &Call<'_>, kind: like::Kind) -> Result<(), Failure> {
    let most = usize::try_from(MOST_PATTERN_BYTES).unwrap_or(0);
    if call.text(0)?.is_some_and(|pattern| pattern.len() > most) {
        return Err(Failure::Message(c"LIKE or GLOB pattern too complex"));
    }
    let (Some(pattern), Some(text)) = (call.c_text(0)?, call.c_text(1)?) else { return Ok(()) };
    let matched = like::matches(kind, pattern, text, memory::is_stopped);
    call.answer_number(usize::from(matched.map_err(|like::Stopped| Failure::Stopped)?));
    Ok(())
}

/// `trim(text, characters?)`, `ltrim`, `rtrim`.
fn trim(call: &Call<'_>, from_start: bool, from_end: bool) -> Result<(), Failure> {
    let Some(mut text) = call.text(0)? else { return Ok(()) };
    let mut pace = Pace::default();
    let mut set = HashSet::from([' ']);
    if call.arguments.len() == 2 {
        let Some(characters) = call.c_text(1)? else { return Ok(()) };
        set = character_set(characters, &mut pace)?;
    }
    while from_start
        && let Some((first, end)) = like::next_char(text, 0)
        && set.contains(&first)
    {
        pace.step()?;
        text = &text[end..];
    }
    while from_end
        && let Some(start) = last_start(text)
        && like::next_char(text, start).is_some_and(|(last, _)| set.contains(&last))
    {
        pace.step()?;
        text = &text[..start];
    }
    let mut room = call.room(text.len())?;
    room.push(text);
    call.answer_text(room);
    Ok(())
}

/// The set of the characters of a text. Unicode bounds it.
fn character_set(text: &[u8], pace: &mut Pace) -> Result<HashSet<char>, Failure> {
    let mut set = HashSet::new();
    for c in Characters(text) {
        pace.step()?;
        set.insert(c);
    }
    Ok(set)
}

/// The characters of a text.
struct Characters<'a>(&'a [u8]);

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let (c, end) = like::next_char(self.0, 0)?;
        self.0 = &self.0[end..];
        Some(c)
    }
}

/// The start of the last character of a text.
fn last_start(text: &[u8]) -> Option<usize> {
    let last = text.len().checked_sub(1)?;
    let earliest = last.saturating_sub(3);
    let start = (earliest..=last).rev().find(|at| text[*at] & 0xC0 != 0x80).unwrap_or(last);
    let ends_there = like::next_char(text, start).is_some_and(|(_, end)| end == text.len());
    Some(if ends_there { start } else { last })
}

/// `unhex(text, ignored)`.
fn unhex(call: &Call<'_>) -> Result<(), Failure> {
    let (Some(text), Some(ignored)) = (call.text(0)?, call.c_text(1)?) else { return Ok(()) };
    let mut pace = Pace::default();
    let ignored = character_set(ignored, &mut pace)?;
    let mut room = call.room(text.len() / 2)?;
    let mut digits = Characters(text);
    while let Some(first) = digits.next() {
        pace.step()?;
        let Some(high) = first.to_digit(16) else {
            if ignored.contains(&first) {
                continue;
            }
            return Ok(());
        };
        let Some(low) = digits.next().and_then(|c| c.to_digit(16)) else { return Ok(()) };
        room.push(&[u8::try_from(high * 16 + low).unwrap_or(u8::MAX)]);
    }
    call.answer_blob(room);
    Ok(())
}
