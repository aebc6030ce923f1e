//! The threads that compute: how many there are, and what each does.
//!
//! In: jobs in the queue. Out: as many threads as are of use for them, which take them up one after another. They are
//! started when they are needed and end when they are not.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, MutexGuard, Weak, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    Scheduler,
    job::{Job, Owner, Stage},
    queue::{Current, Queue},
};
use crate::{
    os::thread::Thread,
    runtime::threads::stack::{self, Stack},
};

/// How long a thread sleeps before it ends.
const LINGER: Duration = Duration::from_secs(5);

/// Threads beyond the permits whose job waits in a host call. The host answers soon: until it does,
/// others can wait, for a while.
const WAITING_THREADS: usize = 56;

/// How long none of those threads takes up a job until there is another one: they may all have jobs that
/// call the host for ever.
const THREAD_WAIT: Duration = Duration::from_millis(100);

/// Threads beyond those whose job stepped aside, which may be for as long as it computes, or keeps
/// others waiting for its thread. A job in the middle of its code is on the stack of its thread: once all
/// threads are taken by such jobs, others wait until one of those ends.
const ASIDE_THREADS: usize = 1_000;

impl<J: Job> Scheduler<J> {
    /// Makes sure that somebody takes up the work in the queue.
    pub(super) fn call_for_help(&self, mut queue: MutexGuard<'_, Queue<J>>) {
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
            self.start_thread(queue);
        } else {
            self.go_on_without(queue);
        }
    }

    /// There is no thread for the job whose turn it is: those that have one go on meanwhile.
    fn go_on_without(&self, mut queue: MutexGuard<'_, Queue<J>>) {
        while queue.computing < self.permits && queue.grant_any() {}
        self.count_waiting(&queue);
    }

    /// How many threads may still be started. Those that do not come back keep nobody from theirs.
    pub(super) fn threads_left(&self, queue: &Queue<J>) -> usize {
        let aside = if !queue.ready.is_empty() && queue.ready_since.elapsed() > THREAD_WAIT {
            ASIDE_THREADS
        } else {
            queue.aside.len().min(ASIDE_THREADS)
        };
        (self.permits + WAITING_THREADS + aside + self.stuck()).saturating_sub(queue.threads)
    }

    /// Whether there is any thread that can take up a job, or can be one.
    pub(crate) fn has_threads(&self) -> bool {
        let queue = self.queue.lock();
        queue.threads > self.stuck() || self.start_thread(queue)
    }

    /// Looks for threads for what waits, which the system may have refused before.
    pub(crate) fn try_again(&self) {
        self.call_for_help(self.queue.lock());
    }

    fn start_thread(&self, mut queue: MutexGuard<'_, Queue<J>>) -> bool {
        if Thread::has_given_way() {
            // What it starts would give way as well: the watchdog does it.
            self.go_on_without(queue);
            return true;
        }
        self.count_waiting(&queue);
        queue.threads += 1;
        queue.starting += 1;
        drop(queue);
        let owner = Weak::clone(&self.owner);
        let thread = stack::spawn("isolane", move |stack| work(&owner, stack));
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

    /// The next job for the calling thread, which may be a new one; `None` when it should end.
    fn next(
        &self,
        owner: &dyn Owner<J>,
        thread: &Thread,
        stack: &Stack,
        new: bool,
    ) -> Option<Arc<J>> {
        // Dropped after the lock is: what jobs hold is not ours.
        let mut gone = Vec::new();
        // Since when it looks for a job, and whether looking was enough.
        let mut idle: Option<(Instant, bool)> = None;
        let mut queue = self.queue.lock();
        queue.starting -= usize::from(new);
        loop {
            if let Some(job) = self.pop(&mut queue, &mut gone) {
                let job_here = Arc::clone(&job);
                let thread = thread.clone();
                queue.current.push(Current { job: job_here, thread, permit: true, stuck: false });
                let more = queue.has_work(self.permits);
                if more {
                    self.call_for_help(queue);
                }
                if let Some((since, found)) = idle {
                    self.spin.learn(Instant::elapsed(&since), found);
                }
                return Some(job);
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
            owner.prepare(&|| self.others_wait());
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
    fn sleep<'q>(&self, mut queue: MutexGuard<'q, Queue<J>>) -> (MutexGuard<'q, Queue<J>>, bool) {
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

    /// Takes the calling thread's job off it. Returns whether the thread may look for another: one
    /// that was given up on has others in its place, and ends.
    fn done(&self, job: &J, thread: &Thread, finishing: bool) -> bool {
        let mut queue = self.queue.lock();
        if finishing && job.stage().is(Stage::FINISHING) {
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

/// What a thread does: jobs, until there are none for a while or the scheduler's owner is gone.
fn work<J: Job>(owner: &Weak<dyn Owner<J>>, stack: &Stack) {
    let thread = Thread::current();
    let mut new = true;
    while let Some(owner) = owner.upgrade() {
        let scheduler = owner.scheduler();
        let next = scheduler.next(&*owner, &thread, stack, std::mem::take(&mut new));
        let Some(job) = next else { return };
        let finishing = Cell::new(false);
        // A panic here is a bug of ours, and the end of one job.
        if catch_unwind(AssertUnwindSafe(|| job.compute(&finishing))).is_err() {
            job.break_down();
        }
        let goes_on = scheduler.done(&job, &thread, finishing.get());
        owner.computed();
        if !goes_on {
            return;
        }
    }
}
