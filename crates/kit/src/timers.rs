//! Delays.
//!
//! In: milliseconds. Out: a promise that is fulfilled after them, or with `true` when the delay is cancelled. A delay ends
//! with its run. A copy of a session has copies of its delays.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use isolane::{NativeAnswer, NativeCall, NativeFunction, NativeMode, Value, value::Writer};
use tokio::sync::oneshot;

use crate::thrown;

/// The longest delay without another limit: 30 seconds.
pub const MAX_DELAY: Duration = Duration::from_secs(30);

type Waiting = HashMap<(u64, u64), oneshot::Sender<()>>;

/// The delays of any number of runs, whose numbers keep them apart.
#[derive(Clone, Debug)]
pub struct Delays {
    longest: Duration,
    /// Those that have a number, by their runs and their numbers.
    waiting: Arc<Mutex<Waiting>>,
}

impl Default for Delays {
    fn default() -> Self {
        Self::new(MAX_DELAY)
    }
}

impl Delays {
    /// No delays yet. None is longer than that.
    #[must_use]
    pub fn new(longest: Duration) -> Self {
        Self { longest, waiting: Arc::default() }
    }

    /// `delay(ms, id?)`: a promise that is fulfilled after so many milliseconds, at least 0.
    #[must_use]
    pub fn delay(&self) -> Arc<dyn NativeFunction> {
        Arc::new(Delay(self.clone()))
    }

    /// `cancel(id)`: fulfils the promise of a delay at once, with `true`. Without such a delay it does nothing.
    #[must_use]
    pub fn cancel(&self) -> Arc<dyn NativeFunction> {
        Arc::new(Cancel(self.clone()))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Delay(Delays);

impl NativeFunction for Delay {
    fn name(&self) -> &'static str {
        "delay"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let Arguments(ms, id) = match call.arguments() {
            Ok(arguments) => arguments,
            Err(error) => return Err(error).into(),
        };
        if ms.is_nan() {
            return thrown("TypeError", "delay takes a number of milliseconds").into();
        }
        let longest = self.0.longest.as_secs_f64();
        let delay = Duration::from_secs_f64((ms / 1e3).clamp(0.0, longest));
        let (delays, began) = (self.0.clone(), Instant::now());
        NativeAnswer::repeatable(move |run| {
            let waits = id.map(|id| Waits::new(&delays, (run.number(), id)));
            let left = delay.saturating_sub(began.elapsed());
            async move {
                let sleep = tokio::time::sleep(left);
                let is_cancelled = match waits {
                    None => {
                        sleep.await;
                        false
                    }
                    Some(mut waits) => tokio::select! {
                        () = sleep => false,
                        // A number that is used again cancels the delay that had it.
                        _ = &mut waits.cancelled => true,
                    },
                };
                Ok(if is_cancelled { cancelled() } else { Value::undefined() })
            }
        })
    }
}

fn cancelled() -> Value {
    let mut writer = Writer::new();
    writer.bool(true);
    writer.finish()
}

/// The milliseconds and the number.
#[derive(serde::Deserialize)]
struct Arguments(f64, #[serde(default)] Option<u64>);

/// A delay under way, which cannot be cancelled any more when this is dropped.
struct Waits {
    delays: Delays,
    key: (u64, u64),
    cancelled: oneshot::Receiver<()>,
}

impl Waits {
    fn new(delays: &Delays, key: (u64, u64)) -> Self {
        let (sender, cancelled) = oneshot::channel();
        delays.waiting().insert(key, sender);
        Self { delays: delays.clone(), key, cancelled }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut waiting = self.delays.waiting();
        // The receiver is open as long as this is, unless another delay took the number.
        self.cancelled.close();
        if waiting.get(&self.key).is_some_and(oneshot::Sender::is_closed) {
            waiting.remove(&self.key);
        }
    }
}

struct Cancel(Delays);

impl NativeFunction for Cancel {
    fn name(&self) -> &'static str {
        "delay.cancel"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let id = match call.arguments() {
            Ok((id,)) => id,
            Err(error) => return Err(error).into(),
        };
        let delay = self.0.waiting().remove(&(call.run.number(), id));
        // A delay that is over has no receiver.
        let _ = delay.map(|delay| delay.send(()));
        Ok(Value::undefined()).into()
    }
}
