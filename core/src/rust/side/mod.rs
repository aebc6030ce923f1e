//! The host's side of one run, which answers its isolate.
//!
//! In: the numbers that the sandbox calls. Out: closures called, futures spawned, their outcomes delivered. Everything
//! that the host lent to a run is in one table here, which is emptied when the run settles. So neither side keeps the
//! other alive.
//!
//! A session has a side of its own, and so has each cell. A cell's side has its reports and its end, and uses the
//! tables of the session's.

mod answers;
mod numbers;
mod remote;
mod session;
mod thrown;

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Instant,
};

use rustc_hash::FxHashMap;
use tokio::{runtime::Handle, task::AbortHandle};

pub(super) use self::remote::Remote;
use super::{
    Report,
    function::{Function, Promised},
    reports::Feed,
    sandbox::{Received, Waiter},
};
use crate::{
    Cause, Completion, NativeFunctions, Value,
    binding::adaptive_spin::AdaptiveSpin,
    error::Source,
    os::{
        process::Process,
        sync::{Condvar, Mutex},
    },
    value::{Fault, Message, Writer},
};

/// For the ends of runs, for which callers without an executor wait.
static END_SPIN: AdaptiveSpin = AdaptiveSpin::new();

pub(super) struct HostSide {
    /// The session's side, if this is a cell's.
    session: Option<Arc<HostSide>>,
    /// For tasks, which must keep the side alive.
    me: Weak<HostSide>,
    stage: Mutex<Stage>,
    /// Notified when `stage` changes.
    staged: Condvar,
    /// Whether it is [`Stage::Over`], readable without the lock.
    over: AtomicBool,
    tables: Mutex<Tables>,
    /// Functions that are answered before a call gets here.
    pub(super) native: NativeFunctions,
    /// How many calls the sandbox has waited for.
    called: AtomicU64,
    /// The errors that were thrown last, until the result is taken, which may name one.
    thrown: Mutex<VecDeque<(Cause, Source)>>,
    /// Whether the sandbox has sent a large message. From then on only the latest error is kept, and only until the
    /// sandbox calls again.
    has_large: AtomicBool,
    /// The readers of reports.
    pub(super) feed: Feed,
    /// The process of the run. In a child of that process no lock here may be waited for.
    process: Process,
    /// The runtime in which the run was started.
    tokio: Option<Handle>,
}

enum Stage {
    /// `Runtime::start` has not returned yet; promises that have settled meanwhile.
    Starting(Vec<(u32, Completion)>),
    Running(Remote, Option<Waker>),
    Over,
}

/// Everything that was lent to the run, by number.
#[derive(Clone, Default)]
struct Tables {
    over: bool,
    report: Option<Arc<Function>>,
    /// How many reports there were.
    reported: usize,
    functions: Vec<Arc<Function>>,
    /// The names under which those were first handed over.
    names: Vec<Box<str>>,
    /// Native functions that were handed over, by their numbers.
    native: FxHashMap<u32, Arc<Function>>,
    /// The numbers of functions and promises by their addresses, which the tables keep alive.
    numbers: FxHashMap<usize, u32>,
    promises: Vec<Arc<Promised>>,
    next_promise: u32,
    /// The task that settles each pending promise, once it is spawned; aborted with the run.
    tasks: FxHashMap<u32, Option<AbortHandle>>,
    next_call: u32,
    calls: FxHashMap<u32, Arc<Waiter>>,
    /// Promises of the sandbox that have not settled.
    sandbox_promises: HashMap<u32, Arc<Waiter>>,
    /// Those of them that arrived with events of cells in flight, each with its cell's side by address.
    fresh_promises: Vec<(usize, u32)>,
}

impl HostSide {
    pub(super) fn new(process: Process, report: &Report) -> Arc<Self> {
        let native = NativeFunctions::new();
        Self::with(process, report, None, (native, Handle::try_current().ok()))
    }

    fn with(
        process: Process,
        report: &Report,
        session: Option<Arc<Self>>,
        (native, tokio): (NativeFunctions, Option<Handle>),
    ) -> Arc<Self> {
        let report = match report {
            Report::To(function) => Some(Arc::clone(&function.0)),
            Report::Off | Report::On => None,
        };
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            session,
            stage: Mutex::new(Stage::Starting(Vec::new())),
            staged: Condvar::new(),
            over: AtomicBool::new(false),
            native,
            tables: Mutex::new(Tables { report, ..Tables::default() }),
            called: AtomicU64::new(0),
            thrown: Mutex::default(),
            has_large: AtomicBool::new(false),
            feed: Feed::default(),
            process,
            tokio,
        })
    }

    /// The run has started, and may have ended already.
    pub(super) fn started(&self, remote: impl Into<Remote>) {
        let remote = remote.into();
        let mut stage = self.stage.lock();
        if let Stage::Starting(early) = &mut *stage {
            for (promise, completion) in early.drain(..) {
                remote.settle_promise(promise, completion);
            }
            *stage = Stage::Running(remote, None);
            self.staged.notify_all();
        }
    }

    /// The run has ended, or was never started: wakes everyone who waits, and drops everything that was lent to it.
    pub(super) fn end(&self) {
        let mut tables =
            std::mem::replace(&mut *self.tables.lock(), Tables { over: true, ..Tables::default() });
        tables.tasks.drain().filter_map(|(_, task)| task).for_each(|task| task.abort());
        for waiter in tables.calls.values().chain(tables.sandbox_promises.values()) {
            waiter.close();
        }
        // Dropped before anyone learns that the run has ended.
        drop(tables);
        let stage = std::mem::replace(&mut *self.stage.lock(), Stage::Over);
        END_SPIN.sent();
        self.over.store(true, Ordering::Release);
        self.staged.notify_all();
        self.feed.wake_readers();
        if let Stage::Running(_, Some(waker)) = stage {
            waker.wake();
        }
    }

    /// Whether the run belongs to this process, and not to one that this was forked from.
    pub(super) fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// Whether the run has ended; if it has not, wakes that task when it has.
    pub(super) fn poll_over(&self, context: &Context<'_>) -> bool {
        match &mut *self.stage.lock() {
            Stage::Running(_, waker) => {
                *waker = Some(context.waker().clone());
                false
            }
            Stage::Starting(_) => false,
            Stage::Over => true,
        }
    }

    /// Whether the run has ended and everything that was lent to it is dropped.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until the run has ended. Spins before it sleeps.
    pub(super) fn wait_over(&self) {
        let started = Instant::now();
        let found = END_SPIN.spin(started, || self.is_over());
        if !found {
            let mut stage = self.stage.lock();
            while !matches!(*stage, Stage::Over) {
                stage = self.staged.wait(stage);
            }
        }
        END_SPIN.learn(started.elapsed(), found);
    }

    /// The run; `None` if it has ended, and in a forked child. Waits for `Runtime::start` to return, which it does at
    /// once; so the thread that starts the run must not call this.
    pub(super) fn remote(&self) -> Option<Remote> {
        if !self.is_here() {
            return None;
        }
        let mut stage = self.stage.lock();
        loop {
            match &*stage {
                Stage::Starting(_) => stage = self.staged.wait(stage),
                Stage::Running(remote, _) => return Some(remote.clone()),
                Stage::Over => return None,
            }
        }
    }

    /// Calls a function of the sandbox. The waiter gets the outcome.
    pub(super) fn call_sandbox(&self, function: u32, args: &Message) -> Result<Arc<Waiter>, Fault> {
        let waiter = Arc::<Waiter>::default();
        let Some(remote) = self.remote() else {
            waiter.close();
            return Ok(waiter);
        };
        let mut writer = Writer::new();
        self.write(args, &mut writer, "")?;
        let call = {
            let mut tables = self.tables.lock();
            if tables.over {
                waiter.close();
                return Ok(waiter);
            }
            tables.next_call = tables.next_call.wrapping_add(1);
            let call = tables.next_call;
            tables.calls.insert(call, Arc::clone(&waiter));
            call
        };
        remote.call_function(function, writer.finish(), call);
        Ok(waiter)
    }

    /// The waiter for a promise of the sandbox, from when it first arrived, with an event of `cell`, until it settles.
    pub(super) fn sandbox_promise(&self, cell: &Self, number: u32) -> Arc<Waiter> {
        let mut tables = self.tables.lock();
        let Tables { sandbox_promises, fresh_promises, .. } = &mut *tables;
        let waiter = Arc::clone(sandbox_promises.entry(number).or_insert_with(|| {
            fresh_promises.push((cell.address(), number));
            Arc::default()
        }));
        if tables.over {
            waiter.close();
        }
        waiter
    }

    fn received(&self, cell: &Self, message: &Value, outcome_of: Option<u32>) -> Arc<Received> {
        self.note_size(message);
        Arc::new(match self.me.upgrade() {
            Some(me) => Received::new(&me, cell, message, outcome_of),
            None => Received::default(),
        })
    }
}
