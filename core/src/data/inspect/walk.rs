//! The walk through a message that writes its text.
//!
//! In: a message, the limit of the text and the marks in it. Out: the text, perhaps somewhat longer than the limit. Nothing
//! recurses. A container beyond the deepest level is only its kind; an object that occurs again is shown again, or as
//! `[Circular *1]` inside of itself.

use rustc_hash::FxHashMap;

use super::{
    Style, bytes,
    date::date,
    texts::{bigint, function, key_text, number, push, string},
};
use crate::value::{Event, Reader, Str};

/// The number of nested levels that are shown.
const DEPTH: usize = 3;

/// The items of a container that are shown.
const MOST_ITEMS: u32 = 100;

/// A container that is being shown.
struct Frame {
    kind: Kind,
    /// The index of the object in the message.
    index: u32,
    /// The place of its text.
    start: usize,
    /// Items that are shown.
    items: u32,
    /// Holes before the next item.
    holes: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    Object,
    List { left: u32, close: &'static str },
    Map { left: u32 },
    Sparse { at: u32, length: u32 },
}

/// A container that is read over, or the number of values.
enum Skipped {
    Values(u64),
    Object,
    Sparse,
}

pub(super) struct Walk<'a> {
    style: Style<'a>,
    reader: Reader<'a>,
    text: String,
    frames: Vec<Frame>,
    /// The index of the next object.
    objects: u32,
    /// The places of the texts of complete objects, by index.
    shown: FxHashMap<u32, (usize, usize)>,
    /// The objects that contain themselves, by index; the first is `*1`.
    circles: Vec<u32>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(style: Style<'a>) -> Self {
        Self {
            style,
            reader: style.value.reader(),
            text: String::new(),
            frames: Vec::new(),
            objects: 0,
            shown: FxHashMap::default(),
            circles: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> String {
        // A message with an error is shown up to the error.
        let _ = self.walk();
        self.name_circles();
        self.text
    }

    fn walk(&mut self) -> Option<()> {
        let (event, index) = self.event()?;
        self.node(event, index)?;
        while let Some(frame) = self.frames.pop() {
            if self.text.len() > self.style.limit {
                self.frames.push(frame);
                return None;
            }
            self.member(frame)?;
        }
        Some(())
    }

    fn event(&mut self) -> Option<(Event<'a>, u32)> {
        let event = self.reader.event().ok()?;
        let index = self.objects;
        self.objects += u32::from(event.is_object());
        Some((event, index))
    }

    /// Shows the next member of a container, or its end.
    fn member(&mut self, mut frame: Frame) -> Option<()> {
        match &mut frame.kind {
            Kind::Object => {
                let Some(key) = self.reader.key().ok()? else {
                    self.close(frame);
                    return Some(());
                };
                if frame.items == 0
                    && let Some(class) = self.class_name(key.text)
                {
                    self.event()?;
                    self.text.insert_str(frame.start, &class);
                    self.frames.push(frame);
                    return Some(());
                }
                self.separate(&mut frame);
                key_text(&mut self.text, key.text, self.style.limit);
                self.text.push_str(": ");
            }
            Kind::List { left: 0, .. } | Kind::Map { left: 0 } => {
                self.close(frame);
                return Some(());
            }
            Kind::List { left, .. } if frame.items >= MOST_ITEMS => {
                let left = *left;
                return self.close_with_more(frame, left, vec![Skipped::Values(left.into())]);
            }
            Kind::List { left, .. } => {
                *left -= 1;
                let (event, index) = self.event()?;
                if event == Event::Hole {
                    frame.holes += 1;
                    self.frames.push(frame);
                    return Some(());
                }
                self.separate(&mut frame);
                self.frames.push(frame);
                return self.node(event, index);
            }
            Kind::Map { left } if frame.items >= MOST_ITEMS && left.is_multiple_of(2) => {
                let left = *left;
                return self.close_with_more(frame, left / 2, vec![Skipped::Values(left.into())]);
            }
            Kind::Map { left } => {
                *left -= 1;
                if left.is_multiple_of(2) {
                    self.text.push_str(" => ");
                } else {
                    self.separate(&mut frame);
                }
            }
            Kind::Sparse { at, length } => {
                let Some(index) = self.reader.sparse_index().ok()? else {
                    frame.holes = length.saturating_sub(*at);
                    self.close(frame);
                    return Some(());
                };
                frame.holes = index.saturating_sub(*at);
                *at = index.saturating_add(1);
                if frame.items >= MOST_ITEMS {
                    let left = length.saturating_sub(index);
                    let rest = vec![Skipped::Sparse, Skipped::Values(1)];
                    return self.close_with_more(frame, left, rest);
                }
                self.separate(&mut frame);
            }
        }
        self.frames.push(frame);
        let (event, index) = self.event()?;
        self.node(event, index)
    }

    /// Begins an item, after the holes before it.
    fn separate(&mut self, frame: &mut Frame) {
        let holes = std::mem::take(&mut frame.holes);
        if holes > 0 {
            self.text.push_str(if frame.items == 0 { " " } else { ", " });
            frame.items += 1;
            let items = if holes == 1 { "item" } else { "items" };
            self.text.push_str(&format!("<{holes} empty {items}>"));
        }
        self.text.push_str(if frame.items == 0 { " " } else { ", " });
        frame.items += 1;
    }

    /// Ends a container of which so many items are left, and reads over them.
    fn close_with_more(&mut self, mut frame: Frame, left: u32, rest: Vec<Skipped>) -> Option<()> {
        frame.holes = 0;
        self.separate(&mut frame);
        let items = if left == 1 { "item" } else { "items" };
        self.text.push_str(&format!("... {left} more {items}"));
        // The rest of the outermost container is the end of the message.
        let is_last = self.frames.is_empty();
        self.close(frame);
        if is_last { Some(()) } else { self.skip(rest) }
    }

    fn close(&mut self, mut frame: Frame) {
        if frame.holes > 0 {
            let holes = std::mem::take(&mut frame.holes);
            let items = if holes == 1 { "item" } else { "items" };
            self.text.push_str(if frame.items == 0 { " " } else { ", " });
            self.text.push_str(&format!("<{holes} empty {items}>"));
            frame.items += 1;
        }
        if frame.items > 0 {
            self.text.push(' ');
        }
        self.text.push_str(match frame.kind {
            Kind::Object | Kind::Map { .. } => "}",
            Kind::List { close, .. } => close,
            Kind::Sparse { .. } => "]",
        });
        self.shown.insert(frame.index, (frame.start, self.text.len()));
    }

    /// The name of a class with a blank, if the key is one.
    fn class_name(&self, key: Str<'_>) -> Option<String> {
        let Str::Utf8(key) = key else { return None };
        let name = key.strip_prefix(self.style.mark?)?;
        Some(if name.is_empty() { String::new() } else { format!("{name} ") })
    }

    fn node(&mut self, event: Event<'a>, index: u32) -> Option<()> {
        let limit = self.style.limit;
        let nested = !self.frames.is_empty();
        let from = self.text.len();
        let text = &mut self.text;
        match event {
            Event::Undefined => text.push_str("undefined"),
            Event::Null => text.push_str("null"),
            Event::Bool(value) => text.push_str(if value { "true" } else { "false" }),
            Event::Int(value) => text.push_str(&value.to_string()),
            Event::Double(value) => text.push_str(&number(value)),
            Event::BigInt { negative, magnitude } => bigint(text, negative, magnitude),
            Event::String(value) => string(text, value, nested, self.style),
            Event::Hole => text.push_str("<1 empty item>"),
            Event::Ref(object) => self.again(object),
            Event::Object => return self.open("{", "Object", Kind::Object, index),
            Event::Array(left) => {
                return self.open("[", "Array", Kind::List { left, close: "]" }, index);
            }
            Event::SparseArray(length) => {
                return self.open("[", "Array", Kind::Sparse { at: 0, length }, index);
            }
            Event::Map(entries) => {
                let kind = Kind::Map { left: entries.checked_mul(2)? };
                return self.open(&format!("Map({entries}) {{"), "Map", kind, index);
            }
            Event::Set(left) => {
                let kind = Kind::List { left, close: "}" };
                return self.open(&format!("Set({left}) {{"), "Set", kind, index);
            }
            Event::Date(time) => text.push_str(&date(time)),
            Event::RegExp => {
                let (source, flags) = (self.reader.text().ok()?, self.reader.text().ok()?);
                text.push('/');
                push(text, source, limit);
                text.push('/');
                push(text, flags, limit);
            }
            Event::Error(_) => {
                let (name, message) = (self.reader.text().ok()?, self.reader.text().ok()?);
                text.push('[');
                push(text, name, limit);
                if !matches!(message, Str::Utf8("")) {
                    text.push_str(": ");
                    push(text, message, limit);
                }
                text.push(']');
                // Its stack and its code.
                self.skip(vec![Skipped::Values(2)])?;
            }
            Event::Buffer(blob) => bytes::buffer(text, self.style.value, blob),
            Event::View { kind, blob, byte_offset, length } => {
                bytes::view(text, self.style.value, kind, (blob, byte_offset, length));
            }
            Event::HostFunction(number) => {
                self.reader.text().ok()?;
                function(text, &(self.style.names)(number));
            }
            Event::SandboxFunction(_) => {
                function(text, &self.reader.text().ok()?.to_string_lossy());
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => text.push_str("[Promise]"),
        }
        if event.is_object() {
            self.shown.insert(index, (from, self.text.len()));
        }
        Some(())
    }

    /// Begins a container, or shows only its kind if it is too deep.
    fn open(&mut self, head: &str, name: &str, kind: Kind, index: u32) -> Option<()> {
        let start = self.text.len();
        if self.frames.len() < DEPTH {
            self.text.push_str(head);
            self.frames.push(Frame { kind, index, start, items: 0, holes: 0 });
            return Some(());
        }
        let mut class = None;
        let rest = match kind {
            Kind::List { left, .. } | Kind::Map { left } => Skipped::Values(left.into()),
            Kind::Sparse { .. } => Skipped::Sparse,
            Kind::Object => match self.reader.key().ok()? {
                None => Skipped::Values(0),
                Some(key) => {
                    class = self.class_name(key.text);
                    self.skip(vec![Skipped::Values(1)])?;
                    Skipped::Object
                }
            },
        };
        let class = class.as_deref().map(str::trim_end).filter(|class| !class.is_empty());
        self.text.push_str(&format!("[{}]", class.unwrap_or(name)));
        self.shown.insert(index, (start, self.text.len()));
        self.skip(vec![rest])
    }

    /// Shows an object that has occurred before.
    fn again(&mut self, object: u32) {
        if self.frames.iter().any(|frame| frame.index == object) {
            let known = self.circles.iter().position(|&circle| circle == object);
            let number = known.unwrap_or(self.circles.len()) + 1;
            if known.is_none() {
                self.circles.push(object);
            }
            return self.text.push_str(&format!("[Circular *{number}]"));
        }
        match self.shown.get(&object) {
            Some(&(start, end)) => {
                // The text before may fill the limit, and so may this one.
                let end = self.text.floor_char_boundary(end.min(start + self.style.limit + 1));
                let again = self.text[start..end].to_owned();
                self.text.push_str(&again);
            }
            None => self.text.push_str("[Object]"),
        }
    }

    /// Marks the objects that contain themselves, from the last one on.
    fn name_circles(&mut self) {
        let open = self.frames.iter().map(|frame| (frame.index, frame.start));
        let complete = self.shown.iter().map(|(&index, &(start, _))| (index, start));
        let starts: FxHashMap<u32, usize> = open.chain(complete).collect();
        let numbered = (1..).zip(&self.circles);
        let mut places: Vec<(usize, u32)> =
            numbered.filter_map(|(number, circle)| Some((*starts.get(circle)?, number))).collect();
        places.sort_unstable();
        for (start, number) in places.into_iter().rev() {
            self.text.insert_str(start, &format!("<ref *{number}> "));
        }
    }

    /// Reads over values, the last of the list first.
    fn skip(&mut self, mut levels: Vec<Skipped>) -> Option<()> {
        while let Some(level) = levels.last_mut() {
            let has_more = match level {
                Skipped::Values(0) => false,
                Skipped::Values(left) => {
                    *left -= 1;
                    true
                }
                Skipped::Object => self.reader.key().ok()?.is_some(),
                Skipped::Sparse => self.reader.sparse_index().ok()?.is_some(),
            };
            if !has_more {
                levels.pop();
                continue;
            }
            match self.event()?.0 {
                Event::Object => levels.push(Skipped::Object),
                Event::SparseArray(_) => levels.push(Skipped::Sparse),
                Event::Array(count) | Event::Set(count) => {
                    levels.push(Skipped::Values(count.into()));
                }
                Event::Map(entries) => levels.push(Skipped::Values(2 * u64::from(entries))),
                Event::RegExp => {
                    self.reader.text().ok()?;
                    self.reader.text().ok()?;
                }
                Event::Error(_) => {
                    self.reader.text().ok()?;
                    self.reader.text().ok()?;
                    levels.push(Skipped::Values(2));
                }
                Event::HostFunction(_) | Event::SandboxFunction(_) => {
                    self.reader.text().ok()?;
                }
                _ => {}
            }
        }
        Some(())
    }
}
