//! Jobs and threads that wait for a permit, and those that have one.
//!
//! In: jobs, and threads in the middle of one. Out: whose turn it is. All of it is behind the scheduler's lock.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::job::Job;
use crate::os::{
    sync::{Condvar, Mutex},
    thread::Thread,
};

/// How many permits go to others before the next one goes to a thread that stepped aside. Most others give theirs back
/// in no time, and that thread keeps it for a whole slice.
const BEFORE_ASIDE: usize = 8;

pub(super) struct Queue<J> {
    /// Jobs that need a thread and a permit.
    pub(super) ready: VecDeque<Arc<J>>,
    /// Since when none of those jobs was taken.
    pub(super) ready_since: Instant,
    /// Threads whose host call was answered; they need a permit.
    pub(super) answered: VecDeque<Arc<Resume<J>>>,
    /// Threads in the middle of a job that stepped aside; they need a permit.
    pub(super) aside: VecDeque<Arc<Resume<J>>>,
    /// The kind that got the last permit.
    pub(super) served: Kind,
    /// How many permits went to others since one went to a thread that had stepped aside.
    pub(super) before_aside: usize,
    /// Permits in use.
    pub(super) computing: usize,
    /// Threads that sleep and were not yet notified of work.
    pub(super) sleeping: usize,
    /// Threads that sleep and were notified, and have not woken yet.
    pub(super) notified: usize,
    /// Nothing will come any more: threads without work end.
    pub(super) closed: bool,
    pub(super) spinning: bool,
    /// Threads that clean up before they sleep, and look for work once more after that.
    pub(super) tidying: usize,
    pub(super) threads: usize,
    /// How many of them were started and do not run yet.
    pub(super) starting: usize,
    /// Jobs on a thread now; a job whose thread does not return is marked.
    pub(super) current: Vec<Current<J>>,
}

/// The kinds that wait for a permit.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Ready,
    Answered,
    Aside,
}

pub(super) struct Current<J> {
    pub(super) job: Arc<J>,
    pub(super) thread: Thread,
    /// Whether its thread has a permit: not while it waits, nor once it was given up on.
    pub(super) permit: bool,
    pub(super) stuck: bool,
}

/// A thread that waits for a permit.
pub(super) struct Resume<J> {
    pub(super) job: Arc<J>,
    pub(super) granted: Mutex<bool>,
    pub(super) wake: Condvar,
}

impl<J> Resume<J> {
    pub(super) fn new(job: &Arc<J>) -> Arc<Self> {
        let (granted, wake) = (Mutex::default(), Condvar::default());
        Arc::new(Self { job: Arc::clone(job), granted, wake })
    }

    /// Wakes the thread, which checks whether it still has to wait.
    pub(super) fn recheck(&self) {
        // Under its lock, so that the thread does not miss this between a check and its sleep.
        let _granted = self.granted.lock();
        self.wake.notify_one();
    }
}

impl<J: Job> Queue<J> {
    pub(super) fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            ready_since: Instant::now(),
            answered: VecDeque::new(),
            aside: VecDeque::new(),
            served: Kind::Aside,
            before_aside: 0,
            computing: 0,
            sleeping: 0,
            notified: 0,
            closed: false,
            spinning: false,
            tidying: 0,
            threads: 0,
            starting: 0,
            current: Vec::new(),
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.ready.len() + self.aside.len() + self.answered.len()
    }

    /// Whether there is a job for a thread that has none.
    pub(super) fn has_work(&self, permits: usize) -> bool {
        !self.ready.is_empty() && self.computing < permits
    }

    /// How many wait and have not been ended.
    pub(super) fn live_waiting(&self) -> usize {
        let ready = self.ready.iter().filter(|job| !job.has_ended()).count();
        ready + self.aside.len() + self.answered.len()
    }

    /// Gives a permit to a thread if it is a thread's turn; false if it is a job's, or nobody's.
    pub(super) fn grant_turn(&mut self) -> bool {
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

    /// Gives a permit to a thread that waits, even out of turn; false if none waits.
    pub(super) fn grant_any(&mut self) -> bool {
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
        self.note_permit(&resume.job);
        *resume.granted.lock() = true;
        resume.wake.notify_one();
        true
    }

    /// Takes out the threads that wait for a permit with that job.
    pub(super) fn take_out(&mut self, job: &Arc<J>) -> Vec<Arc<Resume<J>>> {
        let mut taken = Vec::new();
        for waiting in [&mut self.aside, &mut self.answered] {
            waiting.retain(|resume| {
                let stays = !Arc::ptr_eq(&resume.job, job);
                if !stays {
                    taken.push(Arc::clone(resume));
                }
                stays
            });
        }
        taken
    }

    /// Counts a permit that goes to that kind.
    pub(super) fn serve(&mut self, kind: Kind) {
        self.computing += 1;
        self.served = kind;
        self.before_aside = if kind == Kind::Aside { 0 } else { self.before_aside + 1 };
    }

    /// The thread that computes a job. The thread that parked the job may still be on its way out.
    pub(super) fn find(&mut self, job: &Arc<J>) -> Option<&mut Current<J>> {
        self.current.iter_mut().rev().find(|current| Arc::ptr_eq(&current.job, job))
    }

    pub(super) fn give_up_permit(&mut self, job: &Arc<J>) {
        let had = self.find(job).is_some_and(|current| std::mem::take(&mut current.permit));
        self.computing -= usize::from(had);
    }

    /// Assigns a permit that was counted to that job, unless its thread was given up on.
    pub(super) fn note_permit(&mut self, job: &Arc<J>) {
        match self.find(job) {
            Some(current) if !current.stuck => current.permit = true,
            _ => self.computing -= 1,
        }
    }
}
