use isolane::*;
use std::time::{Duration, Instant};
fn main() {
    let exe = std::env::current_exe().unwrap();
    let worker = exe.parent().unwrap().parent().unwrap().join("isolane-worker");
    let t = Instant::now();
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(worker.clone()),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(&options).expect("a runtime");
    let one = |runtime: &Runtime| {
        runtime.run_code("export default 1 + 1", ExecutionOptions::default()).wait().expect("ran")
    };
    let r = one(&runtime);
    println!("cold {:?} {:?}", t.elapsed(), r.status);
    let inproc = Runtime::shared();
    for (name, rt) in [("thread", &inproc), ("process", &runtime)] {
        for gap in [0u64, 300, 3000] {
            let mut v = vec![];
            for _ in 0..300 {
                std::thread::sleep(Duration::from_micros(gap));
                let t = Instant::now();
                one(rt);
                v.push(t.elapsed());
            }
            v.sort();
            println!("{name} gap {gap}us p50 {:?} p95 {:?}", v[150], v[285]);
        }
        let t = Instant::now();
        let n = 4000;
        let at = 16;
        std::thread::scope(|s| {
            for _ in 0..at {
                s.spawn(|| {
                    for _ in 0..n / at {
                        one(rt);
                    }
                });
            }
        });
        println!("{name} 16 at once: {:.0} runs/s", f64::from(n) / t.elapsed().as_secs_f64());
        let globals = Inputs::new()
            .with("add", HostFunction::new(|a: i32, b: i32| Ok::<_, HostError>(a + b)));
        let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
        let t = Instant::now();
        rt.run_code(
            "let s = 0; for (let i = 0; i < 10000; i++) s = add(s, 1); export default s",
            options,
        )
        .wait()
        .unwrap();
        println!("{name} sync call {:?}", t.elapsed() / 10000);
        for size in [1usize << 20, 10 << 20] {
            let bytes = vec![7u8; size];
            let mut v = vec![];
            for _ in 0..10 {
                let execute = Execute::function("default").arg(serde_bytes(&bytes));
                let t = Instant::now();
                let r = rt
                    .run_code(
                        "export default x => x",
                        ExecutionOptions { execute, ..Default::default() },
                    )
                    .wait()
                    .unwrap();
                assert_eq!(r.status, Status::Success);
                v.push(t.elapsed());
            }
            v.sort();
            println!("{name} bytes {size} {:?}", v[5]);
        }
    }
    println!("{:?}", runtime.stats());
}
fn serde_bytes(b: &[u8]) -> Vec<String> {
    vec![String::from_utf8(vec![b'a'; b.len()]).unwrap()]
}
