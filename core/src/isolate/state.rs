//! Data of one run beside the engine: the tables behind the numbers that cross, and the run's task.
//!
//! The engine finds it through its context, and may re-enter it at any depth (a getter that runs while a value is read
//! may call the host). So every field is a cell and no borrow is held across a call of the engine.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ptr::NonNull,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    crossing::{
        numbered::{Exported, ExportedPromise, HostPromise},
        throws::Throws,
    },
    embedder::Embedder,
    engine::Local,
    explain::explained::Explained,
    extension::parts::Opened,
    last_throw::LastThrow,
    locale::warnings,
    memory::{home::Tenant, instance::Instance},
    realm::Realm,
    session::tables::Session,
    signal::Signal,
    task::Task,
    unawaited::losses::Unawaited,
};
use crate::{
    binding::host::Refusal,
    data::outcome::{ExecutionError, Position},
    modules::program::{Compiled, Linker, Oversized},
    value::{InFlight, Kinds, Value},
};

/// The entries of a Map or the members of a Set, while they are collected.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) pairs: bool,
    pub(super) items: Vec<Local>,
    /// Bytes that were charged for the room that they take.
    pub(super) charged: usize,
}

/// The progress of loading the entry with all its imports.
#[derive(Default)]
pub(super) enum Linking {
    /// Not begun, or over: running code makes any import from now on.
    #[default]
    Idle,
    Entry,
    /// The reason why a module of the static graph could not be loaded.
    Failed(Box<ExecutionError>),
}

/// The state of one run, on the thread that computes it.
pub(super) struct State {
    realm: Realm,
    embedder: RefCell<Arc<dyn Embedder>>,
    /// The run's instance; outlives this.
    instance: *const Instance<Realm>,
    pub(super) linker: RefCell<Box<dyn Linker>>,
    pub(super) task: RefCell<Task>,
    /// Whether the caller gave a console of its own.
    pub(super) own_console: Cell<bool>,
    /// The caller's values: globals with the names of the extension before them, then exports of bridges, then the array of arguments.
    pub(super) inputs: RefCell<Vec<Local>>,
    /// The parts of the extension that the run calls, once it is open.
    pub(super) extension: RefCell<Opened>,
    /// Bridged modules by address: their exports, and where their values start in `inputs`.
    pub(super) bridges: RefCell<Vec<(usize, Vec<String>, usize)>>,
    pub(super) linking: RefCell<Linking>,
    /// The importer and the specifier that the engine asked for last, once the entry is loaded.
    pub(super) requested: RefCell<Option<(String, String)>>,
    /// The file and the place of the `import()` whose error is being made.
    pub(super) failed_import: RefCell<Option<(String, Position)>>,
    pub(super) host_functions: RefCell<HashMap<u32, Local>>,
    pub(super) host_promises: RefCell<HashMap<u32, HostPromise>>,
    /// Calls of asynchronous host functions that the host has not been seen to take, and the number of the last of all.
    pub(super) ahead: Cell<u32>,
    pub(super) last_started: Cell<u32>,
    /// The last host function that returned a promise.
    pub(super) last_promising: Cell<Option<u32>>,
    pub(super) exported: RefCell<HashMap<u32, Exported>>,
    pub(super) exported_numbers: RefCell<HashMap<usize, u32>>,
    pub(super) next_number: Cell<u32>,
    /// Promises that the host waits for, by number, and their numbers by address.
    pub(super) exported_promises: RefCell<HashMap<u32, ExportedPromise>>,
    pub(super) exported_promise_numbers: RefCell<HashMap<usize, u32>>,
    pub(super) next_promise: Cell<u32>,
    /// The latest throws of the host.
    pub(super) throws: RefCell<Throws>,
    pub(super) unhandled: RefCell<Vec<(Local, Local)>>,
    /// Answered calls whose promises are not awaited yet, and the number of the last call that gave a promise.
    pub(super) unawaited: RefCell<Unawaited>,
    pub(super) calls_made: Cell<u32>,
    /// The explanations of errors so far.
    pub(super) explained: RefCell<Explained>,
    pub(super) collected: RefCell<Collected>,
    /// Labels of the console, charged for as long as they are kept.
    pub(super) counts: RefCell<HashMap<Box<str>, u32>>,
    pub(super) timers: RefCell<HashMap<Box<str>, Instant>>,
    /// The locale methods of which the run was warned.
    pub(super) warned_locale_methods: Cell<[bool; warnings::WARNING_COUNT]>,
    in_flight: RefCell<Arc<InFlight>>,
    /// Whether the host was called in the present turn.
    pub(super) has_called: Cell<bool>,
    pub(super) kept: Cell<usize>,
    /// Those of them that only the present run needs.
    pub(super) passing: Cell<usize>,
    /// The entry, once it is loaded.
    pub(super) module: RefCell<Option<Local>>,
    /// The outcome of a promise that the run waits for.
    pub(super) signal: RefCell<Option<Signal>>,
    /// The place in memory that the run leaves to others while it waits for the host, if it has one to leave.
    pub(super) tenant: Cell<Option<NonNull<Tenant<Realm>>>>,
    /// The tables of a session, if the run is one of its cells.
    pub(super) session: Option<Session>,
    /// The number of the cell that computes, if cells interleave; otherwise zero.
    pub(super) cell: Cell<u32>,
    /// A panic of this crate was caught on its way into the engine.
    failed: Cell<bool>,
    /// The last throw of a value that is no error.
    pub(super) last_throw: RefCell<LastThrow>,
    /// The place at which the run was stopped: file, line, column, and the frames as text.
    pub(super) scene: RefCell<Option<ExecutionError>>,
    /// The module that the run had no room to compile.
    oversized: RefCell<Option<Oversized>>,
}

impl State {
    /// The instance must outlive the state; [`super::Isolate`] ensures that.
    pub(super) fn new(
        instance: &Instance<Realm>,
        embedder: Arc<dyn Embedder>,
        linker: Box<dyn Linker>,
        task: Task,
        in_flight: Arc<InFlight>,
    ) -> Self {
        Self {
            realm: instance.realm(),
            embedder: RefCell::new(embedder),
            instance: std::ptr::from_ref(instance),
            linker: RefCell::new(linker),
            own_console: Cell::new(task.globals.iter().any(|name| name == "console")),
            task: RefCell::new(task),
            inputs: RefCell::default(),
            extension: RefCell::default(),
            bridges: RefCell::default(),
            linking: RefCell::default(),
            requested: RefCell::default(),
            failed_import: RefCell::default(),
            host_functions: RefCell::default(),
            host_promises: RefCell::default(),
            ahead: Cell::new(0),
            last_started: Cell::new(0),
            last_promising: Cell::new(None),
            exported: RefCell::default(),
            exported_numbers: RefCell::default(),
            next_number: Cell::new(0),
            exported_promises: RefCell::default(),
            exported_promise_numbers: RefCell::default(),
            next_promise: Cell::new(0),
            throws: RefCell::default(),
            unhandled: RefCell::default(),
            unawaited: RefCell::default(),
            calls_made: Cell::new(0),
            explained: RefCell::default(),
            collected: RefCell::default(),
            counts: RefCell::default(),
            timers: RefCell::default(),
            warned_locale_methods: Cell::default(),
            in_flight: RefCell::new(in_flight),
            module: RefCell::default(),
            signal: RefCell::default(),
            has_called: Cell::new(false),
            kept: Cell::new(0),
            passing: Cell::new(0),
            tenant: Cell::new(None),
            session: None,
            cell: Cell::new(0),
            failed: Cell::new(false),
            last_throw: RefCell::default(),
            scene: RefCell::default(),
            oversized: RefCell::default(),
        }
    }

    pub(super) fn realm(&self) -> &Realm {
        &self.realm
    }

    /// The host, to be called for the code that runs.
    pub(super) fn embedder(&self) -> Arc<dyn Embedder> {
        self.has_called.set(true);
        self.silent_embedder()
    }

    /// The host, to be asked for what it does not notice as an act of the code.
    fn silent_embedder(&self) -> Arc<dyn Embedder> {
        Arc::clone(&self.embedder.borrow())
    }

    /// Goes on with another host, which messages are under way to.
    pub(super) fn set_embedder(&self, embedder: Arc<dyn Embedder>, in_flight: Arc<InFlight>) {
        self.in_flight.replace(in_flight);
        // The former one is dropped when nothing is borrowed.
        drop(self.embedder.replace(embedder));
    }

    /// Calls a function of the host that may wait. Other sessions may use the instance meanwhile.
    pub(super) fn outside<T>(&self, call: impl FnOnce(&dyn Embedder) -> T) -> T {
        let embedder = self.silent_embedder();
        match self.tenant.get() {
            #[expect(
                unsafe_code,
                reason = "the tenant is borrowed for longer than the compiler can see"
            )]
            // SAFETY: a session sets the tenant that it has occupied, and takes it back before it leaves. A function of
            // the host has messages alone, which are not in the engine's memory.
            Some(tenant) => unsafe { tenant.as_ref().step_aside(|| call(&*embedder)) },
            None => call(&*embedder),
        }
    }

    /// The part of a message that the host cannot hold, if there is one.
    pub(super) fn refusal(&self, message: &Value) -> Option<Refusal> {
        if message.kinds() == Kinds::NONE { None } else { self.silent_embedder().refusal(message) }
    }

    /// Leaves the engine if the run must end.
    pub(super) fn still_running(&self) {
        if self.must_end() {
            self.stop()
        }
    }

    pub(super) fn must_end(&self) -> bool {
        self.failed.get() || self.instance().heap().must_end()
    }

    /// Leaves the engine because memory outside of the accounting hits the limit.
    pub(super) fn exhaust(&self) -> ! {
        self.instance().heap().exhaust();
        self.stop()
    }

    /// Leaves the engine because there is no room to compile that module.
    pub(super) fn exhaust_by(&self, module: Oversized) -> ! {
        *self.oversized.borrow_mut() = Some(module);
        self.exhaust()
    }

    /// The module that the run had no room to compile, once.
    pub(super) fn take_oversized(&self) -> Option<Oversized> {
        self.oversized.borrow_mut().take()
    }

    /// Whether the limit was hit.
    pub(super) fn exhausted(&self) -> bool {
        self.instance().heap().exhausted()
    }

    /// Counts bytes that the run makes others hold; leaves the engine if they do not fit.
    pub(super) fn charge(&self, bytes: usize) {
        if !self.instance().heap().charge(bytes) {
            self.stop()
        }
    }

    /// Counts bytes that the run keeps for longer than the reading of a message: code, and entries of tables, which
    /// have counterparts at the host. Leaves the engine if they do not fit.
    pub(super) fn keep(&self, bytes: usize) {
        self.charge(bytes);
        self.kept.set(self.kept.get() + bytes);
    }

    /// Counts bytes that the run keeps to its end, and a session no longer than its cell.
    pub(super) fn keep_for_now(&self, bytes: usize) {
        self.keep(bytes);
        self.passing.set(self.passing.get() + bytes);
    }

    /// Counts bytes that are charged already as kept from now on.
    pub(super) fn keep_charged(&self, bytes: usize) {
        self.kept.set(self.kept.get() + bytes);
    }

    pub(super) fn let_go(&self, bytes: usize) {
        self.discharge(bytes);
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// Bytes charged for longer than the reading of a message.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.get()
    }

    /// Charges for compiled code, which the run keeps to its end. While it was compiled, the run held `held_bytes`
    /// besides.
    pub(super) fn charge_compiled(&self, held_bytes: usize) {
        let Compiled { kept_bytes, peak_bytes } = self.linker.borrow_mut().take_compiled();
        self.instance().heap().note_peak(held_bytes + peak_bytes);
        self.keep(kept_bytes);
    }

    /// The bytes that the run holds, and the bytes that it may still take.
    pub(super) fn held_and_room_bytes(&self) -> (usize, usize) {
        self.instance().heap().held_and_room_bytes()
    }

    /// The same message, counted as in flight until the host has taken it.
    pub(super) fn send(&self, message: Value) -> Value {
        self.discharge(message.held_bytes());
        message.sent(&self.in_flight.borrow())
    }

    pub(super) fn discharge(&self, bytes: usize) {
        self.instance().heap().discharge(bytes);
    }

    /// Bytes that are charged for no longer than a message is read, or a cell runs.
    pub(super) fn loose_bytes(&self) -> usize {
        self.instance().heap().charged_bytes().saturating_sub(self.kept.get())
    }

    /// Excludes time that the host spent from the time of the code.
    pub(super) fn skip_clock(&self, waited: Duration) {
        self.instance().skip_clock(waited);
    }

    /// Notes that this crate failed: the run ends, and the instance is not used again.
    pub(super) fn fail(&self) {
        self.failed.set(true);
        self.instance().mark_odd();
    }

    /// Frees what only one cell of a session needs.
    pub(super) fn leave_cell(&self) {
        self.unhandled.take();
        self.forget_watched();
        self.forget_throws();
        self.module.take();
        self.signal.take();
        self.explained.take();
        self.last_throw.take();
        self.scene.take();
        self.requested.take();
        self.failed_import.take();
        self.ahead.set(0);
        if let Some(session) = &self.session {
            session.leave_cell();
        }
        let passing = self.passing.take();
        self.kept.set(self.kept.get().saturating_sub(passing));
    }

    /// Takes back that this crate failed: the heap is as it was before.
    pub(super) fn mend(&self) {
        self.failed.set(false);
        self.oversized.take();
    }

    pub(super) fn failed(&self) -> bool {
        self.failed.get()
    }

    #[expect(unsafe_code, reason = "the instance is borrowed for longer than the compiler can see")]
    pub(super) fn instance(&self) -> &Instance<Realm> {
        // SAFETY: the isolate that owns this state owns the instance, which it drops later.
        unsafe { &*self.instance }
    }
}
