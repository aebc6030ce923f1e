//! The kit's extension: trusted JavaScript that is a part of the realms of runs through a kit.
//!
//! In: for some runs the input that `open.js` describes. Out: what code sees of a kit, in JavaScript, around the kit's
//! native functions. The files are the parts of one function, each a concept, in an order in which they can be evaluated.
//!
//! A crate of its own, because the executable of workers needs it, and nothing else of the kit.

use isolane::{Extension, ExtensionFunction, ExtensionReturns};

/// For [`install_extension`](isolane::install_extension), in a host and in its workers.
pub static EXTENSION: Extension = Extension {
    name: "kit",
    source: concat!(
        "(host) => {\n'use strict';\n",
        include_str!("intrinsics.js"),
        include_str!("json_form.js"),
        include_str!("timers.js"),
        include_str!("tool.js"),
        include_str!("events.js"),
        include_str!("text_encoding.js"),
        include_str!("url.js"),
        include_str!("crypto.js"),
        include_str!("fetch.js"),
        include_str!("require.js"),
        include_str!("state.js"),
        include_str!("base64.js"),
        include_str!("params.js"),
        include_str!("calls.js"),
        include_str!("open.js"),
        "}"
    ),
    names: &[
        "setTimeout",
        "setInterval",
        "clearTimeout",
        "clearInterval",
        "atob",
        "btoa",
        "parseCSV",
        "fetch",
        "state",
        "db",
        "require",
        "resolve",
        "secrets",
        "browser",
    ],
    properties: &[
        "URL",
        "URLSearchParams",
        "TextEncoder",
        "TextDecoder",
        "crypto",
        "AbortController",
        "AbortSignal",
        "Event",
        "EventTarget",
        "DOMException",
    ],
    natives: &[
        later("delay"),
        now("cancel"),
        now("atob"),
        now("btoa"),
        now("parseCSV"),
        now("random"),
        now("url"),
        now("urlSet"),
        now("decodeUtf8"),
        now("encodeUtf8"),
        later("fetch"),
        now("abort"),
        now("library"),
        json("state.get").told(),
        soon("state.set"),
        soon("state.delete"),
        soon("state.keys"),
        later("db.sql").told(),
        later("db.batch").told(),
        later("db.schema").told(),
        later("browser.navigate").told(),
        later("browser.screenshot").told(),
        later("browser.click").told(),
        later("browser.type").told(),
        later("browser.extractText").told(),
        later("browser.extractHtml").told(),
        later("browser.evaluate").told(),
        later("browser.close").told(),
    ],
};

/// A native function for which code waits.
const fn now(name: &'static str) -> ExtensionFunction {
    ExtensionFunction::new(name, ExtensionReturns::Value)
}

/// A native function that answers with a promise.
const fn later(name: &'static str) -> ExtensionFunction {
    ExtensionFunction::new(name, ExtensionReturns::Promise)
}

/// A native function that answers with a promise of a value, whose text in JSON it gives.
const fn json(name: &'static str) -> ExtensionFunction {
    ExtensionFunction::new(name, ExtensionReturns::Json)
}

/// A native function that answers at once if it can.
const fn soon(name: &'static str) -> ExtensionFunction {
    ExtensionFunction::new(name, ExtensionReturns::Either)
}
