//! The desk of a cell: answers the calls of the host's functions that its code makes.
//!
//! In: calls with a name and arguments. Out: answers or errors, status events in the record of the cell, a clock that
//! stands still, and signals for the host when the cell is ended. A cell cannot make the host hold more than a bound.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use isolane::{HostError, Value};
use serde_json::json;
use tokio::{sync::Semaphore, task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{HostAnswer, HostTools, Llm, answer, llm, schema::Schema, value};
use crate::{
    Limits,
    clock::Clock,
    record::{Record, usize_of},
};

/// The bytes of arguments, as they cross, that the unanswered calls of one cell may hold in the host.
pub(crate) const MOST_HELD_BYTES: usize = 16 << 20;

/// The bytes that the arguments of one call may take once they are read. Small objects take far more than they do as they
/// cross.
const MOST_READ_BYTES: usize = 256 << 20;

/// The bytes that a call costs besides.
const CALL_BYTES: usize = 1 << 10;

/// The functions of a notebook, for all its cells.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) tools: HostTools,
    llm: Option<Llm>,
    llm_calls: u64,
    /// The calls of one cell that the host works on at once.
    places: usize,
    concurrency: [u64; 2],
}

/// The facts that a kernel makes its helpers of.
#[derive(Clone, Debug)]
pub(crate) struct Helpers {
    /// The names of tools.
    pub(crate) tools: Vec<String>,
    /// How many functions `parallel` and `pipeline` run at once, and the most that a cell may say.
    pub(crate) concurrency: [u64; 2],
}

impl Functions {
    pub(crate) fn new(tools: HostTools, llm: Option<Llm>, limits: &Limits) -> Self {
        let places = usize_of(limits.host_calls).min(Semaphore::MAX_PERMITS);
        let most = limits.max_concurrency;
        let concurrency = [limits.concurrency.min(most), most];
        Self { tools, llm, llm_calls: limits.llm_calls, places, concurrency }
    }

    pub(crate) fn helpers(&self) -> Helpers {
        let tools = self.tools.names().into_iter().map(str::to_owned).collect();
        Helpers { tools, concurrency: self.concurrency }
    }

    pub(crate) fn has_llm(&self) -> bool {
        self.llm.is_some()
    }
}

/// The desk of a cell.
#[derive(Debug)]
pub(crate) struct Desk {
    functions: Arc<Functions>,
    record: Record,
    clock: OnceLock<Clock>,
    end: CancellationToken,
    llm_calls: AtomicU64,
    places: Semaphore,
    held_bytes: AtomicUsize,
}

/// A call of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostCall {
    /// `tool` or `llm`.
    pub(crate) helper: String,
    /// The name of the tool.
    pub(crate) name: String,
    pub(crate) args: Value,
    /// The bytes of the arguments as they cross, about.
    pub(crate) bytes: usize,
}

impl HostCall {
    pub(crate) fn new(helper: String, name: String, args: Value) -> Self {
        let bytes = value::crossing_bytes(&args);
        Self { helper, name, args, bytes }
    }
}

/// Bytes that the calls of a cell hold, given back when it is dropped.
#[derive(Debug)]
struct Held<'d>(&'d Desk, usize);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held_bytes.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl Desk {
    pub(crate) fn new(functions: Arc<Functions>, record: Record) -> Self {
        Self {
            places: Semaphore::new(functions.places),
            functions,
            record,
            clock: OnceLock::new(),
            end: CancellationToken::new(),
            llm_calls: AtomicU64::new(0),
            held_bytes: AtomicUsize::new(0),
        }
    }

    /// The clock of the cell has started.
    pub(crate) fn begun(&self, clock: Clock) {
        // A cell begins once.
        let _ = self.clock.set(clock);
    }

    /// The cell is ended from outside: its calls fail, and their signals are cancelled.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Answers a call. `settle` takes the answer to the cell; what the call holds is given back after that. To drop the
    /// future cancels the signal.
    pub(crate) async fn answer<F: Future>(
        self: Arc<Self>,
        call: HostCall,
        settle: impl FnOnce(HostAnswer) -> F,
    ) -> F::Output {
        let bytes = call.bytes.saturating_add(CALL_BYTES);
        let before = self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = Held(&self, bytes);
        let mut place = None;
        let is_too_much = before.saturating_add(bytes) > MOST_HELD_BYTES
            || call.args.held_bytes() > MOST_READ_BYTES;
        let answer = if is_too_much {
            drop(call);
            Err(too_much())
        } else {
            tokio::select! {
                biased;
                () = self.end.cancelled() => Err(ended()),
                // Nobody closes the semaphore.
                acquired = self.places.acquire() => {
                    place = acquired.ok();
                    self.outcome(call).await
                }
            }
        };
        let settled = settle(answer).await;
        drop((held, place));
        settled
    }

    async fn outcome(&self, call: HostCall) -> HostAnswer {
        let began = Instant::now();
        let signal = self.end.child_token();
        let guard = signal.clone().drop_guard();
        let HostCall { helper, name, mut args, .. } = call;
        let functions = &self.functions;
        let (answer, mut event) = match helper.as_str() {
            "tool" => {
                let tool = functions.tools.find(&name)?;
                if !value::is_object(&args) {
                    let message = format!("{name}: args must be an object");
                    return Err(HostError::new("TypeError", message));
                }
                value::refuse_links(&args, &format!("{name}: args"))?;
                if let Some(schema) = &tool.schema {
                    args = check(schema, &name, args).await?;
                }
                let _still = tool.tool.stops_clock.then(|| self.stop_clock());
                let asked = Self::ask(&signal, || tool.call(args, signal.clone())).await;
                let answer = asked.and_then(|answer| answer::read(answer, &self.record));
                (answer, json!({ "op": "tool", "name": name }))
            }
            "llm" => {
                let llm = functions.llm.as_ref().ok_or_else(|| not_given("llm"))?;
                let request = llm::Request::read(&args)?;
                if self.llm_calls.fetch_add(1, Ordering::Relaxed) >= functions.llm_calls {
                    return Err(too_many("llm", functions.llm_calls));
                }
                let _still = self.stop_clock();
                let event = json!({ "op": "llm", "model": request.model });
                (Self::ask(&signal, || llm.answer(request, signal.clone())).await, event)
            }
            other => {
                let other: String = other.chars().take(100).collect();
                return Err(not_given(&other));
            }
        };
        // The host has answered: nothing is left to be cancelled.
        drop(guard.disarm());
        if let Some(fields) = event.as_object_mut() {
            fields.insert("ok".to_owned(), answer.is_ok().into());
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            fields.insert("ms".to_owned(), ms.into());
        }
        self.record.event(event);
        answer
    }

    /// Asks the host, until the cell is ended.
    async fn ask<F: Future<Output = HostAnswer>>(
        signal: &CancellationToken,
        ask: impl FnOnce() -> F,
    ) -> HostAnswer {
        if signal.is_cancelled() {
            return Err(ended());
        }
        tokio::select! {
            biased;
            () = signal.cancelled() => Err(ended()),
            answer = ask() => answer,
        }
    }

    fn stop_clock(&self) -> Option<crate::clock::Still> {
        self.clock.get().map(Clock::stop)
    }
}

fn too_much() -> HostError {
    let mib = MOST_HELD_BYTES >> 20;
    let message = format!("the arguments of unanswered calls have more than {mib} MiB");
    HostError::new("RangeError", message)
}

fn ended() -> HostError {
    HostError::new("Error", "the cell was ended")
}

fn not_given(helper: &str) -> HostError {
    HostError::new("Error", format!("{helper} is not available in this notebook"))
}

fn too_many(helper: &str, most: u64) -> HostError {
    HostError::new("RangeError", format!("more than {most} calls of {helper} in one cell"))
}

/// The error of a call that no cell makes.
pub(crate) fn no_cell() -> HostError {
    HostError::new("Error", "no cell runs: functions of the host can be called by cells alone")
}

/// Checks arguments on a thread of its own: the time grows with their size.
async fn check(schema: &Arc<Schema>, tool: &str, args: Value) -> Result<Value, HostError> {
    let (schema, name) = (Arc::clone(schema), tool.to_owned());
    let checked = spawn_blocking(move || schema.check(&name, args)).await;
    checked.unwrap_or_else(|_| {
        Err(HostError::new("Error", format!("{tool}: the arguments cannot be checked")))
    })
}

#[cfg(test)]
mod tests {
    use std::{future::ready, time::Duration};

    use tokio::time::sleep;

    use super::*;
    use crate::{CellTool, record::Shared};

    /// A desk with a tool `slow`, which takes 45 seconds.
    fn desk(stops_clock: bool, limits: &Limits) -> (Arc<Desk>, Clock) {
        let mut slow = CellTool::new("slow", |_, _| async {
            sleep(Duration::from_secs(45)).await;
            Ok(Value::undefined())
        });
        slow.stops_clock = stops_clock;
        let tools = HostTools::new(&[slow]).expect("valid tools");
        let functions = Arc::new(Functions::new(tools, None, limits));
        let desk = Desk::new(functions, Record::new(Arc::new(Shared::new(limits.clone()))));
        let clock = Clock::start(30, 3600);
        desk.begun(clock.clone());
        (Arc::new(desk), clock)
    }

    async fn slow(desk: &Arc<Desk>, bytes: usize) -> HostAnswer {
        let args = crate::door::message(&json!({}));
        let call = HostCall { helper: "tool".to_owned(), name: "slow".to_owned(), args, bytes };
        Arc::clone(desk).answer(call, ready).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_for_tools_that_stop_it() {
        for (stops_clock, worked) in [(true, 0), (false, 45)] {
            let (desk, clock) = desk(stops_clock, &Limits::default());
            assert_eq!(slow(&desk, 0).await, Ok(Value::undefined()));
            assert_eq!(clock.worked().as_secs(), worked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_over_the_limit_wait() {
        let (desk, clock) = desk(false, &Limits { host_calls: 2, ..Limits::default() });
        let answers = tokio::join!(slow(&desk, 0), slow(&desk, 0), slow(&desk, 0));
        assert_eq!(
            answers,
            (Ok(Value::undefined()), Ok(Value::undefined()), Ok(Value::undefined()))
        );
        assert_eq!(clock.worked().as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_calls_hold_so_many_bytes() {
        let (desk, _) = desk(false, &Limits::default());
        let half = MOST_HELD_BYTES / 2;
        let (first, second) = tokio::join!(slow(&desk, half), slow(&desk, half));
        assert_eq!((first, second), (Ok(Value::undefined()), Err(too_much())));
        assert_eq!(slow(&desk, half).await, Ok(Value::undefined()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_cell_answers_its_calls() {
        let (desk, clock) = desk(false, &Limits::default());
        let (answer, ()) = tokio::join!(slow(&desk, 0), async { desk.end() });
        assert_eq!((answer, slow(&desk, 0).await), (Err(ended()), Err(ended())));
        assert_eq!(clock.worked().as_secs(), 0);
    }
}
