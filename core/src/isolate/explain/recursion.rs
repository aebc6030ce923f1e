//! Recursions that filled the stack.
//!
//! In: an error of a full stack, and its innermost call sites. Out: the message with the functions that call one another.
//! Little can be read on a full stack: the names of functions can, without a call.

use crate::{
    data::text::bounded,
    isolate::{
        engine::{Raw, Thrown, frames::CallSite, is_string},
        state::State,
    },
};

/// The engine's message, and V8's.
const MESSAGE: &str = "Maximum call stack size exceeded";

/// The functions that a message names.
const MOST_NAMED: usize = 3;

const NAMELESS: &str = "a function without a name";

/// The longest name that is shown, in bytes.
const LONGEST_NAME: usize = 64;

/// The message of an error that the engine makes on a full stack, if the innermost functions repeat themselves.
pub(super) fn told(state: &State, error: Raw, sites: &[CallSite<'_>]) -> Option<String> {
    let cx = state.realm().cx;
    let message = cx.own_data(error, c"message").filter(|message| is_string(message.raw()))?;
    if bytes(state, message.raw())? != MESSAGE.as_bytes() {
        return None;
    }
    let mut functions = sites.iter().filter(|site| !site.native());
    let innermost = functions.next()?;
    let others: Vec<&CallSite<'_>> = functions.collect();
    let again = others.iter().position(|site| is_same_call(state, innermost, site))?;
    let between = others.iter().take(again).map(|site| name(state, site));
    let mut names: Vec<String> = between.chain([name(state, innermost)]).collect();
    // The stack may be full in any of them.
    names.sort_unstable();
    names.dedup();
    if names.len() > 1 {
        names.retain(|name| name != NAMELESS);
    }
    let fact = match names.as_slice() {
        [name] => format!("{name} calls itself without an end"),
        [names @ .., last] if names.len() < MOST_NAMED => {
            format!("{} and {last} call each other without an end", names.join(", "))
        }
        _ => return None,
    };
    Some(format!("{MESSAGE} ({fact})"))
}

/// Whether two sites are the same call in the text.
fn is_same_call(state: &State, one: &CallSite<'_>, other: &CallSite<'_>) -> bool {
    let text = |site: &CallSite<'_>| bytes(state, site.file()).zip(site.place());
    let place = text(one);
    place.is_some() && place == text(other) && name(state, one) == name(state, other)
}

/// The name of a function.
fn name(state: &State, site: &CallSite<'_>) -> String {
    let name = Some(site.name()).filter(|name| is_string(*name));
    let name = name.and_then(|name| bytes(state, name)).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    match &*name {
        "" => NAMELESS.to_owned(),
        name => bounded(name.to_owned(), LONGEST_NAME),
    }
}

/// The first bytes of a string, for which nothing is called.
fn bytes(state: &State, string: Raw) -> Option<Vec<u8>> {
    const MOST: usize = 1 << 10;
    let cx = state.realm().cx;
    let first = |bytes: &[u8]| bytes.get(..MOST).unwrap_or(bytes).to_vec();
    cx.with_bytes(string, first).map_err(|Thrown| drop(cx.exception())).ok()
}
