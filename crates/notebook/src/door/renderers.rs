//! The renderers behind the door: functions of a result, which need no notebook.
//!
//! In: results and options of a face. Out: texts, at once.

use std::sync::Arc;

use isolane::{Caller, Error, Spelling, Value};
use isolane_door::{Called, Context, Given, System, no_method};
use serde_json::{Map, Value as Json, json};

use super::{data, message};
use crate::{
    Args, HtmlOptions, Misuse, TerminalOptions,
    given::wrong_type,
    render::{read, render_call, render_html, render_terminal, to_ipynb},
};

/// Opens the renderers for a face. They have no options and hold nothing.
#[must_use]
pub fn open_renderers(context: &Context) -> Arc<dyn System> {
    Arc::new(Renderers { spelling: context.spelling })
}

struct Renderers {
    spelling: Spelling,
}

impl System for Renderers {
    fn call(&self, method: &str, _args: Vec<Given>, _caller: &Caller) -> Result<Called, Error> {
        Err(no_method(method))
    }

    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error> {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        let (shown, options) = (next(), next());
        let text = match method {
            "render_call" => {
                let args = Args::from_json(&data(&shown, "args")?)?;
                render_call(
                    &args,
                    &TerminalOptions::from_json(&self::options(&options)?, self.spelling)?,
                )
            }
            "render_terminal" => {
                let result = read(&plain(&shown, "result")?, "result", "", self.spelling)?;
                let options = TerminalOptions::from_json(&self::options(&options)?, self.spelling)?;
                render_terminal(&result, &options)
            }
            "render_html" => {
                let result = read(&plain(&shown, "result")?, "result", "", self.spelling)?;
                let options = HtmlOptions::from_json(&self::options(&options)?, self.spelling)?;
                render_html(&result, &options)
            }
            "to_ipynb" => {
                let results = plain(&shown, "results")?;
                let Json::Array(items) = &results else {
                    return Err(wrong_type("results", "a list", &results).into());
                };
                let items = items.iter().enumerate().map(|(index, item)| {
                    let name = format!("results[{index}]");
                    read(item, &name, &format!("{name}."), self.spelling)
                });
                to_ipynb(&items.collect::<Result<Vec<_>, _>>()?)
            }
            _ => return Err(no_method(method)),
        };
        Ok(message(&text.into()))
    }
}

/// The options of a renderer, which may be left out.
fn options(given: &Given) -> Result<Json, Misuse> {
    if given.is_absent() { Ok(json!({})) } else { data(given, "options") }
}

/// A result as JSON. A number that JSON has not is null, as for `JSON.stringify`; a bigint is a number if it is one of 64
/// bits, else its digits.
fn plain(given: &Given, path: &str) -> Result<Json, Misuse> {
    Ok(match given {
        Given::Undefined | Given::Null => Json::Null,
        Given::BigInt(digits) => match (digits.parse::<i64>(), digits.parse::<u64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => digits.as_str().into(),
        },
        Given::Number(_) => given.json().unwrap_or_default(),
        Given::List(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| plain(item, &format!("{path}[{index}]")))
                .collect::<Result<_, _>>()?
        }
        Given::Object(entries) => {
            let place =
                |key: &str| if path == "result" { key.to_owned() } else { format!("{path}.{key}") };
            let given = entries.iter().filter(|(_, value)| *value != Given::Undefined);
            let fields = given.map(|(key, value)| Ok((key.clone(), plain(value, &place(key))?)));
            Json::Object(fields.collect::<Result<Map<_, _>, Misuse>>()?)
        }
        other => match other.json() {
            Some(json) => json,
            None => return Err(Misuse::new(path, &format!(" must be data, got {}", other.kind()))),
        },
    })
}
