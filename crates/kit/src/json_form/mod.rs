//! The JSON form of a value: what results, `state` and the browser's answers become. `parser.rs` reads it again.
//!
//! In: a message. Out: its text as `JSON.stringify` writes it, or the reason why there is none. Beyond that a bigint is
//! a number if it is safe, else a text; a Map is an object, or pairs if a key is no text; a Set is an array; bytes are
//! Base64; an Error has its name and its message. `undefined`, alone, is `null`.
//!
//! The message is read once, or twice if it may have Maps, without recursion. An object that stands in several places
//! is written once; its text is copied for the others. So the time is linear in the message and in the text, whose bytes
//! are taken from a [`Room`] before they are made.

mod number;
mod parser;
mod text;
mod writer;

use isolane::{
    Step, Value,
    value::{Event, Kinds, Malformed, Str},
};

pub use self::parser::{ParseFault, check_json, parse_json};
use self::writer::Writer;
use crate::{
    message_walk::{Node, Place, Visit, Walk},
    room::Room,
};

/// Why a value has no JSON form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonFault {
    /// A cycle or a promise. The message of the SerializationError names its path.
    Unserializable(String),
    /// There is no room for the text, or nobody waits for it any more.
    NoRoom,
    /// The bytes are no message.
    Malformed,
}

impl From<Malformed> for JsonFault {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// After so many nodes the work asks whether it is still wanted.
const NODES_A_LOOK: usize = 1 << 12;

/// Steps of a path that are shown from either end.
const SHOWN_STEPS: usize = 12;

/// The JSON form of a value. `root` begins the path in an error: `result`.
///
/// # Errors
/// [`JsonFault::Unserializable`] for a cycle and for a promise; [`JsonFault::NoRoom`].
pub fn json_form(value: &Value, root: &str, room: &mut dyn Room) -> Result<String, JsonFault> {
    let may_have_maps = value.kinds().intersects(Kinds::COLLECTIONS);
    let keyed_maps = if may_have_maps { keyed_maps(value, room)? } else { Vec::new() };
    let form = Form {
        value,
        root,
        keyed_maps,
        out: Writer::new(room),
        levels: Vec::new(),
        objects: Vec::new(),
    };
    form.write()
}

/// The numbers of the Maps whose keys are texts, rising.
fn keyed_maps(value: &Value, room: &mut dyn Room) -> Result<Vec<u32>, JsonFault> {
    let mut walk = Walk::new(value);
    let mut objects = 0;
    // The object of each open container, and whether it is a Map with such keys only so far.
    let mut open: Vec<(u32, bool)> = Vec::new();
    let mut maps = Vec::new();
    let mut nodes = 0;
    while let Some(visit) = walk.step()? {
        nodes += 1;
        if nodes % NODES_A_LOOK == 0 && !room.is_wanted() {
            return Err(JsonFault::NoRoom);
        }
        let Visit::Node(place, node) = visit else {
            if let Some((map, true)) = open.pop() {
                room.take(2 * size_of::<u32>()).then_some(()).ok_or(JsonFault::NoRoom)?;
                maps.push(map);
            }
            continue;
        };
        let is_text = matches!(node, Node::Plain(Event::String(_)));
        if let (Place::MapKey(_), false, Some((_, is_keyed))) = (place, is_text, open.last_mut()) {
            *is_keyed = false;
        }
        if is_container(&node) {
            open.push((objects, matches!(node, Node::Plain(Event::Map(_)))));
        }
        objects += u32::from(is_object(&node));
    }
    maps.sort_unstable();
    Ok(maps)
}

fn is_object(node: &Node<'_>) -> bool {
    match node {
        Node::Error { .. } => true,
        Node::Plain(event) => event.is_object(),
    }
}

fn is_container(node: &Node<'_>) -> bool {
    matches!(
        node,
        Node::Plain(
            Event::Object | Event::Array(_) | Event::SparseArray(_) | Event::Map(_) | Event::Set(_)
        )
    )
}

/// How a container is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Object,
    Array,
    /// An array with holes, of that length.
    Sparse(u32),
    /// A Map as an object.
    KeyedMap,
    /// A Map as an array of pairs.
    Pairs,
}

/// A container that is being written.
#[derive(Clone, Copy, Debug)]
struct Level<'a> {
    shape: Shape,
    object: usize,
    /// How many members or elements were written.
    written: u32,
    /// The place of the node that is being written.
    place: Place<'a>,
    /// The key of a Map's entry.
    key: Str<'a>,
}

/// The text of an object of the message.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// It is not complete: it holds the one that is being written.
    Open,
    At(usize, usize),
    /// It has none.
    Left,
}

struct Form<'a, 'r> {
    value: &'a Value,
    root: &'r str,
    keyed_maps: Vec<u32>,
    out: Writer<'r>,
    levels: Vec<Level<'a>>,
    objects: Vec<Written>,
}

impl<'a> Form<'a, '_> {
    fn write(mut self) -> Result<String, JsonFault> {
        let mut walk = Walk::new(self.value);
        let mut nodes = 0;
        while let Some(visit) = walk.step()? {
            nodes += 1;
            if nodes % NODES_A_LOOK == 0 {
                self.out.look()?;
            }
            match visit {
                Visit::Node(place, node) => self.node(place, node)?,
                Visit::End => self.end()?,
            }
        }
        self.out.finish()
    }

    fn node(&mut self, place: Place<'a>, node: Node<'a>) -> Result<(), JsonFault> {
        if let Some(level) = self.levels.last_mut() {
            level.place = place;
        }
        let index = self.objects.len();
        if is_object(&node) {
            self.out.take_beside(2 * size_of::<Written>())?;
            self.objects.push(if is_left_out(&node) { Written::Left } else { Written::Open });
        }
        if let (Place::MapKey(_), Some(level)) = (place, self.levels.last_mut())
            && level.shape == Shape::KeyedMap
            && let Node::Plain(Event::String(key)) = node
        {
            level.key = key;
            return Ok(());
        }
        let is_left = is_left_out(&node) || self.refers_to_left(&node);
        if !self.begin_member(place, is_left)? {
            return Ok(());
        }
        let start = self.out.length();
        if is_left {
            self.out.push("null")?;
        } else if self.open(&node, index)? {
            return Ok(());
        } else {
            self.leaf(node)?;
            if let Some(written) = self.objects.get_mut(index) {
                *written = Written::At(start, self.out.length());
            }
        }
        self.end_member(place)
    }

    /// Whether a node is a reference to an object that is left out.
    fn refers_to_left(&self, node: &Node<'_>) -> bool {
        let Node::Plain(Event::Ref(object)) = node else { return false };
        matches!(self.objects.get(*object as usize), Some(Written::Left))
    }

    /// Writes all that precedes a value in its container; says whether the value is to be written.
    fn begin_member(&mut self, place: Place<'a>, is_left: bool) -> Result<bool, JsonFault> {
        let Some(level) = self.levels.last_mut() else { return Ok(true) };
        let key = match (level.shape, place) {
            (Shape::Object, Place::Property(key)) => Some(key),
            (Shape::KeyedMap, _) => Some(level.key),
            _ => None,
        };
        if key.is_some() && is_left {
            return Ok(false);
        }
        if let (Shape::Sparse(_), Place::Element(index)) = (level.shape, place) {
            while level.written < index {
                self.out.push(if level.written == 0 { "null" } else { ",null" })?;
                level.written += 1;
            }
        }
        let is_value_of_pair = level.shape == Shape::Pairs && matches!(place, Place::MapValue(_));
        if level.written > 0 || is_value_of_pair {
            self.out.push(",")?;
        }
        if let Some(key) = key {
            text::write(key, &mut self.out)?;
            self.out.push(":")?;
        } else if level.shape == Shape::Pairs && !is_value_of_pair {
            self.out.push("[")?;
        }
        Ok(true)
    }

    /// Writes what follows a value in its container.
    fn end_member(&mut self, place: Place<'a>) -> Result<(), JsonFault> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        match (level.shape, place) {
            (Shape::Pairs, Place::MapKey(_)) => return Ok(()),
            (Shape::Pairs, _) => self.out.push("]")?,
            _ => {}
        }
        level.written = level.written.saturating_add(1);
        Ok(())
    }

    /// Opens a container; says whether the node is one.
    fn open(&mut self, node: &Node<'a>, object: usize) -> Result<bool, JsonFault> {
        let Node::Plain(event) = node else { return Ok(false) };
        let shape = match *event {
            Event::Object => Shape::Object,
            Event::Array(_) | Event::Set(_) => Shape::Array,
            Event::SparseArray(length) => Shape::Sparse(length),
            Event::Map(_) => {
                let number = u32::try_from(object).unwrap_or(u32::MAX);
                let is_keyed = self.keyed_maps.binary_search(&number).is_ok();
                if is_keyed { Shape::KeyedMap } else { Shape::Pairs }
            }
            _ => return Ok(false),
        };
        self.out.take_beside(2 * size_of::<Level<'_>>())?;
        let (key, place) = (Str::Utf8(""), Place::Root);
        self.levels.push(Level { shape, object, written: 0, place, key });
        self.objects[object] = Written::Open;
        self.out.open(match shape {
            Shape::Object | Shape::KeyedMap => "{",
            _ => "[",
        })?;
        Ok(true)
    }

    fn end(&mut self) -> Result<(), JsonFault> {
        let Some(level) = self.levels.pop() else { return Err(JsonFault::Malformed) };
        if let Shape::Sparse(length) = level.shape {
            for index in level.written..length {
                self.out.push(if index == 0 { "null" } else { ",null" })?;
                if (index as usize).is_multiple_of(NODES_A_LOOK) {
                    self.out.look()?;
                }
            }
        }
        let start = self.out.close(match level.shape {
            Shape::Object | Shape::KeyedMap => "}",
            _ => "]",
        })?;
        self.objects[level.object] = Written::At(start, self.out.length());
        let place = self.levels.last().map_or(Place::Root, |outer| outer.place);
        self.end_member(place)
    }

    fn leaf(&mut self, node: Node<'a>) -> Result<(), JsonFault> {
        let event = match node {
            Node::Error { name, message } => {
                self.out.push("{\"name\":")?;
                text::write(name, &mut self.out)?;
                self.out.push(",\"message\":")?;
                text::write(message, &mut self.out)?;
                return self.out.push("}");
            }
            Node::Plain(event) => event,
        };
        match event {
            Event::Bool(true) => self.out.push("true"),
            Event::Bool(false) => self.out.push("false"),
            Event::Int(int) => self.out.push(&int.to_string()),
            Event::Double(double) => number::write(double, &mut self.out),
            Event::BigInt { negative, magnitude } => {
                number::write_bigint(negative, magnitude, &mut self.out)
            }
            Event::String(string) => text::write(string, &mut self.out),
            Event::Date(epoch_ms) => text::write_date(epoch_ms, &mut self.out),
            Event::RegExp => self.out.push("{}"),
            Event::Buffer(blob) => {
                let bytes = self.value.blobs().get(blob as usize).ok_or(JsonFault::Malformed)?;
                text::write_base64(bytes, &mut self.out)
            }
            Event::View { kind, blob, byte_offset, length } => {
                let blob = self.value.blobs().get(blob as usize).ok_or(JsonFault::Malformed)?;
                let start = usize::try_from(byte_offset).ok();
                let bytes = usize::try_from(length).ok().and_then(|length| {
                    let end = start?.checked_add(length.checked_mul(kind.element_bytes())?)?;
                    blob.get(start?..end)
                });
                text::write_base64(bytes.ok_or(JsonFault::Malformed)?, &mut self.out)
            }
            Event::Ref(object) => match self.objects.get(object as usize) {
                Some(Written::At(start, end)) => self.out.repeat(*start, *end),
                Some(Written::Open) => Err(self.fault("a cycle has no JSON form")),
                _ => Err(JsonFault::Malformed),
            },
            Event::HostPromise(_) | Event::SandboxPromise(_) => {
                Err(self.fault("a promise has no JSON form; await it first"))
            }
            _ => self.out.push("null"),
        }
    }

    fn fault(&self, why: &str) -> JsonFault {
        let step = |level: &Level<'_>| match level.place {
            Place::Property(key) => key.to_step(),
            Place::Element(index) => Step::Index(index as usize),
            Place::MapKey(entry) => Step::MapKey(entry as usize),
            Place::MapValue(entry) | Place::Member(entry) => Step::Member(entry as usize),
            Place::Root => Step::Index(0),
        };
        let hidden = self.levels.len().saturating_sub(2 * SHOWN_STEPS);
        let mut path = self.root.to_owned();
        for (index, level) in self.levels.iter().enumerate() {
            if hidden == 0 || index < SHOWN_STEPS || index >= SHOWN_STEPS + hidden {
                path = step(level).after(&path);
            } else if index == SHOWN_STEPS {
                path.push('…');
            }
        }
        JsonFault::Unserializable(format!("{path}: {why}"))
    }
}

/// Whether `JSON.stringify` leaves the node out of an object.
fn is_left_out(node: &Node<'_>) -> bool {
    matches!(
        node,
        Node::Plain(
            Event::Undefined | Event::Hole | Event::HostFunction(_) | Event::SandboxFunction(_)
        )
    )
}
