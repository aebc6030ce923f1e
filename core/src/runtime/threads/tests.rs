//! Tests of runs, their threads and the watchdog together.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use crate::{
    Completion, Host, HostCall, Request, RunHandle, Runtime, RuntimeOptions, SourceText, Value,
    os::thread::{Thread, tests::nice},
};

const CEILING: Duration = Duration::from_mins(2);

/// Sends the thread that settled a run.
struct Told(mpsc::Sender<Thread>);

impl Host for Told {
    fn call(&self, _: u32, _: Value, _: HostCall) {}
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {
        self.0.send(Thread::current()).expect("the test waits");
    }
}

fn start(runtime: &Runtime, source: &str) -> (RunHandle, mpsc::Receiver<Thread>) {
    let (sender, settled) = mpsc::channel();
    let request = Request::new(SourceText::from(source.to_owned()));
    (runtime.start(request, Arc::new(Told(sender))).expect("a valid request"), settled)
}

#[test]
fn a_thread_that_gave_way_starts_none_that_do() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
    let (busy, ended) = start(&runtime, "for (;;);");
    while runtime.stats().computing == 0 {
        thread::yield_now();
    }
    let settled = thread::scope(|scope| {
        let other = scope.spawn(|| {
            Thread::current().give_way();
            start(&runtime, "export default 1").1
        });
        other.join().expect("started")
    });
    let thread = settled.recv_timeout(CEILING).expect("settled");
    assert_eq!(nice(&thread), nice(&Thread::current()));
    busy.terminate(None);
    ended.recv_timeout(CEILING).expect("settled");
}
