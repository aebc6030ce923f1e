//! The functions of `fetch` for the sandbox, as its trusted code calls them.
//!
//! In: `fetch({ url, method, headers, body, timeout, redirect, id })` and `abort(id)`. Out: a promise of
//! `{ status, statusText, url, redirected, headers, body }`, whose body is a whole Uint8Array; and a [`FetchRecord`] of
//! each request when it is over. `headers` are pairs of names and values; `body` is a text, a Uint8Array, or null.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use isolane::{
    Completion, NativeAnswer, NativeCall, NativeFunction, NativeMode, Value,
    value::{ViewKind, Writer},
};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use tokio::sync::oneshot;

use super::{
    client::{Fetcher, Response},
    failure,
    progress::Progress,
    request::{Body, Redirect, Request},
    run_limits::RunLimits,
};
use crate::{
    error::KitError,
    room::{Room, RunRoom},
};

/// The most headers that are read from a call. A request has fewer.
const MOST_HEADERS: usize = 1_000;

/// The most aborts that are remembered for requests which have not begun.
const MOST_EARLY: usize = 1_024;

/// A request that is over, for an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchRecord {
    /// When it was called.
    pub started: SystemTime,
    /// The time until the whole answer was there, or the error.
    pub duration: Duration,
    /// The bytes both ways.
    pub bytes: u64,
    /// [`Progress::summary`].
    pub summary: String,
    /// The name of the error; `Aborted` if the run ended first.
    pub error: Option<&'static str>,
}

type Observer = Arc<dyn Fn(FetchRecord) + Send + Sync>;

/// The functions of `fetch` for one run, or one session. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct FetchFunctions(Arc<Shared>);

struct Shared {
    fetcher: Fetcher,
    limits: RunLimits,
    observer: Observer,
    aborts: Arc<Mutex<Aborts>>,
}

/// By the number of the run or session, and the number that its code gave to the request.
type Aborts = HashMap<(u64, u64), Aborting>;

/// The abort of a request.
enum Aborting {
    /// It has not come; this ends the request, whose progress tells it at once.
    Awaited(oneshot::Sender<()>, Progress),
    /// It came before the request began.
    Early,
}

impl FetchFunctions {
    /// The functions of a run with these limits. `observer` is called once for each request, when it is over.
    #[must_use]
    pub fn new(
        fetcher: Fetcher,
        limits: RunLimits,
        observer: impl Fn(FetchRecord) + Send + Sync + 'static,
    ) -> Self {
        let aborts = Arc::default();
        Self(Arc::new(Shared { fetcher, limits, observer: Arc::new(observer), aborts }))
    }

    /// The functions of another cell of the session, with limits of its own. It may abort requests of the others.
    #[must_use]
    pub fn of_cell(&self) -> Self {
        let Shared { fetcher, observer, aborts, .. } = &*self.0;
        let (fetcher, observer, aborts) =
            (fetcher.clone(), Arc::clone(observer), Arc::clone(aborts));
        let limits = RunLimits::new(fetcher.limits());
        Self(Arc::new(Shared { fetcher, limits, observer, aborts }))
    }

    /// `fetch`.
    #[must_use]
    pub fn fetch(&self) -> Arc<dyn NativeFunction> {
        Arc::new(Fetch(Arc::clone(&self.0)))
    }

    /// Answers a call of `fetch` without its function, for a caller that observes the progress itself.
    ///
    /// # Errors
    /// As [`Fetcher::request`], and `AbortError`.
    pub fn answer(
        &self,
        call: NativeCall,
        progress: &Progress,
    ) -> impl Future<Output = Result<Value, KitError>> + Send + use<> {
        let (shared, progress) = (Arc::clone(&self.0), progress.clone());
        async move { shared.answer(call, &progress).await }
    }

    /// `abort`.
    #[must_use]
    pub fn abort(&self) -> Arc<dyn NativeFunction> {
        Arc::new(Abort(Arc::clone(&self.0)))
    }
}

impl fmt::Debug for FetchFunctions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FetchFunctions").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

struct Fetch(Arc<Shared>);

impl NativeFunction for Fetch {
    fn name(&self) -> &'static str {
        "fetch"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let shared = Arc::clone(&self.0);
        let report = Report::new(&shared);
        NativeAnswer::later(async move {
            let done = shared.answer(call, &report.progress).await;
            report.finish(done.as_ref().err());
            done.map_err(|error| error.to_value())
        })
    }
}

struct Abort(Arc<Shared>);

impl NativeFunction for Abort {
    fn name(&self) -> &'static str {
        "fetch.abort"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let run = call.run.number();
        let done: Completion = call.arguments().map(|(id,): (u64,)| {
            let id = (run, id);
            let mut aborts = self.0.aborts();
            match aborts.remove(&id) {
                Some(Aborting::Awaited(request, progress)) => {
                    progress.give_up();
                    // A request that is over has no receiver.
                    let _ = request.send(());
                }
                None if aborts.len() >= MOST_EARLY => {}
                Some(Aborting::Early) | None => drop(aborts.insert(id, Aborting::Early)),
            }
            Value::undefined()
        });
        done.into()
    }
}

impl Shared {
    fn aborts(&self) -> MutexGuard<'_, Aborts> {
        self.aborts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, call: NativeCall, progress: &Progress) -> Result<Value, KitError> {
        let run = call.run.number();
        let mut room = RunRoom::new(call.run.clone());
        // The parts are copied out of the message: texts of Latin-1 grow, and each header takes some bytes.
        let copied = call.args.held_bytes().saturating_mul(2).saturating_add(MOST_HEADERS * 64);
        if !room.take(copied) {
            return Err(failure::no_room());
        }
        let (arguments,): (Arguments,) = call.args.deserialize().map_err(|error| {
            KitError::wrong_arguments(format!("fetch takes a request: {}", error.message()))
        })?;
        drop(call);
        let id = arguments.id.map(|id| (run, id));
        let request = arguments.into_request()?;
        let mut given = GivenUp::new(self, id, progress);
        let answer = self.fetcher.request(request, &self.limits, room, progress);
        tokio::select! {
            biased;
            () = given.up() => Err(failure::aborted()),
            answer = answer => answer.map(written),
        }
    }
}

/// Waits for the abort of a request, which cannot come any more when this is dropped.
struct GivenUp<'s> {
    shared: &'s Shared,
    id: Option<(u64, u64)>,
    abort: Option<oneshot::Receiver<()>>,
}

impl<'s> GivenUp<'s> {
    fn new(shared: &'s Shared, id: Option<(u64, u64)>, progress: &Progress) -> Self {
        let abort = id.map(|id| {
            let (sender, abort) = oneshot::channel();
            let mut aborts = shared.aborts();
            if let Some(Aborting::Early) = aborts.remove(&id) {
                progress.give_up();
                let _ = sender.send(());
            } else {
                aborts.insert(id, Aborting::Awaited(sender, progress.clone()));
            }
            abort
        });
        Self { shared, id, abort }
    }

    async fn up(&mut self) {
        match &mut self.abort {
            // A number that is used again ends the request that had it.
            Some(abort) => drop(abort.await),
            None => std::future::pending().await,
        }
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.aborts().remove(&id);
        }
    }
}

/// Reports a request once, also if it is dropped.
struct Report {
    observer: Observer,
    progress: Progress,
    started: SystemTime,
    clock: Instant,
    error: Option<&'static str>,
}

impl Report {
    fn new(shared: &Shared) -> Self {
        Self {
            observer: Arc::clone(&shared.observer),
            progress: Progress::new(),
            started: SystemTime::now(),
            clock: Instant::now(),
            error: Some("Aborted"),
        }
    }

    fn finish(mut self, error: Option<&KitError>) {
        self.error = error.map(KitError::name);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        (self.observer)(FetchRecord {
            started: self.started,
            duration: self.clock.elapsed(),
            bytes: self.progress.total_bytes(),
            summary: self.progress.summary(),
            error: self.error,
        });
    }
}

/// The answer as a message.
fn written(response: Response) -> Value {
    let Response { status, status_text, url, redirected, headers, body } = response;
    let mut writer = Writer::new();
    writer.object();
    writer.key("status");
    writer.int(i32::from(status));
    writer.key("statusText");
    writer.string(&status_text);
    writer.key("url");
    writer.string(&url);
    writer.key("redirected");
    writer.bool(redirected);
    writer.key("headers");
    // An answer has few headers.
    writer.array(u32::try_from(headers.len()).unwrap_or(u32::MAX));
    for (name, value) in &headers {
        writer.array(2);
        writer.string(name);
        writer.string(value);
    }
    writer.key("body");
    let length = body.len() as u64;
    let blob = writer.blob(body);
    writer.view(ViewKind::Uint8Array, blob, 0, length);
    writer.end_object();
    writer.finish()
}

/// The argument of `fetch`.
#[derive(Deserialize)]
struct Arguments {
    url: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    body: Body,
    timeout: Option<f64>,
    redirect: Option<String>,
    id: Option<u64>,
}

impl Arguments {
    fn into_request(self) -> Result<Request, KitError> {
        let redirect = match self.redirect.as_deref() {
            None | Some("follow") => Redirect::Follow,
            Some("error") => Redirect::Error,
            Some("manual") => Redirect::Manual,
            Some(_) => {
                let message = "redirect is 'follow', 'error' or 'manual'";
                return Err(KitError::wrong_arguments(message));
            }
        };
        Ok(Request {
            url: self.url,
            method: self.method,
            headers: self.headers.0,
            body: self.body,
            timeout_ms: self.timeout,
            redirect,
        })
    }
}

/// Pairs, of which not too many are read.
#[derive(Default)]
struct Headers(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Headers;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("headers as pairs")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(pair) = pairs.next_element()? {
                    if headers.len() == MOST_HEADERS {
                        return Err(A::Error::custom("it has too many headers"));
                    }
                    headers.push(pair);
                }
                Ok(Headers(headers))
            }
        }

        deserializer.deserialize_seq(Pairs)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBytes;

        impl Visitor<'_> for TextOrBytes {
            type Value = Body;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a body as a text, a Uint8Array or null")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Body, E> {
                Ok(Body::Text(text.to_owned()))
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Body, E> {
                Ok(Body::Bytes(bytes.to_vec()))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Body, E> {
                Ok(Body::None)
            }

            fn visit_none<E: serde::de::Error>(self) -> Result<Body, E> {
                Ok(Body::None)
            }
        }

        deserializer.deserialize_bytes(TextOrBytes)
    }
}
