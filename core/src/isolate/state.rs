//! What one run keeps beside the engine: the tables behind the numbers that cross, and what the
//! run was asked to do.
//!
//! The engine finds it through its context, and may come back into it at any depth (a getter that
//! runs while a value is read may call the host), so every field is a cell and no borrow is held
//! across a call of the engine.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Outside, Task,
    bridge::{Exported, HostPromise},
    engine::{Local, Outcome, Thrown},
    home::Home,
    realm::Realm,
    settle::Signal,
};
use crate::{
    outcome::ExecutionError,
    program::{Compiled, Linker},
    value::{InFlight, Value},
};

/// The entries of a Map or the members of a Set, while they are collected.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) pairs: bool,
    pub(super) items: Vec<Local>,
    /// Bytes that were charged for the room they take.
    pub(super) charged: usize,
}

/// The state of one run, on the thread that computes it.
pub(super) struct State {
    realm: Realm,
    outside: Arc<dyn Outside>,
    /// The run's home; outlives this.
    home: *const Home<Realm>,
    pub(super) linker: RefCell<Box<dyn Linker>>,
    pub(super) task: RefCell<Task>,
    /// Whether the caller gave a console of its own.
    pub(super) own_console: bool,
    /// What the caller gave: globals, then exports of bridges, then the array of arguments.
    pub(super) inputs: RefCell<Vec<Local>>,
    /// Bridged modules by address: their exports, and where their values start in `inputs`.
    pub(super) bridges: RefCell<Vec<(usize, Vec<String>, usize)>>,
    /// Why a module could not be linked, when that is what the pending exception says.
    pub(super) link_error: RefCell<Option<ExecutionError>>,
    pub(super) host_functions: RefCell<HashMap<u32, Local>>,
    pub(super) host_promises: RefCell<HashMap<u32, HostPromise>>,
    pub(super) exported: RefCell<HashMap<u32, Exported>>,
    pub(super) exported_numbers: RefCell<HashMap<usize, u32>>,
    pub(super) next_number: Cell<u32>,
    pub(super) exported_promises: RefCell<Vec<Local>>,
    pub(super) exported_promise_numbers: RefCell<HashMap<usize, u32>>,
    pub(super) unhandled: RefCell<Vec<(Local, Local)>>,
    pub(super) collected: RefCell<Collected>,
    pub(super) counts: RefCell<HashMap<String, u32>>,
    pub(super) timers: RefCell<HashMap<String, Instant>>,
    in_flight: Arc<InFlight>,
    /// The entry, once it is loaded.
    pub(super) module: RefCell<Option<Local>>,
    /// What a promise that the run waits for came to.
    pub(super) signal: RefCell<Option<Signal>>,
    /// A panic of this crate was caught on its way into the engine.
    failed: Cell<bool>,
}

impl State {
    /// The home must outlive the state, which [`super::Isolate`] sees to.
    pub(super) fn new(
        home: &Home<Realm>,
        outside: Arc<dyn Outside>,
        linker: Box<dyn Linker>,
        task: Task,
        in_flight: Arc<InFlight>,
    ) -> Self {
        Self {
            realm: home.realm(),
            outside,
            home: std::ptr::from_ref(home),
            linker: RefCell::new(linker),
            own_console: task.globals.iter().any(|name| name == "console"),
            task: RefCell::new(task),
            inputs: RefCell::default(),
            bridges: RefCell::default(),
            link_error: RefCell::default(),
            host_functions: RefCell::default(),
            host_promises: RefCell::default(),
            exported: RefCell::default(),
            exported_numbers: RefCell::default(),
            next_number: Cell::new(0),
            exported_promises: RefCell::default(),
            exported_promise_numbers: RefCell::default(),
            unhandled: RefCell::default(),
            collected: RefCell::default(),
            counts: RefCell::default(),
            timers: RefCell::default(),
            in_flight,
            module: RefCell::default(),
            signal: RefCell::default(),
            failed: Cell::new(false),
        }
    }

    pub(super) fn realm(&self) -> &Realm {
        &self.realm
    }

    pub(super) fn outside(&self) -> &dyn Outside {
        &*self.outside
    }

    /// Refuses to go on once the run must end, in a way that no sandbox code can catch.
    pub(super) fn still_running(&self) -> Outcome<()> {
        if self.must_end() { Err(self.interrupt()) } else { Ok(()) }
    }

    /// Throws what no `catch` of the sandbox sees: the run ends.
    pub(super) fn interrupt(&self) -> Thrown {
        self.home().heap().stop();
        self.realm.cx.interrupt()
    }

    pub(super) fn must_end(&self) -> bool {
        self.failed.get() || self.home().heap().must_end()
    }

    /// The limit is hit, by what the books did not see.
    pub(super) fn exhaust(&self) {
        self.home().heap().exhaust();
    }

    /// Whether the limit was hit.
    pub(super) fn exhausted(&self) -> bool {
        self.home().heap().exhausted()
    }

    pub(super) fn charge(&self, bytes: usize) -> bool {
        self.home().heap().charge(bytes)
    }

    /// Charges for an entry of a table, which the host has its like of; ends the run if there is no
    /// room for it.
    pub(super) fn charge_entry(&self, bytes: usize) -> Outcome<()> {
        if self.charge(bytes) { Ok(()) } else { Err(self.interrupt()) }
    }

    /// Charges for what was compiled, which the run keeps to its end. It was compiled beside what the
    /// run held then.
    pub(super) fn charge_compiled(&self, held_bytes: usize) -> Outcome<()> {
        let Compiled { kept_bytes, peak_bytes } = self.linker.borrow_mut().take_compiled();
        self.home().heap().note_peak(held_bytes + peak_bytes);
        self.charge_entry(kept_bytes)
    }

    /// How much the run holds, and how much more it may.
    pub(super) fn held_and_room_bytes(&self) -> (usize, usize) {
        self.home().heap().held_and_room_bytes()
    }

    /// The same message, which counts as under way until the host has taken it.
    pub(super) fn send(&self, message: Value) -> Value {
        self.discharge(message.held_bytes());
        message.sent(&self.in_flight)
    }

    pub(super) fn discharge(&self, bytes: usize) {
        self.home().heap().discharge(bytes);
    }

    /// Time that went by while the host was at work is none of the code's.
    pub(super) fn skip_clock(&self, waited: Duration) {
        self.home().skip_clock(waited);
    }

    /// Notes that this crate failed: the run ends, and the home is not used again.
    pub(super) fn fail(&self) {
        self.failed.set(true);
        self.home().mark_odd();
    }

    pub(super) fn failed(&self) -> bool {
        self.failed.get()
    }

    #[expect(unsafe_code, reason = "the home is borrowed for longer than the compiler can see")]
    fn home(&self) -> &Home<Realm> {
        // SAFETY: the isolate that owns this state owns the home, which it drops later.
        unsafe { &*self.home }
    }
}
