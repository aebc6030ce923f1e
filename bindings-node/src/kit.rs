//! Kits: their options, their runs, and the host's own use of them.
//!
//! In: messages of JavaScript. Out: kits; runs and sessions of them, which are as any others; answers that arrive later.
//! The kit reads all options itself.

#![expect(clippy::needless_pass_by_value, reason = "arguments from JavaScript come by value")]
#![expect(clippy::too_many_arguments, reason = "one call into the addon is cheaper than two")]

use std::sync::Arc;

use isolane::{RunHandle, Spelling, unknown_name as unknown, value::Writer};
use isolane_kit::browser::{Browser, DrivenBrowser};
use isolane_kit::kit::{CallError, CallRecord, Kit, KitOptions, KitOutcome, KitRun};
use napi::{Either, Env, Result};
use napi_derive::napi;

use crate::{
    answers::Answer,
    bridge::with_bridge,
    error::Misuse,
    native::NativeTable,
    options::read_request,
    page::open_page,
    runtime::NativeRuntime,
    session_options::read_session,
    value::{Cursor, Frame},
    wire::{call_error_flag, call_flag, kit_flag},
};

/// A kit.
#[napi]
pub struct NativeKit {
    kit: Kit,
    /// The page that JavaScript drives.
    pub(crate) page: Option<Arc<DrivenBrowser>>,
}

/// Opens a kit on that runtime, or the default one; the options are a message, without `runtime`. `page` is the number of
/// the page that JavaScript drives, if there is one: an event with that number says that it has a task.
///
/// # Errors
/// When the frame is not one of `lib/kit-options.ts`.
#[napi(catch_unwind)]
pub fn open_kit(
    bridge: u32,
    runtime: Option<&NativeRuntime>,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    page: Option<u32>,
) -> Result<Either<NativeKit, Misuse>> {
    let message = Cursor::new(frame, length)?.message(blobs);
    let page = page.map(|number| open_page(bridge, number)).transpose()?;
    let browser = page.clone().map(|page| page as Arc<dyn Browser>);
    let opened = KitOptions::read(&message, browser, Spelling::Camel).and_then(|options| {
        let runtime = runtime.map(|runtime| runtime.runtime.clone());
        Kit::new(KitOptions { runtime, ..options })
    });
    Ok(match opened {
        Ok(kit) => Either::A(NativeKit { kit, page }),
        Err(error) => Either::B(error.into()),
    })
}

/// Starts a tool or a module with the capabilities of a kit, as [`start`](crate::bridge::start).
///
/// # Errors
/// When the frame is not one of `lib/options.ts`.
#[napi(catch_unwind)]
pub fn start_in_kit(
    env: Env,
    bridge: u32,
    kit: &NativeKit,
    is_tool: bool,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_request(Cursor::new(frame, length)?, blobs, native.clone())?;
    let amended = if is_tool { kit.kit.tool(request) } else { kit.kit.code(request) };
    match amended {
        Ok((request, _)) => {
            with_bridge(bridge, |bridge| bridge.start(env, &kit.kit.runtime(), request, native))
        }
        Err(error) => Ok(Either::B(error.into())),
    }
}

/// Opens a session with the capabilities of a kit, as [`open_session`](crate::session::open_session).
///
/// # Errors
/// When the frame is not one of `lib/session-options.ts`.
#[napi(catch_unwind)]
pub fn open_kit_session(
    bridge: u32,
    kit: &NativeKit,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    native: Option<&NativeTable>,
) -> Result<Either<u32, Misuse>> {
    let native = native.map(|table| table.functions.clone()).unwrap_or_default();
    let request = read_session(Cursor::new(frame, length)?, blobs, native.clone())?;
    match kit.kit.session_request(request) {
        Ok(request) => {
            with_bridge(bridge, |bridge| bridge.open(&kit.kit.runtime(), request, native))
        }
        Err(error) => Ok(Either::B(error.into())),
    }
}

/// Calls a function of the host's side. The answer with that number has the outcome, unless the call is refused.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn call_kit(
    env: Env,
    bridge: u32,
    kit: &NativeKit,
    request: u32,
    name: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Option<Misuse>> {
    let args = Cursor::new(frame, length)?.message(blobs);
    with_bridge(bridge, |bridge| {
        let answers = bridge.answers.clone();
        let done = move |done| answers.push(request, Answer::Called(done));
        match kit.kit.call(&name, args, done) {
            // Nobody can give it up here, so it goes on.
            Ok(_) => {
                bridge.hold(env);
                None
            }
            Err(error) => Some(error.into()),
        }
    })
}

/// Describes all that code sees of a kit. The answer with that number has the text.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn describe_kit(env: Env, bridge: u32, kit: &NativeKit, request: u32) -> Result<()> {
    with_bridge(bridge, |bridge| {
        let (answers, kit) = (bridge.answers.clone(), kit.kit.clone());
        bridge.hold(env);
        drop(isolane::spawn(async move {
            let described = kit.describe().await.map(|text| {
                let mut message = Writer::new();
                message.string(&text);
                message.finish()
            });
            answers.push(request, Answer::Called(described));
        }));
    })
}

/// The key by which another system finds a kit.
#[napi(catch_unwind)]
#[must_use]
pub fn kit_key(kit: &NativeKit) -> String {
    kit.kit.key()
}

/// Closes a kit.
#[napi(catch_unwind)]
pub fn close_kit(kit: &NativeKit) {
    kit.kit.close();
}

/// Gives a secret, whose options are a message.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn set_secret(
    kit: &NativeKit,
    name: String,
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
) -> Result<Option<Misuse>> {
    let secret = Cursor::new(frame, length)?.message(blobs);
    Ok(kit.kit.set_secret(&name, &secret).err().map(Misuse::from))
}

/// Takes a secret away.
#[napi(catch_unwind)]
#[must_use]
pub fn delete_secret(kit: &NativeKit, name: String) -> Either<bool, Misuse> {
    match kit.kit.secrets() {
        Ok(secrets) => Either::A(secrets.delete(&name)),
        Err(error) => Either::B(error.into()),
    }
}

/// The names of the secrets.
#[napi(catch_unwind)]
#[must_use]
pub fn secret_names(kit: &NativeKit) -> Either<Vec<String>, Misuse> {
    match kit.kit.secrets() {
        Ok(secrets) => Either::A(secrets.names()),
        Err(error) => Either::B(error.into()),
    }
}

/// The message for an option that is none of these.
#[napi(catch_unwind)]
#[must_use]
pub fn unknown_name(key: String, names: Vec<String>) -> String {
    unknown("", &key, &names).message().to_owned()
}

/// The kit's part of the outcome of a run that a kit intercepts.
pub(crate) fn outcome_of(run: &RunHandle) -> Option<KitOutcome> {
    Some(KitRun::of(&run.interception()?)?.outcome())
}

/// Writes that part.
pub(crate) fn write_kit(frame: &mut Frame, outcome: &KitOutcome) {
    frame.u8(if outcome.json.is_some() { kit_flag::JSON } else { 0 });
    if let Some(json) = &outcome.json {
        frame.text(json);
    }
    frame.f64(number(outcome.calls_dropped));
    frame.count(outcome.calls.len());
    for CallRecord { name, started, duration_ms, ok, bytes, summary, error } in &outcome.calls {
        let failed = if error.is_some() { call_flag::ERROR } else { 0 };
        frame.u8(failed | if *ok { call_flag::OK } else { 0 });
        frame.text(name);
        frame.f64(*started);
        frame.f64(*duration_ms);
        frame.f64(number(*bytes));
        frame.text(summary);
        if let Some(error) = error {
            frame.text(error);
        }
    }
}

/// Writes the error of a call by the host.
pub(crate) fn write_call_error(frame: &mut Frame, error: &CallError) {
    let CallError { name, message, code, filename, line, column } = error;
    frame.text(name);
    frame.text(message);
    frame.u8(if code.is_some() { call_error_flag::CODE } else { 0 }
        | if filename.is_some() { call_error_flag::FILENAME } else { 0 }
        | if line.is_some() { call_error_flag::LINE } else { 0 }
        | if column.is_some() { call_error_flag::COLUMN } else { 0 });
    for text in [code, filename].into_iter().flatten() {
        frame.text(text);
    }
    for number in [line, column].into_iter().flatten() {
        frame.u32(*number);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}
