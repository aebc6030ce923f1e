//! The names that the host gives to a session, and the built-in `console` and `report`.
//!
//! In: the request for the extension, the host's messages, in order, and whether the present cell has `report`. Out: constants for cells and modules,
//! and values for bridged modules. A message is taken in by the first cell that starts after it came, under that cell's
//! limit; so if the cell is undone, the next one takes it in again.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    data::portable::portable,
    isolate::{
        crossing::clone_in::clone_args_in,
        engine::{Local, Outcome, Thrown, undefined},
        extension,
        session::tables::Builtins,
        state::State,
    },
    modules::{request::ExtensionRequest, session_request::UpdateRequest},
    value::{Event, Value, walk},
};

/// The names of the built-in functions.
const CONSOLE: &str = "console";
const REPORT: &str = "report";

/// One message of the host.
#[derive(Debug)]
pub(super) struct Given {
    globals: Vec<String>,
    removed: Vec<String>,
    /// The extension is opened with the first of the values, and its names are the first globals.
    extension: Option<Arc<ExtensionRequest>>,
    /// The index of its first value among all values.
    first: usize,
    count: usize,
    /// `None` once later messages have replaced all that was in it.
    values: Option<Value>,
}

portable!(struct ExtensionRequest { names, properties });
portable!(struct Given { globals, removed, extension, first, count, values });
portable!(struct Capabilities { given, last });

/// All messages of the host.
#[derive(Clone, Default)]
pub(super) struct Capabilities {
    given: Vec<Arc<Given>>,
    /// The last message that has the value of each name: of a global, or of a bridge after a slash.
    last: HashMap<String, usize>,
}

impl Capabilities {
    /// Adds what an update gives and takes away. `first` is the number of values before it.
    pub(super) fn add(&mut self, update: UpdateRequest, first: usize) {
        self.add_with(update, None, first);
    }

    /// As `add`; the names of the extension are the first globals.
    pub(super) fn add_with(
        &mut self,
        update: UpdateRequest,
        extension: Option<Arc<ExtensionRequest>>,
        first: usize,
    ) {
        let count: usize = update.globals.len()
            + update.imports.iter().map(|(_, names)| names.len()).sum::<usize>();
        let number = self.given.len();
        let bridge = |key: &String| format!("/{key}");
        for name in &update.removed_globals {
            self.last.remove(name);
        }
        for key in &update.removed_imports {
            self.last.remove(&bridge(key));
        }
        let names = update.globals.iter().cloned();
        for name in names.chain(update.imports.iter().map(|(key, _)| bridge(key))) {
            self.last.insert(name, number);
        }
        self.given.push(Arc::new(Given {
            globals: update.globals,
            removed: update.removed_globals,
            values: (count > 0 || extension.is_some()).then_some(update.inputs),
            extension,
            first,
            count,
        }));
        self.forget_replaced();
    }

    fn forget_replaced(&mut self) {
        let mut used = vec![false; self.given.len()];
        for &number in self.last.values() {
            if let Some(used) = used.get_mut(number) {
                *used = true;
            }
        }
        for (given, used) in self.given.iter_mut().zip(used) {
            if !used && given.values.is_some() && given.extension.is_none() {
                let Given { globals, removed, first, count, .. } = &**given;
                let (globals, removed) = (globals.clone(), removed.clone());
                *given = Arc::new(Given {
                    globals,
                    removed,
                    extension: None,
                    first: *first,
                    count: *count,
                    values: None,
                });
            }
        }
    }
}

impl State {
    /// Takes in the messages that came since the last time, and binds the built-in names.
    pub(super) fn take_in(&self, capabilities: &Capabilities, report: bool) -> Outcome<()> {
        let session = self.session()?;
        let taken_in = session.taken_in.get();
        if taken_in == 0 {
            extension::withdraw_all(self)?;
        }
        for given in capabilities.given.iter().skip(taken_in) {
            self.take_in_one(given)?;
            session.taken_in.set(session.taken_in.get() + 1);
        }
        if session.taken_in.get() > taken_in {
            self.free_replaced(capabilities);
        }
        self.bind_builtins(report)
    }

    /// Binds the built-in names, as the present cell has them.
    pub(super) fn bind_builtins(&self, report: bool) -> Outcome<()> {
        let session = self.session()?;
        let given = Arc::clone(&session.given.borrow());
        self.own_console.set(given.contains(CONSOLE));
        let wanted = Builtins {
            console: !given.contains(CONSOLE),
            report: report && !given.contains(REPORT),
        };
        let bound = session.builtins.get();
        let intrinsics = self.realm().intrinsics;
        let cx = self.realm().cx;
        if wanted.console && !bound.console {
            self.set_global(CONSOLE, Some(&cx.dup(intrinsics.console)))?;
        }
        if wanted.report && !bound.report {
            self.set_global(REPORT, Some(&cx.dup(intrinsics.report)))?;
        }
        if !wanted.report && bound.report && !given.contains(REPORT) {
            self.set_global(REPORT, None)?;
        }
        session.builtins.set(wanted);
        Ok(())
    }

    /// The promises of the host in messages that have not been taken in.
    pub(super) fn promises_to_come(&self, capabilities: &Capabilities) -> HashSet<u32> {
        let taken_in = self.session().map_or(0, |session| session.taken_in.get());
        let mut promises = HashSet::new();
        let given = capabilities.given.iter().skip(taken_in);
        for values in given.filter_map(|given| given.values.as_ref()) {
            // A message that cannot be read is refused where it is taken in.
            let _ = walk(values, |event| {
                if let Event::HostPromise(number) = event {
                    promises.insert(*number);
                }
            });
        }
        promises
    }

    /// Frees the values of messages that later ones have replaced.
    fn free_replaced(&self, capabilities: &Capabilities) {
        for given in capabilities.given.iter().filter(|given| given.values.is_none()) {
            for place in given.first..given.first + given.count {
                let nothing = self.realm().cx.dup(undefined());
                let replaced = match self.inputs.borrow_mut().get_mut(place) {
                    Some(value) => std::mem::replace(value, nothing),
                    None => break,
                };
                // Outside of the borrow, because freeing enters the engine.
                drop(replaced);
            }
        }
    }

    fn take_in_one(&self, given: &Given) -> Outcome<()> {
        let (cx, session) = (self.realm().cx, self.session()?);
        let none = || vec![cx.dup(undefined()); given.count];
        let values = match &given.values {
            Some(values) => clone_args_in(self, values)?,
            None => none(),
        };
        let values = match &given.extension {
            Some(request) => extension::open_for_session(self, request, values)?,
            None => values,
        };
        if values.len() != given.count {
            return Err(Thrown);
        }
        {
            let mut inputs = self.inputs.borrow_mut();
            inputs.truncate(given.first);
            inputs.resize_with(given.first, || cx.dup(undefined()));
            // The names keep the values of globals.
            inputs.extend(given.globals.iter().map(|_| cx.dup(undefined())));
            inputs.extend(values.iter().skip(given.globals.len()).cloned());
        }
        let mut names = session.given.borrow_mut();
        for name in &given.removed {
            self.set_global(name, None)?;
            Arc::make_mut(&mut names).remove(name);
        }
        if given.values.is_none() {
            // All of them come again later.
            return Ok(());
        }
        let globals = given.globals.iter().zip(&values);
        globals.into_iter().try_for_each(|(name, value): (&String, &Local)| {
            self.set_global(name, Some(value))?;
            Arc::make_mut(&mut names).insert(name.clone());
            Ok(())
        })
    }
}
