//! Messages from values of the engine.
//!
//! In: a value of the sandbox. Out: a [`Value`], or an exception pending in the sandbox: the exception of a getter, or
//! a SerializationError that names the path. Keeps the contract's "Values": which values cross in which form, identity
//! within the message, order of keys, one run of each getter, no run of any proxy trap. The walk keeps a stack of its
//! own, so depth costs memory and nothing else, and it charges the message to the run's limit as it grows.

use std::{collections::HashMap, ffi::CStr, rc::Rc};

use crate::{
    binding::host::ASYNC_FUNCTION,
    isolate::{
        State,
        engine::{
            Keys, Local, Outcome, Property, Raw, Seen, Thrown, address_of, class_of, double_of,
            int_of, is_array, is_array_buffer, is_data_view, is_date, is_error, is_map, is_object,
            is_promise, is_proxy, is_regexp, is_set, is_string, sys, tag_of, typed_array_type,
            undefined,
        },
        exception,
    },
    value::{
        ErrorClass, MOST_ELEMENTS, MOST_ENTRIES, MOST_KEY_UNITS, MOST_PROPERTIES, Value, ViewKind,
        Writer,
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
}

impl Crossing {
    /// Whether text stands for a value that cannot be cloned.
    fn is_text(self) -> bool {
        matches!(self, Self::Log | Self::Shown)
    }
}

/// Nodes between two checks whether the run must end.
const NODES_PER_LOOK: u32 = 256;

/// Bytes by which a message grows before they are charged.
const CHARGE_STEP: usize = 64 << 10;

/// Nodes of a thrown value that are looked at, and units of each string: only a line of it is shown.
const SHOWN_NODES: usize = 500;
const SHOWN_UNITS: usize = 1_000;

/// The name of a buffer without memory in messages.
const DETACHED: &str = "a detached ArrayBuffer";

/// Clones a value out of the sandbox. `root` is the path's first word.
///
/// The message's bytes are charged to the run; whoever drops it discharges them.
pub(in crate::isolate) fn clone_out(
    state: &State,
    value: Raw,
    crossing: Crossing,
    root: &str,
) -> Outcome<Value> {
    let mut walk = Walk::new(state, crossing, root);
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
    let value = walk.finish();
    let refused = match crossing {
        Crossing::Live | Crossing::Final => state.refusal(&value),
        Crossing::Log | Crossing::Shown | Crossing::Inside => None,
    };
    let sent = match refused {
        None => promises.into_iter().try_for_each(|number| state.watch_promise(number)),
        Some(refusal) => Err(state.throw_serialization_error(&refusal.text(root))),
    };
    if sent.is_err() {
        state.discharge(value.held_bytes());
        unsend();
    }
    sent.map(|()| value)
}

/// Clones several values as one message, an array: the arguments of a call.
pub(in crate::isolate) fn clone_args_out(
    state: &State,
    args: &[Raw],
    crossing: Crossing,
    root: &str,
) -> Outcome<Value> {
    let cx = state.realm().cx;
    let array = cx.array()?;
    for (index, &arg) in (0..).zip(args) {
        cx.define_index(array.raw(), index, cx.dup(arg))?;
    }
    clone_out(state, array.raw(), crossing, root)
}

/// An object that is being read, with the progress.
enum Frame {
    Object { object: Local, keys: Rc<Keys>, next: usize },
    Array { array: Local, keys: Rc<Keys>, next: usize, length: u32, at: u32, sparse: bool },
    Map { items: Vec<Local>, next: usize },
    Set { items: Vec<Local>, next: usize },
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
        }
    }

    /// An own property of the object being read, `None` if it has gone meanwhile.
    fn property(&self, object: Raw, atom: sys::JSAtom) -> Outcome<Option<Local>> {
        let cx = self.state.realm().cx;
        match cx.own_property(object, atom) {
            Ok(Some(Property::Data(value))) => Ok(Some(value)),
            Ok(Some(Property::Accessor(_))) if self.crossing == Crossing::Shown => {
                cx.string("[Getter]").map(Some)
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
        cx.string(&format!("[Getter threw {}]", exception::headline(self.state, thrown.raw())))
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
        self.crossing == Crossing::Shown && self.nodes as usize > SHOWN_NODES
    }

    fn charge(&mut self, bytes: usize) {
        self.state.charge(bytes);
        self.charged += bytes;
    }

    fn string(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let shown;
        let value = if self.crossing == Crossing::Shown {
            shown = self.state.beginning(value, SHOWN_UNITS)?;
            shown.raw()
        } else {
            value
        };
        cx.with_text(value, |text| {
            self.copy(text, |writer, text| match text {
                Seen::Utf8(text) => writer.string(text),
                Seen::Utf16(units) => writer.string16(units),
            });
        })?;
        self.charge_growth(0);
        Ok(())
    }

    /// Writes a text, and charges for it before it is copied.
    #[inline]
    fn copy<T>(&mut self, text: Seen<'_>, write: impl FnOnce(&mut Writer, Seen<'_>) -> T) -> T {
        /// Bytes that the writer takes for each unit, while it writes.
        const COPIES: usize = 4;
        match text {
            Seen::Utf8(utf8) => {
                if utf8.len() > CHARGE_STEP {
                    self.charge_growth(utf8.len());
                }
                write(&mut self.writer, text)
            }
            Seen::Utf16(units) => {
                let copies = units.len() * COPIES;
                self.charge_growth(size_of_val(units));
                self.state.charge(copies);
                let written = write(&mut self.writer, text);
                self.state.discharge(copies);
                written
            }
        }
    }

    /// Writes a text of ours, of bounded length.
    fn text(&mut self, text: &str) {
        self.writer.string(text);
        self.charge_growth(0);
    }

    fn bigint(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let to_string = realm.intrinsics.bigint_to_string;
        let hex = realm.cx.call(to_string, value, &[crate::isolate::engine::int(16)])?;
        realm.cx.with_bytes(hex.raw(), |hex| {
            // Two digits are a byte, which is there twice for a moment.
            if hex.len() > CHARGE_STEP {
                self.charge_growth(hex.len());
            }
            let digits = hex.strip_prefix(b"-").unwrap_or(hex);
            let magnitude: Vec<u8> = digits
                .rchunks(2)
                .map(|pair| pair.iter().fold(0, |byte, &digit| byte << 4 | hex_digit(digit)))
                .collect();
            self.writer.bigint(digits.len() < hex.len(), &magnitude);
        })?;
        self.charge_growth(0);
        Ok(())
    }

    fn symbol(&mut self, value: Raw) -> Outcome<()> {
        if !self.crossing.is_text() {
            return self.refuse("a symbol");
        }
        let text = self.state.symbol_text(value);
        self.text(&text);
        Ok(())
    }

    fn object(&mut self, value: Raw) -> Outcome<()> {
        if let Some(&index) = self.seen.get(&address_of(value)) {
            self.check_thenable(value)?;
            self.writer.reference(index);
            return Ok(());
        }
        let realm = self.state.realm();
        let cx = realm.cx;
        if is_proxy(value) {
            return self.refuse("a Proxy");
        }
        if let Some(number) = self.state.host_function_number(value) {
            return self.host_function(value, number);
        }
        if cx.is_function(value) {
            return self.function(value);
        }
        let class = class_of(value);
        if let Some((_, value_of)) = realm.intrinsics.value_of.iter().find(|(c, _)| *c == class) {
            let primitive = cx.call(*value_of, value, &[])?;
            return self.node(primitive.raw());
        }
        match () {
            () if is_array(value) => self.array(value),
            () if is_error(value) => self.error(value),
            () if is_date(value) => self.date(value),
            () if is_map(value) => self.map(value),
            () if is_set(value) => self.set(value),
            () if is_regexp(value) => self.regexp(value),
            () if is_promise(value) => self.promise(value),
            () if is_array_buffer(value) => self.buffer(value),
            () if is_data_view(value) => self.data_view(value),
            () => match typed_array_type(value) {
                Some(kind) => self.typed_array(value, kind),
                None => self.plain(value, class),
            },
        }
    }

    /// Remembers an object under the index that the next node will have.
    fn enter(&mut self, value: Raw) {
        self.seen.insert(address_of(value), self.writer.next_object());
        self.objects.push(self.state.realm().cx.dup(value));
    }

    fn plain(&mut self, value: Raw, class: u32) -> Outcome<()> {
        let realm = self.state.realm();
        let prototype = realm.cx.prototype(value)?;
        let expected = [realm.intrinsics.object_prototype, sys::JS_NULL];
        let plain = realm.intrinsics.plain_classes.contains(&class)
            && expected.iter().any(|raw| same(*raw, prototype.raw()));
        if !plain {
            let what = describe(self.state, value);
            return self.refuse(&what);
        }
        let keys = Rc::new(realm.cx.keys(value)?);
        if self.is_too_much(keys.len(), MOST_PROPERTIES) {
            return self.refuse(&format!("an object of {} properties", keys.len()));
        }
        self.enter(value);
        self.writer.object();
        self.frames.push(Frame::Object { object: realm.cx.dup(value), keys, next: 0 });
        Ok(())
    }

    fn array(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let length = u32::try_from(cx.length(value)?).map_err(|_| Thrown)?;
        if self.crossing == Crossing::Shown && length as usize > SHOWN_NODES {
            return self.beginning_of_array(value);
        }
        let keys = Rc::new(cx.keys(value)?);
        // Indices come first and in order; so the array is dense if the last of them is its last index.
        let dense = length == 0 || self.index(&keys, length as usize - 1) == Some(length - 1);
        if self.is_too_much(keys.len(), if dense { MOST_ELEMENTS } else { MOST_PROPERTIES }) {
            let holes = if dense { "" } else { " with holes" };
            return self.refuse(&format!("an array of {} elements{holes}", keys.len()));
        }
        self.enter(value);
        if dense {
            self.writer.array(length);
        } else {
            self.writer.sparse_array(length);
        }
        let array = cx.dup(value);
        self.frames.push(Frame::Array { array, keys, next: 0, length, at: 0, sparse: !dense });
        Ok(())
    }

    /// The first elements, as many as are shown.
    fn beginning_of_array(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let items = (0..count(SHOWN_NODES)?)
            .map(|index| {
                let element = self.property(value, cx.index_atom(index)?.id)?;
                Ok(element.unwrap_or_else(|| cx.dup(undefined())))
            })
            .collect::<Outcome<Vec<_>>>()?;
        self.enter(value);
        self.writer.array(count(items.len())?);
        self.frames.push(Frame::Set { items, next: 0 });
        Ok(())
    }

    fn map(&mut self, value: Raw) -> Outcome<()> {
        let for_each = self.state.realm().intrinsics.map_for_each;
        let mut items = self.state.collect(for_each, value, true)?;
        self.items += items.capacity();
        if self.crossing == Crossing::Shown {
            items.truncate(2 * SHOWN_NODES);
        }
        if self.is_too_much(items.len() / 2, MOST_ENTRIES) {
            return self.refuse(&format!("a Map of {} entries", items.len() / 2));
        }
        self.enter(value);
        self.charge_growth(0);
        let numbers = items.iter().step_by(2).any(is_numeric);
        self.writer.map_keyed(count(items.len() / 2)?, numbers);
        self.frames.push(Frame::Map { items, next: 0 });
        Ok(())
    }

    fn set(&mut self, value: Raw) -> Outcome<()> {
        let for_each = self.state.realm().intrinsics.set_for_each;
        let mut items = self.state.collect(for_each, value, false)?;
        self.items += items.capacity();
        if self.crossing == Crossing::Shown {
            items.truncate(SHOWN_NODES);
        }
        if self.is_too_much(items.len(), MOST_ENTRIES) {
            return self.refuse(&format!("a Set of {} entries", items.len()));
        }
        self.enter(value);
        self.charge_growth(0);
        self.writer.set_of(count(items.len())?, items.iter().any(is_numeric));
        self.frames.push(Frame::Set { items, next: 0 });
        Ok(())
    }

    /// Whether a container is larger than those that may leave the sandbox.
    fn is_too_much(&self, count: usize, most: usize) -> bool {
        count > most && self.crossing != Crossing::Inside
    }

    fn date(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let time = realm.cx.call(realm.intrinsics.date_get_time, value, &[])?;
        self.enter(value);
        self.writer.date(match tag_of(time.raw()) {
            sys::JS_TAG_INT => f64::from(int_of(time.raw())),
            _ => double_of(time.raw()),
        });
        Ok(())
    }

    fn regexp(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let source = realm.cx.call(realm.intrinsics.regexp_source, value, &[])?;
        let mut flags = String::new();
        for (letter, getter) in realm.intrinsics.regexp_flags {
            if int_of(realm.cx.call(getter, value, &[])?.raw()) != 0 {
                flags.push(letter);
            }
        }
        self.enter(value);
        self.writer.regexp();
        self.string(source.raw())?;
        self.writer.string(&flags);
        Ok(())
    }

    fn error(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let class = error_class(self.state, value);
        let name = self.inherited(value, c"name")?;
        let message = self.inherited(value, c"message")?;
        // A class of the sandbox may define it; the language's own classes do not.
        let classes = &self.state.realm().intrinsics.error_prototypes;
        let code = match self.crossing {
            Crossing::Shown => cx.dup(undefined()),
            _ => {
                let code = cx.inherited_below(value, c"code", classes);
                code.or_else(|thrown| self.instead_of(thrown))?
            }
        };
        self.enter(value);
        self.writer.error(class);
        if is_string(name.raw()) {
            self.string(name.raw())?;
        } else {
            self.writer.string(class.name());
        }
        if is_string(message.raw()) {
            self.string(message.raw())?;
        } else {
            self.writer.string("");
        }
        match exception::stack_of(self.state, value) {
            Some(stack) if self.crossing != Crossing::Inside => self.text(&stack),
            _ => self.writer.undefined(),
        }
        match tag_of(code.raw()) {
            sys::JS_TAG_INT | sys::JS_TAG_FLOAT64 => self.node(code.raw()),
            _ if is_string(code.raw()) => self.string(code.raw()),
            _ => {
                self.writer.undefined();
                Ok(())
            }
        }
    }

    fn buffer(&mut self, value: Raw) -> Outcome<()> {
        let Some(bytes) = self.bytes_of(value) else { return self.refuse(DETACHED) };
        let blob = self.blob(bytes);
        self.buffers.insert(address_of(value), blob);
        self.enter(value);
        self.writer.buffer(blob);
        Ok(())
    }

    /// A copy of bytes beside the message. The text of a thrown value shows none.
    fn blob(&mut self, bytes: &[u8]) -> u32 {
        if self.crossing == Crossing::Shown {
            return self.writer.blob(Vec::new());
        }
        self.charge(bytes.len());
        self.writer.blob(bytes.to_vec())
    }

    /// The bytes of a buffer, `None` where it is detached.
    fn bytes_of(&self, buffer: Raw) -> Option<&'static [u8]> {
        let cx = self.state.realm().cx;
        cx.buffer_bytes(buffer).map_err(|Thrown| drop(cx.exception())).ok()
    }

    fn typed_array(&mut self, value: Raw, kind: u32) -> Outcome<()> {
        let realm = self.state.realm();
        let Ok((buffer, offset)) = realm.cx.typed_array_buffer(value) else {
            drop(realm.cx.exception());
            return self.refuse("a view of a detached ArrayBuffer");
        };
        // This getter also gives the length of a view that follows the length of its buffer.
        let length = self.measure(realm.intrinsics.typed_array_byte_length, value)?;
        let kind = view_kind(kind).ok_or(Thrown)?;
        self.view(value, kind, buffer.raw(), offset, length)
    }

    fn data_view(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let intrinsics = realm.intrinsics;
        let buffer = realm.cx.call(intrinsics.data_view_buffer, value, &[])?;
        let offset = self.measure(intrinsics.data_view_byte_offset, value);
        let length = self.measure(intrinsics.data_view_byte_length, value);
        let (Ok(offset), Ok(length)) = (offset, length) else {
            drop(realm.cx.exception());
            return self.refuse("a view of a detached ArrayBuffer");
        };
        self.view(value, ViewKind::DataView, buffer.raw(), offset, length)
    }

    /// The number of bytes that one of the engine's own getters returns for a view.
    fn measure(&self, getter: Raw, view: Raw) -> Outcome<usize> {
        let number = self.state.realm().cx.call(getter, view, &[])?;
        Ok(match tag_of(number.raw()) {
            sys::JS_TAG_INT => usize::try_from(int_of(number.raw())).unwrap_or(0),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
            _ => double_of(number.raw()) as usize,
        })
    }

    fn view(
        &mut self,
        value: Raw,
        kind: ViewKind,
        buffer: Raw,
        offset: usize,
        length: usize,
    ) -> Outcome<()> {
        let Some(bytes) = self.bytes_of(buffer) else { return self.refuse(DETACHED) };
        let own = offset.checked_add(length).and_then(|end| bytes.get(offset..end)).unwrap_or(&[]);
        let elements = (own.len() / kind.element_bytes()) as u64;
        self.enter(value);
        let (buffer, length) = (address_of(buffer), own.len());
        if let Some(blob) = self.blob_of(buffer, offset, length) {
            self.writer.view(kind, blob, offset as u64, elements);
            return Ok(());
        }
        let blob = self.blob(own);
        let place = self.writer.view(kind, blob, 0, elements);
        self.views.push(OwnView { place, buffer, offset, length });
        Ok(())
    }

    /// The blob of a buffer in the message, if it is long enough for a view: getters can resize a buffer between the
    /// two.
    fn blob_of(&self, buffer: usize, offset: usize, length: usize) -> Option<u32> {
        let blob = *self.buffers.get(&buffer)?;
        (offset + length <= self.writer.blob_bytes(blob)).then_some(blob)
    }

    fn host_function(&mut self, value: Raw, number: u32) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.function_text(value);
                Ok(())
            }
            Crossing::Inside => self.refuse("a function"),
            Crossing::Live | Crossing::Final => {
                self.check_thenable(value)?;
                self.enter(value);
                self.writer.host_function(number & !ASYNC_FUNCTION);
                self.writer.string("");
                Ok(())
            }
        }
    }

    fn function(&mut self, value: Raw) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.function_text(value);
                Ok(())
            }
            Crossing::Inside | Crossing::Final => self.refuse("a function"),
            Crossing::Live => {
                self.check_thenable(value)?;
                let number = self.state.export_function(value);
                let name = self.state.function_name(value);
                self.enter(value);
                self.functions.push(number);
                self.writer.sandbox_function(number);
                self.text(&name);
                Ok(())
            }
        }
    }

    /// Refuses a function that is the `then` of an object. A host that awaits the object, or resolves a promise with
    /// it, would call the function and wait for an answer that never comes. Whether there is one is known only here,
    /// after getters have run.
    fn check_thenable(&self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let Some(Frame::Object { keys, next, .. }) = self.frames.last() else { return Ok(()) };
        let key = next.checked_sub(1).and_then(|last| keys.atom(last));
        if !cx.is_function(value) || key != Some(cx.atom("then")?.id) {
            return Ok(());
        }
        let path = self.path();
        Err(self.state.throw_serialization_error(&format!(
            "{path}: a function named 'then' cannot be cloned: its reader would take the object for a promise"
        )))
    }

    fn function_text(&mut self, value: Raw) {
        let name = self.state.function_name(value);
        self.text(&match name.as_str() {
            "" => "[Function (anonymous)]".to_owned(),
            name => format!("[Function: {name}]"),
        });
    }

    fn promise(&mut self, value: Raw) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.writer.string("[Promise]");
                Ok(())
            }
            Crossing::Inside | Crossing::Final => {
                let path = self.path();
                Err(self.state.throw_serialization_error(&format!(
                    "{path}: a promise cannot be cloned; await it first"
                )))
            }
            Crossing::Live => {
                let number = self.state.export_promise(value)?;
                self.enter(value);
                self.writer.sandbox_promise(number);
                self.promises.push(number);
                Ok(())
            }
        }
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
            if !self.crossing.is_text() {
                let path = self.path();
                let what = format!("{path}: a key of {units} characters cannot be cloned");
                return Err(self.state.throw_serialization_error(&what));
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
        if self.crossing.is_text() {
            let bare =
                ["an instance of ", "an ", "a "].iter().find_map(|word| what.strip_prefix(word));
            self.text(&format!("[{}]", bare.unwrap_or(what)));
            return Ok(());
        }
        let path = self.path();
        Err(self.state.throw_serialization_error(&format!("{path}: {what} cannot be cloned")))
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
            })
        })
    }
}

/// Whether it is a number or a big integer.
fn is_numeric(value: &Local) -> bool {
    matches!(
        tag_of(value.raw()),
        sys::JS_TAG_INT | sys::JS_TAG_FLOAT64 | sys::JS_TAG_SHORT_BIG_INT | sys::JS_TAG_BIG_INT
    )
}

fn count(length: usize) -> Outcome<u32> {
    u32::try_from(length).map_err(|_| Thrown)
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    }
}

pub(in crate::isolate) fn same(left: Raw, right: Raw) -> bool {
    tag_of(left) == tag_of(right) && (!is_object(left) || address_of(left) == address_of(right))
}

/// The error class whose prototype is nearest in the chain.
pub(in crate::isolate) fn error_class(state: &State, error: Raw) -> ErrorClass {
    const LONGEST_CHAIN: usize = 64;
    let realm = state.realm();
    let mut at = realm.cx.dup(error);
    for _ in 0..LONGEST_CHAIN {
        if !is_object(at.raw()) || is_proxy(at.raw()) {
            break;
        }
        let Ok(prototype) = realm.cx.prototype(at.raw()) else { break };
        let classes = realm.intrinsics.error_prototypes;
        let found = classes.iter().position(|class| same(*class, prototype.raw()));
        if let Some(class) = found.and_then(|class| u8::try_from(class).ok()) {
            return ErrorClass::from_byte(class);
        }
        at = prototype;
    }
    ErrorClass::Error
}

/// The name of an object that cannot be cloned, read without running any code.
fn describe(state: &State, value: Raw) -> String {
    let cx = state.realm().cx;
    let class = class_of(value);
    let plain = state.realm().intrinsics.plain_classes.contains(&class);
    match cx.class_name(class).as_deref() {
        Some("Generator" | "AsyncGenerator") => return "a generator".to_owned(),
        Some(name) if !plain && !name.is_empty() => {
            let article = if name.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
            return format!("{article} {name}");
        }
        _ => {}
    }
    match constructor_name(state, value) {
        Some(name) if !name.is_empty() => format!("an instance of {name}"),
        _ => "an instance of an unnamed class".to_owned(),
    }
}

fn constructor_name(state: &State, value: Raw) -> Option<String> {
    let cx = state.realm().cx;
    let prototype =
        cx.prototype(value).ok().filter(|p| is_object(p.raw()) && !is_proxy(p.raw()))?;
    let constructor = cx.own_data(prototype.raw(), c"constructor")?;
    cx.is_function(constructor.raw()).then(|| state.function_name(constructor.raw()))
}

fn view_kind(engine: u32) -> Option<ViewKind> {
    Some(match engine {
        0 => ViewKind::Uint8ClampedArray,
        1 => ViewKind::Int8Array,
        2 => ViewKind::Uint8Array,
        3 => ViewKind::Int16Array,
        4 => ViewKind::Uint16Array,
        5 => ViewKind::Int32Array,
        6 => ViewKind::Uint32Array,
        7 => ViewKind::BigInt64Array,
        8 => ViewKind::BigUint64Array,
        9 => ViewKind::Float16Array,
        10 => ViewKind::Float32Array,
        11 => ViewKind::Float64Array,
        _ => return None,
    })
}
