//! A page that a binding drives, in its own language.
//!
//! In: commands of runs, on threads of tokio. Out: the same for the thread that has the page, which takes them when it is
//! told of them; and its answers, back to the runs.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use isolane::NativeRun;
use tokio::{sync::oneshot, time::timeout};

use super::{Answer, Browser, Command, Failure, Performed, abandonment::Abandonment};
use crate::kit::KitRun;

/// The time that the thread of the page has to let go of a command that was given up, and to stop the page.
const GRACE: Duration = Duration::from_secs(10);

/// Tells the binding that there is a command of that run, or that one was given up.
type Announce = Arc<dyn Fn(&NativeRun) + Send + Sync>;

/// A page on a thread of the binding's.
pub struct DrivenBrowser {
    announce: Announce,
    desk: Arc<Mutex<Desk>>,
}

/// A command for the thread of the page.
#[derive(Debug)]
pub struct Task {
    /// Its number, for [`DrivenBrowser::answer`].
    pub number: u32,
    /// The command.
    pub command: Command,
    /// The time that it may take.
    pub timeout: Duration,
}

#[derive(Default)]
struct Desk {
    last: u32,
    /// Commands that nobody has taken.
    waiting: VecDeque<Task>,
    answers: HashMap<u32, Awaited>,
}

/// A command whose answer is awaited.
struct Awaited {
    sender: oneshot::Sender<Result<Answer, Failure>>,
    run: NativeRun,
    is_given_up: bool,
}

impl DrivenBrowser {
    /// A page whose commands are announced so. `announce` is called on any thread and must return at once.
    pub fn new(announce: impl Fn(&NativeRun) + Send + Sync + 'static) -> Self {
        Self { announce: Arc::new(announce), desk: Arc::default() }
    }

    /// The oldest command that nobody has taken. Its taker answers it.
    #[must_use]
    pub fn take(&self) -> Option<Task> {
        locked(&self.desk).waiting.pop_front()
    }

    /// Whether anybody waits for that command.
    #[must_use]
    pub fn is_awaited(&self, number: u32) -> bool {
        locked(&self.desk).answers.get(&number).is_some_and(|awaited| !awaited.is_given_up)
    }

    /// Tells again of the commands that nobody has taken: one that was told of them has no time for them.
    pub fn announce_again(&self) {
        let runs: Vec<_> = {
            let desk = locked(&self.desk);
            let awaited = desk.waiting.iter().filter_map(|task| desk.answers.get(&task.number));
            awaited.map(|awaited| awaited.run.clone()).collect()
        };
        for run in &runs {
            (self.announce)(run);
        }
    }

    /// Answers a command. An answer that nobody waits for is dropped.
    pub fn answer(&self, number: u32, answer: Result<Answer, Failure>) {
        let waits = locked(&self.desk).answers.remove(&number);
        if let Some(waits) = waits {
            // The run may have given it up in this moment.
            let _ = waits.sender.send(answer);
        }
    }
}

impl Browser for DrivenBrowser {
    fn perform(&self, command: Command, time: Duration, run: &NativeRun) -> Performed {
        let (sender, mut answer) = oneshot::channel();
        let left = time_of(run).filter(|left| *left < time);
        let number = {
            let mut desk = locked(&self.desk);
            desk.last = desk.last.wrapping_add(1);
            let number = desk.last;
            let timeout = left.unwrap_or(time);
            desk.waiting.push_back(Task { number, command, timeout });
            let awaited = Awaited { sender, run: run.clone(), is_given_up: false };
            desk.answers.insert(number, awaited);
            number
        };
        let giving = (Arc::clone(&self.announce), Arc::clone(&self.desk), run.clone());
        // The thread of the page is told before the caller of the run hears of its end, and may use the page itself.
        let give_up = Arc::new(move || {
            let (announce, desk, run) = &giving;
            let is_taken = give_up(desk, number);
            if is_taken {
                announce(run);
            }
        });
        let at_end = Arc::clone(&give_up);
        let abandonment = Abandonment::of(run, move || at_end());
        (self.announce)(run);
        let desk = Arc::clone(&self.desk);
        Box::pin(async move {
            let gone = || Failure::Other("the page is gone".to_owned());
            tokio::select! {
                answered = &mut answer => {
                    let answered = answered.unwrap_or_else(|_| Err(gone()));
                    if left.is_some() && matches!(answered, Err(Failure::Timeout | Failure::Stopped(_))) {
                        // The run's time is over, not the browser's: the run ends before it has an answer.
                        let _ = timeout(GRACE, abandonment.reached()).await;
                    }
                    return answered;
                }
                () = abandonment.reached() => {}
                () = tokio::time::sleep(time) => {}
            }
            if forget_untaken(&desk, number) {
                return Err(Failure::Timeout);
            }
            give_up();
            let answered = timeout(GRACE, answer).await;
            locked(&desk).answers.remove(&number);
            answered
                .map_or(Err(Failure::Timeout), |answered| answered.unwrap_or_else(|_| Err(gone())))
        })
    }
}

/// The time that the run has left, if it is known: a library that cannot be interrupted must not go on after that.
fn time_of(run: &NativeRun) -> Option<Duration> {
    // A page is left after the end of its run, too.
    let cell = run.interception().and_then(KitRun::of)?;
    if run.is_over() || cell.is_over() { None } else { cell.time_left() }
}

/// Notes that nobody waits for a command any more; says whether somebody has taken it.
fn give_up(desk: &Mutex<Desk>, number: u32) -> bool {
    let mut desk = locked(desk);
    let is_taken = desk.waiting.iter().all(|task| task.number != number);
    let awaited = desk.answers.get_mut(&number).filter(|awaited| !awaited.is_given_up);
    awaited.map(|awaited| awaited.is_given_up = true).is_some() && is_taken
}

/// Forgets a command that nobody has taken; says whether there was one.
fn forget_untaken(desk: &Mutex<Desk>, number: u32) -> bool {
    let mut desk = locked(desk);
    let place = desk.waiting.iter().position(|task| task.number == number);
    let task = place.and_then(|place| desk.waiting.remove(place));
    task.is_some() && desk.answers.remove(&number).is_some()
}

fn locked(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for DrivenBrowser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = locked(&self.desk).waiting.len();
        out.debug_struct("DrivenBrowser").field("waiting", &waiting).finish_non_exhaustive()
    }
}
