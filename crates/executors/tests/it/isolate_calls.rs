//! Calls of the executor of isolates that no table can hold: live output, ends from outside, hostile code, lost state.
//! Built as a test of `isolane-worker` it runs them in processes.

use std::{
    sync::{Arc, LazyLock, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use futures::{executor::block_on, future::join_all};
use isolane::{
    CellOptions, HostFunction, Inputs, Isolation, Report, Runtime, RuntimeOptions, SessionOptions,
};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecFile, ExecutorErrorKind,
    InvocationContext, IsolateCodeExecutor,
};

use crate::place;

const CEILING: Duration = Duration::from_mins(2);
const MIB: usize = 1 << 20;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| runtime(None));

fn runtime(safety_cap_ms: Option<u64>) -> Runtime {
    let options = RuntimeOptions { safety_cap_ms, ..place::options() };
    Runtime::new(&options).expect("valid options")
}

fn executor() -> IsolateCodeExecutor {
    IsolateCodeExecutor::new().with_runtime(RUNTIME.clone()).with_timeout(CEILING)
}

fn input(id: &str, code: &str) -> CodeExecutionInput {
    CodeExecutionInput { execution_id: Some(id.to_owned()), ..CodeExecutionInput::new(code) }
}

fn run(executor: &IsolateCodeExecutor, code: &str) -> CodeExecutionResult {
    run_in(executor, "a", code)
}

fn run_in(executor: &IsolateCodeExecutor, id: &str, code: &str) -> CodeExecutionResult {
    let context = InvocationContext::default();
    block_on(executor.execute_code(&context, input(id, code))).expect("the code starts")
}

fn kind(executor: &IsolateCodeExecutor, input: CodeExecutionInput) -> ExecutorErrorKind {
    let ended = block_on(executor.execute_code(&InvocationContext::default(), input));
    ended.expect_err("the code does not start").kind()
}

/// A context that cancels its call when the code prints for the first time, and a receiver of that moment.
fn cancelled_by_output() -> (InvocationContext, mpsc::Receiver<Instant>) {
    let (sender, receiver) = mpsc::channel();
    let context = InvocationContext::default();
    let cancellation = context.cancellation.clone();
    let context = context.with_stdout(move |_| {
        // Later output finds nobody who listens.
        let _ = sender.send(Instant::now());
        cancellation.cancel();
    });
    (context, receiver)
}

#[test]
fn output_is_live_and_cancelling_ends_the_call() {
    let (context, receiver) = cancelled_by_output();
    let code = "console.log('started'); for (;;);";
    let ended = block_on(executor().execute_code(&context, CodeExecutionInput::new(code)));
    assert_eq!(ended.expect_err("it was cancelled").kind(), ExecutorErrorKind::Cancelled);
    let cancelled = receiver.recv_timeout(CEILING).expect("output while the code runs");
    assert!(cancelled.elapsed() < CEILING);
    let ended = block_on(executor().execute_code(&context, CodeExecutionInput::new("1")));
    assert_eq!(ended.expect_err("it is cancelled still").kind(), ExecutorErrorKind::Cancelled);
}

#[test]
fn live_output_is_what_the_result_has() {
    let seen = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
    let sink = |stream: usize| {
        let seen = Arc::clone(&seen);
        move |bytes: &[u8]| seen.lock().expect("no panic")[stream].extend_from_slice(bytes)
    };
    let context = InvocationContext::default().with_stdout(sink(0)).with_stderr(sink(1));
    let code = "console.log('ä', [1]); console.warn('w'); console.log(); throw new Error('x')";
    let result = block_on(executor().execute_code(&context, CodeExecutionInput::new(code)));
    let result = result.expect("the code starts");
    assert_eq!(result.stdout, "ä [ 1 ]\n\n");
    let [stdout, stderr] = seen.lock().expect("no panic").clone();
    assert_eq!(stdout, result.stdout.as_bytes());
    assert_eq!(stderr, result.stderr.as_bytes());
}

/// Whether a call was undone. On a busy machine its thread may come too late to undo it, which costs the session: then
/// there is another call.
fn is_undone(call: impl Fn() -> CodeExecutionResult) {
    let mut said = String::new();
    for _ in 0..20 {
        let result = call();
        if !result.stderr.contains("was gone") {
            return assert_eq!(result.stdout, "3\n", "{}", result.stderr);
        }
        said = result.stderr;
    }
    panic!("{said}");
}

#[test]
fn a_cancelled_call_is_undone_in_its_session() {
    let executor = executor().with_stateful(true);
    is_undone(|| {
        run(&executor, "let rows = [1, 2, 3];");
        let (context, _receiver) = cancelled_by_output();
        let code = "rows.length = 0; console.log('started'); for (;;);";
        let ended = block_on(executor.execute_code(&context, input("a", code)));
        assert_eq!(ended.expect_err("it was cancelled").kind(), ExecutorErrorKind::Cancelled);
        run(&executor, "rows.length")
    });
}

#[test]
fn a_call_ends_when_its_future_is_dropped() {
    let executor = executor().with_stateful(true);
    is_undone(|| {
        run(&executor, "let rows = [1, 2, 3];");
        let (sender, receiver) = mpsc::channel();
        let context = InvocationContext::default().with_stdout(move |_| {
            let _ = sender.send(());
        });
        let code = "rows = []; console.log('on'); for (;;);";
        let mut call = executor.execute_code(&context, input("a", code));
        let waker = futures::task::noop_waker();
        let mut task = std::task::Context::from_waker(&waker);
        assert!(call.as_mut().poll(&mut task).is_pending());
        receiver.recv_timeout(CEILING).expect("the code runs");
        drop(call);
        run(&executor, "rows.length")
    });
}

#[test]
fn calls_of_one_session_wait_for_each_other_and_share_no_output() {
    let executor = executor().with_stateful(true);
    run(&executor, "import * as files from 'files'; let count = 0;");
    let contexts: Vec<_> = (0..20).map(|_| InvocationContext::default()).collect();
    let calls = contexts.iter().enumerate().map(|(number, context)| {
        let code = format!("files.write('f{number}', ''); console.log({number}); count += 1");
        let executor = executor.clone();
        async move { executor.execute_code(context, input("a", &code)).await.expect("it starts") }
    });
    for (number, result) in block_on(join_all(calls)).iter().enumerate() {
        assert_eq!(result.stdout, format!("{number}\n{}\n", number + 1));
        let names: Vec<_> = result.output_files.iter().map(|file| file.name.clone()).collect();
        assert_eq!(names, [format!("f{number}")]);
    }
}

#[test]
fn sessions_are_apart_and_closing_forgets_them() {
    let executor = executor().with_stateful(true);
    run_in(&executor, "a", "const x = 'a'");
    run_in(&executor, "b", "const x = 'b'");
    assert_eq!(run_in(&executor, "a", "x").stdout, "a\n");
    let without_id = CodeExecutionInput::new("typeof x");
    let context = InvocationContext::default();
    let result = block_on(executor.execute_code(&context, without_id)).expect("it starts");
    assert_eq!(result.stdout, "undefined\n");
    block_on(executor.close());
    let result = run_in(&executor, "a", "typeof x");
    assert_eq!(result.stdout, "undefined\n");
    assert_eq!(result.stderr, "isolane: the session \"a\" was gone; this call began a new one\n");
    assert_eq!(run_in(&executor, "a", "1").stderr, "");
}

#[test]
fn the_hundred_and_first_session_takes_the_place_of_the_oldest() {
    let executor = executor().with_stateful(true);
    for number in 0..101 {
        run_in(&executor, &number.to_string(), "const x = 1");
    }
    assert_eq!(run_in(&executor, "1", "x").stdout, "1\n");
    let result = run_in(&executor, "0", "typeof x");
    assert_eq!(result.stdout, "undefined\n");
    assert!(result.stderr.contains("\"0\" was gone"), "{}", result.stderr);
}

#[test]
fn a_flood_of_logs_is_cut_and_ends_within_its_memory() {
    let executor = executor().with_memory_limit_bytes(32 << 20);
    let result = run(&executor, "for (let i = 0; ; i++) console.log(i, 'x'.repeat(1000));");
    assert_eq!(result.exit_code, Some(137));
    assert!(result.stdout.len() < MIB + 100, "{}", result.stdout.len());
    assert!(result.stdout.starts_with("0 xxx") && result.stdout.contains(" bytes left out ...\n"));
}

/// The text of each log is twenty times as long as its message.
const LOGS_MUCH: &str = "const o = Array(1000).fill('xxxxxxxxxxxx');
    for (;;) console.log(o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o);";

#[test]
fn code_that_logs_much_ends() {
    let mut limit = Duration::from_secs(1);
    loop {
        let result = run(&executor().with_timeout(limit), LOGS_MUCH);
        // Its time ends it, or its memory where the machine is slow in taking the logs.
        assert!(matches!(result.exit_code, None | Some(137)), "{}", result.stderr);
        if result.stdout.contains(" bytes left out ...") {
            return;
        }
        assert!(limit < CEILING, "it logs little");
        limit *= 4;
    }
}

#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn code_that_logs_much_ends_in_time() {
    let code = LOGS_MUCH;
    let session = RUNTIME.session(SessionOptions::default()).expect("valid options");
    let started = Instant::now();
    let options = CellOptions { timeout_ms: Some(1000), ..CellOptions::default() };
    block_on(session.run(code, options)).expect("the code starts");
    let without_text = started.elapsed();
    let started = Instant::now();
    let result = run(&executor().with_timeout(Duration::from_secs(1)), code);
    let took = started.elapsed();
    assert!(took < without_text * 3, "{took:?}, and {without_text:?} without text");
    assert_eq!(result.exit_code, None, "{}", result.stderr);
}

#[test]
fn a_long_line_is_cut() {
    let result =
        run(&executor(), "console.log('y'.repeat(20_000_000)); console.error(['z'.repeat(9e6)])");
    assert_eq!(result.exit_code, Some(0));
    assert_eq!(result.stdout.len(), MIB + "\n... 18951425 bytes left out ...\n".len());
    assert!(result.stderr.len() < MIB && result.stderr.starts_with("[ 'zzz"));
}

#[test]
fn a_flood_of_empty_logs_does_not_outgrow_its_limit() {
    let executor = executor().with_memory_limit_bytes(16 << 20);
    let result = run(&executor, "for (;;) console.log();");
    assert_eq!(result.exit_code, Some(137));
    assert!(
        result.stdout.bytes().all(|byte| byte == b'\n' || byte.is_ascii_graphic() || byte == b' ')
    );
}

#[test]
fn thousands_of_files_go_in_and_few_come_out() {
    let file = |number: usize| ExecFile {
        name: format!("{number:05}.txt"),
        content: vec![b'a'; number % 7],
        mime_type: None,
    };
    let code = "
        import * as files from 'files';
        const names = files.list();
        let bytes = 0;
        for (const name of names) bytes += files.read(name).length;
        let refused = 0;
        for (let i = 0; i < 50_000; i++) {
            try { files.write('out' + i + '\\n<', 'x') } catch { refused++ }
        }
        [names.length, bytes, refused]
    ";
    let call = CodeExecutionInput {
        input_files: (0..5_000).map(file).collect(),
        ..CodeExecutionInput::new(code)
    };
    let context = InvocationContext::default();
    // It costs seconds, and more on a busy machine.
    let executor = executor().without_timeout();
    let result = block_on(executor.execute_code(&context, call)).expect("it starts");
    assert_eq!(result.stdout, "[ 5000, 14995, 49936 ]\n", "{}", result.stderr);
    assert_eq!(result.output_files.len(), 64);
    assert_eq!(result.output_files[0].name, "out0\n<");
}

#[test]
fn a_large_file_is_read_whole() {
    let content: Vec<u8> = (0..20 * MIB).map(|at| u8::try_from(at % 251).expect("small")).collect();
    let file = ExecFile { name: "big".to_owned(), content, mime_type: None };
    let code =
        "import { read } from 'files'; const b = read('big'); [b.length, b[250], b[20971519]]";
    let call = CodeExecutionInput { input_files: vec![file], ..CodeExecutionInput::new(code) };
    let context = InvocationContext::default();
    let result = block_on(executor().execute_code(&context, call)).expect("it starts");
    assert_eq!(result.stdout, format!("[ 20971520, 250, {} ]\n", (20 * MIB - 1) % 251));
}

#[test]
fn files_count_against_the_memory_limit() {
    let executor = executor().with_memory_limit_bytes(8 << 20);
    let code = "
        import { write } from 'files';
        for (let i = 0; i < 4; i++) write('f' + i, new Uint8Array(4 << 20));
    ";
    assert_eq!(run(&executor, code).exit_code, Some(137));
}

#[test]
fn the_cap_on_cpu_time_has_a_code_of_its_own() {
    // On a busy machine code may not come to its log within a short cap.
    let mut seen = [300, 3_000, 30_000].into_iter().map(|cap| {
        let executor = IsolateCodeExecutor::new().with_runtime(runtime(Some(cap)));
        run(&executor.without_timeout(), "console.log(1); for (;;);")
    });
    let result = seen.find(|result| !result.stdout.is_empty()).expect("a log");
    assert_eq!((result.stdout.as_str(), result.exit_code), ("1\n", Some(152)));
    assert!(result.stderr.starts_with("SafetyCap: "), "{}", result.stderr);
}

#[test]
fn a_closed_runtime_is_an_error_of_the_call() {
    let runtime = runtime(None);
    let executor = IsolateCodeExecutor::new().with_runtime(runtime.clone());
    let (sender, receiver) = mpsc::channel();
    let context = InvocationContext::default().with_stdout(move |_| {
        let _ = sender.send(());
    });
    let closer = thread::spawn(move || {
        receiver.recv_timeout(CEILING).expect("the code runs");
        runtime.close(|| {});
    });
    let call = CodeExecutionInput::new("console.log(1); for (;;);");
    let result = block_on(executor.execute_code(&context, call)).expect("it starts");
    assert_eq!(result.exit_code, Some(1));
    // The place of the loop follows, if the code could tell it in time.
    assert_eq!(result.stderr.lines().next(), Some("Terminated: runtime closed"));
    closer.join().expect("no panic");
    assert_eq!(kind(&executor, CodeExecutionInput::new("1")), ExecutorErrorKind::Other);
}

#[test]
fn bad_options_and_inputs_are_refused_by_each_call() {
    let call = || CodeExecutionInput::new("1");
    let bad = ExecutorErrorKind::BadInput;
    let both = executor().with_isolation(Isolation::Thread);
    assert_eq!(kind(&both, call()), bad);
    let name = executor().with_globals(Inputs::new().with("not a name", 1));
    assert_eq!(kind(&name, call()), bad);
    assert_eq!(kind(&executor().with_memory_limit_bytes(0), call()), bad);
    assert_eq!(kind(&executor().with_timeout(Duration::ZERO), call()), bad);
    let file = ExecFile { name: "../x".to_owned(), ..ExecFile::default() };
    assert_eq!(kind(&executor(), CodeExecutionInput { input_files: vec![file], ..call() }), bad);
    let code = " ".repeat(16 * MIB + 1);
    assert_eq!(kind(&executor(), CodeExecutionInput::new(code)), bad);
}

#[test]
fn reports_go_to_their_sink_alone() {
    let (sender, receiver) = mpsc::channel();
    let sink = HostFunction::new(move |value: String| sender.send(value).is_ok());
    let executor = executor().with_report(Report::To(sink));
    let result = run(&executor, "report('told'); undefined");
    assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("", ""));
    assert_eq!(receiver.recv_timeout(CEILING).expect("a report"), "told");
}

#[test]
fn host_functions_work_with_the_module_of_files() {
    let upper = HostFunction::new(|text: String| text.to_uppercase());
    let executor = executor().with_globals(Inputs::new().with("upper", upper));
    let code = "import { write, readText } from 'files'; write('a', upper('x')); readText('a')";
    assert_eq!(run(&executor, code).stdout, "X\n");
}

#[tokio::test]
async fn calls_work_in_tokio() {
    let context = InvocationContext::default();
    let call = executor().execute_code(&context, CodeExecutionInput::new("await 7")).await;
    assert_eq!(call.expect("it starts").stdout, "7\n");
}

#[test]
fn a_receiver_that_panics_ends_nothing() {
    let context = InvocationContext::default().with_stdout(|_| panic!("a bug of the receiver"));
    let call = CodeExecutionInput::new("console.log(1); console.log(2); 3");
    let result = block_on(executor().execute_code(&context, call)).expect("it starts");
    assert_eq!((result.exit_code, result.stdout.as_str()), (Some(0), "1\n2\n3\n"));
    assert_eq!(run(&executor(), "1").stdout, "1\n");
}
