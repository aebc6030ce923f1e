//! What the scheduler does with threads that come late, twice, or not at all.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::*;
use crate::{
    Completion, Host, HostCall, Request, Runtime, RuntimeOptions, SourceText, Value,
    runtime::threads::{
        Threads,
        run::{PAUSED, PAUSES, PAUSES_PARKED},
    },
    value::Writer,
};

const CEILING: Duration = Duration::from_secs(30);

/// Tells of the end of a run, and what the thread is that settled it.
struct Told(mpsc::Sender<Thread>);

impl Host for Told {
    fn call(&self, _: u32, _: Value, _: HostCall) {}
    fn function_settled(&self, _: u32, _: Completion) {}
    fn promise_settled(&self, _: u32, _: Completion) {}
    fn settled(&self) {
        self.0.send(Thread::current()).expect("the test waits");
    }
}

fn runtime(options: &RuntimeOptions) -> (Runtime, Arc<Threads>) {
    let settings = options.check().expect("valid options");
    let threads = Arc::new(Threads::new(&settings));
    (Runtime::on(Arc::<Threads>::clone(&threads), &settings), threads)
}

fn start(runtime: &Runtime, source: &str) -> (crate::RunHandle, mpsc::Receiver<Thread>) {
    start_as(runtime, source, None)
}

fn start_as(
    runtime: &Runtime,
    source: &str,
    filename: Option<&str>,
) -> (crate::RunHandle, mpsc::Receiver<Thread>) {
    let (sender, settled) = mpsc::channel();
    let mut request = Request::new(SourceText::from(source.to_owned()));
    request.filename = filename.map(str::to_owned);
    (runtime.start(request, Arc::new(Told(sender))).expect("a valid request"), settled)
}

#[test]
fn a_thread_that_wakes_for_no_reason_is_counted_once() {
    let (runtime, threads) = runtime(&RuntimeOptions::default());
    let (_, settled) = start(&runtime, "export default 1");
    settled.recv_timeout(CEILING).expect("settled");
    let scheduler = &threads.0.scheduler;
    let since = Instant::now();
    // One, or two if the first was so quick that the run came after it.
    let all_sleep = || {
        let queue = scheduler.queue.lock();
        queue.sleeping == queue.threads
    };
    while !all_sleep() && since.elapsed() < CEILING {
        thread::yield_now();
    }
    for _ in 0..3 {
        scheduler.work.notify_all();
        thread::sleep(Duration::from_millis(5));
    }
    assert!(all_sleep());
    // It is taken, and another has to come for the next run.
    let (busy, ended) = start(&runtime, "for (;;);");
    let (_, settled) = start(&runtime, "export default 1");
    settled.recv_timeout(CEILING).expect("settled beside a run that does not end");
    busy.terminate(None);
    ended.recv_timeout(CEILING).expect("settled");
}

/// It might not come back for long, and would have the permit meanwhile.
#[test]
fn a_thread_that_was_given_up_on_waits_for_no_permit() {
    let max_concurrent_runs = Some(1.0);
    let options = RuntimeOptions { max_concurrent_runs, ..RuntimeOptions::default() };
    let (runtime, threads) = runtime(&options);
    let runs = [start(&runtime, "for (;;);"), start(&runtime, "for (;;);")];
    let scheduler = &threads.0.scheduler;
    let aside = || scheduler.queue.lock().aside.front().map(|resume| Arc::clone(&resume.run));
    let since = Instant::now();
    let run = loop {
        assert!(since.elapsed() < CEILING, "none steps aside");
        if let Some(run) = aside() {
            break run;
        }
    };
    scheduler.abandon(&run);
    let waits = |resume: &Arc<Resume>| Arc::ptr_eq(&resume.run, &run);
    assert!(!scheduler.queue.lock().aside.iter().any(waits));
    for (remote, settled) in runs {
        remote.terminate(None);
        settled.recv_timeout(CEILING).expect("settled");
    }
    while !scheduler.queue.lock().current.is_empty() && since.elapsed() < CEILING {
        thread::yield_now();
    }
    let stats = scheduler.stats();
    assert_eq!((stats.computing, stats.queued, stats.stuck), (0, 0, 0));
}

/// A thread that was given up on gets little of the processor: nobody may wait for it.
#[test]
fn a_run_does_not_wait_for_a_thread_that_was_given_up_on() {
    const SLOW: &str = if cfg!(isolane_sanitized) {
        "Array.prototype.reverse.call({ length: 8e6 })"
    } else {
        "Array.prototype.reverse.call({ length: 8e7 })"
    };
    let (runtime, threads) = runtime(&RuntimeOptions::default());
    let (slow, ended) = start_as(&runtime, SLOW, Some(PAUSES));
    while runtime.stats().computing == 0 {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(50));
    // Another thread, which will have nothing to do.
    let (_, settled) = start(&runtime, "export default 1");
    settled.recv_timeout(CEILING).expect("settled");
    slow.terminate(None);
    ended.recv_timeout(CEILING).expect("settled");
    assert_eq!(threads.0.scheduler.stuck(), 1);
    let since = Instant::now();
    while !PAUSED.load(Ordering::SeqCst) && since.elapsed() < CEILING {
        thread::sleep(Duration::from_millis(1));
    }
    let (_, settled) = start(&runtime, "export default 1");
    settled.recv_timeout(CEILING).expect("settled");
    assert_eq!(threads.0.scheduler.stuck(), 1, "it was settled while that thread paused");
}

/// The thread that parked a run may still have it when another one is through with it.
#[test]
fn a_run_that_two_threads_have_is_counted_off_once() {
    let (runtime, threads) = runtime(&RuntimeOptions::default());
    let (sender, settled) = mpsc::channel();
    let mut request = Request::new(SourceText::from("export default await p".to_owned()));
    request.filename = Some(PAUSES_PARKED.to_owned());
    request.globals = vec!["p".to_owned()];
    let mut inputs = Writer::new();
    inputs.array(2);
    inputs.host_promise(1);
    inputs.array(0);
    request.inputs = inputs.finish();
    let run = runtime.start(request, Arc::new(Told(sender))).expect("a valid request");
    while runtime.stats().parked == 0 {
        thread::yield_now();
    }
    run.settle_promise(1, Ok(Value::undefined()));
    settled.recv_timeout(CEILING).expect("settled");
    let since = Instant::now();
    while !threads.0.scheduler.is_idle() && since.elapsed() < CEILING {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(threads.0.scheduler.is_idle());
    assert_eq!(threads.0.scheduler.finishing.load(Ordering::Relaxed), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_gave_way_starts_none_that_do() {
    use crate::os::thread::tests::nice;

    let (runtime, _) = runtime(&RuntimeOptions::default());
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
