use isolane::{value::*, *};
use std::sync::Arc;
struct H;
impl Host for H {
    fn call(&self, _f: u32, _args: Value, call: HostCall) {
        let mut w = Writer::new();
        w.int(42);
        call.reply(Ok(w.finish()));
    }
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {}
}
fn run(src: &str, globals: Vec<String>, inputs: Value) -> ExecutionResult {
    let r = Runtime::shared()
        .start(
            Request {
                source: src.to_owned().into(),
                filename: None,
                language: Language::TypeScript,
                function: None,
                modules: vec![],
                globals,
                imports: vec![],
                inputs,
                report: false,
                memory_limit_bytes: None,
                spelling: Spelling::Camel,
            },
            Arc::new(H),
        )
        .unwrap();
    while r.running() {
        std::hint::spin_loop();
    }
    r.take_result().unwrap()
}
#[test]
fn smoke() {
    let none = || {
        let mut w = Writer::new();
        w.array(1);
        w.array(0);
        w.finish()
    };
    let mut v = vec![];
    for _ in 0..5000 {
        let t = std::time::Instant::now();
        run("export default 1+1", vec![], none());
        v.push(t.elapsed().as_nanos() as f64 / 1e3);
    }
    v.sort_by(f64::total_cmp);
    println!("p50 {} p90 {} p99 {}", v[2500], v[4500], v[4950]);
    let mut w = Writer::new();
    w.array(2);
    w.host_function(7);
    w.string("add");
    w.array(0);
    let t = std::time::Instant::now();
    run(
        "let s = 0; for (let i = 0; i < 100000; i++) s += add(i, 1); export default s",
        vec!["add".into()],
        w.finish(),
    );
    println!("sync call {} us", t.elapsed().as_nanos() as f64 / 1e3 / 1e5);
    println!("{:?}", Runtime::shared().stats());
    let t = std::time::Instant::now();
    let n = 20000;
    let ts: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..n / 16 {
                    run("export default 1+1", vec![], {
                        let mut w = Writer::new();
                        w.array(1);
                        w.array(0);
                        w.finish()
                    });
                }
            })
        })
        .collect();
    for t in ts {
        t.join().unwrap()
    }
    println!("16 lanes: {} runs/s", n as f64 / t.elapsed().as_secs_f64());
    println!("{:?}", Runtime::shared().stats());
}
