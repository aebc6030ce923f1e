//! `browser`: a page of the host's, which code may use as the host's own tools do.
//!
//! In: calls of runs, and a [`Browser`], which does eight simple things on a page. Out: answers, or errors by name. This
//! module judges, waits, bounds and redacts; the adapters of each language only speak to their library. Begin to read at
//! `functions.rs`.

mod abandonment;
mod answer;
#[cfg(all(unix, feature = "chromium"))]
mod chromium;
mod driven;
mod functions;
mod judge;
mod request;
mod script;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use isolane::NativeRun;
use tokio::sync::Mutex;

use crate::{
    fetch::{Resolver, SystemResolver, address::Addresses, allow::Allow},
    secrets::Secrets,
};

#[cfg(all(unix, feature = "chromium"))]
pub use chromium::{Chromium, ChromiumOptions, Network, Sandbox};
pub use driven::{DrivenBrowser, Task};
pub use functions::{BrowserFunctions, BrowserRecord};

/// The most bytes of an error's message.
const MOST_MESSAGE_BYTES: usize = 500;

/// The outcome of a [`Command`].
pub type Performed = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send>>;

/// The page of the host. It opens one when there is none, and opens a new one after [`Command::Close`].
pub trait Browser: Send + Sync + 'static {
    /// Does one thing on the page for that run, and stops waiting for it after that time, or as soon as the run gives it
    /// up. Commands come one at a time.
    ///
    /// # Errors
    /// The time is over, or the browser says why not.
    fn perform(&self, command: Command, timeout: Duration, run: &NativeRun) -> Performed;
}

/// One thing to do on the page. Selectors take the first match and wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Goes to a URL. Gives [`Answer::Arrived`].
    Navigate {
        /// It is absolute.
        url: String,
        /// The event that ends the wait.
        wait_until: WaitUntil,
    },
    /// Takes a picture. Gives [`Answer::Bytes`]: a PNG.
    Screenshot {
        /// The element; `None` stands for the page.
        selector: Option<String>,
        /// Whether the picture has the page below the window, too.
        full_page: bool,
    },
    /// Clicks an element. Gives [`Answer::Nothing`].
    Click {
        /// The element.
        selector: String,
    },
    /// Types a text into an element. Gives [`Answer::Nothing`].
    Type {
        /// The element.
        selector: String,
        /// The text.
        text: String,
        /// Whether the element is cleared before.
        clear_first: bool,
    },
    /// Reads a property of an element. Gives [`Answer::Text`], or [`Answer::TooLarge`] for one of more UTF-16 units.
    Read {
        /// The element.
        selector: String,
        /// The property.
        property: Property,
        /// The most units.
        most_units: u64,
    },
    /// Evaluates an expression of JavaScript in the page, which gives a text or a promise of one. Gives
    /// [`Answer::Text`].
    Evaluate {
        /// The expression.
        expression: String,
    },
    /// Stops what the page loads, at once. Gives [`Answer::Arrived`] with the URL where the page is, without a title and a
    /// status; [`Answer::Nothing`] if there is no page. An adapter that cannot stop a page fails: the page is left then.
    Halt,
    /// Closes the page. Gives [`Answer::Nothing`].
    Close,
}

/// The event that ends a navigation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitUntil {
    /// Everything is loaded.
    #[default]
    Load,
    /// The document is parsed.
    DomContentLoaded,
    /// There was no request for half a second.
    NetworkIdle,
}

impl WaitUntil {
    /// Its name in Playwright.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::DomContentLoaded => "domcontentloaded",
            Self::NetworkIdle => "networkidle",
        }
    }
}

/// A property of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The text as it is shown.
    InnerText,
    /// The HTML of the content.
    InnerHtml,
    /// The HTML of the element.
    OuterHtml,
}

impl Property {
    /// Its name in the DOM.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InnerText => "innerText",
            Self::InnerHtml => "innerHTML",
            Self::OuterHtml => "outerHTML",
        }
    }
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Nothing,
    /// The page has arrived.
    Arrived {
        /// The URL where it is.
        url: String,
        /// Its title.
        title: String,
        /// The status of the answer; 0 if there was none.
        status: u16,
    },
    /// A text.
    Text(String),
    /// The text has too many units.
    TooLarge,
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The failure of a [`Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The time was over, or nobody waits any more.
    Timeout,
    /// The same, of a navigation that the adapter has stopped. The page is at this URL now.
    Stopped(String),
    /// The browser's message, of which code sees the first line.
    Other(String),
}

/// The limits of `browser`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrowserLimits {
    /// The time of one call, milliseconds, from the moment at which it has the page. 30,000.
    pub timeout_ms: u64,
    /// The most bytes of an answer. 16 MiB.
    pub max_result_bytes: u64,
}

impl Default for BrowserLimits {
    fn default() -> Self {
        Self { timeout_ms: 30_000, max_result_bytes: 16 << 20 }
    }
}

/// The options of a [`Page`].
#[derive(Clone)]
pub struct BrowserOptions {
    /// The URLs to which code may go.
    pub allow: Allow,
    /// The addresses that may be reached.
    pub addresses: Addresses,
    /// Looks up names.
    pub resolver: Arc<dyn Resolver>,
    /// The limits.
    pub limits: BrowserLimits,
}

impl BrowserOptions {
    /// These URLs, at public addresses, with the limits and the resolver that are usual.
    #[must_use]
    pub fn new(allow: Allow) -> Self {
        Self {
            allow,
            addresses: Addresses::default(),
            resolver: Arc::new(SystemResolver::default()),
            limits: BrowserLimits::default(),
        }
    }
}

impl fmt::Debug for BrowserOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("BrowserOptions");
        out.field("allow", &self.allow).field("addresses", &self.addresses);
        out.field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The page of a kit: a browser with rules. All clones are one, and take turns.
#[derive(Clone)]
pub struct Page(Arc<Inner>);

struct Inner {
    browser: Arc<dyn Browser>,
    options: BrowserOptions,
    secrets: Arc<Secrets>,
    /// Held by the call that uses the page.
    turn: Arc<Mutex<()>>,
    /// Whether the page may be where code may not go: a navigation has begun, and nobody has judged its end.
    is_unjudged: AtomicBool,
}

impl Page {
    /// Waits until no command is under way, but no longer than it takes to leave a page.
    pub(crate) async fn at_rest(&self) {
        // One that does not answer stays in use.
        let _ = tokio::time::timeout(2 * functions::LEAVE, self.0.turn.lock()).await;
    }

    /// A page with these rules, for a kit with these secrets.
    #[must_use]
    pub fn new(browser: Arc<dyn Browser>, options: BrowserOptions, secrets: Arc<Secrets>) -> Self {
        let (turn, is_unjudged) = (Arc::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { browser, options, secrets, turn, is_unjudged }))
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Page").field("options", &self.0.options).finish_non_exhaustive()
    }
}
