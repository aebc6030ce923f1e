//! Errors that this crate throws in the sandbox.
//!
//! In: a class, a name and a message. Out: a pending exception of the realm in which the code runs.

#![expect(unsafe_code, reason = "makes errors with the engine's C functions")]

use super::{
    engine::{Local, Outcome, Thrown, sys},
    state::State,
};
use crate::value::ErrorClass;

impl State {
    pub(super) fn new_error(&self, class: ErrorClass, message: Local) -> Outcome<Local> {
        let (cx, realm) = (self.realm().cx, self.realm());
        // SAFETY: a live context and a live prototype.
        let error = unsafe {
            let error = cx.own(sys::JS_NewError(cx.0))?;
            let prototype = realm.intrinsics.error_prototypes[class as usize];
            if class != ErrorClass::Error && sys::JS_SetPrototype(cx.0, error.raw(), prototype) < 0
            {
                return Err(Thrown);
            }
            error
        };
        let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
        cx.define_str(error.raw(), "message", message, hidden)?;
        Ok(error)
    }

    pub(super) fn throw_error(&self, class: ErrorClass, name: &str, message: &str) -> Thrown {
        let cx = self.realm().cx;
        let error = cx.string(message).and_then(|message| self.new_error(class, message));
        let named = error.and_then(|error| {
            if name != class.name() {
                let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
                cx.define_str(error.raw(), "name", cx.string(name)?, hidden)?;
            }
            Ok(error)
        });
        match named {
            Ok(error) => cx.throw(error),
            Err(thrown) => thrown,
        }
    }

    pub(super) fn throw_serialization_error(&self, message: &str) -> Thrown {
        self.throw_error(ErrorClass::TypeError, "SerializationError", message)
    }
}
