//! Forked children: they have none of their parent's threads, and its locks in any state.
//!
//! The parent keeps its runtimes busy while it forks again and again, so that children are forked at any point of that
//! work. A child runs code, reports its result through a pipe, and exits without unwinding. A child without a report
//! hangs and fails the test.
#![expect(unsafe_code, reason = "forks")]

use std::{
    io::{Read, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    pin::pin,
    process::abort,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    task::{Context, Poll, Waker},
    thread,
};

use isolane::{
    Completion, Error, ErrorKind, Execution, ExecutionOptions, Host, HostCall, HostFunction,
    Inputs, REPORT_SINK, Request, Runtime, RuntimeOptions, Stats, Value, run_code, value::Writer,
};

use crate::alone::alone;

/// The time limit of a child that does not hang.
const CEILING_MS: i32 = 120_000;

const FORKS: usize = 60;

/// The program of a busy parent and its children: calls that wait, calls that do not, and computing.
const SOURCE: &str = "let n = 0;
    for (let i = 0; i < 20; i++) n = await later(add(n, 1));
    export default n";

#[test]
fn a_forked_child_runs_code_and_its_parents_runtimes_do_not_hang_it() {
    if !alone("fork::a_forked_child_runs_code_and_its_parents_runtimes_do_not_hang_it") {
        return;
    }
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("defaults");
    assert_eq!(twenty(run_code(SOURCE, options())), Ok(()));
    assert_eq!(twenty(runtime.run_code(SOURCE, options())), Ok(()));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for runtime in [Runtime::shared(), runtime.clone(), Runtime::shared()] {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(twenty(runtime.run_code(SOURCE, options())), Ok(()));
                }
            });
        }
        let outcome: Result<(), String> = (0..FORKS).try_for_each(|number| {
            let mut parents = Some(runtime.run_code("await later(1); for (;;) {}", options()));
            let outcome = in_child(|| child(&runtime, parents.take()));
            outcome.map_err(|error| format!("child {number}: {error}"))
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(outcome, Ok(()));
    });
}

/// Keeps the one call that its run makes.
struct Keeps(mpsc::SyncSender<HostCall>);

impl Host for Keeps {
    fn call(&self, function: u32, _args: Value, call: HostCall) {
        if function == REPORT_SINK {
            call.reply(Ok(Value::undefined()));
        } else {
            self.0.send(call).expect("the test waits");
        }
    }
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {}
}

#[test]
fn a_call_answered_in_a_child_is_nobodys() {
    let (sender, calls) = mpsc::sync_channel(1);
    let source = "for (let i = 0; i < 3000; i++) report(i); wait()";
    let mut inputs = Writer::new();
    inputs.array(2);
    inputs.host_function(0);
    inputs.string("wait");
    inputs.array(0);
    let request = Request {
        globals: vec!["wait".to_owned()],
        inputs: inputs.finish(),
        report: true,
        ..Request::new(source.to_owned().into())
    };
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("defaults");
    let remote = runtime.start(request, Arc::new(Keeps(sender))).expect("no misuse");
    let mut call = Some(calls.recv().expect("a call"));
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        // Holds the lock of the run most of the time.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(remote.reports_since(0).len(), 3_000);
            }
        });
        let outcome: Result<(), String> = (0..8).try_for_each(|_| {
            in_child(|| {
                call.take().ok_or("no call")?.reply(Ok(Value::undefined()));
                Ok(())
            })
        });
        done.store(true, Ordering::Relaxed);
        outcome
    });
    assert_eq!(outcome, Ok(()));
    remote.terminate(None);
}

/// Everything that a child may expect.
fn child(parents: &Runtime, handle: Option<Execution>) -> Result<(), String> {
    // Enough threads at once to compete for everything that they share.
    thread::scope(|scope| {
        let runs: Vec<_> =
            (0..4).map(|_| scope.spawn(|| twenty(run_code(SOURCE, options())))).collect();
        runs.into_iter().try_for_each(|run| run.join().map_err(|_| "a panic".to_owned())?)
    })?;
    let own = Runtime::new(&RuntimeOptions::default()).map_err(|error| error.to_string())?;
    twenty(own.run_code(SOURCE, options()))?;

    let refused = parents.run_code(SOURCE, options()).wait();
    let wanted = "the runtime was made before this process was forked, which runtimes do not \
                  survive: make a new one";
    same(&refused, &Err(Error::new(ErrorKind::Unavailable, wanted)))?;
    same(&parents.stats(), &Stats::default())?;
    let (closed, is_closed) = mpsc::channel();
    parents.close(move || closed.send(()).unwrap_or_default());
    same(&is_closed.try_recv(), &Ok(()))?;

    let handle = handle.ok_or("no handle")?;
    same(&handle.running(), &false)?;
    same(&handle.reports(), &Vec::new())?;
    handle.terminate(Some("not mine"));
    let mut handle = pin!(handle);
    match handle.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => same(&error.kind(), &ErrorKind::Unavailable),
        other => Err(format!("{other:?}")),
    }
}

fn options() -> ExecutionOptions {
    let globals = Inputs::new()
        .with("add", HostFunction::new(|a: u32, b: u32| a + b))
        .with("later", HostFunction::future(|n: u32| async move { n }));
    ExecutionOptions { globals, ..ExecutionOptions::default() }
}

fn twenty(run: Execution) -> Result<(), String> {
    let result = run.wait().map_err(|error| error.to_string())?;
    let value = result.result.ok_or_else(|| format!("{:?}", result.error))?;
    same(&value.deserialize::<u32>(), &Ok(20))
}

fn same<T: PartialEq + std::fmt::Debug>(got: &T, wanted: &T) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{got:?} instead of {wanted:?}")) }
}

/// Runs `act` in a child of this process, and returns its result there.
fn in_child(act: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let (mut ours, mut theirs) = pipe();
    // SAFETY: the child has this thread alone, and ends below.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let text = act().map_or_else(|error| error, |()| "fine".to_owned());
        if theirs.write_all(text.as_bytes()).is_err() {
            abort();
        }
        // SAFETY: ends the process without the exit handlers of its parent.
        unsafe { libc::_exit(0) }
    }
    drop(theirs);
    let mut said = libc::pollfd { fd: ours.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, open until the end.
    let heard = unsafe { libc::poll(&raw mut said, 1, CEILING_MS) };
    // SAFETY: the child was not waited for yet, so the number is still its own.
    unsafe {
        if heard == 0 {
            libc::kill(child, libc::SIGKILL);
        }
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    let mut text = String::new();
    ours.read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.as_str() {
        "fine" => Ok(()),
        "" if heard == 0 => Err("it hangs".to_owned()),
        "" => Err("it died".to_owned()),
        error => Err(error.to_owned()),
    }
}

fn pipe() -> (std::fs::File, std::fs::File) {
    let mut ends = [0; 2];
    // SAFETY: a place for two descriptors, which are owned from here on.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0, "a pipe");
        let [ours, theirs] = ends.map(|end| OwnedFd::from_raw_fd(end));
        (ours.into(), theirs.into())
    }
}
