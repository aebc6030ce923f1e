//! The way of other languages to a server.
//!
//! In: the options of a server, and the number of an open process service. Out: the system `http-server`, with the
//! methods `listen`, which settles with `{ url }` when the server answers, `closed`, which settles when it is closed, and
//! `close`, which closes it. A face holds `closed` open, so that its program does not end while the server listens.

use std::sync::{Arc, Mutex, PoisonError};

use isolane::{
    Caller, Completion, Error, ErrorKind, Value,
    value::{ErrorClass, Writer},
    wrong_type,
};
use isolane_door::{Called, Context, Given, System, no_method};
use isolane_environment::ProcessService;

use crate::{ListenOptions, Server};

/// Opens an `http-server`. Its options are those of [`ListenOptions::from_json`] and `service`, the number of a
/// `process-service`. Nothing listens before the method `listen` is called.
///
/// # Errors
/// Misuse of an option; a service that is closed.
pub fn open(options: Given, context: &Context) -> Result<Arc<dyn System>, Error> {
    let Given::Object(entries) = options else {
        return Err(wrong_type("options", "an object", options.kind()));
    };
    let is_number = |(name, _): &(String, Given)| name == "service";
    let (number, entries) = entries.into_iter().partition::<Vec<_>, _>(is_number);
    let service = number.into_iter().find_map(|(_, number)| service(&number));
    let closed = || Error::new(ErrorKind::Type, "the process service is closed");
    let service = service.ok_or_else(closed)?;
    let json = Given::Object(entries).json();
    let json = json.ok_or_else(|| Error::new(ErrorKind::Type, "the options must be JSON"))?;
    let options = ListenOptions::from_json(&json, context.spelling)?;
    Ok(Arc::new(ServerSystem {
        waiting: Mutex::new(Some((service, options))),
        server: Arc::default(),
    }))
}

fn service(number: &Given) -> Option<ProcessService> {
    let Given::Number(number) = number else { return None };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    isolane_environment::door::service(*number as u64)
}

/// A server of another language. Dropping it closes it.
struct ServerSystem {
    /// Until it listens.
    waiting: Mutex<Option<(ProcessService, ListenOptions)>>,
    server: Arc<Mutex<Option<Arc<Server>>>>,
}

impl ServerSystem {
    fn listen(&self) -> Result<Called, Error> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let again = || Error::new(ErrorKind::Type, "the server listens already");
        let (service, options) = waiting.ok_or_else(again)?;
        let place = Arc::downgrade(&self.server);
        Ok(Called::new(async move {
            let server = Server::listen(service, options).await.map_err(|error| thrown(&error))?;
            let url = server.url().to_owned();
            // If the system was dropped meanwhile, so is the server.
            if let Some(place) = place.upgrade() {
                place.lock().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(server));
            }
            let mut writer = Writer::new();
            writer.object();
            writer.key("url");
            writer.string(&url);
            writer.end_object();
            Ok(writer.finish())
        }))
    }

    fn server(&self) -> Option<Arc<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl System for ServerSystem {
    fn call(&self, method: &str, _args: Vec<Given>, _caller: &Caller) -> Result<Called, Error> {
        let server = self.server();
        match method {
            "listen" => self.listen(),
            "closed" => Ok(Called::new(async move {
                if let Some(closed) = server.map(|server| server.closed()) {
                    closed.await;
                }
                done()
            })),
            "close" => Ok(Called::new(async move {
                if let Some(server) = server {
                    server.close().await;
                }
                done()
            })),
            _ => Err(no_method(method)),
        }
    }

    fn ask(&self, method: &str, _args: Vec<Given>) -> Result<Value, Error> {
        Err(no_method(method))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the completion of a call")]
fn done() -> Completion {
    Ok(Value::undefined())
}

/// An error as the value that its promise rejects with.
fn thrown(error: &Error) -> Value {
    let class = match error.kind() {
        ErrorKind::Type => ErrorClass::TypeError,
        ErrorKind::Range => ErrorClass::RangeError,
        _ => ErrorClass::Error,
    };
    let mut writer = Writer::new();
    writer.error(class);
    writer.string(class.name());
    writer.string(error.message());
    writer.undefined();
    writer.undefined();
    writer.finish()
}
