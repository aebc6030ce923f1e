use isolane::{value::*, *};
use std::sync::{Arc, mpsc};
struct H {
    tx: mpsc::Sender<()>,
}
impl Host for H {
    fn call(&self, f: u32, args: Value, call: HostCall) {
        println!("call {f} {:?}", args.nodes());
        let mut w = Writer::new();
        w.int(42);
        call.reply(Ok(w.finish()));
    }
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {
        let _ = self.tx.send(());
    }
}
fn run(src: &str) -> ExecutionResult {
    run_with(src, vec![], {
        let mut w = Writer::new();
        w.array(1);
        w.array(0);
        w.finish()
    })
}
fn run_with(src: &str, globals: Vec<String>, inputs: Value) -> ExecutionResult {
    let (tx, rx) = mpsc::channel();
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
            Arc::new(H { tx }),
        )
        .unwrap();
    rx.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    r.take_result().unwrap()
}
#[test]
fn smoke() {
    for s in [
        "export default 1+1",
        "export default (a: number) => ({ a: [1,2,{b:3n}], m: new Map([[1,new Set([2])]]), d: new Date(5), r: /x/g })",
        "throw new TypeError('boom')",
        "export const x = 1",
        "import 'fs'",
        "let x = ;",
        "console.log('hi', {a:1}); await 0; export default await Promise.resolve(5)",
        "Promise.reject(new Error('un')); queueMicrotask(() => { throw 5 }); export default 1",
        "export default new Proxy({}, {})",
        "\nfunction f(): never { null.x }\nf()",
        "const a = []; for(;;) a.push(new Array(1000).fill(1))",
        "export default structuredClone({a: new Uint8Array([1,2])})",
        "export default -(2n**70n)",
        "await new Promise(() => {})",
        "export default Object.getOwnPropertyNames(globalThis)",
    ] {
        let r = run(s);
        println!(
            "{s}\n   -> {:?} {:?} {:?} logs {:?} {:.3}ms {:?}",
            r.status,
            r.result.as_ref().map(|v| v.nodes().to_vec()),
            r.error,
            r.logs,
            r.duration_ms,
            r.memory_used_bytes
        );
    }
    let mut w = Writer::new();
    w.array(2);
    w.host_function(7);
    w.string("add");
    w.array(0);
    let r = run_with(
        "export default add(1, 'x') + add.name + add.length",
        vec!["add".into()],
        w.finish(),
    );
    println!("{r:?}");
    let mut v = vec![];
    for _ in 0..2000 {
        let t = std::time::Instant::now();
        run("export default 1+1");
        v.push(t.elapsed().as_nanos() as f64 / 1e3);
    }
    v.sort_by(f64::total_cmp);
    println!("p50 {} p90 {} p99 {}", v[1000], v[1800], v[1980]);
    println!("{:?}", Runtime::shared().stats());
}
#[test]
fn big_literals() {
    let a = format!(
        "export default [{}].length",
        (0..100_000).map(|i| i.to_string()).collect::<Vec<_>>().join(",")
    );
    let o = format!(
        "export default Object.keys({{{}}}).length",
        (0..50_000).map(|i| format!("k{i}: {{a: {i}, b: 'x{i}'}}")).collect::<Vec<_>>().join(",")
    );
    let f = (0..5000)
        .map(|i| format!("function f{i}(a) {{ return a + {i}; }}\nconst v{i} = f{i}({i})"))
        .collect::<Vec<_>>()
        .join("\n")
        + "\nexport default v4999";
    let c = format!(
        "export default [{}].join('').length",
        (0..20_000).map(|i| format!("'a' + {i}")).collect::<Vec<_>>().join(",")
    );
    let d = format!(
        "export default {}",
        (0..10_000).map(|i| format!("'line {i}'")).collect::<Vec<_>>().join(" + ")
    );
    for s in [a, o, f, c, d] {
        let t = std::time::Instant::now();
        let r = run(&s);
        println!(
            "{} bytes {:?} {:?} {:?} {:?}",
            s.len(),
            r.status,
            r.result.map(|v| v.nodes().len()),
            r.error,
            t.elapsed()
        );
    }
}
