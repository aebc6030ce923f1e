//! Who computes when.
//!
//! In: runs that can go on. Out: threads that let them, no more at once than there are permits. A
//! run that waits for the host holds no permit, and one that only waits for promises holds no
//! thread either; a run that computes for long steps aside while others wait, so no run keeps
//! another from running. Threads are started when they are needed and end when they are not.
//!
//! Handing work to a sleeping thread costs two wake-ups, more than most runs take. So the last
//! thread to run out of work looks out for more for a moment before it sleeps.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    run::Run,
    runtime::Inner,
    sync::{Condvar, Mutex},
};

/// How long a thread looks out for work before it sleeps.
const SPIN: Duration = Duration::from_micros(60);

/// How long a thread sleeps before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// How often a thread that waits for a permit looks whether its run has ended.
const PERMIT_LOOK: Duration = Duration::from_millis(10);

/// The stack of a thread: what the engine may use, and as much again for everything around it.
const STACK_BYTES: usize = 2 * crate::isolate::STACK_LIMIT_BYTES * crate::sanitized::FRAMES;

/// Threads beyond the permits: those whose run stepped aside or waits in a host call.
const EXTRA_THREADS: usize = 56;

pub(crate) struct Scheduler {
    queue: Mutex<Queue>,
    work: Condvar,
    /// How many wait for a permit, for a look without the lock.
    waiting: AtomicUsize,
    /// Threads whose run has settled and which will look for another at once.
    finishing: AtomicUsize,
    permits: usize,
}

struct Queue {
    /// Runs that need a thread and a permit, with the turn that they came in.
    ready: VecDeque<(u64, Arc<Run>)>,
    /// Threads in the middle of a run that let others go first; they need a permit.
    aside: VecDeque<(u64, Arc<Resume>)>,
    /// Threads whose host call was answered. They go before all others: what holds a thread is to
    /// end soon.
    answered: VecDeque<Arc<Resume>>,
    /// The turn of whoever comes next.
    turn: u64,
    /// Permits in use.
    computing: usize,
    /// Threads that sleep and were not yet told of work.
    sleeping: usize,
    /// How many of those that sleep were told, and have not woken yet.
    told: usize,
    /// Nothing will come any more: threads without work end.
    closed: bool,
    spinning: bool,
    threads: usize,
    /// Runs on a thread now; a run whose thread does not come back is marked.
    current: Vec<Current>,
    /// Threads that had their permit taken away because they do not come back.
    stuck: usize,
}

struct Current {
    run: Arc<Run>,
    /// Whether its thread has a permit: not while it waits, nor once it was given up on.
    permit: bool,
    stuck: bool,
}

/// A thread that waits for a permit.
#[derive(Default)]
struct Resume {
    granted: Mutex<bool>,
    wake: Condvar,
}

/// What the scheduler can tell of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchedulerStats {
    pub(crate) computing: usize,
    pub(crate) queued: usize,
    pub(crate) threads: usize,
    pub(crate) stuck: usize,
}

impl Scheduler {
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            queue: Mutex::new(Queue {
                ready: VecDeque::new(),
                aside: VecDeque::new(),
                answered: VecDeque::new(),
                turn: 0,
                computing: 0,
                sleeping: 0,
                told: 0,
                closed: false,
                spinning: false,
                threads: 0,
                current: Vec::new(),
                stuck: 0,
            }),
            work: Condvar::new(),
            waiting: AtomicUsize::new(0),
            finishing: AtomicUsize::new(0),
            permits,
        }
    }

    /// Has a run computed as soon as there is a permit. The runtime lends its threads.
    pub(crate) fn enqueue(&self, run: Arc<Run>) {
        let runtime = Arc::clone(run.runtime());
        let mut queue = self.queue.lock();
        let turn = queue.next_turn();
        queue.ready.push_back((turn, run));
        self.count_waiting(&queue);
        self.call_for_help(queue, &runtime);
    }

    /// Whether anybody waits for a permit.
    pub(crate) fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The calling thread has only to clean up before it looks for work: no other need be woken.
    pub(crate) fn finishing(&self) {
        self.finishing.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends the threads home that have nothing to do.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.work.notify_all();
    }

    /// What there is to tell.
    pub(crate) fn stats(&self) -> SchedulerStats {
        let queue = self.queue.lock();
        SchedulerStats {
            computing: queue.computing,
            queued: queue.ready.len(),
            threads: queue.threads,
            stuck: queue.stuck,
        }
    }

    /// The runs that are on a thread now.
    pub(crate) fn current(&self) -> Vec<Arc<Run>> {
        let queue = self.queue.lock();
        queue.current.iter().filter(|current| !current.stuck).map(|c| Arc::clone(&c.run)).collect()
    }

    /// Takes the permit of a run away from a thread that does not come back.
    pub(crate) fn abandon(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        let Some(current) = queue.find(run).filter(|current| !current.stuck) else { return };
        current.stuck = true;
        queue.stuck += 1;
        queue.give_up_permit(run);
        self.call_for_help(queue, run.runtime());
    }

    /// Gives up the calling thread's permit while its run waits.
    pub(crate) fn release_permit(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        queue.give_up_permit(run);
        self.call_for_help(queue, run.runtime());
    }

    /// Waits for a permit after a host call was answered.
    pub(crate) fn take_permit(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        if queue.computing < self.permits {
            queue.computing += 1;
            queue.note_permit(run);
            return;
        }
        let resume = Arc::new(Resume::default());
        queue.answered.push_back(Arc::clone(&resume));
        self.wait_for_permit(queue, run, &resume);
    }

    /// Lets others compute first, where there are threads for that.
    pub(crate) fn step_aside(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        if queue.threads >= self.permits + EXTRA_THREADS {
            return;
        }
        let resume = Arc::new(Resume::default());
        let turn = queue.next_turn();
        queue.aside.push_back((turn, Arc::clone(&resume)));
        queue.give_up_permit(run);
        self.count_waiting(&queue);
        self.call_for_help(queue, run.runtime());
        self.wait_for_permit(self.queue.lock(), run, &resume);
    }

    /// Waits until the permit is there, or the run has ended, which needs none to clean up.
    fn wait_for_permit(&self, queue: MutexGuard<'_, Queue>, run: &Arc<Run>, resume: &Arc<Resume>) {
        self.count_waiting(&queue);
        drop(queue);
        let mut granted = resume.granted.lock();
        while !*granted && !run.ending.is_raised() {
            granted = resume.wake.wait_for(granted, PERMIT_LOOK).0;
        }
        drop(granted);
        let mut queue = self.queue.lock();
        if *resume.granted.lock() {
            queue.note_permit(run);
        } else {
            queue.aside.retain(|(_, other)| !Arc::ptr_eq(other, resume));
            queue.answered.retain(|other| !Arc::ptr_eq(other, resume));
            self.count_waiting(&queue);
        }
    }

    fn count_waiting(&self, queue: &Queue) {
        self.waiting.store(queue.waiting(), Ordering::Relaxed);
    }

    /// Gives permits to threads whose turn it is; then the next run, for a thread that has none.
    fn pop(&self, queue: &mut Queue) -> Option<Arc<Run>> {
        let mut next = None;
        while queue.computing < self.permits && next.is_none() {
            if !queue.grant_turn() {
                let (_, run) = queue.ready.pop_front()?;
                queue.computing += 1;
                next = Some(run);
            }
        }
        self.count_waiting(queue);
        next
    }

    /// Makes sure that somebody takes up the work in the queue.
    fn call_for_help(&self, mut queue: MutexGuard<'_, Queue>, runtime: &Arc<Inner>) {
        while queue.computing < self.permits && queue.grant_turn() {}
        let soon = usize::from(queue.spinning) + self.finishing.load(Ordering::Relaxed);
        if queue.ready.len() <= soon || queue.computing >= self.permits {
            return self.count_waiting(&queue);
        }
        if queue.sleeping > 0 {
            queue.sleeping -= 1;
            queue.told += 1;
            self.count_waiting(&queue);
            drop(queue);
            self.work.notify_one();
        } else if queue.threads < self.permits + EXTRA_THREADS {
            queue.threads += 1;
            self.count_waiting(&queue);
            drop(queue);
            self.start_thread(runtime);
        } else {
            // No thread for the run whose turn it is: those that have one go on meanwhile.
            while queue.computing < self.permits && queue.grant_any() {}
            self.count_waiting(&queue);
        }
    }

    fn start_thread(&self, runtime: &Arc<Inner>) {
        let weak = Arc::downgrade(runtime);
        let thread = std::thread::Builder::new()
            .name("isolane".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || work(&weak));
        if thread.is_err() {
            // The system has no thread left; the work waits for one of those that run.
            self.queue.lock().threads -= 1;
        }
    }

    /// The next run for the calling thread, `None` when it should end.
    fn next(&self, runtime: &Inner) -> Option<Arc<Run>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(run) = self.pop(&mut queue) {
                queue.current.push(Current { run: Arc::clone(&run), permit: true, stuck: false });
                let more = !queue.ready.is_empty() && queue.computing < self.permits;
                if more {
                    let inner = Arc::clone(run.runtime());
                    self.call_for_help(queue, &inner);
                }
                return Some(run);
            }
            if !queue.spinning {
                queue.spinning = true;
                drop(queue);
                self.look_out();
                queue = self.queue.lock();
                queue.spinning = false;
                if !queue.ready.is_empty() && queue.computing < self.permits {
                    continue;
                }
            }
            drop(queue);
            runtime.pool.fill();
            queue = self.queue.lock();
            if !queue.ready.is_empty() && queue.computing < self.permits {
                continue;
            }
            let told;
            (queue, told) = self.sleep(queue);
            if !told && (queue.ready.is_empty() || queue.computing >= self.permits) {
                queue.threads -= 1;
                return None;
            }
        }
    }

    /// Sleeps until this thread is told of work, or nobody told it for long; says which. A thread may
    /// also wake for no reason, and then nobody has counted it off.
    fn sleep<'q>(&self, mut queue: MutexGuard<'q, Queue>) -> (MutexGuard<'q, Queue>, bool) {
        queue.sleeping += 1;
        while !queue.closed {
            let timed_out;
            (queue, timed_out) = self.work.wait_for(queue, LINGER);
            if queue.told > 0 {
                queue.told -= 1;
                return (queue, true);
            }
            if timed_out {
                break;
            }
        }
        queue.sleeping -= 1;
        (queue, false)
    }

    fn look_out(&self) {
        let started = Instant::now();
        while self.waiting.load(Ordering::Relaxed) == 0 && started.elapsed() < SPIN {
            std::hint::spin_loop();
        }
    }

    /// Takes the calling thread's run off it.
    fn done(&self, run: &Arc<Run>, finishing: bool) {
        let mut queue = self.queue.lock();
        if finishing {
            self.finishing.fetch_sub(1, Ordering::Relaxed);
        }
        queue.give_up_permit(run);
        let place = queue.current.iter().position(|current| Arc::ptr_eq(&current.run, run));
        if place.is_some_and(|place| queue.current.swap_remove(place).stuck) {
            queue.stuck -= 1;
        }
    }
}

impl Queue {
    fn waiting(&self) -> usize {
        self.ready.len() + self.aside.len() + self.answered.len()
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Gives a permit to the thread whose turn it is; false if it is a run's turn, or nobody's.
    fn grant_turn(&mut self) -> bool {
        let run = self.ready.front().map_or(u64::MAX, |(turn, _)| *turn);
        let aside = self.aside.front().map_or(u64::MAX, |(turn, _)| *turn);
        (!self.answered.is_empty() || aside < run) && self.grant_any()
    }

    /// Gives a permit to the thread that has waited longest; false if none waits.
    fn grant_any(&mut self) -> bool {
        let resume =
            self.answered.pop_front().or_else(|| self.aside.pop_front().map(|(_, resume)| resume));
        let Some(resume) = resume else { return false };
        self.computing += 1;
        *resume.granted.lock() = true;
        resume.wake.notify_one();
        true
    }

    fn find(&mut self, run: &Arc<Run>) -> Option<&mut Current> {
        self.current.iter_mut().find(|current| Arc::ptr_eq(&current.run, run))
    }

    fn give_up_permit(&mut self, run: &Arc<Run>) {
        let had = self.find(run).is_some_and(|current| std::mem::take(&mut current.permit));
        self.computing -= usize::from(had);
    }

    /// A permit that was counted belongs to that run now.
    fn note_permit(&mut self, run: &Arc<Run>) {
        if let Some(current) = self.find(run) {
            current.permit = true;
        }
    }
}

/// What a thread does: runs, until there are none for a while or the runtime is gone.
fn work(runtime: &Weak<Inner>) {
    while let Some(inner) = runtime.upgrade() {
        let Some(run) = inner.scheduler.next(&inner) else { return };
        // A panic here is a bug of ours, and the end of one run.
        let finishing = catch_unwind(AssertUnwindSafe(|| run.compute())).unwrap_or_else(|_panic| {
            run.break_down();
            false
        });
        inner.scheduler.done(&run, finishing);
        inner.computed();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{Completion, Host, HostCall, Request, Runtime, RuntimeOptions, SourceText, Value};

    const CEILING: Duration = Duration::from_secs(30);

    /// Tells of the end of a run.
    struct Told(mpsc::Sender<()>);

    impl Host for Told {
        fn call(&self, _: u32, _: Value, _: HostCall) {}
        fn function_settled(&self, _: u32, _: Completion) {}
        fn promise_settled(&self, _: u32, _: Completion) {}
        fn settled(&self) {
            self.0.send(()).expect("the test waits");
        }
    }

    fn start(runtime: &Runtime, source: &str) -> (crate::Remote, mpsc::Receiver<()>) {
        let (sender, settled) = mpsc::channel();
        let request = Request::new(SourceText::from(source.to_owned()));
        (runtime.start(request, Arc::new(Told(sender))).expect("a valid request"), settled)
    }

    #[test]
    fn a_thread_that_wakes_for_no_reason_is_counted_once() {
        let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
        let (_, settled) = start(&runtime, "export default 1");
        settled.recv_timeout(CEILING).expect("settled");
        let scheduler = runtime.scheduler();
        let since = Instant::now();
        while scheduler.queue.lock().sleeping == 0 && since.elapsed() < CEILING {
            thread::yield_now();
        }
        for _ in 0..3 {
            scheduler.work.notify_all();
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(scheduler.queue.lock().sleeping, 1);
        // It is taken, and another has to come for the next run.
        let (busy, ended) = start(&runtime, "for (;;);");
        let (_, settled) = start(&runtime, "export default 1");
        settled.recv_timeout(CEILING).expect("settled beside a run that does not end");
        busy.terminate(None);
        ended.recv_timeout(CEILING).expect("settled");
    }
}
