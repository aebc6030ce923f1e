//! Who computes when.
//!
//! In: runs that can go on. Out: threads that let them, no more at once than there are permits. A
//! run that waits for the host holds no permit, and one that only waits for promises holds no
//! thread either; a run that computes for long steps aside while others wait, so no run keeps
//! another from running. Runs that are new or woken and threads whose host call was answered take
//! turns; threads that stepped aside have theirs when none of those waits, and now and then anyway. So
//! none of these waits for long, however many the others are.
//! Threads are started when they are needed and end when they are not.
//!
//! Handing work to a sleeping thread costs two wake-ups, more than most runs take. So the last
//! thread to run out of work looks out for more for a moment before it sleeps.

use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    run::Run,
    stack::{self, Stack},
};
use crate::{
    binding::{adaptive_spin::AdaptiveSpin, handle::RunControl},
    os::{
        sync::{Condvar, Mutex},
        thread::Thread,
    },
    runtime::threads::resources::Resources,
};

/// How long a thread sleeps before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// Threads beyond the permits whose run waits in a host call. The host answers soon: until it does,
/// others can wait, for a while.
const WAITING_THREADS: usize = 56;

/// How long none of those threads takes up a run until there is another one: they may all have runs that
/// call the host for ever.
const THREAD_WAIT: Duration = Duration::from_millis(100);

/// Threads beyond those whose run stepped aside, which may be for as long as it computes, or keeps
/// others waiting for its thread. A run in the middle of its code is on the stack of its thread: once all
/// threads are taken by such runs, others wait until one of those ends.
const ASIDE_THREADS: usize = 1_000;

/// How many permits go to others before the next one goes to a thread that stepped aside: most of them
/// are given back in no time, and that one is used for a whole slice.
const BEFORE_ASIDE: usize = 8;

pub(crate) struct Scheduler {
    queue: Mutex<Queue>,
    work: Condvar,
    /// How many wait for a permit, for a look without the lock.
    waiting: AtomicUsize,
    /// Threads whose run has settled and which will look for another at once.
    finishing: AtomicUsize,
    /// Threads that had their permit taken away because they do not come back.
    stuck: AtomicUsize,
    /// With new work.
    spin: AdaptiveSpin,
    permits: usize,
}

struct Queue {
    /// Runs that need a thread and a permit.
    ready: VecDeque<Arc<Run>>,
    /// Since when no run of those was taken up.
    ready_since: Instant,
    /// Threads whose host call was answered; they need a permit.
    answered: VecDeque<Arc<Resume>>,
    /// Threads in the middle of a run that let others go first; they need a permit.
    aside: VecDeque<Arc<Resume>>,
    /// Who got the last permit.
    served: Kind,
    /// How many permits went to others since one went to a thread that had stepped aside.
    before_aside: usize,
    /// Permits in use.
    computing: usize,
    /// Threads that sleep and were not yet told of work.
    sleeping: usize,
    /// How many of those that sleep were told, and have not woken yet.
    told: usize,
    /// Nothing will come any more: threads without work end.
    closed: bool,
    spinning: bool,
    /// Threads that tidy up before they sleep, and look for work once more after that.
    tidying: usize,
    threads: usize,
    /// How many of them have been started and have not come yet.
    starting: usize,
    /// Runs on a thread now; a run whose thread does not come back is marked.
    current: Vec<Current>,
}

/// How far the thread of a run is with it, which the run keeps.
#[derive(Debug, Default)]
pub(crate) struct Stage(AtomicU8);

impl Stage {
    /// It may be at code of the sandbox.
    const WITH_CODE: u8 = 0;
    /// It is one of those that are [`finishing`](Scheduler::finishing).
    const FINISHING: u8 = 1;
    /// Nobody waits for it.
    const GIVEN_UP: u8 = 2;

    fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }

    /// Returns the stage before.
    fn set(&self, stage: u8) -> u8 {
        self.0.swap(stage, Ordering::Relaxed)
    }

    fn advance(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// What waits for a permit.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ready,
    Answered,
    Aside,
}

struct Current {
    run: Arc<Run>,
    thread: Thread,
    /// Whether its thread has a permit: not while it waits, nor once it was given up on.
    permit: bool,
    stuck: bool,
}

/// A thread that waits for a permit.
struct Resume {
    run: Arc<Run>,
    granted: Mutex<bool>,
    wake: Condvar,
}

impl Resume {
    fn new(run: &Arc<Run>) -> Arc<Self> {
        let (granted, wake) = (Mutex::default(), Condvar::default());
        Arc::new(Self { run: Arc::clone(run), granted, wake })
    }

    /// Has the thread look whether it still has to wait.
    fn look_up(&self) {
        // Under its lock, so that it does not miss this between a look and its sleep.
        let _granted = self.granted.lock();
        self.wake.notify_one();
    }
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
                ready_since: Instant::now(),
                answered: VecDeque::new(),
                aside: VecDeque::new(),
                served: Kind::Aside,
                before_aside: 0,
                computing: 0,
                sleeping: 0,
                told: 0,
                closed: false,
                spinning: false,
                tidying: 0,
                threads: 0,
                starting: 0,
                current: Vec::new(),
            }),
            work: Condvar::new(),
            waiting: AtomicUsize::new(0),
            finishing: AtomicUsize::new(0),
            stuck: AtomicUsize::new(0),
            spin: AdaptiveSpin::default(),
            permits,
        }
    }

    /// Has a run computed as soon as there is a permit. The runtime lends its threads.
    pub(crate) fn enqueue(&self, run: Arc<Run>) {
        let runtime = Arc::clone(run.resources());
        let mut queue = self.queue.lock();
        if queue.ready.is_empty() {
            queue.ready_since = Instant::now();
        }
        queue.ready.push_back(run);
        self.count_waiting(&queue);
        self.call_for_help(queue, &runtime);
    }

    /// Whether anybody waits for a permit.
    pub(crate) fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// How many threads are about to look for work.
    #[cfg(test)]
    pub(crate) fn threads_finishing(&self) -> usize {
        self.finishing.load(Ordering::Relaxed)
    }

    /// The calling thread, which has that run, has only to clean up before it looks for work: no other
    /// need be woken. Returns whether it is counted on.
    pub(crate) fn finishing(&self, run: &Run) -> bool {
        let counted_on = run.stage.advance(Stage::WITH_CODE, Stage::FINISHING);
        self.finishing.fetch_add(usize::from(counted_on), Ordering::Relaxed);
        counted_on
    }

    /// Threads that do not come back from the engine.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
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
            queued: queue.live_waiting(),
            threads: queue.threads,
            stuck: self.stuck(),
        }
    }

    /// Whether as many wait for their turn as may. Those for whom there is a permit do not wait.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        let queue = self.queue.lock();
        let allowed = most + self.permits.saturating_sub(queue.computing);
        // Only a queue that looks full is looked through for runs that have been ended.
        queue.waiting() >= allowed && queue.live_waiting() >= allowed
    }

    /// Whether no thread has a run, nor will get one of those that are there.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.current.iter().all(|current| current.stuck)
            && queue.ready.iter().all(|run| run.left_the_queue())
    }

    /// The runs that are on a thread now.
    pub(crate) fn current(&self) -> Vec<Arc<Run>> {
        let queue = self.queue.lock();
        queue.current.iter().filter(|current| !current.stuck).map(|c| Arc::clone(&c.run)).collect()
    }

    /// Takes the permit of a run away from a thread that does not come back. The thread has what
    /// time others leave it, and ends when it does come back.
    pub(crate) fn abandon(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        let Some(current) = queue.find(run).filter(|current| !current.stuck) else { return };
        current.stuck = true;
        // Under the lock, without which the thread does not end.
        current.thread.give_way();
        self.stuck.fetch_add(1, Ordering::Relaxed);
        if run.stage.set(Stage::GIVEN_UP) == Stage::FINISHING {
            self.finishing.fetch_sub(1, Ordering::Relaxed);
        }
        queue.give_up_permit(run);
        let waiting = queue.take_out(run);
        self.call_for_help(queue, run.resources());
        for resume in waiting {
            resume.look_up();
        }
    }

    /// Gives up the calling thread's permit while its run waits.
    pub(crate) fn release_permit(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        queue.give_up_permit(run);
        self.call_for_help(queue, run.resources());
    }

    /// Waits for a permit after a host call was answered.
    pub(crate) fn take_permit(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        if queue.computing < self.permits {
            queue.computing += 1;
            queue.note_permit(run);
            return;
        }
        let resume = Resume::new(run);
        queue.answered.push_back(Arc::clone(&resume));
        self.wait_for_permit(queue, run, &resume);
    }

    /// Lets others compute first, where there are threads for that.
    pub(crate) fn step_aside(&self, run: &Arc<Run>) {
        let mut queue = self.queue.lock();
        let no_thread = self.threads_left(&queue) == 0 && queue.sleeping == 0;
        if no_thread && queue.aside.is_empty() && queue.answered.is_empty() {
            return;
        }
        let resume = Resume::new(run);
        queue.aside.push_back(Arc::clone(&resume));
        queue.give_up_permit(run);
        self.count_waiting(&queue);
        self.call_for_help(queue, run.resources());
        self.wait_for_permit(self.queue.lock(), run, &resume);
    }

    /// Waits until the permit is there, or none is needed: to clean up after a run that has ended, or
    /// because the thread was given up on.
    fn wait_for_permit(&self, queue: MutexGuard<'_, Queue>, run: &Arc<Run>, resume: &Arc<Resume>) {
        self.count_waiting(&queue);
        drop(queue);
        let mut granted = resume.granted.lock();
        while !*granted && !run.termination.is_raised() && !Thread::has_given_way() {
            granted = resume.wake.wait(granted);
        }
        let waits_no_more = !*granted;
        drop(granted);
        if waits_no_more {
            let mut queue = self.queue.lock();
            queue.take_out(run);
            self.count_waiting(&queue);
        }
    }

    /// Tells the thread of a run that was asked to end, should it wait for a permit.
    pub(crate) fn tell_of_end(&self, run: &Arc<Run>) {
        let queue = self.queue.lock();
        let mut waiting = queue.answered.iter().chain(&queue.aside);
        let resume = waiting.find(|resume| Arc::ptr_eq(&resume.run, run)).cloned();
        drop(queue);
        if let Some(resume) = resume {
            resume.look_up();
        }
    }

    fn count_waiting(&self, queue: &Queue) {
        self.waiting.store(queue.waiting(), Ordering::Relaxed);
    }

    /// Gives permits to threads whose turn it is; then the next run, for a thread that has none.
    /// Those that were ended before they began are put with the `gone`.
    fn pop(&self, queue: &mut Queue, gone: &mut Vec<Arc<Run>>) -> Option<Arc<Run>> {
        let mut next = None;
        while queue.computing < self.permits && next.is_none() {
            while queue.ready.front().is_some_and(|run| run.left_the_queue()) {
                gone.extend(queue.ready.pop_front());
            }
            if !queue.grant_turn() {
                next = queue.ready.pop_front();
                if next.is_none() {
                    break;
                }
                queue.ready_since = Instant::now();
                queue.serve(Kind::Ready);
            }
        }
        self.count_waiting(queue);
        next
    }

    /// Makes sure that somebody takes up the work in the queue.
    fn call_for_help(&self, mut queue: MutexGuard<'_, Queue>, runtime: &Arc<Resources>) {
        while queue.computing < self.permits && queue.grant_turn() {}
        let finishing = self.finishing.load(Ordering::Relaxed);
        let soon =
            usize::from(queue.spinning) + queue.tidying + queue.starting + queue.told + finishing;
        if queue.ready.len() <= soon || queue.computing >= self.permits {
            return self.count_waiting(&queue);
        }
        if queue.sleeping > 0 {
            queue.sleeping -= 1;
            queue.told += 1;
            self.count_waiting(&queue);
            drop(queue);
            self.work.notify_one();
        } else if self.threads_left(&queue) > 0 {
            self.start_thread(queue, runtime);
        } else {
            self.go_on_without(queue);
        }
    }

    /// There is no thread for the run whose turn it is: those that have one go on meanwhile.
    fn go_on_without(&self, mut queue: MutexGuard<'_, Queue>) {
        while queue.computing < self.permits && queue.grant_any() {}
        self.count_waiting(&queue);
    }

    /// How many threads may still be started. Those that do not come back keep nobody from theirs.
    fn threads_left(&self, queue: &Queue) -> usize {
        let aside = if !queue.ready.is_empty() && queue.ready_since.elapsed() > THREAD_WAIT {
            ASIDE_THREADS
        } else {
            queue.aside.len().min(ASIDE_THREADS)
        };
        (self.permits + WAITING_THREADS + aside + self.stuck()).saturating_sub(queue.threads)
    }

    /// Whether there is any thread that can take up a run, or can be one.
    pub(crate) fn has_threads(&self, runtime: &Arc<Resources>) -> bool {
        let queue = self.queue.lock();
        queue.threads > self.stuck() || self.start_thread(queue, runtime)
    }

    /// Looks for threads for what waits, which the system may have refused before.
    pub(crate) fn try_again(&self, runtime: &Arc<Resources>) {
        self.call_for_help(self.queue.lock(), runtime);
    }

    fn start_thread(&self, mut queue: MutexGuard<'_, Queue>, runtime: &Arc<Resources>) -> bool {
        if Thread::has_given_way() {
            // What it starts would give way as well: the watchdog does it.
            self.go_on_without(queue);
            return true;
        }
        self.count_waiting(&queue);
        queue.threads += 1;
        queue.starting += 1;
        drop(queue);
        let weak = Arc::downgrade(runtime);
        let thread = stack::spawn("isolane", move |stack| work(&weak, stack));
        if thread.is_err() {
            // The system has none left: the work waits for one of those that run, and if there is
            // none, for the watchdog to try again.
            let mut queue = self.queue.lock();
            queue.threads -= 1;
            queue.starting -= 1;
            self.go_on_without(queue);
        }
        thread.is_ok()
    }

    /// The next run for the calling thread, which may be a new one; `None` when it should end.
    fn next(
        &self,
        runtime: &Resources,
        thread: &Thread,
        stack: &Stack,
        new: bool,
    ) -> Option<Arc<Run>> {
        // Dropped after the lock is: what runs hold is not ours.
        let mut gone = Vec::new();
        // Since when it looks for a run, and whether looking was enough.
        let mut idle: Option<(Instant, bool)> = None;
        let mut queue = self.queue.lock();
        queue.starting -= usize::from(new);
        loop {
            if let Some(run) = self.pop(&mut queue, &mut gone) {
                let run_here = Arc::clone(&run);
                let thread = thread.clone();
                queue.current.push(Current { run: run_here, thread, permit: true, stuck: false });
                let more = queue.has_work(self.permits);
                if more {
                    let inner = Arc::clone(run.resources());
                    self.call_for_help(queue, &inner);
                }
                if let Some((since, found)) = idle {
                    self.spin.learn(Instant::elapsed(&since), found);
                }
                return Some(run);
            }
            if !queue.spinning {
                queue.spinning = true;
                drop(queue);
                gone.clear();
                let since = idle.map_or_else(Instant::now, |(since, _)| since);
                idle = Some((since, self.spin.look(since, || self.others_wait())));
                queue = self.queue.lock();
                queue.spinning = false;
                if queue.has_work(self.permits) {
                    continue;
                }
            }
            queue.tidying += 1;
            drop(queue);
            gone.clear();
            runtime.pool.fill(|| self.others_wait());
            stack.give_back();
            queue = self.queue.lock();
            queue.tidying -= 1;
            if queue.has_work(self.permits) {
                continue;
            }
            let told;
            (queue, told) = self.sleep(queue);
            if !told && !queue.has_work(self.permits) {
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

    /// Takes the calling thread's run off it. Returns whether the thread may look for another: one
    /// that was given up on has others in its place, and ends.
    fn done(&self, run: &Run, thread: &Thread, finishing: bool) -> bool {
        let mut queue = self.queue.lock();
        if finishing && run.stage.is(Stage::FINISHING) {
            self.finishing.fetch_sub(1, Ordering::Relaxed);
        }
        let place = queue.current.iter().position(|current| current.thread.is(thread));
        let Some(current) = place.map(|place| queue.current.remove(place)) else { return true };
        queue.computing -= usize::from(current.permit);
        if current.stuck {
            self.stuck.fetch_sub(1, Ordering::Relaxed);
            queue.threads -= 1;
        }
        !current.stuck
    }
}

impl Queue {
    fn waiting(&self) -> usize {
        self.ready.len() + self.aside.len() + self.answered.len()
    }

    /// Whether there is a run for a thread that has none.
    fn has_work(&self, permits: usize) -> bool {
        !self.ready.is_empty() && self.computing < permits
    }

    /// Those that wait and have not been ended.
    fn live_waiting(&self) -> usize {
        let ready = self.ready.iter().filter(|run| run.running()).count();
        ready + self.aside.len() + self.answered.len()
    }

    /// Gives a permit to a thread if it is a thread's turn; false if it is a run's, or nobody's.
    fn grant_turn(&mut self) -> bool {
        let order = match self.served {
            _ if self.before_aside >= BEFORE_ASIDE => [Kind::Aside, Kind::Ready, Kind::Answered],
            Kind::Ready => [Kind::Answered, Kind::Ready, Kind::Aside],
            Kind::Answered | Kind::Aside => [Kind::Ready, Kind::Answered, Kind::Aside],
        };
        let turn = order.into_iter().find(|kind| match kind {
            Kind::Ready => !self.ready.is_empty(),
            Kind::Answered => !self.answered.is_empty(),
            Kind::Aside => !self.aside.is_empty(),
        });
        turn.is_some_and(|kind| self.grant(kind))
    }

    /// Gives a permit to a thread that waits, whosever turn it is; false if none waits.
    fn grant_any(&mut self) -> bool {
        let first = if self.served == Kind::Answered { Kind::Aside } else { Kind::Answered };
        let other = if first == Kind::Aside { Kind::Answered } else { Kind::Aside };
        self.grant(first) || self.grant(other)
    }

    fn grant(&mut self, kind: Kind) -> bool {
        let resume = match kind {
            Kind::Ready => None,
            Kind::Answered => self.answered.pop_front(),
            Kind::Aside => self.aside.pop_front(),
        };
        let Some(resume) = resume else { return false };
        self.serve(kind);
        self.note_permit(&resume.run);
        *resume.granted.lock() = true;
        resume.wake.notify_one();
        true
    }

    /// Takes those out that wait for a permit with that run.
    fn take_out(&mut self, run: &Arc<Run>) -> Vec<Arc<Resume>> {
        let mut taken = Vec::new();
        for waiting in [&mut self.aside, &mut self.answered] {
            waiting.retain(|resume| {
                let stays = !Arc::ptr_eq(&resume.run, run);
                if !stays {
                    taken.push(Arc::clone(resume));
                }
                stays
            });
        }
        taken
    }

    /// Counts a permit that goes to one of that kind.
    fn serve(&mut self, kind: Kind) {
        self.computing += 1;
        self.served = kind;
        self.before_aside = if kind == Kind::Aside { 0 } else { self.before_aside + 1 };
    }

    /// The thread that computes a run: the one that parked it may still be on its way out.
    fn find(&mut self, run: &Arc<Run>) -> Option<&mut Current> {
        self.current.iter_mut().rev().find(|current| Arc::ptr_eq(&current.run, run))
    }

    fn give_up_permit(&mut self, run: &Arc<Run>) {
        let had = self.find(run).is_some_and(|current| std::mem::take(&mut current.permit));
        self.computing -= usize::from(had);
    }

    /// A permit that was counted belongs to that run now, unless its thread was given up on.
    fn note_permit(&mut self, run: &Arc<Run>) {
        match self.find(run) {
            Some(current) if !current.stuck => current.permit = true,
            _ => self.computing -= 1,
        }
    }
}

/// What a thread does: runs, until there are none for a while or the runtime is gone.
fn work(runtime: &Weak<Resources>, stack: &Stack) {
    let thread = Thread::current();
    let mut new = true;
    while let Some(inner) = runtime.upgrade() {
        let next = inner.scheduler.next(&inner, &thread, stack, std::mem::take(&mut new));
        let Some(run) = next else { return };
        let finishing = Cell::new(false);
        // A panic here is a bug of ours, and the end of one run.
        if catch_unwind(AssertUnwindSafe(|| run.compute(&finishing))).is_err() {
            run.break_down();
        }
        let goes_on = inner.scheduler.done(&run, &thread, finishing.get());
        inner.computed();
        if !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
