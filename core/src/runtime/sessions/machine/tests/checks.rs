//! The rules that hold in each state of the world.

use super::{Came, Phase, World};
use crate::runtime::sessions::machine::{Kind, Message, Resting};

impl World {
    /// Nothing else computes, nor is about to.
    pub(super) fn check_alone(&self, number: u32) {
        for (other, run) in &self.runs {
            let computes = match run.phase {
                Phase::Computes => !self.is_told() || run.kind.is_cell(),
                Phase::Granted => !self.is_told(),
                Phase::Waits => !self.interleaves,
                Phase::Queued => false,
            };
            assert!(*other == number || !computes, "{other} and {number} compute");
        }
    }

    /// Whether the first one that waits can begin as soon as the worker parks.
    pub(super) fn first_can_begin(&self) -> bool {
        let can_begin = |came: &Came| match came {
            Came::Run(run) => (self.runs[run].kind != Kind::Fork).then_some(true),
            Came::Call(call) => Some(!self.unplaced.contains(call)),
        };
        self.came.iter().find_map(can_begin).unwrap_or(false)
    }

    /// The machine has no other picture of the worker, and believes nothing that cannot be.
    pub(super) fn check_worker(&self) {
        let is_granted = self.runs.values().any(|run| run.phase == Phase::Granted);
        if self.in_worker.is_some() && !is_granted && !self.close_due {
            let parks = self.is_asked_to_park || !self.first_can_begin();
            assert!(parks, "a run waits, and nobody has asked the worker to park");
        }
        if let Some(current) = self.machine.current() {
            assert_ne!(
                self.phase(*current),
                Some(Phase::Waits),
                "{current} has the turn, and waits"
            );
        }
        for number in self.runs.keys() {
            let is_begun = self.isolate.begun.contains(number);
            assert_eq!(
                self.machine.cell(*number).is_ok(),
                is_begun,
                "whether {number} is in flight"
            );
        }
        for call in &self.unplaced {
            let placed = self.machine.clone().placed(*call, u32::MAX);
            assert!(placed.is_err(), "call {call} is in a cell that is not in flight");
        }
    }

    /// Nobody waits for a turn that nobody has.
    pub(super) fn check(&self) {
        if self.ends {
            return;
        }
        if self.is_told() {
            self.check_worker();
        }
        // The close ends all that wait.
        if self.machine.current().is_some() || self.close_due {
            return;
        }
        let has_begun = self.has_begun();
        for came in &self.came {
            match came {
                Came::Run(run) => match self.runs[run].kind {
                    // The end of a question that the worker has asks for the next turn.
                    Kind::Fork if has_begun || !self.asked.is_empty() => {}
                    Kind::Reset if has_begun => break,
                    kind => panic!("{kind:?} waits, and nobody has the turn"),
                },
                // The worker tells first where it is.
                Came::Call(call) if self.unplaced.contains(call) => break,
                Came::Call(call) => panic!("call {call} waits, and nobody has the turn"),
            }
        }
        assert!(!self.has_parked_early || !has_begun, "the worker has parked for nothing");
        if self.is_closed && self.runs.is_empty() && self.unplaced.is_empty() {
            assert!(self.is_freed && self.closers == 0, "closed, and somebody waits for the end");
            assert!(self.calls.is_empty(), "closed, and a call has no answer");
        }
        if self.is_told() {
            return;
        }
        assert!(self.isolate.wanted.is_none(), "a job waits, and nobody has the turn");
        let waits = self.machine.inbox().any(|message| message.call().is_none());
        assert!(!waits || !has_begun, "an answer waits, and nobody has the turn");
        for begun in self.begun() {
            let run = &self.runs[&begun];
            let told = self.machine.runs[&begun].is_stalled;
            assert_eq!(run.is_stalled, told, "whether {begun} is stalled");
            assert!(!told || !self.isolate.can_resume(), "{begun} can resume, and is stalled");
            assert!(!run.is_asked, "{begun} is to end, and gets no turn");
            let knows = self.isolate.can_resume() || run.is_stalled;
            assert!(knows, "nothing resumes {begun}, which does not know that it is stalled");
        }
    }
}
