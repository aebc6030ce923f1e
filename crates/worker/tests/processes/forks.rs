//! Tests of copies of sessions in processes: each in a worker of its own, exact, and apart from all others.
//! Elsewhere the state of a session cannot be copied, because it is in no slot.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use crate::{
    family::{self, alone, eventually},
    sessions::{end, give, later, number, run, runtime, session, state, with},
};
use isolane::{
    CellOptions, Error, HostError, HostFunction, Inputs, NameKind, SandboxFunction, Session,
    SessionOptions, SessionState, SessionUpdate, Status,
};

fn fork(session: &Session) -> Session {
    session.fork().wait().expect("a copy")
}

/// A state with some of everything.
const STATE: &str = "
    let n = 1; const big = 2n ** 70n; var text = 'é\u{1F600}'.repeat(3), half = 0.5;
    const add = (by: number) => (n += by);
    class Order { #id = 7; get id() { return this.#id } }
    const order = new Order(), map = new Map([[order, { deep: [1, , 3] }]]);
    const bytes = new Uint8Array(20_000).fill(9), me: any = { map }; me.me = me;
    function* count() { let at = 0; for (;;) yield at++ }
    const counting = count(); counting.next(); counting.next();
    const settled = Promise.resolve('done'), never = new Promise(() => {});
    let later: string; const waiting = (async () => { later = await settled + '!' })();
    enum Color { Red, Blue } console.count('c'); console.time('t'); 0";

/// All that can be seen of it.
const SEEN: &str =
    "[n, String(big), text, half, order.id, map.get(order).deep.length, 1 in map.get(order).deep,
    bytes[19_999], me.me.map === map, await settled, later, Color[1], add.name, Order.name].join()";

#[test]
fn a_copy_is_exact_and_in_another_process() {
    let _alone = alone();
    let runtime = runtime();
    let base = session(&runtime);
    assert_eq!(number(run(&base, STATE)), 0);
    let seen = |session: &Session| run(session, SEEN).into_value().expect("a value");
    let expected = seen(&base);
    assert_eq!(expected.deserialize::<String>().expect("a text").matches(',').count(), 13);
    let copy = fork(&base);
    // It begins with its first cell.
    assert_eq!(family::workers().len(), 1);
    assert_eq!(seen(&copy), expected);
    assert_eq!(family::workers().len(), 2);
    assert_eq!(runtime.stats().sessions, 2);
    // Neither sees the other, from both sides.
    assert_eq!(number(run(&copy, "const mine = 5; add(10) + counting.next().value")), 13);
    assert_eq!(number(run(&base, "add(1) + counting.next().value")), 4);
    assert_eq!(number(run(&base, "typeof mine === 'undefined' ? n : 0")), 2);
    assert_eq!(number(run(&copy, "n + mine")), 16);
    // A copy of the copy, which is rolled back to where it began.
    let third = fork(&copy);
    let timeout = CellOptions { timeout_ms: Some(200), ..CellOptions::default() };
    let undone = third.run("n = 99; bytes.fill(1); for (;;);", timeout).wait().expect("no misuse");
    assert_eq!(end(&undone), (Status::Terminated, "Timeout", SessionState::RolledBack));
    assert_eq!(number(run(&third, "n + mine + bytes[0]")), 25);
    // Names, of a copy that no worker has yet, in the order of the base.
    let names = |session: &Session| session.names().wait().expect("names");
    let (first, copied) = (names(&base), names(&fork(&base)));
    assert_eq!(first, copied);
    assert!(copied.iter().any(|name| name.name == "Color" && name.kind == NameKind::Enum));
    // A copy outlives its base.
    drop(base);
    assert_eq!(number(run(&copy, "order.id")), 7);
}

#[test]
fn a_copy_has_the_modules_and_the_places_in_the_code() {
    let _alone = alone();
    let runtime = runtime();
    let modules = |text: &str| [("./m.ts".to_owned(), text.to_owned())].into();
    let options = SessionOptions {
        modules: modules("export let seen: number = 1; export const see = () => ++seen;"),
        ..SessionOptions::default()
    };
    let base = runtime.session(options).expect("a session");
    let first = "import { seen, see } from './m.ts';\nconst fail = (at: string) => {\n  throw new Error(at);\n};\n0";
    assert_eq!(number(run(&base, first)), 0);
    assert_eq!(number(run(&base, "see()")), 2);
    let copy = fork(&base);
    assert_eq!(number(run(&copy, "see() + seen + (await import('./m.ts')).seen")), 9);
    assert_eq!(number(run(&base, "seen")), 2);
    let place = |session: &Session| {
        let error = run(session, "fail('here')").error.expect("an error");
        (error.filename, error.line, error.column, error.stack)
    };
    let (ours, theirs) = (place(&base), place(&copy));
    assert_eq!((ours.0.as_deref(), ours.1), (Some("<cell 1>"), Some(3)));
    assert_eq!((&ours.0, ours.1, ours.2), (&theirs.0, theirs.1, theirs.2));
    // A module that is replaced in the one is replaced there alone.
    let update =
        SessionUpdate { modules: modules("export const seen = 100;"), ..SessionUpdate::default() };
    copy.update(update).expect("an update");
    assert_eq!(number(run(&copy, "(await import('./m.ts')).seen")), 100);
    assert_eq!(number(run(&base, "(await import('./m.ts')).seen")), 2);
}

#[test]
fn a_copy_has_the_host_its_functions_and_its_answers() {
    let _alone = alone();
    let runtime = runtime();
    let ((give, given), (later, open)) = (give(), later(2));
    let calls = AtomicU32::new(0);
    let globals = Inputs::new()
        .with("base", 40)
        .with(
            "count",
            HostFunction::new(move || Ok::<_, HostError>(calls.fetch_add(1, Ordering::SeqCst) + 1)),
        )
        .with("give", give)
        .with("later", later);
    let base = with(&runtime, globals);
    assert_eq!(number(run(&base, "let n = 1; give((by) => n += by); count()")), 1);
    let copy = fork(&base);
    assert_eq!(number(run(&copy, "give((by) => n += 100 * by); count()")), 2);
    let (ours, theirs) = (given.recv().expect("a function"), given.recv().expect("a function"));
    let runtime_of_calls = tokio::runtime::Builder::new_current_thread().build().expect("tokio");
    let call = |callback: &SandboxFunction| {
        runtime_of_calls.block_on(callback.call::<u32>((1,))).expect("a number")
    };
    assert_eq!((call(&ours), call(&theirs), call(&ours)), (2, 101, 3));
    assert_eq!(number(run(&copy, "n")), 101);
    // An unanswered call keeps the session from being copied; one whose answer waits does not.
    assert_eq!(number(run(&base, "const answer = later(), other = later(); 0")), 0);
    let refused = base.fork().wait().expect_err("calls are unanswered").to_string();
    assert_eq!(
        refused,
        "2 calls to the host are unanswered: a session can be forked when all calls are answered"
    );
    open.store(true, Ordering::SeqCst);
    let mut answered = None;
    eventually("the answers to come", || base.fork().wait().is_ok());
    for _ in 0..2 {
        answered = Some(fork(answered.as_ref().unwrap_or(&base)));
    }
    let answered = answered.expect("a copy");
    assert_eq!(number(run(&answered, "base + await answer + await other")), 44);
    assert_eq!(number(run(&base, "base + await answer")), 42);
    // After a reset the copy is new, with its capabilities.
    answered.reset().wait().expect("a reset");
    assert_eq!(number(run(&answered, "typeof n === 'undefined' ? base : 0")), 40);
    let reset = fork(&base);
    reset.reset().wait().expect("a reset");
    assert_eq!(number(run(&reset, "typeof n === 'undefined' ? base : 0")), 40);
}

#[test]
fn a_thousand_copies_keep_apart() {
    let _alone = alone();
    let runtime = runtime();
    let base = session(&runtime);
    assert_eq!(
        number(run(&base, "let own = 0; const all = []; const note = x => all.push(x); 0")),
        0
    );
    let started = Instant::now();
    let mut alive: Vec<(u32, Session)> = Vec::new();
    for copy in 1..=1_000 {
        let session = fork(&base);
        let source = format!("own = {copy}; note({copy}); all.length");
        assert_eq!(number(run(&session, &source)), 1, "{copy}");
        alive.push((copy, session));
        if alive.len() == 20 {
            let (copy, session) = alive.remove(7);
            assert_eq!(number(run(&session, "own + all[0]")), 2 * copy);
        }
    }
    for (copy, session) in &alive {
        assert_eq!(number(run(session, "own + all[0]")), 2 * copy);
    }
    assert_eq!(number(run(&base, "own + all.length")), 0);
    println!("a copy and its cell: {:?}", started.elapsed() / 1_000);
}

#[test]
fn a_hundred_copies_are_alive_at_once() {
    let _alone = alone();
    let runtime = runtime();
    let base = session(&runtime);
    assert_eq!(number(run(&base, "let own = 0; const data = new Uint8Array(100_000); 0")), 0);
    let copies: Vec<_> = (0..100).map(|_| base.fork()).collect();
    let copies: Vec<_> = copies.into_iter().map(|copy| copy.wait().expect("a copy")).collect();
    let cells = (1..=100_u32).zip(&copies).map(|(own, copy)| {
        copy.run(format!("own = {own}; data.fill({own}); own"), CellOptions::default())
    });
    for cell in cells.collect::<Vec<_>>() {
        assert_eq!(cell.wait().expect("no misuse").status, Status::Success);
    }
    assert_eq!(family::workers().len(), 101);
    for (own, copy) in (1..=100).zip(&copies) {
        assert_eq!(number(run(copy, "own + data[99_999]")), 2 * own);
    }
    assert_eq!(number(run(&base, "own + data[0]")), 0);
}

#[test]
fn a_lost_worker_costs_one_session_alone() {
    let _alone = alone();
    let runtime = runtime();
    let base = with(&runtime, Inputs::new().with("base", 40));
    assert_eq!(number(run(&base, "let n = 1; n")), 1);
    let (before, copy) = (family::workers(), fork(&base));
    assert_eq!(number(run(&copy, "n = 2; n")), 2);
    let theirs: Vec<_> =
        family::workers().into_iter().filter(|worker| !before.contains(worker)).collect();
    family::kill(theirs[0]);
    eventually("the host to notice", || runtime.stats().workers == 1);
    // Questions say so, as often as they are asked, and so does the next cell.
    let lost = |answer: Result<(), Error>| answer.expect_err("it is reset").to_string();
    for _ in 0..2 {
        for said in [lost(copy.names().wait().map(drop)), lost(copy.fork().wait().map(drop))] {
            assert_eq!(said, "the session was reset: the worker was killed");
        }
    }
    let told = run(&copy, "n");
    assert_eq!(end(&told), (Status::Error, "WorkerLost", SessionState::Reset));
    assert_eq!(number(run(&copy, "typeof n === 'undefined' ? base : 0")), 40);
    assert_eq!(number(run(&base, "n")), 1);
    assert!(copy.names().wait().expect("names").is_empty());
}

#[test]
fn a_state_is_lost_with_the_zygote_it_is_from() {
    let _alone = alone();
    let runtime = runtime();
    let base = with(&runtime, Inputs::new().with("base", 40));
    assert_eq!(number(run(&base, "let n = 1; n")), 1);
    let (copy, asked) = (fork(&base), fork(&base));
    family::kill_zygotes();
    eventually("the workers to go", || family::all().is_empty());
    let lost = run(&copy, "n");
    assert_eq!(end(&lost), (Status::Error, "WorkerLost", SessionState::Reset));
    let message = "the process that starts workers ended, and the copy's state with it";
    assert_eq!(lost.error.expect("an error").message, message);
    assert_eq!(number(run(&copy, "typeof n === 'undefined' ? base : 0")), 40);
    assert_eq!(asked.names().wait().expect_err("it is reset").to_string(), message);
    assert_eq!(state(&run(&asked, "n")), SessionState::Reset);
    assert_eq!(number(run(&asked, "base")), 40);
    assert_eq!(state(&run(&base, "n")), SessionState::Reset);
}

#[test]
fn a_state_of_many_megabytes_is_copied() {
    let _alone = alone();
    let runtime = runtime();
    let open = |limit: u64| {
        let options =
            SessionOptions { memory_limit_bytes: Some(limit), ..SessionOptions::default() };
        runtime.session(options).expect("a session")
    };
    let full = open(64 << 20);
    let fill = "const rows = []; for (let i = 0; i < 200_000; i++) rows.push({ i, s: 'row ' + i }); rows.length";
    assert_eq!(number(run(&full, fill)), 200_000);
    let copy = fork(&full);
    assert_eq!(
        number(run(&copy, "rows.every((row, i) => row.i === i && row.s === 'row ' + i) ? 1 : 0")),
        1
    );
    assert_eq!(number(run(&copy, "rows.length = 0; rows.length")), 0);
    assert_eq!(number(run(&full, "rows.length")), 200_000);
    // Beyond the addresses of a slot there are no copies.
    let vast = open(600 << 20);
    assert_eq!(number(run(&vast, "let n = 1; n")), 1);
    let refused = vast.fork().wait().expect_err("it has no slot").to_string();
    assert_eq!(refused, "the state of this session cannot be copied");
    assert_eq!(number(run(&vast, "n")), 1);
}
