//! The order in which jobs compute.
//!
//! In: jobs that can compute. Out: threads that compute them, no more at once than there are permits. A job that waits
//! for the host holds no permit, and one that only waits for promises holds no thread either. A job that computes for
//! long steps aside while others wait, so no job keeps another from running. New and woken jobs take turns with threads
//! whose host call was answered. Threads that stepped aside get a permit when none of those waits, and now and then
//! anyway. So none of these waits for long, however many the others are.
//!
//! `job` has the jobs and the owner as the scheduler sees them, `queue` decides whose turn it is, and `threads` starts
//! threads and gives each its next job.
//!
//! To hand work to a sleeping thread costs two wake-ups, more than most jobs take. So the last thread that runs out of
//! work spins for a moment before it sleeps.

mod job;
mod queue;
mod threads;

use std::{
    sync::{
        Arc, MutexGuard, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

pub(crate) use self::job::{Job, Owner, Stage};
use self::queue::{Kind, Queue, Resume};
use crate::{
    binding::adaptive_spin::AdaptiveSpin,
    os::{
        sync::{Condvar, Mutex},
        thread::Thread,
    },
};

pub(crate) struct Scheduler<J> {
    owner: Weak<dyn Owner<J>>,
    queue: Mutex<Queue<J>>,
    work: Condvar,
    /// How many wait for a permit, readable without the lock.
    waiting: AtomicUsize,
    /// Threads whose job has settled and which will look for another at once.
    finishing: AtomicUsize,
    /// Threads that lost their permit because they do not return.
    stuck: AtomicUsize,
    /// For new work.
    spin: AdaptiveSpin,
    permits: usize,
}

/// The statistics of a scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SchedulerStats {
    pub(crate) computing: usize,
    pub(crate) queued: usize,
    pub(crate) threads: usize,
    pub(crate) stuck: usize,
}

impl<J: Job> Scheduler<J> {
    pub(crate) fn new(permits: usize, owner: Weak<dyn Owner<J>>) -> Self {
        Self {
            owner,
            queue: Mutex::new(Queue::new()),
            work: Condvar::new(),
            waiting: AtomicUsize::new(0),
            finishing: AtomicUsize::new(0),
            stuck: AtomicUsize::new(0),
            spin: AdaptiveSpin::default(),
            permits,
        }
    }

    /// Enqueues a job, which is computed as soon as there is a permit.
    pub(crate) fn enqueue(&self, job: Arc<J>) {
        self.spin.sent();
        let mut queue = self.queue.lock();
        if queue.ready.is_empty() {
            queue.ready_since = Instant::now();
        }
        queue.ready.push_back(job);
        self.count_waiting(&queue);
        self.ensure_thread(queue);
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

    /// The calling thread, which has that job, has only to clean up before it looks for work, so no other thread need
    /// be woken. Returns whether the scheduler counts on it.
    pub(crate) fn finishing(&self, job: &J) -> bool {
        let counted_on = job.stage().advance(Stage::WITH_CODE, Stage::FINISHING);
        self.finishing.fetch_add(usize::from(counted_on), Ordering::Relaxed);
        counted_on
    }

    /// Threads that do not return from the engine.
    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Ends the threads that have nothing to do.
    pub(crate) fn close(&self) {
        self.queue.lock().closed = true;
        self.work.notify_all();
    }

    /// Its statistics.
    pub(crate) fn stats(&self) -> SchedulerStats {
        let queue = self.queue.lock();
        SchedulerStats {
            computing: queue.computing,
            queued: queue.live_waiting(),
            threads: queue.threads,
            stuck: self.stuck(),
        }
    }

    /// Whether as many jobs wait for their turn as may. Jobs for which there is a permit do not wait.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        let queue = self.queue.lock();
        let allowed = most + self.permits.saturating_sub(queue.computing);
        // Only a queue that looks full is searched for jobs that have been ended.
        queue.waiting() >= allowed && queue.live_waiting() >= allowed
    }

    /// Whether no thread has a job, nor will get one of those that are there.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.current.iter().all(|current| current.stuck)
            && queue.ready.iter().all(|job| job.left_the_queue())
    }

    /// The jobs that are on a thread now.
    pub(crate) fn current(&self) -> Vec<Arc<J>> {
        let queue = self.queue.lock();
        queue.current.iter().filter(|current| !current.stuck).map(|c| Arc::clone(&c.job)).collect()
    }

    /// Takes the permit of a job away from a thread that does not return. The thread gets the lowest priority, and ends
    /// when it returns.
    pub(crate) fn abandon(&self, job: &Arc<J>) {
        let mut queue = self.queue.lock();
        let Some(current) = queue.find(job).filter(|current| !current.stuck) else { return };
        current.stuck = true;
        // Under the lock, which the thread needs before it can end.
        current.thread.give_way();
        self.stuck.fetch_add(1, Ordering::Relaxed);
        if job.stage().set(Stage::GIVEN_UP) == Stage::FINISHING {
            self.finishing.fetch_sub(1, Ordering::Relaxed);
        }
        queue.give_up_permit(job);
        let waiting = queue.take_out(job);
        self.ensure_thread(queue);
        for resume in waiting {
            resume.recheck();
        }
    }

    /// Gives up the calling thread's permit while its job waits.
    pub(crate) fn release_permit(&self, job: &Arc<J>) {
        let mut queue = self.queue.lock();
        queue.give_up_permit(job);
        self.ensure_thread(queue);
    }

    /// Waits for a permit after a host call was answered.
    pub(crate) fn take_permit(&self, job: &Arc<J>) {
        let mut queue = self.queue.lock();
        if queue.computing < self.permits {
            queue.computing += 1;
            queue.note_permit(job);
            return;
        }
        let resume = Resume::new(job);
        queue.answered.push_back(Arc::clone(&resume));
        self.wait_for_permit(queue, job, &resume);
    }

    /// Lets others compute first, if there are threads for that.
    pub(crate) fn step_aside(&self, job: &Arc<J>) {
        let mut queue = self.queue.lock();
        let no_thread = self.threads_left(&queue) == 0 && queue.sleeping == 0;
        if no_thread && queue.aside.is_empty() && queue.answered.is_empty() {
            return;
        }
        let resume = Resume::new(job);
        queue.aside.push_back(Arc::clone(&resume));
        queue.give_up_permit(job);
        self.count_waiting(&queue);
        self.ensure_thread(queue);
        self.wait_for_permit(self.queue.lock(), job, &resume);
    }

    /// Waits until there is a permit, or none is needed: to clean up after a job that has ended, or because the thread
    /// was given up on.
    fn wait_for_permit(
        &self,
        queue: MutexGuard<'_, Queue<J>>,
        job: &Arc<J>,
        resume: &Arc<Resume<J>>,
    ) {
        self.count_waiting(&queue);
        drop(queue);
        let mut granted = resume.granted.lock();
        while !*granted && !job.is_ending() && !Thread::has_given_way() {
            granted = resume.wake.wait(granted);
        }
        let waits_no_more = !*granted;
        drop(granted);
        if waits_no_more {
            let mut queue = self.queue.lock();
            queue.take_out(job);
            self.count_waiting(&queue);
        }
    }

    /// Wakes the thread of a job that was asked to end, if it waits for a permit.
    pub(crate) fn wake_ended(&self, job: &Arc<J>) {
        let queue = self.queue.lock();
        let mut waiting = queue.answered.iter().chain(&queue.aside);
        let resume = waiting.find(|resume| Arc::ptr_eq(&resume.job, job)).cloned();
        drop(queue);
        if let Some(resume) = resume {
            resume.recheck();
        }
    }

    fn count_waiting(&self, queue: &Queue<J>) {
        self.waiting.store(queue.waiting(), Ordering::Relaxed);
    }

    /// Gives permits to threads whose turn it is; then returns the next job, for a thread that has none. Jobs that were
    /// ended before they began go into `gone`.
    fn pop(&self, queue: &mut Queue<J>, gone: &mut Vec<Arc<J>>) -> Option<Arc<J>> {
        let mut next = None;
        while queue.computing < self.permits && next.is_none() {
            while queue.ready.front().is_some_and(|job| job.left_the_queue()) {
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
}

#[cfg(test)]
mod tests;
