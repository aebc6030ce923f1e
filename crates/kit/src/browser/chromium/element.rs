//! Commands on elements of a page.
//!
//! In: selectors. Out: what is done with the first match, once there is one that can be used: it is visible, and to be
//! clicked it also rests, is enabled and not behind another element. The mouse and the keys are those of the browser, so
//! that a page sees no difference from a person.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::time::sleep;

use super::{Fault, keys, tab::Tab};
use crate::browser::{Answer, Property};

/// A function of a selector, an action and its argument, which finds the element and prepares the action.
const ELEMENT: &str = include_str!("element.js");

/// The pauses between looks for an element, the last one for ever.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
];

/// Events of keys that are under way at a time.
const MOST_KEYS: usize = 64;

/// The outcome of a look for an element.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Look {
    is: State,
    text: String,
    #[serde(rename = "box")]
    rectangle: Rectangle,
    point: (f64, f64),
}

/// Left, top, width and height.
pub(super) type Rectangle = [f64; 4];

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum State {
    #[default]
    Missing,
    Hidden,
    Disabled,
    Covered,
    Ready,
    Filled,
    Text,
    TooLarge,
}

impl Tab {
    pub(super) async fn read(
        &self,
        selector: &str,
        property: Property,
        most_units: u64,
    ) -> Result<Answer, Fault> {
        let argument = json!([property.name(), most_units]);
        let answer = |look: Look| match look.is {
            State::Text => Some(Answer::Text(look.text)),
            State::TooLarge => Some(Answer::TooLarge),
            _ => None,
        };
        self.look(selector, "read", argument, answer).await
    }

    pub(super) async fn click(&self, selector: &str) -> Result<Answer, Fault> {
        let mut before = None;
        let rests = |look: Look| {
            let is_ready = look.is == State::Ready;
            let rests = is_ready && before == Some(look.rectangle);
            before = is_ready.then_some(look.rectangle);
            rests.then_some(look.point)
        };
        let (x, y) = self.look(selector, "point", Json::Null, rests).await?;
        let event = |kind: &str, buttons: u32| {
            let is_click = kind != "mouseMoved";
            let button = if is_click { "left" } else { "none" };
            let params = json!({
                "type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
                "clickCount": u32::from(is_click),
            });
            ("Input.dispatchMouseEvent", params)
        };
        let events = [event("mouseMoved", 0), event("mousePressed", 1), event("mouseReleased", 0)];
        done_if_closed(self.call_all(events).await)?;
        self.settle().await?;
        Ok(Answer::Nothing)
    }

    pub(super) async fn type_into(
        &self,
        selector: &str,
        text: &str,
        clear_first: bool,
    ) -> Result<Answer, Fault> {
        let prepared = |look: Look| match look.is {
            State::Ready => Some(false),
            State::Filled => Some(true),
            _ => None,
        };
        let (action, argument) = if clear_first { ("fill", text) } else { ("caret", "") };
        let is_filled = self.look(selector, action, argument.into(), prepared).await?;
        if is_filled {
        } else if clear_first && text.is_empty() {
            let keys = keys::delete().map(|event| ("Input.dispatchKeyEvent", event));
            self.call_all(keys).await?;
        } else if clear_first {
            self.call_all([insertion(text)]).await?;
        } else {
            done_if_closed(self.type_keys(text).await)?;
        }
        self.settle().await?;
        Ok(Answer::Nothing)
    }

    async fn type_keys(&self, text: &str) -> Result<(), Fault> {
        let mut events = Vec::new();
        let mut buffer = [0; 4];
        for character in text.chars() {
            match keys::key(character) {
                Some(key) => events.extend(key.map(|event| ("Input.dispatchKeyEvent", event))),
                None => events.push(insertion(character.encode_utf8(&mut buffer))),
            }
            if events.len() >= MOST_KEYS {
                self.call_all(events.drain(..)).await?;
            }
        }
        self.call_all(events).await
    }

    /// The rectangle of an element in its document, once it is visible and rests.
    pub(super) async fn rectangle(&self, selector: &str) -> Result<Rectangle, Fault> {
        let mut before = None;
        let rests = |look: Look| {
            let found = (look.is == State::Ready).then_some(look.rectangle);
            let rests = found.is_some() && before == found;
            before = found;
            found.filter(|_| rests)
        };
        self.look(selector, "box", Json::Null, rests).await
    }

    /// Looks for an element until `answer` is content with what is found.
    async fn look<T>(
        &self,
        selector: &str,
        action: &str,
        argument: Json,
        mut answer: impl FnMut(Look) -> Option<T>,
    ) -> Result<T, Fault> {
        let args = json!([{ "value": selector }, { "value": action }, { "value": argument }]);
        let mut pauses = PAUSES.into_iter();
        loop {
            match self.in_world(ELEMENT, args.clone()).await {
                Ok(look) => {
                    let look = Look::deserialize(look);
                    let look =
                        look.map_err(|_| Fault::Refused("the page gave no answer".to_owned()))?;
                    if let Some(answer) = answer(look) {
                        return Ok(answer);
                    }
                }
                // The page has just gone elsewhere.
                Err(Fault::Refused(_)) => {}
                Err(fault) => return Err(fault),
            }
            sleep(pauses.next().unwrap_or(PAUSES[PAUSES.len() - 1])).await;
        }
    }
}

fn insertion(text: &str) -> (&'static str, Json) {
    ("Input.insertText", json!({ "text": text }))
}

/// An action that closes its page is done.
fn done_if_closed(done: Result<(), Fault>) -> Result<(), Fault> {
    match done {
        Err(Fault::Lost("the page was closed")) => Ok(()),
        done => done,
    }
}
