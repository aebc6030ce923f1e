//! A second context of a realm, with global declarations of its own.
//!
//! In: a context that is finished. Out: another one of the same runtime, which has the same global object and the same
//! intrinsics, no global declarations, and no modules. So code that is loaded there sees other declarations, and is like
//! all other code otherwise. The engine has no function for that, so this copies the context by the engine's declaration
//! of it. That declaration is accepted once a process, if it agrees with all that is known of a context, and if code runs
//! in a copy as it should. Contexts differ in one thing more: each notes for itself whether code has given the prototype
//! of arrays an element, and takes a shorter way to append to an array where it has not seen that.

use std::{
    ffi::{CStr, c_void},
    mem::offset_of,
    ptr::{self, addr_of_mut},
    sync::OnceLock,
};

use super::{
    Cx, Local, Outcome, Raw, Text, Thrown, address_of, class_of, is_object, lexical, sys, tag_of,
    trial,
};
use crate::{isolate::memory::calibrate, os::process::PerProcess};

/// The values that a context holds.
const VALUES: usize = 27;

/// The words of a context's counts and flags. Compilers for Windows begin a new word at each bit field of another type.
const FLAGS: usize = if cfg!(windows) { 4 } else { 2 };

/// `JSContext`.
#[repr(C)]
struct Context {
    /// Its place in the list of what the collector knows.
    collected: Link,
    runtime: *mut sys::JSRuntime,
    /// Its place in the list of contexts.
    listed: Link,
    flags: [u32; FLAGS],
    shapes: [*mut c_void; 5],
    prototypes: *mut Raw,
    /// The last two are the global object and the object of declarations.
    values: [Raw; VALUES],
    time_origin: f64,
    random_state: u64,
    hash_seed: u32,
    interrupt_counter: i32,
    modules: Link,
    compile_regexp: *mut c_void,
    eval: *mut c_void,
    opaque: *mut c_void,
}

/// `list_head`.
#[repr(C)]
struct Link {
    previous: *mut Link,
    next: *mut Link,
}

/// The values that code can reach, by their index and the name of the global that is the same.
const KNOWN: [(usize, &CStr); 7] = [
    (1, c"Function"),
    (2, c"Array"),
    (3, c"RegExp"),
    (4, c"Promise"),
    (14, c"Error"),
    (18, c"Iterator"),
    (VALUES - 2, c"globalThis"),
];

/// The header of a block: the kind of a counted thing, and the number of its references, before the thing.
const KIND_BEFORE: usize = 5;
const COUNT_BEFORE: usize = 4;

/// Runs in a copy: declares what nothing else sees, and uses what all see.
const PROGRAM: &CStr = c"const only = [1, 2].map((n) => n + shared).join(); \
    let made = new (class extends Array {})(); \
    [typeof other, only, made instanceof Array, Promise.resolve() instanceof Promise].join()";

/// The file of all that is tried out.
const FILE: &str = "second";

/// Whether contexts of this engine can be copied.
pub(in crate::isolate) fn is_known() -> bool {
    static KNOWN: PerProcess<OnceLock<bool>> = PerProcess::new();
    *KNOWN.get_or_init(OnceLock::new).get_or_init(try_out)
}

impl Cx {
    /// A copy of a context, with a reference that the caller owns.
    pub(in crate::isolate) fn second(self) -> Outcome<Cx> {
        if is_known() { self.copied() } else { Err(Thrown) }
    }

    /// The engine's record of a context whose layout is as declared.
    fn record(self) -> *mut Context {
        self.0.cast()
    }

    fn copied(self) -> Outcome<Cx> {
        let declarations = self.object_without_prototype()?;
        let from = self.record();
        // SAFETY: the layout is as declared. The new block is one of the same runtime and as long; it is cleared, and
        // nothing knows it before it is complete.
        unsafe {
            let runtime = sys::JS_GetRuntime(self.0);
            let held = sys::js_malloc_usable_size_rt(runtime, (*from).prototypes.cast());
            let to = sys::js_mallocz_rt(runtime, size_of::<Context>() as _).cast::<Context>();
            let prototypes = sys::js_mallocz_rt(runtime, held).cast::<u8>();
            if to.is_null() || prototypes.is_null() {
                return Err(Thrown);
            }
            to.copy_from_nonoverlapping(from, 1);
            prototypes.copy_from_nonoverlapping((*from).prototypes.cast(), bytes(held));
            (*to).prototypes = prototypes.cast();
            self.count_copies(to, bytes(held));
            (*to).values[VALUES - 1] = declarations.into_raw();
            let modules = addr_of_mut!((*to).modules);
            (*to).modules = Link { previous: modules, next: modules };
            let kind = *from.byte_sub(KIND_BEFORE).cast::<u8>();
            to.byte_sub(KIND_BEFORE).cast::<u8>().write(kind);
            to.byte_sub(COUNT_BEFORE).cast::<i32>().write(1);
            insert(addr_of_mut!((*from).collected), addr_of_mut!((*to).collected));
            insert(addr_of_mut!((*from).listed), addr_of_mut!((*to).listed));
            Ok(Cx(to.cast()))
        }
    }

    /// Counts everything that a copy refers to once more, but the object of declarations.
    ///
    /// # Safety
    /// `to` is the copy of this context, whose prototypes fill that many bytes.
    unsafe fn count_copies(self, to: *mut Context, prototypes_bytes: usize) {
        // SAFETY: the layout is as declared, and everything that it refers to lives.
        unsafe {
            for value in (*to).values.iter().take(VALUES - 1) {
                let _ = self.dup(*value).into_raw();
            }
            for shape in (*to).shapes {
                if !shape.is_null() {
                    *shape.byte_sub(COUNT_BEFORE).cast::<i32>() += 1;
                }
            }
            let runtime = sys::JS_GetRuntime(self.0);
            // An entry of no class holds nothing, or lies behind the table.
            for (class, place) in (0..).zip(0..prototypes_bytes / size_of::<Raw>()) {
                if sys::JS_IsRegisteredClass(runtime, class) {
                    let _ = self.dup(*(*to).prototypes.add(place)).into_raw();
                }
            }
        }
    }

    /// Whether anything of the engine has this text as a name; so the code of a file, as long as it lives, has the
    /// file's.
    pub(in crate::isolate) fn is_name(self, text: &str) -> Outcome<bool> {
        const OWN: i32 = 2;
        let name = self.atom(text)?;
        let string = self.atom_string(name.id)?;
        // SAFETY: a name and its text are one counted block, which has two references here.
        let count = unsafe {
            sys::JS_VALUE_GET_PTR(string.raw).byte_sub(COUNT_BEFORE).cast::<i32>().read()
        };
        Ok(count > OWN)
    }

    fn object_without_prototype(self) -> Outcome<Local> {
        let plain = class_of(self.object()?.raw);
        self.object_of(plain, sys::JS_NULL)
    }
}

/// Inserts a place behind another one.
///
/// # Safety
/// `before` is in a list, and both live.
unsafe fn insert(before: *mut Link, link: *mut Link) {
    // SAFETY: as the caller promises.
    unsafe {
        let next = (*before).next;
        *link = Link { previous: before, next };
        (*next).previous = link;
        (*before).next = link;
    }
}

fn bytes(size: sys::size_t) -> usize {
    usize::try_from(size).unwrap_or_default()
}

fn try_out() -> bool {
    let fields = calibrate::fields();
    let offsets = lexical::offset()
        == Some(offset_of!(Context, values) + (VALUES - 1) * size_of::<Raw>())
        && fields.random_state == Some(offset_of!(Context, random_state))
        && fields.interrupt_counter == Some(offset_of!(Context, interrupt_counter));
    if !offsets {
        return false;
    }
    let tried = trial::try_out(|cx, _| {
        // SAFETY: a live context, and another one of its runtime unless it is null.
        let other = unsafe { sys::JS_NewContextRaw(sys::JS_GetRuntime(cx.0)) };
        if other.is_null() {
            return None;
        }
        agrees(cx, Cx(other))?;
        runs(cx).ok()
    });
    tried == Some(true)
}

/// Whether everything that is known of a context is where it is declared. `other` was made right after it.
fn agrees(cx: Cx, other: Cx) -> Option<()> {
    // SAFETY: a live context.
    let runtime = unsafe { sys::JS_GetRuntime(cx.0) };
    // SAFETY: the context is a block of its runtime.
    let size = bytes(unsafe { sys::js_malloc_usable_size_rt(runtime, cx.0.cast()) });
    if size < size_of::<Context>() {
        return None;
    }
    let marker = ptr::from_ref(&size).cast_mut().cast::<c_void>();
    // The engine writes to a context at any time, so these stay pointers.
    let (record, second) = (cx.record(), other.record());
    // SAFETY: the blocks are as long. Every pattern of bits is a record, and pointers are compared alone.
    let agrees = unsafe {
        let modules = &raw mut (*record).modules;
        cx.set_opaque(marker);
        let marked = (*record).opaque == marker;
        cx.set_opaque(ptr::null_mut());
        marked
            && (*record).opaque.is_null()
            && (*record).runtime == runtime
            && (*modules).previous == modules
            && (*modules).next == modules
            && !(*record).compile_regexp.is_null()
            && !(*record).eval.is_null()
            && (*second).eval.is_null()
            && (*record).listed.next == &raw mut (*second).listed
            && (*second).listed.previous == &raw mut (*record).listed
    };
    let global = cx.global().ok()?;
    let is = |value: Raw, other: &Local| {
        is_object(value) && is_object(other.raw) && address_of(value) == address_of(other.raw)
    };
    let known = KNOWN.iter().all(|(index, name)| {
        // SAFETY: as above.
        let value = unsafe { (*record).values[*index] };
        cx.get_str(global.raw, name).is_ok_and(|known| is(value, &known))
    });
    (agrees && known && counts(cx, record, runtime)).then_some(())
}

/// Whether references are counted where they are declared to be, and prototypes are in their table.
fn counts(cx: Cx, record: *const Context, runtime: *mut sys::JSRuntime) -> bool {
    // SAFETY: contexts, objects and shapes are counted blocks.
    let count = |thing: *const c_void| unsafe { *thing.byte_sub(COUNT_BEFORE).cast::<i32>() };
    let context: *const c_void = cx.0.cast();
    let before = count(context);
    // SAFETY: a live context; the reference is given back.
    let during = unsafe {
        sys::JS_DupContext(cx.0);
        let during = count(context);
        sys::JS_FreeContext(cx.0);
        during
    };
    // SAFETY: the block is as long, and pointers are compared alone.
    let [array_shape, ..] = unsafe { (*record).shapes };
    if during != before + 1 || count(context) != before || array_shape.is_null() {
        return false;
    }
    let before = count(array_shape);
    let array = cx.array();
    let shaped = array.is_ok() && count(array_shape) == before + 1;
    drop(array);
    let prototypes = (1..sys::JSClassID::from(u8::MAX))
        // SAFETY: a live runtime.
        .filter(|class| unsafe { sys::JS_IsRegisteredClass(runtime, *class) })
        .all(|class| {
            // SAFETY: the class is registered, so the table has it.
            let (known, listed) = unsafe {
                (
                    cx.own(sys::JS_GetClassProto(cx.0, class)),
                    *(*record).prototypes.add(class as usize),
                )
            };
            known.is_ok_and(|known| {
                tag_of(known.raw) == tag_of(listed)
                    && (!is_object(listed) || address_of(listed) == address_of(known.raw))
            })
        });
    shaped && count(array_shape) == before && prototypes
}

/// Whether code runs in a copy as it should, and leaves nothing when the copy is freed.
fn runs(cx: Cx) -> Outcome<bool> {
    let file = super::c_string(FILE);
    let run = |cx: Cx, text: &CStr| {
        let length = text.count_bytes() as sys::size_t;
        // SAFETY: the context lives, and a C string ends with a zero byte.
        cx.own(unsafe { sys::JS_Eval(cx.0, text.as_ptr(), length, file.as_ptr(), 0) })
    };
    run(cx, c"var shared = 1; const other = 1;")?;
    // SAFETY: a live context.
    let runtime = unsafe { sys::JS_GetRuntime(cx.0) };
    let second = cx.copied()?;
    // No value of the copy may outlive it.
    let text_of = |cx: Cx, text: &CStr| cx.text(run(cx, text)?.raw).map(Text::into_lossy);
    let text = text_of(second, PROGRAM)?;
    let apart = text_of(cx, c"typeof only + typeof other")?;
    run(cx, c"var code = () => { for (const a of [1]) (() => a)() }")?;
    let named = cx.is_name(FILE)?;
    run(cx, c"code = null")?;
    // SAFETY: the reference of `copied`; no code runs.
    unsafe {
        sys::JS_RunGC(runtime);
        sys::JS_FreeContext(second.0);
        sys::JS_RunGC(runtime);
    }
    let forgotten = !cx.is_name(FILE)?;
    Ok(named && forgotten && text == "undefined,2,3,true,true" && apart == "undefinednumber")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_of_this_engine_can_be_copied() {
        assert!(try_out());
    }
}
