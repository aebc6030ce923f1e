//! The way of other languages into environments and process services.
//!
//! In: options, method names and arguments that a face hands over. Out: the systems `typescript-environment` and
//! `process-service`. `service` and `environment` are these; `foreign` has environments and hosts whose methods are
//! functions of the caller's language, `given` reads options and `thrown` errors.

mod bindings;
mod environment;
mod foreign;
mod given;
mod readers;
mod service;
mod thrown;
mod tool;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use isolane::{Error, ErrorKind, Spelling};
use isolane_door::{Context, Given, System};

use self::{environment::EnvironmentSystem, given::Options, service::ServiceSystem};
use crate::{
    ProcessService, ProcessServiceOptions, TypeScriptEnvironment, locks::lock,
    service::WeakProcessService,
};

/// Opens a `typescript-environment`.
///
/// # Errors
/// Misuse of an option.
#[expect(clippy::needless_pass_by_value, reason = "all systems are opened so")]
pub fn open_environment(options: Given, context: Context) -> Result<Arc<dyn System>, Error> {
    Ok(Arc::new(EnvironmentSystem::open(&options, &context)?))
}

/// Opens a `process-service`.
///
/// # Errors
/// Misuse of an option.
#[expect(clippy::needless_pass_by_value, reason = "all systems are opened so")]
pub fn open_service(options: Given, context: Context) -> Result<Arc<dyn System>, Error> {
    Ok(Arc::new(ServiceSystem::open(&options, &context)?))
}

/// Reads the options of a `process-service` that are values.
pub(crate) fn service_options(
    json: &serde_json::Value,
    spelling: Spelling,
) -> Result<ProcessServiceOptions, Error> {
    let given = Given::from(json);
    service::read(&Options::new(&given, ProcessServiceOptions::NAMES, spelling)?, spelling)
}

/// The service of a `process-service` that is open, by the number that the system answers to `number`: for another
/// system that works on it, such as an HTTP server.
#[must_use]
pub fn service(number: u64) -> Option<ProcessService> {
    SERVICES.get(number, WeakProcessService::upgrade)
}

static SERVICES: Numbered<WeakProcessService> = Numbered::new();
static ENVIRONMENTS: Numbered<Weak<TypeScriptEnvironment>> = Numbered::new();

/// Things by numbers that a face may hand over to another system.
struct Numbered<T>(Mutex<Option<(u64, HashMap<u64, T>)>>);

impl<T> Numbered<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn add(&self, thing: T) -> u64 {
        let mut guard = lock(&self.0);
        let (last, known) = guard.get_or_insert_with(|| (0, HashMap::new()));
        *last += 1;
        known.insert(*last, thing);
        *last
    }

    fn get<U>(&self, number: u64, read: impl FnOnce(&T) -> Option<U>) -> Option<U> {
        lock(&self.0).as_ref().and_then(|(_, known)| known.get(&number)).and_then(read)
    }

    fn remove(&self, number: u64) {
        let removed = lock(&self.0).as_mut().and_then(|(_, known)| known.remove(&number));
        drop(removed);
    }
}

/// The arguments of a call, in their order.
struct Args(std::vec::IntoIter<Given>);

impl Args {
    fn new(args: Vec<Given>) -> Self {
        Self(args.into_iter())
    }

    fn next(&mut self) -> Given {
        self.0.next().unwrap_or_default()
    }

    /// A number that is no other than a whole one.
    fn whole(&mut self, name: &str) -> Result<u64, Error> {
        let value = self.next();
        given::whole(name, &value)?
            .ok_or_else(|| isolane::wrong_type(name, "a whole number", value.kind()))
    }

    fn text(&mut self, name: &str) -> Result<String, Error> {
        match self.next() {
            Given::Text(text) => Ok(text),
            other => Err(isolane::wrong_type(name, "a string", other.kind())),
        }
    }
}

fn type_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}
