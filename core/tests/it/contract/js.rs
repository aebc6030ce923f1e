//! Values of the test's host: a binding's own language has them built in.
//!
//! In: messages, and values that the host functions make. Out: messages again. Objects have an identity, so that a
//! message can be compared, and returned, with its cycles and shared parts.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    fmt,
    rc::Rc,
};

use isolane::value::{ErrorClass, Event, Malformed, Reader, Value, ViewKind, Writer};

use super::remote::Remote;

/// Any value.
#[derive(Clone)]
pub(crate) enum Js {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// Sign, and magnitude with the least significant byte first.
    BigInt(bool, Vec<u8>),
    String(Vec<u16>),
    Symbol(String),
    Object(Rc<RefCell<Object>>),
}

/// A value with an identity.
pub(crate) enum Object {
    Plain(Vec<(Vec<u16>, Js)>),
    /// The length, and the elements that exist.
    Array(u32, Vec<(u32, Js)>),
    Map(Vec<(Js, Js)>),
    Set(Vec<Js>),
    Date(f64),
    RegExp(Vec<u16>, Vec<u16>),
    Error {
        class: ErrorClass,
        name: Vec<u16>,
        message: Vec<u16>,
        code: Js,
    },
    Buffer(Rc<Vec<u8>>),
    View {
        kind: ViewKind,
        blob: Rc<Vec<u8>>,
        offset: u64,
        length: u64,
    },
    HostFunction(u32),
    SandboxFunction(Rc<Callback>),
    HostPromise(u32),
    SandboxPromise(u32),
    /// An instance of a class that cannot cross.
    Instance(String),
}

/// A function of the sandbox. Dropping it tells the sandbox.
pub(crate) struct Callback {
    pub(crate) number: u32,
    pub(crate) remote: Rc<dyn Remote>,
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.remote.release_function(self.number, 1);
    }
}

impl Js {
    /// The number of a promise of the host.
    pub(crate) fn host_promise(&self) -> Option<u32> {
        let Self::Object(object) = self else { return None };
        match &*object.borrow() {
            Object::HostPromise(number) => Some(*number),
            _ => None,
        }
    }

    /// The number of a promise of the sandbox.
    pub(crate) fn sandbox_promise(&self) -> Option<u32> {
        let Self::Object(object) = self else { return None };
        match &*object.borrow() {
            Object::SandboxPromise(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn object(object: Object) -> Self {
        Self::Object(Rc::new(RefCell::new(object)))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::String(text.encode_utf16().collect())
    }

    pub(crate) fn list(elements: impl IntoIterator<Item = Js>) -> Self {
        let elements: Vec<(u32, Js)> = (0..).zip(elements).collect();
        Self::object(Object::Array(length(elements.len()), elements))
    }

    pub(crate) fn record<const N: usize>(entries: [(&str, Js); N]) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (key.encode_utf16().collect(), value));
        Self::object(Object::Plain(entries.collect()))
    }

    pub(crate) fn error(class: ErrorClass, message: &[u16], code: Js) -> Self {
        let name = class.name().encode_utf16().collect();
        Self::object(Object::Error { class, name, message: message.to_vec(), code })
    }

    /// The text of a string; lone surrogates are replaced.
    pub(crate) fn as_text(&self) -> Option<String> {
        match self {
            Self::String(units) => Some(String::from_utf16_lossy(units)),
            _ => None,
        }
    }
}

pub(crate) fn length(length: usize) -> u32 {
    u32::try_from(length).expect("a table has no longer lists")
}

/// Writes one message. An error names the value that cannot cross, and its place.
pub(crate) struct Outgoing {
    writer: Writer,
    seen: HashMap<*const RefCell<Object>, u32>,
    blobs: HashMap<*const Vec<u8>, u32>,
    /// Blobs that cross whole, because their buffer is in the message.
    whole: HashSet<*const Vec<u8>>,
    path: String,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        Self {
            writer: Writer::new(),
            seen: HashMap::new(),
            blobs: HashMap::new(),
            whole: HashSet::new(),
            path: String::new(),
        }
    }

    /// One value as a message of its own. `root` is the path's first word.
    pub(crate) fn message(value: &Js, root: &str) -> Result<Value, String> {
        let mut out = Self::new();
        out.value(value, root, "")?;
        Ok(out.finish())
    }

    pub(crate) fn finish(self) -> Value {
        self.writer.finish()
    }

    /// Starts the array of a message with several values.
    pub(crate) fn array(&mut self, count: usize) {
        self.writer.array(length(count));
    }

    /// A value at that path. A function without a name gets `name`.
    pub(crate) fn value(&mut self, value: &Js, path: &str, name: &str) -> Result<(), String> {
        path.clone_into(&mut self.path);
        self.find_buffers(value, &mut HashSet::new());
        self.node(value, name)
    }

    fn node(&mut self, value: &Js, name: &str) -> Result<(), String> {
        match value {
            Js::Undefined => self.writer.undefined(),
            Js::Null => self.writer.null(),
            Js::Bool(value) => self.writer.bool(*value),
            Js::Number(value) => self.writer.number(*value),
            Js::BigInt(negative, magnitude) => self.writer.bigint(*negative, magnitude),
            Js::String(units) => self.writer.string16(units),
            Js::Symbol(_) => return self.refuse("a symbol"),
            Js::Object(object) => {
                if let Some(index) = self.seen.get(&Rc::as_ptr(object)) {
                    self.writer.reference(*index);
                    return Ok(());
                }
                self.seen.insert(Rc::as_ptr(object), self.writer.next_object());
                return self.object(&object.borrow(), name);
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &Object, name: &str) -> Result<(), String> {
        match object {
            Object::Plain(entries) => {
                self.writer.object();
                for (key, value) in entries {
                    self.writer.key16(key);
                    let key = String::from_utf16_lossy(key);
                    self.step(&key_step(&key), value, &key)?;
                }
                self.writer.end_object();
            }
            Object::Array(length, elements) => self.elements(*length, elements)?,
            Object::Map(entries) => {
                self.writer.map(length(entries.len()));
                for (index, (key, value)) in entries.iter().enumerate() {
                    self.step(&format!(".keys()[{index}]"), key, "")?;
                    self.step(&format!(".values()[{index}]"), value, "")?;
                }
            }
            Object::Set(members) => {
                self.writer.set(length(members.len()));
                for (index, member) in members.iter().enumerate() {
                    self.step(&format!(".values()[{index}]"), member, "")?;
                }
            }
            Object::Date(time) => self.writer.date(*time),
            Object::RegExp(source, flags) => {
                self.writer.regexp();
                self.writer.string16(source);
                self.writer.string16(flags);
            }
            Object::Error { class, name, message, code } => {
                self.writer.error(*class);
                self.writer.string16(name);
                self.writer.string16(message);
                self.writer.undefined();
                match code {
                    Js::String(_) | Js::Number(_) => self.node(code, "")?,
                    _ => self.writer.undefined(),
                }
            }
            Object::Buffer(blob) => {
                let blob = self.blob(blob);
                self.writer.buffer(blob);
            }
            Object::View { kind, blob, offset, length } => {
                if self.whole.contains(&Rc::as_ptr(blob)) {
                    let blob = self.blob(blob);
                    self.writer.view(*kind, blob, *offset, *length);
                } else {
                    let start = place(*offset);
                    let own = &blob[start..start + place(*length) * kind.element_bytes()];
                    let blob = self.writer.blob(own.to_vec());
                    self.writer.view(*kind, blob, 0, *length);
                }
            }
            Object::HostFunction(number) => {
                self.writer.host_function(*number);
                self.writer.string(name);
            }
            Object::SandboxFunction(callback) => {
                self.writer.sandbox_function(callback.number);
                self.writer.string("");
            }
            Object::HostPromise(number) => self.writer.host_promise(*number),
            Object::SandboxPromise(number) => self.writer.sandbox_promise(*number),
            Object::Instance(class) => return self.refuse(&format!("an instance of {class}")),
        }
        Ok(())
    }

    fn elements(&mut self, length: u32, elements: &[(u32, Js)]) -> Result<(), String> {
        let sparse = elements.len() != length as usize;
        if sparse {
            self.writer.sparse_array(length);
        } else {
            self.writer.array(length);
        }
        for (index, element) in elements {
            if sparse {
                self.writer.sparse_index(*index);
            }
            self.step(&format!("[{index}]"), element, "")?;
        }
        if sparse {
            self.writer.end_sparse_array();
        }
        Ok(())
    }

    fn step(&mut self, step: &str, value: &Js, name: &str) -> Result<(), String> {
        let end = self.path.len();
        self.path.push_str(step);
        self.node(value, name)?;
        self.path.truncate(end);
        Ok(())
    }

    /// A view whose buffer is not in the message carries only its own bytes.
    fn find_buffers(&mut self, value: &Js, seen: &mut HashSet<*const RefCell<Object>>) {
        let Js::Object(object) = value else { return };
        if !seen.insert(Rc::as_ptr(object)) {
            return;
        }
        let inside: Vec<Js> = match &*object.borrow() {
            Object::Buffer(blob) => {
                self.whole.insert(Rc::as_ptr(blob));
                return;
            }
            Object::Plain(entries) => entries.iter().map(|(_, value)| value.clone()).collect(),
            Object::Array(_, elements) => elements.iter().map(|(_, value)| value.clone()).collect(),
            Object::Map(entries) => {
                entries.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect()
            }
            Object::Set(members) => members.clone(),
            _ => return,
        };
        for value in inside {
            self.find_buffers(&value, seen);
        }
    }

    fn blob(&mut self, blob: &Rc<Vec<u8>>) -> u32 {
        let writer = &mut self.writer;
        *self.blobs.entry(Rc::as_ptr(blob)).or_insert_with(|| writer.blob(blob.to_vec()))
    }

    fn refuse(&self, what: &str) -> Result<(), String> {
        Err(format!("{}: {what} cannot be cloned", self.path))
    }
}

fn place(bytes: u64) -> usize {
    usize::try_from(bytes).expect("within a buffer")
}

/// A key as paths spell it.
pub(crate) fn key_step(key: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let first = key.chars().next();
    if key.chars().all(word) && first.is_some_and(|first| !first.is_ascii_digit()) {
        format!(".{key}")
    } else {
        format!("[{key:?}]")
    }
}

/// Reads a message. Functions of the sandbox in it belong to `remote`.
pub(crate) fn read(message: &Value, remote: &Rc<dyn Remote>) -> Result<Js, Malformed> {
    let mut incoming = Incoming {
        reader: message.reader(),
        blobs: message.blobs().iter().cloned().map(Rc::new).collect(),
        objects: Vec::new(),
        remote,
    };
    let value = incoming.node()?.ok_or(Malformed)?;
    if incoming.reader.is_empty() { Ok(value) } else { Err(Malformed) }
}

struct Incoming<'m> {
    reader: Reader<'m>,
    blobs: Vec<Rc<Vec<u8>>>,
    objects: Vec<Rc<RefCell<Object>>>,
    remote: &'m Rc<dyn Remote>,
}

impl Incoming<'_> {
    /// The next node; a hole is `None`.
    fn node(&mut self) -> Result<Option<Js>, Malformed> {
        let event = self.reader.event()?;
        Ok(Some(match event {
            Event::Undefined => Js::Undefined,
            Event::Null => Js::Null,
            Event::Bool(value) => Js::Bool(value),
            Event::Int(value) => Js::Number(f64::from(value)),
            Event::Double(value) => Js::Number(value),
            Event::BigInt { negative, magnitude } => Js::BigInt(negative, magnitude.to_vec()),
            Event::String(text) => Js::String(text.units()),
            Event::Hole => return Ok(None),
            Event::Ref(index) => {
                Js::Object(Rc::clone(self.objects.get(index as usize).ok_or(Malformed)?))
            }
            _ => self.object(event)?,
        }))
    }

    fn present(&mut self) -> Result<Js, Malformed> {
        self.node()?.ok_or(Malformed)
    }

    fn units(&mut self) -> Result<Vec<u16>, Malformed> {
        Ok(self.reader.text()?.units())
    }

    fn object(&mut self, event: Event<'_>) -> Result<Js, Malformed> {
        // Registered before its contents, which may refer to it.
        let object = Rc::new(RefCell::new(Object::Plain(Vec::new())));
        self.objects.push(Rc::clone(&object));
        let filled = match event {
            Event::Object => {
                let mut entries = Vec::new();
                while let Some(key) = self.reader.key()? {
                    entries.push((key.text.units(), self.present()?));
                }
                Object::Plain(entries)
            }
            Event::Array(length) => {
                let mut elements = Vec::new();
                for index in 0..length {
                    elements.extend(self.node()?.map(|element| (index, element)));
                }
                Object::Array(length, elements)
            }
            Event::SparseArray(length) => {
                let mut elements = Vec::new();
                while let Some(index) = self.reader.sparse_index()? {
                    elements.push((index, self.present()?));
                }
                Object::Array(length, elements)
            }
            Event::Map(count) => {
                let mut entries = Vec::new();
                for _ in 0..count {
                    entries.push((self.present()?, self.present()?));
                }
                Object::Map(entries)
            }
            Event::Set(count) => {
                Object::Set((0..count).map(|_| self.present()).collect::<Result<_, _>>()?)
            }
            Event::Date(time) => Object::Date(time),
            Event::RegExp => Object::RegExp(self.units()?, self.units()?),
            Event::Error(class) => {
                let (name, message) = (self.units()?, self.units()?);
                let _stack = self.node()?;
                Object::Error { class, name, message, code: self.present()? }
            }
            Event::Buffer(blob) => Object::Buffer(self.blob(blob)?),
            Event::View { kind, blob, byte_offset: offset, length } => {
                Object::View { kind, blob: self.blob(blob)?, offset, length }
            }
            Event::HostFunction(number) => {
                self.reader.text()?;
                Object::HostFunction(number)
            }
            Event::SandboxFunction(number) => {
                self.reader.text()?;
                let remote = Rc::clone(self.remote);
                Object::SandboxFunction(Rc::new(Callback { number, remote }))
            }
            Event::HostPromise(number) => Object::HostPromise(number),
            Event::SandboxPromise(number) => Object::SandboxPromise(number),
            _ => return Err(Malformed),
        };
        *object.borrow_mut() = filled;
        Ok(Js::Object(object))
    }

    fn blob(&self, blob: u32) -> Result<Rc<Vec<u8>>, Malformed> {
        self.blobs.get(blob as usize).cloned().ok_or(Malformed)
    }
}

/// For failures: a value as text, short, and finite if it has a cycle.
impl fmt::Debug for Js {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        thread_local!(static DEPTH: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        let depth = DEPTH.get();
        if depth > 8 {
            return out.write_str("…");
        }
        DEPTH.set(depth + 1);
        let done = self.show(out);
        DEPTH.set(depth);
        done
    }
}

impl Js {
    fn show(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = match self {
            Self::Undefined => return out.write_str("undefined"),
            Self::Null => return out.write_str("null"),
            Self::Bool(value) => return write!(out, "{value}"),
            Self::Number(value) => return write!(out, "{value:?}"),
            Self::BigInt(negative, magnitude) => {
                return write!(out, "bigint({negative} {magnitude:x?})");
            }
            Self::String(units) => {
                let text: String = String::from_utf16_lossy(units).chars().take(300).collect();
                return write!(out, "{text:?}");
            }
            Self::Symbol(name) => return write!(out, "Symbol({name})"),
            Self::Object(object) => object.borrow(),
        };
        match &*object {
            Object::Plain(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| (String::from_utf16_lossy(key), value));
                out.debug_map().entries(entries).finish()
            }
            Object::Array(length, elements) if *length as usize == elements.len() => {
                out.debug_list().entries(elements.iter().map(|(_, value)| value)).finish()
            }
            Object::Array(length, elements) => write!(out, "Array({length}) {elements:?}"),
            Object::Map(entries) => write!(out, "Map {entries:?}"),
            Object::Set(members) => write!(out, "Set {members:?}"),
            Object::Date(time) => write!(out, "Date({time})"),
            Object::RegExp(source, flags) => {
                write!(
                    out,
                    "/{}/{}",
                    String::from_utf16_lossy(source),
                    String::from_utf16_lossy(flags)
                )
            }
            Object::Error { class, name, message, code } => {
                let (name, message) =
                    (String::from_utf16_lossy(name), String::from_utf16_lossy(message));
                write!(out, "{class:?}({name:?}, {message:?}, {code:?})")
            }
            Object::Buffer(blob) => write!(out, "Buffer({blob:?})"),
            Object::View { kind, blob, offset, length } => {
                write!(out, "{kind:?}({offset}, {length}, {blob:?})")
            }
            Object::HostFunction(_) | Object::SandboxFunction(_) => out.write_str("[Function]"),
            Object::HostPromise(_) | Object::SandboxPromise(_) => out.write_str("[Promise]"),
            Object::Instance(class) => write!(out, "[{class}]"),
        }
    }
}
