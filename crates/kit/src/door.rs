//! A kit behind the door: the same for every language.
//!
//! In: options, requests and calls of a face. Out: requests with the kit's part, and answers. Nothing here decides
//! anything. A face that drives a page is told of its commands, takes and answers them: by a function of `page`, or by
//! the run that has the command, if the page belongs to the thread of the run's caller.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use isolane::{
    Callback, Caller, Error, ErrorKind, NativeRun, Request, Runtime, SessionRequest, Spelling,
    Value, value::Writer, wrong_type,
};
use isolane_door::{Called, Context, Given, System, no_method};
use tokio::sync::oneshot;

use crate::{
    browser::{Answer, Command, DrivenBrowser, Failure, Task},
    kit::{CallError, Kit, KitOptions, KitRun, Outcome, cancelled, spelled},
    message_copy::elements,
};

/// Opens a kit for a face. It has a page if the options have `browser`.
///
/// # Errors
/// Misuse of an option; a file that is no such database.
pub fn open(options: &Value, context: Context) -> Result<Arc<dyn System>, Error> {
    let Context { spelling, runtime, .. } = context;
    let teller = Arc::new(Teller::default());
    let telling = Arc::clone(&teller);
    let page = Arc::new(DrivenBrowser::new(move |run| telling.tell(run)));
    let options = KitOptions::read(options, Some(Arc::clone(&page) as _), spelling)?;
    let kit = Kit::new(KitOptions { runtime, ..options })?;
    Ok(Arc::new(Door { kit, page, teller, spelling }))
}

struct Door {
    kit: Kit,
    page: Arc<DrivenBrowser>,
    teller: Arc<Teller>,
    spelling: Spelling,
}

/// Tells a face that its page has a command.
#[derive(Default)]
struct Teller {
    told: Mutex<Option<Told>>,
    /// The page blocks no thread: the caller of its run does a command.
    is_asynchronous: AtomicBool,
}

struct Told {
    callback: Callback,
    /// Dropped with the system: the call that handed over the function ends then.
    _is_open: oneshot::Sender<()>,
}

impl Teller {
    fn tell(&self, run: &NativeRun) {
        if let Some(told) = &*self.locked() {
            told.callback.notify(&[]);
        } else if let Some(run) = run.interception().and_then(KitRun::of) {
            if self.is_asynchronous.load(Ordering::Relaxed) {
                run.announce();
            } else {
                run.announce_to_all();
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl System for Door {
    fn call(&self, method: &str, args: Vec<Given>, _: &Caller) -> Result<Called, Error> {
        let [Given::Function(callback)] = args.as_slice() else { return Err(no_method(method)) };
        let (is_open, closed) = oneshot::channel();
        *self.teller.locked() = Some(Told { callback: callback.clone(), _is_open: is_open });
        Ok(Called::background(async move {
            // The sender is dropped, and never used.
            let _ = closed.await;
            Ok(Value::undefined())
        }))
    }

    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error> {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        Ok(match method {
            "close" => {
                self.kit.close();
                Value::undefined()
            }
            "key" => given(&Given::Text(self.kit.key())),
            "secrets.delete" => {
                let secrets = self.kit.secrets().map_err(|error| self.refusal(error))?;
                given(&Given::Bool(secrets.delete(&name(next())?)))
            }
            "secrets.names" => {
                let secrets = self.kit.secrets().map_err(|error| self.refusal(error))?;
                given(&Given::List(secrets.names().into_iter().map(Given::Text).collect()))
            }
            "page.next" => {
                let task = self.page.take();
                task.map_or_else(|| given(&Given::Null), |task| self.written_task(task))
            }
            "page.answer" => {
                if let Some(number) = task_number(&next()) {
                    self.page.answer(number, read_answer(&next()));
                }
                Value::undefined()
            }
            // Whether anybody waits for a command, or will: it is given up otherwise.
            "page.is_awaited" => {
                let number = task_number(&next());
                given(&Given::Bool(number.is_some_and(|number| self.page.is_awaited(number))))
            }
            "page.is_asynchronous" => {
                self.teller.is_asynchronous.store(true, Ordering::Relaxed);
                Value::undefined()
            }
            // A thread that was told of commands has no time for them any more.
            "page.again" => {
                self.page.announce_again();
                Value::undefined()
            }
            _ => return Err(no_method(method)),
        })
    }

    fn call_with(&self, method: &str, args: Value, caller: &Caller) -> Result<Called, Error> {
        let called: Outcome = match method {
            "page" => {
                let given = Given::read(&args, Some(caller))?;
                let Given::List(given) = given else { return Err(no_method(method)) };
                return self.call(method, given, caller);
            }
            "describe" => {
                self.kit.check_open().map_err(|error| self.refusal(error))?;
                let kit = self.kit.clone();
                Box::pin(async move { kit.describe().await.map(|text| given(&Given::Text(text))) })
            }
            // The page is the host's again, also after the close of the kit.
            "page.rest" => {
                let at_rest = self.kit.page_at_rest();
                Box::pin(async move {
                    at_rest.await;
                    Ok(Value::undefined())
                })
            }
            _ => {
                let method = if method == "proxy" { "browser.proxy" } else { method };
                self.kit.begin(method, args).map_err(|error| self.refusal(error))?
            }
        };
        let terminated = caller.terminated();
        Ok(Called::new(async move {
            let outcome = tokio::select! {
                biased;
                outcome = called => outcome,
                _ = terminated => Err(cancelled()),
            };
            outcome.map_err(|error| thrown(&error))
        }))
    }

    fn ask_with(&self, method: &str, args: Value) -> Result<Value, Error> {
        if method != "secrets.set" {
            let Given::List(args) = Given::read(&args, None)? else {
                return Err(no_method(method));
            };
            return self.ask(method, args);
        }
        let mut args = elements(args).into_iter();
        let mut next = || args.next().unwrap_or_else(Value::undefined);
        let name = name(Given::read(&next(), None)?)?;
        self.kit.secrets().map_err(|error| self.refusal(error))?;
        self.kit.set_secret(&name, &next())?;
        Ok(Value::undefined())
    }

    fn amend_run(&self, kind: &str, request: Request) -> Result<(Runtime, Request), Error> {
        let amended = match kind {
            "tool" => self.kit.tool(request),
            "code" => self.kit.code(request),
            _ => return Err(no_method(kind)),
        };
        let (request, _) = amended.map_err(|error| self.refusal_of_start(error))?;
        Ok((self.kit.runtime(), request))
    }

    fn amend_session(&self, request: SessionRequest) -> Result<(Runtime, SessionRequest), Error> {
        let request =
            self.kit.session_request(request).map_err(|error| self.refusal_of_start(error))?;
        Ok((self.kit.runtime(), request))
    }
}

impl Door {
    /// The error for the use of something that the kit does not have, or does not have any more, as the language has it.
    fn refusal(&self, error: Error) -> Error {
        match self.spelling {
            Spelling::Camel => error,
            Spelling::Snake if error.kind() == ErrorKind::Unavailable => error,
            Spelling::Snake => Error::new(ErrorKind::Unavailable, error.message()),
        }
    }

    fn refusal_of_start(&self, error: Error) -> Error {
        if self.kit.check_open().is_err() { self.refusal(error) } else { error }
    }

    /// A command with its number, its kind, its time in milliseconds, and what its kind has.
    fn written_task(&self, Task { number, command, timeout }: Task) -> Value {
        let text = Given::Text;
        let optional = |given: Option<String>| given.map_or(Given::Null, Given::Text);
        let (kind, fields) = match command {
            Command::Navigate { url, wait_until } => {
                let wait_until = text(wait_until.name().to_owned());
                ("navigate", vec![("url", text(url)), ("wait_until", wait_until)])
            }
            Command::Screenshot { selector, full_page } => {
                let full_page = Given::Bool(full_page);
                ("screenshot", vec![("selector", optional(selector)), ("full_page", full_page)])
            }
            Command::Click { selector } => ("click", vec![("selector", text(selector))]),
            Command::Type { selector, text: typed, clear_first } => {
                let clear_first = Given::Bool(clear_first);
                let typed = text(typed);
                let selector = text(selector);
                (
                    "type",
                    vec![("selector", selector), ("text", typed), ("clear_first", clear_first)],
                )
            }
            Command::Read { selector, property, most_units } => {
                #[expect(clippy::cast_precision_loss, reason = "a safe integer")]
                let most_units = Given::Number(most_units as f64);
                let property = text(property.name().to_owned());
                let selector = text(selector);
                (
                    "read",
                    vec![
                        ("selector", selector),
                        ("property", property),
                        ("most_units", most_units),
                    ],
                )
            }
            Command::Evaluate { expression } => {
                ("evaluate", vec![("expression", text(expression))])
            }
            Command::Halt => ("halt", Vec::new()),
            Command::Close => ("close", Vec::new()),
        };
        let fields = fields.into_iter().map(|(name, field)| (spelled(name, self.spelling), field));
        given(&Given::List(vec![
            Given::Number(number.into()),
            text(kind.to_owned()),
            // Playwright takes 0 for no limit.
            Given::Number((timeout.as_secs_f64() * 1e3).max(1.0)),
            Given::Object(fields.collect()),
        ]))
    }
}

/// The number of a command, as the face got it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number that the face got"
)]
fn task_number(given: &Given) -> Option<u32> {
    if let Given::Number(number) = given { Some(*number as u32) } else { None }
}

/// The answer of a face to a command.
fn read_answer(answer: &Given) -> Result<Answer, Failure> {
    let text = |name: &str| match answer.get(name) {
        Given::Text(text) => text.clone(),
        _ => String::new(),
    };
    let Given::Text(kind) = answer.get("kind") else { return Err(Failure::Other(String::new())) };
    match kind.as_str() {
        "nothing" => Ok(Answer::Nothing),
        "arrived" => {
            let status = match answer.get("status") {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a status"
                )]
                Given::Number(status) => *status as u16,
                _ => 0,
            };
            Ok(Answer::Arrived { url: text("url"), title: text("title"), status })
        }
        "text" => Ok(Answer::Text(text("text"))),
        "tooLarge" => Ok(Answer::TooLarge),
        "bytes" => Ok(Answer::Bytes(match answer.get("bytes") {
            Given::Bytes(bytes) => bytes.clone(),
            _ => Vec::new(),
        })),
        "timeout" => Err(Failure::Timeout),
        "stopped" => Err(Failure::Stopped(text("url"))),
        _ => Err(Failure::Other(text("text"))),
    }
}

fn name(given: Given) -> Result<String, Error> {
    match given {
        Given::Text(name) => Ok(name),
        other => Err(wrong_type("name", "a string", other.kind())),
    }
}

/// Plain data as a message.
fn given(value: &Given) -> Value {
    Value::serialize(value).unwrap_or_default()
}

/// The error of a call as the value that the call throws: its fields.
fn thrown(CallError { name, message, code, filename, line, column }: &CallError) -> Value {
    let mut out = Writer::new();
    out.object();
    for (key, text) in [
        ("name", Some(name)),
        ("message", Some(message)),
        ("code", code.as_ref()),
        ("filename", filename.as_ref()),
    ] {
        if let Some(text) = text {
            out.key(key);
            out.string(text);
        }
    }
    for (key, number) in [("line", line), ("column", column)] {
        if let Some(number) = number {
            out.key(key);
            out.number(f64::from(*number));
        }
    }
    out.end_object();
    out.finish()
}
