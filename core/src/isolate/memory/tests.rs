//! Tests of the memory room's promises, with hostile code.

use super::{
    instance::{Instance, Run},
    interrupt::PollState,
    test_realm::{LEFT, TestRealm, addresses, build, run, run_module},
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(in crate::isolate) const MIB: usize = 1 << 20;
/// A ceiling for runs that must end; far above the time they take, for machines under load.
pub(in crate::isolate) const CEILING: Duration =
    Duration::from_mins(2).saturating_mul(crate::os::sanitized::PATIENCE);

/// Programs that change their realm as much as they can, each with its limit in MiB and its number of runs.
const POLLUTERS: &[(&str, usize, usize)] = &[
    (
        "Array.prototype.map = null; Array.prototype[Symbol.iterator] = 5; Object.prototype.evil = 1; delete Object.prototype.toString; Function.prototype.call = 1; Object.setPrototypeOf(Array.prototype, null); Promise.prototype.then = 5; Object.freeze(Object.prototype); Object.preventExtensions(globalThis)",
        64,
        300,
    ),
    (
        "for (const k of Object.getOwnPropertyNames(globalThis)) { try { delete globalThis[k] } catch {} } globalThis.foo = 1",
        64,
        300,
    ),
    ("for (let i = 0; i < 1e4; i++) globalThis['g' + i] = { i }", 64, 30),
    (
        "for (let i = 0; i < 5e3; i++) { Symbol.for('s' + i); Symbol('u' + i); ({})['p' + i] = 1 } globalThis.k = Symbol.for('kept')",
        64,
        30,
    ),
    (
        "for (let i = 0; i < 500; i++) Promise.resolve().then(() => { globalThis.late = i }); new Promise(() => {})",
        64,
        200,
    ),
    ("await new Promise(r => { globalThis.res = r })", 64, 300),
    (
        "async function f(n) { const a = [n]; await new Promise(r => globalThis['r' + n] = r); return a } for (let i = 0; i < 100; i++) f(i)",
        64,
        200,
    ),
    (
        "globalThis.gs = []; for (let i = 0; i < 100; i++) { const g = (function* () { try { yield 1; yield 2 } finally { globalThis.fin = 1 } })(); g.next(); gs.push(g) }",
        64,
        200,
    ),
    (
        "async function* ag() { yield 1; await 2; yield 3 } globalThis.a = ag(); a.next(); a.next(); a.return(5)",
        64,
        300,
    ),
    (
        "globalThis.keep = []; for (let i = 0; i < 100; i++) { const o = {}; const p = new Proxy(o, { get: () => 1 }); keep.push(new Map([[o, p], [p, o]]), new WeakRef(o), new WeakMap([[o, p]]), new WeakSet([o])) }",
        64,
        100,
    ),
    (
        "globalThis.fr = new FinalizationRegistry(() => { globalThis.fin = 1 }); for (let i = 0; i < 200; i++) { const o = { i }; fr.register(o, i, o); if (i & 1) globalThis['o' + i] = o; fr.unregister({}) }",
        64,
        200,
    ),
    (
        "let w = []; for (let i = 0; i < 300; i++) { w.push(new WeakRef({})) } w.map(x => x.deref())",
        64,
        200,
    ),
    (
        "globalThis.t = []; for (let i = 0; i < 100; i++) { const b = new ArrayBuffer(i * 100, { maxByteLength: i * 200 }); t.push(new Uint8Array(b), new DataView(b)); b.resize(i * 150); if (i & 1) b.transfer() }",
        64,
        200,
    ),
    (
        "globalThis.b = 3n ** 5000n; b.toString(); new Date().toString(); new Date(2020, 1, 1).toLocaleString(); 'ä'.normalize('NFD'); 'x'.localeCompare('y'); Math.random()",
        64,
        100,
    ),
    (
        "globalThis.e = new Error('x'); Error.prepareStackTrace = () => 'pst'; Error.stackTraceLimit = 1; throw Object.assign(new Error('boom'), { cause: e })",
        64,
        300,
    ),
    ("throw null", 64, 300),
    ("let x = @", 64, 300),
    ("for (let i = 0; i < 100; i++) Promise.reject(new Error(i))", 64, 200),
    ("globalThis.n = 0; for (;;) { n++; globalThis['k' + (n & 1023)] = [n] } // STOP", 64, 100),
    ("function f(n) { if (n) return [1].map(() => f(n - 1)); for (;;); } f(50) // STOP", 64, 100),
    ("Promise.resolve().then(() => { for (;;); }) // STOP", 64, 100),
    (
        "const g = function* () { for (;;) yield [].concat([1, 2, 3].sort(() => { for (;;); })) }; [...g()] // STOP",
        64,
        100,
    ),
    (
        "for (;;) { try { for (;;) try { throw 1 } finally { globalThis.x = {} } } catch {} } // STOP",
        64,
        100,
    ),
    ("/(a+)+$/.test('a'.repeat(40) + 'b') // STOP", 64, 100),
    ("const a = []; for (;;) a.push({ a })", 8, 30),
    ("let s = 'x'; for (;;) { s += s; globalThis.s = s + s.length }", 8, 100),
    (
        "const all = []; for (let i = 0; i < 20; i++) { try { const a = []; for (;;) a.push(new Map([[{}, i]])) } catch (e) { all.push(e) } }",
        8,
        30,
    ),
    (
        "async function f() { const x = new Array(100).fill(1); await 0; return f() } for (let i = 0; i < 1e6; i++) f()",
        8,
        30,
    ),
    ("globalThis.a = []; for (;;) a.push(new ArrayBuffer(1 << 20))", 32, 100),
    ("function f() { return 1 + f() } f()", 64, 200),
    (
        "try { JSON.parse('['.repeat(1e5)) } catch {} try { (0, eval)('('.repeat(1e5)) } catch {} try { new RegExp('('.repeat(1e5)) } catch {} let o = {}; for (let i = 0; i < 1e4; i++) o = { o }; JSON.stringify(o)",
        64,
        20,
    ),
    (
        "globalThis.big = []; for (let i = 0; i < 5e4; i++) big.push({ i, s: 'str' + i }); JSON.parse(JSON.stringify(big))",
        512,
        5,
    ),
    (
        "class A { #p = 1; static { globalThis.A = this } } (0, eval)('var evil = 1; let lex = 2; const K = 3; function ff() {}'); new Function('return 1')(); import('nope').catch(() => {})",
        64,
        300,
    ),
    ("for (let i = 0; i < 2e4; i++) { const a = {}, b = { a }; a.b = b; a.f = () => b }", 64, 20),
    (
        "globalThis.it = Iterator.from([1, 2, 3]).map(x => x).filter(x => x).flatMap(x => [x]).take(2); it.next(); if (typeof DisposableStack === 'function') { const d = new DisposableStack(); d.defer(() => 1); globalThis.d = d }",
        64,
        300,
    ),
    (
        "globalThis.r = [...'abc'.matchAll(/b|c/g)]; 'abc'.replace(/(?<n>b)/y, x => x); RegExp.prototype.exec = null; String.prototype.at = null; globalThis.u = new URLSearchParams",
        64,
        300,
    ),
];

/// The test's hook: stops the code after a few polls.
fn after_a_few(polls: &mut PollState) -> bool {
    polls.polls > 5
}

pub(in crate::isolate) fn slot() -> Instance<TestRealm> {
    Instance::in_slot(build).expect("a instance in a slot")
}

pub(in crate::isolate) fn limited(mib: usize) -> Run {
    Run::with_limit(mib * MIB)
}

#[test]
fn whatever_ran_a_restored_slot_is_its_image() {
    let mut instance = slot();
    instance.arm(limited(64));
    let describe =
        "Object.getOwnPropertyNames(globalThis).join() + [1, 2].map(x => x) + typeof evil";
    let pristine = run(&instance, describe);
    instance = instance.finish().expect("a slot");
    let mut left: Vec<_> = POLLUTERS.iter().map(|(_, _, cycles)| *cycles).collect();
    // In turn, over and over, so that each program follows each.
    while left.iter().any(|cycles| *cycles > 0) {
        for (index, (source, mib, _)) in POLLUTERS.iter().enumerate() {
            let Some(cycles) = left[index].checked_sub(1) else { continue };
            left[index] = cycles;
            let hook =
                source.ends_with("STOP").then_some(after_a_few as fn(&mut PollState) -> bool);
            instance.arm(Run { hook, ..limited(*mib) });
            let module = source.contains("await") || cycles % 2 == 0;
            let _ = if module { run_module(&instance, source) } else { run(&instance, source) };
            instance = instance.finish().expect("a slot");
            let state = instance.slot().expect("a slot").check_pristine();
            assert_eq!(state, Ok(()), "after {source}");
        }
    }
    instance.arm(limited(64));
    assert_eq!(run(&instance, describe), pristine);
    // In debug builds, the drop tears the runtime down and checks that nothing is left.
}

#[test]
fn a_plain_home_is_gone_after_its_run_whatever_ran() {
    for (source, mib, _) in POLLUTERS {
        let instance = Instance::plain(build).expect("a plain instance");
        let hook = source.ends_with("STOP").then_some(after_a_few as fn(&mut PollState) -> bool);
        instance.arm(Run { hook, ..limited(*mib) });
        run_module(&instance, source);
        assert!(instance.finish().is_none());
    }
}

/// Programs that request more than there is, and hide it.
const BOMBS: &[&str] = &[
    "const a = []; for (;;) a.push({ a })",
    "let s = 'x'; for (;;) s = (s + s).toUpperCase()",
    "const a = []; for (;;) a.push(new ArrayBuffer(100000))",
    "const m = new Map(); for (let i = 0; ; i++) m.set('k' + i, [i])",
    "const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(0)) } catch {}",
    "(async () => { const a = []; for (;;) { a.push(new Uint8Array(5000)); await 0 } })()",
    "for (;;) try { new ArrayBuffer(1 << 30) } catch {}",
    "const a = []; const f = () => { try { for (;;) a.push('x'.repeat(999) + a.length) } finally { f() } }; f()",
    "const o = {}; for (let i = 0; ; i++) o['p' + i] = i",
];

#[test]
fn bombs_hit_their_limit_and_leave_nothing() {
    let mut instance = slot();
    for mib in [1, 8, 64] {
        for source in BOMBS {
            instance.arm(limited(mib));
            let started = Instant::now();
            run(&instance, source);
            assert!(instance.heap().exhausted(), "{source} at {mib} MiB");
            assert!(started.elapsed() < CEILING, "{source} at {mib} MiB");
            let (limit, peak) = (mib * MIB, instance.heap().peak_bytes());
            assert!(peak <= limit, "{source}: {peak} of {limit}");
            instance = instance.finish().expect("a slot");
            let slot = instance.slot().expect("a slot");
            assert_eq!(slot.check_pristine(), Ok(()), "after {source}");
            instance.arm(limited(mib));
            assert_eq!(run(&instance, "[3, 1, 2].sort().map(x => x * 2)"), "2,4,6");
            assert!(!instance.heap().exhausted());
            instance = instance.finish().expect("a slot");
        }
    }
}

/// Blocks that grow in every way, from sizes that are moved at once to those that are moved in steps.
const GROWERS: &[&str] = &[
    "const a = []; for (;;) for (let i = 0; i < 9; i++) (a[i] ??= []).push(1)",
    "const a = []; for (let n = 1; ; n++) { const b = []; a.push(b); for (let i = 0; i < 1e4 * n; i++) b.push(i) }",
    "const a = []; for (;;) { const b = []; a.push(b); b.length = 4e4; b.fill(1); for (let i = 0; i < 3e5; i++) b.push(i) }",
];

#[test]
fn no_run_reaches_what_is_trimmed() {
    for mib in [1, 8, 64] {
        for source in BOMBS.iter().chain(GROWERS) {
            let mut instance = slot();
            assert!(instance.trim(mib * MIB) > 1 << 30);
            for _ in 0..2 {
                instance.arm(limited(mib));
                run(&instance, source);
                assert!(instance.heap().exhausted(), "{source} at {mib} MiB");
                instance = instance.finish().expect("a slot");
                instance.arm(limited(mib));
                assert_eq!(run(&instance, "[3, 1, 2].sort().map(x => x * 2)"), "2,4,6");
                instance = instance.finish().expect("a slot");
            }
        }
    }
}

#[test]
fn a_limit_of_one_byte_is_exhausted_and_can_still_be_armed_and_restored() {
    for instance in [slot(), Instance::plain(build).expect("a plain instance")] {
        instance.arm(Run::with_limit(1));
        assert!(instance.heap().exhausted());
        assert_eq!(run(&instance, "for (;;);"), LEFT);
        drop(instance.finish());
    }
}

#[test]
fn garbage_is_collected_before_the_limit_is_hit() {
    let churn = "const alive = []; for (let i = 0; i < 1e5; i++) alive.push([i]);
        for (let i = 0; i < 4e5; i++) { const a = {}; a.a = a } alive.length";
    for instance in [slot(), Instance::plain(build).expect("a plain instance")] {
        instance.arm(limited(64));
        assert_eq!(run(&instance, churn), "100000");
        let tight = instance.heap().used_bytes() + 4 * MIB;
        let instance =
            instance.finish().unwrap_or_else(|| Instance::plain(build).expect("a plain instance"));
        instance.arm(Run::with_limit(tight));
        assert_eq!((run(&instance, churn), instance.heap().exhausted()), ("100000".into(), false));
    }
}

#[test]
fn what_is_asked_for_zeroed_is_zero() {
    let mut instance = slot();
    let source = "let ok = true; for (let i = 0; i < 30; i++) { const u = new Uint8Array(3000 + i * 40000);
        ok &&= u.indexOf(1) < 0 && u.indexOf(255) < 0; u.fill(255); if (i & 1) globalThis['u' + i] = u } ok";
    for _ in 0..20 {
        instance.arm(limited(64));
        assert_eq!(run(&instance, source), "true");
        instance = instance.finish().expect("a slot");
    }
    instance.arm(limited(400));
    assert_eq!(run(&instance, "new ArrayBuffer(256 << 20).byteLength"), "268435456");
}

#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn memory_that_is_zero_is_not_cleared() {
    let mut instance = slot();
    let mut times = Vec::new();
    for _ in 0..5 {
        instance.arm(limited(400));
        let started = Instant::now();
        assert_eq!(run(&instance, "new ArrayBuffer(256 << 20).byteLength"), "268435456");
        times.push(started.elapsed());
        instance = instance.finish().expect("a slot");
    }
    times.sort_unstable();
    assert!(times[2] < Duration::from_millis(20), "{times:?}");
}

#[test]
fn runs_draw_different_random_numbers() {
    let mut instance = slot();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        instance.arm(limited(64));
        assert!(seen.insert(run(&instance, "[Math.random(), Math.random()]")));
        instance = instance.finish().expect("a slot");
    }
}

/// The engine's hash of an object as a key of a `Map` or `Set`, but for constants: of the address the product with an
/// odd number, of that the low bits.
fn buckets(addresses: &[usize], size: usize) -> HashMap<usize, usize> {
    let mut buckets = HashMap::new();
    for address in addresses {
        *buckets.entry(address.wrapping_mul(3163) % size).or_default() += 1;
    }
    buckets
}

#[test]
#[cfg_attr(isolane_sanitized, ignore = "a sanitized engine makes no chunks")]
fn objects_have_addresses_that_a_hash_table_tells_apart() {
    for source in ["({})", "[i]", "() => i", "new Map", "new (class A { x = i })"] {
        let instance = slot();
        for count in [1 << 10, 1 << 14, 1 << 17] {
            instance.arm(limited(400));
            let source = format!(
                "(() => {{ const a = []; for (let i = 0; i < {count}; i++) a.push({source}); globalThis.all = a }})()"
            );
            assert_eq!(run(&instance, &source), "undefined");
            let addresses = addresses(&instance, "all");
            assert_eq!(addresses.len(), count);
            // The table has at least half as many buckets as keys. A lookup that finds its key
            // compares half of those in its bucket on average.
            let compared = buckets(&addresses, count / 2).into_values().map(|keys| keys * keys / 2);
            let compared = compared.sum::<usize>() / count;
            assert!(compared < 16, "{source}: {compared} keys compared in a lookup");
            run(&instance, "delete globalThis.all");
        }
    }
}

/// Whether this process was started for the test alone. If not, runs the test in such a process and reports its result.
fn alone(test: &str) -> bool {
    const ALONE: &str = "ISOLANE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let own = std::env::current_exe().expect("this program");
    let name = format!("isolate::memory::tests::{test}");
    let args = ["--exact", &name, "--include-ignored", "--nocapture"];
    let run = std::process::Command::new(own).args(args).env(ALONE, "1").output();
    let run = run.expect("to run it again");
    let said = String::from_utf8_lossy(&run.stdout);
    let cause = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}{cause}");
    false
}

/// Runs that many polluters in one slot after the other, every tenth of them in a plain instance too.
fn pollute(mut instance: Instance<TestRealm>, runs: usize) -> Instance<TestRealm> {
    let quick: Vec<_> = POLLUTERS.iter().filter(|(.., cycles)| *cycles == 300).collect();
    for index in 0..runs {
        let (source, mib, _) = quick[index % quick.len()];
        instance.arm(limited(*mib));
        run_module(&instance, source);
        instance = instance.finish().expect("a slot");
        if index % 10 == 0 {
            let plain = Instance::plain(build).expect("a plain instance");
            plain.arm(limited(*mib));
            run_module(&plain, source);
            assert!(plain.finish().is_none());
        }
    }
    instance
}

/// Counts the bytes that the allocator of the process has given out, and the mappings of the process. In a process of
/// its own, where no other test allocates.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
#[cfg_attr(isolane_sanitized, ignore = "a sanitizer keeps what was freed")]
#[expect(unsafe_code, reason = "asks the allocator")]
fn nothing_grows() {
    if !alone("nothing_grows") {
        return;
    }
    let count = || {
        // SAFETY: reads the counters of the allocator.
        let counters = unsafe { libc::mallinfo2() };
        let mappings = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
        (counters.uordblks + counters.hblkhd, mappings.lines().count())
    };
    let instance = pollute(slot(), 400);
    let (bytes, mappings) = count();
    let instance = pollute(instance, 20_000);
    let (more_bytes, more_mappings) = count();
    drop(instance);
    println!("{bytes} bytes in {mappings} mappings, then {more_bytes} in {more_mappings}");
    // Caches of the allocator count as given out.
    assert!(more_bytes <= bytes + (128 << 10), "{bytes} bytes, then {more_bytes}");
    assert!(more_mappings <= mappings + 16, "{mappings} mappings, then {more_mappings}");
}

/// The same of the memory that the process has, of which no counter knows everything.
#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn the_process_does_not_grow() {
    fn resident_kib() -> usize {
        let status =
            std::fs::read_to_string("/proc/self/status").expect("the process's own status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let number = line.split_whitespace().nth(1).expect("a number");
        number.parse().expect("a number")
    }
    if !alone("the_process_does_not_grow") {
        return;
    }
    let mut instance = Some(pollute(slot(), 400));
    let mut grown: Vec<_> = (0..5)
        .map(|_| {
            let before = resident_kib();
            instance = instance.take().map(|instance| pollute(instance, 4_000));
            resident_kib().saturating_sub(before)
        })
        .collect();
    grown.sort_unstable();
    println!("{grown:?} KiB in 4,000 runs each");
    assert!(grown[2] <= 256, "{grown:?} KiB");
}

#[test]
fn homes_move_between_threads() {
    let mut instances: Vec<_> = (0..3).map(|_| slot()).collect();
    instances.push(Instance::plain(build).expect("a plain instance"));
    for _ in 0..30 {
        let hop = |instance: Instance<TestRealm>| {
            let thread = std::thread::Builder::new().stack_size(MIB * crate::os::sanitized::FRAMES);
            thread.spawn(move || {
                instance.arm(limited(16));
                let deep = "let d = 0; const f = () => { d++; f() }; try { f() } catch {} d > 100";
                assert_eq!(run(&instance, deep), "true");
                instance
                    .finish()
                    .unwrap_or_else(|| Instance::plain(build).expect("a plain instance"))
            })
        };
        let threads: Vec<_> = instances.into_iter().map(hop).collect();
        let join = |thread: std::io::Result<std::thread::JoinHandle<_>>| {
            thread.expect("a thread").join().expect("no panic")
        };
        instances = threads.into_iter().map(join).collect();
    }
}

#[test]
fn entering_again_gives_no_second_stack() {
    // In a frame of its own.
    #[inline(never)]
    fn run_lower(instance: &Instance<TestRealm>, code: &str) -> String {
        let mut used = [0_u8; 8 << 10];
        std::hint::black_box(&mut used);
        let result = run(instance, code);
        std::hint::black_box(&mut used);
        result
    }
    let instance = slot();
    instance.arm(limited(64));
    let depth =
        "(() => { let d = 0; const f = () => { d++; f() }; try { f() } catch {} return d })()";
    let outer: u32 = run(&instance, depth).parse().expect("a number");
    let inner = instance.enter(|_| run_lower(&instance, depth)).expect("stayed");
    let inner: u32 = inner.parse().expect("a number");
    assert!(inner < outer, "{inner} of {outer}");
}
