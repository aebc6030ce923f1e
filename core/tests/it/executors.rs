//! The handle as a future, under each kind of executor, from any task and thread.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use async_executor::{Executor, LocalExecutor};
use futures::{
    FutureExt, StreamExt,
    executor::{LocalPool, ThreadPool, block_on},
    future::{self, Either},
    stream::FuturesUnordered,
    task::LocalSpawnExt,
};
use isolane::{
    Execution, ExecutionOptions, ExecutionResult, HostFunction, Inputs, Report, Runtime,
    RuntimeOptions, Status, run_code,
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

const RUNS: u32 = 50;

/// A run with host functions of both kinds, and a report between them.
fn start(number: u32) -> Execution {
    let globals = Inputs::new()
        .with("number", number)
        .with("add", HostFunction::new(|a: u32, b: u32| a + b))
        .with("later", HostFunction::future(|n: u32| async move { n }));
    let source = "const n = await later(add(number, 1)); report(n); export default await later(n)";
    run_code(source, ExecutionOptions { globals, report: Report::On, ..Default::default() })
}

/// Awaits such a run and its reports at once.
async fn check(number: u32) {
    let run = start(number);
    let reports = run.report_stream().collect::<Vec<_>>();
    let (result, reports) = future::join(run, reports).await;
    let result = result.expect("no misuse");
    assert_eq!(reports, result.reports);
    assert_eq!(reports.len(), 1);
    assert_eq!(result.result.map(|value| value.deserialize()), Some(Ok(number + 1)));
}

async fn check_many() {
    (0..RUNS).map(check).collect::<FuturesUnordered<_>>().collect::<()>().await;
}

/// A run that waits for its host until it is ended, on a runtime of its own that counts terminations.
fn endless() -> (Runtime, Execution) {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("defaults");
    let hang = HostFunction::future(future::pending::<()>);
    let globals = Inputs::new().with("hang", hang);
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let run = runtime.run_code("await hang()", options);
    (runtime, run)
}

/// Whether the run of that runtime has ended. It was told to; it notices at a time that depends on the thread that may
/// just be starting it.
fn has_ended(runtime: &Runtime) -> bool {
    let began = Instant::now();
    while runtime.stats().terminated == 0 && began.elapsed() < CEILING {
        thread::yield_now();
    }
    runtime.stats().terminated == 1
}

/// Runs on a thread of its own, so that a hang fails the test.
fn within_ceiling(act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        act();
        done.send(()).expect("received");
    });
    let hangs = is_done.recv_timeout(CEILING) == Err(mpsc::RecvTimeoutError::Timeout);
    assert!(!hangs, "it hangs");
    thread.join().expect("no panic");
}

#[test]
fn under_block_on() {
    within_ceiling(|| block_on(check_many()));
}

#[test]
fn under_a_pool_of_one_thread() {
    within_ceiling(|| {
        let mut pool = LocalPool::new();
        for number in 0..RUNS {
            pool.spawner().spawn_local(check(number)).expect("a live pool");
        }
        pool.run();
    });
}

#[test]
fn under_a_pool_of_threads() {
    within_ceiling(|| {
        let pool = ThreadPool::builder().pool_size(2).create().expect("threads");
        let (done, is_done) = mpsc::channel();
        for number in 0..RUNS {
            let done = done.clone();
            pool.spawn_ok(async move {
                check(number).await;
                done.send(()).expect("received");
            });
        }
        drop(done);
        assert_eq!(is_done.iter().count(), RUNS as usize);
    });
}

#[test]
fn under_an_executor_of_smol() {
    within_ceiling(|| {
        let executor = LocalExecutor::new();
        let tasks: Vec<_> = (0..RUNS).map(|number| executor.spawn(check(number))).collect();
        block_on(executor.run(future::join_all(tasks)));
    });
}

#[test]
fn under_an_executor_of_smol_on_two_threads() {
    within_ceiling(|| {
        let executor = Arc::new(Executor::new());
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let stopped = stopped.shared();
        let threads = [(); 2].map(|()| {
            let (executor, stopped) = (Arc::clone(&executor), stopped.clone());
            thread::spawn(move || block_on(executor.run(stopped)))
        });
        let tasks: Vec<_> = (0..RUNS).map(|number| executor.spawn(check(number))).collect();
        block_on(future::join_all(tasks));
        drop(stop);
        for thread in threads {
            assert!(thread.join().expect("no panic").is_err());
        }
    });
}

#[tokio::test]
async fn under_tokio_on_one_thread() {
    tokio::time::timeout(CEILING, check_many()).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_tokio_on_many_threads() {
    let tasks = (0..RUNS).map(|number| tokio::spawn(check(number)));
    let all = tokio::time::timeout(CEILING, future::join_all(tasks)).await.expect("in time");
    assert!(all.into_iter().all(|task| task.is_ok()));
}

#[test]
fn the_last_waker_is_woken() {
    #[derive(Default)]
    struct Counter(AtomicUsize);
    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (_runtime, mut run) = endless();
    let first = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&first));
    assert!(run.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    let terminator = run.terminator();
    let (polled, is_polled) = mpsc::channel();
    let second = thread::spawn(move || {
        block_on(async {
            let mut run = run;
            let once = future::poll_fn(|context| Poll::Ready(run.poll_unpin(context).is_pending()));
            assert!(once.await);
            polled.send(()).expect("received");
            run.await
        })
    });
    is_polled.recv_timeout(CEILING).expect("polled there");
    assert_eq!(Arc::strong_count(&first), 1);
    terminator.terminate(Some("enough"));
    let result = second.join().expect("no panic").expect("no misuse");
    assert_eq!(result.status, Status::Terminated);
    assert_eq!(first.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_select_that_drops_it_ends_the_run() {
    within_ceiling(|| {
        let (runtime, run) = endless();
        match block_on(future::select(run, future::ready(7))) {
            Either::Right((7, run)) => drop(run),
            other => panic!("{other:?}"),
        }
        assert!(has_ended(&runtime));
        let quick = start(1);
        match block_on(future::select(quick, future::pending::<()>())) {
            Either::Left((Ok(ExecutionResult { status: Status::Success, .. }), _)) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[tokio::test]
async fn a_branch_of_select_that_loses_ends_its_run() {
    let (runtime, run) = endless();
    let lost = tokio::select! {
        biased;
        result = run => Some(result),
        () = tokio::task::yield_now() => None,
    };
    assert_eq!(lost, None);
    assert!(has_ended(&runtime));
}

#[tokio::test]
async fn a_task_that_is_aborted_ends_its_run() {
    let (runtime, run) = endless();
    let (polled, is_polled) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut run = pin!(run);
        let mut polled = Some(polled);
        future::poll_fn(|context| {
            let poll = run.as_mut().poll(context);
            polled.take().map(|polled| polled.send(()));
            poll
        })
        .await
    });
    tokio::time::timeout(CEILING, is_polled).await.expect("in time").expect("polled");
    task.abort();
    assert!(task.await.expect_err("aborted").is_cancelled());
    assert!(has_ended(&runtime));
}

#[test]
fn a_handle_is_awaited_on_another_thread_and_under_another_executor() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let run = {
        let _entered = tokio.enter();
        start(4)
    };
    // Its host functions are futures of that runtime, which this thread runs meanwhile.
    let (send, receive) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let value = block_on(run).expect("no misuse").result.expect("success");
        send.send(value).expect("received");
    });
    let value = tokio.block_on(receive).expect("sent");
    assert_eq!(value.deserialize::<u32>(), Ok(5));
}
