//! Costs of the isolate's steps, printed for developers who change them.
#![expect(unsafe_code, reason = "makes an engine with nothing of ours")]

use super::{
    engine::sys as qjs,
    memory::{
        instance::Instance,
        pool::{Pool, PoolOptions},
        test_realm::{TestRealm, build, run},
        tests::{MIB, limited, slot},
    },
};
use std::time::Instant;

/// The engine without our additions: makes a runtime and a context, evaluates `1+1`, frees both.
pub(crate) fn engine_alone() {
    let source = c"1+1";
    // SAFETY: everything made here is freed here, on one thread.
    unsafe {
        let runtime = qjs::JS_NewRuntime();
        let context = qjs::JS_NewContext(runtime);
        let length = source.count_bytes() as qjs::size_t;
        let value = qjs::JS_Eval(context, source.as_ptr(), length, c"alone".as_ptr(), 0);
        assert_eq!(qjs::JS_VALUE_GET_INT(value), 2);
        qjs::JS_FreeContext(context);
        qjs::JS_FreeRuntime(runtime);
    }
}

/// Not a test: prints the costs. `cargo test --release --lib isolate::cost -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn cost() {
    fn resident_kib() -> usize {
        let status =
            std::fs::read_to_string("/proc/self/status").expect("the process's own status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
        let number = line.split_whitespace().nth(1).expect("a number");
        number.parse().expect("a number")
    }
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
        let before = resident_kib();
        show("make a slot", (0..200).map(|_| timed(&mut || keep.push(slot()))).collect());
        println!("parked slot {} KiB", (resident_kib() - before) / keep.len());
        println!("image {} bytes", keep[0].slot().expect("a slot").image_bytes());
        show("drop a slot", (0..200).map(|_| timed(&mut || drop(keep.pop()))).collect());
        let plain = || Instance::plain(build).expect("a plain instance");
        let before = resident_kib();
        show(
            "make a plain instance",
            (0..200).map(|_| timed(&mut || keep.push(plain()))).collect(),
        );
        println!(
            "parked plain instance {} KiB",
            resident_kib().saturating_sub(before) / keep.len()
        );
        show("drop a plain instance", (0..200).map(|_| timed(&mut || drop(keep.pop()))).collect());

        let pool = Pool::new(build, PoolOptions::default());
        pool.fill(|| false);
        let cycle = |work: &dyn Fn(&Instance<TestRealm>)| {
            let lease = pool.take(64 * MIB, false).expect("a instance");
            lease.arm(limited(64));
            work(&lease);
            pool.give_back(lease);
        };
        let many = |n: usize, work: &dyn Fn(&Instance<TestRealm>)| -> Vec<f64> {
            (0..n).map(|_| timed(&mut || cycle(work))).collect()
        };
        show("take, arm, give back", many(20_000, &|_| ()));
        show(
            "take, arm, run `1 + 1`, give back",
            many(20_000, &|instance| drop(run(instance, "1 + 1"))),
        );
        for threads in [1, 2] {
            let (cycles, started) = (40_000 / threads, Instant::now());
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        (0..cycles).for_each(|_| cycle(&|instance| drop(run(instance, "1 + 1"))));
                    });
                }
            });
            let seconds = started.elapsed().as_secs_f64();
            println!("{threads} thread(s): {:.0} runs of `1 + 1` a second", 4e4 / seconds);
        }
        for (what, objects) in [("1 MB", 8_000), ("3 MB", 24_000), ("50 MB", 360_000)] {
            let source =
                format!("const a = []; for (let i = 0; i < {objects}; i++) a.push({{ i, s: i }})");
            let (mut runs, mut restores) = (Vec::new(), Vec::new());
            let (mut plain_runs, mut plain_drops) = (Vec::new(), Vec::new());
            let mut instance = Some(slot());
            for _ in 0..(4_000_000 / objects).clamp(15, 300) {
                let in_slot = instance.as_ref().expect("a slot");
                in_slot.arm(limited(200));
                runs.push(timed(&mut || drop(run(in_slot, &source))));
                restores.push(timed(&mut || instance = instance.take().and_then(Instance::finish)));
                let mut plain = Some(plain());
                plain.as_ref().expect("a plain instance").arm(limited(200));
                plain_runs.push(timed(&mut || drop(run(plain.as_ref().expect("one"), &source))));
                plain_drops.push(timed(&mut || drop(plain.take())));
            }
            show(&format!("{what} of objects in a slot"), runs);
            show(&format!("{what} of objects in a slot: restore"), restores);
            show(&format!("{what} of objects in a plain instance"), plain_runs);
            show(&format!("{what} of objects in a plain instance: drop"), plain_drops);
        }
        let instance = slot();
        for loops in
            ["for (let i = 0; i < 2e7; i++);", "let f = () => 1; for (let i = 0; i < 5e6; i++) f()"]
        {
            let mut samples = Vec::new();
            for _ in 0..7 {
                instance.arm(limited(64));
                samples.push(timed(&mut || drop(run(&instance, &format!("{{ {loops} }}")))));
            }
            show(loops, samples);
        }
    }
}
