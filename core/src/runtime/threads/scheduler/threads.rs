//! The threads that compute: their number, and the work of each.
//!
//! In: jobs in the queue. Out: as many threads as the jobs can use, which take one job after another. Threads are
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

/// Threads beyond the permits whose job waits in a host call. The host answers soon: until it does, other jobs can
/// wait, for a while.
const WAITING_THREADS: usize = 56;

/// When none of those threads has taken a job for this long, there may be more threads: they may all have jobs that
/// call the host for ever.
const THREAD_WAIT: Duration = Duration::from_millis(100);

/// The most threads beyond those, for jobs that stepped aside. Such a job keeps its thread, because it is on the
/// thread's stack, in the middle of its code. Once jobs like that have all threads, others wait until one of them ends.
const ASIDE_THREADS: usize = 1_000;

impl<J: Job> Scheduler<J> {
    /// Makes sure that a thread takes the work in the queue.
    pub(super) fn ensure_thread(&self, mut queue: MutexGuard<'_, Queue<J>>) {
        while queue.computing < self.permits && queue.grant_turn() {}
        let finishing = self.finishing.load(Ordering::Relaxed);
        let soon = usize::from(queue.spinning)
            + queue.tidying
            + queue.starting
            + queue.notified
            + finishing;
        if queue.ready.len() <= soon || queue.computing >= self.permits {
            return self.count_waiting(&queue);
        }
        if queue.sleeping > 0 {
            queue.sleeping -= 1;
            queue.notified += 1;
            self.count_waiting(&queue);
            drop(queue);
            self.work.notify_one();
        } else if self.threads_left(&queue) > 0 {
            self.start_thread(queue);
        } else {
            self.grant_out_of_turn(queue);
        }
    }

    /// Gives permits to threads in the middle of a job, because there is no thread for the job whose turn it is.
    fn grant_out_of_turn(&self, mut queue: MutexGuard<'_, Queue<J>>) {
        while queue.computing < self.permits && queue.grant_any() {}
        self.count_waiting(&queue);
    }

    /// How many threads may still be started. Stuck threads take nobody's place.
    pub(super) fn threads_left(&self, queue: &Queue<J>) -> usize {
        let aside = if !queue.ready.is_empty() && queue.ready_since.elapsed() > THREAD_WAIT {
            ASIDE_THREADS
        } else {
            queue.aside.len().min(ASIDE_THREADS)
        };
        (self.permits + WAITING_THREADS + aside + self.stuck()).saturating_sub(queue.threads)
    }

    /// Whether there is a thread that can take a job, or one can be started.
    pub(crate) fn has_threads(&self) -> bool {
        let queue = self.queue.lock();
        queue.threads > self.stuck() || self.start_thread(queue)
    }

    /// Starts threads for waiting work, which the system may have refused before.
    pub(crate) fn try_again(&self) {
        self.ensure_thread(self.queue.lock());
    }

    fn start_thread(&self, mut queue: MutexGuard<'_, Queue<J>>) -> bool {
        if Thread::has_given_way() {
            // A thread that this one starts would have the lowest priority, too: the watchdog starts it.
            self.grant_out_of_turn(queue);
            return true;
        }
        self.count_waiting(&queue);
        queue.threads += 1;
        queue.starting += 1;
        drop(queue);
        let owner = Weak::clone(&self.owner);
        let thread = stack::spawn("isolane", move |stack| work(&owner, stack));
        if thread.is_err() {
            // The system has no thread left. The work waits for a thread that runs, and if there is none, for the
            // watchdog to try again.
            let mut queue = self.queue.lock();
            queue.threads -= 1;
            queue.starting -= 1;
            self.grant_out_of_turn(queue);
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
        // Dropped without the lock, because jobs may own objects of others.
        let mut gone = Vec::new();
        // Since when the thread spins for a job, and whether spinning was enough.
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
                    self.ensure_thread(queue);
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
                idle = Some((since, self.spin.spin(since, || self.others_wait())));
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
            let notified;
            (queue, notified) = self.sleep(queue);
            if !notified && !queue.has_work(self.permits) {
                queue.threads -= 1;
                return None;
            }
        }
    }

    /// Sleeps until this thread is notified of work, or was not notified for long; returns which. A thread may also
    /// wake for no reason, and then nobody has counted it off.
    fn sleep<'q>(&self, mut queue: MutexGuard<'q, Queue<J>>) -> (MutexGuard<'q, Queue<J>>, bool) {
        queue.sleeping += 1;
        while !queue.closed {
            let timed_out;
            (queue, timed_out) = self.work.wait_for(queue, LINGER);
            if queue.notified > 0 {
                queue.notified -= 1;
                return (queue, true);
            }
            if timed_out {
                break;
            }
        }
        queue.sleeping -= 1;
        (queue, false)
    }

    /// Takes the calling thread's job off it. Returns whether the thread may look for another job. A thread that was
    /// given up on ends, because others have replaced it.
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

/// The loop of a thread: it computes jobs until there are none for a while or the scheduler's owner is gone.
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
