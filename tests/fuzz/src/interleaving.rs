//! A host that answers at the times and in the ways that the bytes choose.
//!
//! In: a schedule. The first byte selects one of a few programs that call their host, are called by it and wait for it.
//! Each further byte is an act of the host: answer, throw, settle a promise twice or an unknown one, call a function of
//! the sandbox, release it, drop the call, let time pass, end the run, inspect it. Out: nothing, if the run settled
//! once, with a status that the schedule allows, and if no call had the answer of another.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Completion, Host, HostCall, REPORT_SINK, Request, RunHandle, SourceText, Status, Value,
    value::{Event, Writer},
};

use crate::{
    equal::walk,
    run::{self, CEILING},
};

/// `ask(n)` must return `n`, return a promise of `n`, or throw `n`; every other answer is wrong.
const PRELUDE: &str = "
const own = (n) => async (x) => { if (x > 200) throw n; return [n, x]; };
const check = (n, x) => { if (x !== n) report(['wrong', n, x]); return x; };
const sync = (n) => { try { const x = ask(n, own(n)); return x?.then ? x : check(n, x); }
    catch (x) { return x instanceof Error ? n : check(n, x); } };
const wait = async (n) => { try { return check(n, await sync(n)); }
    catch (x) { if (!(x instanceof Error)) check(n, x); } };
";

const PROGRAMS: [&str; 8] = [
    "for (let n = 0; n < 9; n++) sync(n); export default 'done';",
    "for (let n = 0; n < 9; n++) await wait(n); export default 'done';",
    "export default await Promise.all([...Array(9).keys()].map(wait)).then(() => 'done');",
    "export default await Promise.race([...Array(9).keys()].map(wait)).then(() => 'done');",
    "for (let n = 0; ; n++) { sync(n); report(n); }",
    "for (let n = 0; ; n++) { await wait(n); for (let i = 0; i < 1e4; i++); }",
    "wait(1); wait(2); for (;;) await null;",
    "const keep = []; for (let n = 0; n < 99; n++) { keep.push(new Array(4e4).fill(n)); await wait(n); }",
];

/// The host's objects of a run.
#[derive(Default)]
struct Table {
    /// Calls without an answer, with their numbers in the program.
    calls: VecDeque<(HostCall, i32)>,
    /// Promises given out, by number.
    promises: Vec<i32>,
    /// Functions of the sandbox that the host received.
    functions: Vec<u32>,
}

struct Scheduled {
    table: Mutex<Table>,
    settlements: AtomicU32,
}

impl Scheduled {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Scheduled {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        if function == REPORT_SINK {
            return call.reply(Ok(Value::undefined()));
        }
        assert_eq!(function, 0, "no host function has that number");
        let (mut number, mut functions) = (None, Vec::new());
        let mut reader = args.reader();
        while !reader.is_empty() {
            match reader.event().expect("arguments that can be read") {
                Event::Int(int) => number = number.or(Some(int)),
                Event::SandboxFunction(function) => functions.push(function),
                _ => {}
            }
        }
        let mut table = self.table();
        table.functions.extend(functions);
        table.calls.push_back((call, number.expect("each call asks for a number")));
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        walk(completion.as_ref().unwrap_or_else(|thrown| thrown)).expect("readable");
        if let Ok(value) = completion {
            let mut reader = value.reader();
            let [_, _, given] = [(); 3].map(|()| reader.event().expect("a pair of numbers"));
            assert_eq!(given, Event::Int(i32::try_from(call).expect("a byte")), "another's answer");
        }
    }

    fn promise_settled(&self, _promise: u32, completion: Completion) {
        walk(completion.as_ref().unwrap_or_else(|thrown| thrown)).expect("readable");
    }

    fn settled(&self) {
        assert_eq!(self.settlements.fetch_add(1, Ordering::SeqCst), 0, "settled twice");
    }
}

/// Plays one schedule.
///
/// # Panics
/// If the run has a forbidden result.
pub fn check(data: &[u8]) {
    let Some((&first, schedule)) = data.split_first() else { return };
    let host = Arc::new(Scheduled { table: Mutex::default(), settlements: AtomicU32::new(0) });
    let remote = run::runtime().start(request(first), Arc::clone(&host) as Arc<dyn Host>);
    let remote = remote.expect("valid options");
    let mut ended = false;
    for &byte in schedule {
        ended |= act(&host, &remote, byte);
    }
    // Anything that waits now would wait for ever.
    remote.terminate(Some("the schedule is over"));
    let began = Instant::now();
    while host.settlements.load(Ordering::SeqCst) == 0 {
        assert!(began.elapsed() < CEILING, "the run does not settle");
        thread::sleep(Duration::from_micros(50));
    }
    let result = remote.take_result().expect("a settled run has a result");
    assert!(remote.take_result().is_none() && !remote.running());
    // Late events are ignored.
    for &byte in schedule.iter().take(8) {
        act(&host, &remote, byte);
    }
    run::judge(&result, limit_bytes(first));
    for report in &result.reports {
        assert!(
            report.reader().event().is_ok_and(|event| matches!(event, Event::Int(_))),
            "{result:?}"
        );
    }
    let possible = match result.status {
        Status::Success => first & 7 < 4,
        Status::Memory => first & 7 == 7,
        Status::Terminated => true,
        Status::Error | Status::LinkError => false,
    };
    assert!(possible, "the schedule allows no such end: {ended} {result:?}");
    assert_eq!(host.settlements.load(Ordering::SeqCst), 1);
    run::check_pristine_after(data);
}

fn limit_bytes(first: u8) -> f64 {
    if first & 7 == 7 { 2e6 } else { 64e6 }
}

fn request(first: u8) -> Request {
    let program = PROGRAMS[usize::from(first & 7)];
    let mut request = Request::new(SourceText::from(format!("{PRELUDE}{program}")));
    let mut inputs = Writer::new();
    inputs.array(2);
    inputs.host_function(0);
    inputs.string("ask");
    inputs.array(0);
    request.globals = vec!["ask".to_owned()];
    request.inputs = inputs.finish();
    request.report = true;
    request.memory_limit_bytes = Some(limit_bytes(first));
    request
}

/// One act of the host. Returns whether it ended the run.
fn act(host: &Scheduled, remote: &RunHandle, byte: u8) -> bool {
    let place = usize::from(byte >> 4);
    match byte & 15 {
        0..=2 => answer(host, |number| Ok(int(number))),
        3 => answer(host, |number| Err(int(number))),
        4..=6 => {
            let call = host.table().calls.pop_front();
            if let Some((call, number)) = call {
                let promise = {
                    let mut table = host.table();
                    table.promises.push(number);
                    table.promises.len() - 1
                };
                let mut writer = Writer::new();
                writer.host_promise(u32::try_from(promise).unwrap_or_default());
                call.reply(Ok(writer.finish()));
            }
        }
        7 | 8 => {
            // Some of them repeatedly, and some that were never given out.
            let known = host.table().promises.get(place).copied();
            let promise = if known.is_some() { u32::from(byte >> 4) } else { u32::MAX - 1 };
            let number = known.unwrap_or(-1);
            let completion = if byte & 15 == 7 { Ok(int(number)) } else { Err(int(number)) };
            remote.settle_promise(promise, completion);
        }
        9 => {
            let function = host.table().functions.get(place).copied();
            let mut args = Writer::new();
            args.array(1);
            args.int(i32::from(byte));
            let unknown = u32::from(byte);
            remote.call_function(function.unwrap_or(unknown), args.finish(), u32::from(byte));
        }
        10 => {
            let function = host.table().functions.get(place).copied().unwrap_or(u32::from(byte));
            remote.release_function(function, 1 + u32::from(byte >> 6));
        }
        11 => {
            let call = host.table().calls.pop_back();
            drop(call);
        }
        12 => thread::sleep(Duration::from_micros(20 << (place % 8))),
        13 => thread::yield_now(),
        14 => {
            for report in remote.reports_since(place) {
                walk(&report).expect("a report that can be read");
            }
            assert!(run::runtime().stats().computing <= 64);
        }
        _ => {
            if place < 2 {
                remote.terminate(Some("the schedule says so"));
                return true;
            }
        }
    }
    false
}

fn answer(host: &Scheduled, completion: impl FnOnce(i32) -> Completion) {
    let call = host.table().calls.pop_front();
    if let Some((call, number)) = call {
        call.reply(completion(number));
    }
}

fn int(number: i32) -> Value {
    let mut writer = Writer::new();
    writer.int(number);
    writer.finish()
}
