//! What things cost, for whoever changes them.

use super::home::{Home, Run};
use super::memory_tests::{MIB, limited, slot};
use super::pool::{Pool, PoolOptions};
use super::test_realm::{TestRealm, build, run};
use std::time::Instant;

/// Not a test: prints what things cost. `cargo test --release -- --ignored --nocapture cost`.
#[test]
#[ignore = "measures"]
fn cost() {
    let median = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        (samples[samples.len() / 2], samples[samples.len() * 9 / 10])
    };
    let show = |what: &str, samples| {
        let (p50, p90) = median(samples);
        println!("{what:<52} p50 {p50:>9.2}  p90 {p90:>9.2} µs");
    };
    let timed = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64() * 1e6
    };
    for _pass in 0..2 {
        let mut keep = Vec::new();
        show("make a slot", (0..200).map(|_| timed(&mut || keep.push(slot()))).collect());
        println!("image {} bytes", keep[0].slot().expect("a slot").image_bytes());
        show("drop a slot", (0..200).map(|_| timed(&mut || drop(keep.pop()))).collect());
        let plain = || Home::plain(build).expect("a plain home");
        show("make a plain home", (0..200).map(|_| timed(&mut || keep.push(plain()))).collect());
        show("drop a plain home", (0..200).map(|_| timed(&mut || drop(keep.pop()))).collect());

        let pool = Pool::new(build, PoolOptions::default());
        pool.fill();
        let cycle = |work: &dyn Fn(&Home<TestRealm>)| {
            let lease = pool.take(64 * MIB).expect("a home");
            lease.arm(limited(64));
            work(&lease);
            pool.give_back(lease);
        };
        let many = |n: usize, work: &dyn Fn(&Home<TestRealm>)| -> Vec<f64> {
            (0..n).map(|_| timed(&mut || cycle(work))).collect()
        };
        show("take, arm, give back", many(20_000, &|_| ()));
        show("take, arm, run `1 + 1`, give back", many(20_000, &|home| drop(run(home, "1 + 1"))));
        let one = "const a = []; for (let i = 0; i < 8000; i++) a.push({ i, s: i })";
        show("... with 1 MB of objects", many(500, &|home| drop(run(home, one))));
        let fifty = "const a = []; for (let i = 0; i < 360000; i++) a.push({ i, s: i })";
        let mut restores = Vec::new();
        for _ in 0..15 {
            let home = slot();
            home.arm(limited(200));
            run(&home, fifty);
            let mut home = Some(home);
            restores.push(timed(&mut || home = home.take().and_then(Home::finish)));
        }
        show("restore after 50 MB of objects", restores);
        let home = slot();
        for loops in
            ["for (let i = 0; i < 2e7; i++);", "let f = () => 1; for (let i = 0; i < 5e6; i++) f()"]
        {
            let mut samples = Vec::new();
            for _ in 0..7 {
                home.arm(limited(64));
                samples.push(timed(&mut || drop(run(&home, &format!("{{ {loops} }}")))));
            }
            show(loops, samples);
        }
    }
}
