//! Tests of homes: tenants take turns, and states come back byte for byte.

use super::{
    super::{
        pool::{Pool, PoolOptions},
        range::PAGE_BYTES,
        termination::Termination,
        test_realm::{LEFT, TestRealm, build, run},
    },
    *,
};
use crate::isolate::memory::{instance::Run, slot::LARGEST_LIMIT_BYTES};
use std::slice;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LIMIT: usize = 32 << 20;

fn home() -> Arc<Home<TestRealm>> {
    let options = PoolOptions { ready: 1, max_slots: 8, ..PoolOptions::default() };
    let pool = Pool::new(build, options);
    Home::new(pool.take(LIMIT, false).expect("an instance"))
}

fn tenant(home: &Arc<Home<TestRealm>>) -> Tenant<TestRealm> {
    Tenant::new(home).expect("a tenant")
}

fn cell(occupied: &Occupied<'_, TestRealm>, source: &str) -> String {
    cell_under(occupied, source, LIMIT, Arc::default())
}

fn cell_under(
    occupied: &Occupied<'_, TestRealm>,
    source: &str,
    limit_bytes: usize,
    termination: Arc<Termination>,
) -> String {
    let instance = occupied.instance();
    instance.rearm(Run { termination, ..Run::with_limit(limit_bytes) });
    let text = run(instance, source);
    if text != LEFT {
        instance.rest();
    }
    text
}

/// The bytes of the range as far up as they were written, its tail, and the bytes in use.
fn bytes_of(occupied: &Occupied<'_, TestRealm>) -> (Vec<u8>, Vec<u8>, usize) {
    let instance = occupied.instance();
    let slot = instance.slot().expect("a slot");
    let pages = instance.heap().mark().high_bytes().div_ceil(PAGE_BYTES);
    // SAFETY: within the range, which nobody writes to.
    let live = unsafe { slice::from_raw_parts(slot.page(0).cast::<u8>(), pages * PAGE_BYTES) };
    (live.to_vec(), slot.tail().to_vec(), instance.heap().used_bytes())
}

fn is_zero_above(occupied: &Occupied<'_, TestRealm>, bytes: usize, pages: usize) -> bool {
    let slot = occupied.instance().slot().expect("a slot");
    let first = bytes.div_ceil(PAGE_BYTES);
    // SAFETY: within the range, which nobody writes to.
    (first..first + pages).all(|page| unsafe { *slot.page(page) } == [0; PAGE_BYTES])
}

/// Cells that change much, small and large, and whether they end by themselves under the limit.
const CELLS: &[&str] = &[
    "globalThis.n = (globalThis.n ?? 0) + 1",
    "globalThis.a = Array.from({ length: 2000 }, (_, i) => ({ i, s: 's' + i })); a.length",
    "globalThis.m = new Map(); for (let i = 0; i < 5e3; i++) m.set('k' + i, [i]); m.size",
    "globalThis.big = new Uint8Array(6 << 20).fill(n ?? 7); big.length",
    "globalThis.big = null; 0",
    "for (let i = 0; i < 2e4; i++) globalThis['t' + i % 100] = 'x'.repeat(i); 1",
    "delete globalThis.a; delete globalThis.m; 2",
    "Array.prototype.map = () => 'mine'; [1].map(x => x)",
    "globalThis.p = new Promise(r => { globalThis.r = r }); p.then(x => { globalThis.got = x }); 3",
    "globalThis.r?.(5); 4",
    "throw new Error('boom')",
    "globalThis.g ??= (function* () { for (let i = 0;; i++) yield i })(); g.next().value",
    "globalThis.s = Symbol.for('x' + Object.keys(globalThis).length); String(s)",
    "const all = []; for (;;) all.push(new Array(1000).fill(all)) // LEFT",
    "for (;;) globalThis.z = { z: 1 } // STOP",
];

/// The state as a later cell sees it.
const PROBE: &str = "JSON.stringify([globalThis.n, globalThis.a?.length, globalThis.m?.size, \
    globalThis.big?.[99], globalThis.got, Object.keys(globalThis).sort().length, \
    globalThis.t5?.length, globalThis.g?.next().value, String([1].map(String))])";

fn random(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).expect("31 bits")
}

fn any_cell(occupied: &Occupied<'_, TestRealm>, seed: &mut u64) -> String {
    let source = CELLS[random(seed) % CELLS.len()];
    let termination = Arc::<Termination>::default();
    let limit = if source.ends_with("// LEFT") { 12 << 20 } else { LIMIT };
    if source.ends_with("// STOP") {
        termination.raise();
    }
    cell_under(occupied, source, limit, termination)
}

/// Sanitized code takes some twenty times as long.
fn rounds(rounds: usize) -> usize {
    if cfg!(isolane_sanitized) { rounds / 10 } else { rounds }
}

#[test]
fn a_recalled_state_is_the_same_byte_for_byte() {
    let tenant = tenant(&home());
    let mut seed = 11;
    let mut occupied = tenant.occupy();
    let mut kept = Vec::new();
    for round in 0..rounds(150) {
        // A state that was left in the middle of its work is not one to go on with.
        if any_cell(&occupied, &mut seed) == LEFT {
            if let Some((snapshot, _)) = kept.last() {
                occupied.recall(snapshot);
            } else {
                assert!(occupied.recall_pristine());
            }
        }
        if round % 3 == 0 {
            let snapshot = occupied.checkpoint().expect("a snapshot");
            kept.push((snapshot, bytes_of(&occupied)));
        }
        if round % 5 == 0 {
            let (snapshot, bytes) = &kept[random(&mut seed) % kept.len()];
            let high_bytes = occupied.instance().heap().mark().high_bytes();
            occupied.recall(snapshot);
            let found = bytes_of(&occupied);
            assert!(found == *bytes, "round {round}: another state");
            assert!(is_zero_above(&occupied, found.0.len(), high_bytes / PAGE_BYTES + 300));
        }
        if kept.len() > 12 {
            kept.swap_remove(random(&mut seed) % kept.len());
        }
    }
    assert!(occupied.recall_pristine());
    let slot = occupied.instance().slot().expect("a slot");
    slot.check_pristine().expect("pristine");
}

#[test]
fn tenants_in_any_order_find_their_own_bytes() {
    let home = home();
    let mut seed = 23;
    let mut tenants: Vec<_> = (0..4).map(|_| (tenant(&home), None)).collect();
    for round in 0..rounds(80) {
        let index = random(&mut seed) % tenants.len();
        let (tenant, left) = &mut tenants[index];
        let mut occupied = tenant.occupy();
        if let Some((snapshot, bytes)) = left {
            assert!(bytes_of(&occupied) == *bytes, "round {round}: another state");
            if random(&mut seed).is_multiple_of(4) {
                any_cell(&occupied, &mut seed);
                occupied.recall(snapshot);
                assert!(bytes_of(&occupied) == *bytes, "round {round}: another state");
            }
        }
        while any_cell(&occupied, &mut seed) == LEFT {
            assert!(occupied.recall_pristine());
        }
        let snapshot = occupied.checkpoint().expect("a snapshot");
        *left = Some((snapshot.clone(), bytes_of(&occupied)));
        drop(occupied);
        if round % 20 == 7 {
            let fork = tenant.fork(&snapshot);
            let left = left.clone();
            let _gone = tenants.swap_remove(random(&mut seed) % tenants.len());
            tenants.push((fork, left));
        }
    }
}

#[test]
fn the_future_of_a_recalled_state_is_the_same() {
    let home = home();
    let tenant = tenant(&home);
    let mut occupied = tenant.occupy();
    let mut seed = 5;
    for _ in 0..rounds(30) {
        while any_cell(&occupied, &mut seed) == LEFT {
            assert!(occupied.recall_pristine());
        }
        let snapshot = occupied.checkpoint().expect("a snapshot");
        let start = seed;
        let mut future = || {
            let mut seed = start;
            let mut texts = Vec::new();
            for _ in 0..4 {
                texts.push(any_cell(&occupied, &mut seed));
                if texts.last().is_some_and(|text| text == LEFT) {
                    break;
                }
                texts.push(cell(&occupied, PROBE));
            }
            occupied.recall(&snapshot);
            texts
        };
        assert_eq!(future(), future());
    }
}

#[test]
fn tenants_take_turns_on_many_threads() {
    let home = home();
    let tenants: Vec<_> = (0..6).map(|_| tenant(&home)).collect();
    std::thread::scope(|scope| {
        for (number, tenant) in tenants.iter().enumerate() {
            scope.spawn(move || {
                let source = format!(
                    "globalThis.mine ??= []; mine.push(new Array(50).fill({number})); \
                     globalThis.big = new Uint8Array({number} << 16).fill({number}); \
                     mine.length + ':' + mine.flat().every(x => x === {number}) + big.every(x => x === {number})"
                );
                for round in 1..=60 {
                    let occupied = tenant.occupy();
                    assert_eq!(cell(&occupied, &source), format!("{round}:truetrue"));
                    if round % 7 == number {
                        occupied.checkpoint().expect("a snapshot");
                    }
                }
            });
        }
    });
}

#[test]
fn forks_go_separate_ways_and_snapshots_outlive_their_tenants() {
    let home = home();
    let parent = tenant(&home);
    let occupied = parent.occupy();
    cell(&occupied, "globalThis.list = [1]; globalThis.big = new Uint8Array(3 << 20).fill(3)");
    let snapshot = occupied.checkpoint().expect("a snapshot");
    drop(occupied);
    let forks: Vec<_> = (0..4).map(|_| parent.fork(&snapshot)).collect();
    for (number, fork) in forks.iter().enumerate() {
        let occupied = fork.occupy();
        let source = format!("list.push('f{number}'); big[0] = {number}; list.join() + big[1]");
        assert_eq!(cell(&occupied, &source), format!("1,f{number}3"));
    }
    assert_eq!(cell(&parent.occupy(), "list.push(2); list.join() + big[0]"), "1,23");
    drop(parent);
    for (number, fork) in forks.iter().enumerate().rev() {
        let text = cell(&fork.occupy(), "list.join() + big[0]");
        assert_eq!(text, format!("1,f{number}{number}"));
    }
    let first = &forks[0];
    let late = first.fork(&snapshot);
    drop(forks);
    assert_eq!(cell(&late.occupy(), "list.join() + big[0]"), "13");
    drop((late, home));
    assert!(snapshot.page_bytes() > 3 << 20 && snapshot.counted_bytes() > 3 << 20);
}

#[test]
fn large_heaps_with_returned_pages_come_back() {
    let home = home();
    let (one, other) = (tenant(&home), tenant(&home));
    let grow = "globalThis.keep = []; for (let i = 0; i < 40; i++) { const b = new Uint8Array(400 << 10).fill(i); if (i % 4 == 0) keep.push(b) } keep.length";
    let sum =
        "{ let n = 0; for (const b of keep) for (let i = 0; i < b.length; i += 997) n += b[i]; n }";
    let mut occupied = one.occupy();
    assert_eq!(cell(&occupied, grow), "10");
    let expected = cell(&occupied, sum);
    let snapshot = occupied.checkpoint().expect("a snapshot");
    let bytes = bytes_of(&occupied);
    // Free memory is neither kept nor held.
    let most_bytes = snapshot.counted_bytes() + snapshot.counted_bytes() / 4 + (2 << 20);
    assert!(snapshot.page_bytes() < most_bytes, "{} bytes", snapshot.page_bytes());
    for _ in 0..3 {
        drop(occupied);
        assert_eq!(
            cell(&other.occupy(), "globalThis.keep = [new Uint8Array(9 << 20).fill(1)]; 1"),
            "1"
        );
        occupied = one.occupy();
        assert!(bytes_of(&occupied) == bytes, "another state");
        let termination = Arc::default();
        let bomb = "globalThis.more = []; for (;;) more.push(new Uint8Array(100 << 10).fill(1))";
        assert_eq!(cell_under(&occupied, bomb, LIMIT, termination), LEFT);
        assert!(occupied.instance().heap().exhausted());
        occupied.recall(&snapshot);
        assert!(bytes_of(&occupied) == bytes, "another state");
        assert_eq!(cell(&occupied, sum), expected);
        occupied.recall(&snapshot);
    }
}

#[test]
fn a_snapshot_leaves_out_what_is_free() {
    let home = home();
    let tenant = tenant(&home);
    let occupied = tenant.occupy();
    let keep = "globalThis.k = Array.from({ length: 3000 }, (_, i) => ({ i })); k.length";
    cell(&occupied, keep);
    let before = occupied.checkpoint().expect("a snapshot");
    let waste = "for (let i = 0; i < 40; i++) 'xyz'.repeat(i * 400).split('y').map(x => [x]); 1";
    cell(&occupied, waste);
    let after = occupied.checkpoint().expect("a snapshot");
    let most_bytes = after.counted_bytes() * 9 / 8 + (64 << 10);
    println!("{} and {} bytes of pages", before.page_bytes(), after.page_bytes());
    assert!(after.page_bytes() <= most_bytes, "{} of {most_bytes}", after.page_bytes());
    let bytes = bytes_of(&occupied);
    drop(occupied);
    drop(super::Tenant::new(&home).expect("another").occupy());
    assert!(bytes_of(&tenant.occupy()) == bytes, "another state");
}

#[test]
fn a_run_steps_aside_in_the_middle() {
    let home = home();
    let (one, other) = (tenant(&home), tenant(&home));
    let termination = Arc::<Termination>::default();
    std::thread::scope(|scope| {
        let occupied = one.occupy();
        cell(&occupied, "globalThis.x = 'one'");
        let instance = occupied.instance();
        instance.rearm(Run { termination: Arc::clone(&termination), ..Run::with_limit(LIMIT) });
        let (to_other, from_one) = mpsc::channel::<()>();
        let (to_one, from_other) = mpsc::channel();
        let other = &other;
        scope.spawn(move || {
            from_one.recv().expect("a message");
            let occupied = other.occupy();
            let text = cell(&occupied, "globalThis.x = 'other'; for (let i = 0; i < 1e5; i++) globalThis['k' + i % 99] = [i]; typeof x");
            drop(occupied);
            to_one.send(text).expect("it waits");
        });
        let waited = instance.enter(|_| {
            assert_eq!(run(instance, "x += '!'; x"), "one!");
            // SAFETY: nothing of the engine is used while it waits.
            let text = unsafe {
                one.step_aside(|| {
                    to_other.send(()).expect("it waits");
                    let text = from_other.recv().expect("an answer");
                    termination.raise();
                    text
                })
            };
            assert_eq!(text, "string");
            assert!(instance.is_entered() && instance.heap().must_end());
            run(instance, "for (;;);")
        });
        // A request to end that came while the run was away.
        assert!(waited.is_err());
        drop(waited);
    });
    assert_eq!(cell(&other.occupy(), "x"), "other");
}

#[test]
fn the_flag_of_a_tenant_that_is_away_ends_nobody_else() {
    let home = home();
    let (one, other) = (tenant(&home), tenant(&home));
    let termination = Arc::<Termination>::default();
    let occupied = one.occupy();
    let run_of_one = Run { termination: Arc::clone(&termination), ..Run::with_limit(LIMIT) };
    occupied.instance().rearm(run_of_one);
    drop(occupied);
    let occupied = other.occupy();
    occupied.instance().rearm(Run::with_limit(LIMIT));
    termination.raise();
    assert_eq!(run(occupied.instance(), "let n = 0; while (n < 1e5) n++; n"), "100000");
    drop(occupied);
    let occupied = one.occupy();
    assert!(occupied.instance().heap().must_end());
    assert_eq!(run(occupied.instance(), "for (;;);"), LEFT);
}

#[test]
fn limits_and_charges_move_with_their_tenant() {
    let home = home();
    let (one, other) = (tenant(&home), tenant(&home));
    let occupied = one.occupy();
    occupied.instance().rearm(Run::with_limit(8 << 20));
    assert!(occupied.instance().heap().charge(3 << 20));
    drop(occupied);
    let mut occupied = other.occupy();
    assert_eq!(occupied.instance().heap().charged_bytes(), 0);
    assert_eq!(occupied.instance().heap().limit_bytes(), usize::MAX);
    occupied.instance().mark_odd();
    occupied.recall_pristine();
    assert!(!occupied.instance().is_poisoned());
    drop(occupied);
    let mut occupied = one.occupy();
    let heap = occupied.instance().heap();
    assert_eq!((heap.charged_bytes(), heap.limit_bytes()), (3 << 20, 8 << 20));
    assert!(heap.peak_bytes() >= 3 << 20);
    let snapshot = occupied.checkpoint().expect("a snapshot");
    let heap = occupied.instance().heap();
    assert!(heap.charge(1 << 20) && !heap.charge(5 << 20) && heap.exhausted());
    occupied.recall(&snapshot);
    let heap = occupied.instance().heap();
    assert!(heap.charged_bytes() == 3 << 20 && !heap.exhausted());
    occupied.instance().rearm(Run::with_limit(2 << 20));
    assert!(occupied.instance().heap().exhausted(), "kept bytes count");
}

#[test]
fn a_plain_instance_has_one_tenant_and_no_snapshots() {
    let pool = Pool::new(build, PoolOptions::default());
    let home = Home::new(pool.take(LARGEST_LIMIT_BYTES + 1, false).expect("an instance"));
    assert!(!home.is_shared());
    let tenant = tenant(&home);
    assert!(Tenant::new(&home).is_none() && Arc::ptr_eq(tenant.home(), &home));
    let mut occupied = tenant.occupy();
    assert_eq!(cell(&occupied, "globalThis.x = 1; x"), "1");
    assert!(occupied.checkpoint().is_none());
    assert_eq!(cell(&occupied, "x"), "1");
    drop(occupied);
    occupied = tenant.occupy();
    assert_eq!(
        cell_under(&occupied, "for (const a = [];;) a.push([a])", 8 << 20, Arc::default()),
        LEFT
    );
    assert!(occupied.recall_pristine());
    assert_eq!(cell(&occupied, "typeof x"), "undefined");
}

/// Prints what a checkpoint costs, and a change of tenants.
#[test]
fn costs() {
    let home = home();
    let (one, other) = (tenant(&home), tenant(&home));
    cell(&other.occupy(), "globalThis.x = 1");
    for (name, source) in [
        ("small", "globalThis.x = 1"),
        (
            "1 MB",
            "globalThis.a = Array.from({ length: 8000 }, (_, i) => ({ i, s: 's' + i })); globalThis.x = 1",
        ),
        (
            "10 MB",
            "globalThis.a = Array.from({ length: 80000 }, (_, i) => ({ i, s: 's' + i })); globalThis.x = 1",
        ),
    ] {
        let mut occupied = one.occupy();
        cell(&occupied, source);
        let mut checkpoints = Vec::new();
        let mut recalls = Vec::new();
        let mut moves = Vec::new();
        for _ in 0..rounds(40) {
            cell(&occupied, "x + 1");
            let start = Instant::now();
            let snapshot = occupied.checkpoint().expect("a snapshot");
            checkpoints.push(start.elapsed());
            cell(&occupied, "x + 2");
            let start = Instant::now();
            occupied.recall(&snapshot);
            recalls.push(start.elapsed());
            drop(occupied);
            let start = Instant::now();
            drop(other.occupy());
            occupied = one.occupy();
            moves.push(start.elapsed());
        }
        let bytes = occupied.checkpoint().map_or(0, |snapshot| snapshot.page_bytes());
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        println!(
            "{name}: {bytes} bytes of pages, checkpoint {:?}, recall {:?}, there and back {:?}",
            median(&mut checkpoints),
            median(&mut recalls),
            median(&mut moves)
        );
    }
}
