//! The process service: gives an environment work and keeps the records.
//!
//! In: requests of clients, reports of an environment. Out: records, streams, events. `inner` has the table of states,
//! `drive` the task of one execution, `host` the receiver of its reports, `stored` what leaves the memory for a database,
//! and `recent` what stays a while.

mod counts;
mod drive;
mod host;
pub(crate) mod inner;
mod recent;
mod stored;

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::FutureExt;
use isolane::Error;
use serde_json::{Map, Value};
use tokio::{sync::oneshot, task::JoinHandle};

use self::inner::Inner;
use crate::{
    AllEvents, Environment, EventKind, ListQuery, NewProcess, ProblemType, ProcessError,
    ProcessEvents, ProcessList, ProcessRecord, ProcessServiceOptions, ProcessState, RunQuery,
    ServiceStats, ToolDescription, ToolHandler, ToolInfo, TypeScriptEnvironment,
    TypeScriptEnvironmentOptions,
    database::{Database, not_found},
    locks::lock,
    tools::types::tool_types,
};

/// Keeps processes: runs their code in an environment, and has their records, streams, output and events.
///
/// Clone: all clones are the same service. Its methods work under any executor.
#[derive(Clone, Debug)]
pub struct ProcessService {
    inner: Arc<Inner>,
}

impl ProcessService {
    /// A service.
    ///
    /// # Errors
    /// An option out of range. A database in a folder that does not exist, that is no database of a process service, that
    /// a newer version has written, or that another service has.
    pub fn new(options: ProcessServiceOptions) -> Result<Self, Error> {
        options.check()?;
        // First of all, so that nothing has started if the file is refused.
        let opened = options.database.as_deref().map(Database::open).transpose()?;
        let environment: Arc<dyn Environment> = match &options.environment {
            Some(environment) => Arc::clone(environment),
            None => Arc::new(TypeScriptEnvironment::new(TypeScriptEnvironmentOptions {
                concurrency: Some(options.concurrency),
                ..TypeScriptEnvironmentOptions::default()
            })?),
        };
        let handle = match &options.handle {
            Some(handle) => handle.clone(),
            None => isolane::futures_runtime()?,
        };
        let Some((database, opened)) = opened else {
            let inner = Inner::new(options, environment, handle, None, (0, 0));
            return Ok(Self { inner: Arc::new(inner) });
        };
        let log = options.log();
        let last = (opened.last_pid, opened.changes);
        let inner = Arc::new(Inner::new(options, environment, handle, Some(database), last));
        opened.start(&inner, log)?;
        Ok(Self { inner })
    }

    /// Creates a process, and queues it unless it says otherwise. With a database this answers when the process is saved:
    /// then it outlives a crash.
    ///
    /// # Errors
    /// `bad-request` (a time limit out of range), `queue-full`, `shutting-down`; `internal`: the database cannot be
    /// written.
    pub async fn create(&self, process: NewProcess) -> Result<ProcessRecord, ProcessError> {
        let is_queued = process.autorun;
        match &self.inner.database {
            None => {
                let (process, record) = self.inner.prepare(process)?;
                self.inner.created(&process, is_queued);
                Ok(record)
            }
            Some(database) => {
                let permit = database.permit().await;
                let (process, record) = self.inner.prepare(process)?;
                database.create(permit, process, record, is_queued).await
            }
        }
    }

    /// The record of a process.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn get(&self, pid: u64) -> Result<ProcessRecord, ProcessError> {
        match self.inner.read(pid, |process, body| process.record(body, true))? {
            Some(record) => Ok(record),
            None => self.database(pid)?.record(pid).await,
        }
    }

    /// The records of many processes.
    ///
    /// # Errors
    /// `bad-request`: a limit out of range.
    pub async fn list(&self, query: ListQuery) -> Result<ProcessList, ProcessError> {
        query.check()?;
        match &self.inner.database {
            None => Ok(self.inner.list(query)),
            Some(database) => database.list(Arc::clone(&self.inner), query).await,
        }
    }

    /// The record of a process when it is idle, or when that time is over. It is idle at once if it was never run.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn wait(
        &self,
        pid: u64,
        longest: Option<Duration>,
    ) -> Result<ProcessRecord, ProcessError> {
        let mut time = pin!(self.sleep(longest));
        loop {
            // One that is not in memory is idle.
            let Some(process) = self.inner.in_memory(pid) else { return self.get(pid).await };
            let mut changed = process.changed.subscribe();
            let is_over = loop {
                changed.mark_unchanged();
                {
                    let body = process.body();
                    if body.is_stored || body.is_deleted {
                        break false;
                    }
                    if body.state == ProcessState::Idle {
                        return Ok(process.record(&body, true));
                    }
                }
                tokio::select! {
                    biased;
                    // The sender lives as long as the process, which is here.
                    _ = changed.changed() => {}
                    () = &mut time => break true,
                }
            };
            if is_over {
                return self.get(pid).await;
            }
        }
    }

    /// Queues an idle process; the record is that of the queued one.
    ///
    /// # Errors
    /// `not-found`, `not-idle`, `has-results`, `queue-full`, `shutting-down`.
    pub async fn run(&self, pid: u64, query: RunQuery) -> Result<ProcessRecord, ProcessError> {
        match &self.inner.database {
            None => self.inner.queue_again(pid, query),
            Some(database) => database.run(pid, query).await,
        }
    }

    /// Kills a process; the record is that right after the request. Use [`wait`](Self::wait) for its end.
    ///
    /// # Errors
    /// `not-found`, `already-idle`.
    pub async fn kill(&self, pid: u64) -> Result<ProcessRecord, ProcessError> {
        let killed = self.inner.kill(pid);
        if let (Err(error), Some(database)) = (&killed, &self.inner.database)
            && error.code == ProblemType::NotFound
        {
            // One that is not in memory is idle, if it is there.
            database.last_event(pid).await?;
            return Err(ProcessError::already_idle(pid));
        }
        killed
    }

    /// Forgets an idle process.
    ///
    /// # Errors
    /// `not-found`, `not-idle`.
    pub async fn delete(&self, pid: u64) -> Result<(), ProcessError> {
        match &self.inner.database {
            None => self.inner.delete(pid),
            Some(database) => database.delete(pid).await,
        }
    }

    /// The code of a process.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn code(&self, pid: u64) -> Result<String, ProcessError> {
        match self.inner.read(pid, |process, _| process.code.clone())? {
            Some(code) => Ok(code),
            None => self.database(pid)?.code(pid).await,
        }
    }

    /// The standard output so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn stdout(&self, pid: u64) -> Result<String, ProcessError> {
        match self.inner.read(pid, |_, body| body.stdout.text().to_owned())? {
            Some(text) => Ok(text),
            None => self.database(pid)?.text(pid, EventKind::Stdout).await,
        }
    }

    /// The standard error so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn stderr(&self, pid: u64) -> Result<String, ProcessError> {
        match self.inner.read(pid, |_, body| body.stderr.text().to_owned())? {
            Some(text) => Ok(text),
            None => self.database(pid)?.text(pid, EventKind::Stderr).await,
        }
    }

    /// The output so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn output(&self, pid: u64) -> Result<Map<String, Value>, ProcessError> {
        match self.inner.read(pid, |_, body| body.output.fields().clone())? {
            Some(output) => Ok(output),
            None => self.database(pid)?.output(pid).await,
        }
    }

    /// A reader of a process's events after the one with that id; all with 0. `None` if none can follow: the process has
    /// ended, and the reader knows its last event.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn events(
        &self,
        pid: u64,
        after: u64,
    ) -> Result<Option<ProcessEvents>, ProcessError> {
        let in_memory = self.inner.read(pid, |_, body| {
            let is_over = body.state == ProcessState::Idle && body.exit_state.is_some();
            (body.log.last_id(), is_over)
        })?;
        let (last, is_over) = match in_memory {
            Some(known) => known,
            None => self.database(pid)?.last_event(pid).await?,
        };
        if is_over && after >= last {
            return Ok(None);
        }
        Ok(Some(ProcessEvents::new(&self.inner, pid, after.min(last))))
    }

    /// A reader of the changes of all processes from now on, or after the event with that id if it is known still.
    #[must_use]
    pub fn all_events(&self, after: Option<u64>) -> AllEvents {
        AllEvents::new(&self.inner.changes, after)
    }

    /// Adds a tool. Processes that start from now on have it.
    ///
    /// # Errors
    /// A name that is none, or that is taken; a schema that is none.
    pub fn tool(
        &self,
        service: &str,
        name: &str,
        description: ToolDescription,
        handler: impl ToolHandler,
    ) -> Result<(), Error> {
        let mut tools = lock(&self.inner.tools);
        *tools = Arc::new(tools.with(service, name, description, Arc::new(handler))?);
        Ok(())
    }

    /// Adds tools: the service, the name, the description, and the handler of each. Processes that start from now on have
    /// them.
    ///
    /// # Errors
    /// As [`tool`](Self::tool); nothing is added then.
    pub fn add_tools(
        &self,
        added: impl IntoIterator<Item = (String, String, ToolDescription, Arc<dyn ToolHandler>)>,
    ) -> Result<(), Error> {
        let mut tools = lock(&self.inner.tools);
        *tools = Arc::new(tools.with_all(added)?);
        Ok(())
    }

    /// All tools, by service and name.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolInfo]> {
        Arc::clone(lock(&self.inner.tools).infos())
    }

    /// The declarations of all tools in TypeScript: `/tools.d.ts`.
    #[must_use]
    pub fn tool_types(&self) -> String {
        tool_types(&self.tools())
    }

    /// The description of a tool in Markdown, by the environment: `/tools/{service}/{tool}/docs`.
    ///
    /// # Errors
    /// `not-found`: no such tool, or the environment describes none.
    pub async fn tool_docs(&self, service: &str, name: &str) -> Result<String, ProcessError> {
        let tools = self.tools();
        let is_it = |tool: &&ToolInfo| tool.service == service && tool.name == name;
        let not_found = |message: String| ProcessError::new(ProblemType::NotFound, message);
        let tool = tools.iter().find(is_it);
        let tool = tool.ok_or_else(|| not_found(format!("there is no tool {service}.{name}")))?;
        let docs = self.inner.environment.generate_tool_docs(tool).await;
        docs.ok_or_else(|| not_found("the environment describes no tools".to_owned()))
    }

    /// The description of the environment in Markdown: `/environment/docs`.
    ///
    /// # Errors
    /// `not-found`: the environment has none.
    pub async fn environment_docs(&self) -> Result<String, ProcessError> {
        let docs = self.inner.environment.generate_docs().await;
        docs.ok_or_else(|| {
            ProcessError::new(ProblemType::NotFound, "the environment has no description")
        })
    }

    /// Counts, for metrics.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        let processes = self.inner.by_state();
        let counts = lock(&self.inner.counts);
        ServiceStats {
            processes,
            exits: counts.exits(),
            duration: counts.duration.histogram(),
            queue: counts.queue.histogram(),
            tool_calls: counts.tools(),
            given_up: counts.given_up,
        }
    }

    /// The longest time limit, in milliseconds, that a process may ask for.
    #[must_use]
    pub fn max_timeout_ms(&self) -> u64 {
        self.inner.options.max_timeout_ms
    }

    /// Whether the service refuses new work: `/healthz`.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.inner.is_shutting_down()
    }

    /// Refuses new work, cancels the queue, kills what runs, waits for it as long as a kill may take, and shuts the
    /// environment down, and the database. Each further call waits for the same.
    pub async fn shutdown(&self) {
        let mut is_over = self.inner.is_over.subscribe();
        if self.inner.begin_shutdown() {
            drop(self.inner.handle.spawn(end(Arc::clone(&self.inner), true)));
        }
        // The sender lives as long as the service, which is here.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// As [`shutdown`](Self::shutdown), without waiting, and without shutting the environment down: for an owner that is
    /// gone, whose environment others may use.
    pub(crate) fn abandon(&self) {
        if self.inner.begin_shutdown() {
            drop(self.inner.handle.spawn(end(Arc::clone(&self.inner), false)));
        }
    }

    /// A handle that does not keep the service.
    #[must_use]
    pub fn downgrade(&self) -> WeakProcessService {
        WeakProcessService(Arc::downgrade(&self.inner))
    }

    /// Takes a tool away. Processes that have started keep it.
    pub fn remove_tool(&self, service: &str, name: &str) {
        let mut tools = lock(&self.inner.tools);
        *tools = Arc::new(tools.without(&format!("{service}.{name}")));
    }

    /// The database, where the processes are that are not in memory.
    fn database(&self, pid: u64) -> Result<&Database, ProcessError> {
        self.inner.database.as_ref().ok_or_else(|| not_found(pid))
    }

    /// Waits so long, or for ever, by the service's clock, under any executor.
    async fn sleep(&self, time: Option<Duration>) {
        let Some(time) = time else { return std::future::pending().await };
        let (sender, over) = oneshot::channel::<()>();
        let _timer = Timer(self.inner.handle.spawn(async move {
            tokio::time::sleep(time).await;
            drop(sender);
        }));
        // The sender sends nothing: it is dropped when the time is over.
        let _ = over.await;
    }
}

/// A handle on a service that does not keep it.
#[derive(Clone, Debug)]
pub struct WeakProcessService(Weak<Inner>);

impl WeakProcessService {
    /// The service, if somebody keeps it.
    #[must_use]
    pub fn upgrade(&self) -> Option<ProcessService> {
        self.0.upgrade().map(|inner| ProcessService { inner })
    }
}

/// A timer, which ends with its waiter.
struct Timer(JoinHandle<()>);

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for the executions, as long as a kill may take, and shuts the environment down, for which it has as long again.
async fn end(inner: Arc<Inner>, has_environment: bool) {
    let mut busy = inner.busy.subscribe();
    // Each execution is given up after the grace, so all places become free.
    let _ = busy.wait_for(|busy| *busy == 0).await;
    if has_environment {
        end_environment(&inner).await;
    }
    if let Some(database) = &inner.database {
        database.close().await;
    }
    inner.changes.end();
    inner.is_over.send_replace(true);
}

async fn end_environment(inner: &Inner) {
    let grace = Duration::from_millis(inner.options.kill_grace_ms);
    let shutdown = AssertUnwindSafe(inner.environment.shutdown()).catch_unwind();
    match tokio::time::timeout(grace, shutdown).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => inner.log("the shutdown of the environment panicked"),
        Err(_) => {
            let grace = grace.as_millis();
            inner.log(&format!("the environment did not shut down within {grace} ms"));
        }
    }
}
