//! Inputs, contexts and results, as messages.
//!
//! In: values that a face has read of its caller's objects. Out: the types of this crate, and messages of them. A file is
//! a list of its name, its bytes and its media type; `null` stands for what is not there.

use isolane::{
    Caller, Completion, Spelling, Value,
    value::{ViewKind, Writer},
};
use isolane_door::Given;

use super::live::Live;
use crate::{
    CodeExecutionInput, CodeExecutionResult, ExecFile, ExecutorError, ExecutorErrorKind,
    InvocationContext,
};

/// The input of a call; `bad_input` if a text has a lone surrogate.
pub(super) fn input(given: Given) -> Result<CodeExecutionInput, ExecutorError> {
    let Given::Object(fields) = given else { return Ok(CodeExecutionInput::default()) };
    let mut input = CodeExecutionInput::default();
    for (name, value) in fields {
        match name.as_str() {
            "code" => input.code = text(value)?,
            "language" => input.language = text(value)?,
            "files" => input.input_files = files(value)?,
            _ => input.execution_id = maybe_text(value)?,
        }
    }
    Ok(input)
}

/// Files; `bad_input` if a text has a lone surrogate.
pub(super) fn files(given: Given) -> Result<Vec<ExecFile>, ExecutorError> {
    let Given::List(files) = given else { return Ok(Vec::new()) };
    files.into_iter().map(file).collect()
}

fn file(given: Given) -> Result<ExecFile, ExecutorError> {
    let Given::List(fields) = given else { return Ok(ExecFile::default()) };
    let mut fields = fields.into_iter();
    let mut next = || fields.next().unwrap_or_default();
    let name = text(next())?;
    let content = match next() {
        Given::Bytes(bytes) => bytes,
        _ => Vec::new(),
    };
    Ok(ExecFile { name, content, mime_type: maybe_text(next())? })
}

fn text(given: Given) -> Result<String, ExecutorError> {
    maybe_text(given).map(Option::unwrap_or_default)
}

fn maybe_text(given: Given) -> Result<Option<String>, ExecutorError> {
    match given {
        Given::Text(text) => Ok(Some(text)),
        Given::Torn(_) => {
            let message = "a text of the input has a lone surrogate";
            Err(ExecutorError::new(ExecutorErrorKind::BadInput, message))
        }
        _ => Ok(None),
    }
}

/// The context of a call, and its live output, if the face wants any.
pub(super) fn context(given: &Given, caller: &Caller) -> (InvocationContext, Option<Live>) {
    let number = |key| match given.get(key) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        Given::Number(number) => *number as u32,
        _ => 0,
    };
    let mut context = InvocationContext::default();
    if let Given::Text(id) | Given::Torn(id) = given.get("invocationId") {
        context.invocation_id.clone_from(id);
    }
    (context.turn, context.attempt) = (number("turn"), number("attempt"));
    if *given.get("isCancelled") == Given::Bool(true) {
        context.cancellation.cancel();
    }
    Live::of(given, context, caller)
}

/// The result of an executor of the face: both streams, the files and the exit code. A lone surrogate is U+FFFD, or as
/// Python has none in its texts, a mistake.
pub(super) fn result(
    given: Given,
    spelling: Spelling,
) -> Result<CodeExecutionResult, ExecutorError> {
    let Given::List(fields) = given else { return Ok(CodeExecutionResult::default()) };
    let mut fields = fields.into_iter().map(|field| match field {
        Given::Torn(text) if spelling == Spelling::Camel => Given::Text(text),
        other => other,
    });
    let mut next = || fields.next().unwrap_or_default();
    let torn = |_| {
        let message = "the executor failed: a text of the result has a lone surrogate";
        ExecutorError::new(ExecutorErrorKind::BadInput, message)
    };
    let [stdout, stderr] = [text(next()), text(next())];
    let output_files = files(next()).map_err(torn)?;
    #[expect(clippy::cast_possible_truncation, reason = "the face has checked that it fits")]
    let exit_code = match next() {
        Given::Number(code) => Some(code as i32),
        _ => None,
    };
    let (stdout, stderr) = (stdout.map_err(torn)?, stderr.map_err(torn)?);
    Ok(CodeExecutionResult { stdout, stderr, output_files, exit_code })
}

/// The kind with that word; `other` for any other word.
pub(super) fn kind_of(word: &str) -> ExecutorErrorKind {
    use ExecutorErrorKind::{
        BadInput, Cancelled, EngineFailed, EngineMissing, Other, Spawn, Staging, Unsupported,
    };
    let kinds = [BadInput, EngineMissing, EngineFailed, Spawn, Staging, Unsupported, Cancelled];
    kinds.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Other)
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
pub(super) fn json_message(json: &str, files: Vec<ExecFile>) -> Value {
    let mut writer = Writer::new();
    writer.array(2);
    writer.string(json);
    write_files(&mut writer, files);
    writer.finish()
}

/// A text.
pub(super) fn text_message(text: &str) -> Value {
    let mut writer = Writer::new();
    writer.string(text);
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

/// The end of a call: an error is its kind and its message.
pub(super) fn completion(ended: Result<Value, ExecutorError>) -> Completion {
    ended.map_err(|error| pair(error.kind().as_str(), error.message()))
}

/// Two texts.
fn pair(first: &str, second: &str) -> Value {
    let mut writer = Writer::new();
    writer.array(2);
    writer.string(first);
    writer.string(second);
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

pub(super) fn bytes_message(bytes: Vec<u8>) -> Value {
    let mut writer = Writer::new();
    write_bytes(&mut writer, bytes);
    writer.finish()
}

fn write_bytes(writer: &mut Writer, bytes: Vec<u8>) {
    let length = bytes.len() as u64;
    let blob = writer.blob(bytes);
    writer.view(ViewKind::Uint8Array, blob, 0, length);
}

pub(super) fn length(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
