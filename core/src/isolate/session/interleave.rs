//! Cells that interleave, and the points to which they go back.
//!
//! In: cells that begin while others wait for the host, their turns, and their ends. Out: for each end the effect on the
//! session and on the others. The last point is the end of the last cell that completed. A cell that began after it,
//! while others were in flight, has a point of its own: its beginning. A cell that is ended takes the session back to
//! the later of the two. The cells that had no turn since then go on, and the others are undone with it. A cell that had
//! given its value before goes on, too, unless it has called the host since: it settles as it would have.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashSet},
};

use super::{
    image::{self, Image},
    isolate::{Before, SessionIsolate, arm, discharge},
    turns::{enter, hand_in, program_of},
    work::{CellSeat, Concluded, Progress},
};
use crate::{
    binding::inbound::Inbound,
    data::cell::SessionState,
    isolate::{
        end::{End, Turn},
        memory::snapshot::Snapshot,
        settle,
        state::State,
    },
    value::Charge,
};

/// The cell that a message of the host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressee {
    /// A cell in flight: the message is about something of its own.
    Cell(u32),
    /// Whichever computes next: its own cell has completed.
    Any,
    /// Nobody waits for it.
    Nobody,
}

/// The cells in flight.
#[derive(Default)]
pub(super) struct Flights {
    cells: BTreeMap<u32, Flight>,
    /// The one that had the last turn.
    present: u32,
    /// The number of the last turn, or point.
    now: u64,
    /// The point of all that have none of their own, which is the state before the session's next cell.
    base: Moment,
    /// Messages that were handed in, with their turns, as far as they are needed again after a rollback.
    handed: Vec<(u64, Inbound)>,
    /// The cell for which a job waits; zero if any may run it.
    wanted: Option<u32>,
}

struct Flight {
    seat: CellSeat,
    /// Its last turn in which it did more than settle.
    turned: u64,
    /// Whether it has given its value.
    has_value: bool,
    /// Whether code of it ran.
    has_run: bool,
    begin: Begin,
    /// Bytes that are charged until it completes: its reports and logs.
    loose_bytes: usize,
    peak_bytes: usize,
}

/// The point to which a cell goes back.
enum Begin {
    /// That of the session.
    Base,
    Own(Moment, Box<Point>),
    /// It was too large, or cannot be had.
    Unknown,
}

/// A checkpoint while cells are in flight. It counts against the memory limit, but for what it shares with earlier ones.
struct Point {
    checkpoint: (Snapshot, Image),
    /// `None` if there was no room for it: then its cell ends.
    _charge: Option<Charge>,
}

#[derive(Clone, Copy, Default)]
struct Moment {
    at: u64,
    /// The number of the next cell's module.
    first_cell: u32,
}

/// The state of the engine after a turn.
#[derive(Default)]
pub(super) struct Landed {
    wanted: Cell<Option<u32>>,
    loose_bytes: Cell<usize>,
    /// Whether the cell has given its value.
    has_value: Cell<bool>,
    has_called: Cell<bool>,
}

impl Flights {
    /// The bytes that are charged for other cells than this one.
    pub(super) fn loose_bytes(&self, but: u32) -> usize {
        let others = self.cells.iter().filter(|(number, _)| **number != but);
        others.map(|(_, flight)| flight.loose_bytes).sum()
    }

    /// Whether there is no more than one.
    pub(super) fn has_one(&self) -> bool {
        self.cells.len() <= 1
    }

    /// A cell has completed, and the session has its point.
    pub(super) fn complete(&mut self, number: u32, wanted: Option<u32>, first_cell: u32) {
        self.cells.remove(&number);
        self.wanted = wanted;
        self.now += 1;
        self.base = Moment { at: self.now, first_cell };
        for flight in self.cells.values_mut() {
            flight.begin = Begin::Base;
        }
        self.handed.clear();
    }

    fn images(&self) -> impl Iterator<Item = &Image> {
        self.cells.values().filter_map(|flight| match &flight.begin {
            Begin::Own(_, point) => Some(&point.checkpoint.1),
            Begin::Base | Begin::Unknown => None,
        })
    }

    /// The last point.
    fn latest(&self) -> Option<&(Snapshot, Image)> {
        let points = self.cells.values().filter_map(|flight| match &flight.begin {
            Begin::Own(moment, point) => Some((moment.at, point)),
            Begin::Base | Begin::Unknown => None,
        });
        points.max_by_key(|(at, _)| *at).map(|(_, point)| &point.checkpoint)
    }

    /// Removes a cell, and all that had a turn after that moment. Returns these.
    fn remove_since(&mut self, number: u32, at: u64) -> Vec<u32> {
        self.cells.remove(&number);
        self.cells.extract_if(.., |_, flight| flight.turned > at).map(|(other, _)| other).collect()
    }
}

/// The images of all points that a cell may go back to.
pub(super) fn images<'a>(before: &'a Before, flights: Option<&'a Flights>) -> Vec<&'a Image> {
    let base = match before {
        Before::Checkpoint(checkpoint) => Some(&checkpoint.1),
        Before::Pristine | Before::Due | Before::Unknown => None,
    };
    base.into_iter().chain(flights.into_iter().flat_map(Flights::images)).collect()
}

impl Landed {
    /// Puts a cell aside that waits. The engine must be entered.
    pub(super) fn note(&self, state: &State, turn: Turn) -> Turn {
        if state.cell.get() == 0 {
            return turn;
        }
        self.loose_bytes.set(state.loose_bytes());
        self.has_value.set(super::cell::has_value(state));
        self.has_called.set(state.has_called.get());
        let Turn::Idle { waits_for_host } = turn else { return turn };
        state.sit_down();
        self.wanted.set(state.wanted_cell());
        Turn::Idle { waits_for_host: waits_for_host || self.wanted.get().is_some() }
    }
}

impl SessionIsolate {
    /// Notes that a cell begins, and takes its point while others are in flight. Returns whether it took one.
    pub(super) fn note_beginning(&mut self, seat: &CellSeat) -> bool {
        let is_first = self.flights.as_ref().is_none_or(|flights| flights.cells.is_empty());
        let base = match &self.before {
            Before::Checkpoint(base) => Some(&**base),
            Before::Pristine | Before::Due | Before::Unknown => None,
        };
        let latest = self.flights.as_ref().and_then(Flights::latest).or(base);
        let point = if is_first { None } else { self.checkpoint_after(latest) };
        let has_point = point.is_some();
        let Some(flights) = &mut self.flights else { return false };
        flights.now += 1;
        let begin = match (&mut self.state, point) {
            (Some(state), Some((checkpoint, bytes))) => {
                let first_cell = program_of(state).next_number();
                let in_flight = &seat.termination.in_flight;
                let charge = in_flight.charge(bytes, self.limits.memory_bytes);
                if charge.is_none() {
                    seat.termination.exhaust();
                }
                let point = Box::new(Point { checkpoint, _charge: charge });
                Begin::Own(Moment { at: flights.now, first_cell }, point)
            }
            _ if is_first => Begin::Base,
            _ => Begin::Unknown,
        };
        flights.now += 1;
        let (seat, turned) = (seat.clone(), flights.now);
        flights.present = seat.number;
        let flight = Flight {
            seat,
            turned,
            has_value: false,
            has_run: false,
            begin,
            loose_bytes: 0,
            peak_bytes: 0,
        };
        flights.cells.insert(flights.present, flight);
        has_point
    }

    /// A turn of a cell that waited: takes the host's messages and runs everything that can run.
    pub(crate) fn turn_of(&mut self, number: u32, inbox: Vec<Inbound>) -> Turn {
        self.take_checkpoint();
        let (Some(flights), Some(state)) = (&mut self.flights, &self.state) else {
            return Turn::Ended(End::Broken);
        };
        let Some(flight) = flights.cells.get_mut(&number) else { return Turn::Ended(End::Broken) };
        if !inbox.is_empty() || flights.wanted.is_some() {
            flights.now += 1;
            // A call of the host that is undone ends with its cell.
            let is_called = |inbound: &Inbound| matches!(inbound, Inbound::FunctionCall { .. });
            if !flight.has_value || inbox.iter().any(is_called) {
                flight.turned = flights.now;
            }
        }
        flights.present = number;
        self.present = Progress::Running;
        let seat = flight.seat.clone();
        let report = seat.report;
        arm(&self.tenant.occupy(), state, &seat, self.limits.memory_bytes);
        let (landed, mut handed) = (Landed::default(), Vec::new());
        let images = images(&self.before, self.flights.as_ref());
        let turn = enter(
            &self.tenant,
            self.state.as_deref(),
            (&mut self.present, &mut self.peak_bytes),
            |state| {
                // The messages that waited may have been too much.
                state.charge(0);
                state.has_called.set(false);
                if state.bind_builtins(report).is_err() {
                    drop(state.realm().cx.exception());
                }
                hand_in(state, inbox, &images, &mut handed);
                landed.note(state, settle::go_on(state))
            },
        );
        self.note_turn(number, &landed, handed);
        turn
    }

    /// Notes what a turn left, and the messages that it was handed.
    pub(super) fn note_turn(&mut self, number: u32, landed: &Landed, handed: Vec<Inbound>) {
        let Some(flights) = &mut self.flights else {
            self.handed = handed;
            return;
        };
        flights.wanted = landed.wanted.get();
        let others_bytes = flights.loose_bytes(number);
        flights.handed.extend(handed.into_iter().map(|inbound| (flights.now, inbound)));
        if let Some(flight) = flights.cells.get_mut(&number) {
            flight.has_run = true;
            if landed.has_called.get() {
                flight.turned = flights.now;
            }
            flight.has_value = landed.has_value.get();
            flight.loose_bytes = landed.loose_bytes.get().saturating_sub(others_bytes);
            flight.peak_bytes = flight.peak_bytes.max(self.peak_bytes);
        }
    }

    /// The most bytes that counted against the limit during a cell: the one with that number, or the present one if
    /// cells do not interleave.
    pub(crate) fn peak_bytes(&self, number: u32) -> usize {
        let flight = self.flights.as_ref().and_then(|flights| flights.cells.get(&number));
        flight.map_or(self.peak_bytes, |flight| flight.peak_bytes)
    }

    /// The cell for which a job waits; zero if any may run it.
    pub(crate) fn wanted(&self) -> Option<u32> {
        self.flights.as_ref()?.wanted
    }

    /// Whether anything can resume one of the cells in flight.
    pub(crate) fn can_resume(&self) -> bool {
        let waits = |state: &State| state.waits_for_host();
        self.wanted().is_some() || self.state.as_deref().is_some_and(waits)
    }

    /// The cell that a message is for.
    pub(crate) fn addressee(&self, inbound: &Inbound) -> Addressee {
        let (Some(state), Some(flights)) = (&self.state, &self.flights) else {
            return Addressee::Nobody;
        };
        let number = match inbound {
            Inbound::PromiseSettled { promise, .. } => {
                state.host_promises.borrow().get(promise).map(|promise| promise.cell)
            }
            Inbound::FunctionCall { function, .. } => {
                state.exported.borrow().get(function).map(|function| function.cell)
            }
            Inbound::FunctionReleased { .. } => None,
        };
        match number {
            Some(number) if flights.cells.contains_key(&number) => Addressee::Cell(number),
            Some(_) => Addressee::Any,
            None => Addressee::Nobody,
        }
    }

    /// A cell that waited is to be concluded: it had a turn before, but not now, or another one was concluded since.
    pub(super) fn find_present(&mut self, number: u32) {
        let Some(flights) = &self.flights else { return };
        let Some(flight) = flights.cells.get(&number) else { return };
        if flights.present != number || (flight.has_run && self.present == Progress::Untouched) {
            self.present = Progress::Running;
        }
    }

    /// Forgets a cell that has changed nothing.
    pub(super) fn forget_flight(&mut self, number: u32) {
        if let (Some(flights), Some(state)) = (&mut self.flights, &self.state) {
            flights.cells.remove(&number);
            state.cell.set(0);
        }
    }

    /// Undoes a cell, and those that had turns since the point to which it goes back.
    pub(super) fn undo_flight(&mut self, number: u32) -> Concluded {
        let Some(flights) = &mut self.flights else {
            return Concluded::of(SessionState::Reset, Vec::new());
        };
        let begin = flights.cells.get_mut(&number);
        let begin = begin.map(|it| std::mem::replace(&mut it.begin, Begin::Base));
        let (moment, own) = match (begin, &self.before) {
            (Some(Begin::Own(moment, point)), _) => (moment, Some(Box::new(point.checkpoint))),
            (Some(Begin::Base), Before::Checkpoint(_)) => (flights.base, None),
            (Some(Begin::Base), Before::Pristine) => return self.undo_all(number, false),
            _ => return self.undo_all(number, true),
        };
        let undone = flights.remove_since(number, moment.at);
        let is_since = |(at, _): &mut (u64, Inbound)| *at > moment.at;
        let handed: Vec<_> = flights.handed.extract_if(.., is_since).collect();
        let (snapshot, image) = match (&own, &self.before) {
            (Some(own), _) => (&own.0, &own.1),
            (None, Before::Checkpoint(base)) => (&base.0, &base.1),
            (None, _) => return self.undo_all(number, true),
        };
        let mut brought = HashSet::new();
        let is_needed = |inbound: &Inbound| {
            let is_needed = image.knows(inbound)
                || inbound.settles().is_some_and(|promise| brought.contains(&promise));
            if is_needed {
                brought.extend(inbound.brings());
            }
            is_needed
        };
        let again = handed.into_iter().map(|(_, inbound)| inbound).filter(is_needed).collect();
        let mut is_left = false;
        if let Some(state) = &mut self.state {
            let mut occupied = self.tenant.occupy();
            // First, for the tables are of no use to the heap from here on.
            image::forget(state);
            occupied.recall(snapshot);
            image.put_back(state);
            program_of(state).forget_cells(moment.first_cell);
            let instance = occupied.instance();
            instance.rest();
            instance.realm().attach(state);
            let cells = &flights.cells;
            let settled = instance.enter(|_| {
                state.forget_cells(|number| !cells.contains_key(&number));
                state.wanted_cell()
            });
            match settled {
                Ok(wanted) => flights.wanted = wanted,
                Err(_) => is_left = true,
            }
            discharge(instance.heap(), state, flights.loose_bytes(0));
        }
        if is_left {
            let mut concluded = self.undo_all(number, true);
            concluded.undone.extend(undone);
            return concluded;
        }
        if let Some(own) = own.filter(|_| flights.cells.is_empty()) {
            // Nobody needs the older point any more, and the next cell begins at this one.
            self.before = Before::Checkpoint(own);
            flights.base = moment;
        }
        self.leave_seat();
        Concluded { undone, ..Concluded::of(SessionState::RolledBack, again) }
    }

    /// Puts the beginning of the session back.
    fn undo_all(&mut self, number: u32, is_reset: bool) -> Concluded {
        self.start_again(is_reset);
        let flights = self.flights.replace(Flights::default()).unwrap_or_default();
        let undone = flights.cells.into_keys().filter(|other| *other != number).collect();
        let state = if is_reset { SessionState::Reset } else { SessionState::RolledBack };
        Concluded { undone, ..Concluded::of(state, Vec::new()) }
    }
}
