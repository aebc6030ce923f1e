//! Sequences of cells in a few sessions.
//!
//! In: acts that the bytes choose: cells of a text, of a grammar of programs and of one of hazards; calls, updates,
//! questions, copies, resets, ends from outside, and answers of the host at any time. The sessions share homes, and
//! their cells queue or interleave. Out: nothing, if every cell settled once with a status and an effect that fit, if
//! each call of the host had one outcome, and if each session answers afterwards and has the names that its cells left.

mod host;
mod session;
mod source;

use std::{
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use arbitrary::Unstructured;
use isolane::{
    CallRequest, CellRequest, Language, SessionRequest, SourceText, UpdateRequest, value::Writer,
};

use self::{
    host::{FUNCTIONS, Numbers, Table},
    session::{MARK, Session},
};
use crate::{
    program,
    run::{self, CEILING, PATIENCE},
};

/// The most acts of an input, and its most sessions at a time.
const MOST_ACTS: usize = 32;
const MOST_SESSIONS: usize = 4;

const LIMITS_BYTES: [f64; 4] = [1e6, 2e6, 4e6, 16e6];
const CHECKPOINTS_BYTES: [Option<f64>; 4] = [None, None, Some(0.0), Some(400e3)];
const TIMEOUTS_MS: [Option<f64>; 4] = [None, None, Some(3.0), Some(20.0)];

/// Plays one sequence.
///
/// # Panics
/// If a cell has a forbidden result, or a session a forbidden state.
pub fn check(data: &[u8]) {
    let mut play = Play {
        choices: Unstructured::new(data),
        numbers: Arc::default(),
        sessions: Vec::new(),
        marks: 0,
    };
    play.open();
    for _ in 0..MOST_ACTS {
        if play.choices.is_empty() {
            break;
        }
        play.act();
    }
    play.end();
    run::check_pristine_after(data);
    check_pristine_after(data);
}

/// Panics if the realm of the next session differs from that of the first one, after as many inputs as for runs.
fn check_pristine_after(data: &[u8]) {
    if run::is_checked(data) {
        let mut session = Session::open(SessionRequest::default(), &Arc::default());
        run::compare_census(&session.value(run::CENSUS), &FIRST);
        session.close();
    }
}

/// The census of the first session.
static FIRST: OnceLock<String> = OnceLock::new();

struct Play<'b> {
    choices: Unstructured<'b>,
    numbers: Arc<Numbers>,
    sessions: Vec<Session>,
    marks: u32,
}

impl Play<'_> {
    fn choose(&mut self, count: usize) -> usize {
        self.choices.int_in_range(0..=count - 1).unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.choose(list.len())]
    }

    fn act(&mut self) {
        let at = self.choose(self.sessions.len());
        match self.choose(24) {
            0..=8 => self.run(at),
            9 => self.call(at),
            10 | 11 => {
                let update = self.update();
                self.sessions[at].handle().update(update).expect("a valid update");
            }
            12 => self.sessions[at].ask_names(),
            13 => self.sessions[at].fork(),
            14 => self.sessions[at].reset(),
            15 => {
                let (which, arg) = (self.choose(6), self.choose(10));
                self.sessions[at].call_function(which, i32::try_from(arg).unwrap_or_default());
            }
            16 => {
                let most = 1 + self.choose(3);
                Table::answer(self.sessions[at].table(), self.sessions[at].handle(), most);
            }
            17 => {
                let which = self.choose(4);
                self.sessions[at].terminate(which);
            }
            18 => {
                let function = u32::try_from(self.choose(6)).unwrap_or_default();
                self.sessions[at].handle().release_function(function, 1);
            }
            19 => thread::sleep(Duration::from_micros(20 << self.choose(8))),
            20 => self.drain(at),
            21 => {
                self.drain(at);
                self.sessions[at].survey();
            }
            22 => self.leave(at),
            _ => self.open(),
        }
    }

    fn open(&mut self) {
        if self.sessions.len() == MOST_SESSIONS {
            return;
        }
        let mut inputs = Writer::new();
        let functions = u32::try_from(FUNCTIONS.len()).unwrap_or_default();
        inputs.array(functions + 3);
        for (name, number) in FUNCTIONS {
            inputs.host_function(number);
            inputs.string(name);
        }
        for value in 0..3 {
            inputs.int(value);
        }
        let globals = FUNCTIONS.iter().map(|(name, _)| *name).chain(["given"]);
        let request = SessionRequest {
            modules: vec![
                ("./m.ts".to_owned(), source::module(&mut self.choices).into()),
                ("./n.js".to_owned(), source::DEPENDENT.to_owned().into()),
            ],
            globals: globals.map(str::to_owned).collect(),
            imports: vec![("kit".to_owned(), vec!["default".to_owned(), "a".to_owned()])],
            inputs: inputs.finish(),
            report: true,
            memory_limit_bytes: Some(self.pick(&LIMITS_BYTES)),
            checkpoint_bytes: self.pick(&CHECKPOINTS_BYTES),
            interleave: self.choose(2) == 1,
            ..SessionRequest::default()
        };
        self.sessions.push(Session::open(request, &self.numbers));
    }

    /// Queues a cell, often one that declares a name of its own first.
    fn run(&mut self, at: usize) {
        let is_typescript = self.choose(4) > 0;
        let text = match self.choose(8) {
            0 => String::from_utf8_lossy(self.bytes(64)).into_owned(),
            1 => program::write(self.bytes(160), is_typescript),
            _ => source::write(&mut self.choices),
        };
        let imports = text.contains("import");
        let mark = (self.choose(4) > 0).then(|| {
            self.marks += 1;
            self.marks
        });
        let source = match mark {
            Some(mark) => format!("const {MARK}{mark} = {mark};\n{text}"),
            None => text,
        };
        let request = CellRequest {
            language: (!is_typescript).then_some(Language::JavaScript),
            timeout_ms: self.pick(&TIMEOUTS_MS),
            ..CellRequest::new(SourceText::from(source))
        };
        self.sessions[at].run(request, mark, imports);
    }

    fn bytes(&mut self, most: usize) -> &[u8] {
        let count = self.choose(most).min(self.choices.len());
        self.choices.bytes(count).unwrap_or_default()
    }

    fn call(&mut self, at: usize) {
        let mut args = Writer::new();
        args.array(2);
        args.int(1);
        args.host_function(0);
        args.string("echo");
        let request = CallRequest {
            args: args.finish(),
            timeout_ms: self.pick(&TIMEOUTS_MS),
            ..CallRequest::new(source::name(&mut self.choices))
        };
        self.sessions[at].call(request);
    }

    fn update(&mut self) -> UpdateRequest {
        let mut update = UpdateRequest::default();
        let mut inputs = Writer::new();
        match self.choose(6) {
            0 => {
                let module = source::module(&mut self.choices);
                update.modules.push(("./m.ts".to_owned(), module.into()));
            }
            1 => update.removed_modules.push("./m.ts".to_owned()),
            2 => {
                update.globals.push(self.global());
                inputs.array(1);
                inputs.host_function(0);
                inputs.string("echo");
            }
            3 => update.removed_globals.push(self.global()),
            4 => {
                update.imports.push(("kit".to_owned(), vec!["a".to_owned()]));
                inputs.array(1);
                inputs.int(7);
            }
            _ => update.removed_imports.push("kit".to_owned()),
        }
        if update.globals.is_empty() && update.imports.is_empty() {
            inputs.array(0);
        }
        update.inputs = inputs.finish();
        update
    }

    /// A name that a host may hand over.
    fn global(&mut self) -> String {
        let name = source::name(&mut self.choices);
        if name == "undefined" { "echo".to_owned() } else { name }
    }

    fn drain(&mut self, at: usize) {
        let copies = self.sessions[at].drain(PATIENCE);
        let room = MOST_SESSIONS - self.sessions.len();
        self.sessions.extend(copies.into_iter().take(room));
    }

    /// Closes or drops a session, at rest or while it computes.
    fn leave(&mut self, at: usize) {
        if self.sessions.len() == 1 {
            return;
        }
        if self.choose(2) == 0 {
            self.drain(at);
        }
        let session = self.sessions.swap_remove(at);
        if self.choose(2) == 0 { session.close() } else { session.abandon() }
    }

    fn end(&mut self) {
        let mut at = 0;
        while at < self.sessions.len() {
            self.drain(at);
            at += 1;
        }
        for mut session in self.sessions.drain(..) {
            session.survey();
            session.close();
        }
        let began = Instant::now();
        while run::runtime().stats().sessions > 0 {
            assert!(began.elapsed() < CEILING, "a session is not freed");
            thread::sleep(Duration::from_micros(50));
        }
        run::leave_if_stuck();
    }
}
