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
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use super::{Answer, Browser, Command, Failure, Performed};
use crate::kit::KitRun;

/// The time that the thread of the page has beyond that of the command, to say that its time is over.
const GRACE: Duration = Duration::from_secs(1);

/// Tells the binding that there is a command of that run.
type Announce = Box<dyn Fn(&NativeRun) + Send + Sync>;

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
}

impl DrivenBrowser {
    /// A page whose commands are announced so. `announce` is called on any thread and must return at once.
    pub fn new(announce: impl Fn(&NativeRun) + Send + Sync + 'static) -> Self {
        Self { announce: Box::new(announce), desk: Arc::default() }
    }

    /// The oldest command that nobody has taken. Its taker answers it.
    #[must_use]
    pub fn take(&self) -> Option<Task> {
        locked(&self.desk).waiting.pop_front()
    }

    /// The run of a command that was taken and is not answered.
    pub(crate) fn run_of(&self, number: u32) -> Option<NativeRun> {
        locked(&self.desk).answers.get(&number).map(|awaited| awaited.run.clone())
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
            desk.answers.insert(number, Awaited { sender, run: run.clone() });
            number
        };
        (self.announce)(run);
        let (desk, run) = (Arc::clone(&self.desk), run.clone());
        Box::pin(async move {
            let over = Arc::new(Notify::new());
            let tell = Arc::clone(&over);
            // A page is left after the end of its run, too: that has its time alone.
            let _hook = (!run.is_over()).then(|| run.on_end(move || tell.notify_one()));
            let gone = || Failure::Other("the page is gone".to_owned());
            tokio::select! {
                answered = &mut answer => {
                    let answered = answered.unwrap_or_else(|_| Err(gone()));
                    if left.is_some() && matches!(answered, Err(Failure::Timeout)) {
                        // The run's time is over, not the browser's: the run ends before it has an answer.
                        let _ = timeout(GRACE, over.notified()).await;
                    }
                    return answered;
                }
                () = over.notified() => {}
                () = tokio::time::sleep(time) => {}
            }
            if forget_untaken(&desk, number) {
                return Err(Failure::Timeout);
            }
            // The page is in use until the command is done with it.
            let answered = timeout(time + GRACE, answer).await;
            locked(&desk).answers.remove(&number);
            answered
                .map_or(Err(Failure::Timeout), |answered| answered.unwrap_or_else(|_| Err(gone())))
        })
    }
}

/// The time that the run has left, if it is known: a library that cannot be interrupted must not go on after that.
fn time_of(run: &NativeRun) -> Option<Duration> {
    // A page is left after the end of its run, too.
    if run.is_over() {
        return None;
    }
    run.interception().and_then(KitRun::of)?.time_left()
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
