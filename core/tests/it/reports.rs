//! Reports as a stream: each one once, in order, for any reader and at any time.

use std::{
    sync::{Arc, Condvar, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use futures::{FutureExt, Stream, StreamExt, executor::block_on};
use isolane::{
    Execution, ExecutionOptions, HostFunction, Inputs, Report, Reports, Status, Value, run_code,
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

fn reporting(source: &str, globals: Inputs) -> Execution {
    run_code(source, ExecutionOptions { globals, report: Report::On, ..Default::default() })
}

fn number(report: &Value) -> u32 {
    report.deserialize().expect("a number")
}

/// The rest of a stream, read on a thread of its own with a time limit.
fn rest(reports: Reports) -> Vec<u32> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let all = block_on(reports.map(|report| number(&report)).collect::<Vec<_>>());
        send.send(all).expect("received");
    });
    receive.recv_timeout(CEILING).expect("the stream ends")
}

/// A function that the sandbox awaits, and a sender that completes it.
fn gate() -> (HostFunction, tokio::sync::mpsc::UnboundedSender<()>) {
    let (open, opened) = tokio::sync::mpsc::unbounded_channel::<()>();
    let opened = Arc::new(tokio::sync::Mutex::new(opened));
    let wait = HostFunction::future(move || {
        let opened = Arc::clone(&opened);
        async move { opened.lock().await.recv().await }
    });
    (wait, open)
}

/// Counts its wake-ups.
#[derive(Default)]
struct Counter(Mutex<usize>, Condvar);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        *self.0.lock().expect("lock") += 1;
        self.1.notify_all();
    }
}

impl Counter {
    fn woken(&self) -> usize {
        *self.0.lock().expect("lock")
    }

    fn wait_for(&self, times: usize) {
        let count = self.0.lock().expect("lock");
        let (_count, timeout) =
            self.1.wait_timeout_while(count, CEILING, |count| *count < times).expect("lock");
        assert!(!timeout.timed_out(), "it is woken");
    }
}

fn poll(reports: &mut Reports, counter: &Arc<Counter>) -> Poll<Option<u32>> {
    let waker = Waker::from(Arc::clone(counter));
    let polled = reports.poll_next_unpin(&mut Context::from_waker(&waker));
    polled.map(|report| report.as_ref().map(number))
}

#[test]
fn a_stream_needs_no_sink() {
    let run = reporting("export default [report(1), report(2)]", Inputs::new());
    let reports = run.report_stream();
    let result = run.wait().expect("no misuse");
    assert_eq!(result.reports.iter().map(number).collect::<Vec<_>>(), [1, 2]);
    let returned: Vec<Option<u8>> =
        result.result.expect("success").deserialize().expect("an array");
    assert_eq!(returned, [None, None]);
    assert_eq!(rest(reports), [1, 2]);
}

#[test]
fn without_the_option_there_is_no_report() {
    let run = run_code("export default typeof report", ExecutionOptions::default());
    let reports = run.report_stream();
    let result = run.wait().expect("no misuse").result.expect("success");
    assert_eq!(result.deserialize::<String>().as_deref(), Ok("undefined"));
    assert_eq!(rest(reports), [0_u32; 0]);
}

#[test]
fn a_stream_and_a_sink_see_the_same() {
    let (seen, sink) = mpsc::channel();
    let report = HostFunction::new(move |n: u32| {
        seen.send(n).expect("received");
        n * 2
    });
    let options = ExecutionOptions { report: report.into(), ..ExecutionOptions::default() };
    let run = run_code("export default report(1) + report(2)", options);
    let reports = run.report_stream();
    let result = run.wait().expect("no misuse").result.expect("success");
    assert_eq!(result.deserialize::<u32>(), Ok(6));
    assert_eq!(rest(reports), [1, 2]);
    assert_eq!(sink.try_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn reports_come_while_the_run_goes_on() {
    let (wait, open) = gate();
    let source = "for (let i = 0; i < 5; i++) { report(i); await wait(); } export default 'done'";
    let run = reporting(source, Inputs::new().with("wait", wait));
    let mut reports = run.report_stream();
    let outcome = block_on(async {
        let read = async {
            for expected in 0..5 {
                assert_eq!(reports.next().await.as_ref().map(number), Some(expected));
                // The next report can come only from here on.
                open.send(()).expect("received");
            }
            assert_eq!(reports.next().await, None);
            assert_eq!(reports.next().await, None);
        };
        futures::join!(run, read).0
    });
    assert_eq!(outcome.expect("no misuse").status, Status::Success);
}

#[test]
fn every_stream_yields_all_from_the_first_one_on() {
    let (wait, open) = gate();
    let source = "report(1); report(2); await wait(); report(3); await wait(); report(4)";
    let mut run = reporting(source, Inputs::new().with("wait", wait));
    let mut early = run.report_stream();
    let first = block_on(early.by_ref().take(2).map(|report| number(&report)).collect::<Vec<_>>());
    assert_eq!(first, [1, 2]);
    let late = run.report_stream();
    open.send(()).expect("received");
    assert_eq!(block_on(early.next()).as_ref().map(number), Some(3));
    open.send(()).expect("received");
    let result = block_on(&mut run).expect("no misuse");
    assert_eq!(result.reports.len(), 4);
    // The run has settled and its result was given away. Old and new streams still have all reports.
    assert_eq!(rest(early), [4]);
    assert_eq!(rest(late), [1, 2, 3, 4]);
    assert_eq!(rest(run.report_stream()), [1, 2, 3, 4]);
    assert_eq!(run.reports().len(), 4);
}

#[test]
fn a_stream_outlives_its_handle() {
    let (wait, _open) = gate();
    let source = "report(1); report(2); await wait(); report(3)";
    let run = reporting(source, Inputs::new().with("wait", wait));
    let mut reports = run.report_stream();
    assert_eq!(block_on(run.report_stream().take(2).count()), 2);
    assert_eq!(block_on(reports.next()).as_ref().map(number), Some(1));
    drop(run);
    assert_eq!(rest(reports), [2]);
}

#[test]
fn a_stream_that_is_dropped_does_nothing() {
    let (wait, open) = gate();
    let run = reporting("report(1); await wait(); report(2)", Inputs::new().with("wait", wait));
    let counter = Arc::new(Counter::default());
    let mut reports = run.report_stream();
    assert_eq!(block_on(reports.next()).as_ref().map(number), Some(1));
    assert_eq!(poll(&mut reports, &counter), Poll::Pending);
    drop(reports);
    assert_eq!(Arc::strong_count(&counter), 1);
    open.send(()).expect("received");
    let result = run.wait().expect("no misuse");
    assert_eq!((result.reports.len(), counter.woken()), (2, 0));
}

#[test]
fn a_stream_is_woken_once_for_each_look_and_by_its_last_waker() {
    let (wait, open) = gate();
    let source = "await wait(); report(1); report(2); await wait(); export default 0";
    let run = reporting(source, Inputs::new().with("wait", wait));
    let (first, second) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let mut reports = run.report_stream();
    assert_eq!(poll(&mut reports, &first), Poll::Pending);
    assert_eq!(poll(&mut reports, &second), Poll::Pending);
    assert_eq!(Arc::strong_count(&first), 1);
    open.send(()).expect("received");
    let mut other = run.report_stream();
    assert_eq!(block_on(other.by_ref().take(2).count()), 2);
    assert_eq!((first.woken(), second.woken()), (0, 1));
    assert_eq!(poll(&mut reports, &second), Poll::Ready(Some(1)));
    assert_eq!(reports.size_hint(), (1, None));
    assert_eq!(poll(&mut reports, &second), Poll::Ready(Some(2)));
    assert_eq!(poll(&mut reports, &second), Poll::Pending);
    assert_eq!(second.woken(), 1);
    open.send(()).expect("received");
    assert_eq!(rest(other), [0_u32; 0]);
    second.wait_for(2);
    assert_eq!(poll(&mut reports, &second), Poll::Ready(None));
    assert_eq!(second.woken(), 2);
    assert_eq!(reports.size_hint(), (0, Some(0)));
    assert_eq!(run.wait().expect("no misuse").status, Status::Success);
}

#[test]
fn a_run_that_never_was_reports_nothing() {
    let options = ExecutionOptions { filename: Some(String::new()), ..Default::default() };
    let run = run_code("", options);
    assert_eq!(run.report_stream().next().now_or_never(), Some(None));
}

#[test]
fn no_report_and_no_end_is_missed() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let source = "for (let i = 0; i < 10; i++) { report(i); if (i % 3) await 0; }";
                    let run = reporting(source, Inputs::new());
                    let streams = [run.report_stream(), run.report_stream()];
                    let waited = scope.spawn(|| run.wait().expect("no misuse").reports.len());
                    for stream in streams {
                        assert_eq!(rest(stream), (0..10).collect::<Vec<_>>());
                    }
                    assert_eq!(waited.join().expect("no panic"), 10);
                }
            });
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_its_own_reads_a_stream() {
    let source = "for (let i = 0; i < 1000; i++) { report(i); if (i % 100 === 0) await 0; }";
    let run = reporting(source, Inputs::new());
    let reports = run.report_stream().map(|report| number(&report));
    let reader = tokio::spawn(tokio::time::timeout(CEILING, reports.collect::<Vec<_>>()));
    assert_eq!(run.await.expect("no misuse").reports.len(), 1000);
    let read = reader.await.expect("no panic").expect("in time");
    assert_eq!(read, (0..1000).collect::<Vec<_>>());
}
