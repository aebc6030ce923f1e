//! The steps of the world, which carry out the actions of the machine as the places do.

use std::collections::{BTreeSet, VecDeque};

use super::{
    Came, Event, KEPT, LOST, Modelled, Phase, RESET, ROLLED_BACK, Run, Told, Undoes, World,
};
use crate::runtime::sessions::machine::{Effect, Ends, Kind, Left, Message, Resting, Turn, Undone};

impl World {
    pub(super) fn step(&mut self, event: Event) {
        let asks = self.asks_for_turn(event);
        match event {
            Event::Add(kind) => {
                self.budget -= 1;
                self.add(kind);
            }
            Event::Call(cell) => self.call(cell),
            Event::Reset => {
                self.budget -= 1;
                self.end_all(true);
                self.resets_due += u32::from(self.is_here);
            }
            Event::AskForReset => {
                self.resets_due -= 1;
                if !self.is_closed {
                    self.add(Kind::Reset);
                }
            }
            Event::CloseRuntime => {
                self.refuses_calls = true;
                self.close_due = true;
                self.machine.refuse_calls();
            }
            Event::Close => {
                self.is_closed = true;
                self.close_due = false;
                self.closers += 1;
                self.machine.close(1);
                self.end_all(false);
            }
            Event::Abandon => {
                self.is_closed = true;
                self.machine.abandon();
            }
            Event::Terminate(run) => self.terminate(run),
            Event::Begin(run) => self.begin(run),
            Event::Wait { run, awaits, wanted } => self.wait(run, awaits, wanted),
            Event::Rest => {
                let (run, is_stalled) = self.rests.take().expect("a cell that rests");
                assert!(self.machine.rest(run, is_stalled), "it has the isolate");
            }
            Event::HaveEnded => {
                self.ends = false;
                self.machine.has_ended();
            }
            Event::Answer(run) => self.answer(run),
            Event::Settle(call) => {
                assert!(self.machine.settle(call), "the host has no outcome of call {call}");
                self.calls.remove(&call);
                assert!(!self.machine.settle(call), "the host has the outcome of call {call}");
            }
            Event::End(run, effect, undoes) => self.end(run, effect, undoes),
            Event::Turn(run) => {
                self.compute_in_worker(Some(run));
                self.machine.turn(run);
                self.offer();
            }
            Event::Park => {
                self.compute_in_worker(None);
                self.has_parked_early = std::mem::take(&mut self.is_asked_to_park);
                self.machine.parked();
            }
            Event::Placed(call, cell) => {
                let is_late = !self.unplaced.remove(&call);
                self.machine.placed(call, cell).expect("a call that the worker had");
                if cell != 0 {
                    self.hand(call, cell);
                } else {
                    self.with_worker.insert(call);
                    if is_late {
                        self.put_back([call]);
                    }
                }
            }
            Event::Lose => self.lose(),
        }
        if asks {
            self.go_on();
        }
        self.free();
        self.check();
    }

    /// Whether the session asks whose turn it is after that event. The cells in a worker go on by themselves.
    fn asks_for_turn(&self, event: Event) -> bool {
        let goes_on = match event {
            Event::Begin(_) | Event::Turn(_) | Event::Answer(_) | Event::Settle(_) => true,
            Event::Call(_) => !self.isolate.begun.is_empty(),
            _ => false,
        };
        !self.is_told() || !goes_on
    }

    fn add(&mut self, kind: Kind) {
        let number = self.machine.number();
        self.machine.push(number, kind, number);
        self.came.push_back(Came::Run(number));
        self.know(number, kind, Phase::Queued);
    }

    fn know(&mut self, number: u32, kind: Kind, phase: Phase) {
        let run = Run { kind, phase, is_asked: false, awaits: false, is_stalled: false };
        assert!(self.runs.insert(number, run).is_none(), "two runs have the number {number}");
    }

    fn call(&mut self, cell: u32) {
        self.budget -= 1;
        self.last_call += 1;
        let call = self.last_call;
        self.calls.insert(call, 0);
        self.came.push_back(Came::Call(call));
        let message = Told::Call(call, cell);
        if self.is_told() && !self.isolate.begun.is_empty() {
            self.machine.sent(call);
            self.unplaced.insert(call);
            self.wake_worker();
        } else if self.is_here && self.interleaves {
            self.machine.keep_new(message);
        } else {
            self.keep(message);
        }
    }

    /// Keeps a message for the run that has the turn, or for the next one.
    fn keep(&mut self, message: Told) {
        let current = self.machine.current().copied();
        let listens = |run: &u32| {
            let run = &self.runs[run];
            run.kind.is_cell()
                && !run.is_asked
                && matches!(run.phase, Phase::Computes | Phase::Waits)
        };
        let current = current.filter(|run| !self.interleaves && listens(run));
        self.behind += usize::from(message.call().is_none());
        if self.machine.keep(message, current.is_some())
            && let Some(run) = current
        {
            self.hand_over(run);
        }
    }

    /// Hands a cell that waits all calls that wait.
    fn hand_over(&mut self, run: u32) {
        let waits = self.phase(run) == Some(Phase::Waits) && !self.runs[&run].is_asked;
        let mut handed = VecDeque::new();
        let has = self.machine.hand_over(run, |_, messages| {
            if !waits {
                return Err(messages);
            }
            handed = messages;
            Ok(())
        });
        if has {
            let waiting: Vec<u32> = self.came.iter().filter_map(|came| came.call()).collect();
            // The worker hands those over that it has.
            let waiting = waiting.into_iter().filter(|call| !self.with_worker.contains(call));
            let (waiting, calls): (Vec<u32>, Vec<u32>) =
                (waiting.collect(), handed.iter().filter_map(Told::call).collect());
            assert_eq!(calls, waiting, "a cell is handed all calls that wait, in their order");
            assert_eq!(handed.len() - calls.len(), self.behind, "it is handed the answers behind");
            self.behind = 0;
            for call in handed.iter().filter_map(Told::call) {
                self.hand(call, run);
            }
            self.set_phase(run, Phase::Computes);
        }
    }

    /// A cell has a call.
    fn hand(&mut self, call: u32, cell: u32) {
        self.came.retain(|came| *came != Came::Call(call));
        self.with_worker.remove(&call);
        if let Some(place) = self.calls.get_mut(&call) {
            *place = cell;
        }
    }

    /// Calls that a cell had, and was not handed, are the first that wait.
    fn put_back(&mut self, calls: impl IntoIterator<Item = u32, IntoIter: DoubleEndedIterator>) {
        for call in calls.into_iter().rev() {
            self.came.push_front(Came::Call(call));
            self.calls.insert(call, 0);
        }
    }

    fn terminate(&mut self, run: u32) {
        self.runs.get_mut(&run).expect("a run that is not over").is_asked = true;
        match self.phase(run) {
            Some(Phase::Queued | Phase::Granted) => self.leave(run, Left::of(Effect::Untouched)),
            Some(Phase::Waits) if self.is_told() => self.has_frames = true,
            Some(Phase::Waits) if self.interleaves => {
                self.machine.call(run, true);
                let other = self.machine.computes_beside(run).copied();
                assert_ne!(other, Some(run), "it ends by itself");
                match other.map(|other| (other, self.runs[&other].phase)) {
                    Some((other, Phase::Waits)) if self.runs[&other].is_asked => {}
                    Some((other, Phase::Waits | Phase::Computes)) => self.terminate(other),
                    Some(_) => panic!("one that has not begun is ended"),
                    None => {}
                }
            }
            Some(Phase::Waits) => self.set_phase(run, Phase::Computes),
            Some(Phase::Computes) | None => {}
        }
    }

    fn begin(&mut self, run: u32) {
        let kind = self.runs[&run].kind;
        self.set_phase(run, Phase::Computes);
        if kind == Kind::Fork || kind == Kind::Reset {
            assert!(self.isolate.begun.is_empty(), "cells in flight: no copy and no reset");
        }
        if self.is_here && !kind.is_cell() {
            return;
        }
        self.machine.begin(run);
        if self.is_here {
            self.machine.dispatch(Some(&self.isolate));
        }
        drop(self.machine.take_inbox());
        if kind.is_cell() {
            self.isolate.begun.insert(run);
        } else {
            self.has_parked_early = false;
            if self.interleaves {
                self.machine.ask(run);
                self.asked.push_back(run);
            }
        }
        if kind.is_cell() && self.is_told() {
            self.compute_in_worker(Some(run));
            if !self.machine.is_current(run) {
                self.machine.turn(run);
            }
        }
        // The worker forgets with each run that it was to park.
        self.is_asked_to_park = false;
        if !self.is_here {
            self.offer();
        }
    }

    /// Asks the worker to park, if the machine says so. Returns whether it did.
    fn offer(&mut self) -> bool {
        let offers = self.machine.offers();
        if offers {
            assert!(self.first_can_begin(), "the worker is asked to park, and nobody can begin");
            assert!(!self.is_asked_to_park, "the worker is asked to park twice");
            self.is_asked_to_park = true;
        }
        offers
    }

    fn wait(&mut self, run: u32, awaits: bool, wanted: Option<u32>) {
        self.isolate.wanted = wanted;
        self.runs.get_mut(&run).expect("a run that is not over").awaits = awaits;
        self.set_phase(run, Phase::Waits);
        self.look_at_answers();
        if self.interleaves {
            let is_stalled = !self.isolate.can_resume();
            self.runs.get_mut(&run).expect("a run that is not over").is_stalled = is_stalled;
            self.rests = Some((run, is_stalled));
        } else {
            self.hand_over(run);
        }
    }

    /// Finds out whether a cell in flight awaits an answer.
    fn look_at_answers(&mut self) {
        let awaits = |run: &u32| self.runs.get(run).is_some_and(|run| run.awaits);
        self.isolate.can_resume = self.isolate.begun.iter().any(awaits);
    }

    fn answer(&mut self, run: u32) {
        if self.phase(run) == Some(Phase::Computes) {
            // It comes behind the calls that wait.
            return self.keep(Told::Answer(run));
        }
        self.runs.get_mut(&run).expect("a run that is not over").awaits = false;
        if self.is_told() {
            self.wake_worker();
        } else if self.interleaves {
            self.machine.keep_new(Told::Answer(run));
        } else if self.machine.has_messages() {
            self.keep(Told::Answer(run));
        } else {
            self.set_phase(run, Phase::Computes);
        }
    }

    /// The worker has a frame, and goes on if it has parked.
    fn wake_worker(&mut self) {
        self.has_frames |= self.in_worker.is_none();
        if self.machine.current().is_none() && self.machine.go_on().is_some() {
            self.compute_in_worker(self.machine.current().copied());
        }
    }

    fn compute_in_worker(&mut self, run: Option<u32>) {
        self.has_frames = false;
        self.has_parked_early = false;
        let phase = |begun| if Some(begun) == run { Phase::Computes } else { Phase::Waits };
        for begun in self.isolate.begun.clone() {
            self.set_phase(begun, phase(begun));
        }
        self.in_worker = run;
    }

    fn end(&mut self, run: u32, effect: Effect, undoes: Undoes) {
        let others: Vec<u32> = self.begun().filter(|other| *other != run).collect();
        let undone = if undoes == Undoes::All { others } else { Vec::new() };
        let is_cell = self.runs[&run].kind.is_cell();
        let mut left = Left::of(effect);
        if effect != KEPT {
            left.again.push(Told::Answer(0));
        }
        if undoes == Undoes::Late {
            let late = self.calls.iter().filter(|(_, cell)| **cell == run).map(|(call, _)| *call);
            let late: Vec<u32> = late.collect();
            if self.is_here {
                left.inbox = late.iter().map(|call| Told::Call(*call, 0)).collect();
            } else {
                self.with_worker.extend(&late);
                left.late.clone_from(&late);
            }
            self.put_back(late);
        }
        if self.asked.contains(&run) {
            assert_eq!(self.machine.asked(), Some(&run), "the worker has answered {run}");
        }
        if matches!(effect, Effect::Lost(_)) {
            self.lose_worker();
        }
        if !self.is_told() || !is_cell || matches!(effect, Effect::Lost(_)) {
            left.undone.clone_from(&undone);
            return self.leave(run, left);
        }
        // The worker tells of all that are over.
        left.undone.clone_from(&undone);
        self.forget(run);
        let is_over = |number: &u32| *number == run || undone.contains(number);
        let mut computes = self.in_worker.filter(|number| !is_over(number));
        let answers = self.answers() + left.again.len();
        let (all, former) = self.machine.over(run, left);
        assert_eq!(self.answers(), answers, "answers are lost with {run}, or come twice");
        if former.is_some() {
            computes = self.machine.go_on().copied();
        }
        self.take(run, &undone, effect, all);
        self.compute_in_worker(computes);
        assert!(self.machine.free().is_none(), "everything is freed while cells are ended");
        self.ends = true;
    }

    fn lose_worker(&mut self) {
        self.in_worker = None;
        self.has_frames = false;
        self.is_asked_to_park = false;
        self.has_parked_early = false;
    }

    fn lose(&mut self) {
        let computes = |run: &u32| self.phase(*run) == Some(Phase::Computes);
        let current = self.machine.current().copied().filter(computes);
        let last = self.machine.begun().next_back().copied();
        let run = current.or(last).expect("cells are in flight");
        self.lose_worker();
        let (asked, lost) = self.machine.lose_isolate();
        self.reject(lost);
        for question in asked.into_iter().filter(|question| *question != run) {
            self.leave(question, Left::of(RESET));
        }
        self.leave(run, Left::of(LOST));
    }

    /// The answers that the machine has for the next cell, and for cells in flight.
    fn answers(&self) -> usize {
        let own = self.machine.runs.values().flat_map(|known| &known.inbox);
        let all = self.machine.inbox().chain(own);
        all.filter(|message| message.call().is_none()).count()
    }

    /// A run is over.
    fn leave(&mut self, number: u32, left: Left<Told>) {
        let (effect, undone) = (left.effect, left.undone.clone());
        let has_begun = self.isolate.begun.contains(&number);
        self.forget(number);
        let more = if has_begun { left.again.len() + std::mem::take(&mut self.behind) } else { 0 };
        let answers = self.answers() + more;
        let all = self.machine.leave(number, left);
        assert_eq!(self.answers(), answers, "answers are lost with {number}, or come twice");
        self.take(number, &undone, effect, all);
        self.go_on();
    }

    /// Ends all that ends with a run.
    fn take(&mut self, number: u32, undone: &[u32], effect: Effect, all: Undone<Modelled>) {
        let Undone { calls, lost, runs, asked } = all;
        self.reject(calls);
        self.reject(lost);
        for (other, calls) in runs {
            let is_undone = effect.is_reset() || undone.contains(&other);
            assert!(is_undone, "{other} ends with {number}, and was not undone");
            assert!(self.isolate.begun.contains(&other), "{other} is undone, and had not begun");
            self.forget(other);
            self.reject(calls);
        }
        for other in undone {
            assert!(!self.runs.contains_key(other), "{other} was undone and goes on");
        }
        let has_effect = effect != Effect::Untouched && effect != KEPT;
        let is_gone = |cell: u32| match effect {
            ROLLED_BACK => cell == number || undone.contains(&cell),
            _ => has_effect && cell != 0 && !self.runs.contains_key(&cell),
        };
        for (call, cell) in &self.calls {
            assert!(!is_gone(*cell), "call {call} has no answer, and cell {cell} is undone");
        }
        if matches!(effect, Effect::Lost(_)) {
            assert!(self.isolate.begun.is_empty(), "a cell outlives its isolate");
            let left = (&self.unplaced, &self.with_worker);
            assert!(left.0.is_empty() && left.1.is_empty(), "calls outlive their worker: {left:?}");
        }
        for question in asked {
            self.leave(question, Left::of(RESET));
        }
    }

    /// A run has ended, which it does once.
    fn forget(&mut self, number: u32) {
        assert!(self.runs.remove(&number).is_some(), "run {number} ends twice");
        self.isolate.begun.remove(&number);
        self.isolate.wanted.take_if(|wanted| *wanted == number);
        self.came.retain(|came| *came != Came::Run(number));
        self.asked.retain(|asked| *asked != number);
        self.look_at_answers();
    }

    /// The host has an outcome of these calls, one of each.
    fn reject(&mut self, calls: Vec<u32>) {
        for call in calls {
            assert!(self.calls.remove(&call).is_some(), "call {call} is answered twice");
            self.came.retain(|came| *came != Came::Call(call));
            self.unplaced.remove(&call);
            self.with_worker.remove(&call);
        }
    }

    fn end_all(&mut self, is_reset: bool) {
        let computes = |run: &u32| self.phase(*run) == Some(Phase::Computes);
        let current = self.machine.current().copied().filter(computes);
        let Ends { runs, calls } = self.machine.end_all(is_reset);
        self.behind = 0;
        assert_eq!(self.machine.inbox().count(), 0, "messages outlive a reset or a close");
        let current = current.filter(|current| runs.contains(current));
        assert!(current.is_none() || runs.first() == current.as_ref(), "{runs:?}: {current:?}");
        let ended: BTreeSet<u32> = runs.into_iter().collect();
        let stays = |run: &Run| is_reset && run.kind == Kind::Reset;
        let all = self.runs.iter().filter(|(_, run)| !stays(run)).map(|(number, _)| *number);
        assert_eq!(ended, all.collect(), "a reset and a close end all runs");
        if !self.is_here {
            self.machine.give_up();
            self.lose_worker();
        }
        self.reject(calls);
        for number in ended {
            if self.is_here {
                if self.runs.get(&number).is_some_and(|run| !run.is_asked) {
                    self.terminate(number);
                }
            } else {
                let is_begun = matches!(self.phase(number), Some(Phase::Computes | Phase::Waits));
                let effect = if is_begun { LOST } else { Effect::Untouched };
                self.isolate.begun.clear();
                self.leave(number, Left::of(effect));
            }
            assert!(self.machine.free().is_none(), "everything is freed while runs are ended");
        }
        self.machine.has_ended();
    }

    /// Gives the next run its turn.
    fn go_on(&mut self) {
        let turn = if self.is_here {
            let (turn, resumable) = self.machine.next_of(Some(&self.isolate));
            for run in resumable {
                self.runs.get_mut(&run).expect("a run that is not over").is_stalled = false;
            }
            turn
        } else {
            self.machine.next()
        };
        assert!(turn.is_none() || !self.machine.is_ending(), "a turn while all runs are ended");
        match turn {
            Some(Turn::Run(number)) => match self.phase(number) {
                Some(Phase::Queued) => self.grant(Came::Run(number), number),
                Some(Phase::Waits) => {
                    let is_first = self.runs[&number].is_asked;
                    let is_first = is_first || self.isolate.wanted == Some(number);
                    let mut others = self.runs.values();
                    let ends = others.any(|run| run.phase == Phase::Waits && run.is_asked);
                    assert!(is_first || !ends, "{number} has its turn before one that is to end");
                    let (own, _) = self.machine.resume(number);
                    let is_called = is_first || !own.is_empty();
                    let is_stalled = self.runs[&number].is_stalled;
                    assert!(is_called || !is_stalled, "{number} knows that it is stalled");
                    for message in &own {
                        let (Told::Call(_, cell) | Told::Answer(cell)) = message;
                        let is_its = *cell == number || message.call().is_none();
                        assert!(is_its, "{number} has a call of a function of {cell}");
                        if let Some(call) = message.call() {
                            self.hand(call, number);
                        }
                    }
                    self.isolate.wanted = None;
                    self.check_alone(number);
                    self.set_phase(number, Phase::Computes);
                }
                other => panic!("run {number} has a turn while it is {other:?}"),
            },
            Some(Turn::Call(call, message)) => {
                assert!(!self.refuses_calls, "call {call} has a turn while the runtime closes");
                assert_eq!(message.is_none(), self.with_worker.contains(&call));
                if let Some(Told::Call(_, cell)) = message {
                    let is_its = self.is_here && self.interleaves && self.phase(cell).is_some();
                    assert!(!is_its, "{cell} is in flight, and has no part in its call {call}");
                }
                let number = self.machine.number();
                self.machine.hold(number, call, number);
                self.know(number, Kind::Held(call), Phase::Queued);
                self.grant(Came::Call(call), number);
                self.hand(call, number);
            }
            None if !self.is_told() => {}
            None if self.offer() => {}
            None if self.machine.parked_for_nothing() => {
                let current = self.machine.current();
                assert!(current.is_none(), "the worker goes on, and {current:?} has the turn");
                self.wake_worker();
            }
            None => {}
        }
        self.free();
    }

    /// Frees everything, once it is over.
    fn free(&mut self) {
        if let Some(freed) = self.machine.free() {
            let waits = |call: &u32| self.calls.get(call) == Some(&0);
            assert!(!freed.calls.iter().any(waits), "freed, and calls wait for their turns");
            self.reject(freed.calls);
            assert!(self.runs.is_empty() && self.calls.is_empty(), "freed before the end");
            assert_eq!(freed.is_first, !self.is_freed, "everything is freed once");
            self.is_freed = true;
            self.closers -= u32::try_from(freed.closers.len()).expect("few closers");
        }
    }

    /// A run gets its first turn, in the order in which all came.
    fn grant(&mut self, came: Came, number: u32) {
        let has_begun = self.has_begun();
        // One that was set aside comes before calls that a cell gives back.
        let is_aside = self.runs[&number].kind == Kind::Fork;
        for earlier in self.came.iter().take_while(|earlier| **earlier != came) {
            let may_pass = match earlier {
                Came::Run(run) => has_begun && self.runs[run].kind == Kind::Fork,
                // A cell in flight has it, and finds it in its next turn.
                Came::Call(_) => is_aside || (self.is_here && self.interleaves && has_begun),
            };
            assert!(may_pass, "{came:?} has its turn before {earlier:?}");
        }
        self.came.retain(|waiting| *waiting != came);
        self.check_alone(number);
        self.set_phase(number, Phase::Granted);
    }
}
