//! Systems without the means of a kernel's process: Python cells are unavailable there.

#![expect(clippy::unused_async, reason = "other systems wait")]

use std::{collections::BTreeMap, time::Duration};

use isolane_child::Ending;

use isolane_confine::program::ProgramConfinement;
use tokio::sync::oneshot;

use super::Refused;
use crate::{CellError, PyOptions, kernels::Cell};

/// The end of a cell.
pub(super) type Done = oneshot::Receiver<Option<CellError>>;

/// The reason of all kernels.
const REASON: &str = "it needs Linux or macOS";

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
    Silent,
    Killed,
}

impl Process {
    pub(super) async fn start(
        _options: &PyOptions,
        _variables: &BTreeMap<String, String>,
        _kept_bytes: (usize, usize),
        _heartbeat: Duration,
    ) -> Result<Self, Refused> {
        Err(REASON.to_owned().into())
    }

    pub(super) fn id(&self) -> Option<u32> {
        match *self {}
    }

    pub(super) fn found(&self) -> (&str, &str) {
        match *self {}
    }

    pub(super) fn confinement(&self) -> Option<ProgramConfinement> {
        match *self {}
    }

    pub(super) fn gone(&self) -> Option<Gone> {
        match *self {}
    }

    pub(super) fn next_cell(&self) -> u32 {
        match *self {}
    }

    pub(super) fn attend(&self, _number: u32, _cell: &Cell<'_>) -> Done {
        match *self {}
    }

    pub(super) async fn begin(&self, _number: u32, _name: &str, _cell: &Cell<'_>) {
        match *self {}
    }

    pub(super) async fn interrupt(&self, _cell: u32) {
        match *self {}
    }

    pub(super) async fn done(&self, _done: &mut Done) -> Result<Option<CellError>, Gone> {
        match *self {}
    }

    pub(super) async fn kill(&self) {
        match *self {}
    }

    pub(super) async fn close(&self, _grace: Duration) {
        match *self {}
    }
}

/// The confinement that a kernel would have.
pub(super) async fn trial(_options: &PyOptions) -> Result<ProgramConfinement, Refused> {
    Err(REASON.to_owned().into())
}

pub(super) fn resident_bytes(_id: u32) -> Option<u64> {
    None
}

pub(super) fn how(_gone: Gone) -> String {
    String::new()
}
