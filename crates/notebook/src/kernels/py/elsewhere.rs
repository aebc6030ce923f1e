//! Systems without the means of a kernel's process: Python cells are unavailable there.

#![expect(clippy::unused_async, reason = "other systems wait")]

use std::{collections::BTreeMap, time::Duration};

use isolane_child::Ending;

use crate::{CellError, PyOptions, host::desk::Helpers, kernels::Cell};

/// There is no process.
#[derive(Debug)]
pub(super) enum Process {}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "no process ends here")]
pub(super) enum Gone {
    Ended(Ending),
    Malformed,
    OutOfMemory,
    Killed,
}

impl Process {
    pub(super) async fn start(
        _options: &PyOptions,
        _variables: &BTreeMap<String, String>,
        _helpers: &Helpers,
        _live_bytes: usize,
    ) -> Result<Self, String> {
        Err("it needs Linux or macOS".to_owned())
    }

    pub(super) fn id(&self) -> Option<u32> {
        match *self {}
    }

    pub(super) fn found(&self) -> (&str, &str) {
        match *self {}
    }

    pub(super) fn gone(&self) -> Option<Gone> {
        match *self {}
    }

    pub(super) async fn begin(&mut self, _number: u32, _name: &str, _cell: &Cell<'_>) {
        match *self {}
    }

    pub(super) async fn interrupt(&mut self, _cell: u32) {
        match *self {}
    }

    pub(super) async fn done(&mut self, _cell: u32) -> Result<Option<CellError>, Gone> {
        match *self {}
    }

    pub(super) async fn kill(&mut self) {
        match *self {}
    }

    pub(super) async fn close(self, _grace: Duration) {
        match self {}
    }
}

pub(super) fn resident_bytes(_id: u32) -> Option<u64> {
    None
}

pub(super) fn how(_gone: Gone) -> String {
    String::new()
}
