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
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::{run::Run, runtime::Inner};

/// How long a thread looks out for work before it sleeps.
const SPIN: Duration = Duration::from_micros(60);

/// How long a thread sleeps before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// How often a thread that waits for a permit looks whether its run has ended.
const PERMIT_LOOK: Duration = Duration::from_millis(10);

/// The stack of a thread: what the engine may use, and as much again for everything around it.
const STACK_BYTES: usize = 2 * crate::isolate::STACK_LIMIT_BYTES;

/// Threads beyond the permits: those whose run stepped aside or waits in a host call.
const EXTRA_THREADS: usize = 56;

pub(crate) struct Scheduler {
    queue: Mutex<Queue>,
    work: Condvar,
    /// The length of `ready`, for a look without the lock.
    waiting: AtomicUsize,
    /// Threads whose run has settled and which will look for another at once.
    finishing: AtomicUsize,
    permits: usize,
}

struct Queue {
    ready: VecDeque<Ticket>,
    /// Permits in use.
    computing: usize,
    /// Threads that sleep and were not yet told of work.
    sleeping: usize,
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

/// Somebody who waits for a permit.
enum Ticket {
    /// A run that needs a thread as well.
    Run(Arc<Run>),
    /// A thread in the middle of a run.
    Resume(Arc<Resume>),
}

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
                computing: 0,
                sleeping: 0,
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
        self.push(&mut queue, Ticket::Run(run));
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

    /// Waits for a permit, or until the run has ended, which needs none to clean up.
    pub(crate) fn take_permit(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        if queue.computing < self.permits && queue.ready.is_empty() {
            queue.computing += 1;
            queue.note_permit(run);
            return;
        }
        let resume = Arc::new(Resume::default());
        self.push(&mut queue, Ticket::Resume(Arc::clone(&resume)));
        drop(queue);
        let mut granted = resume.granted.lock();
        while !*granted && !run.ending.is_raised() {
            resume.wake.wait_for(&mut granted, PERMIT_LOOK);
        }
        drop(granted);
        let mut queue = self.queue.lock();
        if *resume.granted.lock() {
            queue.note_permit(run);
        } else {
            queue.ready.retain(
                |ticket| !matches!(ticket, Ticket::Resume(other) if Arc::ptr_eq(other, &resume)),
            );
            self.waiting.store(queue.ready.len(), Ordering::Relaxed);
        }
    }

    /// Lets others compute first, where there are threads for that.
    pub(crate) fn step_aside(&self, run: &Arc<Run>) {
        let crowded = self.queue.lock().threads >= self.permits + EXTRA_THREADS;
        if !crowded {
            self.release_permit(run);
            self.take_permit(run);
        }
    }

    fn push(&self, queue: &mut Queue, ticket: Ticket) {
        queue.ready.push_back(ticket);
        self.waiting.store(queue.ready.len(), Ordering::Relaxed);
    }

    fn pop(&self, queue: &mut Queue) -> Option<Arc<Run>> {
        while queue.computing < self.permits {
            let ticket = queue.ready.pop_front()?;
            self.waiting.store(queue.ready.len(), Ordering::Relaxed);
            queue.computing += 1;
            match ticket {
                Ticket::Run(run) => return Some(run),
                Ticket::Resume(resume) => {
                    *resume.granted.lock() = true;
                    resume.wake.notify_one();
                }
            }
        }
        None
    }

    /// Makes sure that somebody takes up the work in the queue.
    fn call_for_help(&self, mut queue: MutexGuard<'_, Queue>, runtime: &Arc<Inner>) {
        while queue.computing < self.permits
            && matches!(queue.ready.front(), Some(Ticket::Resume(_)))
        {
            if let Some(Ticket::Resume(resume)) = queue.ready.pop_front() {
                self.waiting.store(queue.ready.len(), Ordering::Relaxed);
                queue.computing += 1;
                *resume.granted.lock() = true;
                resume.wake.notify_one();
            }
        }
        let soon = usize::from(queue.spinning) + self.finishing.load(Ordering::Relaxed);
        if queue.ready.len() <= soon || queue.computing >= self.permits {
            return;
        }
        if queue.sleeping > 0 {
            queue.sleeping -= 1;
            drop(queue);
            self.work.notify_one();
        } else if queue.threads < self.permits + EXTRA_THREADS {
            queue.threads += 1;
            drop(queue);
            self.start_thread(runtime);
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
            queue.sleeping += 1;
            if self.work.wait_for(&mut queue, LINGER).timed_out() {
                // Whoever calls for help counts a sleeper off; nobody did.
                if queue.sleeping > 0 {
                    queue.sleeping -= 1;
                }
                if queue.ready.is_empty() || queue.computing >= self.permits {
                    queue.threads -= 1;
                    return None;
                }
            }
        }
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
