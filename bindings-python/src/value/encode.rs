//! The encoder: writes a Python object as a message for the sandbox.
//!
//! In: any object and its path (`globals.db`). Out: a message, or a `SerializationError` that names the path.
//! Subclasses of the builtins cross as their base, and none of their overridden methods runs. Nothing recurses:
//! memory alone bounds the depth. Objects without a counterpart cross as `convert` has it. The encoder may run the caller's code, such as the time zone of a datetime or the
//! text of an exception. That code may change a container, so containers are read from a copy of their references.

use std::collections::HashSet;

use isolane::{
    ASYNC_FUNCTION, Refusal, Step, Value,
    value::{ErrorClass, ViewKind, Writer},
};
use pyo3::{
    exceptions::{
        PyBaseException, PyException, PyOverflowError, PySyntaxError, PyTypeError, PyValueError,
    },
    prelude::*,
    types::{
        PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString,
        PyTuple, PyType,
    },
};
use rustc_hash::FxHashMap;

use super::{
    Functions,
    classes::{
        DATETIME, FUNCTION, GENERATOR, MEMORYVIEW, METHOD, ORDERED_DICT, PATTERN, SANDBOX_ERROR,
        SANDBOX_FUNCTION, UNDEFINED,
    },
    convert::{self, Converted, Failure},
    tolerated, utf16,
};
use crate::error::serialization_error;
use crate::native::PyNativeFunction;

/// JavaScript's `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;

/// The most conversions of one object: of the value that its hook returned, and so on.
const MOST_IN_A_ROW: u32 = 50;

/// The most objects inside one another that were converted. A hook may return an object with another one in it, without
/// an end.
const MOST_NESTED: u32 = 100_000;

/// The end of the refusal of a value for which there is the hook.
const HINT: &str = "; default= can convert it";

/// The begin of a text that stands for a value, and of the name of a class, in a message that is read for its text. No
/// other text has these two characters, which stand for nothing.
pub(crate) const MARK: &str = "\u{fdd0}\u{fdd1}";

/// A container that is being written.
struct Frame<'py> {
    kind: Container,
    /// The number of objects around its members, itself among them, that were converted.
    conversions: u32,
    /// Object and Map: key, value, key, value. Array and Set: the members.
    items: Vec<Bound<'py, PyAny>>,
    next: usize,
}

#[derive(Clone, Copy)]
enum Container {
    Object,
    Array,
    Map,
    Set,
}

/// The reason for which a value was not written.
enum Stop {
    /// It cannot be cloned. The path begins at the root of the message.
    Refused(Box<Refused>),
    /// The caller's code raised.
    Raised(PyErr),
}

struct Refused {
    refusal: Refusal,
    /// The rest of the message.
    advice: Option<String>,
    /// Whether the caller could have given a hook.
    wants_hook: bool,
    /// The exception of the caller's code.
    cause: Option<PyErr>,
}

impl From<PyErr> for Stop {
    fn from(raised: PyErr) -> Self {
        Self::Raised(raised)
    }
}

type Written<T = ()> = Result<T, Stop>;

/// Writes one message.
pub(crate) struct Encoder<'a, 'py> {
    functions: &'a Functions,
    owner: &'a Bound<'py, PyAny>,
    /// The host function whose answer is written.
    answers: Option<u32>,
    writer: Writer,
    /// The indexes of this message's objects, by address.
    seen: FxHashMap<usize, u32>,
    /// The numbers of keys, by address.
    keys: FxHashMap<usize, u32>,
    /// The numbers of keys, by text.
    texts: FxHashMap<Box<[u8]>, u32>,
    /// The objects of those addresses, so that no address is reused.
    held: Vec<Bound<'py, PyAny>>,
    frames: Vec<Frame<'py>>,
    /// The conversions of the value that is being written now.
    in_row: u32,
    /// Whether the message is read for its text alone: then everything is written, with marks.
    is_shown: bool,
}

impl<'a, 'py> Encoder<'a, 'py> {
    pub(crate) fn new(functions: &'a Functions, owner: &'a Bound<'py, PyAny>) -> Self {
        Self {
            functions,
            owner,
            answers: None,
            writer: Writer::new(),
            seen: FxHashMap::default(),
            keys: FxHashMap::default(),
            texts: FxHashMap::default(),
            held: Vec::new(),
            frames: Vec::new(),
            in_row: 0,
            is_shown: false,
        }
    }

    /// The place of the cell that receives the message; 0 if its whole session does, or for a run.
    fn receiver(&self) -> PyResult<u32> {
        self.owner.getattr_opt("receiver")?.map_or(Ok(0), |place| place.extract())
    }

    pub(crate) fn finish(self) -> Value {
        self.writer.finish()
    }

    /// Writes the head of an array. The caller then writes its elements, each with a path of its own.
    pub(crate) fn array_of(&mut self, length: usize) {
        self.writer.array(count(length));
    }

    /// Writes one value with the path `root` and `name`. A function gets `name` as its name.
    pub(crate) fn named(
        &mut self,
        value: &Bound<'py, PyAny>,
        root: &str,
        name: &str,
    ) -> PyResult<()> {
        let root = Step::Key(name.to_owned()).after(root);
        self.whole(value, Some(name)).map_err(|stop| stop.into_exception(value.py(), &root, HINT))
    }

    /// Writes one value.
    pub(crate) fn value(&mut self, value: &Bound<'py, PyAny>, root: &str) -> PyResult<()> {
        self.whole(value, None).map_err(|stop| stop.into_exception(value.py(), root, HINT))
    }

    /// Writes a value for [`inspect_marked`](isolane::inspect_marked). Text stands for that which cannot be written.
    pub(crate) fn shown(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.is_shown = true;
        self.whole(value, None).map_err(|stop| stop.into_exception(value.py(), "value", ""))
    }

    /// Writes a value that is thrown. The sandbox receives its refusal, and knows of no hook.
    pub(crate) fn thrown(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.whole(value, None).map_err(|stop| stop.into_exception(value.py(), "error", ""))
    }

    /// Writes the answer of a host function; without a function, of a promise that no function returned.
    pub(crate) fn answer(
        &mut self,
        value: &Bound<'py, PyAny>,
        function: Option<u32>,
    ) -> PyResult<()> {
        self.answers = function;
        let root = || self.functions.answer_of(function);
        // The sandbox receives the refusal, and knows of no hook.
        self.whole(value, None).map_err(|stop| stop.into_exception(value.py(), &root(), ""))
    }

    fn whole(&mut self, value: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        self.node(value, name)?;
        while let Some(frame) = self.frames.last_mut() {
            let Some(item) = frame.items.get(frame.next).cloned() else {
                if let Container::Object = frame.kind {
                    self.writer.end_object();
                }
                self.frames.pop();
                continue;
            };
            frame.next += 1;
            if let Container::Object = frame.kind {
                let Some(value) = frame.items.get(frame.next).cloned() else { continue };
                frame.next += 1;
                // `dict` has checked that all keys are strings.
                let key = item.cast_into::<PyString>().map_err(PyErr::from)?;
                self.key(&key)?;
                if !self.leaf(&value)? {
                    let name = key.to_str().ok();
                    self.object(&value, name)?;
                }
            } else {
                self.node(&item, None)?;
            }
        }
        Ok(())
    }

    fn node(&mut self, value: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        if self.leaf(value)? { Ok(()) } else { self.object(value, name) }
    }

    /// Writes a value if it has no identity; returns whether it has none.
    fn leaf(&mut self, value: &Bound<'py, PyAny>) -> Written<bool> {
        if let Ok(text) = value.cast::<PyString>() {
            match text.to_str() {
                Ok(text) => self.writer.string(text),
                Err(_) => self.writer.string16(&utf16(text)?),
            }
        } else if value.is_none() {
            self.writer.null();
        } else if let Ok(value) = value.cast::<PyBool>() {
            self.writer.bool(value.is_true());
        } else if let Ok(int) = value.cast::<PyInt>() {
            self.int(int)?;
        } else if let Ok(float) = value.cast::<PyFloat>() {
            self.writer.number(float.value());
        } else if UNDEFINED.has(value)? {
            self.writer.undefined();
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn int(&mut self, int: &Bound<'py, PyInt>) -> PyResult<()> {
        if let Ok(value) = int.extract::<i64>()
            && value.unsigned_abs() <= MAX_SAFE_INTEGER.unsigned_abs()
        {
            #[expect(clippy::cast_precision_loss, reason = "a safe integer")]
            self.writer.number(value as f64);
            return Ok(());
        }
        // The methods of `int` itself: a subclass may have overridden them.
        let class = int.py().get_type::<PyInt>();
        let negative = class.call_method1("__lt__", (int, 0))?.is_truthy()?;
        let magnitude = class.call_method1("__abs__", (int,))?;
        let bits: usize = class.call_method1("bit_length", (&magnitude,))?.extract()?;
        let bytes =
            class.call_method1("to_bytes", (&magnitude, bits.div_ceil(8).max(1), "little"))?;
        self.writer.bigint(negative, bytes.extract::<&[u8]>()?);
        Ok(())
    }

    /// Writes a value that has an identity, or opens a frame for its members.
    fn object(&mut self, value: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        if self.is_shown { self.shown_object(value) } else { self.crossing_object(value, name) }
    }

    /// The same for a text: nothing of that is a refusal but what must reach the caller, such as an interrupt.
    fn shown_object(&mut self, value: &Bound<'py, PyAny>) -> Written {
        let written = self.writer.bytes();
        let stand_in = match self.crossing_object(value, None) {
            Err(Stop::Refused(refused)) => refused.refusal.what,
            Err(Stop::Raised(raised)) if raised.is_instance_of::<PyException>(value.py()) => {
                describe_class(&value.get_type())?
            }
            done => return done,
        };
        if self.writer.bytes() == written {
            self.seen.remove(&(value.as_ptr() as usize));
            let words = ["an instance of ", "an ", "a "];
            let bare = words.iter().find_map(|word| stand_in.strip_prefix(word));
            self.writer.string(&format!("{MARK}[{}]", bare.unwrap_or(&stand_in)));
        }
        Ok(())
    }

    fn crossing_object(&mut self, value: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        let address = value.as_ptr() as usize;
        if let Some(&index) = self.seen.get(&address) {
            self.writer.reference(index);
            return Ok(());
        }
        self.seen.insert(address, self.writer.next_object());
        self.held.push(value.clone());
        if let Ok(dict) = value.cast::<PyDict>() {
            self.dict(dict)?;
        } else if let Ok(list) = value.cast::<PyList>() {
            self.open(Container::Array, list.iter().collect());
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            self.open(Container::Array, tuple.iter().collect());
        } else if let Ok(set) = value.cast::<PySet>() {
            self.open(Container::Set, members(&set.py().get_type::<PySet>(), set)?);
        } else if let Ok(set) = value.cast::<PyFrozenSet>() {
            self.open(Container::Set, members(&set.py().get_type::<PyFrozenSet>(), set)?);
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            self.bytes(bytes.as_bytes().to_vec());
        } else if let Ok(bytes) = value.cast::<PyByteArray>() {
            self.bytes(bytes.to_vec());
        } else if MEMORYVIEW.has(value)? {
            match value.call_method0("tobytes") {
                Ok(bytes) => {
                    let bytes = bytes.cast::<PyBytes>().map_err(PyErr::from)?;
                    self.bytes(bytes.as_bytes().to_vec());
                }
                Err(raised) if raised.is_instance_of::<PyValueError>(value.py()) => {
                    return Err(self.refuse("a released memoryview"));
                }
                Err(raised) => return Err(Stop::Raised(raised)),
            }
        } else if DATETIME.has(value)? {
            match epoch_ms(value)? {
                Some(date) => self.writer.date(date),
                None => return Err(self.refuse("a datetime that is out of range")),
            }
        } else if let Ok(exception) = value.cast::<PyBaseException>() {
            self.exception(exception)?;
        } else if let Ok(native) = value.cast::<PyNativeFunction>() {
            self.writer.host_function(self.functions.native_number(native));
            self.writer.string(name.unwrap_or_else(|| native.get().0.name()));
        } else if self.is_shown && (value.is_callable() || is_awaitable(value)?) {
            self.seen.remove(&address);
            self.writer.string(&format!("{MARK}{}", shown_function(value)?));
        } else if value.is_callable() {
            self.function(value, name)?;
        } else if is_awaitable(value)? {
            self.functions.count_reach();
            // Arguments that nobody owns are data, and nothing settles a promise in them.
            let number: u32 = if self.owner.is_none() {
                0
            } else {
                self.owner.call_method1("host_promise", (value,))?.extract()?
            };
            if let Some(function) = self.answers {
                self.functions.answers(function, number, self.receiver()?);
            }
            self.writer.host_promise(number);
        } else {
            self.seen.remove(&address);
            return self.converted(value, name);
        }
        Ok(())
    }

    /// Writes another value in place of one that has no counterpart.
    #[cold]
    fn converted(&mut self, value: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        let kind = || describe_class(&value.get_type());
        let nested = self.frames.last().map_or(0, |frame| frame.conversions) + self.in_row;
        if self.in_row >= MOST_IN_A_ROW || nested >= MOST_NESTED {
            let endless = "its conversion gives another object again and again".to_owned();
            return Err(self.refuse_with(kind()?, format!(": {endless}"), None));
        }
        let default = convert::hook(self.owner)?;
        let address = value.as_ptr() as usize;
        self.in_row += 1;
        let written = match convert::convert(value, default.as_ref()) {
            Ok(Converted::Fields(mut items)) => {
                self.seen.insert(address, self.writer.next_object());
                if self.is_shown {
                    let class = format!("{MARK}{}", class_name(&value.get_type())?);
                    let class = PyString::new(value.py(), &class).into_any();
                    items.splice(0..0, [class, value.py().None().into_bound(value.py())]);
                }
                self.open(Container::Object, items);
                Ok(())
            }
            Ok(Converted::Value(value)) => {
                let written = self.node(&value, name);
                // The value that stands for both is one object of the sandbox.
                if let Some(&index) = self.seen.get(&(value.as_ptr() as usize)) {
                    self.seen.insert(address, index);
                }
                written
            }
            Ok(Converted::Nothing) => {
                let mut refused = self.refusal(kind()?);
                refused.wants_hook = true;
                Err(Stop::Refused(Box::new(refused)))
            }
            Err(Failure::Refused(what)) => Err(self.refuse(&what)),
            Err(Failure::Advised(method)) => {
                Err(self.refuse_with(kind()?, format!("; hand over its {method}"), None))
            }
            Err(Failure::Failed(failed, raised)) => {
                Err(self.refuse_with(kind()?, format!(": {failed}"), Some(raised)))
            }
            Err(Failure::Raised(raised)) => Err(Stop::Raised(raised)),
        };
        self.in_row -= 1;
        written
    }

    fn dict(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        let mut items = Vec::with_capacity(2 * dict.len());
        let mut is_object = true;
        let entries = if ORDERED_DICT.has(dict)? {
            // An OrderedDict has an order of its own, apart from that of the dict.
            let entries = ORDERED_DICT.get(dict.py())?.call_method1("items", (dict,))?;
            entries.try_iter()?.collect::<PyResult<Vec<_>>>()?
        } else {
            dict.items().iter().collect()
        };
        for (key, value) in entries.iter().filter_map(|item| item.extract().ok()) {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = (key, value);
            is_object &= key.is_instance_of::<PyString>();
            items.extend([key, value]);
        }
        if !is_object && let Some(named) = with_text_keys(&items)? {
            items = named;
            is_object = true;
        }
        self.open(if is_object { Container::Object } else { Container::Map }, items);
        Ok(())
    }

    fn open(&mut self, kind: Container, items: Vec<Bound<'py, PyAny>>) {
        match kind {
            Container::Object => self.writer.object(),
            Container::Array => self.writer.array(count(items.len())),
            Container::Map => self.writer.map(count(items.len() / 2)),
            Container::Set => self.writer.set(count(items.len())),
        }
        let around = self.frames.last().map_or(0, |frame| frame.conversions);
        self.frames.push(Frame { kind, conversions: around + self.in_row, items, next: 0 });
    }

    fn bytes(&mut self, bytes: Vec<u8>) {
        let length = bytes.len() as u64;
        let blob = self.writer.blob(bytes);
        self.writer.view(ViewKind::Uint8Array, blob, 0, length);
    }

    /// Writes the class, text and code of an exception, without its traceback and its cause.
    fn exception(&mut self, exception: &Bound<'py, PyBaseException>) -> Written {
        let (class, name, message) = describe(exception)?;
        let code = tolerated(exception.py(), exception.getattr_opt("code"))?.flatten();
        self.writer.error(class);
        self.writer.string(&name);
        self.text(&message)?;
        self.writer.undefined();
        match code {
            Some(code) if code.is_instance_of::<PyBool>() => self.writer.undefined(),
            // An integer beyond `f64` would be a bigint, which is no error code.
            Some(code) if code.is_instance_of::<PyInt>() => match code.extract::<f64>() {
                Ok(code) => self.writer.number(code),
                Err(_) => self.writer.undefined(),
            },
            Some(code) if code.is_instance_of::<PyString>() || code.is_instance_of::<PyFloat>() => {
                self.leaf(&code)?;
            }
            _ => self.writer.undefined(),
        }
        Ok(())
    }

    fn text(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        match text.to_str() {
            Ok(text) => self.writer.string(text),
            Err(_) => self.writer.string16(&utf16(text)?),
        }
        Ok(())
    }

    fn function(&mut self, function: &Bound<'py, PyAny>, name: Option<&str>) -> Written {
        let own = if !self.owner.is_none() && SANDBOX_FUNCTION.has(function)? {
            self.owner.call_method1("sandbox_number", (function,))?.extract::<Option<u32>>()?
        } else {
            None
        };
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let name = tolerated(function.py(), function.getattr_opt("__name__"))?.flatten();
                name.and_then(|name| name.extract::<String>().ok()).unwrap_or_default()
            }
        };
        match own {
            Some(number) => self.writer.sandbox_function(number),
            None => {
                let number = self.functions.number(function, &name, self.receiver()?);
                let mark = if is_coroutine_function(function)? { ASYNC_FUNCTION } else { 0 };
                self.writer.host_function(number | mark);
            }
        }
        self.writer.string(&name);
        Ok(())
    }

    fn key(&mut self, key: &Bound<'py, PyString>) -> PyResult<()> {
        let address = key.as_ptr() as usize;
        if let Some(&number) = self.keys.get(&address) {
            self.writer.known_key(number);
            return Ok(());
        }
        let text = key.to_str().ok();
        let units = if text.is_some() { Vec::new() } else { utf16(key)? };
        let name: Box<[u8]> = match text {
            Some(text) => text.as_bytes().into(),
            // UTF-8 never has this first byte, so this differs from every UTF-8 key.
            None => [0xFF].into_iter().chain(units.iter().flat_map(|u| u.to_le_bytes())).collect(),
        };
        let known = self.texts.get(&name).copied();
        let number = match (known, text) {
            (Some(number), _) => {
                self.writer.known_key(number);
                number
            }
            (None, Some(text)) => self.writer.new_key(text),
            (None, None) => self.writer.new_key16(&units),
        };
        self.texts.entry(name).or_insert(number);
        self.keys.insert(address, number);
        self.held.push(key.clone().into_any());
        Ok(())
    }

    /// The refusal of the value that is being written.
    fn refuse(&self, what: &str) -> Stop {
        Stop::Refused(Box::new(self.refusal(what.to_owned())))
    }

    /// The same with advice, or with the exception that is its reason.
    fn refuse_with(&self, what: String, advice: String, cause: Option<PyErr>) -> Stop {
        let refusal = self.refusal(what);
        Stop::Refused(Box::new(Refused { advice: Some(advice), cause, ..refusal }))
    }

    fn refusal(&self, what: String) -> Refused {
        let path = self.frames.iter().map(Frame::step).collect();
        let refusal = Refusal { path, what };
        Refused { refusal, advice: None, wants_hook: false, cause: None }
    }
}

impl Frame<'_> {
    /// The step of the path to the member that was taken last.
    fn step(&self) -> Step {
        let at = self.next.saturating_sub(1);
        match self.kind {
            Container::Object => {
                let key = self.items.get(at.saturating_sub(1));
                let key = key.and_then(|key| super::lossy_text(key).ok());
                Step::Key(key.unwrap_or_default())
            }
            Container::Array => Step::Index(at),
            Container::Map if at.is_multiple_of(2) => Step::MapKey(at / 2),
            Container::Map => {
                let key = self.items.get(at - 1).and_then(|key| key.repr().ok());
                Step::Entry(key.map(|key| key.to_string_lossy().into_owned()).unwrap_or_default())
            }
            Container::Set => Step::Member(at),
        }
    }
}

impl Stop {
    /// The exception; `hint` is the end of a message that is about the lack of a hook.
    fn into_exception(self, py: Python<'_>, root: &str, hint: &str) -> PyErr {
        let refused = match self {
            Self::Refused(refused) => *refused,
            Self::Raised(raised) => return raised,
        };
        let end = refused.advice.unwrap_or_default();
        let hint = if refused.wants_hook { hint } else { "" };
        let error = serialization_error(py, refused.refusal.text(root) + &end + hint);
        if let Some(cause) = refused.cause {
            error.set_cause(py, Some(cause));
        }
        error
    }
}

/// The entries of a dict, all of whose keys cross as texts, with those texts; `None` for another dict, and for one in
/// which two keys have the same text.
fn with_text_keys<'py>(entries: &[Bound<'py, PyAny>]) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let mut named = Vec::with_capacity(entries.len());
    let mut texts = HashSet::new();
    for entry in entries.chunks_exact(2) {
        let [key, value] = entry else { return Ok(None) };
        let Some(name) = convert::key(key)? else { return Ok(None) };
        // The texts are compared, since a subclass may have a hash of its own.
        let Ok(text) = name.cast::<PyString>() else { return Ok(None) };
        if !texts.insert(utf16(text)?) {
            return Ok(None);
        }
        named.extend([name, value.clone()]);
    }
    Ok(Some(named))
}

/// The members of a set, by the iteration of `class` and not of a subclass.
fn members<'py>(
    class: &Bound<'py, PyType>,
    set: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    class.call_method1("__iter__", (set,))?.try_iter()?.collect()
}

/// The name of a class, by the descriptor of `type` and not of its metaclass.
pub(super) fn class_name(class: &Bound<'_, PyType>) -> PyResult<String> {
    let own = class.py().get_type::<PyType>().getattr("__dict__")?.get_item("__name__")?;
    Ok(own.call_method1("__get__", (class,))?.cast::<PyString>()?.to_string_lossy().into_owned())
}

/// The text of something that can be called or awaited.
fn shown_function(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if !value.is_callable() {
        return Ok("[Promise]".to_owned());
    }
    if let Ok(class) = value.cast::<PyType>() {
        return Ok(format!("[class {}]", class_name(class)?));
    }
    let py = value.py();
    let name = tolerated(py, value.getattr_opt("__name__"))?.flatten();
    let name = name.map(|name| tolerated(py, super::lossy_text(&name))).transpose()?.flatten();
    Ok(match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[Function: {name}]"),
        None => "[Function (anonymous)]".to_owned(),
    })
}

/// Describes an object of that class, which cannot be cloned.
fn describe_class(class: &Bound<'_, PyType>) -> PyResult<String> {
    let py = class.py();
    Ok(if class.is(PATTERN.get(py)?) {
        "a re.Pattern".to_owned()
    } else if class.is(GENERATOR.get(py)?) {
        "a generator".to_owned()
    } else {
        format!("an instance of {}", class_name(class)?)
    })
}

/// The class, name and text of an exception. The text is empty if `str` raises.
fn describe<'py>(
    exception: &Bound<'py, PyBaseException>,
) -> PyResult<(ErrorClass, String, Bound<'py, PyString>)> {
    let py = exception.py();
    if SANDBOX_ERROR.has(exception)? {
        let class = exception.getattr("_class")?.extract::<u8>().unwrap_or_default();
        let name = exception.getattr("name")?.extract::<String>().unwrap_or_default();
        let message = exception.getattr("message")?.str()?;
        return Ok((ErrorClass::from_byte(class), name, message));
    }
    // An error of a system has the name and the message that code would see.
    let is_named = tolerated(py, exception.getattr_opt("_is_named"))?.flatten();
    let is_named = is_named.map(|is_named| tolerated(py, is_named.is_truthy())).transpose()?;
    if is_named.flatten() == Some(true) {
        let name = exception.getattr("name")?.str()?.to_string_lossy().into_owned();
        return Ok((ErrorClass::Error, name, exception.getattr("message")?.str()?));
    }
    let class = if exception.is_instance_of::<PyTypeError>() {
        ErrorClass::TypeError
    } else if exception.is_instance_of::<PySyntaxError>() {
        ErrorClass::SyntaxError
    } else {
        ErrorClass::Error
    };
    let name = class_name(&exception.get_type())?;
    let message = tolerated(py, exception.str())?;
    Ok((class, name, message.unwrap_or_else(|| PyString::new(py, ""))))
}

/// Epoch milliseconds, rounded down as by `isoformat`. A datetime without an offset is local time. At the ends of the
/// calendar there is no local time, and the result is `None`.
fn epoch_ms(datetime: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let py = datetime.py();
    let class = DATETIME.get(py)?;
    let aware = if class.call_method1("utcoffset", (datetime,))?.is_none() {
        match class.call_method1("astimezone", (datetime,)) {
            Ok(aware) => aware,
            Err(raised)
                if raised.is_instance_of::<PyValueError>(py)
                    || raised.is_instance_of::<PyOverflowError>(py) =>
            {
                return Ok(None);
            }
            Err(raised) => return Err(raised),
        }
    } else {
        datetime.clone()
    };
    let module = py.import("datetime")?;
    let epoch =
        class.call_method1("fromtimestamp", (0, module.getattr("timezone")?.getattr("utc")?))?;
    let millisecond = module.getattr("timedelta")?.call1((0, 0, 1000))?;
    let since = class.call_method1("__sub__", (aware, epoch))?;
    since.call_method1("__floordiv__", (millisecond,))?.extract().map(Some)
}

/// Whether `await` accepts the value, also as a generator that `types.coroutine` made.
fn is_awaitable(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    const CO_ITERABLE_COROUTINE: u32 = 0x100;
    // An exception of a metaclass counts as a missing attribute.
    if tolerated(value.py(), value.get_type().hasattr("__await__"))? == Some(true) {
        return Ok(true);
    }
    if !GENERATOR.has(value)? {
        return Ok(false);
    }
    let flags: u32 = value.getattr("gi_code")?.getattr("co_flags")?.extract()?;
    Ok(flags & CO_ITERABLE_COROUTINE != 0)
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Whether every call of the function returns a coroutine. Reads no attribute that the caller's code computes.
fn is_coroutine_function(function: &Bound<'_, PyAny>) -> PyResult<bool> {
    /// `inspect.CO_COROUTINE`, in the flags of its code.
    const COROUTINE: u32 = 0x80;
    let function =
        if METHOD.has(function)? { function.getattr("__func__")? } else { function.clone() };
    if !FUNCTION.has(&function)? {
        return Ok(false);
    }
    let flags = function.getattr("__code__")?.getattr("co_flags")?.extract::<u32>()?;
    Ok(flags & COROUTINE != 0)
}
