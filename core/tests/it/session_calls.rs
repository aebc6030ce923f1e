//! Calls that the host makes of functions of a session: each settles once.
//!
//! In: calls at the moments that are hard to get right. Out: the outcomes, as a binding receives them. Also run in processes, as
//! `place` says.

use std::{
    sync::{
        Arc, LazyLock,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use isolane::{
    CellRequest, Completion, Host, HostCall, REPORT_SINK, Runtime, SessionHandle, SessionRequest,
    SessionState, Value,
    value::{Event, Writer},
};

use crate::place;

const CEILING: Duration = Duration::from_mins(2);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

#[derive(Debug, PartialEq)]
enum Heard {
    Function(u32),
    Report,
    Outcome(u32),
    Settled,
}

/// Tells the test what it hears, and answers every call with `undefined`.
struct Teller(Sender<Heard>);

impl Teller {
    fn tell(&self, heard: Heard) {
        self.0.send(heard).expect("the test listens until the end");
    }
}

impl Host for Teller {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        if function == REPORT_SINK {
            self.tell(Heard::Report);
        } else {
            let mut reader = args.reader();
            while let Ok(event) = reader.event() {
                if let Event::SandboxFunction(number) = event {
                    self.tell(Heard::Function(number));
                }
            }
        }
        call.reply(Ok(Value::undefined()));
    }

    fn function_settled(&self, call: u32, _completion: Completion) {
        self.tell(Heard::Outcome(call));
    }

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        self.tell(Heard::Settled);
    }
}

fn message(write: impl FnOnce(&mut Writer)) -> Value {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.finish()
}

fn open(interleave: bool, host: &Arc<Teller>) -> SessionHandle {
    let request = SessionRequest {
        globals: vec!["give".to_owned()],
        inputs: message(|inputs| {
            inputs.array(1);
            inputs.host_function(0);
            inputs.string("give");
        }),
        report: true,
        interleave,
        checkpoint_bytes: Some(0.0),
        ..SessionRequest::default()
    };
    RUNTIME.open_session(request, Arc::clone(host) as _).expect("valid options")
}

fn cell(source: &str) -> CellRequest {
    CellRequest::new(source.to_owned().into())
}

fn heard(events: &Receiver<Heard>) -> Heard {
    events.recv_timeout(CEILING).expect("it happens")
}

/// The ends of a session's endless cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Terminate,
    Reset,
    Close,
}

/// The outcomes of a call that comes while an endless cell computes, which then ends in that way.
fn outcomes(interleave: bool, act: Act) -> usize {
    let (sender, events) = channel();
    let host = Arc::new(Teller(sender));
    let session = open(interleave, &host);
    let run = |source| session.run(cell(source), Arc::clone(&host) as _).expect("no misuse");
    run("give(() => 1); 0");
    let Heard::Function(function) = heard(&events) else { panic!("a function comes first") };
    assert_eq!(heard(&events), Heard::Settled);
    let looped = run("report(0); for (;;);");
    assert_eq!(heard(&events), Heard::Report);
    session.call_function(function, message(|args| args.array(0)), 7);
    let (done, answered) = channel();
    match act {
        Act::Terminate => looped.terminate(None),
        Act::Reset => session.reset(move |_| done.send(()).expect("the test waits")),
        Act::Close => session.close(move || done.send(()).expect("the test waits")),
    }
    if act != Act::Terminate {
        answered.recv_timeout(CEILING).expect("it is answered");
    }
    if act != Act::Close {
        run("0");
    }
    // The endless cell, the one after it, and the call.
    let least = if act == Act::Close { 2 } else { 3 };
    let mut all: Vec<Heard> = (0..least).map(|_| heard(&events)).collect();
    let (done, closed) = channel();
    session.close(move || done.send(()).expect("the test waits"));
    closed.recv_timeout(CEILING).expect("it closes");
    let cell = looped.take_result().and_then(|result| result.cell).expect("a cell");
    assert_eq!(cell.session, SessionState::Reset, "interleave: {interleave}, {act:?}");
    all.extend(events.try_iter());
    all.iter().filter(|event| **event == Heard::Outcome(7)).count()
}

#[test]
fn a_call_during_a_cell_that_ends_its_session_settles_once() {
    for interleave in [false, true] {
        for act in [Act::Terminate, Act::Reset, Act::Close] {
            assert_eq!(outcomes(interleave, act), 1, "interleave: {interleave}, {act:?}");
        }
    }
}

#[test]
fn calls_that_are_made_at_once_settle_in_their_order() {
    const CALLS: u32 = 2_000;
    for interleave in [false, true] {
        let (sender, events) = channel();
        let host = Arc::new(Teller(sender));
        let session = open(interleave, &host);
        let given = session.run(cell("give(() => 1); 0"), Arc::clone(&host) as _);
        drop(given.expect("no misuse"));
        let Heard::Function(function) = heard(&events) else { panic!("a function comes first") };
        assert_eq!(heard(&events), Heard::Settled);
        for call in 1..=CALLS {
            session.call_function(function, message(|args| args.array(0)), call);
        }
        for call in 1..=CALLS {
            assert_eq!(heard(&events), Heard::Outcome(call), "interleave: {interleave}");
        }
    }
}
