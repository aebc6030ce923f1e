//! A value of JavaScript as a display.
//!
//! In: a message, or the text in its place. Out: text, markdown, JSON or an image in the record of a cell. A Map is an
//! object or pairs, a Set an array, a date and a bigint are text, a cycle is `"[Circular]"`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use isolane::{
    Value, inspect, iso_date,
    value::{Event, Reader},
};
use serde_json::{Map, Value as Json};

use crate::{Image, record::Record};

/// Deeper values are shown as a console shows them.
const MOST_DEPTH: usize = 100;

/// The bytes of a value that is shown as a console shows it.
const SHOWN_BYTES: usize = 64 << 10;

/// The bytes of JSON that are made of a value: code can name a large object often.
const MOST_JSON_BYTES: usize = 64 << 20;

/// Shows a value.
pub(super) fn show(value: &Value, record: &Record) {
    let Ok(first) = value.reader().event() else { return };
    match first {
        Event::Undefined => {}
        Event::Object | Event::Array(_) | Event::SparseArray(_) | Event::Map(_) | Event::Set(_) => {
            if let Event::Object = first
                && let Some(()) = special(value, record)
            {
                return;
            }
            match json(value) {
                Some(json) => record.json(json),
                None => record.text(&inspect(value, SHOWN_BYTES)),
            }
        }
        Event::String(text) => record.text(&text.to_string_lossy()),
        Event::Date(epoch_ms) => record.text(&date(epoch_ms)),
        _ => record.text(&inspect(value, SHOWN_BYTES)),
    }
}

/// Shows `{ type: 'image', data, mimeType }` or `{ type: 'markdown', text }`.
fn special(value: &Value, record: &Record) -> Option<()> {
    let mut reader = value.reader();
    reader.event().ok()?;
    let (mut kind, mut data, mut mime_type, mut text) = (None, None, None, None);
    while let Some(key) = reader.key().ok()? {
        let field = match &*key.text.to_string_lossy() {
            "type" => &mut kind,
            "data" => &mut data,
            "mimeType" => &mut mime_type,
            "text" => &mut text,
            // A display has no other fields.
            _ => return None,
        };
        *field = Some(match reader.event().ok()? {
            Event::String(text) => text.to_string_lossy(),
            Event::Buffer(blob) => STANDARD.encode(value.blobs().get(blob as usize)?),
            Event::View { kind, blob, byte_offset, length } => {
                let start = usize::try_from(byte_offset).ok()?;
                let bytes = usize::try_from(length).ok()?.checked_mul(kind.element_bytes())?;
                let blob = value.blobs().get(blob as usize)?;
                STANDARD.encode(blob.get(start..start.checked_add(bytes)?)?)
            }
            _ => return None,
        });
    }
    match (kind?.as_str(), data, mime_type, text) {
        ("image", Some(data), Some(mime_type), None) => {
            record.displayed_image(Image { data, mime_type });
        }
        ("markdown", None, None, Some(text)) => record.markdown(&text),
        _ => return None,
    }
    Some(())
}

/// The JSON of a value; `None` if it is too deep or too long.
fn json(value: &Value) -> Option<Json> {
    let mut reading =
        Reading { value, reader: value.reader(), objects: Vec::new(), room: MOST_JSON_BYTES };
    reading.read(0)
}

struct Reading<'v> {
    value: &'v Value,
    reader: Reader<'v>,
    /// The objects so far, by their index; `None` for one that is being read.
    objects: Vec<Option<(Json, usize)>>,
    room: usize,
}

impl Reading<'_> {
    fn read(&mut self, depth: usize) -> Option<Json> {
        self.room = self.room.checked_sub(1)?;
        if depth > MOST_DEPTH {
            return None;
        }
        let before = self.room;
        let event = self.reader.event().ok()?;
        if let Event::Ref(object) = event {
            return match self.objects.get(object as usize)? {
                None => Some("[Circular]".into()),
                Some((known, bytes)) => {
                    self.room = self.room.checked_sub(*bytes)?;
                    Some(known.clone())
                }
            };
        }
        let index = event.is_object().then(|| {
            self.objects.push(None);
            self.objects.len() - 1
        });
        let read = self.node(&event, depth + 1)?;
        if let Some(known) = index.and_then(|index| self.objects.get_mut(index)) {
            *known = Some((read.clone(), before - self.room));
        }
        Some(read)
    }

    fn node(&mut self, event: &Event<'_>, depth: usize) -> Option<Json> {
        Some(match event {
            Event::Null | Event::Undefined | Event::Hole => Json::Null,
            Event::Bool(value) => (*value).into(),
            Event::Int(value) => (*value).into(),
            Event::Double(value) => number(*value),
            Event::String(text) => {
                let text = text.to_string_lossy();
                self.room = self.room.checked_sub(text.len())?;
                text.into()
            }
            Event::Object => {
                let mut fields = Map::new();
                while let Some(key) = self.reader.key().ok()? {
                    let key = key.text.to_string_lossy();
                    self.room = self.room.checked_sub(key.len())?;
                    let is_undefined = matches!(self.reader.clone().event(), Ok(Event::Undefined));
                    let value = self.read(depth)?;
                    if !is_undefined {
                        fields.insert(key, value);
                    }
                }
                Json::Object(fields)
            }
            Event::Array(length) | Event::Set(length) => {
                (0..*length).map(|_| self.read(depth)).collect::<Option<Vec<_>>>()?.into()
            }
            Event::SparseArray(length) => self.sparse(*length, depth)?,
            Event::Map(entries) => self.map(*entries, depth)?,
            Event::Date(epoch_ms) => date(*epoch_ms).into(),
            Event::BigInt { .. } => self.shown(event)?,
            Event::RegExp => {
                let (source, flags) = (self.reader.text().ok()?, self.reader.text().ok()?);
                format!("/{}/{}", source.to_string_lossy(), flags.to_string_lossy()).into()
            }
            Event::Error(_) => {
                let (name, message) = (self.reader.text().ok()?, self.reader.text().ok()?);
                let text = format!("{}: {}", name.to_string_lossy(), message.to_string_lossy());
                self.reader.event().ok()?;
                self.reader.event().ok()?;
                text.into()
            }
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                format!("[Function: {}]", self.reader.text().ok()?.to_string_lossy()).into()
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => "[Promise]".into(),
            Event::Buffer(blob) => {
                let bytes = self.value.blobs().get(*blob as usize)?.len();
                format!("[{bytes} bytes]").into()
            }
            Event::View { kind, length, .. } => {
                format!("[{} bytes]", kind.element_bytes() as u64 * length).into()
            }
            Event::Ref(_) => return None,
        })
    }

    fn sparse(&mut self, length: u32, depth: usize) -> Option<Json> {
        self.room = self.room.checked_sub(usize::try_from(length).ok()?)?;
        let mut items = vec![Json::Null; usize::try_from(length).ok()?];
        while let Some(index) = self.reader.sparse_index().ok()? {
            let item = self.read(depth)?;
            *items.get_mut(index as usize)? = item;
        }
        Some(items.into())
    }

    fn map(&mut self, entries: u32, depth: usize) -> Option<Json> {
        let mut pairs = Vec::new();
        let mut are_texts = true;
        for _ in 0..entries {
            let is_text = matches!(self.reader.clone().event(), Ok(Event::String(_)));
            are_texts &= is_text;
            pairs.push((self.read(depth)?, self.read(depth)?));
        }
        if !are_texts {
            return Some(
                pairs.into_iter().map(|(key, value)| Json::from(vec![key, value])).collect(),
            );
        }
        let field = |(key, value): (Json, Json)| Some((key.as_str()?.to_owned(), value));
        pairs.into_iter().map(field).collect::<Option<Map<_, _>>>().map(Json::Object)
    }

    /// A scalar as a console shows it.
    fn shown(&mut self, event: &Event<'_>) -> Option<Json> {
        let Event::BigInt { negative, magnitude } = event else { return None };
        let mut writer = isolane::value::Writer::new();
        writer.bigint(*negative, magnitude);
        let text = inspect(&writer.finish(), SHOWN_BYTES);
        self.room = self.room.checked_sub(text.len())?;
        Some(text.trim_end_matches('n').into())
    }
}

/// A number; one that JSON does not have is text.
#[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0 {
        return (value as i64).into();
    }
    match serde_json::Number::from_f64(value) {
        Some(number) => Json::Number(number),
        None if value.is_nan() => "NaN".into(),
        None => (if value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
    }
}

/// A date as `toISOString` writes it.
fn date(epoch_ms: f64) -> String {
    iso_date(epoch_ms).unwrap_or_else(|| "Invalid Date".to_owned())
}
