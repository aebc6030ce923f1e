//! Functions and promises that cross, as numbers.
//!
//! In: calls from the sandbox to host functions, and messages from the host to a running run. Out: calls of
//! [`Embedder`](crate::isolate::Embedder), and values in the sandbox. Keeps the contract's "Host functions": a host
//! function answers synchronously or with a promise, has its key as its name, is no constructor, and returns to the
//! host as itself. A sandbox function is called by number, while the run is running.

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

use std::{ffi::c_int, time::Instant};

use crate::{
    binding::{
        host::{ASYNC_FUNCTION, Completion, REPORT_SINK},
        inbound::Inbound,
        native::{NativeFunctions, extension_place},
    },
    data::{
        cause::Cause,
        cell::{RESET, ROLLED_BACK},
    },
    isolate::{
        backtrace,
        embedder::Started,
        engine::{
            Cx, Local, Outcome, Raw, Thrown, address_of, callable_class, frames, int_of, is_error,
            is_proxy, sys, undefined,
        },
        extension::{self, functions},
        session::{cell, seating},
        state::State,
        trampoline::{args, enter},
    },
    value::{EXPORTED_BYTES, ErrorClass, Event, HOST_PROMISE_BYTES, Str, Value, Writer},
};

use super::{
    clone_in::{clone_args_in, clone_in},
    clone_out::{Crossing, clone_args_out, clone_out},
    host_function::host_function_object,
    numbered::{Exported, ExportedPromise, HostCall, HostPromise},
};

/// The outcome of a call of the host.
enum Answer {
    /// A value, or an exception that is pending.
    Returned(Outcome<Local>),
    /// The exception is pending, and kept with the call's arguments.
    Kept,
}

/// Bytes that a host function with its number takes on the host's side, measured on Node.js.
const HOST_FUNCTION_BYTES: usize = 192;

/// The most calls of asynchronous functions that the sandbox may make ahead of its host. Calls reach the host in order:
/// the next call waits for its answer, and so for all calls before it.
const MOST_AHEAD: u32 = 255;
/// The sandbox also waits for calls with larger arguments.
const LARGE_ARGS_BYTES: usize = 64 << 10;

/// Outcomes of a promise that the host watches: the magic of the functions attached to it.
const PROMISE_FULFILLED: c_int = 0;
const PROMISE_REJECTED: c_int = 1;
const CALL_FULFILLED: c_int = 2;
const CALL_REJECTED: c_int = 3;

/// Registers the class of host functions: callable, and no constructor.
pub(in crate::isolate) fn register_class(runtime: *mut sys::JSRuntime) -> Option<u32> {
    callable_class(runtime, call_host)
}

/// The built-in `report`.
pub(in crate::isolate) fn report_function(cx: Cx) -> Outcome<Local> {
    cx.c_function(report, c"report", 1, 0)
}

unsafe extern "C-unwind" fn call_host(
    ctx: *mut sys::JSContext,
    object: Raw,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _flags: c_int,
) -> Raw {
    enter(ctx, |state| {
        let number = state.host_function_number(object).ok_or(Thrown)?;
        state.still_running();
        state.forget_large_throw(number);
        let function = number & !ASYNC_FUNCTION;
        let cloned = clone_args_out(state, args(argc, argv), Crossing::Live, "arguments");
        let args = match cloned {
            Err(Thrown) if number != function && NativeFunctions::is_native(number) => {
                return state.rejected(&Cx(ctx).exception());
            }
            cloned => cloned?,
        };
        let held = args.held_bytes();
        if number != function && held <= LARGE_ARGS_BYTES && state.ahead.get() < MOST_AHEAD {
            return state.start_call(object, function, args, held);
        }
        let is_async = number != function;
        let cause = state.number_call(function);
        let asked = Instant::now();
        state.has_called.set(true);
        let answer = state.outside(|embedder| embedder.call(function, args));
        state.skip_clock(asked.elapsed());
        state.ahead.set(0);
        let pending = match &answer {
            Some(Ok(value)) => value.host_promise(),
            _ => None,
        };
        let answer = match answer {
            Some(answer) if is_async && pending.is_none() && NativeFunctions::is_native(number) => {
                let answered = state.answered(object, function, answer);
                state.discharge(held);
                return answered;
            }
            answer => answer,
        };
        if pending.is_some() {
            state.last_promising.set(Some(number));
        }
        let answer = match state.answer(answer, cause, held) {
            Answer::Returned(answer) => answer,
            // The call's arguments stay charged, with the exception.
            Answer::Kept => return Err(Thrown),
        };
        if let Some(number) = pending {
            state.note_call(number, object);
        }
        let mut promises = state.host_promises.borrow_mut();
        match pending.and_then(|number| promises.get_mut(&number)) {
            Some(promise) => {
                promise.charged += held;
                promise.is_json = functions::gives_json(function);
                state.keep_charged(held);
            }
            None => state.discharge(held),
        }
        answer
    })
}

unsafe extern "C-unwind" fn report(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    enter(ctx, |state| {
        state.still_running();
        let value = args(argc, argv).first().copied().unwrap_or(undefined());
        // The report stays charged: the host keeps it in `reports` while the run is running.
        let value = clone_out(state, value, Crossing::Final, "report")?;
        let cause = state.number_call(REPORT_SINK);
        state.has_called.set(true);
        match state.answer(state.outside(|embedder| embedder.report(value)), cause, 0) {
            Answer::Returned(answer) => answer,
            Answer::Kept => Err(Thrown),
        }
    })
}

/// Called when a promise that the host watches has settled, or the result of a call that the host made.
unsafe extern "C-unwind" fn settled(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
    data: *mut Raw,
) -> Raw {
    enter(ctx, |state| {
        // SAFETY: made with one number as its data.
        let number = int_of(unsafe { *data }).cast_unsigned();
        let value = args(argc, argv).first().copied().unwrap_or(undefined());
        let given = state.next_promise.get();
        let completion = match magic {
            PROMISE_FULFILLED | CALL_FULFILLED => state.completion_of(Ok(value)),
            _ => state.completion_of(Err(value)),
        };
        match magic {
            PROMISE_FULFILLED | PROMISE_REJECTED => {
                let (Ok(outcome) | Err(outcome)) = &completion;
                // An outcome with further promises is a link of a chain, which may be endless. The holder of
                // its beginning holds the whole chain, so links stay charged.
                let link_bytes = match state.next_promise.get() {
                    unchanged if unchanged == given => None,
                    _ => Some(outcome.held_bytes()),
                };
                state.forget_promise(number, link_bytes);
                state.embedder().promise_settled(number, completion);
            }
            _ => {
                state.embedder().function_settled(number, completion);
                cell::settled(state, number);
            }
        }
        Ok(Cx(ctx).dup(undefined()))
    })
}

impl State {
    /// The function of the host with that number, the same object each time.
    pub(in crate::isolate) fn host_function(&self, number: u32, name: &str) -> Outcome<Local> {
        if let Some(place) = extension_place(number) {
            return extension::native(self, place);
        }
        if let Some(function) = self.host_functions.borrow().get(&number) {
            return Ok(function.clone());
        }
        let realm = self.realm();
        self.keep(HOST_FUNCTION_BYTES);
        let prototype = realm.intrinsics.function_prototype;
        let class = realm.host_function_class;
        let function = host_function_object(realm.cx, class, prototype, number, name)?;
        self.host_functions.borrow_mut().insert(number, function.clone());
        Ok(function)
    }

    /// Whether a value is a host function that is known to return promises.
    pub(in crate::isolate) fn is_asynchronous(&self, value: Raw) -> bool {
        self.host_function_number(value).is_some_and(|number| {
            number & ASYNC_FUNCTION != 0 || self.last_promising.get() == Some(number)
        })
    }

    /// The number of a host function, if the value is one.
    pub(in crate::isolate) fn host_function_number(&self, value: Raw) -> Option<u32> {
        // SAFETY: the engine checks the class of any value before it returns an opaque.
        let opaque = unsafe { sys::JS_GetOpaque(value, self.realm().host_function_class) };
        u32::try_from(opaque.addr().checked_sub(1)?).ok()
    }

    /// Notes the call that a promise of the host answers.
    fn note_call(&self, promise: u32, function: Raw) {
        let Some(layout) = frames::probe::layout() else { return };
        let mut promises = self.host_promises.borrow_mut();
        // A host may give one promise twice.
        if let Some(known) = promises.get_mut(&promise).filter(|known| known.call.is_none()) {
            let cx = self.realm().cx;
            let callers = frames::callers(cx, layout);
            let call = HostCall { function: cx.dup(function), callers, made: self.next_call() };
            self.keep(call.size_bytes());
            known.call = Some(call);
        }
    }

    /// Calls an asynchronous function of the host; the sandbox does not wait for it.
    fn start_call(
        &self,
        object: Raw,
        function: u32,
        args: Value,
        held_bytes: usize,
    ) -> Outcome<Local> {
        self.last_started.set(self.last_started.get().wrapping_add(1) & !ASYNC_FUNCTION);
        // These numbers differ from those that the host gives to promises.
        let number = self.last_started.get() | ASYNC_FUNCTION;
        match self.embedder().start(function, args, number) {
            Started::Ended => self.stop(),
            Started::Done(completion) => {
                let answered = self.answered(object, function, completion);
                self.discharge(held_bytes);
                return answered;
            }
            Started::GoesOn => {}
        }
        self.ahead.set(self.ahead.get() + 1);
        let promise = match self.host_promise(number) {
            Ok(promise) => promise,
            Err(Thrown) => {
                self.discharge(held_bytes);
                return Err(Thrown);
            }
        };
        if let Some(known) = self.host_promises.borrow_mut().get_mut(&number) {
            known.charged += held_bytes;
            known.is_json = functions::gives_json(function);
            self.keep_charged(held_bytes);
        }
        self.note_call(number, object);
        Ok(promise)
    }

    /// The answer of an asynchronous function that was there at once: a settled promise, or itself where the caller is
    /// ready for that.
    fn answered(&self, object: Raw, function: u32, completion: Completion) -> Outcome<Local> {
        let cx = self.realm().cx;
        let outcome = match completion {
            Ok(value) => self
                .value_in(&value, functions::gives_json(function))
                .map_err(|Thrown| cx.exception()),
            Err(value) => Err(clone_in(self, &value).unwrap_or_else(|Thrown| cx.exception())),
        };
        if let Err(thrown) = &outcome
            && is_error(thrown.raw())
            && let Some(layout) = frames::probe::layout()
        {
            backtrace::set_call(self, thrown, object, &frames::callers(cx, layout));
        }
        if functions::may_return_value(function) {
            return outcome.map_err(|thrown| cx.throw(thrown));
        }
        match outcome {
            Err(thrown) => self.rejected(&thrown),
            Ok(value) => {
                let (promise, [resolve, _]) = cx.promise()?;
                cx.call(resolve.raw(), undefined(), &[value.raw()])?;
                if extension_place(function).is_none() || functions::is_told(function) {
                    self.watch_settled(&promise, object);
                }
                Ok(promise)
            }
        }
    }

    /// A promise that is rejected.
    fn rejected(&self, thrown: &Local) -> Outcome<Local> {
        let cx = self.realm().cx;
        let (promise, [_, reject]) = cx.promise()?;
        cx.call(reject.raw(), undefined(), &[thrown.raw()])?;
        Ok(promise)
    }

    /// A value of the host in the sandbox.
    fn value_in(&self, value: &Value, is_json: bool) -> Outcome<Local> {
        if is_json && let Ok(Event::String(Str::Utf8(text))) = value.reader().event() {
            return self.realm().cx.parse_json(text);
        }
        clone_in(self, value)
    }

    /// The promise of the host with that number.
    pub(in crate::isolate) fn host_promise(&self, number: u32) -> Outcome<Local> {
        if let Some(known) = self.host_promises.borrow().get(&number) {
            return Ok(known.promise.clone());
        }
        let charged = HOST_PROMISE_BYTES;
        self.keep(charged);
        let (promise, settle) = self.realm().cx.promise()?;
        let cell = self.cell.get();
        let known = HostPromise {
            promise: promise.clone(),
            settle,
            charged,
            call: None,
            cell,
            is_json: false,
        };
        self.host_promises.borrow_mut().insert(number, known);
        Ok(promise)
    }

    /// The name of a function of the host.
    pub(in crate::isolate) fn host_function_name(&self, number: u32) -> String {
        if let Some(place) = extension_place(number) {
            let function = extension::native(self, place);
            return function.map(|function| self.function_name(function.raw())).unwrap_or_default();
        }
        let known = self.host_functions.borrow();
        let function = known.get(&number).or_else(|| known.get(&(number | ASYNC_FUNCTION)));
        function.map(|function| self.function_name(function.raw())).unwrap_or_default()
    }

    /// The number of a sandbox function for the host. From now on the host counts as holding it.
    pub(in crate::isolate) fn export_function(&self, function: Raw) -> u32 {
        let mut numbers = self.exported_numbers.borrow_mut();
        if !numbers.contains_key(&address_of(function)) {
            self.keep(EXPORTED_BYTES);
        }
        let next = self.next_number.get();
        let number = *numbers.entry(address_of(function)).or_insert(next);
        self.next_number.set(next + u32::from(number == next));
        let mut exported = self.exported.borrow_mut();
        let cell = self.cell.get();
        let entry = exported.entry(number).or_insert_with(|| {
            let function = self.realm().cx.dup(function);
            Exported { function, sent: 0, cell, others: Vec::new() }
        });
        let before = entry.size_bytes();
        entry.send(cell, |cell| seating::sender(self, cell));
        let bytes = entry.size_bytes();
        drop(exported);
        if bytes != before {
            self.let_go(before);
            self.keep(bytes);
        }
        number
    }

    /// A function of the sandbox that returns from the host.
    pub(in crate::isolate) fn imported_function(&self, number: u32) -> Outcome<Local> {
        match self.exported.borrow().get(&number) {
            Some(exported) => Ok(exported.function.clone()),
            None => Err(self.throw_serialization_error("a released function cannot be cloned")),
        }
    }

    /// A function of the sandbox that the host calls. One that is gone went with a state of the session: the host calls
    /// none that it has released. So did one of a cell that was ended, although a later cell has kept what it is about.
    fn called_function(&self, number: u32) -> Outcome<Local> {
        let is_undone =
            |exported: &Exported| exported.is_undone(|cell| seating::sender(self, cell));
        let exported = self.exported.borrow();
        let known = exported.get(&number).filter(|exported| !is_undone(exported));
        let known = known.map(|exported| exported.function.clone());
        drop(exported);
        let Some(session) = self.session.as_ref().filter(|_| known.is_none()) else {
            return known.map_or_else(|| self.imported_function(number), Ok);
        };
        let (name, message) = if number < session.first_function.get() {
            RESET
        } else {
            (
                ROLLED_BACK,
                "the session was rolled back, and this function is of a state that is gone",
            )
        };
        Err(self.throw_error(ErrorClass::Error, name, message))
    }

    /// The number of a promise for the host. Once the host has the number, it is notified of the outcome: see
    /// [`State::watch_promise`].
    pub(in crate::isolate) fn export_promise(&self, promise: Raw) -> Outcome<u32> {
        if let Some(&number) = self.exported_promise_numbers.borrow().get(&address_of(promise)) {
            return Ok(number);
        }
        self.keep(EXPORTED_BYTES);
        let number = self.next_promise.get();
        // No number is given out twice: the host may still refer to a promise that is dead here.
        self.next_promise.set(number.checked_add(1).ok_or(Thrown)?);
        let exported = ExportedPromise { promise: self.realm().cx.dup(promise), watched: false };
        self.exported_promises.borrow_mut().insert(number, exported);
        self.exported_promise_numbers.borrow_mut().insert(address_of(promise), number);
        Ok(number)
    }

    /// Watches a promise whose number is on its way to the host, so that the host is notified of the outcome. It is not
    /// watched before: a message that fails leaves its numbers to the next one, and the host would not have the
    /// promise.
    pub(in crate::isolate) fn watch_promise(&self, number: u32) -> Outcome<()> {
        let promise = match self.exported_promises.borrow_mut().get_mut(&number) {
            Some(exported) if !exported.watched => {
                exported.watched = true;
                exported.promise.clone()
            }
            _ => return Ok(()),
        };
        let cx = self.realm().cx;
        let fulfilled = cx.numbered_function(settled, PROMISE_FULFILLED, number)?;
        let rejected = cx.numbered_function(settled, PROMISE_REJECTED, number)?;
        cx.then(promise.raw(), fulfilled.raw(), rejected.raw())
    }

    /// Drops a promise and its number once the host has the outcome. Until then the message with the outcome may itself
    /// name the promise. An outcome with promises of its own stays charged, with `link_bytes`.
    fn forget_promise(&self, number: u32, link_bytes: Option<usize>) {
        let known = self.exported_promises.borrow_mut().remove(&number);
        if let Some(known) = known {
            let address = address_of(known.promise.raw());
            self.exported_promise_numbers.borrow_mut().remove(&address);
            match link_bytes {
                Some(bytes) => self.keep(bytes),
                None => self.let_go(EXPORTED_BYTES),
            }
        }
    }

    /// A promise of the sandbox that returns from the host before it settled.
    pub(in crate::isolate) fn imported_promise(&self, number: u32) -> Outcome<Local> {
        match self.exported_promises.borrow().get(&number) {
            Some(exported) => Ok(exported.promise.clone()),
            None => Err(self.throw_serialization_error("an unknown promise cannot be cloned")),
        }
    }

    /// Delivers the host's message to the sandbox. A failure there is reported to the host or rejects the promise; it
    /// never ends the run by itself.
    pub(in crate::isolate) fn receive(&self, mut inbound: Inbound) {
        // From here on the value in the sandbox is charged, not the message.
        if let Some(message) = inbound.message_mut() {
            message.arrive();
        }
        match inbound {
            Inbound::PromiseSettled { promise, completion } => {
                self.settle_host_promise(promise, &completion);
            }
            Inbound::FunctionCall { function, args, call } => {
                cell::called(self, call);
                if let Err(Thrown) = self.call_exported(function, &args, call) {
                    let thrown = self.realm().cx.exception();
                    self.settle_call(call, Err(thrown.raw()));
                    cell::settled(self, call);
                }
            }
            Inbound::FunctionReleased { function, times } => self.release_function(function, times),
        }
    }

    /// Releases a function that the host received `times` times, or never received.
    pub(in crate::isolate) fn release_function(&self, function: u32, times: u32) {
        let mut exported = self.exported.borrow_mut();
        if let Some(entry) = exported.get_mut(&function) {
            entry.sent = entry.sent.saturating_sub(times);
            if entry.sent == 0 {
                let address = address_of(entry.function.raw());
                let bytes = EXPORTED_BYTES + entry.size_bytes();
                self.exported_numbers.borrow_mut().remove(&address);
                exported.remove(&function);
                self.let_go(bytes);
            }
        }
    }

    /// Whether anything is pending at the host that can resume the run. Other calls of the functions that the host holds
    /// wait behind a call that is a cell of its own, so they cannot.
    pub(in crate::isolate) fn waits_for_host(&self) -> bool {
        !self.host_promises.borrow().is_empty()
            || (!self.exported.borrow().is_empty() && !cell::is_held(self))
    }

    fn settle_host_promise(&self, number: u32, completion: &Completion) {
        let Some(is_json) = self.host_promises.borrow().get(&number).map(|known| known.is_json)
        else {
            return;
        };
        // The outcome may contain the promise itself.
        let (is_value, value) = match completion {
            Ok(value) => (true, self.value_in(value, is_json)),
            Err(value) => (false, clone_in(self, value)),
        };
        let known = self.host_promises.borrow_mut().remove(&number);
        let Some(HostPromise { promise, settle: [resolve, reject], charged, call, .. }) = known
        else {
            return;
        };
        self.let_go(charged);
        if let Some(call) = call {
            self.let_go(call.size_bytes());
            self.watch_answer(&promise, &call);
            if let (false, Ok(thrown)) = (is_value, &value)
                && is_error(thrown.raw())
            {
                backtrace::set_call(self, thrown, call.function.raw(), &call.callers);
            }
        }
        if let (false, Ok(thrown)) = (is_value, &value) {
            let args_bytes = charged.saturating_sub(HOST_PROMISE_BYTES);
            self.charge(args_bytes);
            if !self.keep_throw(thrown, Cause::Promise(number), args_bytes) {
                self.discharge(args_bytes);
            }
        }
        let cx = self.realm().cx;
        let function = if is_value { &resolve } else { &reject };
        let settled = match value {
            Ok(value) => cx.call(function.raw(), undefined(), &[value.raw()]),
            // A value that the sandbox cannot hold rejects the promise.
            Err(Thrown) => cx.call(reject.raw(), undefined(), &[cx.exception().raw()]),
        };
        if settled.is_err() {
            drop(cx.exception());
        }
    }

    /// Gives the host the outcome of its call.
    pub(in crate::isolate) fn settle_call(&self, call: u32, outcome: Result<Raw, Raw>) {
        let completion = self.completion_of(outcome);
        self.embedder().function_settled(call, completion);
    }

    /// Calls a function that the host holds. The outcome will be sent to the host.
    pub(in crate::isolate) fn call_exported(
        &self,
        function: u32,
        args: &Value,
        call: u32,
    ) -> Outcome<()> {
        let cx = self.realm().cx;
        let function = self.called_function(function)?;
        let args = clone_args_in(self, args)?;
        let raws: Vec<Raw> = args.iter().map(Local::raw).collect();
        let result = cx.call(function.raw(), undefined(), &raws)?;
        if is_proxy(result.raw()) {
            // To await a proxy would run one of its traps.
            clone_out(self, result.raw(), Crossing::Live, "result")?;
        }
        let promise = self.promise_of(result.raw())?;
        let fulfilled = cx.numbered_function(settled, CALL_FULFILLED, call)?;
        let rejected = cx.numbered_function(settled, CALL_REJECTED, call)?;
        cx.then(promise.raw(), fulfilled.raw(), rejected.raw())
    }

    /// Turns the host's answer into the value that the call returns or the exception that it throws, with its cause.
    fn answer(
        &self,
        answer: Option<Completion>,
        cause: Option<Cause>,
        args_bytes: usize,
    ) -> Answer {
        let value = match answer {
            Some(Ok(value)) => return Answer::Returned(clone_in(self, &value)),
            Some(Err(value)) => value,
            None => self.stop(),
        };
        let thrown = match clone_in(self, &value) {
            Ok(thrown) => thrown,
            Err(Thrown) => return Answer::Returned(Err(Thrown)),
        };
        let is_kept = cause.is_some_and(|cause| self.keep_throw(&thrown, cause, args_bytes));
        let thrown = self.realm().cx.throw(thrown);
        if is_kept { Answer::Kept } else { Answer::Returned(Err(thrown)) }
    }

    /// The completion for the host of a value or an exception. If it cannot be cloned, the error that says so takes its
    /// place.
    fn completion_of(&self, outcome: Result<Raw, Raw>) -> Completion {
        let cx = self.realm().cx;
        let cloned = match outcome {
            Ok(value) => clone_out(self, value, Crossing::Live, "result").map(Ok),
            Err(value) => clone_out(self, value, Crossing::Live, "result").map(Err),
        };
        let completion = cloned.unwrap_or_else(|Thrown| {
            let thrown = cx.exception();
            Err(clone_out(self, thrown.raw(), Crossing::Log, "result").unwrap_or_else(|Thrown| {
                drop(cx.exception());
                unreadable()
            }))
        });
        match completion {
            Ok(value) => Ok(self.send(value)),
            Err(value) => Err(self.send(value)),
        }
    }
}

/// The error for a value that cannot even be read.
fn unreadable() -> Value {
    let mut writer = Writer::new();
    writer.error(ErrorClass::TypeError);
    writer.string("SerializationError");
    writer.string("the value cannot be cloned");
    writer.undefined();
    writer.undefined();
    writer.finish()
}
