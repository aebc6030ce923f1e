//! Values as canonical text, so that values are compared as text.
//!
//! In: a value of the table's host. Out: JSON in which each value has one spelling, the same as in
//! `tests/three-way/canonical.mjs`.

use std::{collections::HashMap, fmt::Write, rc::Rc};

use crate::js::{Js, Object};

/// One message.
pub(crate) fn canonical(value: &Js) -> String {
    let mut out = Canonical { seen: HashMap::new(), out: String::new() };
    out.value(value);
    out.out
}

/// An object of JSON texts, without the fields that have none.
pub(crate) fn record(fields: Vec<(&'static str, Option<String>)>) -> String {
    let fields = fields.into_iter().filter_map(|(key, json)| Some(format!("\"{key}\":{}", json?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// A Rust string.
pub(crate) fn text(text: &str) -> String {
    quoted(&text.encode_utf16().collect::<Vec<_>>())
}

struct Canonical {
    /// Numbers of objects by their address, and of buffers by the address of their bytes.
    seen: HashMap<usize, usize>,
    out: String,
}

impl Canonical {
    fn value(&mut self, value: &Js) {
        match value {
            Js::Undefined => self.add("{\"$undefined\":true}"),
            Js::Null => self.add("null"),
            Js::Bool(value) => self.add(&value.to_string()),
            Js::Number(value) => self.add(&number(*value)),
            Js::BigInt(negative, magnitude) => self.add(&bigint(*negative, magnitude)),
            Js::String(units) => self.add(&quoted(units)),
            Js::Symbol(_) => self.add("{\"$symbol\":true}"),
            Js::Object(object) => {
                let object_borrowed = object.borrow();
                match &*object_borrowed {
                    Object::Buffer(blob) => self.buffer(blob),
                    inner => {
                        if self.is_new(Rc::as_ptr(object).addr()) {
                            self.object(inner);
                        }
                    }
                }
            }
        }
    }

    /// Numbers an object, or refers to its number.
    fn is_new(&mut self, address: usize) -> bool {
        let next = self.seen.len();
        if let Some(number) = self.seen.get(&address) {
            let reference = format!("{{\"$ref\":{number}}}");
            self.add(&reference);
            return false;
        }
        self.seen.insert(address, next);
        true
    }

    fn object(&mut self, object: &Object) {
        match object {
            Object::Plain(entries) => {
                self.add("{\"$object\":[");
                self.list(entries, |out, (key, value)| {
                    out.add("[");
                    out.add(&quoted(key));
                    out.add(",");
                    out.value(value);
                    out.add("]");
                });
                self.add("]}");
            }
            Object::Array(length, elements) if elements.len() == *length as usize => {
                self.add("[");
                self.list(elements, |out, (_, element)| out.value(element));
                self.add("]");
            }
            Object::Array(length, elements) => {
                self.add(&format!("{{\"$sparse\":[{length},["));
                self.list(elements, |out, (index, element)| {
                    out.add(&format!("[{index},"));
                    out.value(element);
                    out.add("]");
                });
                self.add("]]}");
            }
            Object::Map(entries) => {
                self.add("{\"$map\":[");
                self.list(entries, |out, (key, value)| {
                    out.add("[");
                    out.value(key);
                    out.add(",");
                    out.value(value);
                    out.add("]");
                });
                self.add("]}");
            }
            Object::Set(members) => {
                self.add("{\"$set\":[");
                self.list(members, Self::value);
                self.add("]}");
            }
            Object::Date(time) => self.add(&format!("{{\"$date\":{}}}", number(*time))),
            Object::RegExp(source, flags) => {
                self.add(&format!("{{\"$regexp\":[{},{}]}}", quoted(source), quoted(flags)));
            }
            Object::Error { class, name, message, code } => {
                let (name, message) = (quoted(name), quoted(message));
                self.add(&format!("{{\"$error\":[{},{name},{message},", text(class.name())));
                self.value(code);
                self.add("]}");
            }
            Object::Buffer(blob) => self.buffer(blob),
            Object::View { kind, blob, offset, length } => {
                self.add(&format!("{{\"$view\":[\"{kind:?}\",{offset},{length},"));
                self.buffer(blob);
                self.add("]}");
            }
            Object::HostFunction(_) | Object::SandboxFunction(_) => {
                self.add("{\"$function\":true}");
            }
            Object::HostPromise(_) | Object::SandboxPromise(_) => self.add("{\"$promise\":true}"),
            Object::Instance(class) => self.add(&format!("{{\"$instance\":{}}}", text(class))),
        }
    }

    /// An ArrayBuffer, which its views share.
    fn buffer(&mut self, blob: &Rc<Vec<u8>>) {
        if self.is_new(Rc::as_ptr(blob).addr()) {
            let bytes: Vec<String> = blob.iter().map(u8::to_string).collect();
            self.add(&format!("{{\"$buffer\":[{}]}}", bytes.join(",")));
        }
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.add(",");
            }
            write(self, item);
        }
    }

    fn add(&mut self, text: &str) {
        self.out.push_str(text);
    }
}

/// A safe integer in decimal, any other number by its bits.
fn number(value: f64) -> String {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    if value.is_nan() {
        "{\"$f64\":\"NaN\"}".to_owned()
    } else if value.fract() == 0.0 && value.abs() <= SAFE && value.to_bits() != (-0.0_f64).to_bits()
    {
        format!("{value}")
    } else {
        format!("{{\"$f64\":\"{:016x}\"}}", value.to_bits())
    }
}

fn bigint(negative: bool, magnitude: &[u8]) -> String {
    let mut hex = String::new();
    for byte in magnitude.iter().rev() {
        write!(hex, "{byte:02x}").expect("a string takes all");
    }
    let digits = match hex.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    format!("{{\"$bigint\":\"{}{digits}\"}}", if negative { "-" } else { "" })
}

/// Printable ASCII unchanged, every other character by its code units.
fn quoted(units: &[u16]) -> String {
    let mut quoted = String::from("\"");
    for unit in units {
        match u8::try_from(*unit) {
            Ok(byte @ b' '..=b'~') if byte != b'"' && byte != b'\\' => quoted.push(byte.into()),
            _ => write!(quoted, "\\u{unit:04x}").expect("a string takes all"),
        }
    }
    quoted.push('"');
    quoted
}
