use isolane::*;
fn main() {
    let exe = std::env::current_exe().unwrap();
    let worker = exe.parent().unwrap().parent().unwrap().join("isolane-worker");
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(worker.clone()),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(&options).expect("a runtime");
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let t = std::time::Instant::now();
    for _ in 0..n {
        runtime.run_code("export default 1 + 1", ExecutionOptions::default()).wait().expect("ran");
    }
    println!("{:?}", t.elapsed() / n);
}
