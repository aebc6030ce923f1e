//! Tests that code stops when it is asked to, whatever it is doing.

use super::memory::{
    instance::{Instance, Run},
    interrupt::PollState,
    termination::Termination,
    test_realm::{LEFT, TestRealm, run},
    tests::{CEILING, limited, slot},
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Code that turns slow after a loop that made polls rare.
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
    "const f = () => { Promise.resolve().then(f); }; f()",
    "for (const x of (function* () { for (;;) yield 1 })());",
    "const p = new Proxy({}, { get: () => 1 }); for (;;) p.x",
    "Iterator.from({ next: () => ({ done: false }) }).forEach(() => {})",
];

/// Raises `termination` from another thread once the code has run for a while; returns the time until it ended.
fn stop_late(instance: &Instance<TestRealm>, source: &str) -> Duration {
    let termination = Arc::<Termination>::default();
    instance.arm(Run { termination: Arc::clone(&termination), ..limited(64) });
    std::thread::scope(|scope| {
        let raised = scope.spawn(move || {
            // Not a wait for an event: the request is to come at a bad time, long after the first polls.
            std::thread::sleep(Duration::from_millis(200));
            termination.raise();
            Instant::now()
        });
        run(instance, source);
        let ended = Instant::now();
        ended.saturating_duration_since(raised.join().expect("no panic"))
    })
}

#[test]
fn endless_code_is_stopped_from_another_thread() {
    let mut instance = slot();
    for source in ENDLESS {
        let took = stop_late(&instance, source);
        println!("{:>9.2} ms  {source}", took.as_secs_f64() * 1e3);
        assert!(took < CEILING, "{source}");
        assert!(!instance.heap().exhausted(), "{source}");
        instance = instance.finish().expect("a slot");
        assert_eq!(instance.slot().expect("a slot").check_pristine(), Ok(()), "after {source}");
    }
}

thread_local! {
    static SPENT: std::cell::Cell<Duration> = const { std::cell::Cell::new(Duration::ZERO) };
}

/// A hook that caps the time of the code; nobody else asks it to end.
fn after_a_moment(polls: &mut PollState) -> bool {
    SPENT.set(SPENT.get() + polls.gap);
    SPENT.get() > Duration::from_millis(100)
}

#[test]
fn endless_code_is_stopped_by_a_hook() {
    let mut instance = slot();
    for source in ENDLESS {
        // A hook sees only events within a job; the job loop looks at jobs. And the engine polls late in code that
        // turns slow, which only `Termination` reaches in time.
        if source.contains("await") || source.contains("Promise") || *source == TURNING {
            continue;
        }
        SPENT.set(Duration::ZERO);
        let started = Instant::now();
        instance.arm(Run { hook: Some(after_a_moment), ..limited(64) });
        run(&instance, source);
        let took = started.elapsed();
        println!("{:>9.2} ms of 100  {source}", took.as_secs_f64() * 1e3);
        assert!(took < CEILING, "{source}");
        instance = instance.finish().expect("a slot");
    }
}

#[test]
fn a_run_asked_to_end_before_it_starts_ends_at_once() {
    let instance = slot();
    let termination = Arc::<Termination>::default();
    termination.raise();
    instance.arm(Run { termination, ..limited(64) });
    assert_eq!(run(&instance, "for (;;);"), LEFT);
}

#[test]
fn a_flag_of_an_earlier_run_ends_nothing() {
    let instance = slot();
    let termination = Arc::<Termination>::default();
    instance.arm(Run { termination: Arc::clone(&termination), ..limited(64) });
    run(&instance, "1");
    let instance = instance.finish().expect("a slot");
    instance.arm(limited(64));
    termination.raise();
    assert_eq!(run(&instance, "let n = 0; while (n < 1e5) n++; n"), "100000");
    drop(instance);
    termination.raise();
}
