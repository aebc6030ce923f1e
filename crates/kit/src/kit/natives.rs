//! The functions of a kit for the sandbox, with limits and records.
//!
//! In: functions of the capabilities. Out: the same, each call counted for the run that makes it.

use std::sync::Arc;

use isolane::{
    NativeAnswer, NativeCall, NativeFunction, NativeMode, Value,
    value::{Event, Str},
};

use super::{
    calls::{MOST_KEPT_BYTES, Summary},
    run::{RunState, size},
};
use crate::{error::KitError, fetch::Progress};

/// A function whose calls are counted and recorded.
pub(super) struct Counted {
    pub(super) function: Arc<dyn NativeFunction>,
    /// The name in records.
    pub(super) name: &'static str,
    /// Whether the end of the run waits for its calls.
    pub(super) is_awaited: bool,
    pub(super) shows: Shows,
}

/// The summary of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// The first text of its arguments: a key, a statement, a name, a selector.
    Text,
    /// The same without the query of a URL.
    Url,
    /// Nothing: its arguments are code, or there are none.
    Nothing,
}

impl NativeFunction for Counted {
    fn name(&self) -> &str {
        self.name
    }

    fn mode(&self) -> NativeMode {
        self.function.mode()
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let Some(run) = RunState::of(&call.run) else { return no_kit() };
        let summary = Summary::Text(match self.shows {
            Shows::Text => first_text(&call.args),
            Shows::Url => without_user(without_query(&first_text(&call.args))),
            Shows::Nothing => String::new(),
        });
        let begun = run.begin(self.name, (summary, size(&call.args)), &call.run, self.is_awaited);
        let pending = match begun {
            Ok(pending) => pending,
            Err(error) => return Err(error.to_value()).into(),
        };
        match self.function.call(call) {
            NativeAnswer::Now(completion) => {
                pending.finish(&completion);
                completion.into()
            }
            NativeAnswer::Blocking(work) => NativeAnswer::blocking(move || {
                let completion = work();
                pending.finish(&completion);
                completion
            }),
            NativeAnswer::Later(future) => NativeAnswer::later(async move {
                let completion = future.await;
                pending.finish(&completion);
                completion
            }),
            NativeAnswer::Repeatable(make) => {
                // It only waits.
                pending.finish(&Ok(Value::undefined()));
                NativeAnswer::Repeatable(make)
            }
        }
    }
}

/// `fetch`: requests of the run that calls.
pub(super) struct Fetch;

impl NativeFunction for Fetch {
    fn name(&self) -> &'static str {
        "fetch"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let Some(run) = RunState::of(&call.run) else { return no_kit() };
        let Some(functions) = run.fetch.clone() else { return no_kit() };
        let progress = Progress::new();
        let summary = Summary::Request(progress.clone(), request_line(&call.args));
        let pending = match run.begin("fetch", (summary, 0), &call.run, false) {
            Ok(pending) => pending,
            Err(error) => return Err(error.to_value()).into(),
        };
        NativeAnswer::later(async move {
            let answer = functions.answer(call, &progress).await;
            let completion = answer.map_err(|error| error.to_value());
            pending.finish(&completion);
            completion
        })
    }
}

/// `abort`: the end of a request of the run, or of an earlier cell.
pub(super) struct Abort;

impl NativeFunction for Abort {
    fn name(&self) -> &'static str {
        "fetch.abort"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        match RunState::of(&call.run).and_then(|run| run.fetch.clone()) {
            Some(functions) => functions.abort().call(call),
            None => no_kit(),
        }
    }
}

fn no_kit() -> NativeAnswer {
    Err(KitError::new("Error", "this run belongs to no kit").to_value()).into()
}

/// The method and the URL of a request without its query, if they come first.
fn request_line(args: &Value) -> String {
    let (mut method, mut url) = (String::new(), String::new());
    let mut reader = args.reader();
    if let (Ok(Event::Array(_)), Ok(Event::Object)) = (reader.event(), reader.event()) {
        while let Ok(Some(key)) = reader.key() {
            let Ok(Event::String(Str::Utf8(text))) = reader.event() else { break };
            let text = kept(&without_user(without_query(text)));
            match key.text {
                Str::Utf8("method") => method = text,
                Str::Utf8("url") => url = text,
                _ => {}
            }
        }
    }
    format!("{method} {url}")
}

/// A URL without its query.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

/// A URL without a user and a password.
fn without_user(url: &str) -> String {
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let end = url[host..].find(['/', '\\']).map_or(url.len(), |end| host + end);
    match url[host..end].rfind('@') {
        Some(user) => format!("{}{}", &url[..host], &url[host + user + 1..]),
        None => url.to_owned(),
    }
}

/// As much of a text as a record keeps until it is read.
fn kept(text: &str) -> String {
    text[..text.floor_char_boundary(MOST_KEPT_BYTES)].to_owned()
}

/// The first text of the arguments: a key, a statement, a name.
fn first_text(args: &Value) -> String {
    let mut reader = args.reader();
    while let Ok(event) = reader.event() {
        match event {
            Event::String(Str::Utf8(text)) => return kept(text),
            Event::String(text) => return kept(&text.to_string_lossy()),
            // A batch is a list of lists.
            Event::Array(_) => {}
            _ => break,
        }
    }
    String::new()
}
