//! Instances of classes, which do not leave the sandbox, as text in a log and in the text of a cell: `Acc { total: 3 }`.
//!
//! In: an instance. Out: the text of its own data, as a console shows it. No code of the sandbox runs for it: a getter is
//! `[Getter]`, a Proxy is `[Proxy]`, and the name of the class is a data property of the prototype. The texts of one
//! message have a limit; beyond it an instance is shown by its class alone.

use std::rc::Rc;

use super::{Crossing, Frame, Walk, describe::constructor_name, objects::count, walked};
use crate::{
    data::inspect::inspect_with,
    isolate::{
        engine::{Local, Outcome, Raw, Thrown, is_array, is_map, is_set, undefined},
        marks::marked,
    },
};

/// The bytes of the texts of instances in one message. Each counts as at least `LEAST_BYTES`, which bounds the time for
/// those with short texts.
pub(super) const MOST_BYTES: usize = 64 << 10;
const LEAST_BYTES: usize = 64;

/// The bytes of the text of one instance.
const MOST_BYTES_EACH: usize = 10_000;

/// Values that are read for the text of one instance: more than its text can hold.
pub(super) const MOST_NODES: usize = 10_000;

/// Items of each container, and levels of containers, that `inspect` shows.
pub(super) const MOST_ITEMS: usize = 100;
const MOST_LEVELS: usize = 3;

/// The longest container of which the other items are counted.
const MOST_COUNTED: usize = 1 << 16;

/// Properties beyond which an instance is shown by its class alone: they would be listed before they are read.
const MOST_PROPERTIES: usize = 10_000;

impl Walk<'_> {
    /// The text of an instance where text stands for it; `None` if only its class is shown there.
    pub(super) fn instance_text(&mut self, value: Raw, class: u32) -> Option<String> {
        let is_shown = matches!(self.crossing, Crossing::Log | Crossing::Cell);
        let is_instance = self.state.realm().intrinsics.plain_classes.contains(&class);
        if !is_shown || !is_instance || self.instance_bytes == 0 {
            return None;
        }
        let mut walk = Walk::new(self.state, Crossing::Shown, "");
        walk.shows_classes = true;
        let message = match walked(walk, value) {
            Ok((message, _)) => message,
            Err(Thrown) => {
                // No code of the sandbox has run: the stack is full.
                drop(self.state.realm().cx.exception());
                return None;
            }
        };
        self.state.discharge(message.held_bytes());
        let names = |number| self.state.host_function_name(number);
        let limit = MOST_BYTES_EACH.min(self.instance_bytes.max(LEAST_BYTES));
        let text = inspect_with(&message, limit, &marked(""), &names);
        self.instance_bytes = self.instance_bytes.saturating_sub(text.len().max(LEAST_BYTES));
        Some(text)
    }

    /// Writes an instance as an object, the name of its class before its properties.
    pub(super) fn shown_instance(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let keys = Rc::new(cx.keys(value)?);
        let name = constructor_name(self.state, value).unwrap_or_default();
        if keys.len() > MOST_PROPERTIES {
            return self.refuse(&format!("an instance of {name}"));
        }
        self.enter(value);
        self.writer.object();
        self.writer.new_key(&marked(&name));
        self.writer.undefined();
        self.frames.push(Frame::Object { object: cx.dup(value), keys, next: 0 });
        Ok(())
    }

    /// Writes a container that is too deep to be shown, without its members; returns whether it is one.
    pub(super) fn is_too_deep(&mut self, value: Raw, class: u32) -> bool {
        let levels = self.frames.iter().filter(|frame| !matches!(frame, Frame::Filler { .. }));
        if levels.count() < MOST_LEVELS {
            return false;
        }
        if is_array(value) {
            self.enter(value);
            self.writer.array(0);
        } else if is_map(value) {
            self.enter(value);
            self.writer.map(0);
        } else if is_set(value) {
            self.enter(value);
            self.writer.set(0);
        } else if self.state.realm().intrinsics.plain_classes.contains(&class) {
            let name = constructor_name(self.state, value).unwrap_or_default();
            self.enter(value);
            self.writer.object();
            self.writer.new_key(&marked(&name));
            self.writer.undefined();
            self.writer.end_object();
        } else {
            return false;
        }
        true
    }

    /// Writes the first elements of an array, and counts the others.
    pub(super) fn beginning_of_long_array(&mut self, value: Raw, length: u32) -> Outcome<()> {
        if length as usize > MOST_COUNTED {
            self.text(&marked("[Array]"));
            return Ok(());
        }
        let cx = self.state.realm().cx;
        let element = |index| {
            let element = self.property(value, cx.index_atom(index)?.id)?;
            Ok(element.unwrap_or_else(|| cx.dup(undefined())))
        };
        let items = (0..count(MOST_ITEMS)?).map(element).collect::<Outcome<Vec<_>>>()?;
        self.enter(value);
        self.writer.array(length);
        self.fill(length as usize - items.len());
        self.frames.push(Frame::Set { items, next: 0 });
        Ok(())
    }

    /// Drops the items that are not shown, and returns their number. An entry of a Map is two items.
    pub(super) fn keep_shown(&self, items: &mut Vec<Local>, each: usize) -> usize {
        let left = items.len().saturating_sub(MOST_ITEMS * each);
        if !self.shows_classes || left > MOST_COUNTED {
            return 0;
        }
        items.truncate(MOST_ITEMS * each);
        left
    }

    /// Counts so many items after those of the next frame.
    pub(super) fn fill(&mut self, left: usize) {
        if left > 0 {
            self.frames.push(Frame::Filler { left });
        }
    }
}
