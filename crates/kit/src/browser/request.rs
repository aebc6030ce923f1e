//! The requests of code, as they are read from the arguments of its calls.
//!
//! In: a method and arguments. Out: a request, or the TypeError that says what the method takes.

use isolane::NativeCall;
use serde::Deserialize;
use url::Url;

use super::{Command, Property, WaitUntil, functions::most_units};
use crate::error::KitError;

/// A function of `browser`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    Navigate,
    Screenshot,
    Click,
    Type,
    ExtractText,
    ExtractHtml,
    Evaluate,
    Close,
}

pub(super) const METHODS: [(&str, Method); 8] = [
    ("navigate", Method::Navigate),
    ("screenshot", Method::Screenshot),
    ("click", Method::Click),
    ("type", Method::Type),
    ("extractText", Method::ExtractText),
    ("extractHtml", Method::ExtractHtml),
    ("evaluate", Method::Evaluate),
    ("close", Method::Close),
];

impl Method {
    /// The name in errors and in an audit.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Navigate => "browser.navigate",
            Self::Screenshot => "browser.screenshot",
            Self::Click => "browser.click",
            Self::Type => "browser.type",
            Self::ExtractText => "browser.extractText",
            Self::ExtractHtml => "browser.extractHtml",
            Self::Evaluate => "browser.evaluate",
            Self::Close => "browser.close",
        }
    }
}

/// The arguments of all methods: a first one, which most take, a second text, and options.
#[derive(Deserialize)]
struct Arguments<O> {
    #[serde(default)]
    first: Option<String>,
    #[serde(default = "Option::default")]
    options: Option<O>,
}

#[derive(Deserialize)]
struct TypeArguments {
    selector: String,
    text: String,
    #[serde(default)]
    options: Option<TypeOptions>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NavigateOptions {
    wait_until: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScreenshotOptions {
    selector: Option<String>,
    full_page: Option<bool>,
}

#[derive(Deserialize)]
struct ScreenshotArguments {
    #[serde(default)]
    options: Option<ScreenshotOptions>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TypeOptions {
    clear_first: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HtmlOptions {
    outer: Option<bool>,
}

#[derive(Deserialize)]
struct NoOptions {}

/// The request of a call.
pub(super) enum Request {
    /// A navigation, which is judged.
    Navigate(Url, WaitUntil),
    /// Code for the page.
    Evaluate(String),
    /// Anything else, as it is.
    Plain(Command),
}

impl Request {
    pub(super) fn read(
        method: Method,
        call: &NativeCall,
        most_bytes: u64,
    ) -> Result<Self, KitError> {
        let wrong =
            |takes: &str| KitError::wrong_arguments(format!("{} takes {takes}", method.name()));
        let selector = |takes: &str| -> Result<Option<String>, KitError> {
            let read = call.arguments::<Arguments<NoOptions>>().map_err(|_| wrong(takes))?;
            Ok(read.first)
        };
        let most_units = most_units(most_bytes);
        Ok(match method {
            Method::Navigate => {
                let takes =
                    "a URL, and { wait_until } with 'load', 'domcontentloaded' or 'networkidle'";
                let read = call.arguments::<Arguments<NavigateOptions>>();
                let Arguments { first, options } = read.map_err(|_| wrong(takes))?;
                let url = first.ok_or_else(|| wrong(takes))?;
                let url = Url::parse(&url).map_err(|_| wrong("an absolute URL"))?;
                if !(url.username().is_empty() && url.password().is_none()) {
                    return Err(wrong("a URL without a user"));
                }
                let known = [WaitUntil::Load, WaitUntil::DomContentLoaded, WaitUntil::NetworkIdle];
                let wait_until = match options.and_then(|options| options.wait_until) {
                    None => WaitUntil::default(),
                    Some(name) => {
                        let known = known.into_iter().find(|event| event.name() == name);
                        known.ok_or_else(|| wrong(takes))?
                    }
                };
                Self::Navigate(url, wait_until)
            }
            Method::Screenshot => {
                let read = call.arguments::<ScreenshotArguments>();
                let read = read.map_err(|_| wrong("{ selector, full_page }"))?;
                let ScreenshotOptions { selector, full_page } = read.options.unwrap_or_default();
                let full_page = full_page.unwrap_or(false);
                Self::Plain(Command::Screenshot { selector, full_page })
            }
            Method::Click => {
                let selector = selector("a selector")?.ok_or_else(|| wrong("a selector"))?;
                Self::Plain(Command::Click { selector })
            }
            Method::Type => {
                let read = call.arguments::<TypeArguments>();
                let takes = "a selector, a text and { clear_first }";
                let TypeArguments { selector, text, options } = read.map_err(|_| wrong(takes))?;
                let clear_first = options.and_then(|options| options.clear_first).unwrap_or(false);
                Self::Plain(Command::Type { selector, text, clear_first })
            }
            Method::ExtractText => {
                let selector = selector("a selector, or nothing")?;
                let selector = selector.unwrap_or_else(|| "body".to_owned());
                Self::Plain(Command::Read { selector, property: Property::InnerText, most_units })
            }
            Method::ExtractHtml => {
                let read = call.arguments::<Arguments<HtmlOptions>>();
                let read = read.map_err(|_| wrong("a selector, and { outer }"))?;
                let outer = read.options.and_then(|options| options.outer).unwrap_or(false);
                let property = if outer { Property::OuterHtml } else { Property::InnerHtml };
                let selector = read.first.unwrap_or_else(|| "html".to_owned());
                Self::Plain(Command::Read { selector, property, most_units })
            }
            Method::Evaluate => {
                let code = selector("code")?.ok_or_else(|| wrong("code"))?;
                Self::Evaluate(code)
            }
            Method::Close => Self::Plain(Command::Close),
        })
    }

    /// The texts that reach the page.
    pub(super) fn texts(&self) -> [&str; 2] {
        match self {
            Self::Navigate(url, _) => [url.as_str(), ""],
            Self::Evaluate(code) => [code, ""],
            Self::Plain(Command::Type { selector, text, .. }) => [selector, text],
            Self::Plain(Command::Click { selector } | Command::Read { selector, .. }) => {
                [selector, ""]
            }
            Self::Plain(Command::Screenshot { selector, .. }) => {
                [selector.as_deref().unwrap_or_default(), ""]
            }
            Self::Plain(_) => ["", ""],
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            Self::Navigate(url, _) => {
                let text = url.as_str();
                text[..text.find(['?', '#']).unwrap_or(text.len())].to_owned()
            }
            Self::Evaluate(_) => String::new(),
            Self::Plain(_) => self.texts()[0].to_owned(),
        }
    }
}
