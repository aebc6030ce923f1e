//! The messages that only sessions have: what a session is made of, its cells, their ends, and its names.
//!
//! In: requests of a binding and the ends of cells, as values. Out: fields of frames, and back. A host bounds every
//! text of a worker, because a worker may send anything.

use std::time::Duration;

use super::{
    ToHost, read_bridge, read_extension, read_module, read_source, write_bridge, write_extension,
    write_module, write_source,
};
use crate::{
    data::{
        cell::{Name, NameKind, SessionState, ValueFrom},
        source::Language,
        text::{MESSAGE_LIMIT, bounded},
    },
    isolate::{CellEnd, session::Work},
    modules::session_request::{SessionRequest, UpdateRequest},
    protocol::frame::{Fields, Frame, Unreadable},
    value::{Kinds, Purpose},
};

/// A session as its worker receives it.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) request: SessionRequest,
    /// All updates so far, in order.
    pub(crate) updates: Vec<UpdateRequest>,
    /// CPU time of each cell.
    pub(crate) safety_cap: Duration,
    /// How many workers the session had before, whose numbers of functions and promises are not given out again.
    pub(crate) lost: u32,
    /// The state that it begins with, with all updates so far, if it is a copy of a session that has one.
    pub(crate) state: Option<Vec<u8>>,
}

/// The answer of a worker that is asked for a copy of its session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The state, for another worker. Its host does not look into it.
    State(Vec<u8>),
    /// So many calls to the host have no answer yet.
    Unanswered(u32),
    /// The state cannot be copied.
    Impossible,
}

/// The most bytes of a state whose session may hold so many: those of its pages, with holes in them, and of its tables.
pub(crate) fn most_state_bytes(memory_limit: usize) -> usize {
    memory_limit.saturating_mul(2).saturating_add(4 << 20)
}

/// A cell as its worker receives it.
#[derive(Debug)]
pub(crate) struct Cell {
    /// Its number among all cells of the session, if they interleave; otherwise zero.
    pub(crate) number: u32,
    pub(crate) work: CellWork,
    /// Whether the caller gave a sink for reports.
    pub(crate) report: bool,
    /// As [`Begin::validated_kinds`](super::Begin::validated_kinds).
    pub(crate) validated_kinds: Kinds,
}

/// The work of a cell.
#[derive(Debug)]
pub(crate) enum CellWork {
    New(Work),
    /// A call that the worker has received and that no other cell was handed.
    Left {
        call: u32,
    },
}

impl From<Work> for CellWork {
    fn from(work: Work) -> Self {
        Self::New(work)
    }
}

impl CellWork {
    /// The length of its source.
    pub(crate) fn source_bytes(&self) -> usize {
        match self {
            Self::New(Work::Source { source, .. }) => source.text.len(),
            _ => 0,
        }
    }
}

const SOURCE: u8 = 0;
const CALL: u8 = 1;
const HELD: u8 = 2;
const LEFT: u8 = 3;

const STATE: u8 = 0;
const UNANSWERED: u8 = 1;
const IMPOSSIBLE: u8 = 2;

const STATES: [SessionState; 3] =
    [SessionState::Kept, SessionState::RolledBack, SessionState::Reset];

const VALUES_FROM: [ValueFrom; 4] =
    [ValueFrom::Return, ValueFrom::Default, ValueFrom::Expression, ValueFrom::Completion];

const KINDS: [NameKind; 8] = [
    NameKind::Const,
    NameKind::Let,
    NameKind::Var,
    NameKind::Function,
    NameKind::Class,
    NameKind::Import,
    NameKind::Enum,
    NameKind::Namespace,
];

pub(super) fn write_open(frame: Frame, open: Open) -> Frame {
    let Open { request, updates, safety_cap, lost, state } = open;
    let frame = frame
        .u64(u64::try_from(safety_cap.as_micros()).unwrap_or(u64::MAX))
        .u32(lost)
        .u64(request.memory_limit())
        .u64(request.checkpoint_limit())
        .u8(u8::from(request.report))
        .u8(u8::from(request.interleave))
        .u8(u8::from(request.keeps_logs));
    write_language(frame, request.language)
        .list(request.modules.iter(), write_module)
        .list(request.globals.into_iter(), write_text)
        .list(request.imports.into_iter(), write_bridge)
        .option(request.helpers_file, write_text)
        .option(request.extension.as_deref(), write_extension)
        .value(request.inputs)
        .list(updates.into_iter(), write_update)
        .option(state, Frame::chunk)
}

pub(super) fn read_open(fields: &mut Fields) -> Result<Open, Unreadable> {
    let safety_cap = Duration::from_micros(fields.u64()?);
    let lost = fields.u32()?;
    let (memory_limit_bytes, checkpoint_bytes) = (read_bytes(fields)?, read_bytes(fields)?);
    let (report, interleave) = (fields.u8()? != 0, fields.u8()? != 0);
    let keeps_logs = fields.u8()? != 0;
    let request = SessionRequest {
        language: read_language(fields)?,
        modules: fields.list(read_module)?,
        globals: fields.list(Fields::text)?,
        imports: fields.list(read_bridge)?,
        helpers_file: fields.option(Fields::text)?,
        extension: fields.option(read_extension)?,
        inputs: fields.value()?,
        report,
        memory_limit_bytes,
        interleave,
        checkpoint_bytes,
        keeps_logs,
        ..SessionRequest::default()
    };
    let updates = fields.list(read_update)?;
    Ok(Open { request, updates, safety_cap, lost, state: fields.option(Fields::chunk)? })
}

pub(super) fn write_update(frame: Frame, update: UpdateRequest) -> Frame {
    frame
        .list(update.modules.iter(), write_module)
        .list(update.globals.into_iter(), write_text)
        .list(update.imports.into_iter(), write_bridge)
        .list(update.removed_modules.into_iter(), write_text)
        .list(update.removed_globals.into_iter(), write_text)
        .list(update.removed_imports.into_iter(), write_text)
        .value(update.inputs)
}

pub(super) fn read_update(fields: &mut Fields) -> Result<UpdateRequest, Unreadable> {
    Ok(UpdateRequest {
        modules: fields.list(read_module)?,
        globals: fields.list(Fields::text)?,
        imports: fields.list(read_bridge)?,
        removed_modules: fields.list(Fields::text)?,
        removed_globals: fields.list(Fields::text)?,
        removed_imports: fields.list(Fields::text)?,
        inputs: fields.value()?,
    })
}

pub(super) fn write_cell(frame: Frame, cell: Cell) -> Frame {
    let frame = frame.u32(cell.number).u8(u8::from(cell.report)).u8(cell.validated_kinds.bits());
    match cell.work {
        CellWork::New(Work::Source { source, filename, language }) => {
            write_source(write_language(frame.u8(SOURCE).text(&filename), language), &source)
        }
        CellWork::New(Work::Call { name, args }) => frame.u8(CALL).text(&name).value(args),
        CellWork::New(Work::Held { function, args, call }) => {
            frame.u8(HELD).u32(function).u32(call).value(args)
        }
        CellWork::Left { call } => frame.u8(LEFT).u32(call),
    }
}

pub(super) fn read_cell(fields: &mut Fields) -> Result<Cell, Unreadable> {
    let number = fields.u32()?;
    let report = fields.u8()? != 0;
    let validated_kinds = Kinds::from_bits(fields.u8()?);
    let work = match fields.u8()? {
        SOURCE => {
            let (filename, language) = (fields.text()?, read_language(fields)?);
            Work::Source { source: read_source(fields)?, filename, language }.into()
        }
        CALL => Work::Call { name: fields.text()?, args: fields.value()? }.into(),
        HELD => {
            let (function, call) = (fields.u32()?, fields.u32()?);
            Work::Held { function, args: fields.value()?, call }.into()
        }
        LEFT => CellWork::Left { call: fields.u32()? },
        _ => return Err(Unreadable::Broken),
    };
    Ok(Cell { number, work, report, validated_kinds })
}

pub(super) fn write_cell_end(frame: Frame, end: CellEnd) -> Frame {
    let CellEnd { value, text, uncloned, value_from } = end;
    frame
        .option(text, write_text)
        .option(uncloned, write_text)
        .option(value_from, |frame, from| frame.u8(number_of(&VALUES_FROM, from)))
        .option(value, Frame::value)
}

/// Bounded here as well, because a worker may send anything.
pub(super) fn read_cell_end(fields: &mut Fields, most_bytes: usize) -> Result<CellEnd, Unreadable> {
    let text = |fields: &mut Fields| Ok(bounded(fields.text()?, MESSAGE_LIMIT));
    Ok(CellEnd {
        text: fields.option(text)?,
        uncloned: fields.option(text)?,
        value_from: fields.option(|fields| read_one(fields, &VALUES_FROM))?,
        value: fields.option(|fields| fields.checked_value(Purpose::Final, most_bytes))?,
    })
}

pub(super) fn write_state(frame: Frame, state: SessionState) -> Frame {
    frame.u8(number_of(&STATES, state))
}

pub(super) fn read_state(fields: &mut Fields) -> Result<SessionState, Unreadable> {
    read_one(fields, &STATES)
}

/// The most bytes of names in one frame: far less than the head of a worker's frame may have.
const NAMES_BYTES: usize = 64 << 10;

/// The messages with these names.
pub(crate) fn names_messages(names: Vec<Name>) -> Vec<ToHost> {
    let mut messages = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for name in names {
        bytes += held_bytes(&name);
        part.push(name);
        if bytes > NAMES_BYTES {
            bytes = 0;
            messages.push(ToHost::Names { names: std::mem::take(&mut part), are_last: false });
        }
    }
    messages.push(ToHost::Names { names: part, are_last: true });
    messages
}

/// The bytes that a name holds, about.
pub(crate) fn held_bytes(name: &Name) -> usize {
    size_of::<Name>() + name.name.len() + name.kind_of.len()
}

pub(super) fn write_name(frame: Frame, name: Name) -> Frame {
    // A long one has no room in the head.
    let frame = if name.name.len() > MESSAGE_LIMIT {
        frame.u8(1).chunk(name.name.into_bytes())
    } else {
        frame.u8(0).text(&name.name)
    };
    frame.u8(number_of(&KINDS, name.kind)).text(&name.kind_of).option(name.size, Frame::u64)
}

/// The name of a class is bounded here as well, because a worker may send anything. The session's own limit bounds all
/// names together.
pub(super) fn read_name(fields: &mut Fields) -> Result<Name, Unreadable> {
    let is_long = fields.u8()? != 0;
    let name = if is_long {
        String::from_utf8(fields.chunk()?).map_err(|_| Unreadable::Broken)?
    } else {
        fields.text()?
    };
    Ok(Name {
        name,
        kind: read_one(fields, &KINDS)?,
        kind_of: bounded(fields.text()?, MESSAGE_LIMIT),
        size: fields.option(Fields::u64)?,
    })
}

pub(super) fn write_copied(frame: Frame, copied: Copied) -> Frame {
    match copied {
        Copied::State(state) => frame.u8(STATE).chunk(state),
        Copied::Unanswered(count) => frame.u8(UNANSWERED).u32(count),
        Copied::Impossible => frame.u8(IMPOSSIBLE),
    }
}

pub(super) fn read_copied(fields: &mut Fields) -> Result<Copied, Unreadable> {
    Ok(match fields.u8()? {
        STATE => Copied::State(fields.chunk()?),
        UNANSWERED => Copied::Unanswered(fields.u32()?),
        IMPOSSIBLE => Copied::Impossible,
        _ => return Err(Unreadable::Broken),
    })
}

fn number_of<T: Copy + PartialEq>(all: &[T], one: T) -> u8 {
    let found = all.iter().position(|other| *other == one);
    found.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

fn read_one<T: Copy>(fields: &mut Fields, all: &[T]) -> Result<T, Unreadable> {
    all.get(usize::from(fields.u8()?)).copied().ok_or(Unreadable::Broken)
}

fn write_text(frame: Frame, text: impl AsRef<str>) -> Frame {
    frame.text(text.as_ref())
}

fn write_language(frame: Frame, language: Language) -> Frame {
    frame.u8(u8::from(language == Language::TypeScript))
}

fn read_language(fields: &mut Fields) -> Result<Language, Unreadable> {
    let typescript = fields.u8()? != 0;
    Ok(if typescript { Language::TypeScript } else { Language::JavaScript })
}

#[expect(clippy::cast_precision_loss, reason = "a safe integer, as the host has checked")]
fn read_bytes(fields: &mut Fields) -> Result<Option<f64>, Unreadable> {
    Ok(Some(fields.u64()? as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        isolate::End,
        protocol::messages::{CellEnded, ToWorker, WorkersEnd},
        value::{Value, Writer},
    };

    const MOST_BYTES: usize = 1 << 20;

    fn message(text: &str) -> Value {
        let mut writer = Writer::new();
        writer.array(1);
        writer.string(text);
        writer.finish()
    }

    fn update() -> UpdateRequest {
        UpdateRequest {
            modules: vec![("./m.ts".to_owned(), "export {}".to_owned().into())],
            globals: vec!["g".to_owned()],
            imports: vec![("b".to_owned(), vec!["x".to_owned()])],
            inputs: message("updated"),
            removed_modules: vec!["./old".to_owned()],
            removed_globals: vec!["a".to_owned(), "b".to_owned()],
            removed_imports: Vec::new(),
        }
    }

    /// Checks that what `sent` makes arrives as it is: it makes the same frame again.
    fn arrives(sent: impl Fn() -> ToWorker) {
        let came = ToWorker::from_frame(sent().into_frame()).expect("readable");
        assert_eq!(came.into_frame(), sent().into_frame());
    }

    fn to_host(sent: ToHost) -> Result<ToHost, Unreadable> {
        ToHost::from_frame(sent.into_frame(), MOST_BYTES)
    }

    #[test]
    fn a_session_arrives_as_it_was_asked_for() {
        let request = SessionRequest {
            modules: vec![("./a".to_owned(), "1".to_owned().into())],
            globals: vec!["x".to_owned()],
            imports: vec![("lib".to_owned(), vec!["default".to_owned(), "y".to_owned()])],
            inputs: message("first"),
            report: true,
            language: Language::JavaScript,
            memory_limit_bytes: Some(1e6),
            checkpoint_bytes: Some(0.0),
            keeps_logs: false,
            helpers_file: Some("<helpers>".to_owned()),
            ..SessionRequest::default()
        };
        let open = || Open {
            request: request.clone(),
            updates: vec![update(), UpdateRequest::default()],
            safety_cap: Duration::from_millis(1500),
            lost: 77,
            state: Some(vec![7; 100_000]),
        };
        arrives(|| ToWorker::Open(Box::new(open())));
        let Ok(ToWorker::Open(came)) =
            ToWorker::from_frame(ToWorker::Open(Box::new(open())).into_frame())
        else {
            panic!("another message");
        };
        assert_eq!(came.request.globals, request.globals);
        assert_eq!(came.request.helpers_file, request.helpers_file);
        assert_eq!(came.request.checkpoint_limit(), 0);
        assert_eq!((came.updates.len(), came.lost), (2, 77));
        assert_eq!(came.state, Some(vec![7; 100_000]));
    }

    #[test]
    fn updates_and_cells_arrive() {
        arrives(|| ToWorker::Update(Box::new(update())));
        let works: [fn() -> CellWork; 4] = [
            || {
                let filename = "<cell 3>".to_owned();
                let source = "x + 1".to_owned().into();
                Work::Source { source, filename, language: Language::TypeScript }.into()
            },
            || Work::Call { name: "f".to_owned(), args: message("a") }.into(),
            || Work::Held { function: 1, args: message("b"), call: 2 }.into(),
            || CellWork::Left { call: 9 },
        ];
        for work in works {
            let cell =
                || Cell { number: 8, work: work(), report: true, validated_kinds: Kinds::NONE };
            arrives(|| ToWorker::Cell(Box::new(cell())));
        }
        arrives(|| ToWorker::End { number: 6 });
        arrives(|| ToWorker::Yield);
        arrives(|| ToWorker::GoOn);
        arrives(|| ToWorker::Names);
        arrives(|| ToWorker::Copy { repeated: vec![1 << 30, 7] });
    }

    #[test]
    fn the_end_of_a_cell_arrives_and_is_bounded() {
        let cell_end = |text: String, value| CellEnd {
            value,
            text: Some(text),
            uncloned: None,
            value_from: Some(ValueFrom::Completion),
        };
        let ended = |end| {
            ToHost::CellEnded(Box::new(CellEnded {
                number: 4,
                end: WorkersEnd::End(End::Cell(Box::new(end))),
                peak_bytes: 5,
                state: SessionState::RolledBack,
                is_untouched: false,
                handed: 6,
                undone: vec![7, 9],
            }))
        };
        for value in [None, Some(message("v"))] {
            let sent = || ended(cell_end("t".to_owned(), value.clone()));
            let came = to_host(sent()).expect("readable");
            assert_eq!(came.into_frame(), sent().into_frame());
        }
        let long = to_host(ended(cell_end("x".repeat(100_000), None))).expect("readable");
        let ToHost::CellEnded(ended) = long else { panic!("another message") };
        let WorkersEnd::End(End::Cell(end)) = ended.end else { panic!("another end") };
        assert_eq!((ended.number, ended.undone), (4, vec![7, 9]));
        assert_eq!(end.text.map(|text| text.len()), Some(MESSAGE_LIMIT));
        let frame = Frame::new(10).u32(0).u8(0).u64(0).u64(0).u64(0).u8(3).u8(3);
        assert!(ToHost::from_frame(frame, MOST_BYTES).is_err());
    }

    #[test]
    fn names_arrive_in_parts() {
        let name = |number: usize| Name {
            name: format!("name{number}"),
            kind: KINDS[number % KINDS.len()],
            kind_of: "Map".to_owned(),
            size: number.is_multiple_of(2).then_some(2),
        };
        for count in [0, 1, 5_000] {
            let names: Vec<Name> = (0..count).map(name).collect();
            let (mut came, mut lasts) = (Vec::new(), 0);
            let messages = names_messages(names.clone());
            let parts = messages.len();
            for message in messages {
                let Ok(ToHost::Names { names, are_last }) = to_host(message) else {
                    panic!("another message");
                };
                came.extend(names);
                lasts += usize::from(are_last);
            }
            assert_eq!((came == names, lasts, parts > 1), (true, 1, count > 1_000));
        }
        let kind = |kind: u8| Frame::new(11).u8(1).u64(1).u8(0).text("a").u8(kind).text("b").u8(0);
        assert!(ToHost::from_frame(kind(1), MOST_BYTES).is_ok());
        assert!(ToHost::from_frame(kind(99), MOST_BYTES).is_err());
    }

    #[test]
    fn a_name_of_any_length_arrives_whole() {
        let name = "x".repeat(600 << 10);
        let named = |name: &str| Name {
            name: name.to_owned(),
            kind: NameKind::Let,
            kind_of: "number".to_owned(),
            size: None,
        };
        let sent = vec![named("a"), named(&name), named("b")];
        let mut came = Vec::new();
        for message in names_messages(sent.clone()) {
            let Ok(ToHost::Names { names, .. }) = to_host(message) else {
                panic!("another message");
            };
            came.extend(names);
        }
        assert!(came == sent);
    }

    #[test]
    fn a_state_arrives_as_it_is() {
        let state = Copied::State(vec![0xff; 300_000]);
        let mut came_back = Vec::new();
        for copied in [state, Copied::Unanswered(3), Copied::Impossible] {
            let frame = ToHost::Copied(copied).into_frame();
            let again = ToHost::from_frame(frame, MOST_BYTES).expect("readable").into_frame();
            let Ok(ToHost::Copied(came)) = ToHost::from_frame(again, MOST_BYTES) else {
                panic!("another message");
            };
            came_back.push(came);
        }
        let sent = [Copied::State(vec![0xff; 300_000]), Copied::Unanswered(3), Copied::Impossible];
        assert_eq!(came_back, sent);
        assert!(ToHost::from_frame(Frame::new(12).u8(3), MOST_BYTES).is_err());
        assert!(ToHost::from_frame(Frame::new(12).u8(0), MOST_BYTES).is_err());
    }
}
