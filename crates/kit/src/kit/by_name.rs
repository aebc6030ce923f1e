//! The host's side of a kit for bindings: calls by name, with messages.
//!
//! In: names as `state.get`, and arguments as a caller wrote them. Out: values and thrown errors, as messages, on any
//! thread.

use std::pin::Pin;

use isolane::{Completion, Error, ErrorKind, Language, Value, value::Writer, wrong_type};
use tokio::sync::oneshot;

use super::{
    CallError, Kit, KitLibraries, LibrarySource, ProxySettings,
    host_side::{misuse, written},
    options::read_secret,
    plain::{Plain, Step, check_texts, lone_surrogate},
};
use crate::{
    proxy::chromium_switches,
    store::{DatabaseFunction, LibrarySummary, StateFunction},
    wtf8::ILL_FORMED,
};

/// The outcome of a call of the host's side.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<Value, CallError>> + Send>>;

impl Kit {
    /// Calls a function of the host's side by its name, for a binding: `state.get`, `db.sql`, `libraries.create`. `args`
    /// is the array of the arguments as the caller wrote them, of one message; options are objects with their names in
    /// JavaScript. `done` receives the value or the error, on any thread, also if the call is cancelled.
    ///
    /// # Errors
    /// The kit lacks the capability, or is closed; there is no such function. `done` is not called then.
    pub fn call(
        &self,
        name: &str,
        args: Value,
        done: impl FnOnce(Result<Value, CallError>) + Send + 'static,
    ) -> Result<CallUnderWay, Error> {
        self.begin(name, args).map(|called| answer(called, done))
    }

    /// As [`Kit::call`], to be awaited in tokio. Dropping the future gives the call up.
    pub(crate) fn begin(&self, name: &str, args: Value) -> Result<Outcome, Error> {
        let unknown = || Error::new(ErrorKind::Internal, format!("a kit has no function '{name}'"));
        let (group, function) = name.split_once('.').ok_or_else(unknown)?;
        Ok(match group {
            "state" => {
                let state = self.state()?;
                let function = match function {
                    "get" => StateFunction::Get,
                    "set" => StateFunction::Set,
                    "delete" => StateFunction::Delete,
                    "keys" => StateFunction::Keys,
                    _ => return Err(unknown()),
                };
                Box::pin(async move { answered(state.0.call(function, args).await) })
            }
            "db" => {
                let db = self.db()?;
                let function = match function {
                    "sql" => DatabaseFunction::Sql,
                    "batch" => DatabaseFunction::Batch,
                    "schema" => DatabaseFunction::Schema,
                    _ => return Err(unknown()),
                };
                Box::pin(async move { answered(db.0.call(function, args).await) })
            }
            "libraries" => {
                let libraries = self.libraries()?;
                let function = LibraryFunction::named(function).ok_or_else(unknown)?;
                Box::pin(async move { call_library(&libraries, function, &args).await })
            }
            "browser" if function == "proxy" => {
                self.inner.open()?;
                let kit = self.clone();
                Box::pin(async move { kit.proxy().await.map(|proxy| write_proxy(&proxy)) })
            }
            _ => return Err(unknown()),
        })
    }

    /// Sets a secret, for a binding: `secret` is the object as the caller wrote it.
    ///
    /// # Errors
    /// Misuse, as [`KitSecrets::set`](super::KitSecrets::set).
    pub fn set_secret(&self, name: &str, secret: &Value) -> Result<(), Error> {
        let secrets = self.secrets()?;
        let shown: String = name.chars().take(100).collect();
        check_texts(secret, &format!("secrets.{shown}"))?;
        secrets.set(name, read_secret(name, Plain::read(secret)?)?)
    }
}

fn answered(completion: Completion) -> Result<Value, CallError> {
    completion.map_err(|error| CallError::of_thrown(&error))
}

/// A call of the host's side that has no answer. It goes on when this is dropped.
#[derive(Debug)]
pub struct CallUnderWay(oneshot::Sender<()>);

impl CallUnderWay {
    /// Gives the call up: a statement that waits is not begun, and one that runs is interrupted and rolled back, unless
    /// it is done already.
    pub fn cancel(self) {
        // A call that is done does not listen.
        let _ = self.0.send(());
    }
}

/// The error of a call that was given up.
pub(crate) fn cancelled() -> CallError {
    CallError::new("AbortError", "the call was cancelled")
}

fn answer(
    called: Outcome,
    done: impl FnOnce(Result<Value, CallError>) + Send + 'static,
) -> CallUnderWay {
    let (cancel, cancelled) = oneshot::channel();
    drop(isolane::spawn(async move {
        let cancelled = async move {
            if cancelled.await.is_err() {
                // Nobody can cancel it any more.
                std::future::pending::<()>().await;
            }
        };
        let called = tokio::select! {
            called = called => called,
            () = cancelled => Err(self::cancelled()),
        };
        done(called);
    }));
    CallUnderWay(cancel)
}

/// A function of `libraries`, for bindings.
#[derive(Clone, Copy)]
enum LibraryFunction {
    Create,
    Update,
    Delete,
    Get,
    List,
}

impl LibraryFunction {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "create" => Self::Create,
            "update" => Self::Update,
            "delete" => Self::Delete,
            "get" => Self::Get,
            "list" => Self::List,
            _ => return None,
        })
    }
}

/// The arguments of a binding's call of a function of `libraries`. Those that are not given are `None`.
#[derive(Default)]
struct LibraryArguments {
    name: String,
    source: Option<String>,
    language: Option<String>,
    description: Option<String>,
}

impl LibraryArguments {
    /// # Errors
    /// Misuse: an argument of the wrong type, or an option that there is not.
    fn read(args: &Value) -> Result<Self, Error> {
        let Plain::List(list) = Plain::read(args)? else {
            return Err(misuse("a library takes arguments"));
        };
        let mut list = list.into_iter();
        let mut next = || list.next().unwrap_or(Plain::Nothing);
        let (name, source, options) = (next(), next(), next());
        let name = optional_text("name", name)?
            .ok_or_else(|| wrong_type("name", "a string", "nothing"))?;
        let mut read = Self { name, source: optional_text("source", source)?, ..Self::default() };
        let entries = match options {
            Plain::Nothing => Vec::new(),
            Plain::Object(entries) => entries,
            other => return Err(wrong_type("options", "an object", other.kind())),
        };
        for (key, value) in entries {
            match key.as_str() {
                "language" => read.language = optional_text("language", value)?,
                "description" => read.description = optional_text("description", value)?,
                _ => {
                    let known = ["language", "description"].map(str::to_owned);
                    return Err(isolane::unknown_name("", &key, &known));
                }
            }
        }
        Ok(read)
    }
}

fn optional_text(name: &str, value: Plain) -> Result<Option<String>, Error> {
    match value {
        Plain::Nothing => Ok(None),
        Plain::Text(text) => Ok(Some(text)),
        other => Err(wrong_type(name, "a string", other.kind())),
    }
}

async fn call_library(
    libraries: &KitLibraries,
    function: LibraryFunction,
    args: &Value,
) -> Result<Value, CallError> {
    let wrong = |error: Error| CallError::new("TypeError", error.message());
    if let Some(steps) = lone_surrogate(args) {
        let part = match steps.as_slice() {
            [Step::Index(0), ..] => "name",
            [Step::Index(1), ..] => "source",
            [Step::Index(2), Step::Name(option)] if option == "description" => "description",
            _ => "option",
        };
        let message = format!("a library's {part} {ILL_FORMED}");
        return Err(CallError::new("TypeError", message));
    }
    let name = || LibraryArguments::read(args).map(|arguments| arguments.name).map_err(wrong);
    match function {
        LibraryFunction::Create | LibraryFunction::Update => {
            let arguments = LibraryArguments::read(args).map_err(wrong)?;
            let LibraryArguments { name, source, language, description } = arguments;
            let language = language.as_deref().map(language_named).transpose()?;
            if let LibraryFunction::Update = function {
                let (source, description) = (source.as_deref(), description.as_deref());
                libraries.update(&name, source, language, description).await?;
                return Ok(Value::undefined());
            }
            let source =
                source.ok_or_else(|| CallError::new("TypeError", "a library needs a source"))?;
            let language = language.unwrap_or_default();
            let description = description.unwrap_or_default();
            let library = LibrarySource { source, language, description };
            libraries.create(&name, library).await.map(|()| Value::undefined())
        }
        LibraryFunction::Delete => {
            libraries.delete(&name()?).await.map(|was| written(|out| out.bool(was)))
        }
        LibraryFunction::Get => {
            let library = libraries.get(&name()?).await?;
            Ok(written(|out| match &library {
                Some(library) => write_library(out, &library.summary, Some(&library.source)),
                None => out.null(),
            }))
        }
        LibraryFunction::List => {
            let all = libraries.list().await?;
            Ok(written(|out| {
                out.array(u32::try_from(all.len()).unwrap_or(u32::MAX));
                for library in &all {
                    write_library(out, library, None);
                }
            }))
        }
    }
}

fn write_proxy(proxy: &ProxySettings) -> Value {
    let ProxySettings { server, username, password } = proxy;
    written(|out| {
        out.object();
        for (name, text) in [("server", server), ("username", username), ("password", password)] {
            out.key(name);
            out.string(text);
        }
        let args = chromium_switches(server);
        out.key("args");
        out.array(u32::try_from(args.len()).unwrap_or(u32::MAX));
        for arg in &args {
            out.string(arg);
        }
        out.end_object();
    })
}

fn language_named(name: &str) -> Result<Language, CallError> {
    match name {
        "javascript" => Ok(Language::JavaScript),
        "typescript" => Ok(Language::TypeScript),
        _ => Err(CallError::new("TypeError", "language must be 'javascript' or 'typescript'")),
    }
}

fn write_library(out: &mut Writer, library: &LibrarySummary, source: Option<&str>) {
    out.object();
    out.key("name");
    out.string(&library.name);
    if let Some(source) = source {
        out.key("source");
        out.string(source);
    }
    out.key("language");
    out.string(match library.language {
        Language::JavaScript => "javascript",
        Language::TypeScript => "typescript",
    });
    out.key("description");
    out.string(&library.description);
    out.key("modifiedOn");
    out.string(&library.modified_on);
    out.end_object();
}
