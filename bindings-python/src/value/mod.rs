//! Python objects as messages of the core, and back.
//!
//! `encode` writes and `decode` reads messages; `suspended` reads a large message in slices with a `budget` each, and
//! `long` reads its long texts and buffers. `convert` has the values in place of objects without a counterpart. `limits` and `probes` refuse values that Python cannot represent.
//! `utf16` makes texts with lone surrogates. `functions` keeps the host functions that crossed, and `classes` looks up
//! Python classes.

mod budget;
mod classes;
mod convert;
mod decode;
mod encode;
mod functions;
mod limits;
mod long;
mod probes;
mod suspended;
mod utf16;

use isolane::{
    SourceText, Value, inspect_marked,
    value::{ErrorClass, Writer},
};
use pyo3::{
    exceptions::PyException,
    prelude::*,
    types::{PyString, PyTuple},
};

use crate::options::read_limit;

pub(crate) use self::{
    budget::Budget,
    classes::LOG,
    decode::{Owners, read},
    encode::Encoder,
    functions::Functions,
    limits::{Allowance, detect_half_floats, refusal},
    suspended::Suspended,
};

/// Writes one value as a message; `root` is its path.
pub(crate) fn write(
    functions: &Functions,
    value: &Bound<'_, PyAny>,
    owner: &Bound<'_, PyAny>,
    root: &str,
) -> PyResult<Value> {
    let mut encoder = Encoder::new(functions, owner);
    encoder.value(value, root)?;
    Ok(encoder.finish())
}

/// Writes arguments as one array, each with its own name as its path.
pub(crate) fn write_named(
    args: &Bound<'_, PyTuple>,
    names: Vec<String>,
    owner: &Bound<'_, PyAny>,
) -> PyResult<Value> {
    let (functions, mut names) = (Functions::default(), names.into_iter());
    let mut encoder = Encoder::new(&functions, owner);
    encoder.array_of(args.len());
    for (index, argument) in args.iter().enumerate() {
        let position = || format!("args[{index}]");
        encoder.value(&argument, &names.next().unwrap_or_else(position))?;
    }
    Ok(encoder.finish())
}

/// Writes the answer of a host function, as [`Encoder::answer`] does.
pub(crate) fn write_answer(
    functions: &Functions,
    value: &Bound<'_, PyAny>,
    owner: &Bound<'_, PyAny>,
    function: Option<u32>,
) -> PyResult<Value> {
    let mut encoder = Encoder::new(functions, owner);
    encoder.answer(value, function)?;
    Ok(encoder.finish())
}

/// Writes a value that is thrown into the sandbox.
pub(crate) fn write_thrown(
    functions: &Functions,
    value: &Bound<'_, PyAny>,
    owner: &Bound<'_, PyAny>,
) -> PyResult<Value> {
    let mut encoder = Encoder::new(functions, owner);
    encoder.thrown(value)?;
    Ok(encoder.finish())
}

/// A value as a console shows it, in at most that many bytes. Text stands for all that cannot cross.
#[pyfunction]
#[pyo3(signature = (value, limit=None))]
pub(crate) fn describe(
    value: &Bound<'_, PyAny>,
    limit: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let limit = read_limit(limit, value.py())?;
    let (functions, owner) = (Functions::default(), value.py().None().into_bound(value.py()));
    let mut encoder = Encoder::new(&functions, &owner);
    encoder.shown(value)?;
    Ok(inspect_marked(&encoder.finish(), limit, encode::MARK))
}

/// The outcome of code that may belong to the caller; `None` for an exception of that code. An exception that must
/// reach the host, such as the `KeyboardInterrupt` of a signal that arrives meanwhile, stays one.
pub(crate) fn tolerated<T>(py: Python<'_>, outcome: PyResult<T>) -> PyResult<Option<T>> {
    match outcome {
        Err(raised) if raised.is_instance_of::<PyException>(py) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The value that a sandbox threw, if `exception` stands for a thrown value that is no Error.
pub(crate) fn thrown_value<'py>(exception: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let is_value = classes::SANDBOX_ERROR.has(exception).ok()?
        && exception.getattr("_is_value").and_then(|flag| flag.is_truthy()).ok()?;
    is_value.then(|| exception.getattr("value").ok()).flatten()
}

/// The error in place of a value that raises when it is read.
pub(crate) fn unreadable() -> Value {
    let mut writer = Writer::new();
    writer.error(ErrorClass::TypeError);
    writer.string("SerializationError");
    writer.string("error: a value that raises when it is read cannot be cloned");
    writer.undefined();
    writer.undefined();
    writer.finish()
}

/// A string as a source, which keeps the position of a lone surrogate.
pub(crate) fn source_text(text: &Bound<'_, PyString>) -> PyResult<SourceText> {
    match text.to_str() {
        Ok(text) => Ok(SourceText::from(text.to_owned())),
        Err(_) => Ok(SourceText::from_utf16(&utf16(text)?)),
    }
}

/// Any object as text, lone surrogates replaced; the class of an object whose `str` raises.
pub(crate) fn any_text(value: &Bound<'_, PyAny>) -> String {
    lossy_text(value)
        .or_else(|_| Ok::<_, PyErr>(format!("an instance of {}", value.get_type().name()?)))
        .unwrap_or_default()
}

/// Any object as text, lone surrogates replaced.
pub(crate) fn lossy_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(source_text(&value.str()?)?.text)
}

/// The code units of a string with lone surrogates.
fn utf16(text: &Bound<'_, PyString>) -> PyResult<Vec<u16>> {
    let class = text.py().get_type::<PyString>();
    let bytes = class.call_method1("encode", (text, "utf-16-le", "surrogatepass"))?;
    let bytes = bytes.extract::<&[u8]>()?;
    Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
}
