//! Messages from values of the engine.
//!
//! In: a value of the sandbox. Out: a [`Value`], or an exception pending in the sandbox: the exception of a getter, or
//! a SerializationError that names the path. Keeps the contract's "Values": which values cross in which form, identity
//! within the message, order of keys, one run of each getter, no run of any proxy trap. The walk keeps a stack of its
//! own, so depth costs memory and nothing else, and it charges the message to the run's limit as it grows.

mod describe;
mod instances;
mod objects;
mod texts;

use std::{cell::RefCell, collections::HashMap, ffi::CStr, rc::Rc};

pub(in crate::isolate) use self::describe::{describe, error_class};
use crate::{
    isolate::{
        engine::{
            Keys, Local, Outcome, Property, Raw, Seen, Thrown, double_of, int_of, is_object,
            is_string, sys, tag_of, undefined,
        },
        exception, marks,
        state::State,
    },
    value::{
        MOST_KEY_UNITS, Value, Writer,
        path::{self, Step},
    },
};

/// The role in which a value leaves the sandbox: it decides how functions and promises cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) enum Crossing {
    /// The arguments of a host call, or the result of a sandbox callback.
    Live,
    /// The result of the run, a report: no function of the sandbox, no promise.
    Final,
    /// An argument of the console: text stands for a value that cannot be cloned.
    Log,
    /// The shown part of a thrown value: as in a log, but no getter runs, for the run may be over.
    Shown,
    /// `structuredClone` within the sandbox: no function, no promise.
    Inside,
    /// The value of a cell: as the result of a run, or else as in a log, with the reason.
    Cell,
}

impl Crossing {
    /// Whether text stands for a value that cannot be cloned.
    fn is_text(self) -> bool {
        matches!(self, Self::Log | Self::Shown | Self::Cell)
    }
}

/// Nodes between two checks whether the run must end.
const NODES_PER_LOOK: u32 = 256;

/// The most units of a short text.
const SHORT_UNITS: i64 = 1 << 10;

/// Bytes by which a message grows before they are charged.
const CHARGE_STEP: usize = 64 << 10;

/// Nodes of a thrown value that are read, and units of each string: only a line of it is shown.
const SHOWN_NODES: usize = 500;
const SHOWN_UNITS: usize = 1_000;

/// The name of a buffer without memory in messages.
const DETACHED: &str = "a detached ArrayBuffer";

/// Clones a value out of the sandbox. `root` is the path's first word.
///
/// The message's bytes are charged to the run; the code that drops it discharges them.
pub(in crate::isolate) fn clone_out(
    state: &State,
    value: Raw,
    crossing: Crossing,
    root: &str,
) -> Outcome<Value> {
    walked(Walk::new(state, crossing, root), value).map(|(value, _)| value)
}

/// Clones the value of a cell out of the sandbox, and says why it cannot leave, if it cannot. Placeholders in it begin
/// with a mark then, which tells them from strings.
pub(in crate::isolate) fn clone_cell_value(
    state: &State,
    value: Raw,
) -> Outcome<(Value, Option<String>)> {
    walked(Walk::new(state, Crossing::Cell, "result"), value)
}

fn walked(mut walk: Walk<'_>, value: Raw) -> Outcome<(Value, Option<String>)> {
    let (state, crossing, root) = (walk.state, walk.crossing, walk.root);
    let done = walk.run(value);
    let charged = walk.charged;
    let (functions, promises) =
        (std::mem::take(&mut walk.functions), std::mem::take(&mut walk.promises));
    // The host does not hold functions that never reach it.
    let unsend = || functions.iter().for_each(|&number| state.release_function(number, 1));
    if let Err(thrown) = done {
        state.discharge(charged);
        unsend();
        return Err(thrown);
    }
    let uncloned = walk.uncloned.take();
    let value = walk.finish();
    let refused = match crossing {
        Crossing::Live | Crossing::Final | Crossing::Cell => state.refusal(&value),
        Crossing::Log | Crossing::Shown | Crossing::Inside => None,
    };
    if crossing == Crossing::Cell {
        let reason = uncloned.or_else(|| Some(refused?.text(root)));
        return Ok((value, reason));
    }
    let sent = match refused {
        None => promises.into_iter().try_for_each(|number| state.watch_promise(number)),
        Some(refusal) => Err(state.throw_serialization_error(&refusal.text(root))),
    };
    if sent.is_err() {
        state.discharge(value.held_bytes());
        unsend();
    }
    sent.map(|()| (value, None))
}

/// Clones several values as one message, an array: the arguments of a call.
pub(in crate::isolate) fn clone_args_out(
    state: &State,
    args: &[Raw],
    crossing: Crossing,
    root: &str,
) -> Outcome<Value> {
    let cx = state.realm().cx;
    if crossing == Crossing::Live && args.iter().all(|arg| is_short(state, *arg)) {
        return clone_short(state, args, root);
    }
    let array = cx.array()?;
    for (index, &arg) in (0..).zip(args) {
        cx.define_index(array.raw(), index, cx.dup(arg))?;
    }
    clone_out(state, array.raw(), crossing, root)
}

/// Whether a value has no identity and few bytes.
fn is_short(state: &State, value: Raw) -> bool {
    match tag_of(value) {
        sys::JS_TAG_UNDEFINED
        | sys::JS_TAG_NULL
        | sys::JS_TAG_BOOL
        | sys::JS_TAG_INT
        | sys::JS_TAG_FLOAT64 => true,
        _ => {
            is_string(value)
                && state.realm().cx.length(value).is_ok_and(|units| units <= SHORT_UNITS)
        }
    }
}

/// The same of short values, without an array for them: most calls have few arguments, which are short.
fn clone_short(state: &State, args: &[Raw], root: &str) -> Outcome<Value> {
    let mut walk = Walk::new(state, Crossing::Live, root);
    walk.writer.array(u32::try_from(args.len()).map_err(|_| Thrown)?);
    for arg in args {
        walk.look();
        if let Err(thrown) = walk.written(*arg) {
            state.discharge(walk.charged);
            return Err(thrown);
        }
    }
    let value = walk.finish();
    match state.refusal(&value) {
        None => Ok(value),
        Some(refusal) => {
            state.discharge(value.held_bytes());
            Err(state.throw_serialization_error(&refusal.text(root)))
        }
    }
}

/// An object that is being read, with the progress.
enum Frame {
    Object {
        object: Local,
        keys: Rc<Keys>,
        next: usize,
    },
    Array {
        array: Local,
        keys: Rc<Keys>,
        next: usize,
        length: u32,
        at: u32,
        sparse: bool,
    },
    Map {
        items: Vec<Local>,
        next: usize,
    },
    Set {
        items: Vec<Local>,
        next: usize,
    },
    /// Items of the container below which are only counted.
    Filler {
        left: usize,
    },
}

/// A view whose buffer was not in the message when the view was written.
struct OwnView {
    /// Its place in the writer.
    place: usize,
    /// The address of its buffer.
    buffer: usize,
    offset: usize,
    length: usize,
}

struct Walk<'s> {
    state: &'s State,
    crossing: Crossing,
    root: &'s str,
    writer: Writer,
    frames: Vec<Frame>,
    /// Objects already in the message, by address; `objects` keeps the addresses from being reused.
    seen: HashMap<usize, u32, rustc_hash::FxBuildHasher>,
    objects: Vec<Local>,
    keys: HashMap<u32, (u32, crate::isolate::engine::Atom), rustc_hash::FxBuildHasher>,
    /// Blobs of the ArrayBuffers in the message, by address.
    buffers: HashMap<usize, u32>,
    /// Views written so far, each over bytes of its own.
    views: Vec<OwnView>,
    /// Functions and promises of the sandbox in the message, by number.
    functions: Vec<u32>,
    promises: Vec<u32>,
    /// Entries of Maps and members of Sets that were read in one go.
    items: usize,
    /// Whether instances of classes are in the message, with marks: it is read for a text alone.
    shows_classes: bool,
    /// The bytes of texts of instances that may still be written.
    instance_bytes: usize,
    /// The first reason why the value of a cell cannot leave.
    uncloned: RefCell<Option<String>>,
    charged: usize,
    nodes: u32,
}

impl<'s> Walk<'s> {
    fn new(state: &'s State, crossing: Crossing, root: &'s str) -> Self {
        Self {
            state,
            crossing,
            root,
            writer: Writer::new(),
            frames: Vec::new(),
            seen: HashMap::default(),
            objects: Vec::new(),
            keys: HashMap::default(),
            buffers: HashMap::new(),
            views: Vec::new(),
            functions: Vec::new(),
            promises: Vec::new(),
            items: 0,
            shows_classes: false,
            instance_bytes: instances::MOST_BYTES,
            uncloned: RefCell::default(),
            charged: 0,
            nodes: 0,
        }
    }

    fn run(&mut self, value: Raw) -> Outcome<()> {
        self.node(value)?;
        while let Some(mut frame) = self.frames.pop() {
            if let Some(value) = self.advance(&mut frame)? {
                self.frames.push(frame);
                self.node(value.raw())?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Value {
        for OwnView { place, buffer, offset, length } in std::mem::take(&mut self.views) {
            if let Some(blob) = self.blob_of(buffer, offset, length) {
                self.writer.move_view(place, blob, offset as u64);
            }
        }
        let charged = self.charged;
        let mut value = std::mem::take(&mut self.writer).finish();
        if self.crossing == Crossing::Inside {
            value = value.weightless();
        }
        let held = value.held_bytes();
        if held > charged {
            self.state.charge(held - charged);
        }
        self.state.discharge(charged.saturating_sub(held));
        value
    }

    /// The next value of the innermost object, `None` when it is complete.
    fn advance(&mut self, frame: &mut Frame) -> Outcome<Option<Local>> {
        match frame {
            Frame::Object { object, keys, next } => loop {
                let Some(atom) = keys.atom(*next).filter(|_| !self.shown_enough()) else {
                    self.writer.end_object();
                    return Ok(None);
                };
                *next += 1;
                // A getter before it may have removed this one.
                let Some(value) = self.property(object.raw(), atom)? else {
                    self.look();
                    continue;
                };
                self.key(atom)?;
                return Ok(Some(value));
            },
            Frame::Array { array, keys, next, length, at, sparse } => loop {
                let Some(index) = self.index(keys, *next).filter(|index| index < length) else {
                    self.end_array(*length, *at, *sparse);
                    self.charge_growth(0);
                    return Ok(None);
                };
                let atom = keys.atom(*next).ok_or(Thrown)?;
                *next += 1;
                *at = index + 1;
                match self.property(array.raw(), atom)? {
                    Some(value) => {
                        if *sparse {
                            self.writer.sparse_index(index);
                        }
                        return Ok(Some(value));
                    }
                    None if *sparse => self.look(),
                    None => self.hole(),
                }
            },
            Frame::Map { items, next } | Frame::Set { items, next } => {
                let value = items.get(*next).cloned();
                *next += 1;
                Ok(value)
            }
            Frame::Filler { left } => {
                for _ in 0..std::mem::take(left) {
                    self.writer.undefined();
                }
                Ok(None)
            }
        }
    }

    /// An own property of the object being read, `None` if it has gone meanwhile.
    fn property(&self, object: Raw, atom: sys::JSAtom) -> Outcome<Option<Local>> {
        let cx = self.state.realm().cx;
        match cx.own_property(object, atom) {
            Ok(Some(Property::Data(value))) => Ok(Some(value)),
            Ok(Some(Property::Accessor(_))) if self.crossing == Crossing::Shown => {
                cx.string(&self.placeholder("[Getter]")).map(Some)
            }
            Ok(Some(Property::Accessor(getter))) => {
                let value = cx.run_getter(&getter, object);
                value.or_else(|thrown| self.instead_of(thrown)).map(Some)
            }
            Ok(None) => Ok(None),
            // A binding of a module that has no value yet.
            Err(thrown) => self.instead_of(thrown).map(Some),
        }
    }

    /// The text in a log for a value that threw while it was read.
    fn instead_of(&self, thrown: Thrown) -> Outcome<Local> {
        if !self.crossing.is_text() {
            return Err(thrown);
        }
        let cx = self.state.realm().cx;
        let thrown = cx.exception();
        if self.crossing == Crossing::Cell {
            self.state.still_running();
            let message = exception::execution_error(self.state, thrown.raw()).message;
            self.uncloned.borrow_mut().get_or_insert(message);
        }
        let headline = exception::headline(self.state, thrown.raw());
        cx.string(&self.placeholder(&format!("[Getter threw {headline}]")))
    }

    /// The text for a value that cannot be cloned.
    fn placeholder(&self, text: &str) -> String {
        if self.crossing == Crossing::Cell || self.shows_classes {
            marks::marked(text)
        } else {
            text.to_owned()
        }
    }

    /// Notes the reason why a value cannot leave the sandbox, and throws it where nothing stands for such a value.
    fn uncloned(&self, reason: String) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => Ok(()),
            Crossing::Cell => {
                self.uncloned.borrow_mut().get_or_insert(reason);
                Ok(())
            }
            _ => Err(self.state.throw_serialization_error(&reason)),
        }
    }

    /// A property of an error, of its own or inherited.
    fn inherited(&self, error: Raw, key: &CStr) -> Outcome<Local> {
        let cx = self.state.realm().cx;
        match self.crossing {
            Crossing::Shown => Ok(cx.data(error, key).unwrap_or_else(|| cx.dup(undefined()))),
            _ => cx.inherited(error, key).or_else(|thrown| self.instead_of(thrown)),
        }
    }

    fn index(&self, keys: &Keys, at: usize) -> Option<u32> {
        keys.atom(at).and_then(|atom| self.state.realm().cx.array_index(atom))
    }

    fn end_array(&mut self, length: u32, at: u32, sparse: bool) {
        if sparse {
            self.writer.end_sparse_array();
        } else {
            // Getters may have shortened the array meanwhile.
            (at..length).for_each(|_| self.hole());
        }
    }

    fn hole(&mut self) {
        self.look();
        self.writer.hole();
    }

    fn node(&mut self, value: Raw) -> Outcome<()> {
        self.look();
        if self.shown_enough() {
            self.writer.undefined();
            return Ok(());
        }
        if !self.crossing.is_text() {
            return self.written(value);
        }
        let written = self.writer.bytes();
        match self.written(value) {
            // It threw before anything of it was written: it cannot be read, or the stack is full.
            Err(thrown) if self.writer.bytes() == written => {
                let text = self.instead_of(thrown)?;
                self.string(text.raw())
            }
            done => done,
        }
    }

    #[inline]
    fn written(&mut self, value: Raw) -> Outcome<()> {
        match tag_of(value) {
            sys::JS_TAG_UNDEFINED | sys::JS_TAG_UNINITIALIZED => self.writer.undefined(),
            sys::JS_TAG_NULL => self.writer.null(),
            sys::JS_TAG_BOOL => self.writer.bool(int_of(value) != 0),
            sys::JS_TAG_INT => self.writer.int(int_of(value)),
            sys::JS_TAG_FLOAT64 => self.writer.number(double_of(value)),
            sys::JS_TAG_SHORT_BIG_INT | sys::JS_TAG_BIG_INT => self.bigint(value)?,
            sys::JS_TAG_SYMBOL => return self.symbol(value),
            _ if is_string(value) => self.string(value)?,
            _ if is_object(value) => return self.object(value),
            _ => return self.refuse("an internal value"),
        }
        Ok(())
    }

    /// Now and then: does the run have to end, and does the message still fit?
    fn look(&mut self) {
        self.nodes += 1;
        if self.nodes.is_multiple_of(NODES_PER_LOOK) {
            self.state.still_running();
            self.charge_growth(0);
        }
    }

    /// Charges the growth of the message and of the walk itself, and the bytes about to be added.
    fn charge_growth(&mut self, coming: usize) {
        /// Bytes of a place in a table, which may be more than half empty.
        const PLACE_IN_TABLE: usize = 32;
        let tables = (self.seen.len() + self.keys.len() + self.buffers.len()) * PLACE_IN_TABLE;
        let lists = (self.objects.capacity() + self.items) * size_of::<Local>()
            + self.frames.capacity() * size_of::<Frame>()
            + self.views.capacity() * size_of::<OwnView>();
        let unweighed = match self.crossing {
            Crossing::Inside => self.writer.weight(),
            _ => 0,
        };
        let bytes = self.writer.held_bytes() - unweighed + tables + lists + coming;
        if bytes > self.charged + CHARGE_STEP {
            self.charge(bytes - self.charged);
        }
    }

    /// Whether enough was written: only the beginning of a thrown value is shown.
    fn shown_enough(&self) -> bool {
        let most = if self.shows_classes { instances::MOST_NODES } else { SHOWN_NODES };
        self.crossing == Crossing::Shown && self.nodes as usize > most
    }

    fn charge(&mut self, bytes: usize) {
        self.state.charge(bytes);
        self.charged += bytes;
    }

    /// Whether a container is larger than those that may leave the sandbox.
    fn is_too_much(&self, count: usize, most: usize) -> bool {
        count > most && self.crossing != Crossing::Inside
    }

    fn key(&mut self, atom: u32) -> Outcome<()> {
        if let Some((number, _)) = self.keys.get(&atom) {
            self.writer.known_key(*number);
            return Ok(());
        }
        let cx = self.state.realm().cx;
        let mut key = cx.atom_string(atom)?;
        let units = usize::try_from(cx.length(key.raw())?).unwrap_or(0);
        if self.crossing == Crossing::Shown {
            key = self.state.beginning(key.raw(), SHOWN_UNITS)?;
        } else if self.is_too_much(units, MOST_KEY_UNITS) {
            if !matches!(self.crossing, Crossing::Log | Crossing::Shown) {
                let path = self.path();
                self.uncloned(format!("{path}: a key of {units} characters cannot be cloned"))?;
            }
            key = self.state.beginning(key.raw(), MOST_KEY_UNITS)?;
        }
        let number = cx.with_text(key.raw(), |key| {
            self.copy(key, |writer, key| match key {
                Seen::Utf8(key) => writer.new_key(key),
                Seen::Utf16(units) => writer.new_key16(units),
            })
        })?;
        self.keys.insert(atom, (number, cx.dup_atom(atom)));
        Ok(())
    }

    /// Handles a value that cannot cross: text in a log, an exception that names the path elsewhere.
    fn refuse(&mut self, what: &str) -> Outcome<()> {
        let bare = ["an instance of ", "an ", "a "].iter().find_map(|word| what.strip_prefix(word));
        self.refuse_as(what, &format!("[{}]", bare.unwrap_or(what)))
    }

    /// The same with the text in place of the value.
    fn refuse_as(&mut self, what: &str, text: &str) -> Outcome<()> {
        if !matches!(self.crossing, Crossing::Log | Crossing::Shown) {
            let (path, remedy) = (self.path(), self.remedy(what));
            self.uncloned(format!("{path}: {what} cannot be cloned{remedy}"))?;
        }
        self.text(&self.placeholder(text));
        Ok(())
    }

    /// The way to have a part of a run's result cross nevertheless.
    fn remedy(&self, what: &str) -> &'static str {
        if self.crossing != Crossing::Final || self.root != "result" {
            return "";
        }
        match what {
            "a function" => "; call it, and return its value",
            "a generator" => "; return its values: [...it]",
            _ if what.starts_with("an instance of ") => "; return its fields: { ...it }",
            _ => "",
        }
    }

    fn path(&self) -> String {
        path::join_shown(self.root, self.frames.len(), |at| {
            Some(match self.frames.get(at)? {
                Frame::Object { keys, next, .. } => {
                    let key = next.checked_sub(1).and_then(|last| keys.atom(last));
                    let text = key.map(|key| self.state.key_beginning(key, path::KEY_UNITS));
                    Step::Key(text.unwrap_or_default())
                }
                Frame::Array { at, .. } => Step::Index(at.saturating_sub(1) as usize),
                Frame::Map { next, .. } if next % 2 == 1 => Step::MapKey((next - 1) / 2),
                Frame::Map { next, .. } => Step::Member(next.saturating_sub(1) / 2),
                Frame::Set { next, .. } => Step::Member(next.saturating_sub(1)),
                Frame::Filler { .. } => return None,
            })
        })
    }
}
