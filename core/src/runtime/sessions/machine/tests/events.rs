//! The events that can be in a state of the world.

use super::{Event, KEPT, LOST, Phase, RESET, ROLLED_BACK, Undoes, World};
use crate::runtime::sessions::machine::Kind;

impl World {
    /// All events that can be now.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.budget > 0 && !self.is_closed {
            events.push(Event::Add(Kind::Cell));
            for kind in self.kinds {
                match kind {
                    Kind::Reset => events.push(Event::Reset),
                    Kind::Held(_) => {
                        events.push(Event::Call(0));
                        events.extend(self.begun().last().map(Event::Call));
                    }
                    kind => events.push(Event::Add(*kind)),
                }
            }
        }
        if self.ends {
            // The others find the same whether they come before or after.
            events.retain(|event| matches!(event, Event::Add(_) | Event::Call(_)));
            events.push(Event::HaveEnded);
            return events;
        }
        if !self.is_closed || self.close_due {
            events.push(Event::Close);
        }
        if !self.is_closed {
            events.push(Event::Abandon);
            let waits = self.came.iter().any(|came| came.call().is_some());
            events.extend((waits && !self.refuses_calls).then_some(Event::CloseRuntime));
        }
        if self.resets_due > 0 {
            events.push(Event::AskForReset);
        }
        if self.rests.is_some() {
            events.push(Event::Rest);
        }
        for (&number, run) in &self.runs {
            if !run.is_asked && run.kind == Kind::Cell {
                events.push(Event::Terminate(number));
            }
            match run.phase {
                Phase::Granted => events.push(Event::Begin(number)),
                Phase::Computes if !run.kind.is_cell() => {
                    if self.asked.front().is_none_or(|asked| *asked == number) {
                        events.push(Event::End(number, KEPT, Undoes::None));
                    }
                }
                Phase::Computes if run.is_asked => {
                    let others = self.isolate.begun.len() > 1;
                    events.push(Event::End(number, ROLLED_BACK, Undoes::None));
                    events.extend(others.then_some(Event::End(number, ROLLED_BACK, Undoes::All)));
                    events.push(Event::End(number, RESET, Undoes::All));
                    events.push(Event::End(number, LOST, Undoes::All));
                }
                Phase::Computes => {
                    events.push(Event::End(number, KEPT, Undoes::None));
                    if !self.interleaves && self.machine.has_messages() && self.behind == 0 {
                        events.push(Event::Answer(number));
                    }
                    if !self.is_told() && self.calls.values().any(|cell| *cell == number) {
                        events.push(Event::End(number, KEPT, Undoes::Late));
                    }
                    events.push(Event::End(number, LOST, Undoes::All));
                    if !self.is_told() {
                        let wait = |awaits, wanted| Event::Wait { run: number, awaits, wanted };
                        events.push(wait(true, None));
                        if self.interleaves {
                            events.push(wait(false, None));
                            let other = self.begun().find(|other| *other != number);
                            events.extend(other.map(|other| wait(true, Some(other))));
                        }
                    }
                }
                Phase::Waits if self.is_told() && run.is_asked => {
                    let others = self.isolate.begun.len() > 1;
                    events.push(Event::End(number, ROLLED_BACK, Undoes::None));
                    events.extend(others.then_some(Event::End(number, ROLLED_BACK, Undoes::All)));
                    events.push(Event::End(number, RESET, Undoes::All));
                }
                Phase::Waits if run.awaits || self.is_told() => events.push(Event::Answer(number)),
                Phase::Queued | Phase::Waits => {}
            }
        }
        let computes = |run: &u32| self.phase(*run) == Some(Phase::Computes);
        events.extend(
            self.calls.iter().filter(|(_, run)| computes(run)).map(|it| Event::Settle(*it.0)),
        );
        if self.is_told() {
            events.extend(self.events_of_worker());
        }
        events
    }

    /// The events that a worker tells of.
    fn events_of_worker(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.in_worker.is_some() {
            events.push(Event::Park);
        }
        if self.in_worker.is_some() || self.has_frames {
            let others = self.begun().filter(|begun| Some(*begun) != self.in_worker);
            events.extend(others.map(Event::Turn));
        }
        for &call in &self.unplaced {
            events.push(Event::Placed(call, 0));
            events.extend(self.begun().last().map(|cell| Event::Placed(call, cell)));
        }
        let is_over = |cell: &u32| *cell != 0 && !self.runs.contains_key(cell);
        let late = self.calls.iter().filter(|(_, cell)| is_over(cell));
        events.extend(late.map(|(call, _)| Event::Placed(*call, 0)));
        if self.in_worker.is_none() && !self.isolate.begun.is_empty() {
            events.push(Event::Lose);
        }
        events
    }
}
