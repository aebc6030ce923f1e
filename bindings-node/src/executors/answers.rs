//! Answers of JavaScript to the questions of a run of the loop.

use std::sync::Arc;

use isolane_executors::ExecutorError;
use napi::Result;
use napi_derive::napi;

use super::{
    data::{NativeOutput, kind_of},
    questions::{Answer, Questions},
};
use crate::bridge::with_bridge;

/// The questions of a run that goes on.
fn questions(bridge: u32, work: u32) -> Result<Option<Arc<Questions>>> {
    with_bridge(bridge, |bridge| {
        bridge.works.borrow().get(&work).and_then(|work| work.questions.clone())
    })
}

fn answer(bridge: u32, work: u32, number: u32, answer: Answer) -> Result<()> {
    // Without a borrow: the answer may end the run.
    if let Some(questions) = questions(bridge, work)? {
        questions.answer(number, answer);
    }
    Ok(())
}

/// Events that count as so many were read, and others may come.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn read_loop_events(bridge: u32, work: u32, count: u32) -> Result<()> {
    if let Some(questions) = questions(bridge, work)? {
        questions.room.add_permits(count as usize);
    }
    Ok(())
}

/// Answers with parts, as JSON. For a stream they are the next ones.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn answer_parts(bridge: u32, work: u32, number: u32, parts: String) -> Result<()> {
    answer(bridge, work, number, Answer::Parts(parts))
}

/// Answers with a stream, whose parts are asked for one by one.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn answer_stream(bridge: u32, work: u32, number: u32) -> Result<()> {
    answer(bridge, work, number, Answer::Stream)
}

/// The stream is over.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn end_parts(bridge: u32, work: u32, number: u32) -> Result<()> {
    answer(bridge, work, number, Answer::End)
}

/// The model has thrown an exception, which JavaScript keeps.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn model_threw(bridge: u32, work: u32, number: u32) -> Result<()> {
    answer(bridge, work, number, Answer::Raised)
}

/// Answers with the result of an executor.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn answer_execution(bridge: u32, work: u32, number: u32, result: NativeOutput) -> Result<()> {
    answer(bridge, work, number, Answer::Executed(Ok(result.into())))
}

/// Answers with the error of an executor.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn refuse_execution(
    bridge: u32,
    work: u32,
    number: u32,
    kind: String,
    message: String,
) -> Result<()> {
    let error = ExecutorError::new(kind_of(&kind), message);
    answer(bridge, work, number, Answer::Executed(Err(error)))
}

/// Live output of an executor.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn execution_output(
    bridge: u32,
    work: u32,
    number: u32,
    is_stdout: bool,
    bytes: &[u8],
) -> Result<()> {
    let Some(questions) = questions(bridge, work)? else { return Ok(()) };
    match questions.context(number) {
        Some(context) if is_stdout => context.stdout(bytes),
        Some(context) => context.stderr(bytes),
        None => {}
    }
    Ok(())
}
