//! The identity of the host's throws.
//!
//! In: the object that a throw became in the sandbox, and the call or the promise that it came from. Out: the [`Cause`]
//! of a value that ended the run, if that value is such an object, whatever code did to it. Primitives have no
//! identity. As many throws are kept as a host keeps exceptions, and the bytes that an exception may hold stay charged.

use crate::{
    binding::native::NativeFunctions,
    data::cause::{Cause, KEPT_THROWS, LARGE_THROW_BYTES},
    isolate::{
        crossing::throws::Throw,
        engine::{Local, Raw, address_of, is_object},
        state::State,
    },
};

/// Bytes that an exception takes on the host's side, beside the arguments of its call.
const EXCEPTION_BYTES: usize = 1 << 10;

impl State {
    /// Numbers a call for which the sandbox waits. Returns the cause of an exception that the call may throw: its
    /// number, as the host counts its calls. The host sees no call of a native function.
    pub(in crate::isolate) fn number_call(&self, function: u32) -> Option<Cause> {
        if NativeFunctions::is_native(function) {
            return None;
        }
        let mut throws = self.throws.borrow_mut();
        throws.calls += 1;
        Some(Cause::Call(throws.calls))
    }

    /// Forgets the throw of a large call, because the sandbox is about to call that function of its host.
    pub(in crate::isolate) fn forget_large_throw(&self, function: u32) {
        if NativeFunctions::is_native(function) {
            return;
        }
        let large = self.throws.borrow_mut().large.take();
        self.forget_throw(large.as_ref());
    }

    /// Keeps an exception that the host threw in answer to a call whose arguments hold `args_bytes`. These are charged
    /// already, and stay charged. Returns whether it was kept.
    pub(in crate::isolate) fn keep_throw(
        &self,
        object: &Local,
        cause: Cause,
        args_bytes: usize,
    ) -> bool {
        if !is_object(object.raw()) {
            return false;
        }
        self.keep(EXCEPTION_BYTES);
        self.keep_charged(args_bytes);
        let throw = Throw { object: object.clone(), cause, charged: EXCEPTION_BYTES + args_bytes };
        let replaced = {
            let mut throws = self.throws.borrow_mut();
            if args_bytes > LARGE_THROW_BYTES {
                throws.large.replace(throw)
            } else {
                throws.kept.push_back(throw);
                if throws.kept.len() > KEPT_THROWS { throws.kept.pop_front() } else { None }
            }
        };
        self.forget_throw(replaced.as_ref());
        true
    }

    /// The cause of the host's latest throw that became this object.
    pub(in crate::isolate) fn cause_of(&self, thrown: Raw) -> Option<Cause> {
        if !is_object(thrown) {
            return None;
        }
        let throws = self.throws.borrow();
        let is_it = |throw: &&Throw| address_of(throw.object.raw()) == address_of(thrown);
        let found = throws.large.iter().chain(throws.kept.iter().rev()).find(is_it);
        found.map(|throw| throw.cause.clone())
    }

    /// Forgets all throws, and counts calls from the start again: those of a session's next cell are other ones.
    pub(in crate::isolate) fn forget_throws(&self) {
        let throws = std::mem::take(&mut *self.throws.borrow_mut());
        throws.kept.iter().chain(&throws.large).for_each(|throw| self.forget_throw(Some(throw)));
    }

    fn forget_throw(&self, throw: Option<&Throw>) {
        if let Some(Throw { charged, .. }) = throw {
            self.let_go(*charged);
        }
    }
}
