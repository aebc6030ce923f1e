//! The desk of a cell: answers the calls of the host's functions that its code makes.
//!
//! In: calls with a name and arguments. Out: answers or errors, status events in the record of the cell, a clock that
//! stands still, and signals for the host when the cell is ended. A cell cannot make the host hold more than a bound.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use isolane::{HostError, Spelling, Value};
use serde_json::{Map, json};
use tokio::{
    sync::{AcquireError, Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    Agent, HostAnswer, HostTools, Llm,
    agent::{self, Task},
    answer, files, llm,
    schema::Schema,
    value,
};
use crate::{
    Limits, Notebook,
    artifacts::Artifacts,
    clock::Clock,
    files::Files,
    record::{Record, usize_of},
    text::words,
};

/// The bytes of arguments, as they cross, that the unanswered calls of one cell may hold in the host; more if one `write` may
/// have more.
pub(crate) const MOST_HELD_BYTES: usize = 16 << 20;

/// The bytes of arguments that the unanswered calls of one cell may hold, with these files.
pub(crate) fn most_held_bytes(files: Option<&Files>) -> usize {
    let written = files.map_or(0, Files::most_written_bytes);
    usize_of(written).saturating_add(WRITE_BYTES).max(MOST_HELD_BYTES)
}

/// The bytes that the arguments of one call may take once they are read. Small objects take far more than they do as they
/// cross.
const MOST_READ_BYTES: usize = 256 << 20;

/// The bytes that a call costs besides.
const CALL_BYTES: usize = 1 << 10;

/// The bytes of a call of `write` beside those of its data.
const WRITE_BYTES: usize = 64 << 10;

/// The calls of files that one cell has at work at once: each may hold as much as one `read` gives.
const FILE_CALLS: usize = 4;

/// The functions of a notebook, for all its cells.
#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) tools: Arc<HostTools>,
    pub(crate) llm: Option<Llm>,
    pub(crate) agent: Option<Agent>,
    most_calls: MostCalls,
    /// The calls of one cell that the host works on at once.
    places: usize,
    concurrency: [u64; 2],
    /// The calls of `agent` so far.
    agents: AtomicU64,
    nesting: Nesting,
    pub(crate) files: Option<Arc<Files>>,
    pub(crate) artifacts: Option<Arc<Artifacts>>,
}

/// The most calls of one cell, and the most agents above one another.
#[derive(Clone, Copy, Debug)]
struct MostCalls {
    llm: u64,
    agent: u64,
    depth: u64,
}

/// The place of a notebook among agents.
pub(crate) struct Nesting {
    /// The agents above its cells.
    pub(crate) depth: u64,
    /// Makes the notebook of a subagent, whose calls end with the token; `None` if the notebook is gone.
    pub(crate) subagent: Box<dyn Fn(CancellationToken) -> Option<Notebook> + Send + Sync>,
}

impl fmt::Debug for Nesting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Nesting").field("depth", &self.depth).finish_non_exhaustive()
    }
}

/// The facts that helpers in a kernel need, for each cell.
#[derive(Clone, Debug)]
pub(crate) struct Helpers {
    /// The names of tools.
    pub(crate) tools: Vec<String>,
    /// How many functions `parallel` and `pipeline` run at once, and the most that a cell may say.
    pub(crate) concurrency: [u64; 2],
}

impl Functions {
    pub(crate) fn new(
        tools: Arc<HostTools>,
        (llm, agent): (Option<Llm>, Option<Agent>),
        limits: &Limits,
        nesting: Nesting,
    ) -> Self {
        let places = usize_of(limits.host_calls).min(Semaphore::MAX_PERMITS);
        let most = limits.max_concurrency;
        let concurrency = [limits.concurrency.min(most), most];
        let most_calls = MostCalls {
            llm: limits.llm_calls,
            agent: limits.agent_calls,
            depth: limits.agent_depth,
        };
        let agents = AtomicU64::new(0);
        Self {
            tools,
            llm,
            agent,
            most_calls,
            places,
            concurrency,
            agents,
            nesting,
            files: None,
            artifacts: None,
        }
    }

    /// Adds files and artifacts.
    pub(crate) fn with(self, files: Option<Arc<Files>>, artifacts: Option<Arc<Artifacts>>) -> Self {
        Self { files, artifacts, ..self }
    }

    /// Whether its cells can have an agent work.
    pub(crate) fn can_call_agents(&self) -> bool {
        self.agent.is_some() && self.nesting.depth < self.most_calls.depth
    }

    /// The agents above the cells of the notebook.
    pub(crate) fn depth(&self) -> u64 {
        self.nesting.depth
    }

    fn helpers(&self) -> Helpers {
        let tools = self.tools.names().into_iter().map(str::to_owned).collect();
        Helpers { tools, concurrency: self.concurrency }
    }
}

/// The desk of a cell.
#[derive(Debug)]
pub(crate) struct Desk {
    functions: Arc<Functions>,
    record: Record,
    /// How the cell's language spells options.
    spelling: Spelling,
    clock: OnceLock<Clock>,
    end: CancellationToken,
    llm_calls: AtomicU64,
    agent_calls: AtomicU64,
    /// The agents that work.
    tasks: Mutex<Vec<Task>>,
    places: Semaphore,
    file_places: Semaphore,
    held_bytes: AtomicUsize,
    most_held_bytes: usize,
}

/// A call of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostCall {
    /// `tool`, `llm`, `agent`, or a helper of files.
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
    pub(crate) fn new(functions: Arc<Functions>, record: Record, spelling: Spelling) -> Self {
        Self {
            places: Semaphore::new(functions.places),
            file_places: Semaphore::new(FILE_CALLS),
            most_held_bytes: most_held_bytes(functions.files.as_deref()),
            spelling,
            functions,
            record,
            clock: OnceLock::new(),
            end: CancellationToken::new(),
            llm_calls: AtomicU64::new(0),
            agent_calls: AtomicU64::new(0),
            tasks: Mutex::default(),
            held_bytes: AtomicUsize::new(0),
        }
    }

    /// The facts for the helpers of the cell.
    pub(crate) fn helpers(&self) -> Helpers {
        self.functions.helpers()
    }

    /// The clock of the cell has started.
    pub(crate) fn begun(&self, clock: Clock) {
        // A cell begins once.
        let _ = self.clock.set(clock);
    }

    /// The cell is ended from outside: its calls fail, and their signals are cancelled.
    pub(crate) fn end(&self) {
        self.end.cancel();
        for task in std::mem::take(&mut *self.tasks()) {
            self.record.newest_event(task.event("error"));
        }
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
        let is_too_much = before.saturating_add(bytes) > self.most_held_bytes
            || call.args.held_bytes() > MOST_READ_BYTES;
        let answer = if is_too_much {
            drop(call);
            Err(too_much(self.most_held_bytes))
        } else {
            tokio::select! {
                biased;
                () = self.end.cancelled() => Err(ended()),
                // Nobody closes the semaphores.
                acquired = self.place(&call) => {
                    place = acquired.ok();
                    self.outcome(call).await
                }
            }
        };
        let settled = settle(answer).await;
        drop((held, place));
        settled
    }

    /// The place of a call, until its answer is settled.
    async fn place(
        &self,
        call: &HostCall,
    ) -> Result<(SemaphorePermit<'_>, Option<SemaphorePermit<'_>>), AcquireError> {
        let of_files =
            if files::has(&call.helper) { Some(self.file_places.acquire().await?) } else { None };
        Ok((self.places.acquire().await?, of_files))
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
                let request = llm::Request::read(&args, self.spelling)?;
                count(&self.llm_calls, "llm", functions.most_calls.llm)?;
                let _still = self.stop_clock();
                let event = json!({ "op": "llm", "model": request.model });
                (Self::ask(&signal, || llm.answer(request, signal.clone())).await, event)
            }
            "agent" => {
                let answer = self.agent(&args, &signal).await;
                drop(guard.disarm());
                return answer;
            }
            helper if files::has(helper) => {
                let work = files::Work::new(helper, &args, self.spelling, functions)?;
                drop(args);
                let (mut event, mut counts) = (work.event(), Map::new());
                let done = async {
                    let done = work.done(helper, signal.clone()).await;
                    done.map(|(value, found)| {
                        counts = found;
                        value
                    })
                };
                let answer = Self::ask(&signal, || done).await;
                if let Some(fields) = event.as_object_mut() {
                    fields.extend(counts);
                }
                (answer, event)
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

    /// Has the host answer a call of `agent`. Calls of the subagent's notebook end with `signal`.
    async fn agent(&self, args: &Value, signal: &CancellationToken) -> HostAnswer {
        let functions = &self.functions;
        let agent = functions.agent.as_ref().ok_or_else(|| not_given("agent"))?;
        let request = agent::Request::read(args, self.spelling)?;
        let Nesting { depth, subagent } = &functions.nesting;
        if *depth >= functions.most_calls.depth {
            let most = functions.most_calls.depth;
            let text = format!("agent: agents nest at most {most} deep in this notebook");
            return Err(HostError::new("RangeError", text));
        }
        count(&self.agent_calls, "agent", functions.most_calls.agent)?;
        let notebook = subagent(signal.clone()).ok_or_else(ended)?;
        let number = functions.agents.fetch_add(1, Ordering::Relaxed) + 1;
        let task =
            Task { id: format!("agent-{number}"), label: request.label(), began: Instant::now() };
        self.record.newest_event(task.event("running"));
        self.tasks().push(task.clone());
        let _still = self.stop_clock();
        let ask = || agent.answer(request, depth + 1, notebook, signal.clone());
        // The result of the agent, of which the cell gets the value or the error.
        let answer = Self::ask(signal, ask).await;
        let works_still = self.tasks().extract_if(.., |known| known.id == task.id).next().is_some();
        if works_still {
            let mut event = task.event(if answer.is_ok() { "complete" } else { "error" });
            if let (Ok(value), Some(artifacts)) = (&answer, &functions.artifacts) {
                task.keep(value, artifacts, &mut event).await;
            }
            self.record.newest_event(event);
        }
        answer
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
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

fn too_much(most_bytes: usize) -> HostError {
    let mib = most_bytes >> 20;
    let message = format!("the arguments of unanswered calls have more than {mib} MiB");
    HostError::new("RangeError", message)
}

fn ended() -> HostError {
    HostError::new("Error", "the cell was ended")
}

fn not_given(helper: &str) -> HostError {
    HostError::new("Error", words::not_given(helper))
}

/// Counts a call of a cell.
fn count(calls: &AtomicU64, helper: &str, most: u64) -> Result<(), HostError> {
    if calls.fetch_add(1, Ordering::Relaxed) < most {
        return Ok(());
    }
    Err(HostError::new("RangeError", format!("more than {most} calls of {helper} in one cell")))
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
        let nesting = Nesting { depth: 0, subagent: Box::new(|_| None) };
        let functions = Functions::new(Arc::new(tools), (None, None), limits, nesting);
        let record = Record::new(Arc::new(Shared::new(limits.clone())));
        let desk = Desk::new(Arc::new(functions), record, Spelling::Camel);
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
        assert_eq!((first, second), (Ok(Value::undefined()), Err(too_much(MOST_HELD_BYTES))));
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
