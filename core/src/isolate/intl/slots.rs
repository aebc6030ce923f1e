//! The blocks in which objects of `Intl` keep their options.
//!
//! In: options, which are plain data. Out: an object of a class of ours, and its options again. A block is a part of the
//! engine's heap, so it counts against the memory limit, and an image of the heap has it.

use std::ptr;

use super::super::{
    engine::{Cx, Local, Outcome, Raw, Thrown, class_of, sys, tag_of, undefined},
    state::State,
};
use crate::intl::{
    collate::CollatorOptions,
    date::DateOptions,
    number::{Digits, NumberOptions},
    options::{Granularity, ListKind, Numeric, PluralKind, TextWidth},
};

/// The options of an object, by its service.
#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    Number {
        is_plain: bool,
        options: NumberOptions,
    },
    Date {
        is_plain: bool,
        options: DateOptions,
    },
    Plural {
        is_plain: bool,
        kind: PluralKind,
        digits: Digits,
    },
    Relative {
        is_plain: bool,
        width: TextWidth,
        numeric: Numeric,
    },
    List {
        is_plain: bool,
        kind: ListKind,
        width: TextWidth,
    },
    Collator {
        is_plain: bool,
        options: CollatorOptions,
    },
    Segmenter {
        is_plain: bool,
        granularity: Granularity,
    },
    /// The segments of a text, which is bound.
    Segments {
        granularity: Granularity,
    },
    /// The same, one after the other.
    SegmentIterator {
        granularity: Granularity,
        at: i64,
    },
}

impl Slot {
    /// The number of the service; of no service, for segments.
    pub(super) fn service(&self) -> usize {
        match self {
            Self::Number { .. } => 0,
            Self::Date { .. } => 1,
            Self::Plural { .. } => 2,
            Self::Relative { .. } => 3,
            Self::List { .. } => 4,
            Self::Collator { .. } => 5,
            Self::Segmenter { .. } => 6,
            Self::Segments { .. } | Self::SegmentIterator { .. } => usize::MAX,
        }
    }
}

/// A block of the engine's memory.
struct Block {
    slot: Slot,
    /// The function that the object's getter has given, the text of segments, or `undefined`.
    bound: Raw,
}

/// Registers the class of all objects of services.
pub(in crate::isolate) fn register_class(runtime: *mut sys::JSRuntime) -> Option<u32> {
    let mut class = 0;
    let definition = sys::JSClassDef {
        class_name: c"Intl".as_ptr(),
        finalizer: Some(finalize),
        gc_mark: Some(mark),
        call: None,
        exotic: ptr::null_mut(),
    };
    // SAFETY: a live runtime; the engine copies the parts of the definition that it needs.
    unsafe {
        sys::JS_NewClassID(runtime, &raw mut class);
        (sys::JS_NewClass(runtime, class, &raw const definition) == 0).then_some(class)
    }
}

/// The block of an object, of whatever class that is ours.
fn block(object: Raw) -> *mut Block {
    let mut class = 0;
    // SAFETY: any value may be asked; only objects of our class come here.
    unsafe { sys::JS_GetAnyOpaque(object, &raw mut class) }.cast()
}

unsafe extern "C" fn finalize(runtime: *mut sys::JSRuntime, object: Raw) {
    let block = block(object);
    if !block.is_null() {
        // SAFETY: the block is the object's own, and the object is gone after this.
        unsafe {
            sys::JS_FreeValueRT(runtime, (*block).bound);
            sys::js_free_rt(runtime, block.cast());
        }
    }
}

unsafe extern "C" fn mark(runtime: *mut sys::JSRuntime, object: Raw, marks: sys::JS_MarkFunc) {
    let block = block(object);
    if !block.is_null() {
        // SAFETY: the block is the object's own, which lives.
        unsafe { sys::JS_MarkValue(runtime, (*block).bound, marks) }
    }
}

/// A new object with those options.
pub(super) fn object(state: &State, cx: Cx, prototype: Raw, slot: Slot) -> Outcome<Local> {
    let object = cx.object_of(state.realm().intrinsics.intl.class, prototype)?;
    // SAFETY: a live runtime; the new block is written before anything reads it.
    unsafe {
        let runtime = sys::JS_GetRuntime(cx.0);
        let block = sys::js_mallocz_rt(runtime, size_of::<Block>() as _).cast::<Block>();
        if block.is_null() {
            return Err(Thrown);
        }
        block.write(Block { slot, bound: undefined() });
        sys::JS_SetOpaque(object.raw(), block.cast());
    }
    Ok(object)
}

/// The options of an object of `Intl`; `None` for any other value.
pub(super) fn slot(state: &State, value: Raw) -> Option<Slot> {
    let block = own_block(state, value)?;
    // SAFETY: the object lives, and its block with it.
    Some(unsafe { (*block).slot })
}

/// The value that the object keeps.
pub(super) fn bound(state: &State, cx: Cx, value: Raw) -> Option<Local> {
    let block = own_block(state, value)?;
    // SAFETY: the object lives, and its block with it.
    let bound = unsafe { (*block).bound };
    (tag_of(bound) != sys::JS_TAG_UNDEFINED).then(|| cx.dup(bound))
}

/// Keeps a value, the function that the object's getter gives or the text of segments. The object has none yet.
pub(super) fn keep_bound(state: &State, cx: Cx, value: Raw, kept: &Local) {
    if let Some(block) = own_block(state, value) {
        // SAFETY: the object lives, and its block with it.
        unsafe { (*block).bound = cx.dup(kept.raw()).into_raw() }
    }
}

/// Gives an object other options.
pub(super) fn set_slot(state: &State, value: Raw, slot: Slot) {
    if let Some(block) = own_block(state, value) {
        // SAFETY: the object lives, and its block with it.
        unsafe { (*block).slot = slot }
    }
}

fn own_block(state: &State, value: Raw) -> Option<*mut Block> {
    (class_of(value) == state.realm().intrinsics.intl.class)
        .then(|| block(value))
        .filter(|block| !block.is_null())
}
