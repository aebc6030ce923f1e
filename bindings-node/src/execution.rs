//! Operations of JavaScript on a run, by the run's number, and those that a session has as well.
//!
//! An operation on a run that has settled does nothing, as in the core.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]

use std::sync::Arc;

use isolane::{Completion, RunHandle, SessionHandle, Value};
use napi::{Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    bridge::{Bridge, with_bridge},
    value::{Cursor, into_javascript},
};

/// JavaScript reads reports of up to this weight without a pause when a caller reads `reports`.
const READ_AT_ONCE_BYTES: usize = 4 << 20;

/// Answers a host call.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn reply(
    bridge: u32,
    call: u32,
    ok: bool,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<()> {
    let completion = completion(ok, frame, length, blobs)?;
    with_bridge(bridge, |bridge| {
        if let Some(call) = bridge.take_call(call) {
            call.reply(completion);
            bridge.mailbox.expect();
        }
    })
}

/// Settles a promise of the host.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn settle_promise(
    bridge: u32,
    run: u32,
    promise: u32,
    ok: bool,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<()> {
    let completion = completion(ok, frame, length, blobs)?;
    match sandbox(bridge, run)? {
        Some(Sandbox::Run(run)) => run.settle_promise(promise, completion),
        Some(Sandbox::Session(session)) => session.settle_promise(promise, completion),
        None => {}
    }
    Ok(())
}

/// Calls a function of the sandbox.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn call_function(
    bridge: u32,
    run: u32,
    function: u32,
    call: u32,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<()> {
    let args = Cursor::new(frame, length)?.message(blobs);
    match sandbox(bridge, run)? {
        Some(Sandbox::Run(run)) => run.call_function(function, args, call),
        Some(Sandbox::Session(session)) => session.call_function(function, args, call),
        None => {}
    }
    Ok(())
}

/// Releases a function of the sandbox that was received `times` times.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn release_function(bridge: u32, run: u32, function: u32, times: u32) -> Result<()> {
    match sandbox(bridge, run)? {
        Some(Sandbox::Run(run)) => run.release_function(function, times),
        Some(Sandbox::Session(session)) => session.release_function(function, times),
        None => {}
    }
    Ok(())
}

/// Ends a run.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn terminate(bridge: u32, run: u32, reason: Option<String>) -> Result<()> {
    with_bridge(bridge, |bridge| {
        if let Some(run) = bridge.runs.borrow_mut().get_mut(&run) {
            run.terminated = true;
        }
    })?;
    with_run(bridge, run, |handle| handle.terminate(reason.as_deref()))
}

/// Resumes the events of a run after JavaScript has read its large message.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn resume(bridge: u32, run: u32) -> Result<()> {
    with_bridge(bridge, |bridge| bridge.mailbox.resume(run.into()))
}

/// Whether a run has not settled, or a session is open. JavaScript may not have received its last event yet.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn running(bridge: u32, run: u32) -> Result<bool> {
    with_bridge(bridge, |bridge| bridge.runs_now(run))
}

/// Whether host functions still start that the sandbox of a run or a session has called in events which were drained
/// before, and for which it does not wait.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn starts_calls(bridge: u32, run: u32) -> Result<bool> {
    with_bridge(bridge, |bridge| bridge.starts_calls(run))
}

/// The next part of the reports and logs of a run that has settled.
///
/// # Errors
/// When JavaScript has no memory for it.
#[napi(catch_unwind)]
pub fn output_part(env: &Env, bridge: u32, run: u32) -> Result<Uint8ArraySlice<'_>> {
    let bytes = with_bridge(bridge, |bridge| {
        let mut frame = bridge.frame();
        let mut all = bridge.outputs.borrow_mut();
        if all.get_mut(&run).is_none_or(|output| output.write_part(&mut frame)) {
            all.remove(&run);
        }
        bridge.leave_blobs(&mut frame);
        frame.bytes
    })?;
    into_javascript(env, bytes)
}

/// The reports of a run from `index` on, up to the first one that is too large to be read at once: their
/// count, then each as a message.
///
/// # Errors
/// When JavaScript has no memory for them.
#[napi(catch_unwind)]
pub fn reports_since(env: &Env, bridge: u32, run: u32, index: u32) -> Result<Uint8ArraySlice<'_>> {
    let mut reports = Vec::new();
    with_run(bridge, run, |handle| {
        let all = handle.shared_reports_since(index as usize);
        let is_small = |report: &Arc<Value>| report.held_bytes() <= READ_AT_ONCE_BYTES;
        reports = all.into_iter().take_while(is_small).collect();
    })?;
    let mut frame = with_bridge(bridge, Bridge::frame)?;
    frame.count(reports.len());
    for report in reports {
        frame.whole_message(Arc::unwrap_or_clone(report));
    }
    with_bridge(bridge, |bridge| bridge.leave_blobs(&mut frame))?;
    into_javascript(env, frame.bytes)
}

/// Calls `act` with the handle of a run, unless it has settled. No borrow is held during the call.
fn with_run(bridge: u32, run: u32, act: impl FnOnce(RunHandle)) -> Result<()> {
    let handle =
        with_bridge(bridge, |bridge| bridge.runs.borrow().get(&run).map(|run| run.handle.clone()))?;
    if let Some(handle) = handle {
        act(handle);
    }
    Ok(())
}

/// A handle on the sandbox that gives out numbers of functions and promises.
enum Sandbox {
    Run(RunHandle),
    Session(SessionHandle),
}

/// The run or session with that number, unless it has ended. No borrow is held when it is used.
fn sandbox(bridge: u32, number: u32) -> Result<Option<Sandbox>> {
    with_bridge(bridge, |bridge| {
        let run = bridge.runs.borrow().get(&number).map(|run| Sandbox::Run(run.handle.clone()));
        run.or_else(|| bridge.session(number).map(|session| Sandbox::Session(session.handle)))
    })
}

fn completion(
    ok: bool,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Completion> {
    let value = Cursor::new(frame, length)?.message(blobs);
    Ok(if ok { Ok(value) } else { Err(value) })
}
