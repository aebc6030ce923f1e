//! The process service: gives an environment work and keeps the records.
//!
//! In: requests of clients, reports of an environment. Out: records, streams, events.

use std::{sync::Arc, time::Duration};

use isolane::Error;
use serde_json::{Map, Value};

use crate::{
    AllEvents, ListQuery, NewProcess, ProcessError, ProcessEvents, ProcessList, ProcessRecord,
    ProcessServiceOptions, RunQuery, ServiceStats, ToolDescription, ToolHandler, ToolInfo,
};

/// Keeps processes: runs their code in an environment, and has their records, streams, output and events.
///
/// Clone: all clones are the same service. Its methods work under any executor.
#[derive(Clone, Debug)]
pub struct ProcessService {}

impl ProcessService {
    /// A service.
    ///
    /// # Errors
    /// An option out of range.
    pub fn new(options: ProcessServiceOptions) -> Result<Self, Error> {
        let _ = options;
        todo!()
    }

    /// Creates a process, and queues it unless it says otherwise.
    ///
    /// # Errors
    /// `bad-request` (a time limit out of range), `queue-full`, `shutting-down`.
    pub async fn create(&self, process: NewProcess) -> Result<ProcessRecord, ProcessError> {
        let _ = process;
        todo!()
    }

    /// The record of a process.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn get(&self, pid: u64) -> Result<ProcessRecord, ProcessError> {
        let _ = pid;
        todo!()
    }

    /// The records of many processes.
    ///
    /// # Errors
    /// `bad-request`: a limit out of range.
    pub async fn list(&self, query: ListQuery) -> Result<ProcessList, ProcessError> {
        let _ = query;
        todo!()
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
        let _ = (pid, longest);
        todo!()
    }

    /// Queues an idle process; the record is that of the queued one.
    ///
    /// # Errors
    /// `not-found`, `not-idle`, `has-results`, `queue-full`, `shutting-down`.
    pub async fn run(&self, pid: u64, query: RunQuery) -> Result<ProcessRecord, ProcessError> {
        let _ = (pid, query);
        todo!()
    }

    /// Kills a process; the record is that right after the request. Use [`wait`](Self::wait) for its end.
    ///
    /// # Errors
    /// `not-found`, `already-idle`.
    pub async fn kill(&self, pid: u64) -> Result<ProcessRecord, ProcessError> {
        let _ = pid;
        todo!()
    }

    /// Forgets an idle process.
    ///
    /// # Errors
    /// `not-found`, `not-idle`.
    pub async fn delete(&self, pid: u64) -> Result<(), ProcessError> {
        let _ = pid;
        todo!()
    }

    /// The code of a process.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn code(&self, pid: u64) -> Result<String, ProcessError> {
        let _ = pid;
        todo!()
    }

    /// The standard output so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn stdout(&self, pid: u64) -> Result<String, ProcessError> {
        let _ = pid;
        todo!()
    }

    /// The standard error so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn stderr(&self, pid: u64) -> Result<String, ProcessError> {
        let _ = pid;
        todo!()
    }

    /// The output so far.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn output(&self, pid: u64) -> Result<Map<String, Value>, ProcessError> {
        let _ = pid;
        todo!()
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
        let _ = (pid, after);
        todo!()
    }

    /// A reader of the changes of all processes from now on, or after the event with that id if it is known still.
    #[must_use]
    pub fn all_events(&self, after: Option<u64>) -> AllEvents {
        let _ = after;
        todo!()
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
        let _ = (service, name, description, handler);
        todo!()
    }

    /// All tools, by service and name.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolInfo]> {
        todo!()
    }

    /// The declarations of all tools in TypeScript: `/tools.d.ts`.
    #[must_use]
    pub fn tool_types(&self) -> String {
        todo!()
    }

    /// The description of a tool in Markdown, by the environment: `/tools/{service}/{tool}/docs`.
    ///
    /// # Errors
    /// `not-found`: no such tool, or the environment describes none.
    pub async fn tool_docs(&self, service: &str, name: &str) -> Result<String, ProcessError> {
        let _ = (service, name);
        todo!()
    }

    /// The description of the environment in Markdown: `/environment/docs`.
    ///
    /// # Errors
    /// `not-found`: the environment has none.
    pub async fn environment_docs(&self) -> Result<String, ProcessError> {
        todo!()
    }

    /// Counts, for metrics.
    #[must_use]
    pub fn stats(&self) -> ServiceStats {
        todo!()
    }

    /// Whether the service refuses new work: `/healthz`.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        todo!()
    }

    /// Refuses new work, cancels the queue, kills what runs, waits for it as long as a kill may take, and shuts the
    /// environment down. Each further call waits for the same.
    pub async fn shutdown(&self) {
        todo!()
    }
}
