//! Requests that `lib/run/options.ts` writes, and the core's messages for bad options.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]

use isolane::{
    Language, NativeFunctions, OptionDeclaration, OptionKind, OptionSet, Request, SourceText,
    Spelling, unknown_name as unknown_among, unknown_option as unknown, wrong_type as wrong,
};
use napi::Result;
use napi_derive::napi;

use crate::{
    error::broken_frame,
    value::Cursor,
    wire::{request_flag, source_encoding},
};

/// Reads a request; `blobs` are those of its inputs.
pub(crate) fn read_request(
    mut frame: Cursor<'_>,
    blobs: Option<Vec<&[u8]>>,
    native: NativeFunctions,
) -> Result<Request> {
    let flags = frame.u8()?;
    let memory_limit_bytes = when(flags, request_flag::MEMORY_LIMIT, || frame.f64())?;
    let timeout_ms = when(flags, request_flag::TIMEOUT, || frame.f64())?;
    let source = self::source(&mut frame)?;
    let filename = when(flags, request_flag::FILENAME, || frame.text())?;
    let function = when(flags, request_flag::FUNCTION, || frame.text())?;
    let modules = list(&mut frame, |frame| Ok((frame.text()?, self::source(frame)?)))?;
    let globals = list(&mut frame, Cursor::text)?;
    let imports = list(&mut frame, |frame| Ok((frame.text()?, list(frame, Cursor::text)?)))?;
    Ok(Request {
        filename,
        language: if flags & request_flag::JAVA_SCRIPT == 0 {
            Language::TypeScript
        } else {
            Language::JavaScript
        },
        function,
        modules,
        globals,
        imports,
        inputs: frame.message(blobs),
        report: flags & request_flag::REPORT != 0,
        memory_limit_bytes,
        timeout_ms,
        native,
        spelling: Spelling::Camel,
        ..Request::new(source)
    })
}

/// The core's message for an option of the wrong type.
#[napi(catch_unwind)]
#[must_use]
pub fn wrong_type(option: String, expected: String, got: String) -> String {
    wrong(&option, &expected, &got).message().to_owned()
}

/// The core's message for an option that does not exist.
#[napi(catch_unwind)]
#[must_use]
pub fn unknown_option(set: String, key: String) -> String {
    let set = OptionSet::named(&set).unwrap_or(OptionSet::Run);
    unknown(set, &key, Spelling::Camel).message().to_owned()
}

/// The core's message for an option that is none of these.
#[napi(catch_unwind)]
#[must_use]
pub fn unknown_name(key: String, names: Vec<String>) -> String {
    unknown_among("", &key, &names).message().to_owned()
}

/// The declaration of an option, by which JavaScript checks its type.
#[napi(object)]
pub struct NativeOption {
    pub name: String,
    /// Its `typeof`; empty if the reader of the option checks that itself.
    #[napi(js_name = "type")]
    pub type_name: String,
    /// The permitted texts; empty if any text is permitted.
    pub choices: Vec<String>,
    /// A description of the choices, for an error message.
    pub expected: String,
}

/// All options of a set, by its name.
#[napi(catch_unwind)]
#[must_use]
pub fn option_declarations(set: String) -> Vec<NativeOption> {
    let declared = OptionSet::named(&set).map_or(&[][..], OptionSet::declarations);
    let native = |option: &OptionDeclaration| NativeOption {
        name: option.spelled(Spelling::Camel),
        type_name: match option.kind {
            OptionKind::Count { .. } => "number",
            OptionKind::Choice(_) | OptionKind::Text | OptionKind::Path => "string",
            OptionKind::Other => "",
        }
        .to_owned(),
        choices: match option.kind {
            OptionKind::Choice(choices) => choices.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        },
        expected: option.kind.choices(),
    };
    declared.iter().map(native).collect()
}

pub(crate) fn source(frame: &mut Cursor<'_>) -> Result<SourceText> {
    Ok(match frame.u8()? {
        source_encoding::UTF8 => SourceText::from(frame.text()?),
        source_encoding::UTF16 => SourceText::from_utf16(&frame.units()?),
        _ => return Err(broken_frame()),
    })
}

pub(crate) fn when<T>(flags: u8, flag: u8, read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    if flags & flag == 0 { Ok(None) } else { read().map(Some) }
}

pub(crate) fn list<'a, T>(
    frame: &mut Cursor<'a>,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    (0..frame.count()?).map(|_| read(frame)).collect()
}
