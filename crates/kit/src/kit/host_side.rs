//! The capabilities as the host itself has them.
//!
//! In: calls of the host. Out: the answers that code would get, checks included, or the error that it would be thrown.
//! Futures run in any executor.

use std::{fmt, sync::Arc};

use isolane::{
    Completion, Error, ErrorKind, Language, SourceText, Value, check_library, value::Writer,
};

use super::{CallError, Inner, Kit};
use crate::{
    browser::BrowserOptions,
    fetch::Dialer,
    proxy::{Proxy, ProxyRules, ProxySettings},
    secrets::SecretOptions,
    store::{Database, DatabaseFunction, Libraries, Library, LibrarySummary, State, StateFunction},
};

impl Kit {
    /// `state`, as code has it.
    ///
    /// # Errors
    /// The kit has none, or is closed.
    pub fn state(&self) -> Result<KitState, Error> {
        self.inner.open()?;
        self.inner.state.clone().map(KitState).ok_or_else(|| missing("state"))
    }

    /// `db`, as code has it.
    ///
    /// # Errors
    /// The kit has none, or is closed.
    pub fn db(&self) -> Result<KitDb, Error> {
        self.inner.open()?;
        self.inner.db.clone().map(KitDb).ok_or_else(|| missing("db"))
    }

    /// The libraries that code may require.
    ///
    /// # Errors
    /// The kit has none, or is closed.
    pub fn libraries(&self) -> Result<KitLibraries, Error> {
        self.inner.open()?;
        self.inner.libraries.clone().map(KitLibraries).ok_or_else(|| missing("libraries"))
    }

    /// The secrets.
    ///
    /// # Errors
    /// The kit has none, or is closed.
    pub fn secrets(&self) -> Result<KitSecrets, Error> {
        self.inner.open()?;
        if self.inner.options.secrets.is_none() {
            return Err(missing("secrets"));
        }
        Ok(KitSecrets(Arc::clone(&self.inner)))
    }
}

impl Kit {
    /// A proxy on loopback for a browser, which judges every request of its pages as `browser.navigate` does: by the rules
    /// of `browser`, or of `fetch` without one. Over https it judges origins alone. It is opened at the first call, and
    /// ends with the kit.
    ///
    /// # Errors
    /// No port can be opened. The kit is closed.
    pub async fn proxy(&self) -> Result<ProxySettings, CallError> {
        self.inner.open()?;
        let inner = Arc::clone(&self.inner);
        outcome(async move { inner.proxy().await }).await
    }
}

impl Inner {
    async fn proxy(&self) -> Result<ProxySettings, CallError> {
        let open = || {
            let BrowserOptions { allow, addresses, resolver, .. } = self.rules.clone();
            Proxy::open(ProxyRules { allow, dialer: Dialer { addresses, resolver } })
        };
        let proxy = self.proxy.get_or_try_init(open).await;
        let proxy = proxy.map_err(|error| CallError::new("Error", error.to_string()))?;
        // The kit may have been closed meanwhile.
        if let Err(closed) = self.open() {
            proxy.close();
            return Err(closed.into());
        }
        Ok(proxy.settings().clone())
    }
}

/// `state`, for the host. All clones are one.
#[derive(Clone)]
pub struct KitState(pub(super) State);

impl KitState {
    /// The value of a key; `null` if there is none.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn get(&self, key: &str) -> Result<Value, CallError> {
        self.call(StateFunction::Get, array([text(key)])).await
    }

    /// Sets a key to a value in JSON form.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn set(&self, key: &str, value: impl serde::Serialize) -> Result<(), CallError> {
        let args = Value::serialize(&(key, value));
        let args = args.map_err(|error| CallError::new("SerializationError", error.message()))?;
        self.call(StateFunction::Set, args).await.map(drop)
    }

    /// Deletes a key; says whether there was one.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn delete(&self, key: &str) -> Result<bool, CallError> {
        read(&self.call(StateFunction::Delete, array([text(key)])).await?)
    }

    /// The keys that begin so, in the order of their bytes.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn keys(&self, prefix: &str) -> Result<Vec<String>, CallError> {
        read(&self.call(StateFunction::Keys, array([text(prefix)])).await?)
    }

    async fn call(&self, function: StateFunction, args: Value) -> Result<Value, CallError> {
        let state = self.0.clone();
        called(async move { state.call(function, args).await }).await
    }
}

/// `db`, for the host. All clones are one.
#[derive(Clone)]
pub struct KitDb(pub(super) Database);

impl KitDb {
    /// One statement. Parameters are a sequence for `?`, or a map for names; `()` for none.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn sql(&self, sql: &str, params: impl serde::Serialize) -> Result<Value, CallError> {
        let args = Value::serialize(&(sql, params));
        let args = args.map_err(|error| CallError::new("SerializationError", error.message()))?;
        self.call(DatabaseFunction::Sql, args).await
    }

    /// All statements in one transaction or none: a sequence of pairs of a statement and its parameters.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn batch(&self, statements: impl serde::Serialize) -> Result<Value, CallError> {
        let args = Value::serialize(&(statements,));
        let args = args.map_err(|error| CallError::new("SerializationError", error.message()))?;
        self.call(DatabaseFunction::Batch, args).await
    }

    /// The tables with their columns.
    ///
    /// # Errors
    /// The error that code would be thrown.
    pub async fn schema(&self) -> Result<Value, CallError> {
        self.call(DatabaseFunction::Schema, written(|out| out.array(0))).await
    }

    async fn call(&self, function: DatabaseFunction, args: Value) -> Result<Value, CallError> {
        let db = self.0.clone();
        called(async move { db.call(function, args).await }).await
    }
}

/// The source of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibrarySource {
    /// The source.
    pub source: String,
    /// Its language.
    pub language: Language,
    /// Its description, for [`Kit::describe`].
    pub description: String,
}

/// The libraries of a kit. All clones are one.
#[derive(Clone)]
pub struct KitLibraries(Libraries);

impl KitLibraries {
    /// Adds a library.
    ///
    /// # Errors
    /// A `LibraryError`: the source does not parse, with the place; the name is known, or there are too many. A
    /// `TypeError`: it is no name.
    pub async fn create(&self, name: &str, library: LibrarySource) -> Result<(), CallError> {
        let (libraries, name) = (self.0.clone(), name.to_owned());
        let LibrarySource { source, language, description } = library;
        check(&name, &source, language)?;
        outcome(async move { libraries.create(&name, &source, language, &description).await }).await
    }

    /// Changes a library. An option that is not given stays.
    ///
    /// # Errors
    /// A `LibraryError`: there is none of that name, or the source does not parse.
    pub async fn update(
        &self,
        name: &str,
        source: Option<&str>,
        language: Option<Language>,
        description: Option<&str>,
    ) -> Result<(), CallError> {
        let (libraries, name) = (self.0.clone(), name.to_owned());
        let (source, description) = (source.map(str::to_owned), description.map(str::to_owned));
        outcome(async move {
            let known = libraries.get(&name).await?;
            let known = known.ok_or_else(|| {
                CallError::new("LibraryError", format!("there is no library '{name}'"))
            })?;
            let source = source.unwrap_or(known.source);
            let language = language.unwrap_or(known.summary.language);
            check(&name, &source, language)?;
            libraries.update(&name, &source, language, description.as_deref()).await?;
            Ok::<_, CallError>(())
        })
        .await
    }

    /// Deletes a library; says whether there was one.
    ///
    /// # Errors
    /// The store cannot be written in time.
    pub async fn delete(&self, name: &str) -> Result<bool, CallError> {
        let (libraries, name) = (self.0.clone(), name.to_owned());
        outcome(async move { libraries.delete(&name).await }).await
    }

    /// A library.
    ///
    /// # Errors
    /// The store cannot be read in time.
    pub async fn get(&self, name: &str) -> Result<Option<Library>, CallError> {
        let (libraries, name) = (self.0.clone(), name.to_owned());
        outcome(async move { libraries.get(&name).await }).await
    }

    /// All libraries by name, without their sources.
    ///
    /// # Errors
    /// The store cannot be read in time.
    pub async fn list(&self) -> Result<Vec<LibrarySummary>, CallError> {
        let libraries = self.0.clone();
        outcome(async move { libraries.list().await }).await
    }
}

/// The secrets of a kit. All clones are one.
#[derive(Clone)]
pub struct KitSecrets(Arc<Inner>);

impl KitSecrets {
    /// Gives a secret, or gives it anew: at once for requests; code sees a new name from the next run on.
    ///
    /// # Errors
    /// Misuse: a bad name, value or pattern, or a secret with neither hosts nor `reveal`.
    pub fn set(&self, name: &str, secret: SecretOptions) -> Result<(), Error> {
        self.0.secrets.set(name, secret)
    }

    /// Takes a secret away; says whether there was one.
    #[must_use]
    pub fn delete(&self, name: &str) -> bool {
        self.0.secrets.delete(name)
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.secrets.names()
    }
}

macro_rules! shown {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

shown!(KitState, KitDb, KitLibraries, KitSecrets);

pub(super) fn written(write: impl FnOnce(&mut Writer)) -> Value {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.finish()
}

/// Awaits a call in tokio.
async fn called(
    call: impl Future<Output = Completion> + Send + 'static,
) -> Result<Value, CallError> {
    outcome(async move { call.await.map_err(|error| CallError::of_thrown(&error)) }).await
}

async fn outcome<T: Send + 'static, E: Into<CallError> + Send + 'static>(
    call: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, CallError> {
    isolane::spawn(call).await?.map_err(E::into)
}

/// Checks the source of a library on the thread of the caller's executor, which takes about 200 µs for 50 lines.
fn check(name: &str, source: &str, language: Language) -> Result<(), CallError> {
    let (filename, source) = (format!("library:{name}"), SourceText::from(source.to_owned()));
    check_library(&filename, &source, language).map_err(|error| CallError::of_source(*error))
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, CallError> {
    value.deserialize().map_err(|error| CallError::new("Error", error.message()))
}

fn text(text: &str) -> impl FnOnce(&mut Writer) {
    move |out| out.string(text)
}

fn array<const N: usize>(elements: [impl FnOnce(&mut Writer); N]) -> Value {
    written(|out| {
        out.array(u32::try_from(N).unwrap_or(u32::MAX));
        for element in elements {
            element(out);
        }
    })
}

fn missing(capability: &str) -> Error {
    misuse(format!("this kit has no {capability}"))
}

pub(super) fn misuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}
