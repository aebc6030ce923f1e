//! Counts of a process service, for metrics.

use crate::{ExecutionExitState, ProcessState};

/// How often a time was at most so long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Bounds in seconds, rising, each with the count of times that are at most so long (those of lower bounds
    /// included). Longer ones are in `count` alone.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all times, in seconds.
    pub sum: f64,
    /// The number of all times.
    pub count: u64,
}

/// Calls of a tool with one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCount {
    /// `service.tool`.
    pub tool: String,
    /// `ok`, `error`, `refused` (the arguments, or too many calls) or `dropped` (the execution ended first).
    pub outcome: &'static str,
    /// How many.
    pub count: u64,
}

/// The counts of a service since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceStats {
    /// Processes that are there now, by their state; all four states.
    pub processes: Vec<(ProcessState, u64)>,
    /// Executions that ended, by how; all four ends.
    pub exits: Vec<(ExecutionExitState, u64)>,
    /// Times from start to end.
    pub duration: Histogram,
    /// Times from queued to start.
    pub queue: Histogram,
    /// Calls of tools.
    pub tool_calls: Vec<ToolCount>,
    /// Executions that were given up.
    pub given_up: u64,
}
