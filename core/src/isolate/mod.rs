//! The engine and all code that calls it. No other part of the crate imports the engine.
//!
//! An [`Isolate`] is one run in one instance. In: a [`Task`], a [`Linker`] that provides modules, and the [`Embedder`]
//! that it calls. Out: a [`Turn`] each time it stops, and at last an [`End`].
//!
//! `memory/` holds the instance in which a run lives, `engine/` the engine's C interface and the realm of a run, and
//! `crossing/` carries values over. `state` keeps a run's tables, `loader` brings modules in, `globals` declares the
//! names that modules see, `extension` opens the extension of the realm, `console` and `rejections` serve the sandbox
//! beyond the language, `dates` reads texts as dates, `primitive` turns objects into primitive values, `intl` has the
//! objects of `Intl`, `locale` the methods that depend on a locale, `exception` describes thrown values, `explain` says
//! which expression an error of the engine is about, `backtrace` writes and reads stacks, `stack_text` adds the errors
//! that an error was made from, `thrown` has the places of thrown values that are no errors, `function_text` gives
//! functions their text, `excerpt` gives the beginnings of texts, `unawaited` warns of calls whose promises are lost,
//! `settle` goes from evaluation to the end, `scene` notes where code is that is stopped, and `stalled` finds the place
//! at which a run waits for ever.
//! `null_embedder` is the embedder of our own programs, and `session/` lets an isolate stay for many cells.

mod backtrace;
mod console;
mod crossing;
mod dates;
mod engine;
mod exception;
mod excerpt;
mod explain;
mod extension;
mod function_text;
mod globals;
mod intl;
mod library;
mod loader;
mod locale;
mod memory;
mod null_embedder;
mod primitive;
mod rejections;
mod scene;
pub(crate) mod session;
mod settle;
mod stack_text;
pub(crate) mod stalled;
mod state;
mod thrown;
mod unawaited;

#[cfg(test)]
pub(crate) mod cost;
#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
mod stop_tests;

use std::{sync::Arc, time::Instant};

pub(crate) use self::{
    engine::realm::{Realm, STACK_LIMIT_BYTES},
    extension::fault as extension_fault,
    memory::{
        home::{Home, Tenant},
        pool::{HomePermit, Lease, Pool, PoolOptions},
        slot::LARGEST_LIMIT_BYTES as LARGEST_SLOT_LIMIT_BYTES,
        termination::Termination,
    },
    null_embedder::NullEmbedder,
    settle::{CellEnd, End, Stopped, Turn},
    stalled::without_place,
};
use self::{
    memory::{escape, instance, interrupt},
    state::State,
};
use crate::{
    binding::{
        host::{Completion, Refusal},
        inbound::Inbound,
    },
    data::outcome::{ExecutionError, LogLevel},
    modules::{
        program::Linker,
        request::{ExtensionRequest, Shape},
    },
    value::Value,
};

/// The work of an isolate.
#[derive(Debug, Default)]
pub(crate) struct Task {
    /// The export to select.
    pub(crate) export: String,
    /// The names of the globals, in the order of their values.
    pub(crate) globals: Vec<String>,
    /// One message: the extension's input if it is asked for, the globals' values, the values of the bridges' exports, the arguments.
    pub(crate) inputs: Value,
    /// Whether the built-in `report` exists.
    pub(crate) report: bool,
    /// The form of the entry.
    pub(crate) shape: Shape,
    /// The part of the extension that the run sees, until that is open.
    pub(crate) extension: Option<Arc<ExtensionRequest>>,
}

/// The counterpart of an isolate. Called on the thread that computes it, in the middle of its work.
pub(crate) trait Embedder: Send + Sync {
    /// Calls a host function and waits for its answer; `None` when the run must end.
    fn call(&self, function: u32, args: Value) -> Option<Completion>;

    /// Has the host start a call that will settle that promise.
    fn start(&self, function: u32, args: Value, promise: u32) -> Started;

    /// Keeps a reported value and gives it to the sink, as [`Embedder::call`] does.
    fn report(&self, value: Value) -> Option<Completion>;

    /// The part of a message that the host cannot hold, if there is one.
    fn refusal(&self, message: &Value) -> Option<Refusal>;

    /// Passes a log on, and keeps it if [`Embedder::keeps_logs`].
    fn log(&self, level: LogLevel, args: Value);

    /// Whether logs are kept until the run ends, and so count against its limit.
    fn keeps_logs(&self) -> bool {
        true
    }

    /// Takes the outcome of a call that the host made.
    fn function_settled(&self, call: u32, completion: Completion);

    /// Takes the outcome of a promise that the host holds.
    fn promise_settled(&self, promise: u32, completion: Completion);

    /// Called when the interrupt handler reads the clock; may wait, or ask the run to end.
    fn poll(&self, now: Instant);

    /// Called before the first instruction of a cell. False if somebody has asked the cell to end. `can_undo`: what the
    /// cell does can be undone, so that it may as well begin.
    fn begins(&self, can_undo: bool) -> bool {
        let _ = can_undo;
        true
    }
}

/// The outcome of the start of a call by the host.
#[derive(Debug)]
pub(crate) enum Started {
    /// It goes on, and its outcome will be a message.
    GoesOn,
    /// It is done, and there will be no message.
    Done(Completion),
    /// The run must end.
    Ended,
}

/// One run in one instance.
pub(crate) struct Isolate {
    /// Dropped before the instance that its values live in.
    state: Option<Box<State>>,
    instance: Lease<Realm>,
}

#[expect(unsafe_code, reason = "the engine's values are plain pointers")]
// SAFETY: everything that the state points at belongs to the instance, which is `Send` for the same reason: one thread
// at a time uses both, and nothing else has a copy of the pointers.
unsafe impl Send for Isolate {}

impl Isolate {
    /// Prepares a pristine instance for a run.
    pub(crate) fn new(
        instance: Lease<Realm>,
        embedder: Arc<dyn Embedder>,
        linker: Box<dyn Linker>,
        task: Task,
        limit_bytes: usize,
        termination: Arc<Termination>,
    ) -> Box<Self> {
        let mut isolate = Box::new(Self { state: None, instance });
        // Boxed first: from here on, the instance stays at one address.
        let in_flight = Arc::clone(&termination.in_flight);
        let state = Box::new(State::new(&isolate.instance, embedder, linker, task, in_flight));
        let hook: interrupt::Hook = on_poll;
        let host = std::ptr::from_ref::<State>(&state).cast_mut().cast();
        isolate.instance.arm(instance::Run { limit_bytes, termination, hook: Some(hook), host });
        isolate.instance.realm().attach(&state);
        isolate.state = Some(state);
        isolate
    }

    /// The first turn: loads, evaluates, and runs everything that can run.
    pub(crate) fn start(&mut self) -> Turn {
        self.enter(settle::start)
    }

    /// Takes the host's messages and runs everything that can run.
    pub(crate) fn turn(&mut self, inbox: Vec<Inbound>) -> Turn {
        self.enter(|state| {
            // The messages that waited may have been too much.
            state.charge(0);
            for inbound in inbox {
                if state.must_end() {
                    break;
                }
                state.receive(inbound);
            }
            settle::go_on(state)
        })
    }

    /// The error of a run that nothing can resume, with the place at which it waits.
    pub(crate) fn stalled(&self) -> Box<ExecutionError> {
        let found = self.state.as_ref().and_then(|state| {
            let found = self.instance.enter(|_| stalled::error(state));
            found.ok()
        });
        Box::new(found.unwrap_or_else(without_place))
    }

    /// The end of a run that is asked to end while it waits for its host, with the place at which it waits. This may be a
    /// thread of the host.
    pub(crate) fn asked(&self) -> End {
        let place = self.state.as_ref().and_then(|state| {
            let found = self.instance.enter_unaccounted(|| stalled::at_host(state, 0, true));
            found.ok().flatten()
        });
        End::asked_at(place)
    }

    /// The most bytes that ever counted against the limit.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.instance.heap().peak_bytes()
    }

    /// Leaves the engine only that many small blocks of each size.
    #[cfg(test)]
    pub(crate) fn crowd(&self, spare: &mut dyn FnMut() -> usize) {
        faults::crowd(self.instance.runtime(), spare);
    }

    /// Bytes that the run makes others hold by now.
    #[cfg(test)]
    pub(crate) fn charged_bytes(&self) -> usize {
        self.instance.heap().charged_bytes() - self.kept_bytes()
    }

    /// Bytes that its tables are charged at.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.kept_bytes())
    }

    /// Drops everything that the run left behind.
    pub(crate) fn finish(mut self: Box<Self>) -> Lease<Realm> {
        let state = self.state.take();
        self.instance.realm().detach();
        // The drop may take memory too; anything that it then keeps goes with the instance.
        drop(self.instance.enter(|_| drop(state)));
        self.instance
    }

    fn enter(&mut self, turn: impl FnOnce(&State) -> Turn) -> Turn {
        let Some(state) = &self.state else { return Turn::Ended(End::Broken) };
        match self.instance.enter(|_| turn(state)) {
            Ok(turn) => turn,
            Err(left) => {
                let end = settle::forced(state);
                // While `left` lives, the state's values of the engine are forgotten, not freed.
                self.state = None;
                drop(left);
                Turn::Ended(end)
            }
        }
    }
}

/// Called by the engine now and then while code runs.
fn on_poll(polls: &mut interrupt::PollState) -> bool {
    let now = polls.now;
    #[expect(unsafe_code, reason = "the hook's own pointer")]
    // SAFETY: set by `Isolate::new` to the state, which lives for as long as the run is armed.
    let state = unsafe { &*polls.host.cast::<State>() };
    if escape::catch_panic(|| state.outside(|embedder| embedder.poll(now))).is_err() {
        state.fail();
    }
    state.must_end()
}
