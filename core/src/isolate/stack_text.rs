//! The text of an error's stack, as a host receives it.
//!
//! In: an error of the sandbox, its name, its message and its frames. Out: `Name: message`, the frames below it, and below
//! these the errors that it was made from: its `cause`, and the `errors` of an AggregateError, each with its own causes.
//! Runs no code of the sandbox: it reads plain data, no getter and no Proxy. The depth, the number of errors and the text
//! are bounded, and an error that is its own cause is named once.

use super::{
    engine::{
        Local, Property, Raw, Thrown, address_of, is_array, is_error, is_object, is_proxy, sys,
        tag_of,
    },
    exception::{self, StackFrame},
    state::State,
};
use crate::data::text::{MESSAGE_LIMIT, STACK_LIMIT, bounded};

/// The levels of causes that are shown.
const MOST_LEVELS: usize = 8;

/// The causes that are shown of one error, of all levels.
const MOST_CAUSES: usize = 32;

/// The members of one `errors` that are shown.
const MOST_MEMBERS: u32 = 10;

/// The first line of a stack, as JavaScript writes an error. A text that was cut is left out: at a cut within the stack
/// nobody could tell a part of a secret.
pub(super) fn head(name: &str, message: &str) -> String {
    match (uncut(name), uncut(message)) {
        (name, "") => name.to_owned(),
        ("", message) => message.to_owned(),
        (name, message) => format!("{name}: {message}"),
    }
}

/// The text, or the mark of a cut alone if it may have been cut.
fn uncut(text: &str) -> &str {
    /// A character that a cut may have left out, and the mark.
    const LEAST: usize = MESSAGE_LIMIT - 8;
    if text.len() >= LEAST && text.ends_with('…') { "…" } else { text }
}

/// A first line and the frames below it.
pub(super) fn with_frames(head: String, frames: &[StackFrame]) -> String {
    if frames.is_empty() {
        return head;
    }
    format!("{head}\n{}", exception::join(frames))
}

/// The text of a stack, with the causes of the error below it.
pub(super) fn with_causes(state: &State, error: Raw, text: String) -> String {
    let mut causes = Causes { state, text, left: MOST_CAUSES, seen: vec![address_of(error)] };
    causes.of_error(error, 1);
    bounded(causes.text, STACK_LIMIT)
}

struct Causes<'s> {
    state: &'s State,
    text: String,
    /// How many more may be shown.
    left: usize,
    /// The addresses of the errors so far. The first error holds all others, and nothing runs meanwhile.
    seen: Vec<usize>,
}

impl Causes<'_> {
    fn of_error(&mut self, error: Raw, level: usize) {
        let cx = self.state.realm().cx;
        if let Some(cause) = cx.own_data(error, c"cause") {
            self.cause("cause", cause.raw(), level);
        }
        let errors = cx.own_data(error, c"errors");
        let Some(errors) = errors.filter(|errors| {
            is_object(errors.raw()) && !is_proxy(errors.raw()) && is_array(errors.raw())
        }) else {
            return;
        };
        let count = cx.length(errors.raw()).ok().and_then(|count| u32::try_from(count).ok());
        let count = count.unwrap_or(0);
        for index in 0..count.min(MOST_MEMBERS) {
            if let Some(member) = self.member(&errors, index) {
                self.cause(&format!("errors][{index}"), member.raw(), level);
            }
        }
        if count > MOST_MEMBERS && self.has_room(level) {
            self.line("errors", &format!("{} more", count - MOST_MEMBERS), level);
        }
    }

    fn member(&self, errors: &Local, index: u32) -> Option<Local> {
        let cx = self.state.realm().cx;
        let own = cx.index_atom(index).and_then(|key| cx.own_property(errors.raw(), key.id));
        match own {
            Ok(Some(Property::Data(value))) => Some(value),
            Ok(_) => None,
            Err(Thrown) => {
                drop(cx.exception());
                None
            }
        }
    }

    fn has_room(&self, level: usize) -> bool {
        self.left > 0 && level <= MOST_LEVELS && self.text.len() < STACK_LIMIT
    }

    fn cause(&mut self, label: &str, cause: Raw, level: usize) {
        if tag_of(cause) == sys::JS_TAG_UNDEFINED || !self.has_room(level) {
            return;
        }
        self.left -= 1;
        if !is_error(cause) {
            self.line(label, uncut(&exception::headline(self.state, cause)), level);
        } else if self.seen.contains(&address_of(cause)) {
            self.line(label, "[Circular]", level);
        } else {
            self.seen.push(address_of(cause));
            let head = exception::headline(self.state, cause);
            let text = with_frames(uncut(&head).to_owned(), &exception::frames(self.state, cause));
            self.line(label, &text, level);
            self.of_error(cause, level + 1);
        }
    }

    fn line(&mut self, label: &str, text: &str, level: usize) {
        let indent = format!("\n{}", "  ".repeat(level));
        let line = format!("{indent}[{label}]: {}", text.replace('\n', &indent));
        if self.text.len() + line.len() <= STACK_LIMIT {
            self.text.push_str(&line);
        } else {
            // A line that does not fit as a whole is left out, with all that would follow.
            self.left = 0;
        }
    }
}
