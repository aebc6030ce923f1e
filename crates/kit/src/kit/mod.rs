//! A kit: capabilities that runs share.
//!
//! In: [`KitOptions`]; requests. Out: the same requests with the kit's functions and names, and results without secrets.
//! `amend.rs` amends a request that was made as for any run, to be started on [`Kit::runtime`]: the Rust face does that
//! here, and other languages by [`door`](crate::door).
//!
//! `run` is the state of one run, `outgoing` its result without secrets, `calls` its records, `left` those that wait
//! for a later cell, `natives` the functions that count calls. `session` intercepts cells. `host_side` is what the host
//! itself may do with a kit, `by_name` the same for bindings, and `describe` its description for a prompt. `keys` finds
//! kits that faces hand to other systems. `face` is the Rust face.

mod amend;
mod by_name;
mod calls;
mod describe;
mod error;
mod face;
mod host_side;
mod keys;
mod left;
mod live;
mod natives;
mod options;
mod outgoing;
mod plain;
mod run;
mod session;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use isolane::{Error, ErrorKind, ExtensionRequest, HostError, NativeFunction, Runtime};
use tokio::sync::OnceCell;

pub use self::{
    by_name::CallUnderWay,
    calls::CallRecord,
    error::CallError,
    face::{CodeOptions, KitExecution, KitResult, KitSession, ToolOptions},
    host_side::{KitDb, KitLibraries, KitSecrets, KitState, LibrarySource},
    options::{
        AllowOption, BrowserSettings, DbOptions, FetchSettings, KitOptions, LibraryOptions,
        TimerLimits,
    },
    run::{KitOutcome, KitRun},
};
pub(crate) use self::{
    by_name::{Outcome, cancelled},
    options::spelled,
    run::{Hold, Hook},
};
use self::{
    live::Live,
    natives::{Abort, Counted, Fetch, Shows},
    options::Checked,
    run::{Callers, Kind},
};
pub use crate::proxy::ProxySettings;
use crate::{
    browser::{BrowserFunctions, BrowserOptions, Page},
    fetch::{FetchFunctions, Fetcher, RunLimits},
    proxy::Proxy,
    secrets::Secrets,
    store::{Database, DatabaseOptions, Libraries, State, Store, StoreOptions},
    timers::Delays,
};

/// The functions that all runs have.
const UTILITY_FUNCTIONS: [&str; 8] =
    ["atob", "btoa", "parseCSV", "random", "url", "urlSet", "decodeUtf8", "encodeUtf8"];

/// Functions for the sandbox, by their places in the extension. All runs of a kit share them.
type Functions = Arc<[Option<Arc<dyn NativeFunction>>]>;

/// Ready-made capabilities for runs: `fetch`, `state`, `db`, libraries, secrets. Cheap to clone; all clones are one.
///
/// An open kit keeps no thread. It is closed when it is dropped, and no run of it goes on then.
#[derive(Clone)]
pub struct Kit {
    inner: Arc<Inner>,
    /// Closes it with the last clone: the kit's own runs hold `inner`, too.
    owner: Arc<Owner>,
}

struct Owner {
    inner: Arc<Inner>,
    key: OnceLock<String>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.key.get().map(String::as_str).into_iter().for_each(keys::forget);
        self.inner.close();
    }
}

/// A kit, without its owner.
struct Inner {
    /// The process that opened the kit: a forked child has none of its threads.
    process: u32,
    /// Without secrets and what else is below.
    options: KitOptions,
    secrets: Arc<Secrets>,
    store: Option<Store>,
    state: Option<State>,
    libraries: Option<Libraries>,
    db: Option<Database>,
    fetcher: Option<Fetcher>,
    page: Option<Page>,
    /// Those of `browser`, which the proxy has, too.
    rules: BrowserOptions,
    proxy: OnceCell<Proxy>,
    functions: Functions,
    /// The names of the extension that tools see, and those that other code sees.
    tool_names: Arc<ExtensionRequest>,
    code_names: Arc<ExtensionRequest>,
    live: Live,
    callers: Callers,
}

impl Kit {
    /// Opens a kit. Files are opened, and made if they are missing.
    ///
    /// # Errors
    /// Misuse of an option, before anything opens: [`ErrorKind::Type`] or [`ErrorKind::Range`]. A file that cannot be
    /// opened, or is no such database: [`ErrorKind::Internal`] with a message that names it. The process has an
    /// extension that is not the kit's.
    pub fn new(options: KitOptions) -> Result<Self, Error> {
        let Checked { options, fetch, browser, secrets } = options.check()?;
        isolane::install_extension(&isolane_kit_realm::EXTENSION)?;
        let fetcher = fetch.map(|fetch| Fetcher::new(fetch, Arc::clone(&secrets))).transpose()?;
        let needs_store = options.state.is_some() || options.libraries.is_some();
        let store = needs_store.then(|| StoreOptions {
            file: options.file.clone(),
            agent: options.agent.clone(),
            ..StoreOptions::default()
        });
        let store = store.map(|store| Store::open(&store)).transpose().map_err(unopened)?;
        let db = options.db.as_ref().map(|db| {
            let options = DatabaseOptions {
                file: db.file.clone(),
                read_only: db.read_only,
                limits: db.limits,
            };
            Database::open(&options)
        });
        let db = db.transpose().map_err(unopened)?;
        options.check_opened_files()?;
        let of_store = store.as_ref();
        let state = of_store.zip(options.state).map(|(store, limits)| State::new(store, limits));
        let libraries = of_store
            .zip(options.libraries)
            .map(|(store, limits)| Libraries::new(store, limits.stored));
        let page = options.browser.as_ref().map(|settings| {
            Page::new(Arc::clone(&settings.browser), browser.clone(), Arc::clone(&secrets))
        });
        let mut inner = Inner {
            process: isolane::process_id(),
            options,
            secrets,
            store,
            state,
            libraries,
            db,
            fetcher,
            page,
            rules: browser,
            proxy: OnceCell::new(),
            functions: Functions::default(),
            tool_names: Arc::default(),
            code_names: Arc::default(),
            live: Live::default(),
            callers: Callers::default(),
        };
        inner.functions = inner.functions();
        inner.tool_names = Arc::new(inner.names(Kind::Tool));
        inner.code_names = Arc::new(inner.names(Kind::Code));
        let inner = Arc::new(inner);
        let owner = Owner { inner: Arc::clone(&inner), key: OnceLock::new() };
        Ok(Self { owner: Arc::new(owner), inner })
    }

    /// The runtime on which runs and sessions of the kit are started.
    #[must_use]
    pub fn runtime(&self) -> Runtime {
        self.inner.options.runtime.clone().unwrap_or_else(Runtime::shared)
    }

    /// The names that modules and sessions see of the kit, beside properties such as `URL`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.inner.code_names.names
    }

    /// Whether the kit is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.live.is_closed()
    }

    /// Whether runs may start, and the host may use the kit.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        self.inner.open()
    }

    /// Waits until no command uses the page, if there is one, but no longer than that takes of a page that answers.
    pub(crate) fn page_at_rest(&self) -> impl Future<Output = ()> + Send + use<> {
        let page = self.inner.page.clone();
        async move {
            if let Some(page) = page {
                // It fails only if the system has no thread for it.
                let _ = isolane::spawn(async move { page.at_rest().await }).await;
            }
        }
    }

    /// Closes the kit: new runs are refused, live ones are terminated (`kit closed`), sessions and files are closed.
    /// Returns at once. May be called again.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.inner;
        out.debug_struct("Kit").field("live", &inner.live).finish_non_exhaustive()
    }
}

impl Inner {
    fn close(&self) {
        // A child has its parent's kit as it was when it was forked: any lock may be held.
        if self.is_of_parent() || !self.live.close() {
            return;
        }
        self.store.iter().for_each(Store::close);
        self.db.iter().for_each(Database::close);
        self.fetcher.iter().for_each(Fetcher::close);
        self.proxy.get().into_iter().for_each(Proxy::close);
    }

    fn is_of_parent(&self) -> bool {
        self.process != isolane::process_id()
    }

    /// Whether it may be used.
    fn open(&self) -> Result<(), Error> {
        if self.is_of_parent() {
            let why = "the kit was opened before this process was forked, which kits do not survive: \
                       open a new one";
            return Err(Error::new(ErrorKind::Unavailable, why));
        }
        if self.live.is_closed() {
            return Err(Error::new(ErrorKind::Type, "the kit is closed"));
        }
        Ok(())
    }

    /// The functions of a new run's requests.
    fn run_fetch(&self) -> Option<FetchFunctions> {
        let fetcher = self.fetcher.clone()?;
        let limits = RunLimits::new(fetcher.limits());
        Some(FetchFunctions::new(fetcher, limits, |_| {}))
    }

    fn functions(&self) -> Functions {
        let extension = &isolane_kit_realm::EXTENSION;
        let mut functions = vec![None; extension.natives.len()];
        let mut put = |name: &str, function: Arc<dyn NativeFunction>| {
            let place = extension.native(name).expect("a function of the kit");
            functions[place] = Some(function);
        };
        let longest = Duration::from_millis(self.options.timers.max_delay_ms);
        let delays = Delays::new(longest);
        put("delay", delays.delay());
        put("cancel", delays.cancel());
        for name in UTILITY_FUNCTIONS {
            put(name, crate::function(name).expect("a function of the kit"));
        }
        if self.fetcher.is_some() {
            put("fetch", Arc::new(Fetch));
            put("abort", Arc::new(Abort));
        }
        if let Some(libraries) = &self.libraries {
            put("library", counted(libraries.function(), "require", false));
        }
        for (name, function) in self.state.iter().flat_map(State::functions) {
            let record = match name {
                "get" => "state.get",
                "set" => "state.set",
                "delete" => "state.delete",
                _ => "state.keys",
            };
            put(record, counted(function, record, true));
        }
        for (name, function) in self.db.iter().flat_map(Database::functions) {
            let record = match name {
                "sql" => "db.sql",
                "batch" => "db.batch",
                _ => "db.schema",
            };
            put(record, counted(function, record, true));
        }
        for (name, function) in self.page.iter().flat_map(browser_functions) {
            let (record, shows) = match name {
                "navigate" => ("browser.navigate", Shows::Url),
                "screenshot" => ("browser.screenshot", Shows::Nothing),
                "click" => ("browser.click", Shows::Text),
                "type" => ("browser.type", Shows::Text),
                "extractText" => ("browser.extractText", Shows::Text),
                "extractHtml" => ("browser.extractHtml", Shows::Text),
                "evaluate" => ("browser.evaluate", Shows::Nothing),
                _ => ("browser.close", Shows::Nothing),
            };
            put(record, Arc::new(Counted { function, name: record, is_awaited: false, shows }));
        }
        functions.into()
    }
}

fn browser_functions(page: &Page) -> [(&'static str, Arc<dyn NativeFunction>); 8] {
    // The calls are recorded with those of all capabilities.
    BrowserFunctions::new(page.clone(), |_| {}).functions()
}

fn counted(
    function: Arc<dyn NativeFunction>,
    name: &'static str,
    is_awaited: bool,
) -> Arc<dyn NativeFunction> {
    Arc::new(Counted { function, name, is_awaited, shows: Shows::Text })
}

/// The error of a database that cannot be opened. Its message names the file.
fn unopened(error: HostError) -> Error {
    Error::new(ErrorKind::Internal, error.message)
}

#[cfg(test)]
mod tests {
    use isolane::{ExtensionReturns, NativeMode};

    use super::*;
    use crate::store::StateLimits;

    #[test]
    fn the_extension_knows_what_each_function_returns() {
        let kit = Kit::new(KitOptions {
            state: Some(StateLimits::default()),
            db: Some(DbOptions::default()),
            libraries: Some(LibraryOptions::default()),
            fetch: Some(FetchSettings::default()),
            ..KitOptions::default()
        })
        .expect("a kit");
        let known = isolane_kit_realm::EXTENSION.natives.iter().zip(kit.inner.functions.iter());
        for (native, function) in known {
            let Some(function) = function else {
                assert!(native.name.starts_with("browser."), "{}", native.name);
                continue;
            };
            let is_async = function.mode() == NativeMode::Async;
            assert_eq!(is_async, native.returns != ExtensionReturns::Value, "{}", native.name);
        }
    }
}
