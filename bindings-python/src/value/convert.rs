//! The conversions of objects that have no counterpart in the sandbox, in the order in which they are tried.
//!
//! In: an object that crosses by no other rule. Out: the value that crosses in its place. The classes of the standard
//! library cross in the sense that JSON gives them; objects of pydantic and numpy are known by the methods of their
//! classes, so nothing is imported; the caller's hook `default` gets the rest. All of them may run the caller's code,
//! which may raise: the failure says in which call.

use pyo3::{
    exceptions::{PyException, PyValueError},
    prelude::*,
    types::{IntoPyDict, PyDict, PyFloat, PyInt, PyString, PyTuple},
};

use super::{
    classes::{Class, DATE, DATETIME, DECIMAL, ENUM, TIME, TIMEDELTA, UUID},
    tolerated,
};

/// From here on not every integer is a number.
const FIRST_UNSAFE: f64 = 9_007_199_254_740_992.0;

/// The longest text of an exception in a message.
const MOST_CHARACTERS: usize = 300;

/// The most digits of an integral Decimal that crosses: as many as Python turns into text by default.
const MOST_DIGITS: i64 = 4300;

/// The value in place of an object.
pub(super) enum Converted<'py> {
    /// Any value, which crosses by its own rules.
    Value(Bound<'py, PyAny>),
    /// The fields of a plain object: key, value, key, value.
    Fields(Vec<Bound<'py, PyAny>>),
    /// No conversion takes the object.
    Nothing,
}

/// The reason for which a conversion gave no value.
pub(super) enum Failure {
    /// A call of the caller's code raised: `model_dump raised ValueError: …`.
    Failed(String, PyErr),
    /// An exception that must reach the host, such as `KeyboardInterrupt`.
    Raised(PyErr),
    /// The object has no value there; the text is its kind, with the article.
    Refused(String),
    /// The object has a method of its own for this, of that name: `.tolist()`.
    Advised(&'static str),
}

impl From<PyErr> for Failure {
    fn from(raised: PyErr) -> Self {
        Self::Raised(raised)
    }
}

/// Converts an object; `default` is the caller's hook.
pub(super) fn convert<'py>(
    value: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
) -> Result<Converted<'py>, Failure> {
    let class = value.get_type();
    // An exception of a metaclass counts as a missing attribute.
    let has = |name: &str| tolerated(class.py(), class.hasattr(name)).map(|has| has == Some(true));
    if let Some(plain) = plain(value)? {
        return Ok(Converted::Value(plain));
    }
    if TIMEDELTA.has(value)? {
        return own(&TIMEDELTA, "total_seconds", value).map(Converted::Value);
    }
    if DECIMAL.has(value)? {
        return decimal(value).map(Converted::Value);
    }
    if has("model_dump")? {
        let python = [("mode", "python")].into_py_dict(value.py())?;
        let dumped = value.getattr("model_dump").and_then(|dump| dump.call((), Some(&python)));
        let dumped = call("model_dump", value.py(), dumped)?;
        return Ok(match plain_items(&dumped) {
            Some(items) => Converted::Fields(items),
            None => Converted::Value(dumped),
        });
    }
    if has("__dataclass_fields__")? {
        return fields(value).map(Converted::Fields);
    }
    let is_scalar = has("dtype")? && has("item")? && has("shape")? && is_empty_shape(value)?;
    if is_scalar && let Some(item) = scalar(value)? {
        return Ok(Converted::Value(item));
    }
    if let Some(default) = default {
        let converted = default.call1((value,));
        return call("default", value.py(), converted).map(Converted::Value);
    }
    if !is_scalar && has("tolist")? {
        return Err(Failure::Advised(".tolist()"));
    }
    Ok(Converted::Nothing)
}

/// The value of a member of an enum; the text of a date, a time and a UUID.
fn plain<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    if ENUM.has(value)? {
        let member = value.getattr("_value_");
        return call("reading its value", value.py(), member).map(Some);
    }
    for (known, method) in [(&DATE, "isoformat"), (&TIME, "isoformat"), (&UUID, "__str__")] {
        if known.has(value)? {
            return own(known, method, value).map(Some);
        }
    }
    Ok(None)
}

/// The text as which a key of a dict crosses, if it crosses as one.
pub(super) fn key<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if key.is_instance_of::<PyString>() {
        return Ok(Some(key.clone()));
    }
    // A moment crosses as a Date.
    if DATETIME.has(key)? {
        return Ok(None);
    }
    match plain(key) {
        Ok(plain) => Ok(plain.filter(PyAnyMethods::is_instance_of::<PyString>)),
        Err(Failure::Raised(raised)) => Err(raised),
        // The failure is told where the key itself is written.
        Err(Failure::Failed(..) | Failure::Refused(_) | Failure::Advised(_)) => Ok(None),
    }
}

/// The entries of a dict that is no subclass and has text as keys.
fn plain_items<'py>(dumped: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    let dict = dumped.cast_exact::<PyDict>().ok()?;
    let entries = dict.iter();
    let mut items = Vec::with_capacity(2 * dict.len());
    for (key, value) in entries {
        items.extend([key.is_exact_instance_of::<PyString>().then_some(key)?, value]);
    }
    Some(items)
}

/// Tells an exception of a call from one that must reach the host.
fn call<T>(name: &str, py: Python<'_>, outcome: PyResult<T>) -> Result<T, Failure> {
    outcome.map_err(|raised| {
        if raised.is_instance_of::<PyException>(py) {
            Failure::Failed(format!("{name} raised {}", shown(&raised, py)), raised)
        } else {
            Failure::Raised(raised)
        }
    })
}

/// The class and the text of an exception, as in the last line of a traceback.
fn shown(raised: &PyErr, py: Python<'_>) -> String {
    let name = super::encode::class_name(&raised.get_type(py)).unwrap_or_default();
    let text = super::lossy_text(raised.value(py).as_any()).unwrap_or_default();
    let mut text: String = text.chars().take(MOST_CHARACTERS + 1).collect();
    if text.chars().count() > MOST_CHARACTERS {
        text.pop();
        text.push('…');
    }
    if text.is_empty() { name } else { format!("{name}: {text}") }
}

/// The answer of a method of the class itself: a subclass may have overridden it.
fn own<'py>(
    class: &Class,
    method: &str,
    value: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let answer = class.get(value.py())?.call_method1(method, (value,));
    call(method, value.py(), answer)
}

/// The number of a Decimal; the integer of an integral one, which is a bigint if it is not safe.
fn decimal<'py>(value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Failure> {
    let py = value.py();
    let float = match own(&DECIMAL, "__float__", value) {
        // A signaling NaN has no number.
        Err(Failure::Failed(_, raised)) if raised.is_instance_of::<PyValueError>(py) => {
            return Ok(PyFloat::new(py, f64::NAN).into_any());
        }
        float => float?,
    };
    let number = float.extract::<f64>()?;
    if number.is_nan() || number.abs() < FIRST_UNSAFE {
        return Ok(float);
    }
    if own(&DECIMAL, "is_infinite", value)?.is_truthy()? {
        return Ok(float);
    }
    let digits = own(&DECIMAL, "adjusted", value)?.extract::<i64>()?;
    if digits >= MOST_DIGITS {
        return Err(Failure::Refused("a Decimal that is out of range".to_owned()));
    }
    let integer = own(&DECIMAL, "__int__", value)?;
    let is_integral = own_with(&DECIMAL, "__eq__", value, &integer)?.is_truthy()?;
    Ok(if is_integral || number.is_infinite() { integer } else { float })
}

fn own_with<'py>(
    class: &Class,
    method: &str,
    value: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let answer = class.get(value.py())?.call_method1(method, (value, other));
    call(method, value.py(), answer)
}

/// The fields of a data class, in the order of their declaration.
fn fields<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>, Failure> {
    let py = value.py();
    let listed = py.import("dataclasses")?.call_method1("fields", (value.get_type(),));
    let listed = listed.and_then(|fields| Ok(fields.cast_into::<PyTuple>()?));
    let listed = call("dataclasses.fields", py, listed)?;
    let mut items = Vec::with_capacity(2 * listed.len());
    for field in listed.iter() {
        let name = field.getattr("name").and_then(|name| Ok(name.cast_into::<PyString>()?));
        let name = call("dataclasses.fields", py, name)?;
        let member = value.getattr(&name);
        let reading = || format!("reading its field {}", name.to_string_lossy());
        let member = match member {
            Ok(member) => member,
            Err(raised) => return call(&reading(), py, Err(raised)),
        };
        items.extend([name.into_any(), member]);
    }
    Ok(items)
}

/// Whether `shape` is the empty tuple, as it is for scalars and for arrays without dimensions.
fn is_empty_shape(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let shape = tolerated(value.py(), value.getattr("shape"))?;
    Ok(shape.is_some_and(|shape| shape.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty)))
}

/// The Python object of a scalar of numpy. There is none for some: a moment in nanoseconds would be a bare count, and a
/// long double is its own item.
fn scalar<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    let py = value.py();
    let kind = value.getattr("dtype").and_then(|dtype| dtype.getattr_opt("kind"));
    let kind = call("reading its dtype", py, kind)?.and_then(|kind| kind.extract::<String>().ok());
    let item = call("item", py, value.call_method0("item"))?;
    let is_moment = matches!(kind.as_deref(), Some("M" | "m"));
    if item.get_type().is(value.get_type()) || (is_moment && item.is_instance_of::<PyInt>()) {
        return Ok(None);
    }
    Ok(Some(item))
}

/// The hook of the owner of a message; an owner without one has none.
pub(super) fn hook<'py>(owner: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let hook = owner.getattr_opt("default")?;
    Ok(hook.filter(|hook| !hook.is_none()))
}
