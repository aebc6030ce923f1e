//! Inputs and results of calls.
//!
//! In JSON they have the field names of Rust; camel case is read as well. Contents of files are base64.

use serde::{Deserialize, Serialize};

/// A program to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeExecutionInput {
    /// Its source.
    pub code: String,
    /// Its language, in lower case: `python`, `shell`. Empty is the executor's own.
    pub language: String,
    /// Files to put into its working folder.
    #[serde(alias = "inputFiles")]
    pub input_files: Vec<ExecFile>,
    /// The state in which it runs, for executors that have one.
    #[serde(alias = "executionId")]
    pub execution_id: Option<String>,
}

impl CodeExecutionInput {
    /// That source, in the executor's own language, without files.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into(), ..Self::default() }
    }
}

/// The result of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeExecutionResult {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The files that it made or changed.
    #[serde(alias = "outputFiles")]
    pub output_files: Vec<ExecFile>,
    /// Its exit code; 128 + N after signal N. `None` after a timeout, or where it is not known.
    #[serde(alias = "exitCode")]
    pub exit_code: Option<i32>,
}

impl CodeExecutionResult {
    /// Whether the exit code is 0, or there is neither an exit code nor text in `stderr`.
    #[must_use]
    pub fn is_success(&self) -> bool {
        match self.exit_code {
            Some(code) => code == 0,
            None => self.stderr.is_empty(),
        }
    }

    /// Both streams as one text, with a line between them unless one is empty.
    #[must_use]
    pub fn combined_output(&self) -> String {
        match (self.stdout.as_str(), self.stderr.as_str()) {
            (stdout, "") => stdout.to_owned(),
            ("", stderr) => stderr.to_owned(),
            (stdout, stderr) => format!("{stdout}\n--- stderr ---\n{stderr}"),
        }
    }
}

/// A file that a program finds in its working folder, or that it left there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its bytes.
    #[serde(with = "base64_text")]
    pub content: Vec<u8>,
    /// Its media type, if it is known.
    #[serde(default, alias = "mimeType")]
    pub mime_type: Option<String>,
}

/// The outcome of a call, as a model is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Nobody said.
    #[default]
    #[serde(rename = "OUTCOME_UNSPECIFIED")]
    OutcomeUnspecified,
    /// The program succeeded.
    #[serde(rename = "OUTCOME_OK")]
    OutcomeOk,
    /// The program failed, or did not start.
    #[serde(rename = "OUTCOME_FAILED")]
    OutcomeFailed,
    /// The program took longer than it may.
    #[serde(rename = "OUTCOME_DEADLINE_EXCEEDED")]
    OutcomeDeadlineExceeded,
}

/// Bytes as base64, in JSON.
mod base64_text {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}
