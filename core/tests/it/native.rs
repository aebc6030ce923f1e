//! Host functions that are answered in Rust. Also run in processes, as `place` says.

use std::{
    future::pending,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Completion, ExecutionOptions, ExecutionResult, HostError, HostFunction, Inputs, NativeAnswer,
    NativeCall, NativeFunction, NativeFunctions, NativeMode, Report, Request, Runtime, Status,
    Value,
};

use crate::place;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

/// A generous bound for events that happen at once.
const CEILING: Duration = Duration::from_mins(2);

/// A native function made of a closure.
struct Of<F>(NativeMode, F);

impl<F: Fn(NativeCall) -> NativeAnswer + Send + Sync + 'static> NativeFunction for Of<F> {
    fn name(&self) -> &'static str {
        "tested"
    }

    fn mode(&self) -> NativeMode {
        self.0
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        (self.1)(call)
    }
}

fn native(
    mode: NativeMode,
    body: impl Fn(NativeCall) -> NativeAnswer + Send + Sync + 'static,
) -> HostFunction {
    HostFunction::native(Arc::new(Of(mode, body)))
}

#[expect(clippy::unnecessary_wraps, reason = "a native function answers with a `Completion`")]
fn value(value: impl serde::Serialize) -> Completion {
    Ok(Value::serialize(&value).expect("a value"))
}

/// The sum of the arguments.
fn sum(call: &NativeCall) -> Completion {
    value(call.arguments::<Vec<f64>>()?.iter().fold(0.0, |sum, n| sum + n))
}

fn run(source: &str, globals: Inputs) -> ExecutionResult {
    RUNTIME
        .run_code(source, ExecutionOptions { globals, ..Default::default() })
        .wait()
        .expect("a run")
}

fn result(source: &str, globals: Inputs) -> serde_json::Value {
    let result = run(source, globals);
    result.into_value().expect("a success").deserialize().expect("data")
}

#[test]
fn it_answers_synchronously_and_with_promises() {
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let globals = Inputs::new().with("add", native(mode, |call| sum(&call).into()));
        let source =
            "export default [add(1, 2) instanceof Promise, await add(1, 2), add.name, await add()]";
        let is_promise = mode == NativeMode::Async;
        assert_eq!(result(source, globals), serde_json::json!([is_promise, 3, "add", 0]));
    }
    let later = |call: NativeCall| NativeAnswer::later(async move { sum(&call) });
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let globals = Inputs::new().with("add", native(mode, later));
        let source = "const p = add(1, 2); export default [p instanceof Promise, await p]";
        assert_eq!(result(source, globals), serde_json::json!([true, 3]));
    }
    let blocking = |call: NativeCall| NativeAnswer::blocking(move || sum(&call));
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let globals = Inputs::new().with("add", native(mode, blocking));
        let source = "const p = add(1, 2); export default [p instanceof Promise, await p]";
        let is_promise = mode == NativeMode::Async;
        assert_eq!(result(source, globals), serde_json::json!([is_promise, 3]));
    }
}

#[test]
fn many_calls_are_answered_each_with_its_own() {
    let later = |call: NativeCall| {
        NativeAnswer::later(async move {
            tokio::task::yield_now().await;
            sum(&call)
        })
    };
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let globals = Inputs::new().with("add", native(mode, later));
        let source =
            "const all = await Promise.all(Array.from({ length: 1000 }, (_, i) => add(i, 1)));
                      export default all.every((sum, i) => sum === i + 1)";
        assert_eq!(result(source, globals), serde_json::json!(true));
    }
}

#[test]
fn it_stands_beside_the_callers_own_functions() {
    let own = HostFunction::future(|n: f64| async move { n * 2.0 });
    let globals = Inputs::new().with("own", own).with(
        "add",
        native(NativeMode::Async, |call| NativeAnswer::later(async move { sum(&call) })),
    );
    let source = "export default await Promise.all([own(1), add(1, 2), own(4), add(3, 4)])";
    assert_eq!(result(source, globals), serde_json::json!([2, 3, 8, 7]));
}

#[test]
fn it_comes_back_as_itself_and_crosses_inside_of_answers() {
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let add = native(mode, |call| sum(&call).into());
        let known = add.clone();
        let globals = Inputs::new()
            .with("add", add.clone())
            .with("is", HostFunction::new(move |other: HostFunction| other == known))
            .with("give", HostFunction::new(move || add.clone()));
        let source = "export default [is(add), give() === add, await give()(20, 22)]";
        assert_eq!(result(source, globals), serde_json::json!([true, true, 42]));
    }
}

#[test]
fn errors_and_panics_are_thrown_inside() {
    let fail = native(NativeMode::Sync, |_| {
        let error = HostError::new("FetchBlocked", "'x.org' is not allowed").with_code("E");
        Err(error.to_value()).into()
    });
    let globals = Inputs::new()
        .with("fail", fail)
        .with(
            "typed",
            native(NativeMode::Sync, |call| {
                call.arguments::<(u8,)>().map(|_| Value::undefined()).into()
            }),
        )
        .with("panics", native(NativeMode::Sync, |_| panic!("a test")))
        .with("works", native(NativeMode::Sync, |_| NativeAnswer::blocking(|| panic!("a test"))))
        .with(
            "later",
            native(NativeMode::Async, |_| NativeAnswer::later(async { panic!("a test") })),
        );
    let source = "const seen = [];
        for (const f of [fail, () => typed('text'), panics, works, later]) {
          try { await f() } catch (e) { seen.push([e.name, e.code ?? null, e.message.length > 0]) }
        }
        export default seen";
    let expected = serde_json::json!([
        ["FetchBlocked", "E", true],
        ["TypeError", null, true],
        ["Error", null, true],
        ["Error", null, true],
        ["Error", null, true],
    ]);
    assert_eq!(result(source, globals), expected);
}

/// Notifies a test when it is dropped.
struct Dropped(Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn told(receiver: &Receiver<()>) {
    receiver.recv_timeout(CEILING).expect("it is told");
}

#[test]
fn futures_are_dropped_when_their_run_ends() {
    for mode in [NativeMode::Sync, NativeMode::Async] {
        let (sender, dropped) = channel();
        let (entered, enters) = channel();
        let sender = Mutex::new((sender, entered));
        let forever = native(mode, move |_| {
            let (sender, entered) = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
            NativeAnswer::later(async move {
                let _guard = Dropped(sender);
                let _ = entered.send(());
                pending().await
            })
        });
        let options = ExecutionOptions {
            globals: Inputs::new().with("forever", forever),
            ..Default::default()
        };
        let run = RUNTIME.run_code("export default await forever()", options);
        told(&enters);
        run.terminate(None);
        assert_eq!(run.wait().expect("a run").status, Status::Terminated);
        told(&dropped);
    }
}

#[test]
fn a_blocking_call_is_interrupted_by_its_hook_and_holds_up_nobody() {
    let (entered, enters) = channel();
    let (left, leaves) = channel();
    let channels = Mutex::new((entered, left));
    let blocks = native(NativeMode::Sync, move |call| {
        let (entered, left) = channels.lock().unwrap_or_else(PoisonError::into_inner).clone();
        NativeAnswer::blocking(move || {
            let (interrupt, interrupted) = channel();
            let hook = call.run.on_end(move || {
                let _ = interrupt.send(());
            });
            let _ = entered.send(());
            let ended = interrupted.recv_timeout(CEILING);
            drop(hook);
            if ended.is_ok() && call.run.is_over() {
                let _ = left.send(());
            }
            value(1)
        })
    });
    let options =
        ExecutionOptions { globals: Inputs::new().with("blocks", blocks), ..Default::default() };
    let run_that_blocks = RUNTIME.run_code("export default blocks()", options);
    told(&enters);
    assert_eq!(result("export default 1 + 1", Inputs::new()), serde_json::json!(2));
    let asked = Instant::now();
    run_that_blocks.terminate(None);
    assert_eq!(run_that_blocks.wait().expect("a run").status, Status::Terminated);
    assert!(asked.elapsed() < CEILING / 2);
    told(&leaves);
}

#[test]
fn hooks_run_once_at_the_end_and_not_when_dropped() {
    let count = Arc::new(AtomicUsize::new(0));
    let hooks = Arc::new(Mutex::new(Vec::new()));
    let (counted, kept) = (Arc::clone(&count), Arc::clone(&hooks));
    let hooked = native(NativeMode::Sync, move |call| {
        let add = |n: usize| {
            let count = Arc::clone(&counted);
            call.run.on_end(move || {
                count.fetch_add(n, Ordering::SeqCst);
            })
        };
        drop(add(100));
        kept.lock().unwrap_or_else(PoisonError::into_inner).push((add(1), call.run.clone()));
        value(()).into()
    });
    let globals = Inputs::new().with("hooked", hooked);
    run("hooked(); hooked()", globals);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let kept = hooks.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, over) = kept.first().expect("two");
    assert!(over.is_over());
    let count_after = Arc::clone(&count);
    let _late = over.on_end(move || {
        count_after.fetch_add(10, Ordering::SeqCst);
    });
    assert_eq!(count.load(Ordering::SeqCst), 12);
}

#[test]
fn bytes_held_for_a_run_count_against_its_limit() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&held);
    let hold = native(NativeMode::Async, move |call| {
        let (bytes,) = match call.arguments::<(usize,)>() {
            Ok(bytes) => bytes,
            Err(error) => return Err(error).into(),
        };
        let charge = call.run.charge(bytes);
        let room = charge.is_some();
        keep.lock().unwrap_or_else(PoisonError::into_inner).extend(charge);
        value(room).into()
    });
    let limited = |source: &str| {
        let options = ExecutionOptions {
            globals: Inputs::new().with("hold", hold.clone()),
            memory_limit_bytes: Some(32 << 20),
            ..Default::default()
        };
        let result = RUNTIME.run_code(source, options).wait().expect("a run");
        held.lock().unwrap_or_else(PoisonError::into_inner).clear();
        result
    };
    let little = limited("export default [await hold(1 << 20), await hold(1 << 20)]");
    assert_eq!(little.status, Status::Success);
    assert!(little.memory_used_bytes.is_some_and(|bytes| bytes >= 2 << 20), "{little:?}");
    let much = limited("await hold(20 << 20); await hold(20 << 20); await new Promise(() => {})");
    assert_eq!((much.status, much.memory_used_bytes), (Status::Memory, Some(32 << 20)));
    let at_once = limited("await hold(1e12); export default await new Promise(() => {})");
    assert_eq!((at_once.status, at_once.memory_used_bytes), (Status::Memory, Some(32 << 20)));
}

#[test]
fn each_call_is_reported_to_an_observer_by_name() {
    /// The caller's host, which has nothing to do.
    struct Nobody(Sender<()>);

    impl isolane::Host for Nobody {
        fn call(&self, _: u32, _: Value, call: isolane::HostCall) {
            call.reply(Ok(Value::undefined()));
        }

        fn function_settled(&self, _: u32, _: Completion) {}

        fn promise_settled(&self, _: u32, _: Completion) {}

        fn settled(&self) {
            let _ = self.0.send(());
        }
    }

    let functions = NativeFunctions::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    functions.observe(move |record| {
        let told =
            (record.name.to_owned(), record.ok, record.input_bytes > 0 && record.output_bytes > 0);
        log.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        panic!("a bug of the observer's");
    });
    let add: Arc<dyn NativeFunction> = Arc::new(Of(NativeMode::Sync, |call| sum(&call).into()));
    let fail: Arc<dyn NativeFunction> = Arc::new(Of(NativeMode::Async, |_| {
        NativeAnswer::later(async { Err(HostError::new("Error", "no").to_value()) })
    }));
    let mut writer = isolane::value::Writer::new();
    writer.array(3);
    for function in [&add, &fail] {
        writer.host_function(functions.number(function));
        writer.string("f");
    }
    writer.array(0);
    let source = "add(1, 2); await fail().catch(() => {}); export default 1".to_owned();
    let request = Request {
        globals: vec!["add".to_owned(), "fail".to_owned()],
        inputs: writer.finish(),
        native: functions.clone(),
        ..Request::new(source.into())
    };
    let (sender, settled) = channel();
    let handle = RUNTIME.start(request, Arc::new(Nobody(sender))).expect("a run");
    told(&settled);
    assert_eq!(handle.take_result().expect("a result").status, Status::Success);
    let told = seen.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*told, [("tested".to_owned(), true, true), ("tested".to_owned(), false, true)]);
}

#[test]
fn it_is_no_sink_for_reports() {
    let options = ExecutionOptions {
        report: Report::To(native(NativeMode::Sync, |_| value(1).into())),
        ..Default::default()
    };
    let error = RUNTIME.run_code("report(1)", options).wait().expect_err("misuse");
    assert!(error.to_string().contains("native"), "{error}");
}

#[test]
fn runs_have_numbers_of_their_own() {
    let numbers = native(NativeMode::Sync, |call| value(call.run.number()).into());
    let runs: Vec<_> = (0..4)
        .map(|_| {
            let globals = Inputs::new().with("number", numbers.clone());
            thread::spawn(move || result("export default [number(), number()]", globals))
        })
        .collect();
    let mut seen: Vec<_> = runs.into_iter().map(|run| run.join().expect("a run")).collect();
    assert!(seen.iter().all(|pair| pair[0] == pair[1]));
    seen.sort_by_key(std::string::ToString::to_string);
    seen.dedup();
    assert_eq!(seen.len(), 4);
}
