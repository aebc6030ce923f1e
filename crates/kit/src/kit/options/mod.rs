//! The options of a kit.
//!
//! In: a struct, which a caller in Rust fills and a binding reads from a message (`options/read.rs`). Out: the same,
//! checked before anything opens; each error names its option as the caller's language spells it.

mod checks;
mod read;

pub(crate) use self::read::spelled;
pub(super) use self::{checks::Checked, read::read_secret};

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use isolane::{Runtime, Spelling};

use crate::{
    browser::{Browser, BrowserLimits},
    fetch::{FetchLimits, Resolver, allow::AllowEntry},
    secrets::SecretOptions,
    store::{DatabaseLimits, LibraryLimits, StateLimits},
};

/// The options of a [`Kit`](super::Kit). One that is not given does not exist for code; `console`, timers, Base64 and
/// `parseCSV` always do.
#[derive(Clone, Debug)]
pub struct KitOptions {
    /// The owner of the state and of the libraries. `default`.
    pub agent: String,
    /// The SQLite file of the state and of the libraries, which is made if it is missing; `None` for memory.
    pub file: Option<PathBuf>,
    /// `state`.
    pub state: Option<StateLimits>,
    /// `require`.
    pub libraries: Option<LibraryOptions>,
    /// `db`.
    pub db: Option<DbOptions>,
    /// `fetch`.
    pub fetch: Option<FetchSettings>,
    /// `browser`.
    pub browser: Option<BrowserSettings>,
    /// `secrets`, by their names.
    pub secrets: Option<BTreeMap<String, SecretOptions>>,
    /// Whether there are `URL`, `TextEncoder`, `crypto`, `AbortController` and their kin. `true`.
    pub web: bool,
    /// The limits of timers.
    pub timers: TimerLimits,
    /// The runtime of all runs, [`Runtime::shared`] if `None`.
    pub runtime: Option<Runtime>,
    /// The time limit of a run, milliseconds, unless the run has its own. 30,000.
    pub timeout_ms: u64,
    /// The memory limit of a run, bytes, unless the run has its own. 128 MiB.
    pub memory_limit_bytes: u64,
    /// The most calls of a run of all capabilities but utilities. 10,000.
    pub max_calls: u64,
    /// The most calls of a run that are recorded. 1,000.
    pub max_recorded_calls: u64,
    /// The spelling of options in errors.
    pub spelling: Spelling,
}

impl Default for KitOptions {
    fn default() -> Self {
        Self {
            agent: "default".to_owned(),
            file: None,
            state: None,
            libraries: None,
            db: None,
            fetch: None,
            browser: None,
            secrets: None,
            web: true,
            timers: TimerLimits::default(),
            runtime: None,
            timeout_ms: 30_000,
            memory_limit_bytes: 128 << 20,
            max_calls: 10_000,
            max_recorded_calls: 1_000,
            spelling: Spelling::Snake,
        }
    }
}

/// The limits of `require` and of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryOptions {
    /// The most libraries that require each other in a chain. 10.
    pub max_depth: u64,
    /// The limits of what is stored.
    pub stored: LibraryLimits,
}

impl Default for LibraryOptions {
    fn default() -> Self {
        Self { max_depth: 10, stored: LibraryLimits::default() }
    }
}

/// The options of `db`.
#[derive(Clone, Debug, Default)]
pub struct DbOptions {
    /// The file, which is made if it is missing; `None` for a database in memory. Not the file of the state.
    pub file: Option<PathBuf>,
    /// Whether nothing may be written. The file must exist.
    pub read_only: bool,
    /// The limits.
    pub limits: DatabaseLimits,
}

/// The requests that `fetch` may make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowOption {
    /// `'public'`: http and https to any host.
    #[default]
    Public,
    /// Those that one of the entries allows.
    List(Vec<AllowEntry>),
}

/// The options of `fetch`.
#[derive(Clone, Default)]
pub struct FetchSettings {
    /// The requests that are allowed.
    pub allow: AllowOption,
    /// Networks (CIDRs) that may be dialled although they are not public.
    pub allow_addresses: Vec<String>,
    /// Certificates in PEM of authorities that are trusted beside Mozilla's.
    pub ca: Option<String>,
    /// The limits.
    pub limits: FetchLimits,
    /// Looks up names; the system's resolver if `None`.
    pub resolver: Option<Arc<dyn Resolver>>,
}

impl fmt::Debug for FetchSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("FetchSettings");
        out.field("allow", &self.allow).field("allow_addresses", &self.allow_addresses);
        out.field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The options of `browser`.
#[derive(Clone)]
pub struct BrowserSettings {
    /// The page.
    pub browser: Arc<dyn Browser>,
    /// The URLs to which code may go: `fetch`'s if `None`, and without `fetch` all that are public. The addresses are
    /// those that `fetch` may dial.
    pub allow: Option<AllowOption>,
    /// The limits.
    pub limits: BrowserLimits,
}

impl fmt::Debug for BrowserSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("BrowserSettings");
        out.field("allow", &self.allow).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The limits of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerLimits {
    /// The longest delay, milliseconds; longer ones are cut. 30,000.
    pub max_delay_ms: u64,
    /// The most timers that are pending at a time. 1,000.
    pub max_pending: u64,
}

impl Default for TimerLimits {
    fn default() -> Self {
        Self { max_delay_ms: 30_000, max_pending: 1_000 }
    }
}

/// The limits of a group of options, by their names in Rust.
trait Limits {
    fn each(&mut self) -> Vec<(&'static str, &mut u64)>;
}

macro_rules! limits {
    ($($group:ty { $($name:ident),* $(,)? })*) => {$(
        impl Limits for $group {
            fn each(&mut self) -> Vec<(&'static str, &mut u64)> {
                vec![$((stringify!($name), &mut self.$name)),*]
            }
        }
    )*};
}

limits! {
    KitOptions { timeout_ms, memory_limit_bytes, max_calls, max_recorded_calls }
    StateLimits { max_key_bytes, max_value_bytes, max_total_bytes }
    LibraryLimits { max_source_bytes, max_count }
    TimerLimits { max_delay_ms, max_pending }
    BrowserLimits { timeout_ms, max_result_bytes }
    DatabaseLimits {
        max_rows, max_result_bytes, max_value_bytes, max_statement_bytes, max_file_bytes, timeout_ms,
    }
    FetchLimits {
        timeout_ms, max_redirects, max_request_bytes, max_response_bytes, max_in_flight, max_calls,
        max_total_bytes,
    }
}

impl Limits for LibraryOptions {
    fn each(&mut self) -> Vec<(&'static str, &mut u64)> {
        let mut limits = self.stored.each();
        limits.insert(0, ("max_depth", &mut self.max_depth));
        limits
    }
}
