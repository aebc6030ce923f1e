//! The parts of the extension: those in the image of a realm, and those that a run has opened.
//!
//! In: values of the engine, and the request of a run. Out: plain data that realms and states hold.

use std::sync::Arc;

use crate::{
    data::portable::portable,
    isolate::engine::{Raw, sys},
    modules::request::ExtensionRequest,
};

/// A constant among the engine's declarations, as a script makes it.
pub(super) const CONSTANT: u32 = sys::JS_PROP_CONFIGURABLE | sys::JS_PROP_ENUMERABLE;
/// A property of `globalThis`.
pub(super) const HIDDEN: u32 = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;

/// The extension of a realm, which is in the realm's image.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Built {
    /// The functions `open`, `run` and `idle`, as far as they are there.
    pub(super) open: Raw,
    pub(super) run: Raw,
    pub(super) idle: Raw,
    /// The object of the names' values.
    pub(super) names: Raw,
    /// The object of the properties' values.
    pub(super) properties: Raw,
    /// The array of the native functions.
    pub(super) natives: Raw,
    /// The engine's object of declarations, which has the names.
    pub(super) entries: Raw,
}

impl Built {
    /// Every value that is held.
    pub(in crate::isolate) fn all(&self) -> [Raw; 6] {
        [self.open, self.run, self.idle, self.names, self.properties, self.natives]
    }
}

/// The use that a run, or a session, makes of the extension, once it is open.
#[derive(Default)]
pub(in crate::isolate) struct Opened {
    pub(super) request: Option<Arc<ExtensionRequest>>,
}

portable!(struct Opened { request });

impl Opened {
    /// As [`Local::image`](crate::isolate::engine::Local::image).
    pub(in crate::isolate) fn image(&self) -> Self {
        Self { request: self.request.clone() }
    }
}
