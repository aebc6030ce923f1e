//! The functions of `browser` for the sandbox.
//!
//! In: calls of a run. Out: promises of what the page gives, and a [`BrowserRecord`] of each call when it is over. A
//! call waits for its turn, and has its time from then on.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant, SystemTime},
};

use isolane::{NativeAnswer, NativeCall, NativeFunction, NativeMode, NativeRun, Value};
use tokio::{sync::OwnedMutexGuard, time::timeout};
use url::Url;

use super::{
    Answer, Command, Failure, Inner, MOST_MESSAGE_BYTES, Page, WaitUntil,
    answer::{no_room, written},
    judge::{judge, judge_url},
    request::{METHODS, Method, Request},
    script,
};
use crate::{
    error::KitError,
    kit::{Hold, KitRun},
    room::{Room, RunRoom},
};

/// The longest time limit: a year.
const LONGEST_TIMEOUT_MS: u64 = 365 * 24 * 3_600_000;

/// The time that a page has to stop, and then to be left.
pub(super) const LEAVE: Duration = Duration::from_secs(5);

/// The most bytes of a summary.
const MOST_SUMMARY_BYTES: usize = 1 << 10;

/// A call that is over, for an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserRecord {
    /// The name, such as `browser.click`.
    pub name: &'static str,
    /// When it was called.
    pub started: SystemTime,
    /// The time until the answer or the error was there.
    pub duration: Duration,
    /// The bytes of the arguments and of the answer.
    pub bytes: u64,
    /// The URL without its query, or the selector, at most 1 KiB; never a text that is typed or evaluated.
    pub summary: String,
    /// The name of the error; `Aborted` if the run ended first.
    pub error: Option<&'static str>,
}

type Observer = Arc<dyn Fn(BrowserRecord) + Send + Sync>;

/// The functions of `browser` for one run or session.
#[derive(Clone)]
pub struct BrowserFunctions {
    page: Page,
    observer: Observer,
}

impl BrowserFunctions {
    /// The functions of a run on that page. `observer` is called once for each call, when it is over.
    #[must_use]
    pub fn new(page: Page, observer: impl Fn(BrowserRecord) + Send + Sync + 'static) -> Self {
        Self { page, observer: Arc::new(observer) }
    }

    /// The functions by their names in `browser`.
    #[must_use]
    pub fn functions(&self) -> [(&'static str, Arc<dyn NativeFunction>); 8] {
        METHODS.map(|(name, method)| {
            let function = Function { method, functions: self.clone() };
            (name, Arc::new(function) as Arc<dyn NativeFunction>)
        })
    }
}

impl fmt::Debug for BrowserFunctions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BrowserFunctions").field("page", &self.page).finish_non_exhaustive()
    }
}

struct Function {
    method: Method,
    functions: BrowserFunctions,
}

impl NativeFunction for Function {
    fn name(&self) -> &str {
        self.method.name()
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let inner = Arc::clone(&self.functions.page.0);
        let report = Report::new(self.method, &call, &self.functions.observer);
        let method = self.method;
        NativeAnswer::later(async move {
            let done = inner.answer(method, call, &report).await;
            report.finish(&done);
            done.map_err(|error| error.to_value())
        })
    }
}

/// Reports a call once, also if it is dropped.
struct Report {
    observer: Observer,
    name: &'static str,
    started: SystemTime,
    clock: Instant,
    bytes: u64,
    summary: Mutex<String>,
    error: Option<&'static str>,
}

impl Report {
    fn new(method: Method, call: &NativeCall, observer: &Observer) -> Self {
        Self {
            observer: Arc::clone(observer),
            name: method.name(),
            started: SystemTime::now(),
            clock: Instant::now(),
            bytes: call.args.held_bytes() as u64,
            summary: Mutex::default(),
            error: Some("Aborted"),
        }
    }

    fn summary(&self, text: &str) {
        let text = &text[..text.floor_char_boundary(MOST_SUMMARY_BYTES)];
        text.clone_into(&mut self.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn finish(mut self, done: &Result<Value, KitError>) {
        self.error = done.as_ref().err().map(KitError::name);
        self.bytes += done.as_ref().map_or(0, |value| value.held_bytes() as u64);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let summary = self.summary.get_mut().unwrap_or_else(PoisonError::into_inner);
        (self.observer)(BrowserRecord {
            name: self.name,
            started: self.started,
            duration: self.clock.elapsed(),
            bytes: self.bytes,
            summary: std::mem::take(summary),
            error: self.error,
        });
    }
}

impl Inner {
    async fn answer(
        self: &Arc<Self>,
        method: Method,
        call: NativeCall,
        report: &Report,
    ) -> Result<Value, KitError> {
        let mut room = RunRoom::new(call.run.clone());
        // The texts are copied out of the message, into the report and into what reaches the browser.
        if !room.take(4 * call.args.held_bytes()) {
            return Err(no_room());
        }
        let most_bytes = self.options.limits.max_result_bytes;
        let request = Request::read(method, &call, most_bytes)?;
        report.summary(&request.summary());
        let run = call.run.clone();
        drop(call);
        let cell = run.interception().and_then(KitRun::of);
        let has_ended = || cell.as_ref().is_some_and(KitRun::is_over);
        let secrets = self.secrets.snapshot();
        for text in request.texts() {
            if let Some(name) = secrets.request.named_in(text.as_bytes()) {
                let text = format!("secret '{name}' is not for the browser");
                return Err(KitError::new("BrowserBlocked", text));
            }
        }
        let ms = self.options.limits.timeout_ms.min(LONGEST_TIMEOUT_MS);
        let limit = Duration::from_millis(ms);
        let answer = match self.perform(request, limit, run).await {
            Ok(answer) => answer,
            // The call ends with its run, at once.
            Err(Fault::Timeout) if has_ended() => return std::future::pending().await,
            Err(Fault::Timeout) => {
                let text = format!("the browser took longer than {ms} ms");
                return Err(KitError::new("BrowserTimeout", text));
            }
            Err(Fault::Error(error)) => {
                let message = secrets.responses.text(error.message()).into_owned();
                return Err(KitError::new(error.name(), message));
            }
        };
        written(method, answer, &secrets.responses, most_bytes, &mut room)
    }

    /// Does what is asked for when the page is free.
    async fn perform(
        self: &Arc<Self>,
        request: Request,
        limit: Duration,
        run: NativeRun,
    ) -> Result<Answer, Fault> {
        if let Request::Navigate(url, _) = &request {
            timeout(limit, judge(&self.options, url)).await.map_err(|_| Fault::Timeout)??;
        }
        // The requests before this one have limits of their own.
        let page = Arc::clone(&self.turn).lock_owned().await;
        let cell = run.interception().and_then(KitRun::of);
        if cell.as_ref().is_some_and(KitRun::is_over) {
            return Err(Fault::Timeout);
        }
        let turn = Turn { page, hold: cell.map(|cell| cell.hold()), run };
        let deadline = Instant::now() + limit;
        timeout(limit, self.take_turn(turn, request, deadline)).await.map_err(|_| Fault::Timeout)?
    }

    /// Does what is asked for on the page, which is free.
    async fn take_turn(
        self: &Arc<Self>,
        mut turn: Turn,
        request: Request,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let goes = matches!(request, Request::Navigate(..) | Request::Plain(Command::Close));
        if !goes && self.is_unjudged.load(Ordering::Acquire) {
            // A page that could not be left is left now, or shows nothing.
            turn = self.halt(turn).await?;
        }
        match request {
            Request::Navigate(url, wait_until) => {
                self.navigate(turn, url, wait_until, deadline).await
            }
            Request::Plain(command) => Ok(self.step(turn, command, deadline).await?.1),
            Request::Evaluate(code) => {
                let most_units = most_units(self.options.limits.max_result_bytes);
                let expression = script::expression(&code, most_units);
                Ok(self.step(turn, Command::Evaluate { expression }, deadline).await?.1)
            }
        }
    }

    /// Navigates, and leaves a page that may not be shown. Both happen even if nobody waits any more.
    async fn navigate(
        self: &Arc<Self>,
        turn: Turn,
        url: Url,
        wait_until: WaitUntil,
        deadline: Instant,
    ) -> Result<Answer, Fault> {
        let inner = Arc::clone(self);
        let navigated = tokio::spawn(async move {
            inner.is_unjudged.store(true, Ordering::Release);
            let command = Command::Navigate { url: url.into(), wait_until };
            let (turn, answer) = inner.try_step(turn, command, deadline).await?;
            let answer = match answer {
                Ok(answer) => answer,
                Err(Failure::Stopped(url)) => {
                    inner.stay(turn, Some(&url)).await?;
                    return Err(Fault::Timeout);
                }
                Err(failure) => {
                    // A page that does not halt is judged before code sees it. Its failure is the navigation's.
                    let _ = inner.halt(turn).await;
                    return Err(failure.into());
                }
            };
            let Answer::Arrived { url, .. } = &answer else { return Ok(answer) };
            let Some(refused) = inner.refusal(url) else {
                inner.is_unjudged.store(false, Ordering::Release);
                return Ok(answer);
            };
            inner.leave(turn).await?;
            Err(Fault::Error(refused))
        });
        navigated.await.map_err(|_| failed())?
    }

    /// Why a page may not be shown that is there.
    fn refusal(&self, url: &str) -> Option<KitError> {
        match Url::parse(url) {
            Ok(url) if url.as_str() == "about:blank" => None,
            Ok(url) => judge_url(&self.options, &url).err(),
            Err(_) => Some(KitError::new("BrowserBlocked", "the page has no URL")),
        }
    }

    /// Stops a navigation that has failed. The page stays where that has come to, or where it was before; one that may
    /// not be shown there, or cannot be stopped, is left.
    async fn halt(&self, turn: Turn) -> Result<Turn, Fault> {
        let (turn, place) = self.try_step(turn, Command::Halt, Instant::now() + LEAVE).await?;
        match place {
            Ok(Answer::Nothing) => self.stay(turn, None).await,
            Ok(Answer::Arrived { url, .. }) => self.stay(turn, Some(&url)).await,
            _ => self.leave(turn).await,
        }
    }

    /// Has the page stay where it is, or leaves that if it may not be shown. There may be no page.
    async fn stay(&self, turn: Turn, url: Option<&str>) -> Result<Turn, Fault> {
        if url.is_none_or(|url| self.refusal(url).is_none()) {
            self.is_unjudged.store(false, Ordering::Release);
            return Ok(turn);
        }
        self.leave(turn).await
    }

    async fn leave(&self, turn: Turn) -> Result<Turn, Fault> {
        let blank = "about:blank".to_owned();
        let leave = Command::Navigate { url: blank, wait_until: WaitUntil::Load };
        let (turn, _) = self.step(turn, leave, Instant::now() + LEAVE).await?;
        self.is_unjudged.store(false, Ordering::Release);
        Ok(turn)
    }

    async fn step(
        &self,
        turn: Turn,
        command: Command,
        deadline: Instant,
    ) -> Result<(Turn, Answer), Fault> {
        let (turn, answer) = self.try_step(turn, command, deadline).await?;
        Ok((turn, answer?))
    }

    /// Does one thing. The page stays in use until the browser is done with it, even if nobody waits any more.
    async fn try_step(
        &self,
        turn: Turn,
        command: Command,
        deadline: Instant,
    ) -> Result<(Turn, Result<Answer, Failure>), Fault> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Fault::Timeout);
        }
        let performed = self.browser.perform(command, left, &turn.run);
        let performed = tokio::spawn(async move {
            let answer = performed.await;
            (turn, answer)
        });
        performed.await.map_err(|_| failed())
    }
}

/// The use of the page by a run.
struct Turn {
    #[expect(dead_code, reason = "held for as long as the page is in use")]
    page: OwnedMutexGuard<()>,
    /// The run does not settle meanwhile.
    #[expect(dead_code, reason = "held for as long as the page is in use")]
    hold: Option<Hold>,
    run: NativeRun,
}

/// Why a call fails.
enum Fault {
    Timeout,
    Error(KitError),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Timeout | Failure::Stopped(_) => Self::Timeout,
            Failure::Other(message) => {
                let line = shown(message.lines().next().unwrap_or_default());
                let line = &line[..line.floor_char_boundary(MOST_MESSAGE_BYTES)];
                Self::Error(KitError::new("BrowserError", line))
            }
        }
    }
}

impl From<KitError> for Fault {
    fn from(error: KitError) -> Self {
        Self::Error(error)
    }
}

/// The message of a library as code sees it: without the name of the method, which each language writes in its own way,
/// and without the place to which another navigation goes.
fn shown(line: &str) -> &str {
    if line.contains("interrupted by another navigation") {
        return "another navigation has interrupted it";
    }
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
    let is_method =
        |text: &str| text.split_once('.').is_some_and(|(a, b)| is_name(a) && is_name(b));
    let is_origin = |text: &str| is_method(text) || text.starts_with("Protocol error");
    let mut line = line;
    while let Some((origin, rest)) = line.split_once(": ")
        && is_origin(origin)
    {
        line = rest;
    }
    line
}

/// The most units of a text that leaves the page: a library has it several times as large, in a text of its own.
pub(super) fn most_units(most_bytes: u64) -> u64 {
    most_bytes.min(64 << 20)
}

/// The adapter has panicked, or tokio has ended.
fn failed() -> Fault {
    Fault::Error(KitError::new("BrowserError", "the browser is gone"))
}
