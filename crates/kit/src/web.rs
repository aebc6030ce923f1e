//! The host's part of the classes of the web: URLs, random bytes, and UTF-8 of long texts.
//!
//! In: `url(input, base?)`, `urlSet(href, part, value)`, `random(count)`, `decodeUtf8(bytes, isFatal)` and
//! `encodeUtf8(text)`. Out: the parts of a URL by the URL standard, or `null`; bytes; a text, or `null` if bytes must be
//! UTF-8 and are not. Results count against the run before they are made; work on long values blocks its run alone.

use isolane::{
    Completion, NativeAnswer, NativeCall, NativeFunction, Value,
    value::{Event, Str, ViewKind, Writer},
};
use serde::Deserialize;
use url::{Url, quirks};

use crate::{
    room::{Room, RunRoom},
    thrown,
};

/// The most random bytes of one call, as `crypto.getRandomValues` has it.
const MOST_RANDOM_BYTES: usize = 65_536;

/// Values of fewer bytes are worked on at once.
const SHORT_BYTES: usize = 32 << 10;

/// Bytes that the parts of a URL take beside its texts.
const PARTS_BYTES: usize = 1 << 10;

/// A function for the classes of the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebFunction {
    /// `url(input, base?)`
    Url,
    /// `urlSet(href, part, value)`
    UrlSet,
    /// `random(count)`
    Random,
    /// `decodeUtf8(bytes, isFatal)`
    DecodeUtf8,
    /// `encodeUtf8(text)`
    EncodeUtf8,
}

impl WebFunction {
    /// The function with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "url" => Self::Url,
            "urlSet" => Self::UrlSet,
            "random" => Self::Random,
            "decodeUtf8" => Self::DecodeUtf8,
            "encodeUtf8" => Self::EncodeUtf8,
            _ => return None,
        })
    }

    fn answer(self, call: &NativeCall) -> Completion {
        match self {
            Self::Url => url(call),
            Self::UrlSet => url_set(call),
            Self::Random => random(call),
            Self::DecodeUtf8 => decode_utf8(call),
            Self::EncodeUtf8 => encode_utf8(call),
        }
    }
}

impl NativeFunction for WebFunction {
    fn name(&self) -> &str {
        match self {
            Self::Url => "url",
            Self::UrlSet => "urlSet",
            Self::Random => "random",
            Self::DecodeUtf8 => "decodeUtf8",
            Self::EncodeUtf8 => "encodeUtf8",
        }
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let function = *self;
        if call.args.held_bytes() < SHORT_BYTES {
            return function.answer(&call).into();
        }
        NativeAnswer::blocking(move || function.answer(&call))
    }
}

#[derive(Deserialize)]
struct UrlArguments(String, #[serde(default)] Option<String>);

fn url(call: &NativeCall) -> Completion {
    let mut room = RunRoom::new(call.run.clone());
    take(&mut room, 8 * call.args.held_bytes() + PARTS_BYTES)?;
    let UrlArguments(input, base) = call.arguments()?;
    let parsed = match base.map(|base| Url::parse(&base)) {
        None => Url::parse(&input),
        Some(Ok(base)) => base.join(&input),
        Some(Err(error)) => Err(error),
    };
    Ok(parsed.map_or_else(|_| null(), |url| parts(&url)))
}

fn url_set(call: &NativeCall) -> Completion {
    let mut room = RunRoom::new(call.run.clone());
    take(&mut room, 8 * call.args.held_bytes() + PARTS_BYTES)?;
    let (href, part, value): (String, String, String) = call.arguments()?;
    let Ok(mut url) = Url::parse(&href) else { return Ok(null()) };
    // By the standard, a value that does not fit changes nothing.
    let _ = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => return thrown("TypeError", "a URL has no such part"),
    };
    Ok(parts(&url))
}

/// The parts of a URL by their names in JavaScript.
fn parts(url: &Url) -> Value {
    let mut writer = Writer::new();
    writer.object();
    let mut part = |name: &str, text: &str| {
        writer.key(name);
        writer.string(text);
    };
    part("href", quirks::href(url));
    part("origin", &quirks::origin(url));
    part("protocol", quirks::protocol(url));
    part("username", quirks::username(url));
    part("password", quirks::password(url));
    part("host", quirks::host(url));
    part("hostname", quirks::hostname(url));
    part("port", quirks::port(url));
    part("pathname", quirks::pathname(url));
    part("search", quirks::search(url));
    part("hash", quirks::hash(url));
    writer.end_object();
    writer.finish()
}

fn random(call: &NativeCall) -> Completion {
    let (count,): (usize,) = call.arguments()?;
    if count > MOST_RANDOM_BYTES {
        return thrown("TypeError", format!("at most {MOST_RANDOM_BYTES} random bytes at a time"));
    }
    take(&mut RunRoom::new(call.run.clone()), count)?;
    let mut bytes = vec![0; count];
    if getrandom::fill(&mut bytes).is_err() {
        return thrown("Error", "the system has no random bytes");
    }
    Ok(written_bytes(bytes))
}

fn decode_utf8(call: &NativeCall) -> Completion {
    let wrong = || thrown("TypeError", "decodeUtf8 takes a Uint8Array and a boolean");
    let mut reader = call.args.reader();
    let (Ok(Event::Array(2)), Ok(Event::View { blob, byte_offset, length, .. })) =
        (reader.event(), reader.event())
    else {
        return wrong();
    };
    let Ok(Event::Bool(is_fatal)) = reader.event() else { return wrong() };
    let (from, length) = (usize::try_from(byte_offset), usize::try_from(length));
    let (Ok(from), Ok(length)) = (from, length) else { return wrong() };
    let blob = call.args.blobs().get(blob as usize);
    let Some(bytes) = blob.and_then(|blob| blob.get(from..)?.get(..length)) else {
        return wrong();
    };
    let mut room = RunRoom::new(call.run.clone());
    let mut writer = Writer::new();
    if let Ok(text) = std::str::from_utf8(bytes) {
        take(&mut room, 2 * text.len())?;
        writer.string(text);
    } else if is_fatal {
        writer.null();
    } else {
        // A wrong byte becomes a character of three, and both texts grow.
        take(&mut room, 9 * bytes.len())?;
        writer.string(&String::from_utf8_lossy(bytes));
    }
    Ok(writer.finish())
}

fn encode_utf8(call: &NativeCall) -> Completion {
    let mut reader = call.args.reader();
    let (Ok(Event::Array(1)), Ok(Event::String(Str::Utf8(text)))) =
        (reader.event(), reader.event())
    else {
        return thrown("TypeError", "encodeUtf8 takes a well-formed string");
    };
    take(&mut RunRoom::new(call.run.clone()), text.len())?;
    Ok(written_bytes(text.as_bytes().to_vec()))
}

fn written_bytes(bytes: Vec<u8>) -> Value {
    let mut writer = Writer::new();
    let length = bytes.len() as u64;
    let blob = writer.blob(bytes);
    writer.view(ViewKind::Uint8Array, blob, 0, length);
    writer.finish()
}

fn null() -> Value {
    let mut writer = Writer::new();
    writer.null();
    writer.finish()
}

/// Takes room for so many bytes. Without it the run ends as `memory`, and nobody sees the error.
fn take(room: &mut RunRoom, bytes: usize) -> Result<(), Value> {
    if room.take(bytes) {
        return Ok(());
    }
    thrown("RangeError", "the value is too large for the run").map(drop)
}
