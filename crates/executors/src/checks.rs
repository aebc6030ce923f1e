//! Checks of the input of a call.
//!
//! In: an input. Out: nothing, or an error of the kind `bad_input` that says what is wrong.

use std::collections::HashSet;

use crate::{CodeExecutionInput, ExecutorError, ExecutorErrorKind::BadInput};

/// The longest source.
const MOST_CODE_BYTES: usize = 16 << 20;

/// The longest name of a file, as file systems have it.
const MOST_NAME_BYTES: usize = 255;

/// Checks the source and the names of files.
pub(crate) fn check_input(input: &CodeExecutionInput) -> Result<(), ExecutorError> {
    if input.code.len() > MOST_CODE_BYTES {
        let message = format!("the code is larger than {MOST_CODE_BYTES} bytes");
        return Err(ExecutorError::new(BadInput, message));
    }
    let mut names = HashSet::new();
    for file in &input.input_files {
        check_name(&file.name)?;
        if !names.insert(file.name.as_str()) {
            let message = format!("two input files have the name {:?}", file.name);
            return Err(ExecutorError::new(BadInput, message));
        }
    }
    Ok(())
}

/// Checks the name of a file, which names no folder.
pub(crate) fn check_name(name: &str) -> Result<(), ExecutorError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name == "." || name == ".." {
        "it names a folder"
    } else if name.len() > MOST_NAME_BYTES {
        "it is longer than 255 bytes"
    } else if name.contains(['/', '\\', '\0']) {
        "it contains '/', '\\' or NUL"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(100).collect();
    let message = format!("{shown:?} is not a valid name of a file: {why}");
    Err(ExecutorError::new(BadInput, message))
}
