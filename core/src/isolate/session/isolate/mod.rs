//! The isolate of a session.
//!
//! In: a tenant of a home, the session's capabilities, and one [`Work`] at a time. Out: turns as of an
//! [`Isolate`](crate::isolate::Isolate), then what the cell did to the state. After each cell a checkpoint is taken: an
//! image of the heap, and one of the tables beside it. A cell that is undone costs putting both back.

mod checkpoints;
mod transfer;

use std::sync::Arc;

pub(super) use self::checkpoints::{Before, discharge};
use super::{
    capabilities::Capabilities,
    image::{self, Image},
    interleave::{Flights, Landed, images},
    seats::Seats,
    tables::Session,
    turns::{begin, enter, fit, hand_in, link, load, program_of},
    work::{CellSeat, Concluded, Progress, Work},
};
use crate::{
    binding::inbound::Inbound,
    data::{
        cell::{Name, SessionState},
        outcome::ExecutionError,
        portable::portable,
    },
    isolate::{
        end::{End, Turn},
        engine::{jobs, lexical, second},
        memory::{
            escape::forgetting,
            home::{Occupied, Tenant},
            instance,
        },
        null_embedder::NullEmbedder,
        realm::Realm,
        settle,
        stalled::{self, without_place},
        state::State,
        task::Task,
        trampoline::on_poll,
    },
    modules::{
        cache::Cache,
        session_program::SessionProgram,
        session_request::{SessionRequest, UpdateRequest},
    },
};

/// A session in one tenant. Used by one thread at a time.
pub(crate) struct SessionIsolate {
    /// The tables; `None` while nothing has happened since the beginning.
    pub(super) state: Option<Box<State>>,
    pub(super) tenant: Tenant<Realm>,
    /// The modules, while the tables do not have them.
    program: SessionProgram,
    capabilities: Capabilities,
    pub(super) limits: Limits,
    pub(super) before: Before,
    numbers: Numbers,
    pub(super) present: Progress,
    /// Messages that the present cell was handed and that will be needed again if it is undone.
    pub(super) handed: Vec<Inbound>,
    /// The number of the present cell's module.
    first_cell: u32,
    pub(super) peak_bytes: usize,
    /// The process had no memory for a new instance, and the old one is broken.
    lost: bool,
    /// The cells in flight, if cells interleave.
    pub(super) flights: Option<Flights>,
}

/// The limits of a session, which its copies have too.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) memory_bytes: usize,
    pub(super) checkpoint_bytes: usize,
}

impl Limits {
    fn of(request: &SessionRequest) -> Self {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            memory_bytes: bytes(request.memory_limit()),
            checkpoint_bytes: bytes(request.checkpoint_limit()),
        }
    }
}

portable!(struct Numbers { function, promise, call, first_function });

/// Numbers for each isolate of a session whose threads do not come back.
const NUMBERS_BITS: u32 = 24;

/// The last numbers that were given to the host. They are never given again, whatever is undone.
#[derive(Clone, Copy, Default)]
struct Numbers {
    function: u32,
    promise: u32,
    call: u32,
    /// The next one of a function when the session was last reset.
    first_function: u32,
}

#[expect(unsafe_code, reason = "the engine's values are plain pointers")]
// SAFETY: everything that tables and images point at belongs to the home's instance, which only a thread that occupies
// the tenant uses; nothing else has a copy of the pointers.
unsafe impl Send for SessionIsolate {}

impl Drop for SessionIsolate {
    fn drop(&mut self) {
        // The tenant goes with everything that the tables refer to.
        forgetting(|| self.state = None);
    }
}

impl SessionIsolate {
    /// Whether this engine can have sessions, and cells that interleave.
    pub(crate) fn is_available(interleave: bool) -> bool {
        lexical::is_known() && second::is_known() && (!interleave || jobs::layout().is_some())
    }

    /// A new session, of a request that was checked. Nothing happens before its first cell.
    pub(crate) fn open(
        tenant: Tenant<Realm>,
        request: SessionRequest,
        cache: &Arc<Cache>,
    ) -> Box<Self> {
        let program = SessionProgram::new(cache, request.language)
            .with_helpers(request.helpers_file.as_ref());
        let mut session = Self::new(tenant, program, Limits::of(&request), request.interleave);
        let names = request.extension.iter().flat_map(|extension| extension.names.clone());
        let first = UpdateRequest {
            modules: request.modules,
            globals: names.chain(request.globals).collect(),
            imports: request.imports,
            inputs: request.inputs,
            ..UpdateRequest::default()
        };
        session.program.update(&first);
        session.capabilities.add_with(first, request.extension, 0);
        session
    }

    /// A session in which nothing has happened, and which has no capabilities.
    fn new(
        tenant: Tenant<Realm>,
        program: SessionProgram,
        limits: Limits,
        interleaves: bool,
    ) -> Box<Self> {
        Box::new(Self {
            state: None,
            tenant,
            program,
            capabilities: Capabilities::default(),
            limits,
            before: Before::first(limits),
            numbers: Numbers::default(),
            present: Progress::Untouched,
            handed: Vec::new(),
            first_cell: 0,
            peak_bytes: 0,
            lost: false,
            flights: interleaves.then(Flights::default),
        })
    }

    /// Begins the numbers of functions and promises far behind those that `lost` isolates of the session can have given
    /// out.
    pub(crate) fn number_after(&mut self, lost: u32) {
        let base = (lost & 0x3F) << NUMBERS_BITS;
        self.numbers = Numbers { function: base, promise: base, call: base, first_function: base };
    }

    /// Begins a cell, with the messages that waited: compiles, links, and runs everything that can run.
    pub(crate) fn start(&mut self, work: Work, seat: &CellSeat, inbox: Vec<Inbound>) -> Turn {
        self.present = Progress::Untouched;
        self.handed = Vec::new();
        self.take_checkpoint();
        if self.lost {
            // There may be memory by now.
            self.lost = !self.tenant.occupy().recall_pristine();
        }
        if self.lost {
            self.handed = inbox;
            return Turn::Ended(End::Memory);
        }
        let has_point = self.note_beginning(seat);
        let tenant = &self.tenant;
        let occupied = tenant.occupy();
        let state = match &mut self.state {
            Some(state) => state,
            none => {
                let program = self.program.clone();
                let interleaves = self.flights.is_some();
                none.insert(new_state(&occupied, program, self.numbers, interleaves))
            }
        };
        let (heap, mut inbox) = (occupied.instance().heap(), inbox);
        let held_bytes = heap.used_bytes() + heap.charged_bytes();
        // A message and the value that is made of it are there at once.
        let room_bytes = self.limits.memory_bytes.saturating_sub(held_bytes) / 2;
        fit(&mut inbox, state, &self.capabilities, room_bytes);
        arm(&occupied, state, seat, self.limits.memory_bytes);
        if has_point {
            // It counts, and may be too much.
            occupied.instance().heap().heed_in_flight();
        }
        self.peak_bytes = occupied.instance().heap().peak_bytes();
        let linked = if state.must_end() {
            Err(settle::forced(state))
        } else {
            self.first_cell = program_of(state).next_number();
            link(state, work)
        };
        let linked = match linked {
            Ok(_) if is_asked(state) => Err(settle::forced(state)),
            linked => linked,
        };
        let linked = match linked {
            Ok(linked) => linked,
            Err(end) => {
                self.handed = inbox;
                return Turn::Ended(end);
            }
        };
        drop(occupied);
        self.present = Progress::Running;
        let (capabilities, mut handed, mut inbox) = (&self.capabilities, Vec::new(), Some(inbox));
        let images = images(&self.before, self.flights.as_ref());
        let landed = Landed::default();
        let can_undo = !matches!(self.before, Before::Unknown);
        let turn = enter(
            &self.tenant,
            self.state.as_deref(),
            (&mut self.present, &mut self.peak_bytes),
            |state| {
                let loaded = load(state, linked, capabilities, seat.report);
                if !seat.embedder.begins(can_undo) || is_asked(state) {
                    return Turn::Ended(settle::forced(state));
                }
                let inbox = inbox.take().unwrap_or_default();
                let turn = begin(state, loaded, inbox, &images, &mut handed);
                landed.note(state, turn)
            },
        );
        if let Some(inbox) = inbox {
            // No code ran. Without the engine the state is lost all the same.
            if self.present == Progress::Running {
                self.present = Progress::Untouched;
                self.note_loaded();
            }
            self.handed = inbox;
            return turn;
        }
        self.note_turn(seat.number, &landed, handed);
        turn
    }

    /// Takes the host's messages and runs everything that can run.
    pub(crate) fn turn(&mut self, inbox: Vec<Inbound>) -> Turn {
        let (images, handed) = (images(&self.before, None), &mut self.handed);
        enter(
            &self.tenant,
            self.state.as_deref(),
            (&mut self.present, &mut self.peak_bytes),
            |state| {
                // The messages that waited may have been too much.
                state.charge(0);
                hand_in(state, inbox, &images, handed);
                settle::go_on(state)
            },
        )
    }

    /// The error of a cell that nothing can resume, with the place at which it waits.
    pub(crate) fn stalled(&mut self) -> Box<ExecutionError> {
        let Some(state) = &self.state else { return Box::new(without_place()) };
        let occupied = self.tenant.occupy();
        occupied.instance().realm().attach(state);
        let found = occupied.instance().enter(|_| stalled::error(state));
        Box::new(found.unwrap_or_else(|_| {
            self.present = Progress::Left;
            without_place()
        }))
    }

    /// The end of a cell that is asked to end while it waits for its host, with the place at which it waits.
    pub(crate) fn asked(&mut self, number: u32) -> End {
        let Some(state) = &self.state else { return End::Asked };
        let occupied = self.tenant.occupy();
        occupied.instance().realm().attach(state);
        let at_host = || stalled::at_host(state, number, false);
        let found = occupied.instance().enter_unaccounted(at_host);
        let place = found.unwrap_or_else(|_| {
            self.present = Progress::Left;
            None
        });
        End::asked_at(place)
    }

    /// Ends a cell for the session, after its end was taken: the one with that number, or the present one if cells do
    /// not interleave. `keep`: the cell's status is success, error or `link_error`. Otherwise its effects are undone, as
    /// far as there is a checkpoint. The next checkpoint is due then.
    pub(crate) fn conclude(&mut self, number: u32, keep: bool) -> Concluded {
        let again = std::mem::take(&mut self.handed);
        self.find_present(number);
        if self.present == Progress::Untouched {
            self.forget_flight(number);
            if self.state.is_some() {
                // Its end is none of questions, which allocate.
                self.tenant.occupy().instance().rest();
            }
            self.leave_seat();
            let concluded = Concluded::of(SessionState::Kept, again);
            return Concluded { is_untouched: true, ..concluded };
        }
        if keep && self.present == Progress::Running && self.keep(number) {
            return Concluded::of(SessionState::Kept, Vec::new());
        }
        let concluded = match self.flights {
            Some(_) => self.undo_flight(number),
            None => Concluded::of(self.undo(), again),
        };
        self.present = Progress::Untouched;
        concluded
    }

    /// Hands more over, or takes something away. Between cells.
    pub(crate) fn update(&mut self, request: UpdateRequest) {
        let program = match &mut self.state {
            Some(state) => {
                let Some(program) = state.linker.get_mut().session() else { return };
                program
            }
            None => &mut self.program,
        };
        let first = program.values();
        program.update(&request);
        self.capabilities.add(request, first);
    }

    /// The names that cells have declared. Between cells, and while cells in flight wait; runs no code of the sandbox.
    /// `None` if the engine was left while it was read, which tells nothing of the names.
    pub(crate) fn names(&mut self) -> Option<Vec<Name>> {
        let Some(state) = &self.state else { return Some(Vec::new()) };
        let occupied = self.tenant.occupy();
        occupied.instance().realm().attach(state);
        // The end of a cell in flight is none of theirs, and they allocate.
        occupied.instance().enter_unaccounted(|| state.names()).ok()
    }

    /// The number of calls to the host that have no answer yet, neither handed in nor among these.
    pub(crate) fn unanswered(&self, answered: &[u32]) -> usize {
        let Some(state) = &self.state else { return 0 };
        let seats = state.session.as_ref().and_then(|session| session.seats.as_ref());
        let promises = state.host_promises.borrow();
        let unanswered = promises.iter().filter(|(number, promise)| {
            let is_undone = seats.is_some_and(|seats| seats.is_undone(promise.cell));
            !answered.contains(number) && !is_undone
        });
        unanswered.count()
    }

    /// A second session with the same state. Between cells, and while nothing is unanswered. `None` if the state cannot
    /// be copied: its instance is none of those that have snapshots, or the process is out of memory.
    pub(crate) fn fork(&mut self) -> Option<Box<Self>> {
        self.take_checkpoint();
        let Some(state) = &self.state else {
            let tenant = Tenant::new(self.tenant.home())?;
            return Some(self.forked(tenant, None, self.before.copy()));
        };
        let (tenant, copy) = {
            let occupied = self.tenant.occupy();
            let snapshot = match &self.before {
                Before::Checkpoint(checkpoint) => checkpoint.0.clone(),
                _ => occupied.checkpoint()?,
            };
            let program = program_of_shared(state)?;
            let numbers = self.numbers.of(state);
            let copy = new_state(&occupied, program, numbers, self.flights.is_some());
            Image::of(state)?.put_back(&copy);
            copy.know_undone(state.undone());
            (self.tenant.fork(&snapshot), copy)
        };
        Some(self.forked(tenant, Some(copy), self.before.copy()))
    }

    /// Forgets all state; capabilities and updates stay. Between cells, or in place of [`SessionIsolate::conclude`].
    pub(crate) fn reset(&mut self) {
        self.handed = Vec::new();
        self.start_again(true);
        self.flights = self.flights.take().map(|_| Flights::default());
        self.present = Progress::Untouched;
    }

    fn forked(
        &self,
        tenant: Tenant<Realm>,
        state: Option<Box<State>>,
        before: Before,
    ) -> Box<Self> {
        let (program, interleaves) = (self.program.clone(), self.flights.is_some());
        let mut session = Self::new(tenant, program, self.limits, interleaves);
        session.state = state;
        session.capabilities = self.capabilities.clone();
        session.before = before;
        session.numbers = self.numbers;
        session.first_cell = self.first_cell;
        session
    }

    /// Lets the host of a cell go.
    pub(super) fn leave_seat(&mut self) {
        if let Some(state) = &self.state {
            state.set_embedder(Arc::new(NullEmbedder), Arc::default());
        }
    }
}

/// Whether somebody has asked the cell to end, which has not hit its limit.
fn is_asked(state: &State) -> bool {
    state.must_end() && !state.exhausted()
}

/// Prepares the instance for a turn of a cell.
pub(super) fn arm(
    occupied: &Occupied<'_, Realm>,
    state: &State,
    seat: &CellSeat,
    limit_bytes: usize,
) {
    let in_flight = Arc::clone(&seat.termination.in_flight);
    state.set_embedder(Arc::clone(&seat.embedder), in_flight);
    occupied.instance().rearm(instance::Run {
        limit_bytes,
        termination: Arc::clone(&seat.termination),
        hook: Some(on_poll),
        host: std::ptr::from_ref::<State>(state).cast_mut().cast(),
    });
    if seat.number != 0 {
        state.stand_up(seat.number);
        state.number_promises();
    }
}

impl Numbers {
    /// The latest of these and of a state's.
    fn of(self, state: &State) -> Self {
        Self {
            function: self.function.max(state.next_number.get()),
            promise: self.promise.max(state.next_promise.get()),
            call: state.last_started.get(),
            first_function: self.first_function,
        }
    }
}

/// Tables without anything in them.
fn new_state(
    occupied: &Occupied<'_, Realm>,
    program: SessionProgram,
    numbers: Numbers,
    interleaves: bool,
) -> Box<State> {
    let (embedder, linker) = (Arc::new(NullEmbedder), Box::new(program));
    let mut state =
        State::new(occupied.instance(), embedder, linker, Task::default(), Arc::default());
    let seats = if interleaves { Seats::new() } else { None };
    state.session = Some(Session { seats, ..Session::default() });
    if let Some(session) = &state.session {
        session.first_function.set(numbers.first_function);
    }
    state.next_number.set(numbers.function);
    state.next_promise.set(numbers.promise);
    state.last_started.set(numbers.call);
    Box::new(state)
}

fn program_of_shared(state: &State) -> Option<SessionProgram> {
    state.linker.borrow_mut().session().map(|program| program.clone())
}
