//! The trait of executors.
//!
//! In: an input and the context of a call. Out: a result, or an error if the program did not start.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;

use crate::{CodeExecutionInput, CodeExecutionResult, ExecutorError, InvocationContext};

/// The text before a block of code, and the text behind it.
pub type CodeBlockDelimiters = (String, String);

/// Runs code that a model emitted. Calls of one executor may overlap.
///
/// Only [`execute_code`](Self::execute_code) has to be there:
///
/// ```
/// use isolane_executors::{
///     CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError, InvocationContext,
/// };
///
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl CodeExecutor for Echo {
///     async fn execute_code(
///         &self,
///         _context: &InvocationContext,
///         input: CodeExecutionInput,
///     ) -> Result<CodeExecutionResult, ExecutorError> {
///         Ok(CodeExecutionResult { stdout: input.code, exit_code: Some(0), ..Default::default() })
///     }
/// }
/// ```
#[async_trait]
pub trait CodeExecutor: Send + Sync + Debug + 'static {
    /// Runs the code of the input to its end. Dropping the future ends the program.
    ///
    /// # Errors
    /// The program did not start, or the call was cancelled by its context.
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError>;

    /// Whether calls with the same `execution_id` share a state.
    fn stateful(&self) -> bool {
        false
    }

    /// How often the loop tries in all if the program does not start. 0 counts as 1.
    fn error_retry_attempts(&self) -> u32 {
        2
    }

    /// The wall time of a call; `None` has no limit.
    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(30))
    }

    /// Whether the executor ends each call by itself when its time is over, so that nobody else has to watch it. The time
    /// then runs from the start of the program: waiting for a turn, preparing and cleaning up are not part of it. If not,
    /// the loop gives a call up that takes 5 seconds longer than the time limit, counted from its beginning.
    fn keeps_time(&self) -> bool {
        false
    }

    /// The fences between which the loop finds code in a text, the opening and the closing one of each.
    fn code_block_delimiters(&self) -> Vec<CodeBlockDelimiters> {
        ["tool_code", "python"]
            .map(|language| (format!("```{language}\n"), "\n```".to_owned()))
            .to_vec()
    }
}
