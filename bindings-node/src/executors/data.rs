//! Inputs and results of executors, as messages and objects of JavaScript.

use isolane::{
    Error, ErrorKind, Value,
    value::{ViewKind, Writer},
};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, ExecFile, ExecutorError, ExecutorErrorKind,
    InvocationContext, ProgramConfinement,
};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde_json::{Map, Value as Json};

use crate::error::Misuse;

/// A file.
#[napi(object, object_to_js = false)]
pub struct NativeFile {
    pub name: String,
    pub content: Uint8Array,
    pub mime_type: Option<String>,
}

/// The input of a call.
#[napi(object, object_to_js = false)]
pub struct NativeInput {
    pub code: String,
    pub language: String,
    pub files: Vec<NativeFile>,
    pub execution_id: Option<String>,
}

/// The result of an executor of JavaScript.
#[napi(object, object_to_js = false)]
pub struct NativeOutput {
    pub stdout: String,
    pub stderr: String,
    pub files: Vec<NativeFile>,
    pub exit_code: Option<i32>,
}

impl From<NativeFile> for ExecFile {
    fn from(NativeFile { name, content, mime_type }: NativeFile) -> Self {
        Self { name, content: content.to_vec(), mime_type }
    }
}

impl From<NativeInput> for CodeExecutionInput {
    fn from(NativeInput { code, language, files, execution_id }: NativeInput) -> Self {
        let input_files = files.into_iter().map(ExecFile::from).collect();
        Self { code, language, input_files, execution_id }
    }
}

impl From<NativeOutput> for CodeExecutionResult {
    fn from(NativeOutput { stdout, stderr, files, exit_code }: NativeOutput) -> Self {
        let output_files = files.into_iter().map(ExecFile::from).collect();
        Self { stdout, stderr, output_files, exit_code }
    }
}

/// Bytes as a message.
pub(super) fn bytes_message(bytes: Vec<u8>) -> Value {
    let mut writer = Writer::new();
    write_bytes(&mut writer, bytes);
    writer.finish()
}

/// Both streams, the files and the exit code of a result.
pub(super) fn result_message(result: CodeExecutionResult) -> Value {
    let CodeExecutionResult { stdout, stderr, output_files, exit_code } = result;
    let mut writer = Writer::new();
    writer.array(4);
    writer.string(&stdout);
    writer.string(&stderr);
    write_files(&mut writer, output_files);
    match exit_code {
        Some(code) => writer.int(code),
        None => writer.null(),
    }
    writer.finish()
}

/// The kind and the message of an error of an executor.
pub(super) fn error_message(error: &ExecutorError) -> Value {
    pair(error.kind().as_str(), error.message())
}

/// Two texts.
pub(super) fn pair(first: &str, second: &str) -> Value {
    let mut writer = Writer::new();
    writer.array(2);
    writer.string(first);
    writer.string(second);
    writer.finish()
}

/// The source, the language, the files and the state of an input, and the run, the turn and the attempt of its context.
pub(super) fn input_message(input: CodeExecutionInput, context: &InvocationContext) -> Value {
    let CodeExecutionInput { code, language, input_files, execution_id } = input;
    let mut writer = Writer::new();
    writer.array(7);
    writer.string(&code);
    writer.string(&language);
    write_files(&mut writer, input_files);
    match execution_id {
        Some(id) => writer.string(&id),
        None => writer.null(),
    }
    writer.string(&context.invocation_id);
    writer.number(context.turn.into());
    writer.number(context.attempt.into());
    writer.finish()
}

/// JSON, and files.
pub(super) fn json_message(json: &Json, files: Vec<ExecFile>) -> Value {
    let mut writer = Writer::new();
    writer.array(2);
    write_json(&mut writer, json);
    write_files(&mut writer, files);
    writer.finish()
}

/// The confinement that programs have, by the names of JavaScript.
pub(super) fn confinement_message(confinement: &ProgramConfinement) -> Value {
    let mut writer = Writer::new();
    writer.object();
    for (name, item) in confinement.items.items() {
        writer.key(&camel(name));
        writer.bool(item);
    }
    writer.key("memory");
    writer.string(confinement.memory.as_str());
    writer.end_object();
    writer.finish()
}

fn write_files(writer: &mut Writer, files: Vec<ExecFile>) {
    writer.array(length(files.len()));
    for ExecFile { name, content, mime_type } in files {
        writer.array(3);
        writer.string(&name);
        write_bytes(writer, content);
        match mime_type {
            Some(mime_type) => writer.string(&mime_type),
            None => writer.null(),
        }
    }
}

fn write_bytes(writer: &mut Writer, bytes: Vec<u8>) {
    let length = bytes.len() as u64;
    let blob = writer.blob(bytes);
    writer.view(ViewKind::Uint8Array, blob, 0, length);
}

/// Writes JSON, which is no deeper than its parser permits. All numbers are those of JavaScript.
fn write_json(writer: &mut Writer, json: &Json) {
    match json {
        Json::Null => writer.null(),
        Json::Bool(flag) => writer.bool(*flag),
        Json::Number(number) => writer.number(number.as_f64().unwrap_or_default()),
        Json::String(text) => writer.string(text),
        Json::Array(items) => {
            writer.array(length(items.len()));
            for item in items {
                write_json(writer, item);
            }
        }
        Json::Object(members) => {
            writer.object();
            for (name, member) in members {
                writer.key(name);
                write_json(writer, member);
            }
            writer.end_object();
        }
    }
}

fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A name of Rust in camel case.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// The kind with that word; `other` for any other word.
pub(super) fn kind_of(word: &str) -> ExecutorErrorKind {
    use ExecutorErrorKind::{
        BadInput, Cancelled, EngineFailed, EngineMissing, Other, Spawn, Staging, Unsupported,
    };
    let kinds = [BadInput, EngineMissing, EngineFailed, Spawn, Staging, Unsupported, Cancelled];
    kinds.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Other)
}

/// The refusal of options that are not valid.
pub(super) fn misuse(error: &ExecutorError) -> Misuse {
    Error::new(ErrorKind::Range, error.message()).into()
}

/// JSON of JavaScript.
pub(super) fn read_json(text: &str) -> Result<Json, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::Type, format!("this is no JSON: {error}")))
}

/// Options as a JSON object.
pub(super) fn json_options(text: &str) -> Result<Map<String, Json>, Error> {
    match read_json(text)? {
        Json::Object(options) => Ok(options),
        _ => Err(Error::new(ErrorKind::Type, "options must be an object")),
    }
}
