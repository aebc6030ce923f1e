//! First steps.
use isolane::*;
#[test]
fn smoke() {
    let options = RuntimeOptions {
        isolation: Isolation::Process,
        worker: Some(env!("CARGO_BIN_EXE_isolane-worker").into()),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(&options).expect("a runtime");
    for k in 0..5 {
        let started = std::time::Instant::now();
        let result = runtime
            .run_code(
                "console.log('hi'); export default [1 + 1, Math.random(), new Date(0).toString()]",
                ExecutionOptions::default(),
            )
            .wait();
        eprintln!("{k}: {:?} {:?}", started.elapsed(), result);
    }
    let globals =
        Inputs::new().with("add", HostFunction::new(|a: i32, b: i32| Ok::<_, HostError>(a + b)));
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let result = runtime
        .run_code(
            "let s = 0; for (let i = 0; i < 1000; i++) s = add(s, i); export default s",
            options,
        )
        .wait();
    eprintln!("{result:?}");
    eprintln!("{:?}", runtime.stats());
    let run = runtime.run_code("while (true);", ExecutionOptions::default());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let started = std::time::Instant::now();
    run.terminate(Some("x"));
    eprintln!("{:?} {:?}", run.wait(), started.elapsed());
    let run = runtime
        .run_code("Array.prototype.reverse.call({ length: 2 ** 53 })", ExecutionOptions::default());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let started = std::time::Instant::now();
    run.terminate(Some("x"));
    eprintln!("{:?} {:?}", run.wait(), started.elapsed());
    eprintln!("{:?}", runtime.stats());
}
