//! The host of a session: one for each cell, and one for events outside of cells.
//!
//! In: the sandbox's calls. Out: answers at once or later, the numbers that the sandbox gave out, and the ends of cells.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc::Sender,
    },
};

use isolane::{
    ASYNC_FUNCTION, Completion, Host, HostCall, REPORT_SINK, SessionHandle, SessionState, Value,
    value::{Event, Writer},
};

use crate::equal::walk;

/// The host functions by number: returns its arguments, returns a promise of them, throws them, does not answer, answers
/// later, and one that is asynchronous.
pub(super) const FUNCTIONS: [(&str, u32); 6] = [
    ("echo", 0),
    ("later", 1),
    ("fail", 2),
    ("forget", 3),
    ("ask", 4),
    ("soon", 5 | ASYNC_FUNCTION),
];

/// The most functions of the sandbox that a session's host remembers.
const MOST_FUNCTIONS: usize = 16;

/// The numbers of an input: of promises and of calls, which no two of its sessions share.
#[derive(Default)]
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    pub(super) fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The objects that pass between a session and its host.
#[derive(Default)]
pub(super) struct Table {
    /// Calls for whose answers the sandbox waits.
    asks: VecDeque<(HostCall, Value)>,
    /// Promises without an outcome, with the outcome that they will have.
    promises: VecDeque<(u32, Value)>,
    /// Functions of the sandbox.
    pub(super) functions: Vec<u32>,
    /// The number of outcomes of each call that the host made.
    pub(super) outcomes: HashMap<u32, u32>,
}

impl Table {
    /// Takes up to so many calls and promises out, the oldest first, and answers them.
    pub(super) fn answer(table: &Mutex<Self>, session: &SessionHandle, most: usize) -> bool {
        let (asks, promises): (Vec<_>, Vec<_>) = {
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            let (asks, promises) = (table.asks.len().min(most), table.promises.len().min(most));
            (table.asks.drain(..asks).collect(), table.promises.drain(..promises).collect())
        };
        let answered = !asks.is_empty() || !promises.is_empty();
        for (call, args) in asks {
            call.reply(Ok(args));
        }
        for (promise, args) in promises {
            let is_kept = promise % 5 != 0;
            session.settle_promise(promise, if is_kept { Ok(args) } else { Err(args) });
        }
        answered
    }
}

/// A receiver of events.
pub(super) struct Ear {
    pub(super) table: Arc<Mutex<Table>>,
    numbers: Arc<Numbers>,
    /// The effects of cells, as the host learned of them.
    concluded: Mutex<Vec<SessionState>>,
    pub(super) settlements: AtomicU32,
    /// Rings when there is something to do or to collect.
    bell: Sender<()>,
}

impl Ear {
    pub(super) fn new(
        table: &Arc<Mutex<Table>>,
        numbers: &Arc<Numbers>,
        bell: &Sender<()>,
    ) -> Arc<Self> {
        Arc::new(Self {
            table: Arc::clone(table),
            numbers: Arc::clone(numbers),
            concluded: Mutex::default(),
            settlements: AtomicU32::new(0),
            bell: bell.clone(),
        })
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the effects that have not been taken.
    pub(super) fn take_concluded(&self) -> Vec<SessionState> {
        std::mem::take(&mut *self.concluded.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ring(&self) {
        // Nobody listens once the session has been dropped.
        let _ = self.bell.send(());
    }

    /// Reads arguments, and remembers their functions.
    fn read(&self, args: &Value) {
        walk(args).expect("arguments that can be read");
        let mut reader = args.reader();
        while !reader.is_empty() {
            match reader.event() {
                Ok(Event::SandboxFunction(function)) => {
                    let mut table = self.table();
                    if table.functions.len() < MOST_FUNCTIONS {
                        table.functions.push(function);
                    }
                }
                // The functions before the first object are enough.
                Ok(Event::Object | Event::SparseArray(_) | Event::Error(_)) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

impl Host for Ear {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        if function == REPORT_SINK {
            return call.reply(Ok(Value::undefined()));
        }
        self.read(&args);
        match function {
            // The core may call an asynchronous function and not start it.
            0 | 5 => return call.reply(Ok(args)),
            1 => {
                let number = self.numbers.next();
                let mut writer = Writer::new();
                writer.host_promise(number);
                self.table().promises.push_back((number, args));
                call.reply(Ok(writer.finish()));
            }
            2 => return call.reply(Err(args)),
            3 => drop(call),
            4 => self.table().asks.push_back((call, args)),
            _ => panic!("no host function has the number {function}"),
        }
        self.ring();
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        assert_eq!(function, 5, "no asynchronous function has that number");
        self.read(&args);
        self.table().promises.push_back((promise, args));
        self.ring();
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        walk(completion.as_ref().unwrap_or_else(|thrown| thrown)).expect("readable");
        *self.table().outcomes.entry(call).or_default() += 1;
        self.ring();
    }

    fn promise_settled(&self, _promise: u32, completion: Completion) {
        walk(completion.as_ref().unwrap_or_else(|thrown| thrown)).expect("readable");
    }

    fn concluded(&self, state: SessionState) {
        assert_eq!(self.settlements.load(Ordering::SeqCst), 0, "an effect after the end");
        self.concluded.lock().unwrap_or_else(PoisonError::into_inner).push(state);
    }

    fn settled(&self) {
        assert_eq!(self.settlements.fetch_add(1, Ordering::SeqCst), 0, "settled twice");
        self.ring();
    }
}
