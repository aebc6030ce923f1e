//! Whether code stops when it is asked to, whatever it is doing.

use super::memory::{
    instance::{Home, Run},
    interrupt::PollState,
    termination::Ending,
    test_realm::{LEFT, TestRealm, run},
    tests::{CEILING, limited, slot},
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns slow after a loop that made polls rare.
const TURNING: &str =
    "const a = new Array(1e6).fill(0); for (let i = 0; i < 1e6; i++); for (;;) a.indexOf(1)";

/// Code that never ends by itself.
const ENDLESS: &[&str] = &[
    "for (;;);",
    "for (;;) 'a'.padEnd(1e6)",
    "for (;;) try { 'a'.padEnd(1e6) } catch {}",
    "const a = new Array(1e6).fill(0); for (;;) [...a]",
    "const a = new Array(1e6).fill(0); for (;;) a.indexOf(1)",
    "const a = new Uint8Array(1e7); for (;;) a.reverse()",
    TURNING,
    "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "for (;;) { try { throw 1 } catch {} finally { continue } }",
    "const f = () => { try { f() } catch {} f() }; f()",
    "(async () => { for (;;) await 0 })()",
    "const f = () => Promise.resolve().then(f); f()",
    "for (const x of (function* () { for (;;) yield 1 })());",
    "const p = new Proxy({}, { get: () => 1 }); for (;;) p.x",
    "Iterator.from({ next: () => ({ done: false }) }).forEach(() => {})",
];

/// Raises `ending` from another thread once the code has run for a while; how long it then took.
fn stop_late(home: &Home<TestRealm>, source: &str) -> Duration {
    let ending = Arc::<Ending>::default();
    home.arm(Run { ending: Arc::clone(&ending), ..limited(64) });
    std::thread::scope(|scope| {
        let raised = scope.spawn(move || {
            // Not to wait for anything, but to come at a bad time: long after the first polls.
            std::thread::sleep(Duration::from_millis(200));
            ending.raise();
            Instant::now()
        });
        run(home, source);
        let ended = Instant::now();
        ended.saturating_duration_since(raised.join().expect("no panic"))
    })
}

#[test]
fn endless_code_is_stopped_from_another_thread() {
    let mut home = slot();
    for source in ENDLESS {
        let took = stop_late(&home, source);
        println!("{:>9.2} ms  {source}", took.as_secs_f64() * 1e3);
        assert!(took < CEILING, "{source}");
        assert!(!home.heap().exhausted(), "{source}");
        home = home.finish().expect("a slot");
        assert_eq!(home.slot().expect("a slot").check_pristine(), Ok(()), "after {source}");
    }
}

thread_local! {
    static SPENT: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// A hook that caps the time of the code, which nobody else asks to end.
fn after_a_moment(polls: &mut PollState) -> bool {
    SPENT.set(SPENT.get() + polls.gap);
    SPENT.get() > Duration::from_millis(100)
}

#[test]
fn endless_code_is_stopped_by_a_hook() {
    let mut home = slot();
    for source in ENDLESS {
        // It is the job loop that looks at jobs; a hook sees what happens within one. And it is
        // asked late by what turns slow, which only `Ending` reaches in time.
        if source.contains("await") || source.contains("Promise") || *source == TURNING {
            continue;
        }
        SPENT.set(Duration::ZERO);
        let started = Instant::now();
        home.arm(Run { hook: Some(after_a_moment), ..limited(64) });
        run(&home, source);
        let took = started.elapsed();
        println!("{:>9.2} ms of 100  {source}", took.as_secs_f64() * 1e3);
        assert!(took < CEILING, "{source}");
        home = home.finish().expect("a slot");
    }
}

#[test]
fn a_run_asked_to_end_before_it_starts_ends_at_once() {
    let home = slot();
    let ending = Arc::<Ending>::default();
    ending.raise();
    home.arm(Run { ending, ..limited(64) });
    assert_eq!(run(&home, "for (;;);"), LEFT);
}

#[test]
fn a_flag_of_an_earlier_run_ends_nothing() {
    let home = slot();
    let ending = Arc::<Ending>::default();
    home.arm(Run { ending: Arc::clone(&ending), ..limited(64) });
    run(&home, "1");
    let home = home.finish().expect("a slot");
    home.arm(limited(64));
    ending.raise();
    assert_eq!(run(&home, "let n = 0; while (n < 1e5) n++; n"), "100000");
    drop(home);
    ending.raise();
}
