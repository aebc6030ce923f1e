//! Requests of sessions that `lib/session/options.ts` writes.

use isolane::{
    CallRequest, CellRequest, Language, NativeFunctions, SessionRequest, Spelling, UpdateRequest,
};
use napi::Result;

use crate::{
    options::{list, source, when},
    value::Cursor,
    wire::{cell_flag, session_flag},
};

/// Reads a request for a session; `blobs` are those of its inputs.
pub(crate) fn read_session(
    mut frame: Cursor<'_>,
    blobs: Option<Vec<&[u8]>>,
    native: NativeFunctions,
) -> Result<SessionRequest> {
    let flags = frame.u8()?;
    let memory_limit_bytes = when(flags, session_flag::MEMORY_LIMIT, || frame.f64())?;
    let checkpoint_bytes = when(flags, session_flag::CHECKPOINT, || frame.f64())?;
    let modules = list(&mut frame, |frame| Ok((frame.text()?, source(frame)?)))?;
    let globals = list(&mut frame, Cursor::text)?;
    let imports = list(&mut frame, |frame| Ok((frame.text()?, list(frame, Cursor::text)?)))?;
    Ok(SessionRequest {
        modules,
        globals,
        imports,
        inputs: frame.message(blobs),
        report: flags & session_flag::REPORT != 0,
        language: if flags & session_flag::JAVA_SCRIPT == 0 {
            Language::TypeScript
        } else {
            Language::JavaScript
        },
        memory_limit_bytes,
        interleave: flags & session_flag::INTERLEAVE != 0,
        checkpoint_bytes,
        native,
        spelling: Spelling::Camel,
        ..SessionRequest::default()
    })
}

/// Reads a request for a cell.
pub(crate) fn read_cell(mut frame: Cursor<'_>) -> Result<CellRequest> {
    let flags = frame.u8()?;
    let timeout_ms = when(flags, cell_flag::TIMEOUT, || frame.f64())?;
    let ended = when(flags, cell_flag::ENDED, || frame.text())?;
    let filename = when(flags, cell_flag::FILENAME, || frame.text())?;
    Ok(CellRequest {
        source: source(&mut frame)?,
        filename,
        language: if flags & cell_flag::JAVA_SCRIPT != 0 {
            Some(Language::JavaScript)
        } else if flags & cell_flag::TYPE_SCRIPT != 0 {
            Some(Language::TypeScript)
        } else {
            None
        },
        report: (flags & cell_flag::REPORT != 0).then_some(true),
        timeout_ms,
        ended,
        spelling: Spelling::Camel,
        interception: None,
    })
}

/// Reads a request for a call; `blobs` are those of its arguments.
pub(crate) fn read_call(mut frame: Cursor<'_>, blobs: Option<Vec<&[u8]>>) -> Result<CallRequest> {
    let flags = frame.u8()?;
    let timeout_ms = when(flags, cell_flag::TIMEOUT, || frame.f64())?;
    let ended = when(flags, cell_flag::ENDED, || frame.text())?;
    let name = frame.text()?;
    Ok(CallRequest {
        name,
        args: frame.message(blobs),
        report: (flags & cell_flag::REPORT != 0).then_some(true),
        timeout_ms,
        ended,
        spelling: Spelling::Camel,
        interception: None,
    })
}

/// Reads an update; `blobs` are those of its inputs.
pub(crate) fn read_update(
    mut frame: Cursor<'_>,
    blobs: Option<Vec<&[u8]>>,
) -> Result<UpdateRequest> {
    let removed_modules = list(&mut frame, Cursor::text)?;
    let removed_globals = list(&mut frame, Cursor::text)?;
    let removed_imports = list(&mut frame, Cursor::text)?;
    let modules = list(&mut frame, |frame| Ok((frame.text()?, source(frame)?)))?;
    let globals = list(&mut frame, Cursor::text)?;
    let imports = list(&mut frame, |frame| Ok((frame.text()?, list(frame, Cursor::text)?)))?;
    Ok(UpdateRequest {
        modules,
        globals,
        imports,
        inputs: frame.message(blobs),
        removed_modules,
        removed_globals,
        removed_imports,
    })
}
