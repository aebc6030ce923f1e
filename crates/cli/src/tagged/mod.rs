//! Values as JSON, with a tag for what JSON has not: `{ "$bigint": "12" }`.
//!
//! In: a message. Out: its text, in the notation of the contract's table of cases. The message is read twice, without
//! recursion: first for the objects that stand in several places, for keys that JSON or a tag would change, and for holes.

mod text;
mod walk;

use std::collections::HashSet;

use isolane::{
    Value,
    value::{Event, Malformed, Reader, Str},
};

use self::{
    text::{bigint, bytes, key, number, string},
    walk::{Place, Visit, Walk},
};

/// The value as tagged JSON. Costs two passes over the message.
pub(crate) fn tagged(value: &Value) -> String {
    let notes = Notes::of(value);
    let mut form = Form { value, notes, out: String::new(), levels: Vec::new(), objects: 0 };
    // The core hands over well-formed messages alone.
    form.write().map_or_else(|Malformed| "null".to_owned(), |()| form.out)
}

/// The finds of the first pass, by the numbers of objects.
#[derive(Default)]
struct Notes {
    shared: HashSet<u32>,
    /// Plain objects whose keys are listed, and arrays with holes.
    special: HashSet<u32>,
}

impl Notes {
    fn of(value: &Value) -> Self {
        let mut notes = Self::default();
        // A malformed message fails again in the second pass.
        let _ = notes.read(value);
        notes
    }

    fn read(&mut self, value: &Value) -> Result<(), Malformed> {
        let mut walk = Walk::new(value);
        let (mut open, mut objects) = (Vec::new(), 0);
        while let Some(visit) = walk.step()? {
            let Visit::Node(place, event) = visit else {
                open.pop();
                continue;
            };
            let is_special = match place {
                Place::Key(Str::Utf8(key)) => key.starts_with('$') || key == "__proto__",
                _ => matches!(event, Event::Hole),
            };
            if let (true, Some(parent)) = (is_special, open.last()) {
                self.special.insert(*parent);
            }
            if let Event::Ref(object) = event {
                self.shared.insert(object);
            }
            skip_texts(&mut walk.reader, &event)?;
            if walk::is_container(&event) {
                open.push(objects);
            }
            objects += u32::from(event.is_object());
        }
        Ok(())
    }
}

/// Passes what stands behind a node that is no container.
fn skip_texts(reader: &mut Reader<'_>, event: &Event<'_>) -> Result<(), Malformed> {
    match event {
        Event::RegExp => {
            reader.text()?;
            reader.text()?;
        }
        Event::Error(_) => {
            reader.text()?;
            reader.text()?;
            reader.event()?;
            reader.event()?;
        }
        Event::HostFunction(_) | Event::SandboxFunction(_) => {
            reader.text()?;
        }
        _ => {}
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Object,
    Entries,
    List,
    Sparse,
    Map,
}

/// A container that is being written.
struct Level {
    shape: Shape,
    is_first: bool,
    close: String,
}

struct Form<'v> {
    value: &'v Value,
    notes: Notes,
    out: String,
    levels: Vec<Level>,
    objects: u32,
}

impl Form<'_> {
    fn write(&mut self) -> Result<(), Malformed> {
        let mut walk = Walk::new(self.value);
        while let Some(visit) = walk.step()? {
            match visit {
                Visit::Node(_, Event::Hole) => {}
                Visit::Node(place, event) => self.node(place, event, &mut walk.reader)?,
                Visit::End => {
                    if let Some(level) = self.levels.pop() {
                        self.out.push_str(&level.close);
                    }
                }
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        place: Place<'_>,
        event: Event<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let mut tail = self.begin(place).to_owned();
        let object = self.objects;
        self.objects += u32::from(event.is_object());
        if event.is_object() && self.notes.shared.contains(&object) {
            self.out.push_str(&format!("{{\"$id\":\"{object}\",\"$value\":"));
            tail.insert(0, '}');
        }
        let is_special = self.notes.special.contains(&object);
        let (shape, open, close) = match event {
            Event::Object if is_special => (Shape::Entries, "{\"$entries\":[".to_owned(), "]}"),
            Event::Object => (Shape::Object, "{".to_owned(), "}"),
            Event::Array(length) if is_special => (Shape::Sparse, sparse(length), "}]}"),
            Event::SparseArray(length) => (Shape::Sparse, sparse(length), "}]}"),
            Event::Array(_) => (Shape::List, "[".to_owned(), "]"),
            Event::Set(_) => (Shape::List, "{\"$set\":[".to_owned(), "]}"),
            Event::Map(_) => (Shape::Map, "{\"$map\":[".to_owned(), "]}"),
            _ => {
                let leaf = self.leaf(event, reader)?;
                self.out.push_str(&leaf);
                self.out.push_str(&tail);
                return Ok(());
            }
        };
        self.out.push_str(&open);
        self.levels.push(Level { shape, is_first: true, close: format!("{close}{tail}") });
        Ok(())
    }

    /// Writes what stands before a node. Out: what stands after it.
    fn begin(&mut self, place: Place<'_>) -> &'static str {
        let Some(level) = self.levels.last_mut() else { return "" };
        let shape = level.shape;
        if !std::mem::replace(&mut level.is_first, false) {
            self.out.push(',');
        }
        match place {
            Place::Key(text) if shape == Shape::Entries => {
                self.out.push_str(&format!("[{},", key(text)));
                "]"
            }
            Place::Key(text) => {
                self.out.push_str(&format!("{}:", key(text)));
                ""
            }
            Place::Element(index) if shape == Shape::Sparse => {
                self.out.push_str(&format!("\"{index}\":"));
                ""
            }
            Place::MapKey => {
                self.out.push('[');
                ""
            }
            Place::MapValue => "]",
            Place::Root | Place::Element(_) => "",
        }
    }

    fn leaf(&self, event: Event<'_>, reader: &mut Reader<'_>) -> Result<String, Malformed> {
        Ok(match event {
            Event::Null => "null".to_owned(),
            Event::Bool(value) => value.to_string(),
            Event::Int(value) => value.to_string(),
            Event::Double(value) => number(value),
            Event::BigInt { negative, magnitude } => {
                format!("{{\"$bigint\":\"{}\"}}", bigint(negative, magnitude))
            }
            Event::String(text) => string(text),
            Event::Ref(object) => format!("{{\"$ref\":\"{object}\"}}"),
            Event::Date(ms) if ms.is_finite() => format!("{{\"$date\":{}}}", number(ms)),
            Event::Date(_) => "{\"$date\":null}".to_owned(),
            Event::RegExp => {
                let (source, flags) = (reader.text()?, reader.text()?);
                format!("{{\"$regexp\":[{},{}]}}", key(source), key(flags))
            }
            Event::Error(class) => {
                let (name, message) = (reader.text()?, reader.text()?);
                reader.event()?;
                let code = match reader.event()? {
                    Event::Undefined => String::new(),
                    code => format!(",\"code\":{}", self.leaf(code, reader)?),
                };
                let (class, name, message) = (class.name(), key(name), key(message));
                format!(
                    "{{\"$error\":{{\"class\":\"{class}\",\"name\":{name},\"message\":{message}{code}}}}}"
                )
            }
            Event::Buffer(blob) => format!("{{\"$buffer\":{}}}", bytes(self.blob(blob))),
            Event::View { kind, blob, byte_offset, length } => {
                let blob = self.blob(blob);
                let is_whole = byte_offset == 0 && length == blob.len() as u64;
                if is_whole && kind == isolane::value::ViewKind::Uint8Array {
                    format!("{{\"$bytes\":{}}}", bytes(blob))
                } else {
                    let bytes = bytes(blob);
                    format!("{{\"$view\":[\"{kind:?}\",{byte_offset},{length},{bytes}]}}")
                }
            }
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                format!("{{\"$function\":{}}}", key(reader.text()?))
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => "{\"$promise\":true}".to_owned(),
            _ => "{\"$undefined\":true}".to_owned(),
        })
    }

    fn blob(&self, blob: u32) -> &[u8] {
        self.value.blobs().get(blob as usize).map(Vec::as_slice).unwrap_or_default()
    }
}

fn sparse(length: u32) -> String {
    format!("{{\"$sparse\":[{length},{{")
}
