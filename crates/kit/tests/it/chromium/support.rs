//! Kits with a Chromium, for tests.

use std::{
    env,
    path::PathBuf,
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use isolane::{Runtime, Status};
use isolane_kit::{
    AllowOption, BrowserSettings, FetchSettings, Kit, KitOptions, KitResult, ToolOptions,
    browser::{BrowserLimits, Chromium, ChromiumOptions, Network},
    fetch::allow::AllowEntry,
};
use serde_json::{Value as Json, json};

use super::server::Server;

use crate::place;

/// A generous bound for events that happen soon.
pub(crate) const CEILING: Duration = Duration::from_mins(2);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new(&place::options()).expect("valid options"));

const FAILS: &str = "const fails = async (call) => { try { return await call } catch (e) { return [e.name, e.message] } };";

/// Chromium without a proxy; `None`, and a sentence, where there is none. Continuous integration has it.
pub(crate) fn chromium(amend: impl FnOnce(&mut ChromiumOptions)) -> Option<Chromium> {
    let mut options = ChromiumOptions {
        executable: env::var_os("ISOLANE_CHROMIUM").map(PathBuf::from),
        network: Network::Direct,
        ..ChromiumOptions::default()
    };
    amend(&mut options);
    match Chromium::new(options) {
        Ok(chromium) => Some(chromium),
        Err(error) if env::var_os("CI").is_none() => {
            println!("skipped, as there is no Chromium here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Options of a kit with that browser, which may use the server.
pub(crate) fn options(chromium: &Chromium, server: &Server) -> KitOptions {
    let allow = [AllowEntry::from(format!("http://127.0.0.1:{}/*", server.port).as_str())];
    let fetch = FetchSettings {
        allow: AllowOption::List(allow.into()),
        allow_addresses: vec!["127.0.0.1".to_owned()],
        ..FetchSettings::default()
    };
    let browser = BrowserSettings {
        browser: Arc::new(chromium.clone()),
        allow: None,
        limits: BrowserLimits { timeout_ms: 120_000, ..BrowserLimits::default() },
    };
    KitOptions {
        fetch: Some(fetch),
        browser: Some(browser),
        runtime: Some(RUNTIME.clone()),
        timeout_ms: 300_000,
        ..KitOptions::default()
    }
}

fn run(kit: &Kit, source: &str, args: &Json) -> KitResult {
    let args = args.as_object().cloned().unwrap_or_default().into_iter();
    let args = args.map(|(name, value)| (name, value.to_string()));
    let args: Vec<String> = args.map(|(name, json)| format!("{name}: {json}")).collect();
    let source = format!("const args = {{ {} }}; {FAILS} {source}", args.join(", "));
    kit.run_tool(source, ToolOptions::default()).wait().expect("a run")
}

#[expect(clippy::needless_pass_by_value, reason = "calls write it in place")]
pub(crate) fn value(kit: &Kit, source: &str, args: Json) -> Json {
    let result = run(kit, source, &args);
    assert_eq!(result.status, Status::Success, "{:?}", result.error);
    serde_json::from_str(result.json.as_deref().unwrap_or("null")).expect("JSON")
}

/// A kit with a Chromium, and a server; nothing where there is no Chromium.
pub(crate) struct Test {
    pub(crate) kit: Kit,
    pub(crate) chromium: Closes,
    pub(crate) server: Server,
}

/// A Chromium that is closed with its test.
pub(crate) struct Closes(pub(crate) Chromium);

impl Drop for Closes {
    fn drop(&mut self) {
        block_on(self.0.close());
    }
}

impl Test {
    pub(crate) fn new() -> Option<Self> {
        Self::with(|_| {}, |_| {})
    }

    pub(crate) fn with(
        amend_browser: impl FnOnce(&mut ChromiumOptions),
        amend_kit: impl FnOnce(&mut KitOptions),
    ) -> Option<Self> {
        let chromium = Closes(chromium(amend_browser)?);
        let server = Server::new();
        let mut options = options(&chromium.0, &server);
        amend_kit(&mut options);
        Some(Self { kit: Kit::new(options).expect("a kit"), chromium, server })
    }

    pub(crate) fn limited(limits: BrowserLimits) -> Option<Self> {
        Self::with(
            |_| {},
            |options| {
                options.browser.as_mut().expect("a browser").limits = limits;
            },
        )
    }

    /// Does what takes its time limits: with one in which Chromium does not come as far as it should on this machine, it
    /// gets a longer one. `act` gives what it has, and what it should have.
    pub(crate) fn within_limits(act: impl Fn(&Self, u64) -> (Json, Json)) {
        let limits_ms = [3_000, 10_000, 30_000, 90_000];
        for limit_ms in limits_ms {
            let limits = BrowserLimits { timeout_ms: limit_ms, ..BrowserLimits::default() };
            let Some(test) = Self::limited(limits) else { return };
            // The start of Chromium is no part of what is limited here.
            test.result("await browser.extractText()");
            let (seen, expected) = act(&test, limit_ms);
            if seen == expected {
                return;
            }
            assert_ne!(limit_ms, limits_ms[3], "{seen}, not {expected}");
        }
    }

    /// The value of a tool, or its error.
    pub(crate) fn result(&self, source: &str) -> Json {
        self.result_at(&self.server.at("/"), source)
    }

    /// The same, with that URL as `args.url`.
    pub(crate) fn result_at(&self, url: &str, source: &str) -> Json {
        let result = run(&self.kit, source, &json!({ "url": url }));
        match &result.error {
            Some(error) => json!([error.name, error.message]),
            None => serde_json::from_str(result.json.as_deref().unwrap_or("null")).expect("JSON"),
        }
    }

    /// The value of a tool that sees the server's root as `args.url`.
    pub(crate) fn value(&self, source: &str) -> Json {
        value(&self.kit, source, json!({ "url": self.server.at("/") }))
    }

    /// The same, with a document of its own at `args.url`.
    pub(crate) fn value_on(&self, html: &str, source: &str) -> Json {
        let url = self.server.show("/document", html);
        let source = format!("await browser.navigate(args.url); {source}");
        value(&self.kit, &source, json!({ "url": url }))
    }
}

pub(crate) fn until(event: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(began.elapsed() < CEILING, "never: {event}");
        thread::sleep(Duration::from_millis(10));
    }
}
