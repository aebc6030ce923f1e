//! Messages between a host and a worker about one run, or about the cells of one session.
//!
//! In: [`ToWorker`] and [`ToHost`], the acts of the trait `Embedder` and of a host, as values. Out: frames, and back. A
//! worker trusts its host. A host checks every message of a worker that it can check. `session` has the messages that
//! only sessions have.

pub(crate) mod session;

use std::{sync::Arc, time::Duration};

use self::session::{Cell, Copied, Open};
use super::frame::{Fields, Frame, Unreadable};
use crate::{
    binding::{
        host::{Completion, Refusal},
        inbound::Inbound,
    },
    data::{
        cause::Cause,
        cell::{Name, SessionState},
        outcome::{ExecutionError, ExecutionLog, LogLevel, Status},
        source::{Language, SourceText},
        text::{MESSAGE_LIMIT, STACK_LIMIT, bounded},
    },
    isolate::{End, Stopped},
    modules::{
        program::Oversized,
        request::{ExtensionRequest, Request, Shape},
        session_request::UpdateRequest,
    },
    value::{Kinds, Purpose, Value, path::Step},
};

/// A message of a host to a worker.
#[derive(Debug)]
pub(crate) enum ToWorker {
    /// The run: the first message to a worker.
    Begin(Box<Begin>),
    /// The answer to a call of the cell with that number; zero if cells do not interleave.
    Answer { number: u32, completion: Completion },
    /// A message that the host sends unasked.
    Inbound(Inbound),
    /// The verdict whether the host can hold a value of the cell with that number.
    Verdict { number: u32, refusal: Option<Refusal> },
    /// The session: the first message to a worker that serves nothing else from then on.
    Open(Box<Open>),
    /// More for its session, or less. Between cells.
    Update(Box<UpdateRequest>),
    /// The next cell.
    Cell(Box<Cell>),
    /// The cell with that number must end; zero if cells do not interleave. A worker that has no such cell ignores it:
    /// the cell has ended meanwhile.
    End { number: u32 },
    /// A cell waits that has not begun: the worker is to park as soon as no code runs, though it has work.
    Yield,
    /// The worker has parked for nothing.
    GoOn,
    /// The question for the names. Between cells.
    Names,
    /// The question for a copy of the session. Between cells. `repeated`: the promises that the host settles in the copy,
    /// too.
    Copy { repeated: Vec<u32> },
}

impl ToWorker {
    /// Whether it gives the worker of a session something to do, which ends a request to park.
    pub(crate) fn is_work(&self) -> bool {
        matches!(self, Self::Cell(_) | Self::Names | Self::Copy { .. } | Self::GoOn)
    }
}

/// A run as its worker receives it.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) request: Request,
    /// CPU time of the run.
    pub(crate) safety_cap: Duration,
    /// Kinds of values that the host may be unable to hold, so that it must be asked.
    pub(crate) validated_kinds: Kinds,
}

/// A message of a worker to its host.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// A call. The sandbox waits for the answer.
    Call {
        function: u32,
        args: Value,
    },
    /// A call whose promise the sandbox already has.
    Start {
        function: u32,
        args: Value,
        promise: u32,
    },
    /// A report. With `waits`, the sandbox waits for the sink's answer.
    Report {
        value: Value,
        waits: bool,
    },
    /// The question whether the host can hold that value. The sandbox waits for the verdict.
    Ask(Value),
    Log(ExecutionLog),
    FunctionSettled {
        call: u32,
        completion: Completion,
    },
    PromiseSettled {
        promise: u32,
        completion: Completion,
    },
    /// The run waits for its host, after so many unasked messages of it.
    Parked {
        taken: u64,
    },
    /// The last message of a run.
    Ended {
        end: WorkersEnd,
        peak_bytes: Option<u64>,
    },
    /// The last message of a cell: its end, and its effect on the session.
    CellEnded(Box<CellEnded>),
    /// The messages from now on are of the cell with that number, which computes.
    Turn {
        number: u32,
    },
    /// A call of the host is in the cell with that number. Zero: in none, so it needs a cell of its own.
    Placed {
        call: u32,
        number: u32,
    },
    /// Names that cells have declared. More follow unless these are the last.
    Names {
        names: Vec<Name>,
        are_last: bool,
    },
    /// The answer to the question for a copy.
    Copied(Copied),
}

/// The end of a cell, as its worker sees it.
#[derive(Debug)]
pub(crate) struct CellEnded {
    /// The cell; zero if cells do not interleave.
    pub(crate) number: u32,
    pub(crate) end: WorkersEnd,
    pub(crate) peak_bytes: u64,
    pub(crate) state: SessionState,
    /// Whether it has changed nothing, because no code of it ran.
    pub(crate) is_untouched: bool,
    /// How many of the unasked messages that the worker has taken in all its cells have reached the sandbox, if cells do
    /// not interleave: the first ones.
    pub(crate) handed: u64,
    /// Other cells in flight that were undone with it.
    pub(crate) undone: Vec<u32>,
}

impl CellEnded {
    /// The end of a cell that was asked to end before it began.
    pub(crate) fn untouched(number: u32) -> Self {
        let (end, state) = (WorkersEnd::End(End::Asked), SessionState::Kept);
        let (peak_bytes, handed, undone) = (0, 0, Vec::new());
        Self { number, end, peak_bytes, state, is_untouched: true, handed, undone }
    }
}

/// The end of a run, as its worker sees it.
#[derive(Debug)]
pub(crate) enum WorkersEnd {
    End(End),
    /// The run has used up its CPU time.
    Cap,
    /// Nothing can resume the run, and this is its error.
    Stalled(Box<ExecutionError>),
    /// It computed when another cell had to end, with which it is undone.
    Undone,
}

const BEGIN: u8 = 1;
const ANSWER: u8 = 2;
const PROMISE: u8 = 3;
const FUNCTION_CALL: u8 = 4;
const FUNCTION_RELEASED: u8 = 5;
const VERDICT: u8 = 6;
const OPEN: u8 = 7;
const UPDATE: u8 = 8;
const CELL: u8 = 9;
const END: u8 = 10;
const NAMES_ASKED: u8 = 11;
const COPY: u8 = 12;
const YIELD: u8 = 13;
const GO_ON: u8 = 14;

const CALL: u8 = 1;
const START: u8 = 2;
const REPORT: u8 = 3;
const ASK: u8 = 4;
const LOG: u8 = 5;
const FUNCTION_SETTLED: u8 = 6;
const PROMISE_SETTLED: u8 = 7;
const PARKED: u8 = 8;
const ENDED: u8 = 9;
const CELL_ENDED: u8 = 10;
const NAMES: u8 = 11;
const COPIED: u8 = 12;
const TURN: u8 = 13;
const PLACED: u8 = 14;

const SUCCESS: u8 = 0;
const ERROR: u8 = 1;
const LINK_ERROR: u8 = 2;
const MEMORY: u8 = 3;
const ASKED: u8 = 4;
const BROKEN: u8 = 5;
const CAP: u8 = 6;
const STALLED: u8 = 7;
const OVERSIZED: u8 = 8;
const CAME_TO_ITS_END: u8 = 9;
const UNDONE: u8 = 10;
const STOPPED: u8 = 11;

const THROWN_BY_CALL: u8 = 0;
const THROWN_BY_PROMISE: u8 = 1;

impl ToWorker {
    pub(crate) fn into_frame(self) -> Frame {
        match self {
            Self::Begin(begin) => write_begin(*begin),
            Self::Answer { number, completion } => {
                write_completion(Frame::new(ANSWER).u32(number), completion)
            }
            Self::Inbound(Inbound::PromiseSettled { promise, completion }) => {
                write_completion(Frame::new(PROMISE).u32(promise), completion)
            }
            Self::Inbound(Inbound::FunctionCall { function, args, call }) => {
                Frame::new(FUNCTION_CALL).u32(function).u32(call).value(args)
            }
            Self::Inbound(Inbound::FunctionReleased { function, times }) => {
                Frame::new(FUNCTION_RELEASED).u32(function).u32(times)
            }
            Self::Verdict { number, refusal } => {
                Frame::new(VERDICT).u32(number).option(refusal, |frame, refusal| {
                    frame.list(refusal.path.into_iter(), write_step).text(&refusal.what)
                })
            }
            Self::Open(open) => session::write_open(Frame::new(OPEN), *open),
            Self::Update(update) => session::write_update(Frame::new(UPDATE), *update),
            Self::Cell(cell) => session::write_cell(Frame::new(CELL), *cell),
            Self::End { number } => Frame::new(END).u32(number),
            Self::Yield => Frame::new(YIELD),
            Self::GoOn => Frame::new(GO_ON),
            Self::Names => Frame::new(NAMES_ASKED),
            Self::Copy { repeated } => Frame::new(COPY).list(repeated.into_iter(), Frame::u32),
        }
    }

    pub(crate) fn from_frame(frame: Frame) -> Result<Self, Unreadable> {
        let (kind, mut fields) = frame.read()?;
        let told = match kind {
            BEGIN => Self::Begin(Box::new(read_begin(&mut fields)?)),
            ANSWER => Self::Answer {
                number: fields.u32()?,
                completion: read_completion(&mut fields, Fields::value)?,
            },
            PROMISE => Self::Inbound(Inbound::PromiseSettled {
                promise: fields.u32()?,
                completion: read_completion(&mut fields, Fields::value)?,
            }),
            FUNCTION_CALL => {
                let (function, call) = (fields.u32()?, fields.u32()?);
                Self::Inbound(Inbound::FunctionCall { function, args: fields.value()?, call })
            }
            FUNCTION_RELEASED => {
                let (function, times) = (fields.u32()?, fields.u32()?);
                Self::Inbound(Inbound::FunctionReleased { function, times })
            }
            VERDICT => Self::Verdict {
                number: fields.u32()?,
                refusal: fields.option(|fields| {
                    let path = fields.list(read_step)?;
                    Ok(Refusal { path, what: fields.text()? })
                })?,
            },
            OPEN => Self::Open(Box::new(session::read_open(&mut fields)?)),
            UPDATE => Self::Update(Box::new(session::read_update(&mut fields)?)),
            CELL => Self::Cell(Box::new(session::read_cell(&mut fields)?)),
            END => Self::End { number: fields.u32()? },
            YIELD => Self::Yield,
            GO_ON => Self::GoOn,
            NAMES_ASKED => Self::Names,
            COPY => Self::Copy { repeated: fields.list(Fields::u32)? },
            _ => return Err(Unreadable::Broken),
        };
        fields.end()?;
        Ok(told)
    }
}

impl ToHost {
    pub(crate) fn into_frame(self) -> Frame {
        match self {
            Self::Call { function, args } => Frame::new(CALL).u32(function).value(args),
            Self::Start { function, args, promise } => {
                Frame::new(START).u32(function).u32(promise).value(args)
            }
            Self::Report { value, waits } => Frame::new(REPORT).u8(u8::from(waits)).value(value),
            Self::Ask(message) => Frame::new(ASK).value(message),
            Self::Log(log) => {
                Frame::new(LOG).u8(log.level as u8).f64(log.timestamp).value(log.args)
            }
            Self::FunctionSettled { call, completion } => {
                write_completion(Frame::new(FUNCTION_SETTLED).u32(call), completion)
            }
            Self::PromiseSettled { promise, completion } => {
                write_completion(Frame::new(PROMISE_SETTLED).u32(promise), completion)
            }
            Self::Parked { taken } => Frame::new(PARKED).u64(taken),
            Self::Ended { end, peak_bytes } => {
                write_end(Frame::new(ENDED).option(peak_bytes, Frame::u64), end)
            }
            Self::CellEnded(ended) => write_cell_ended(Frame::new(CELL_ENDED), *ended),
            Self::Turn { number } => Frame::new(TURN).u32(number),
            Self::Placed { call, number } => Frame::new(PLACED).u32(call).u32(number),
            Self::Names { names, are_last } => {
                let names = names.into_iter();
                Frame::new(NAMES).u8(u8::from(are_last)).list(names, session::write_name)
            }
            Self::Copied(copied) => session::write_copied(Frame::new(COPIED), copied),
        }
    }

    /// Reads a worker's message, whose values may have at most `most_bytes` each.
    pub(crate) fn from_frame(frame: Frame, most_bytes: usize) -> Result<Self, Unreadable> {
        let (kind, mut fields) = frame.read()?;
        let value = |fields: &mut Fields, purpose| fields.checked_value(purpose, most_bytes);
        let completion = |fields: &mut Fields| {
            read_completion(fields, |fields| fields.checked_value(Purpose::Live, most_bytes))
        };
        let told = match kind {
            CALL => {
                let function = fields.u32()?;
                Self::Call { function, args: value(&mut fields, Purpose::Arguments)? }
            }
            START => {
                let (function, promise) = (fields.u32()?, fields.u32()?);
                Self::Start { function, args: value(&mut fields, Purpose::Arguments)?, promise }
            }
            REPORT => {
                let waits = fields.u8()? != 0;
                Self::Report { value: value(&mut fields, Purpose::Final)?, waits }
            }
            ASK => Self::Ask(value(&mut fields, Purpose::Live)?),
            LOG => {
                let level = read_level(fields.u8()?)?;
                let timestamp = fields.f64()?;
                if !timestamp.is_finite() {
                    return Err(Unreadable::Broken);
                }
                let args = value(&mut fields, Purpose::Log)?;
                Self::Log(ExecutionLog { level, args, timestamp })
            }
            FUNCTION_SETTLED => {
                let call = fields.u32()?;
                Self::FunctionSettled { call, completion: completion(&mut fields)? }
            }
            PROMISE_SETTLED => {
                let promise = fields.u32()?;
                Self::PromiseSettled { promise, completion: completion(&mut fields)? }
            }
            PARKED => Self::Parked { taken: fields.u64()? },
            ENDED => {
                let peak_bytes = fields.option(Fields::u64)?;
                let end = read_end(&mut fields, most_bytes)?;
                Self::Ended { end, peak_bytes }
            }
            CELL_ENDED => Self::CellEnded(Box::new(read_cell_ended(&mut fields, most_bytes)?)),
            TURN => Self::Turn { number: fields.u32()? },
            PLACED => Self::Placed { call: fields.u32()?, number: fields.u32()? },
            NAMES => {
                let are_last = fields.u8()? != 0;
                Self::Names { names: fields.list(session::read_name)?, are_last }
            }
            COPIED => Self::Copied(session::read_copied(&mut fields)?),
            _ => return Err(Unreadable::Broken),
        };
        fields.end()?;
        Ok(told)
    }
}

fn write_completion(frame: Frame, completion: Completion) -> Frame {
    match completion {
        Ok(value) => frame.u8(0).value(value),
        Err(thrown) => frame.u8(1).value(thrown),
    }
}

fn read_completion(
    fields: &mut Fields,
    read: impl FnOnce(&mut Fields) -> Result<Value, Unreadable>,
) -> Result<Completion, Unreadable> {
    match fields.u8()? {
        0 => read(fields).map(Ok),
        1 => read(fields).map(Err),
        _ => Err(Unreadable::Broken),
    }
}

fn write_begin(begin: Begin) -> Frame {
    let Begin { request, safety_cap, validated_kinds } = begin;
    let text = |frame: Frame, text: String| frame.text(&text);
    Frame::new(BEGIN)
        .u64(u64::try_from(safety_cap.as_micros()).unwrap_or(u64::MAX))
        .u8(validated_kinds.bits())
        .u8(u8::from(request.language == Language::TypeScript))
        .u8(u8::from(request.report))
        .u8(match request.shape {
            Shape::Module => 0,
            Shape::Body => 1,
            Shape::Linked => 2,
            Shape::Program => 3,
        })
        .u64(request.memory_limit())
        .option(request.extension.as_deref(), write_extension)
        .option(request.filename, text)
        .option(request.function, text)
        .list([&request.source].into_iter(), write_source)
        .list(request.modules.iter(), write_module)
        .list(request.globals.into_iter(), text)
        .list(request.imports.into_iter(), write_bridge)
        .value(request.inputs)
}

fn read_begin(fields: &mut Fields) -> Result<Begin, Unreadable> {
    let safety_cap = Duration::from_micros(fields.u64()?);
    let validated_kinds = Kinds::from_bits(fields.u8()?);
    let typescript = fields.u8()? != 0;
    let report = fields.u8()? != 0;
    let shape = match fields.u8()? {
        0 => Shape::Module,
        1 => Shape::Body,
        2 => Shape::Linked,
        3 => Shape::Program,
        _ => return Err(Unreadable::Broken),
    };
    #[expect(clippy::cast_precision_loss, reason = "a safe integer, as the host has checked")]
    let memory_limit_bytes = Some(fields.u64()? as f64);
    let extension = fields.option(read_extension)?;
    let (filename, function) = (fields.option(Fields::text)?, fields.option(Fields::text)?);
    let source = fields.list(read_source)?.pop().ok_or(Unreadable::Broken)?;
    let request = Request {
        filename,
        language: if typescript { Language::TypeScript } else { Language::JavaScript },
        function,
        modules: fields.list(read_module)?,
        globals: fields.list(Fields::text)?,
        imports: fields.list(read_bridge)?,
        inputs: fields.value()?,
        report,
        memory_limit_bytes,
        shape,
        extension,
        ..Request::new(source)
    };
    Ok(Begin { request, safety_cap, validated_kinds })
}

fn write_extension(frame: Frame, extension: &ExtensionRequest) -> Frame {
    let text = |frame: Frame, text: &String| frame.text(text);
    let ExtensionRequest { names, properties } = extension;
    frame.list(names.iter(), text).list(properties.iter(), text)
}

fn read_extension(fields: &mut Fields) -> Result<Arc<ExtensionRequest>, Unreadable> {
    Ok(Arc::new(ExtensionRequest {
        names: fields.list(Fields::text)?,
        properties: fields.list(Fields::text)?,
    }))
}

fn write_module(frame: Frame, (key, source): &(String, SourceText)) -> Frame {
    write_source(frame.text(key), source)
}

fn read_module(fields: &mut Fields) -> Result<(String, SourceText), Unreadable> {
    Ok((fields.text()?, read_source(fields)?))
}

fn write_bridge(frame: Frame, (key, exports): (String, Vec<String>)) -> Frame {
    frame.text(&key).list(exports.into_iter(), |frame, name| frame.text(&name))
}

fn read_bridge(fields: &mut Fields) -> Result<(String, Vec<String>), Unreadable> {
    Ok((fields.text()?, fields.list(Fields::text)?))
}

fn write_source(frame: Frame, source: &SourceText) -> Frame {
    let lone_surrogate = source.lone_surrogate.map(|at| at as u64);
    frame.text(&source.text).option(lone_surrogate, Frame::u64)
}

fn read_source(fields: &mut Fields) -> Result<SourceText, Unreadable> {
    let text = fields.text()?;
    let lone_surrogate = fields.option(Fields::u64)?;
    let lone_surrogate = lone_surrogate.map(usize::try_from).transpose();
    Ok(SourceText { text, lone_surrogate: lone_surrogate.map_err(|_| Unreadable::Broken)? })
}

fn write_step(frame: Frame, step: Step) -> Frame {
    match step {
        Step::Key(key) => frame.u8(0).text(&key),
        Step::Index(index) => frame.u8(1).u64(index as u64),
        Step::MapKey(index) => frame.u8(2).u64(index as u64),
        Step::Member(index) => frame.u8(3).u64(index as u64),
        Step::Entry(text) => frame.u8(4).text(&text),
    }
}

fn read_step(fields: &mut Fields) -> Result<Step, Unreadable> {
    let kind = fields.u8()?;
    if let 0 | 4 = kind {
        let text = fields.text()?;
        return Ok(if kind == 0 { Step::Key(text) } else { Step::Entry(text) });
    }
    let index = usize::try_from(fields.u64()?).map_err(|_| Unreadable::Broken)?;
    match kind {
        1 => Ok(Step::Index(index)),
        2 => Ok(Step::MapKey(index)),
        3 => Ok(Step::Member(index)),
        _ => Err(Unreadable::Broken),
    }
}

fn write_end(frame: Frame, end: WorkersEnd) -> Frame {
    match end {
        WorkersEnd::End(End::Success(value)) => frame.u8(SUCCESS).value(value),
        WorkersEnd::End(End::Failed(status, error)) => {
            let kind = if status == Status::LinkError { LINK_ERROR } else { ERROR };
            write_error(frame.u8(kind), *error)
        }
        WorkersEnd::End(End::Memory) => frame.u8(MEMORY),
        WorkersEnd::End(End::Oversized(module)) => {
            let Oversized { filename, needed_bytes } = *module;
            frame.u8(OVERSIZED).text(&filename).u64(needed_bytes)
        }
        WorkersEnd::End(End::Asked) => frame.u8(ASKED),
        WorkersEnd::End(End::Stopped(stopped)) => {
            let Stopped { is_memory, place } = *stopped;
            write_error(frame.u8(STOPPED).u8(u8::from(is_memory)), place)
        }
        WorkersEnd::End(End::Cell(end)) => session::write_cell_end(frame.u8(CAME_TO_ITS_END), *end),
        WorkersEnd::End(End::Broken) => frame.u8(BROKEN),
        WorkersEnd::Cap => frame.u8(CAP),
        WorkersEnd::Stalled(error) => write_error(frame.u8(STALLED), *error),
        WorkersEnd::Undone => frame.u8(UNDONE),
    }
}

fn write_cell_ended(frame: Frame, ended: CellEnded) -> Frame {
    let CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone } = ended;
    let frame = frame.u32(number).u8(u8::from(is_untouched)).u64(peak_bytes).u64(handed);
    let frame = frame.list(undone.into_iter(), Frame::u32);
    write_end(session::write_state(frame, state), end)
}

fn read_cell_ended(fields: &mut Fields, most_bytes: usize) -> Result<CellEnded, Unreadable> {
    let (number, is_untouched) = (fields.u32()?, fields.u8()? != 0);
    let (peak_bytes, handed) = (fields.u64()?, fields.u64()?);
    let undone = fields.list(Fields::u32)?;
    let state = session::read_state(fields)?;
    let end = read_end(fields, most_bytes)?;
    Ok(CellEnded { number, end, peak_bytes, state, is_untouched, handed, undone })
}

fn read_end(fields: &mut Fields, most_bytes: usize) -> Result<WorkersEnd, Unreadable> {
    Ok(match fields.u8()? {
        SUCCESS => WorkersEnd::End(End::Success(fields.checked_value(Purpose::Final, most_bytes)?)),
        ERROR => WorkersEnd::End(End::Failed(Status::Error, Box::new(read_error(fields)?))),
        LINK_ERROR => {
            WorkersEnd::End(End::Failed(Status::LinkError, Box::new(read_error(fields)?)))
        }
        MEMORY => WorkersEnd::End(End::Memory),
        OVERSIZED => {
            let (filename, needed_bytes) = (fields.text()?, fields.u64()?);
            WorkersEnd::End(End::Oversized(Box::new(Oversized { filename, needed_bytes })))
        }
        ASKED => WorkersEnd::End(End::Asked),
        STOPPED => {
            let (is_memory, place) = (fields.u8()? != 0, read_error(fields)?);
            WorkersEnd::End(End::Stopped(Box::new(Stopped { is_memory, place })))
        }
        BROKEN => WorkersEnd::End(End::Broken),
        CAME_TO_ITS_END => {
            let end = session::read_cell_end(fields, most_bytes)?;
            WorkersEnd::End(End::Cell(Box::new(end)))
        }
        CAP => WorkersEnd::Cap,
        STALLED => WorkersEnd::Stalled(Box::new(read_error(fields)?)),
        UNDONE => WorkersEnd::Undone,
        _ => return Err(Unreadable::Broken),
    })
}

fn write_error(frame: Frame, error: ExecutionError) -> Frame {
    let text = |frame: Frame, text: String| frame.text(&text);
    frame
        .text(&error.name)
        .text(&error.message)
        .option(error.stack, text)
        .option(error.specifier, text)
        .option(error.filename, text)
        .option(error.line, Frame::u32)
        .option(error.column, Frame::u32)
        .option(error.cause.and_then(|cause| throw_of(&cause)), |frame, (kind, number)| {
            frame.u8(kind).u64(number)
        })
}

/// The kind and the number of a throw of the host; an error of Rust stays where it is.
fn throw_of(cause: &Cause) -> Option<(u8, u64)> {
    match cause {
        Cause::Call(number) => Some((THROWN_BY_CALL, *number)),
        Cause::Promise(number) => Some((THROWN_BY_PROMISE, u64::from(*number))),
        Cause::Error(_) => None,
    }
}

/// The number is not checked: the host finds one of its own throws by it, or none.
fn read_cause(fields: &mut Fields) -> Result<Cause, Unreadable> {
    match (fields.u8()?, fields.u64()?) {
        (THROWN_BY_CALL, number) => Ok(Cause::Call(number)),
        (THROWN_BY_PROMISE, number) => {
            u32::try_from(number).map(Cause::Promise).map_err(|_| Unreadable::Broken)
        }
        _ => Err(Unreadable::Broken),
    }
}

/// Bounded here as well, because a worker may send anything.
fn read_error(fields: &mut Fields) -> Result<ExecutionError, Unreadable> {
    let text = |fields: &mut Fields| Ok(bounded(fields.text()?, MESSAGE_LIMIT));
    let stack = |fields: &mut Fields| Ok(bounded(fields.text()?, STACK_LIMIT));
    Ok(ExecutionError {
        name: text(fields)?,
        message: text(fields)?,
        stack: fields.option(stack)?,
        specifier: fields.option(text)?,
        filename: fields.option(text)?,
        line: fields.option(Fields::u32)?,
        column: fields.option(Fields::u32)?,
        cause: fields.option(read_cause)?,
        // A worker that has failed says so in another way, or is lost.
        is_failure: false,
    })
}

fn read_level(byte: u8) -> Result<LogLevel, Unreadable> {
    let levels = [LogLevel::Log, LogLevel::Info, LogLevel::Warn, LogLevel::Error, LogLevel::Debug];
    levels.into_iter().find(|level| *level as u8 == byte).ok_or(Unreadable::Broken)
}
