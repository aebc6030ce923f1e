//! `parseCSV(text, { header?, delimiter? })`.
//!
//! In: a CSV text as RFC 4180 has it, with the liberties of `fields.rs`. Out: its rows as arrays of texts, or with
//! `header` as objects by the names that `names.rs` gives to the columns. A field that a row lacks is `''`; those that no
//! column has are in `__parsed_extra`.
//!
//! The text is read twice: first to find out how much its rows take, which is charged to the run, then to write them.

mod fields;
mod names;

use isolane::{
    Completion, NativeAnswer, NativeCall, NativeFunction, Value,
    value::{Event, Str, Writer},
};

use self::fields::{Delimiter, Field, Fields};
use crate::{
    error::KitError,
    message_walk::{Node, Place, Visit, Walk},
    room::{PartOf, Room, RunRoom},
    thrown, wtf8,
};

/// Arguments of at most so many bytes may be answered on the calling thread, which serves other runs too.
const SMALL_BYTES: usize = 8 << 10;

/// Work on the calling thread holds at most so many bytes.
const SMALL_ROOM_BYTES: usize = 64 << 10;

/// The tag of a node, and the longest LEB128 of a number of 32 bits.
const NODE_BYTES: usize = 6;

/// A writer's buffer grows to twice the message at most.
const GROWTH: usize = 2;

/// After so many fields the work asks whether it is still wanted.
const FIELDS_A_LOOK: usize = 1 << 16;

/// `parseCSV(text, { header?, delimiter? })`: the rows of a CSV text.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParseCsv;

impl NativeFunction for ParseCsv {
    fn name(&self) -> &'static str {
        "parseCSV"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let mut room = RunRoom::new(call.run.clone());
        if call.args.nodes().len() <= SMALL_BYTES
            && let Some(completion) =
                answer(&call.args, &mut PartOf::new(&mut room, SMALL_ROOM_BYTES))
        {
            return completion.into();
        }
        NativeAnswer::blocking(move || {
            // Without room the run has ended, and nobody reads the error.
            answer(&call.args, &mut room).unwrap_or_else(|| {
                thrown("RangeError", "the rows take more memory than the run may hold")
            })
        })
    }
}

/// The outcome of a call; `None` without room for it.
fn answer(arguments: &Value, room: &mut dyn Room) -> Option<Completion> {
    match Arguments::read(arguments) {
        Ok(arguments) => rows(&arguments, room).map(Ok),
        Err(error) => Some(Err(error.to_value())),
    }
}

/// The arguments of a call.
struct Arguments<'a> {
    text: Str<'a>,
    has_header: bool,
    delimiter: Delimiter,
}

impl<'a> Arguments<'a> {
    /// Options that `parseCSV` does not know are ignored.
    fn read(arguments: &'a Value) -> Result<Self, KitError> {
        let wrong = |message| Err(KitError::wrong_arguments(message));
        let mut walk = Walk::new(arguments);
        let (mut text, mut has_header, mut delimiter) = (None, false, Some(Delimiter::COMMA));
        while let Ok(Some(visit)) = walk.step() {
            let Visit::Node(place, node) = visit else { continue };
            match (walk.depth(), place, node) {
                (1, Place::Element(0), Node::Plain(Event::String(first))) => text = Some(first),
                (1, Place::Element(1), node) if !may_be_options(node) => {
                    return wrong("the options of parseCSV are an object");
                }
                (1, Place::Element(0 | 2..), _) => break,
                (2, _, Node::Plain(Event::Undefined)) => {}
                (2, Place::Property(Str::Utf8("header")), node) => match node {
                    Node::Plain(Event::Bool(header)) => has_header = header,
                    _ => return wrong("the option 'header' of parseCSV is true or false"),
                },
                (2, Place::Property(Str::Utf8("delimiter")), node) => {
                    delimiter = match node {
                        Node::Plain(Event::String(Str::Utf8(text))) => Delimiter::new(text),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        let Some(delimiter) = delimiter else {
            return wrong(
                "the option 'delimiter' of parseCSV is one character, no quote and no line end",
            );
        };
        let Some(text) = text else { return wrong("parseCSV takes a text") };
        Ok(Self { text, has_header, delimiter })
    }
}

fn may_be_options(node: Node<'_>) -> bool {
    matches!(node, Node::Plain(Event::Object | Event::Undefined | Event::Null))
}

/// The rows of a text, as a message; `None` without room for them.
fn rows(arguments: &Arguments<'_>, room: &mut dyn Room) -> Option<Value> {
    let converted;
    let text = match arguments.text {
        Str::Utf8(text) => text.as_bytes(),
        Str::Utf16(bytes) => {
            // Three bytes at most for two.
            if !room.take(2 * bytes.len()) {
                return None;
            }
            converted = wtf8::from_utf16(bytes);
            &converted
        }
    };
    let mut fields = Fields::new(text, arguments.delimiter);
    let columns = if arguments.has_header { Some(columns(&mut fields, room)?) } else { None };
    let columns = columns.as_deref();
    let census = Census::of(fields.clone(), columns, room)?;
    room.take(census.held_bytes()).then_some(())?;
    write(fields, columns, &census, room)
}

/// The names of the columns, by the first row.
fn columns(fields: &mut Fields<'_>, room: &mut dyn Room) -> Option<Vec<Vec<u8>>> {
    let mut is_done = false;
    let headings = std::iter::from_fn(|| {
        let field = if is_done { None } else { fields.next() }?;
        is_done = field.is_last;
        Some(field.text())
    });
    names::names(headings, room)
}

/// The room that rows take.
#[derive(Debug, Default)]
struct Census {
    rows: usize,
    /// The most fields of a row.
    widest: usize,
    message_bytes: usize,
}

impl Census {
    /// The census of all rows, or all but the first one if that has the names of the columns.
    fn of(fields: Fields<'_>, columns: Option<&[Vec<u8>]>, room: &dyn Room) -> Option<Self> {
        let names = columns.unwrap_or_default();
        let mut census = Self { message_bytes: NODE_BYTES, ..Self::default() };
        let keys: usize = (0..names.len()).map(key_bytes).sum();
        census.add(names.iter().map(|name| NODE_BYTES + 2 * name.len()).sum());
        census.add(names::EXTRA.len());
        let mut width = 0;
        for (index, field) in fields.enumerate() {
            if index % FIELDS_A_LOOK == 0 && !room.is_wanted() {
                return None;
            }
            // A text with a lone surrogate takes two bytes for each unit.
            let length = field.length();
            census.add(2 + varint_bytes(length) + length);
            width += 1;
            if field.is_last {
                census.rows += 1;
                census.widest = census.widest.max(width);
                census.add(NODE_BYTES);
                if columns.is_some() {
                    // An empty text for each field that the row lacks, and the array of those that no column has.
                    census.add(keys + 2 * names.len().saturating_sub(width) + 2 * NODE_BYTES);
                }
                width = 0;
            }
        }
        Some(census)
    }

    fn add(&mut self, bytes: usize) {
        self.message_bytes = self.message_bytes.saturating_add(bytes);
    }

    /// The most bytes that their writer holds.
    fn held_bytes(&self) -> usize {
        let row = self.widest.saturating_mul(size_of::<Field<'_>>());
        self.message_bytes.saturating_mul(GROWTH).saturating_add(row)
    }
}

/// The bytes of a key that is known.
fn key_bytes(number: usize) -> usize {
    varint_bytes(number + 3)
}

/// The bytes of a number in LEB128.
fn varint_bytes(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn write(
    fields: Fields<'_>,
    columns: Option<&[Vec<u8>]>,
    census: &Census,
    room: &dyn Room,
) -> Option<Value> {
    let mut writer = Writer::new();
    let mut keys = Keys { columns: columns.unwrap_or_default(), written: 0, extra: None };
    writer.array(u32::try_from(census.rows).ok()?);
    let mut row = Vec::with_capacity(census.widest);
    for (index, field) in fields.enumerate() {
        if index % FIELDS_A_LOOK == 0 && !room.is_wanted() {
            return None;
        }
        row.push(field);
        if field.is_last {
            match columns {
                Some(_) => write_object(&mut writer, &mut keys, &row)?,
                None => write_array(&mut writer, &row)?,
            }
            row.clear();
        }
    }
    Some(writer.finish())
}

fn write_array(writer: &mut Writer, row: &[Field<'_>]) -> Option<()> {
    writer.array(u32::try_from(row.len()).ok()?);
    for field in row {
        write_text(writer, &field.text());
    }
    Some(())
}

/// The keys of the rows' objects.
struct Keys<'a> {
    columns: &'a [Vec<u8>],
    /// How many of the columns' names the message holds.
    written: usize,
    /// The number of [`names::EXTRA`], once the message holds it.
    extra: Option<u32>,
}

fn write_object(writer: &mut Writer, keys: &mut Keys<'_>, row: &[Field<'_>]) -> Option<()> {
    writer.object();
    for (index, name) in keys.columns.iter().enumerate() {
        if index < keys.written {
            writer.known_key(u32::try_from(index).ok()?);
        } else {
            match std::str::from_utf8(name) {
                Ok(name) => writer.new_key(name),
                Err(_) => writer.new_key16(&wtf8::to_utf16(name)),
            };
            keys.written += 1;
        }
        match row.get(index) {
            Some(field) => write_text(writer, &field.text()),
            None => writer.string(""),
        }
    }
    if let Some(surplus @ [_, ..]) = row.get(keys.columns.len()..) {
        match keys.extra {
            Some(number) => writer.known_key(number),
            None => keys.extra = Some(writer.new_key(names::EXTRA)),
        }
        write_array(writer, surplus)?;
    }
    writer.end_object();
    Some(())
}

fn write_text(writer: &mut Writer, text: &[u8]) {
    match std::str::from_utf8(text) {
        Ok(text) => writer.string(text),
        Err(_) => writer.string16(&wtf8::to_utf16(text)),
    }
}
