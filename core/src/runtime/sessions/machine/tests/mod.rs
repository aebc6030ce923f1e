//! Every order of events in sessions of a few runs, each state once.
//!
//! The world is a place without threads: an isolate here or in a worker, whose cells may interleave or not. It carries
//! out the actions of the machine as the places do, and knows besides in which order runs and calls came, which runs have
//! ended, and which calls have been answered.

mod checks;
mod events;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash},
    iter,
    rc::Rc,
};

use super::{Effect, Kind, Machine, Message, Parts, Resting, Turn};
use crate::{data::cell::SessionState, isolate::session::Addressee};

const LOST: Effect = Effect::Lost(SessionState::Reset);

#[derive(Clone, Hash)]
struct Modelled;

impl Parts for Modelled {
    type Run = u32;
    type Message = Told;
    type Closer = u32;
}

/// A message of the host.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
enum Told {
    /// A call of a function that is of this cell, or of none that is in flight.
    Call(u32, u32),
    /// An answer that this cell awaits.
    Answer(u32),
}

impl Message for Told {
    fn call(&self) -> Option<u32> {
        match self {
            Self::Call(call, _) => Some(*call),
            Self::Answer(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Phase {
    Queued,
    /// Has its turn, and has not begun.
    Granted,
    Computes,
    /// Waits for the host.
    Waits,
}

#[derive(Clone, Debug, Hash)]
struct Run {
    kind: Kind,
    phase: Phase,
    /// Whether somebody has asked it to end.
    is_asked: bool,
    /// Whether it waits for an answer of the host.
    awaits: bool,
    is_stalled: bool,
}

/// The cells in an isolate at rest.
#[derive(Clone, Debug, Default, Hash)]
struct Isolate {
    begun: BTreeSet<u32>,
    wanted: Option<u32>,
    can_resume: bool,
}

impl Resting<Told> for Isolate {
    fn addressee(&self, message: &Told) -> Addressee {
        let (Told::Call(_, number) | Told::Answer(number)) = message;
        if self.begun.contains(number) { Addressee::Cell(*number) } else { Addressee::Any }
    }

    fn wanted(&self) -> Option<u32> {
        self.wanted
    }

    fn can_resume(&self) -> bool {
        self.wanted.is_some() || self.can_resume
    }
}

/// One that came and has no turn yet.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
enum Came {
    Run(u32),
    Call(u32),
}

impl Came {
    fn call(self) -> Option<u32> {
        match self {
            Self::Call(call) => Some(call),
            Self::Run(_) => None,
        }
    }
}

#[derive(Clone, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct World {
    machine: Machine<Modelled>,
    is_here: bool,
    interleaves: bool,
    /// How many more requests come, and of which kinds beside cells.
    budget: u32,
    kinds: &'static [Kind],
    runs: BTreeMap<u32, Run>,
    isolate: Isolate,
    /// Resets that have ended everything, and whose turn nobody has asked for yet.
    resets_due: u32,
    /// A cell that waits for the host, and whose thread has not told so yet; and whether it is stalled.
    rests: Option<(u32, bool)>,
    /// Whether cells are being ended that are over in the worker.
    ends: bool,
    /// The questions that the worker has, in their order.
    asked: VecDeque<u32>,
    /// Answers that came behind calls, for the cell that waits.
    behind: usize,
    /// Whether the runtime closes: no call has a turn any more. It closes the session soon, if it has not yet.
    refuses_calls: bool,
    close_due: bool,
    /// All that came, in order, until it gets its turn, is handed to a cell, or ends.
    came: VecDeque<Came>,
    /// The cell that each call is in, unless it waits; zero for none yet. Calls that have been answered are not there.
    calls: BTreeMap<u32, u32>,
    last_call: u32,
    /// The cell that computes in the worker.
    in_worker: Option<u32>,
    /// Whether the worker has frames that it has not answered, with which it goes on by itself.
    has_frames: bool,
    /// Whether the worker is asked to park; whether it has parked for that, and cells could go on.
    is_asked_to_park: bool,
    has_parked_early: bool,
    /// Calls that the worker has not placed yet, and those that it has and that wait for their turn.
    unplaced: BTreeSet<u32>,
    with_worker: BTreeSet<u32>,
    is_closed: bool,
    closers: u32,
    is_freed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Add(Kind),
    /// A call of a function of that cell.
    Call(u32),
    Reset,
    /// The reset of the isolate gets its place. Others may have come before it since the reset ended everything.
    AskForReset,
    Close,
    /// The runtime closes, and closes the session soon.
    CloseRuntime,
    /// Nobody has a handle any more.
    Abandon,
    Terminate(u32),
    Begin(u32),
    /// A cell waits for the host, for an answer or not. A job of that cell waits in the engine.
    Wait {
        run: u32,
        awaits: bool,
        wanted: Option<u32>,
    },
    /// The thread of that cell tells so.
    Rest,
    /// The cells that were over in the worker have been ended.
    HaveEnded,
    Answer(u32),
    /// A call settles in the cell that it is in.
    Settle(u32),
    End(u32, Effect, Undoes),
    /// The worker has a cell compute.
    Turn(u32),
    /// No cell computes in the worker.
    Park,
    /// The worker has placed a call in a cell, or in none.
    Placed(u32, u32),
    /// The worker is lost while none of its runs has the turn.
    Lose,
}

/// The other cells in flight that are undone with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undoes {
    None,
    All,
    /// None, and the calls that the cell has come too late for it.
    Late,
}

const KEPT: Effect = Effect::Back(SessionState::Kept);
const ROLLED_BACK: Effect = Effect::Back(SessionState::RolledBack);
const RESET: Effect = Effect::Back(SessionState::Reset);

impl World {
    fn new(is_here: bool, interleaves: bool, budget: u32, kinds: &'static [Kind]) -> Self {
        Self {
            machine: Machine::new(interleaves),
            is_here,
            interleaves,
            budget,
            kinds,
            runs: BTreeMap::new(),
            isolate: Isolate::default(),
            resets_due: 0,
            rests: None,
            ends: false,
            asked: VecDeque::new(),
            behind: 0,
            refuses_calls: false,
            close_due: false,
            came: VecDeque::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            in_worker: None,
            has_frames: false,
            is_asked_to_park: false,
            has_parked_early: false,
            unplaced: BTreeSet::new(),
            with_worker: BTreeSet::new(),
            is_closed: false,
            closers: 0,
            is_freed: false,
        }
    }

    /// Whether the worker tells which of its cells computes.
    fn is_told(&self) -> bool {
        !self.is_here && self.interleaves
    }

    fn phase(&self, run: u32) -> Option<Phase> {
        self.runs.get(&run).map(|run| run.phase)
    }

    fn set_phase(&mut self, run: u32, phase: Phase) {
        self.runs.get_mut(&run).expect("a run that is not over").phase = phase;
    }

    fn begun(&self) -> impl Iterator<Item = u32> {
        self.isolate.begun.iter().copied()
    }

    /// Whether cells are in flight, or runs begin as soon as they can.
    fn has_begun(&self) -> bool {
        let begins = |run: &Run| run.phase == Phase::Granted;
        !self.isolate.begun.is_empty() || self.runs.values().any(begins)
    }
}

/// The events that led to a state, the last one first.
struct Trace {
    event: Event,
    before: Option<Rc<Trace>>,
}

/// Prints the events of a step that fails.
struct Step<'a>(&'a Trace);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = iter::successors(Some(self.0), |trace| trace.before.as_deref());
            let events: Vec<Event> = events.map(|trace| trace.event).collect();
            eprintln!("after {:?}", events.iter().rev().collect::<Vec<_>>());
        }
    }
}

/// Takes every step from every state, each state once; returns how many states there are.
fn walk(is_here: bool, interleaves: bool, budget: u32, kinds: &'static [Kind]) -> usize {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let first = World::new(is_here, interleaves, budget, kinds);
    let mut seen = HashSet::from([hasher.hash_one(&first)]);
    let mut open = VecDeque::from([(first, None)]);
    // The states that need the fewest events come first, and so does the shortest failure.
    while let Some((world, before)) = open.pop_front() {
        for event in world.events() {
            let trace = Rc::new(Trace { event, before: before.clone() });
            let step = Step(&trace);
            let mut next = world.clone();
            next.step(event);
            drop(step);
            if seen.insert(hasher.hash_one(&next)) {
                open.push_back((next, Some(trace)));
            }
        }
    }
    println!("{} states", seen.len());
    seen.len()
}

#[test]
fn a_copy_has_the_messages_that_wait_and_other_numbers_for_its_runs() {
    let mut machine = Machine::<Modelled>::new(true);
    let before = [machine.number(), machine.number()];
    machine.keep_new(Told::Answer(2));
    let mut copy = machine.copy(Clone::clone);
    assert!(!before.contains(&copy.number()));
    assert_eq!(copy.take_inbox(), [Told::Answer(2)]);
}

#[test]
fn a_cell_begins_beside_cells_that_always_have_jobs() {
    let mut machine = Machine::<Modelled>::new(true);
    let mut isolate = Isolate::default();
    let add = |machine: &mut Machine<Modelled>| {
        let number = machine.number();
        machine.push(number, Kind::Cell, number);
        number
    };
    let turn =
        |machine: &mut Machine<Modelled>, isolate: &Isolate| match machine.next_of(Some(isolate)) {
            (Some(Turn::Run(number)), _) => number,
            _ => panic!("nobody has the turn"),
        };
    let players = [(); 2].map(|()| {
        let number = add(&mut machine);
        assert_eq!(turn(&mut machine, &isolate), number);
        machine.begin(number);
        isolate.begun.insert(number);
        assert!(machine.rest(number, false));
        number
    });
    let newcomer = add(&mut machine);
    for player in players {
        isolate.wanted = Some(player);
        assert_eq!(turn(&mut machine, &isolate), player);
        assert!(machine.rest(player, false));
    }
    isolate.wanted = Some(players[0]);
    assert_eq!(turn(&mut machine, &isolate), newcomer);
}

/// All kinds of runs beside cells.
const ALL: &[Kind] = &[Kind::Held(0), Kind::Question, Kind::Fork, Kind::Reset];

#[test]
fn every_order_of_queued_runs() {
    for is_here in [true, false] {
        assert!(walk(is_here, false, 4, ALL) > 30_000);
    }
}

#[test]
fn every_order_of_interleaved_cells_here() {
    assert!(walk(true, true, 3, ALL) > 10_000);
}

#[test]
fn every_order_of_interleaved_cells_in_a_worker() {
    assert!(walk(false, true, 3, ALL) > 10_000);
    assert!(walk(false, true, 4, &[]) > 1_000);
}
