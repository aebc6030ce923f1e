//! Tests of the scheduler with threads that come late, twice, or not at all.

use std::{
    cell::Cell,
    collections::VecDeque,
    sync::{
        atomic::AtomicBool,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use super::*;

const CEILING: Duration = Duration::from_mins(2);

/// The work of a job from one stop to the next.
type Part = Box<dyn FnOnce(&Arc<Toy>, &Cell<bool>) + Send>;

/// A job that does the work that its test gives it.
struct Toy {
    parts: Mutex<VecDeque<Part>>,
    stage: Stage,
    is_ending: AtomicBool,
    has_ended: AtomicBool,
    told: Sender<()>,
}

impl Job for Toy {
    fn compute(self: &Arc<Self>, finishing: &Cell<bool>) {
        let (part, is_last) = {
            let mut parts = self.parts.lock();
            (parts.pop_front().expect("a part"), parts.is_empty())
        };
        part(self, finishing);
        if is_last {
            self.has_ended.store(true, Ordering::Relaxed);
            self.told.send(()).expect("the test waits");
        }
    }

    fn break_down(self: &Arc<Self>) {}

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn left_the_queue(&self) -> bool {
        self.has_ended()
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    fn stage(&self) -> &Stage {
        &self.stage
    }
}

/// Nothing but a scheduler.
struct Bench {
    scheduler: Scheduler<Toy>,
}

impl Owner<Toy> for Bench {
    fn scheduler(&self) -> &Scheduler<Toy> {
        &self.scheduler
    }

    fn prepare(&self, _: &dyn Fn() -> bool) {}

    fn computed(&self) {}
}

impl Bench {
    fn new(permits: usize) -> Arc<Self> {
        Arc::new_cyclic(|owner: &Weak<Self>| Self {
            scheduler: Scheduler::new(permits, owner.clone()),
        })
    }

    /// Enqueues a job of those parts; the receiver is notified of its end.
    fn start<const N: usize>(&self, parts: [Part; N]) -> (Arc<Toy>, Receiver<()>) {
        let (told, ended) = mpsc::channel();
        let job = Arc::new(Toy {
            parts: Mutex::new(parts.into()),
            stage: Stage::default(),
            is_ending: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            told,
        });
        self.scheduler.enqueue(Arc::clone(&job));
        (job, ended)
    }

    /// Computes a job that is over at once.
    fn compute(&self) {
        let (_, ended) = self.start([Box::new(|_, _| ())]);
        ended.recv_timeout(CEILING).expect("ended");
    }

    /// A job that computes until it is ended, and steps aside for others.
    fn start_endless(self: &Arc<Self>) -> (Arc<Toy>, Receiver<()>) {
        let bench = Arc::clone(self);
        self.start([Box::new(move |job, _| {
            while !job.is_ending() {
                if bench.scheduler.others_wait() {
                    bench.scheduler.step_aside(job);
                }
                thread::yield_now();
            }
        })])
    }

    fn end(&self, job: &Arc<Toy>) {
        job.is_ending.store(true, Ordering::Relaxed);
        self.scheduler.wake_ended(job);
    }

    /// Waits until that is true of the queue.
    fn wait_until(&self, is_so: impl Fn(&Queue<Toy>) -> bool) {
        let since = Instant::now();
        while !is_so(&self.scheduler.queue.lock()) {
            assert!(since.elapsed() < CEILING, "{:?}", self.scheduler.stats());
            thread::yield_now();
        }
    }
}

#[test]
fn a_thread_that_wakes_for_no_reason_is_counted_once() {
    let bench = Bench::new(8);
    bench.compute();
    bench.wait_until(|queue| queue.sleeping == queue.threads);
    for _ in 0..3 {
        bench.scheduler.work.notify_all();
        thread::sleep(Duration::from_millis(5));
    }
    bench.wait_until(|queue| queue.sleeping == queue.threads);
    // It is taken, and the next job needs another thread.
    let (busy, ended) = bench.start_endless();
    bench.compute();
    bench.end(&busy);
    ended.recv_timeout(CEILING).expect("ended");
}

/// The thread might not return for long, and would have the permit meanwhile.
#[test]
fn a_thread_that_was_given_up_on_waits_for_no_permit() {
    let bench = Bench::new(1);
    let jobs = [bench.start_endless(), bench.start_endless()];
    let scheduler = &bench.scheduler;
    let aside = || scheduler.queue.lock().aside.front().map(|resume| Arc::clone(&resume.job));
    let since = Instant::now();
    let job = loop {
        assert!(since.elapsed() < CEILING, "none steps aside");
        if let Some(job) = aside() {
            break job;
        }
    };
    scheduler.abandon(&job);
    let waits = |resume: &Arc<Resume<Toy>>| Arc::ptr_eq(&resume.job, &job);
    assert!(!scheduler.queue.lock().aside.iter().any(waits));
    for (job, ended) in jobs {
        bench.end(&job);
        ended.recv_timeout(CEILING).expect("ended");
    }
    bench.wait_until(|queue| queue.current.is_empty());
    let stats = scheduler.stats();
    assert_eq!((stats.computing, stats.queued, stats.stuck), (0, 0, 0));
}

/// A thread that was given up on gets little of the processor, so no job may wait for it.
#[test]
fn a_job_does_not_wait_for_a_thread_that_was_given_up_on() {
    let bench = Bench::new(8);
    let (come, came) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let slow: Part = {
        let bench = Arc::clone(&bench);
        Box::new(move |job, finishing| {
            come.send(()).expect("the test waits");
            goes_on.recv().expect("the test goes on");
            finishing.set(bench.scheduler.finishing(job));
            come.send(()).expect("the test waits");
            goes_on.recv().expect("the test goes on");
        })
    };
    let (slow, ended) = bench.start([slow]);
    came.recv_timeout(CEILING).expect("started");
    // Another thread, which will have nothing to do.
    bench.compute();
    bench.scheduler.abandon(&slow);
    assert_eq!(bench.scheduler.stuck(), 1);
    go_on.send(()).expect("it waits");
    came.recv_timeout(CEILING).expect("finishing");
    bench.wait_until(|queue| queue.sleeping == queue.threads - 1);
    bench.compute();
    assert_eq!(bench.scheduler.stuck(), 1, "it ended while that thread waited");
    go_on.send(()).expect("it waits");
    ended.recv_timeout(CEILING).expect("ended");
    bench.wait_until(|queue| queue.current.is_empty());
    assert_eq!(bench.scheduler.stuck(), 0);
    assert_eq!(bench.scheduler.finishing.load(Ordering::Relaxed), 0);
}

/// The thread that parked a job may still have it when another one is through with it.
#[test]
fn a_job_that_two_threads_have_is_counted_off_once() {
    let bench = Bench::new(8);
    let (come, came) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let parks: Part = Box::new(move |_, _| {
        come.send(()).expect("the test waits");
        goes_on.recv().expect("the test goes on");
    });
    let ends: Part = {
        let bench = Arc::clone(&bench);
        Box::new(move |job, finishing| finishing.set(bench.scheduler.finishing(job)))
    };
    let (job, ended) = bench.start([parks, ends]);
    came.recv_timeout(CEILING).expect("parked");
    bench.scheduler.enqueue(job);
    ended.recv_timeout(CEILING).expect("ended");
    bench.wait_until(|queue| queue.current.len() == 1);
    go_on.send(()).expect("it waits");
    bench.wait_until(|queue| queue.current.is_empty());
    assert!(bench.scheduler.is_idle());
    assert_eq!(bench.scheduler.finishing.load(Ordering::Relaxed), 0);
}

/// A thread that it starts would have the lowest priority, for ever.
#[test]
fn a_thread_that_gave_way_starts_none() {
    let bench = Bench::new(8);
    let (come, came) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (_, ended) = bench.start([Box::new(move |_, _| {
        come.send(()).expect("the test waits");
        goes_on.recv().expect("the test goes on");
    })]);
    came.recv_timeout(CEILING).expect("started");
    let waiting = thread::scope(|scope| {
        let other = scope.spawn(|| {
            Thread::current().give_way();
            bench.start([Box::new(|_, _| ())]).1
        });
        other.join().expect("started")
    });
    assert_eq!(bench.scheduler.stats().threads, 1);
    bench.scheduler.try_again();
    waiting.recv_timeout(CEILING).expect("ended");
    go_on.send(()).expect("it waits");
    ended.recv_timeout(CEILING).expect("ended");
}
