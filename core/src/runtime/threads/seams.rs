//! The places between the steps of a run where tests make this crate panic.

/// A place between two steps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    Start,
    Started,
    Parked,
    Ended,
    Settled,
    LetGo,
}

/// The seams of a run outside of tests, at which nothing happens.
#[cfg(not(test))]
#[derive(Clone, Copy)]
pub(crate) struct Seams;

#[cfg(not(test))]
impl Seams {
    pub(crate) fn of(_filename: &str) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "tests use it")]
    pub(crate) fn pass(self, _: Seam) {}
}

/// The place where a run is to panic. The name of its file says so.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Seams {
    panics_at: Option<Seam>,
}

#[cfg(test)]
impl Seams {
    pub(crate) fn of(filename: &str) -> Self {
        Self { panics_at: Seam::ALL.into_iter().find(|seam| seam.file() == filename) }
    }

    pub(crate) fn pass(self, seam: Seam) {
        assert!(self.panics_at != Some(seam), "as the test wants, at {seam:?}");
    }
}

#[cfg(test)]
impl Seam {
    pub(crate) const ALL: [Self; 6] =
        [Self::Start, Self::Started, Self::Parked, Self::Ended, Self::Settled, Self::LetGo];

    /// The file of a run that panics there.
    pub(crate) fn file(self) -> String {
        format!("panics at {self:?}")
    }
}
