//! Interceptors between runs and their callers. Built as a test of `isolane-worker` it intercepts runs in processes.

use std::{
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use isolane::{
    CallRequest, CellOptions, CellRequest, Error, ErrorKind, Execution, ExecutionLog,
    ExecutionOptions, ExecutionResult, HostFunction, Inputs, Interception, NativeAnswer,
    NativeCall, NativeFunction, NativeMode, Report, Request, Rest, RunInterceptor, Runtime,
    SessionInterceptor, SessionOptions, SessionRequest, Status, Value, inspect,
};

use crate::place;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

/// A generous bound for events that happen at once.
const CEILING: Duration = Duration::from_mins(2);

/// Keeps what it is told, and changes all values.
#[derive(Debug, Default)]
struct Recorder {
    /// Whether the end of the run waits.
    holds: bool,
    ended: Mutex<Option<(bool, Option<Rest>)>>,
    /// The logs so far, as text.
    logs: Mutex<Vec<String>>,
    /// The threads on which it has changed something.
    threads: Mutex<Vec<ThreadId>>,
    /// Whether its change of the result lasts until somebody terminates the run.
    lasts: bool,
    changes: AtomicBool,
    is_terminated: AtomicBool,
}

impl Recorder {
    fn ended(&self) -> Option<bool> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.as_ref().map(|(by_itself, _)| *by_itself)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn let_go(&self) {
        let rest = {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.as_mut().and_then(|(_, rest)| rest.take())
        };
        drop(rest);
    }
}

impl RunInterceptor for Recorder {
    fn ended(&self, by_itself: bool, rest: Rest) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping the rest tells the caller of the end, and comes after this.
        let (kept, dropped) = if self.holds { (Some(rest), None) } else { (None, Some(rest)) };
        *ended = Some((by_itself, kept));
        drop(ended);
        drop(dropped);
    }

    fn logged(&self, log: &ExecutionLog) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.push(format!("{} {}", log.level.as_str(), inspect(&log.args, 100)));
    }

    fn report(&self, report: &Value) -> Option<Value> {
        self.threads().push(thread::current().id());
        let number: i32 = report.deserialize().expect("a number");
        (number > 1).then(|| Value::serialize(&(number * 10)).expect("a number"))
    }

    fn takes_long(&self, bytes: usize) -> bool {
        self.lasts || bytes > 1_000
    }

    fn result(&self, result: ExecutionResult) -> ExecutionResult {
        assert!(result.reports.is_empty());
        self.threads().push(thread::current().id());
        self.changes.store(true, Ordering::Release);
        until(|| !self.lasts || self.is_terminated.load(Ordering::Acquire));
        ExecutionResult { result: Value::serialize("changed").ok(), ..result }
    }

    fn terminated(&self) {
        self.is_terminated.store(true, Ordering::Release);
    }
}

fn run(source: &str, options: ExecutionOptions, recorder: &Arc<Recorder>) -> Execution {
    let interceptor = Arc::clone(recorder) as Arc<dyn RunInterceptor>;
    RUNTIME.run_code_with(source, options, |request| {
        Ok(Request { interception: Some(Interception::new(interceptor)), ..request })
    })
}

#[test]
fn it_changes_reports_and_the_result() {
    let recorder = Arc::<Recorder>::default();
    let (sender, seen) = channel();
    let sink = HostFunction::new(move |number: i32| sender.send(number).is_ok());
    let options = ExecutionOptions { report: Report::To(sink), ..Default::default() };
    let execution = run("report(1); report(2); export default 1", options, &recorder);
    assert!(execution.interception().is_some());
    let result = execution.wait().expect("a run");
    assert_eq!(result.result, Value::serialize("changed").ok());
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [1, 20]);
    let reports: Vec<i32> =
        result.reports.iter().map(|report| report.deserialize().expect("a number")).collect();
    assert_eq!(reports, [1, 20]);
    assert_eq!(recorder.ended(), Some(true));
}

/// A change may take long, and the caller's thread may be that of an event loop.
#[test]
fn nothing_is_changed_on_the_thread_that_reads_it() {
    let recorder = Arc::<Recorder>::default();
    let options = ExecutionOptions { report: Report::On, ..Default::default() };
    let source = "report(1); report(2); export default 'x'.repeat(100_000)";
    let execution = run(source, options, &recorder);
    let result = execution.wait().expect("a run");
    assert_eq!(result.result, Value::serialize("changed").ok());
    assert_eq!(result.reports.len(), 2);
    let threads = recorder.threads();
    assert_eq!(threads.len(), 3);
    assert!(!threads.contains(&thread::current().id()));
}

#[test]
fn terminating_ends_the_change_of_a_result() {
    let recorder = Arc::new(Recorder { lasts: true, ..Recorder::default() });
    let execution = run("export default 1", ExecutionOptions::default(), &recorder);
    until(|| recorder.changes.load(Ordering::Acquire));
    assert!(execution.running());
    execution.terminate(Some("enough"));
    let result = execution.wait().expect("a run");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!((result.result, result.error.expect("an error").message), (None, "enough".into()));
}

/// Answers when it is told to, and tells whether it was dropped before.
struct Slow(Mutex<Option<Receiver<()>>>, Sender<&'static str>);

impl NativeFunction for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        assert!(call.run.interception().is_some());
        let (run, told) = (call.run, self.1.clone());
        let go = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        NativeAnswer::blocking(move || {
            let told = told.send(match go.map(|go| go.recv_timeout(CEILING)) {
                Some(Ok(())) if !run.is_over() => "done",
                _ => "over",
            });
            Ok(Value::serialize(&told.is_ok()).expect("a boolean"))
        })
    }
}

fn slow() -> (Inputs, Sender<()>, Receiver<&'static str>) {
    let ((go, waits), (sender, told)) = (channel(), channel());
    let slow = Arc::new(Slow(Mutex::new(Some(waits)), sender));
    (Inputs::new().with("slow", HostFunction::native(slow)), go, told)
}

fn until(condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < CEILING, "it never happens");
        thread::yield_now();
    }
}

#[test]
fn native_functions_work_on_until_the_interceptor_lets_go() {
    let recorder = Arc::new(Recorder { holds: true, ..Recorder::default() });
    let (globals, go, told) = slow();
    let options = ExecutionOptions { globals, ..Default::default() };
    let execution = run("slow(); export default 1", options, &recorder);
    until(|| recorder.ended().is_some());
    assert!(execution.running());
    go.send(()).expect("it waits");
    assert_eq!(told.recv_timeout(CEILING), Ok("done"));
    assert!(execution.running());
    recorder.let_go();
    assert_eq!(execution.wait().expect("a run").status, Status::Success);
}

#[test]
fn terminating_ends_the_rest_at_once() {
    let recorder = Arc::new(Recorder { holds: true, ..Recorder::default() });
    let (globals, _go, told) = slow();
    let options = ExecutionOptions { globals, ..Default::default() };
    let execution = run("slow(); export default 1", options, &recorder);
    until(|| recorder.ended().is_some());
    execution.terminate(Some("enough"));
    let result = execution.wait().expect("a run");
    // The function was not waited for: nobody has told it to go on. It may have been dropped by now.
    assert!(told.try_recv().is_err());
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(result.error.expect("an error").message, "enough");
}

#[test]
fn a_run_that_was_ended_did_not_end_by_itself() {
    let recorder = Arc::<Recorder>::default();
    let (sender, begun) = channel();
    // A call that has no answer: a run that waits for nothing would end by itself.
    let wait = HostFunction::future(move || {
        sender.send(()).expect("the test waits");
        std::future::pending::<()>()
    });
    let options =
        ExecutionOptions { globals: Inputs::new().with("wait", wait), ..Default::default() };
    let execution = run("await wait()", options, &recorder);
    begun.recv_timeout(CEILING).expect("it begins");
    execution.terminate(Some("enough"));
    let result = execution.wait().expect("a run");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(recorder.ended(), Some(false));
}

/// Gives each cell the same recorder, and refuses one source.
#[derive(Debug, Default)]
struct Cells {
    cell: Arc<Recorder>,
    outside: Arc<Recorder>,
    closers: Mutex<usize>,
}

impl SessionInterceptor for Cells {
    fn opened(&self, close: Box<dyn Fn() + Send + Sync>) {
        *self.closers.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        drop(close);
    }

    fn cell(&self, cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        if cell.source.text == "no" {
            return Err(Error::new(ErrorKind::Type, "refused"));
        }
        Ok(Arc::clone(&self.cell) as Arc<dyn RunInterceptor>)
    }

    fn call(&self, _: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(Arc::clone(&self.cell) as Arc<dyn RunInterceptor>)
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::clone(&self.outside) as Arc<dyn RunInterceptor>
    }
}

#[test]
fn cells_are_intercepted_each() {
    let cells = Arc::<Cells>::default();
    let interceptor = Arc::clone(&cells) as Arc<dyn SessionInterceptor>;
    let options = SessionOptions { report: Report::On, ..Default::default() };
    let session = RUNTIME
        .session_with(options, |request| {
            Ok(SessionRequest { interceptor: Some(interceptor), ..request })
        })
        .expect("a session");
    let result = session.run("report(3); 1", CellOptions::default()).wait().expect("a cell");
    assert_eq!(result.result, Value::serialize("changed").ok());
    assert_eq!(result.reports, [Value::serialize(&30).expect("a number")]);
    assert!(result.cell.is_some());
    let refused = session.run("no", CellOptions::default()).wait().expect_err("refused");
    assert_eq!(refused.message(), "refused");
    // The portable code copies no session in a process.
    let copies = !(cfg!(isolane_portable) && place::is_process());
    assert_eq!(session.fork().wait().is_ok(), copies);
    assert_eq!(*cells.closers.lock().expect("no panic"), 1 + usize::from(copies));
}

#[test]
fn it_is_told_of_logs_as_they_come() {
    let recorder = Arc::new(Recorder::default());
    let (sender, receiver) = channel();
    let seen = Arc::clone(&recorder);
    let look = HostFunction::new(move || {
        let logs = seen.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sender.send(logs).is_ok()
    });
    let globals = Inputs::new().with("look", look);
    let source = "console.log(1, 'a'); look(); console.error(class A {}); export default 1";
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let result = run(source, options, &recorder).wait().expect("a result");
    assert_eq!(result.logs.len(), 2);
    assert_eq!(receiver.recv_timeout(CEILING).expect("a call"), ["log [ 1, 'a' ]"]);
    let logs = recorder.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(logs, ["log [ 1, 'a' ]", "error [ '[Function: A]' ]"]);
}
