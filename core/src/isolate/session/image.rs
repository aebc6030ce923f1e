//! The tables beside the heap, as they were at a checkpoint.
//!
//! In: the state of a session between two cells. Out: the same state, once the heap has the content of that moment
//! again. The references in an image are those that the tables had: they count in the heap's own image. So an image is
//! made without the engine, and dropped without it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Instant,
};

use super::{
    blocks::Blocks,
    declared::{Declared, Import, Imports},
    seats::{Seat, Seats},
    tables::{Builtins, Loaded, Session},
};
use crate::{
    binding::inbound::Inbound,
    data::portable::{Input, Output, Portable, portable},
    isolate::{
        crossing::numbered::{Exported, ExportedPromise, HostPromise},
        engine::{Local, address_of},
        extension::parts::Opened,
        locale::warnings,
        memory::escape::forgetting,
        state::State,
    },
};

/// An image of the tables.
pub(super) struct Image(Option<Tables>);

struct Tables {
    own_console: bool,
    inputs: Vec<Local>,
    extension: Opened,
    bridges: Vec<(usize, Vec<String>, usize)>,
    host_functions: Blocks<Local>,
    host_promises: Blocks<HostPromise>,
    last_promising: Option<u32>,
    exported: Blocks<Exported>,
    exported_promises: Blocks<ExportedPromise>,
    counts: HashMap<Box<str>, u32>,
    timers: HashMap<Box<str>, Instant>,
    warned_locale_methods: [bool; warnings::WARNING_COUNT],
    kept: usize,
    declared: Arc<Declared>,
    imports: Imports,
    loaded: Loaded,
    given: Arc<HashSet<String>>,
    taken_in: usize,
    rounds: u32,
    builtins: Builtins,
    waiting: Waiting,
}

/// The cells that wait, and the rejections of theirs that nobody has handled. Tables that are written have none.
#[derive(Default)]
struct Waiting {
    seats: HashMap<u32, Seat>,
    unhandled: Vec<(Local, Local)>,
}

impl Portable for Waiting {
    fn write(&self, _: &mut Output) {}

    fn read(_: &mut Input) -> Option<Self> {
        Some(Self::default())
    }
}

portable!(struct Tables {
    own_console, inputs, extension, bridges, host_functions, host_promises, last_promising, exported,
    exported_promises, counts, timers, warned_locale_methods, kept, declared, imports, loaded,
    given, taken_in, rounds, builtins, waiting,
});

impl Drop for Image {
    fn drop(&mut self) {
        // The references belong to an image of the heap.
        forgetting(|| drop(self.0.take()));
    }
}

impl Image {
    /// The present tables, between two cells.
    pub(super) fn of(state: &State) -> Option<Self> {
        Self::after(state, None).map(|(image, _)| image)
    }

    /// The same, which shares with an earlier image what did not change; and its bytes beside that.
    pub(super) fn after(state: &State, earlier: Option<&Self>) -> Option<(Self, usize)> {
        let session = state.session.as_ref()?;
        let earlier = earlier.and_then(|earlier| earlier.0.as_ref());
        let known = earlier.map(|it| &it.host_functions);
        let (host_functions, functions) = Blocks::of(&state.host_functions.borrow(), known);
        let known = earlier.map(|it| &it.host_promises);
        let (host_promises, promises) = Blocks::of(&state.host_promises.borrow(), known);
        let known = earlier.map(|it| &it.exported);
        let (exported, exports) = Blocks::of(&state.exported.borrow(), known);
        let known = earlier.map(|it| &it.exported_promises);
        let (exported_promises, promised) = Blocks::of(&state.exported_promises.borrow(), known);
        let tables = Tables {
            own_console: state.own_console.get(),
            inputs: state.inputs.borrow().iter().map(Local::image).collect(),
            extension: state.extension.borrow().image(),
            bridges: state.bridges.borrow().clone(),
            host_functions,
            host_promises,
            last_promising: state.last_promising.get(),
            exported,
            exported_promises,
            counts: state.counts.borrow().clone(),
            timers: state.timers.borrow().clone(),
            warned_locale_methods: state.warned_locale_methods.get(),
            kept: state.kept.get(),
            declared: Arc::clone(&session.declared.borrow()),
            imports: session.imports.borrow().image(),
            loaded: Arc::clone(&session.loaded.borrow()),
            given: Arc::clone(&session.given.borrow()),
            taken_in: session.taken_in.get(),
            rounds: session.rounds.get(),
            builtins: session.builtins.get(),
            waiting: Waiting {
                seats: session.seats.as_ref().map(Seats::image).unwrap_or_default(),
                unhandled: state.unhandled.borrow().iter().map(pair).collect(),
            },
        };
        let bytes = functions + promises + exports + promised + tables.other_bytes();
        Some((Self(Some(tables)), bytes))
    }

    /// Puts the tables back. The heap has the content of the image again; whatever the tables refer to now is gone.
    pub(super) fn put_back(&self, state: &State) {
        forget(state);
        let Some(session) = &state.session else { return };
        let Some(tables) = self.0.as_ref().map(Tables::copy) else { return };
        state.own_console.set(tables.own_console);
        state.inputs.replace(tables.inputs);
        state.extension.replace(tables.extension);
        state.bridges.replace(tables.bridges);
        state.host_functions.replace(tables.host_functions.table());
        state.host_promises.replace(tables.host_promises.table());
        state.last_promising.set(tables.last_promising);
        let numbers = tables.exported.iter().map(|(it, known)| (address_of(known.function()), *it));
        state.exported_numbers.replace(numbers.collect());
        state.exported.replace(tables.exported.table());
        let promises = tables.exported_promises.iter();
        let numbers = promises.map(|(it, known)| (address_of(known.promise()), *it));
        state.exported_promise_numbers.replace(numbers.collect());
        state.exported_promises.replace(tables.exported_promises.table());
        state.counts.replace(tables.counts);
        state.timers.replace(tables.timers);
        state.warned_locale_methods.set(tables.warned_locale_methods);
        state.kept.set(tables.kept);
        session.declared.replace(tables.declared);
        session.imports.replace(tables.imports);
        session.loaded.replace(tables.loaded);
        session.given.replace(tables.given);
        session.taken_in.set(tables.taken_in);
        session.rounds.set(session.rounds.get().max(tables.rounds));
        session.round.set(session.rounds.get());
        session.builtins.set(tables.builtins);
        state.unhandled.replace(tables.waiting.unhandled);
        if let Some(seats) = &session.seats {
            seats.put_back(tables.waiting.seats);
        }
    }

    /// A second image, for a fork.
    pub(super) fn copy(&self) -> Self {
        Self(self.0.as_ref().map(Tables::copy))
    }

    /// Writes the tables, beside the content of the heap.
    pub(super) fn write(&self, out: &mut Output) {
        if let Some(tables) = &self.0 {
            tables.write(out);
        }
    }

    /// The tables that were written, whose heap has that content by now, at the same addresses.
    pub(super) fn read(input: &mut Input) -> Option<Self> {
        // The references of tables that are not whole count nowhere.
        forgetting(|| Tables::read(input).map(|tables| Self(Some(tables))))
    }

    /// Whether a message is about something in the tables: a promise of the host that is pending, or a function that the
    /// host holds.
    pub(super) fn knows(&self, inbound: &Inbound) -> bool {
        let Some(tables) = &self.0 else { return false };
        match inbound {
            Inbound::PromiseSettled { promise, .. } => tables.host_promises.contains(*promise),
            Inbound::FunctionReleased { function, .. } => tables.exported.contains(*function),
            Inbound::FunctionCall { .. } => false,
        }
    }
}

/// Forgets everything in the tables, whose heap has another content by now.
pub(super) fn forget(state: &State) {
    forgetting(|| {
        let session = Session::default();
        state.inputs.take();
        state.extension.take();
        state.bridges.take();
        state.linking.take();
        state.requested.take();
        state.failed_import.take();
        state.host_functions.take();
        state.host_promises.take();
        state.ahead.set(0);
        state.exported.take();
        state.exported_numbers.take();
        state.exported_promises.take();
        state.exported_promise_numbers.take();
        state.throws.take();
        state.unhandled.take();
        state.unawaited.take();
        state.last_throw.take();
        state.explained.take();
        state.collected.take();
        state.counts.take();
        state.timers.take();
        state.module.take();
        state.signal.take();
        state.cell.set(0);
        state.kept.set(0);
        state.passing.set(0);
        state.mend();
        if let Some(present) = &state.session {
            present.declared.swap(&session.declared);
            present.imports.swap(&session.imports);
            present.loaded.swap(&session.loaded);
            present.given.swap(&session.given);
            present.taken_in.set(0);
            present.builtins.set(Builtins::default());
            present.linked.take();
            present.present.take();
            present.brought.take();
            if let Some(seats) = &present.seats {
                drop(seats.put_back(HashMap::new()));
            }
        }
    });
}

/// As [`Local::image`].
fn pair((first, second): &(Local, Local)) -> (Local, Local) {
    (first.image(), second.image())
}

fn copied<V>(table: &HashMap<u32, V>, image: impl Fn(&V) -> V) -> HashMap<u32, V> {
    table.iter().map(|(number, value)| (*number, image(value))).collect()
}

impl Tables {
    /// About the bytes of the tables that images do not share.
    fn other_bytes(&self) -> usize {
        const PER_LABEL: usize = 64;
        let exports = self.bridges.iter().map(|(_, exports, _)| exports);
        let exports = exports.flatten().map(|export| size_of::<String>() + export.len());
        size_of::<Self>()
            + size_of_val(self.inputs.as_slice())
            + exports.sum::<usize>()
            + (self.counts.len() + self.timers.len()) * PER_LABEL
            + self.imports.names.len() * size_of::<(u32, Import)>()
            + self.waiting.seats.len() * size_of::<(u32, Seat)>()
            + size_of_val(self.waiting.unhandled.as_slice())
    }

    fn copy(&self) -> Self {
        Self {
            own_console: self.own_console,
            inputs: self.inputs.iter().map(Local::image).collect(),
            extension: self.extension.image(),
            bridges: self.bridges.clone(),
            host_functions: self.host_functions.clone(),
            host_promises: self.host_promises.clone(),
            last_promising: self.last_promising,
            exported: self.exported.clone(),
            exported_promises: self.exported_promises.clone(),
            counts: self.counts.clone(),
            timers: self.timers.clone(),
            warned_locale_methods: self.warned_locale_methods,
            kept: self.kept,
            declared: Arc::clone(&self.declared),
            imports: self.imports.image(),
            loaded: Arc::clone(&self.loaded),
            given: Arc::clone(&self.given),
            taken_in: self.taken_in,
            rounds: self.rounds,
            builtins: self.builtins,
            waiting: Waiting {
                seats: copied(&self.waiting.seats, Seat::image),
                unhandled: self.waiting.unhandled.iter().map(pair).collect(),
            },
        }
    }
}
