//! Systems that cannot confine a kernel.

#![expect(clippy::unused_async, reason = "Linux waits")]

use std::collections::BTreeMap;

use isolane_child::{Ending, Lasting};
use isolane_confine::program::ProgramConfinement;

use super::{Refused, launch::Ends};
use crate::PyOptions;

/// The reason of all kernels that were to be confined.
const REASON: &str = "cells of Python cannot be confined on this system; with isolation 'none' of py they have the rights \
                      of this process";

/// A kernel has no such numbers here.
pub(super) const NUMBERS: [i32; 3] = [0; 3];

/// There is no confinement.
#[derive(Debug)]
pub(super) enum Confined {}

pub(super) async fn start(
    _options: &PyOptions,
    _variables: &BTreeMap<String, String>,
    _ends: Ends,
) -> Result<(Lasting, Confined), Refused> {
    Err(REASON.to_owned().into())
}

pub(super) async fn trial(_options: &PyOptions) -> Result<ProgramConfinement, Refused> {
    Err(REASON.to_owned().into())
}

impl Confined {
    pub(super) fn process_id(&self) -> Option<u32> {
        match *self {}
    }

    pub(super) fn is_in_group(&self) -> bool {
        match *self {}
    }

    pub(super) fn confinement(&self) -> ProgramConfinement {
        match *self {}
    }

    pub(super) fn ending(&self, _ending: Ending) -> Option<Ending> {
        match *self {}
    }

    pub(super) async fn end(self) {
        match self {}
    }
}
