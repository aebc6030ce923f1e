//! The engine and all code that calls it. No other part of the crate imports the engine.
//!
//! An [`Isolate`] is one run in one instance. In: a [`Task`], a [`Linker`] that provides modules, and the [`Embedder`]
//! that it calls. Out: a [`Turn`] each time it stops, and at last an [`End`].
//!
//! In the order in which to read them:
//!
//! - `memory/` holds the instance in which a run lives, and `engine/` the engine's C interface. `embedder` is the host as
//!   an isolate sees it, `null_embedder` that of our own programs, `task` the work, and `end` tells how it ended. `realm`
//!   is the data of a realm, and `state` the tables of a run. Both consist of plain data of other files: `signal`,
//!   `last_throw`, and those beside their topics (`crossing/numbered`, `session/tables`, `extension/parts` and others).
//! - `trampoline` is the way from the engine into this crate. `errors` throws errors, `excerpt` gives the beginnings of
//!   texts, `marks` finds the frames of a stack in its text, `primitive` turns objects into primitive values, `thrown` has
//!   the places of thrown values that are no errors, and `awaiting` waits for promises.
//! - `crossing/` carries values over. `exception` describes thrown values, `stack_text` adds the errors that an error was
//!   made from, `explain` says which expression an error of the engine is about, `scene` notes where code is that is
//!   stopped, `stalled` finds the place at which a run waits for ever, and `backtrace` writes and reads stacks.
//! - `loader` brings modules in, `link_errors` throws the errors of modules that cannot come, and `library` compiles texts
//!   for the extension. `globals` declares the names that modules see, `extension` opens the extension of the realm, `console` and
//!   `rejections` serve the sandbox beyond the language, `dates` reads texts as dates, `intl` has the objects of `Intl`,
//!   `locale` the methods that depend on a locale, `function_text` gives functions their text, and `unawaited` warns of
//!   calls whose promises are lost.
//! - `realm_builder` makes a realm with all these, `settle` goes from evaluation to the end, and `session/` lets an isolate
//!   stay for many cells.
//!
//! No more than three files need each other: `core/tests/it/circles.rs`.

mod awaiting;
mod backtrace;
mod console;
mod crossing;
mod dates;
mod embedder;
mod end;
mod engine;
mod errors;
mod exception;
mod excerpt;
mod explain;
mod extension;
mod function_text;
mod globals;
mod intl;
mod last_throw;
mod library;
mod link_errors;
mod loader;
mod locale;
mod marks;
mod memory;
mod null_embedder;
mod primitive;
mod realm;
mod realm_builder;
mod rejections;
mod scene;
pub(crate) mod session;
mod settle;
mod signal;
mod stack_text;
pub(crate) mod stalled;
mod state;
mod task;
mod thrown;
mod trampoline;
mod unawaited;

#[cfg(test)]
pub(crate) mod cost;
#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
mod stop_tests;

use std::sync::Arc;

pub(crate) use self::{
    embedder::{Embedder, Started},
    end::{CellEnd, End, Stopped, Turn},
    extension::build::fault as extension_fault,
    memory::{
        home::{Home, Tenant},
        pool::{HomePermit, Lease, Pool, PoolOptions},
        slot::LARGEST_LIMIT_BYTES as LARGEST_SLOT_LIMIT_BYTES,
        termination::Termination,
    },
    null_embedder::NullEmbedder,
    realm::Realm,
    realm_builder::STACK_LIMIT_BYTES,
    stalled::without_place,
    task::Task,
};
use self::{
    memory::{instance, interrupt},
    state::State,
    trampoline::on_poll,
};
use crate::{binding::inbound::Inbound, data::outcome::ExecutionError, modules::program::Linker};

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
