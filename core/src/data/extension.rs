//! Extensions: trusted code that is a part of pristine realms.
//!
//! In: one source of the program itself, installed before the first run that needs it. Out: the same source, for every
//! realm of the process that is built with it. The request of a run names the parts that the run sees. The others
//! are taken out of its realm before it begins.

use std::{ptr, sync::OnceLock};

use crate::error::{Error, ErrorKind};

/// Trusted code that is evaluated once, when a realm is built. The objects that it makes are in the realm's image, so a run
/// gets them without evaluating anything.
///
/// The source is one expression: a function of `host`. It must not throw, and makes no errors and no promises. It should
/// capture the intrinsics that it needs, because a run may change those that its own code sees. `host` is a frozen object,
/// whose functions may be called during a run alone:
///
/// - `host.natives`: an object of the native functions in [`Extension::natives`], by their names.
/// - `host.pending()`: the number of promises of the host that have no outcome in this run.
/// - `host.uncaught(error)`: logs an error that no code has caught.
/// - `host.warn(text)`: logs a text with the level `warn`.
///
/// The function returns an object with `names` and `properties`, objects of values by name, and three functions that may
/// be missing. `open(input)` is called for each run, and once for each session, whose input is not `undefined`, before the
/// globals are declared. It may return an object with other values of some names. `run(body)` is called in the place of a
/// body ([`Shape::Body`](crate::Shape::Body)), and its outcome is the run's. `idle()` is called whenever nothing can resume
/// the run, and returns true if it has made something to do.
///
/// Stacks and texts of functions show its functions as those of the language.
#[derive(Debug, PartialEq, Eq)]
pub struct Extension {
    /// The name, for messages.
    pub name: &'static str,
    /// The source, in JavaScript.
    pub source: &'static str,
    /// The names that a run may see as it sees globals. They are constants of the realm's image.
    pub names: &'static [&'static str],
    /// The properties of `globalThis` that a run may see. They are writable, configurable and not enumerable.
    pub properties: &'static [&'static str],
    /// The native functions that the source calls. A run has those of them that its [`NativeFunctions`] were extended
    /// with; a call of another one throws.
    ///
    /// [`NativeFunctions`]: crate::NativeFunctions
    pub natives: &'static [ExtensionFunction],
}

impl Extension {
    /// The number of one of its native functions.
    #[must_use]
    pub fn native(&self, name: &str) -> Option<usize> {
        self.natives.iter().position(|native| native.name == name)
    }
}

/// A native function of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionFunction {
    /// The name in `host.natives`, `db.sql`. In the sandbox the function has the part after the last dot as its name.
    pub name: &'static str,
    /// The kind of value that a call of it returns.
    pub returns: ExtensionReturns,
    /// Whether the run is told of a call whose promise nothing awaits, as of a call of a host function.
    pub is_told: bool,
}

impl ExtensionFunction {
    /// A function with that name, of whose lost calls nothing is told.
    #[must_use]
    pub const fn new(name: &'static str, returns: ExtensionReturns) -> Self {
        Self { name, returns, is_told: false }
    }

    /// The same for a function whose promise goes to the code that calls the extension, as it is.
    #[must_use]
    pub const fn told(self) -> Self {
        Self { is_told: true, ..self }
    }
}

/// The kind of value that a call of a native function of an extension returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionReturns {
    /// A value, for which code waits.
    Value,
    /// A promise, whenever the outcome is there.
    Promise,
    /// A promise, or the value if that is there at once. So the source must be ready for both.
    Either,
    /// A promise of the value that the outcome, a text, has in JSON. Another outcome stays as it is.
    Json,
}

static INSTALLED: OnceLock<&'static Extension> = OnceLock::new();

/// Installs the extension of this process, for good. Costs nothing until a run asks for it.
///
/// # Errors
/// The process has another extension.
pub fn install_extension(extension: &'static Extension) -> Result<(), Error> {
    let installed = *INSTALLED.get_or_init(|| extension);
    if ptr::eq(installed, extension) || installed == extension {
        return Ok(());
    }
    let message = format!("this process has the extension '{}' already", installed.name);
    Err(Error::new(ErrorKind::Type, message))
}

/// The extension of this process.
pub(crate) fn installed() -> Option<&'static Extension> {
    INSTALLED.get().copied()
}
