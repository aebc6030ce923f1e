//! The host of a bomb: it answers at once and keeps nothing.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use isolane::{
    CellRequest, Completion, ExecutionResult, Host, HostCall, Language, Request, RunHandle,
    Runtime, SessionHandle, SessionRequest,
    value::{Value, Writer},
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(3);

/// The globals, in the order of their numbers.
const FUNCTIONS: [&str; 4] = ["host", "forever", "fresh", "large"];

struct BombHost {
    settled: mpsc::Sender<()>,
    /// Removed when the run has settled, because the run holds its host.
    remote: Mutex<Option<RunHandle>>,
    next: AtomicU32,
    large: usize,
}

impl Host for BombHost {
    fn call(&self, function: u32, _args: Value, call: HostCall) {
        let mut writer = Writer::new();
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        match FUNCTIONS.get(function as usize) {
            Some(&"forever") => writer.host_promise(next),
            Some(&"large") => {
                writer.host_promise(next);
                let mut text = Writer::new();
                text.string(&"l".repeat(self.large));
                call.reply(Ok(writer.finish()));
                let remote = self.remote.lock().expect("no panic").clone();
                if let Some(remote) = remote {
                    remote.settle_promise(next, Ok(text.finish()));
                }
                return;
            }
            Some(&"fresh") => {
                writer.host_function(next);
                writer.string("fresh");
            }
            _ => writer.undefined(),
        }
        call.reply(Ok(writer.finish()));
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        // The receiver exists as long as the test waits.
        let _ = self.settled.send(());
    }
}

/// Runs a source with these functions to its end.
pub(crate) fn run(runtime: &Runtime, source: &str, limit: usize) -> ExecutionResult {
    run_in(runtime, source, Language::TypeScript, limit)
}

/// As `run`, in the given language.
pub(crate) fn run_in(
    runtime: &Runtime,
    source: &str,
    language: Language,
    limit: usize,
) -> ExecutionResult {
    #[expect(clippy::cast_precision_loss, reason = "limits are small powers of two")]
    let memory_limit_bytes = Some(limit as f64);
    let request = Request {
        globals: FUNCTIONS.map(str::to_owned).to_vec(),
        modules: vec![("./m.js".to_owned(), "export const x = 1".to_owned().into())],
        inputs: functions(true),
        report: true,
        language,
        memory_limit_bytes,
        ..Request::new(source.to_owned().into())
    };
    settled(limit, |host| runtime.start(request, host).expect("no misuse"))
}

/// A session with these functions.
pub(crate) fn session(runtime: &Runtime, limit: usize) -> SessionHandle {
    #[expect(clippy::cast_precision_loss, reason = "limits are small powers of two")]
    let memory_limit_bytes = Some(limit as f64);
    let request = SessionRequest {
        globals: FUNCTIONS.map(str::to_owned).to_vec(),
        modules: vec![("./m.js".to_owned(), "export const x = 1".to_owned().into())],
        inputs: functions(false),
        report: true,
        memory_limit_bytes,
        ..SessionRequest::default()
    };
    runtime.open_session(request, Arc::new(host(limit).0)).expect("no misuse")
}

/// Runs a cell to its end.
pub(crate) fn cell(session: &SessionHandle, request: CellRequest) -> ExecutionResult {
    settled(8 << 20, |host| session.run(request, host).expect("no misuse"))
}

/// The result of what `start` starts.
fn settled(limit: usize, start: impl FnOnce(Arc<dyn Host>) -> RunHandle) -> ExecutionResult {
    let (host, receiver) = host(limit);
    let host = Arc::new(host);
    let remote = start(Arc::clone(&host) as Arc<dyn Host>);
    *host.remote.lock().expect("no panic") = Some(remote.clone());
    receiver.recv_timeout(CEILING).expect("the run settles");
    host.remote.lock().expect("no panic").take();
    remote.take_result().expect("settled")
}

fn host(limit: usize) -> (BombHost, mpsc::Receiver<()>) {
    let (settled, receiver) = mpsc::channel();
    let (remote, next) = (Mutex::default(), AtomicU32::new(100));
    (BombHost { settled, remote, next, large: limit / 50 }, receiver)
}

/// The message with the functions; that of a run ends with its arguments.
fn functions(of_run: bool) -> Value {
    let mut inputs = Writer::new();
    inputs.array(u32::try_from(FUNCTIONS.len()).expect("few") + u32::from(of_run));
    for (number, name) in (0..).zip(FUNCTIONS) {
        inputs.host_function(number);
        inputs.string(name);
    }
    if of_run {
        inputs.array(0);
    }
    inputs.finish()
}

/// Waits until the runtime is closed, except for threads that do not return.
pub(crate) fn close(runtime: &Runtime) {
    let (closed, receiver) = mpsc::channel();
    runtime.close(move || {
        let _ = closed.send(());
    });
    // A thread that is stuck in a builtin for good keeps it open.
    let _ = receiver.recv_timeout(Duration::from_secs(2));
}
