//! The ends of the lines from sessions and cells to their host.
//!
//! In: questions of the sandbox and answers of the core, on any thread. Out: events in one queue, each with its origin.

use std::sync::{Arc, mpsc::Sender};

use isolane::{
    Completion, Error, Host, HostCall, Name, SessionHandle, WeakSessionHandle, value::Value,
};

use super::remote::Remote;

/// The number of a session of a case, in the order in which they were opened.
pub(crate) type SessionNumber = usize;

/// The place of an event's origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) session: SessionNumber,
    /// The number of the cell; absent for events outside of any.
    pub(crate) cell: Option<usize>,
}

/// Something that the host has to handle.
pub(crate) enum Event {
    Call {
        function: u32,
        args: Value,
        call: HostCall,
    },
    Start {
        function: u32,
        args: Value,
        promise: u32,
    },
    FunctionSettled {
        call: u32,
        completion: Completion,
    },
    PromiseSettled {
        promise: u32,
        completion: Completion,
    },
    Settled,
    /// The answer to the question with that number.
    Answered(u32, Answer),
}

/// The answer to a request of a session.
pub(crate) enum Answer {
    Names(Result<Vec<Name>, Error>),
    Done(Result<(), Error>),
    Forked(Result<SessionHandle, Error>),
}

/// The end of a line.
pub(crate) struct Line {
    pub(crate) events: Sender<(Origin, Event)>,
    pub(crate) origin: Origin,
}

impl Line {
    pub(crate) fn host(events: &Sender<(Origin, Event)>, origin: Origin) -> Arc<dyn Host> {
        Arc::new(Self { events: events.clone(), origin })
    }

    fn send(&self, event: Event) {
        // The case may be over.
        let _ = self.events.send((self.origin, event));
    }
}

impl Host for Line {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        self.send(Event::Call { function, args, call });
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        self.send(Event::Start { function, args, promise });
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.send(Event::FunctionSettled { call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.send(Event::PromiseSettled { promise, completion });
    }

    fn settled(&self) {
        self.send(Event::Settled);
    }
}

impl Remote for WeakSessionHandle {
    fn call_function(&self, function: u32, args: Value, call: u32) {
        Self::call_function(self, function, args, call);
    }

    fn release_function(&self, function: u32, times: u32) {
        Self::release_function(self, function, times);
    }
}
