//! The host of the tests: it answers nothing, and waits for the end of its runs.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use isolane::{
    CellRequest, Completion, ExecutionResult, ExtensionRequest, Host, HostCall, NativeAnswer,
    NativeCall, NativeFunction, NativeFunctions, NativeMode, Request, Runtime, SessionHandle,
    SessionRequest,
    value::{Value, Writer},
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

/// The names of the test's extension, and its properties.
fn extension() -> Arc<ExtensionRequest> {
    let names = ["api", "answer", "later"];
    Arc::new(ExtensionRequest {
        names: names.map(str::to_owned).to_vec(),
        properties: vec!["Point".to_owned()],
    })
}

struct Waiter(Mutex<mpsc::Sender<()>>);

impl Host for Waiter {
    fn call(&self, _function: u32, _args: Value, _call: HostCall) {}

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        // A test that has failed waits no longer.
        let _ = self.0.lock().expect("no panic").send(());
    }
}

/// A native function that gives its argument back after so many milliseconds.
struct Later;

impl NativeFunction for Later {
    fn name(&self) -> &'static str {
        "later"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        match call.arguments::<(u64,)>() {
            Ok((ms,)) => NativeAnswer::later(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(Value::serialize(&ms).expect("a number"))
            }),
            Err(thrown) => Err(thrown).into(),
        }
    }
}

/// The native functions of a run.
fn natives() -> NativeFunctions {
    let native = NativeFunctions::new();
    let later: Arc<dyn NativeFunction> = Arc::new(Later);
    native.extend(&Arc::from([None, Some(later)]));
    native
}

/// The input of the extension. `fails`: whether it is to throw.
fn write_input(writer: &mut Writer, fails: bool) {
    writer.object();
    writer.key("answer");
    writer.int(42);
    writer.key("fails");
    writer.bool(fails);
    writer.end_object();
}

/// A run that sees the extension, and a global `mine`.
pub(crate) fn request(source: &str) -> Request {
    request_with(source, false)
}

/// The same, of an extension that may throw.
pub(crate) fn request_with(source: &str, fails: bool) -> Request {
    let native = natives();
    let mut writer = Writer::new();
    writer.array(3);
    write_input(&mut writer, fails);
    writer.int(7);
    writer.array(0);
    Request {
        globals: vec!["mine".to_owned()],
        inputs: writer.finish(),
        extension: Some(extension()),
        native,
        ..Request::new(source.to_owned().into())
    }
}

/// Runs it to its end.
pub(crate) fn run(runtime: &Runtime, request: Request) -> ExecutionResult {
    let (sender, settled) = mpsc::channel();
    let run = runtime.start(request, Arc::new(Waiter(Mutex::new(sender)))).expect("no misuse");
    settled.recv_timeout(CEILING).expect("it settles");
    run.take_result().expect("a result")
}

/// A session that sees the extension, a global `mine` and a bridge `bridge` with `value`.
pub(crate) fn session(runtime: &Runtime) -> SessionHandle {
    let native = natives();
    let mut writer = Writer::new();
    writer.array(3);
    write_input(&mut writer, false);
    writer.int(7);
    writer.int(9);
    let module = "export const seen = [typeof api, answer, mine, new Point(3).x]";
    let request = SessionRequest {
        globals: vec!["mine".to_owned()],
        imports: vec![("bridge".to_owned(), vec!["value".to_owned()])],
        modules: vec![("./m.js".to_owned(), module.to_owned().into())],
        inputs: writer.finish(),
        extension: Some(extension()),
        native,
        ..SessionRequest::default()
    };
    let (sender, _) = mpsc::channel();
    runtime.open_session(request, Arc::new(Waiter(Mutex::new(sender)))).expect("no misuse")
}

/// Runs a cell to its end.
pub(crate) fn cell(session: &SessionHandle, source: &str) -> ExecutionResult {
    let (sender, settled) = mpsc::channel();
    let request = CellRequest::new(source.to_owned().into());
    let run = session.run(request, Arc::new(Waiter(Mutex::new(sender)))).expect("no misuse");
    settled.recv_timeout(CEILING).expect("it settles");
    run.take_result().expect("a result")
}

/// A copy of a session.
pub(crate) fn fork(session: &SessionHandle) -> SessionHandle {
    let (sender, forked) = mpsc::channel();
    let host = Arc::new(Waiter(Mutex::new(mpsc::channel().0)));
    session.fork(host, move |copy| sender.send(copy).expect("the test waits"));
    forked.recv_timeout(CEILING).expect("an answer").expect("a copy")
}

/// Forgets the state of a session.
pub(crate) fn reset(session: &SessionHandle) {
    let (sender, done) = mpsc::channel();
    session.reset(move |reset| sender.send(reset).expect("the test waits"));
    done.recv_timeout(CEILING).expect("an answer").expect("a reset");
}
