//! Objects on their way out, by their class.
//!
//! In: an object of the sandbox. Out: its first node, with a frame of the walk for its members; or a refusal that names
//! the path. Internal slots are read through the engine's own getters, which the sandbox cannot change.

use std::rc::Rc;

use super::{
    Crossing, DETACHED, Frame, OwnView, SHOWN_NODES, Walk,
    describe::{describe, error_class, same},
    instances::MOST_ITEMS,
};
use crate::{
    binding::host::ASYNC_FUNCTION,
    data::text::MESSAGE_LIMIT,
    isolate::{
        engine::{
            Local, Outcome, Raw, Thrown, address_of, class_of, double_of, int_of, is_array,
            is_array_buffer, is_data_view, is_date, is_error, is_map, is_promise, is_proxy,
            is_regexp, is_set, is_string, sys, tag_of, typed_array_type, undefined,
        },
        exception,
    },
    value::{MOST_ELEMENTS, MOST_ENTRIES, MOST_PROPERTIES, ViewKind},
};

impl Walk<'_> {
    pub(super) fn object(&mut self, value: Raw) -> Outcome<()> {
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
        if self.shows_classes && self.is_too_deep(value, class) {
            return Ok(());
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
    pub(super) fn enter(&mut self, value: Raw) {
        self.seen.insert(address_of(value), self.writer.next_object());
        self.objects.push(self.state.realm().cx.dup(value));
    }

    pub(super) fn plain(&mut self, value: Raw, class: u32) -> Outcome<()> {
        let realm = self.state.realm();
        let prototype = realm.cx.prototype(value)?;
        let expected = [realm.intrinsics.object_prototype, sys::JS_NULL];
        let plain = realm.intrinsics.plain_classes.contains(&class)
            && expected.iter().any(|raw| same(*raw, prototype.raw()));
        if !plain {
            if self.shows_classes && realm.intrinsics.plain_classes.contains(&class) {
                return self.shown_instance(value);
            }
            let what = describe(self.state, value);
            return match self.instance_text(value, class) {
                Some(text) => self.refuse_as(&what, &text),
                None => self.refuse(&what),
            };
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

    pub(super) fn array(&mut self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let length = u32::try_from(cx.length(value)?).map_err(|_| Thrown)?;
        if self.shows_classes && length as usize > MOST_ITEMS {
            return self.beginning_of_long_array(value, length);
        }
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
    pub(super) fn beginning_of_array(&mut self, value: Raw) -> Outcome<()> {
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

    pub(super) fn map(&mut self, value: Raw) -> Outcome<()> {
        let for_each = self.state.realm().intrinsics.map_for_each;
        let mut items = self.state.collect(for_each, value, true)?;
        self.items += items.capacity();
        let left = self.keep_shown(&mut items, 2);
        if self.crossing == Crossing::Shown {
            items.truncate(2 * SHOWN_NODES);
        }
        if self.is_too_much(items.len() / 2, MOST_ENTRIES) {
            return self.refuse(&format!("a Map of {} entries", items.len() / 2));
        }
        self.enter(value);
        self.charge_growth(0);
        let numbers = items.iter().step_by(2).any(is_numeric);
        self.writer.map_keyed(count(items.len() / 2 + left / 2)?, numbers);
        self.fill(left);
        self.frames.push(Frame::Map { items, next: 0 });
        Ok(())
    }

    pub(super) fn set(&mut self, value: Raw) -> Outcome<()> {
        let for_each = self.state.realm().intrinsics.set_for_each;
        let mut items = self.state.collect(for_each, value, false)?;
        self.items += items.capacity();
        let left = self.keep_shown(&mut items, 1);
        if self.crossing == Crossing::Shown {
            items.truncate(SHOWN_NODES);
        }
        if self.is_too_much(items.len(), MOST_ENTRIES) {
            return self.refuse(&format!("a Set of {} entries", items.len()));
        }
        self.enter(value);
        self.charge_growth(0);
        self.writer.set_of(count(items.len() + left)?, items.iter().any(is_numeric));
        self.fill(left);
        self.frames.push(Frame::Set { items, next: 0 });
        Ok(())
    }

    pub(super) fn date(&mut self, value: Raw) -> Outcome<()> {
        let realm = self.state.realm();
        let time = realm.cx.call(realm.intrinsics.date_get_time, value, &[])?;
        self.enter(value);
        self.writer.date(match tag_of(time.raw()) {
            sys::JS_TAG_INT => f64::from(int_of(time.raw())),
            _ => double_of(time.raw()),
        });
        Ok(())
    }

    pub(super) fn regexp(&mut self, value: Raw) -> Outcome<()> {
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

    pub(super) fn error(&mut self, value: Raw) -> Outcome<()> {
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
        match self.crossing {
            // Neither is read. Showing the causes of an error may show other errors.
            Crossing::Inside | Crossing::Shown => self.writer.undefined(),
            Crossing::Log | Crossing::Live | Crossing::Final | Crossing::Cell => {
                let text = |text: &Local| self.state.excerpt(text.raw(), MESSAGE_LIMIT);
                let is_text = |text: &&Local| is_string(text.raw());
                let name = Some(&name).filter(is_text).map_or(class.name().to_owned(), text);
                let message = Some(&message).filter(is_text).map(text).unwrap_or_default();
                let stack = exception::stack_of(self.state, value, &name, &message);
                self.text(&stack);
            }
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

    pub(super) fn buffer(&mut self, value: Raw) -> Outcome<()> {
        let Some(bytes) = self.bytes_of(value) else { return self.refuse(DETACHED) };
        let blob = self.blob(bytes);
        self.buffers.insert(address_of(value), blob);
        self.enter(value);
        self.writer.buffer(blob);
        Ok(())
    }

    /// A copy of bytes beside the message. The text of a thrown value shows none.
    pub(super) fn blob(&mut self, bytes: &[u8]) -> u32 {
        if self.crossing == Crossing::Shown {
            return self.writer.blob(Vec::new());
        }
        self.charge(bytes.len());
        self.writer.blob(bytes.to_vec())
    }

    /// The bytes of a buffer, `None` where it is detached.
    pub(super) fn bytes_of(&self, buffer: Raw) -> Option<&'static [u8]> {
        let cx = self.state.realm().cx;
        cx.buffer_bytes(buffer).map_err(|Thrown| drop(cx.exception())).ok()
    }

    pub(super) fn typed_array(&mut self, value: Raw, kind: u32) -> Outcome<()> {
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

    pub(super) fn data_view(&mut self, value: Raw) -> Outcome<()> {
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
    pub(super) fn measure(&self, getter: Raw, view: Raw) -> Outcome<usize> {
        let number = self.state.realm().cx.call(getter, view, &[])?;
        Ok(match tag_of(number.raw()) {
            sys::JS_TAG_INT => usize::try_from(int_of(number.raw())).unwrap_or(0),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
            _ => double_of(number.raw()) as usize,
        })
    }

    pub(super) fn view(
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
    pub(super) fn blob_of(&self, buffer: usize, offset: usize, length: usize) -> Option<u32> {
        let blob = *self.buffers.get(&buffer)?;
        (offset + length <= self.writer.blob_bytes(blob)).then_some(blob)
    }

    pub(super) fn host_function(&mut self, value: Raw, number: u32) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.function_text(value);
                Ok(())
            }
            Crossing::Inside => self.refuse("a function"),
            Crossing::Live | Crossing::Final | Crossing::Cell => {
                self.check_thenable(value)?;
                self.enter(value);
                self.writer.host_function(number & !ASYNC_FUNCTION);
                self.writer.string("");
                Ok(())
            }
        }
    }

    pub(super) fn function(&mut self, value: Raw) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.function_text(value);
                Ok(())
            }
            Crossing::Cell => {
                let path = self.path();
                self.uncloned(format!("{path}: a function cannot be cloned"))?;
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
    pub(super) fn check_thenable(&self, value: Raw) -> Outcome<()> {
        let cx = self.state.realm().cx;
        let Some(Frame::Object { keys, next, .. }) = self.frames.last() else { return Ok(()) };
        let key = next.checked_sub(1).and_then(|last| keys.atom(last));
        if !cx.is_function(value) || key != Some(cx.atom("then")?.id) {
            return Ok(());
        }
        let path = self.path();
        self.uncloned(format!(
            "{path}: a function named 'then' cannot be cloned: its reader would take the object for a promise"
        ))
    }

    pub(super) fn function_text(&mut self, value: Raw) {
        let name = self.state.function_name(value);
        let text = match name.as_str() {
            "" => "[Function (anonymous)]".to_owned(),
            name => format!("[Function: {name}]"),
        };
        self.text(&self.placeholder(&text));
    }

    pub(super) fn promise(&mut self, value: Raw) -> Outcome<()> {
        match self.crossing {
            Crossing::Log | Crossing::Shown => {
                self.text(&self.placeholder("[Promise]"));
                Ok(())
            }
            Crossing::Inside | Crossing::Final | Crossing::Cell => {
                let path = self.path();
                self.uncloned(format!("{path}: a promise cannot be cloned; await it first"))?;
                self.text(&self.placeholder("[Promise]"));
                Ok(())
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
}

/// Whether it is a number or a big integer.
fn is_numeric(value: &Local) -> bool {
    matches!(
        tag_of(value.raw()),
        sys::JS_TAG_INT | sys::JS_TAG_FLOAT64 | sys::JS_TAG_SHORT_BIG_INT | sys::JS_TAG_BIG_INT
    )
}

pub(super) fn count(length: usize) -> Outcome<u32> {
    u32::try_from(length).map_err(|_| Thrown)
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
