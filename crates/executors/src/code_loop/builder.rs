//! The options of a loop.
//!
//! In: a model, an executor and options, in Rust or as JSON. Out: a [`CodeLoop`], or the option that is wrong.

use std::sync::Arc;

use isolane::{Error, ErrorKind, Spelling, unknown_name, wrong_type};
use serde_json::{Map, Value as Json};

use super::CodeLoop;
use crate::{
    CodeBlockDelimiters, CodeExecutionInput, CodeExecutor, ExecFile, Model, checks::check_input,
    content::kind_of,
};

const MAX_TURNS: u32 = 16;
const MAX_OUTPUT_BYTES: usize = 65_536;

/// How code and its results are told to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AsText {
    /// As the model said it: a part as a part, a fenced block as text.
    #[default]
    Auto,
    /// As text.
    Text,
    /// As parts.
    Parts,
}

/// Makes a [`CodeLoop`]. It needs a model and an executor.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct CodeLoopBuilder {
    model: Option<Arc<dyn Model>>,
    executor: Option<Arc<dyn CodeExecutor>>,
    options: Options,
}

#[derive(Clone, Debug)]
struct Options {
    instruction: String,
    max_turns: u32,
    files: Vec<ExecFile>,
    execution_id: Option<String>,
    code_blocks: Option<Vec<CodeBlockDelimiters>>,
    result_delimiters: CodeBlockDelimiters,
    as_text: AsText,
    max_output_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            instruction: String::new(),
            max_turns: MAX_TURNS,
            files: Vec::new(),
            execution_id: None,
            code_blocks: None,
            result_delimiters: ("```tool_output\n".to_owned(), "\n```".to_owned()),
            as_text: AsText::Auto,
            max_output_bytes: MAX_OUTPUT_BYTES,
        }
    }
}

/// A loop whose options were checked.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) model: Arc<dyn Model>,
    pub(super) executor: Arc<dyn CodeExecutor>,
    pub(super) instruction: String,
    pub(super) max_turns: u32,
    pub(super) files: Vec<ExecFile>,
    pub(super) execution_id: Option<String>,
    pub(super) code_blocks: Vec<CodeBlockDelimiters>,
    pub(super) result_delimiters: CodeBlockDelimiters,
    pub(super) as_text: AsText,
    pub(super) max_output_bytes: usize,
}

impl CodeLoopBuilder {
    /// The model.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// The executor.
    pub fn executor(mut self, executor: Arc<dyn CodeExecutor>) -> Self {
        self.executor = Some(executor);
        self
    }

    /// The instruction of the model.
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.options.instruction = instruction.into();
        self
    }

    /// How often the model is asked at most; 16 unless told otherwise.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.options.max_turns = turns;
        self
    }

    /// Files that every program finds.
    pub fn files(mut self, files: Vec<ExecFile>) -> Self {
        self.options.files = files;
        self
    }

    /// The state of a stateful executor. By default each run has a new one.
    pub fn execution_id(mut self, id: impl Into<String>) -> Self {
        self.options.execution_id = Some(id.into());
        self
    }

    /// The delimiters of code in a text, in place of the executor's. None: texts have no code.
    pub fn code_blocks(mut self, delimiters: Vec<CodeBlockDelimiters>) -> Self {
        self.options.code_blocks = Some(delimiters);
        self
    }

    /// The delimiters of a result as text.
    pub fn result_delimiters(
        mut self,
        opening: impl Into<String>,
        closing: impl Into<String>,
    ) -> Self {
        self.options.result_delimiters = (opening.into(), closing.into());
        self
    }

    /// How code and results are told to the model.
    pub fn as_text(mut self, as_text: AsText) -> Self {
        self.options.as_text = as_text;
        self
    }

    /// The bytes of a result that a model is shown at most; 65,536 unless told otherwise.
    pub fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.options.max_output_bytes = bytes;
        self
    }

    /// Takes all options but the model and the executor from JSON, for a binding. `null` is as if not given.
    ///
    /// # Errors
    /// An unknown option, with the nearest one that exists; a value of the wrong type or out of range.
    pub fn json_options(
        mut self,
        options: &Map<String, Json>,
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let names: Vec<String> = NAMES.iter().map(|name| spelled(name, spelling)).collect();
        for (key, value) in options.iter().filter(|(_, value)| !value.is_null()) {
            let known = names.iter().position(|name| name == key);
            let Some(name) = known.and_then(|at| NAMES.get(at)) else {
                return Err(unknown_name("", key, &names));
            };
            self.options.set(name, key, value)?;
        }
        Ok(self)
    }

    /// Makes the loop.
    ///
    /// # Errors
    /// The model or the executor is missing; a number is 0; an opening or closing delimiter is empty; a file has no valid
    /// name, or two have the same.
    pub fn build(self) -> Result<CodeLoop, Error> {
        let Self { model, executor, options } = self;
        let model = model.ok_or_else(|| misuse("the loop needs a model"))?;
        let executor = executor.ok_or_else(|| misuse("the loop needs an executor"))?;
        if options.max_turns == 0 || options.max_output_bytes == 0 {
            let message = "the numbers of turns and of bytes of output must be at least 1";
            return Err(Error::new(ErrorKind::Range, message));
        }
        let input = CodeExecutionInput { input_files: options.files, ..Default::default() };
        check_input(&input).map_err(|error| misuse(error.message()))?;
        let code_blocks = options.code_blocks.unwrap_or_else(|| executor.code_block_delimiters());
        let is_empty =
            |(opening, closing): &CodeBlockDelimiters| opening.is_empty() || closing.is_empty();
        if code_blocks.iter().any(is_empty) || is_empty(&options.result_delimiters) {
            return Err(misuse("delimiters must not be empty"));
        }
        Ok(CodeLoop(Arc::new(Settings {
            model,
            executor,
            instruction: options.instruction,
            max_turns: options.max_turns,
            files: input.input_files,
            execution_id: options.execution_id,
            code_blocks,
            result_delimiters: options.result_delimiters,
            as_text: options.as_text,
            max_output_bytes: options.max_output_bytes,
        })))
    }
}

/// The names of the options that JSON may have.
const NAMES: [&str; 8] = [
    "instruction",
    "max_turns",
    "files",
    "execution_id",
    "code_blocks",
    "result_delimiters",
    "as_text",
    "max_output_bytes",
];

impl Options {
    fn set(&mut self, name: &str, key: &str, value: &Json) -> Result<(), Error> {
        match name {
            "instruction" => self.instruction = text(key, value)?,
            "execution_id" => self.execution_id = Some(text(key, value)?),
            "max_turns" => self.max_turns = u32::try_from(count(key, value)?).unwrap_or(u32::MAX),
            "max_output_bytes" => {
                self.max_output_bytes = usize::try_from(count(key, value)?).unwrap_or(usize::MAX);
            }
            "files" => {
                self.files = serde_json::from_value(value.clone())
                    .map_err(|error| misuse(&format!("{key}: {error}")))?;
            }
            "code_blocks" => self.code_blocks = Some(pairs(key, value)?),
            "result_delimiters" => match <[_; 1]>::try_from(pairs(key, value)?) {
                Ok([pair]) => self.result_delimiters = pair,
                Err(_) => return Err(misuse(&format!("{key} must be a list of one pair"))),
            },
            _ => {
                self.as_text = match value {
                    Json::Bool(true) => AsText::Text,
                    Json::Bool(false) => AsText::Parts,
                    Json::String(word) if word == "auto" => AsText::Auto,
                    other => return Err(wrong_type(key, "'auto' or a boolean", kind_of(other))),
                }
            }
        }
        Ok(())
    }
}

fn text(key: &str, value: &Json) -> Result<String, Error> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong_type(key, "a string", kind_of(value)))
}

fn count(key: &str, value: &Json) -> Result<u64, Error> {
    let Some(number) = value.as_f64() else {
        return Err(wrong_type(key, "a number", kind_of(value)));
    };
    match value.as_u64() {
        Some(count) if count > 0 => Ok(count),
        // A language may have no other numbers than these.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        _ if number.fract() == 0.0 && (1.0..=1e9).contains(&number) => Ok(number as u64),
        _ => {
            let message = format!("{key} must be a whole number of at least 1, got {value}");
            Err(Error::new(ErrorKind::Range, message))
        }
    }
}

/// A list of pairs of texts; a pair by itself is a list of one.
fn pairs(key: &str, value: &Json) -> Result<Vec<CodeBlockDelimiters>, Error> {
    let one = serde_json::from_value::<CodeBlockDelimiters>(value.clone()).map(|pair| vec![pair]);
    one.or_else(|_| serde_json::from_value(value.clone()))
        .map_err(|_| wrong_type(key, "a list of pairs of strings", kind_of(value)))
}

fn spelled(name: &'static str, spelling: Spelling) -> String {
    let kind = isolane::OptionKind::Other;
    isolane::OptionDeclaration { name, kind }.spelled(spelling)
}

fn misuse(message: &str) -> Error {
    Error::new(ErrorKind::Type, message)
}
