//! Offsets of two fields of the engine's context.
//!
//! In: nothing. Out: the offsets, in a `JSContext`, of the state of `Math.random` and of the count of polls until the
//! engine calls the interrupt handler. The engine has no functions for them, and a constant would become wrong one day
//! without notice. So both are found by watching a scratch context change, and accepted only if writing them has the
//! expected effect. Without the first there are no slots (restored realms would all draw the same numbers). Without the
//! second, code that spends its time inside builtins is interrupted late.
#![expect(unsafe_code, reason = "reads the engine's memory")]

use super::{
    escape,
    heap::{Heap, new_runtime},
};
use crate::{isolate::engine::sys as qjs, os::process::PerProcess};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// Byte offsets in a `JSContext`; `None` for a field that was not found for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// A `u64` that must not be zero.
    pub(crate) random_state: Option<usize>,
    /// An `i32`.
    pub(crate) interrupt_counter: Option<usize>,
}

/// Found once per process, in less than a millisecond.
pub(crate) fn fields() -> Fields {
    static FIELDS: PerProcess<OnceLock<Fields>> = PerProcess::new();
    let fields = FIELDS.get_or_init(OnceLock::new);
    if let Some(known) = fields.get() {
        return *known;
    }
    // Without the memory for a scratch context nothing is found, and the next instance searches again.
    let found = find();
    found.map_or(Fields { random_state: None, interrupt_counter: None }, |found| {
        *fields.get_or_init(|| found)
    })
}

fn find() -> Option<Fields> {
    let heap = Heap::in_process();
    heap.set_leaves(true);
    let found = escape::catch(|| {
        let scratch = Scratch::new(&heap)?;
        let random_state = scratch.random_state();
        Some(Fields { random_state, interrupt_counter: scratch.interrupt_counter() })
    });
    found.ok().flatten()
}

/// A runtime and a context of their own, in a heap that is dropped with all its content.
struct Scratch {
    runtime: *mut qjs::JSRuntime,
    context: *mut qjs::JSContext,
}

impl Scratch {
    fn new(heap: &Heap) -> Option<Self> {
        let runtime = new_runtime(heap)?;
        // SAFETY: each call gets the result of the one before, and failures are passed on.
        unsafe {
            let context = qjs::JS_NewContextRaw(runtime);
            let scratch = Self { runtime, context };
            let ready = !context.is_null()
                && qjs::JS_AddIntrinsicBaseObjects(context) == 0
                && qjs::JS_AddIntrinsicEval(context) == 0;
            ready.then_some(scratch)
        }
    }

    /// The only word that turns into its own successor at each call of `Math.random`, and that determines the result.
    fn random_state(&self) -> Option<usize> {
        let draw = self.function(c"Math.random")?;
        let mut successors = Vec::new();
        for _ in 0..3 {
            let before: Vec<u64> = self.words();
            self.call(draw);
            let after: Vec<u64> = self.words();
            successors.push(indices(&before, &after, |x, y| x != 0 && x != y && successor(x) == y));
        }
        let offset = agreed(&successors)? * size_of::<u64>();
        let believed = [1, 0x9e37_79b9_7f4a_7c15, u64::MAX].iter().all(|seed| {
            // SAFETY: the offset is aligned and within the context.
            unsafe { *self.context.byte_add(offset).cast::<u64>() = *seed };
            let drawn = self.call(draw);
            // SAFETY: the payload is read according to the tag.
            let drawn = unsafe {
                qjs::JS_TAG_IS_FLOAT64(qjs::JS_VALUE_GET_TAG(drawn))
                    .then(|| qjs::JS_VALUE_GET_FLOAT64(drawn))
            };
            drawn.map(f64::to_bits) == Some(unit(successor(*seed)).to_bits())
        });
        believed.then_some(offset)
    }

    /// The only number that falls by one with each call of a function, and that triggers the handler when it reaches
    /// zero.
    fn interrupt_counter(&self) -> Option<usize> {
        let idle = self.function(c"(function () {})")?;
        self.call(idle);
        let mut falls = Vec::new();
        for calls in [37, 11, 1] {
            let before: Vec<i32> = self.words();
            for _ in 0..calls {
                self.call(idle);
            }
            let after: Vec<i32> = self.words();
            falls.push(indices(&before, &after, |x, y| x.wrapping_sub(y) == calls));
        }
        let offset = agreed(&falls)? * size_of::<i32>();
        let asked = Cell::new(0_u32);
        // SAFETY: the handler is removed before `asked` goes; the offset is aligned and within the
        // context.
        unsafe {
            let opaque = ptr::from_ref(&asked).cast_mut().cast::<c_void>();
            qjs::JS_SetInterruptHandler(self.runtime, Some(count), opaque);
            *self.context.byte_add(offset).cast::<i32>() = 5;
            for _ in 0..4 {
                self.call(idle);
            }
            let early = asked.get();
            self.call(idle);
            qjs::JS_SetInterruptHandler(self.runtime, None, ptr::null_mut());
            (early == 0 && asked.get() == 1).then_some(offset)
        }
    }

    fn function(&self, source: &'static CStr) -> Option<qjs::JSValue> {
        // SAFETY: the context lives, and a C string ends with a zero byte.
        unsafe {
            let value = qjs::JS_Eval(
                self.context,
                source.as_ptr(),
                source.count_bytes() as qjs::size_t,
                c"calibrate".as_ptr(),
                0,
            );
            qjs::JS_IsFunction(self.context, value).then_some(value)
        }
    }

    /// Calls a function that returns a number or nothing, so there is nothing to free.
    fn call(&self, function: qjs::JSValue) -> qjs::JSValue {
        let this = qjs::JS_UNDEFINED;
        // SAFETY: context and function live.
        unsafe { qjs::JS_Call(self.context, function, this, 0, ptr::null_mut()) }
    }

    /// The memory of the context, as far as the allocator vouches for it.
    fn words<T: Copy>(&self) -> Vec<T> {
        // SAFETY: the block is that long, aligned for 8 bytes, and its tail is initialized too: the
        // engine clears it.
        unsafe {
            let bytes = qjs::js_malloc_usable_size_rt(self.runtime, self.context.cast());
            let count = usize::try_from(bytes).unwrap_or(0).min(4096) / size_of::<T>();
            std::slice::from_raw_parts(self.context.cast::<T>(), count).to_vec()
        }
    }
}

unsafe extern "C-unwind" fn count(_runtime: *mut qjs::JSRuntime, opaque: *mut c_void) -> c_int {
    // SAFETY: `interrupt_counter` handed over a `Cell` and waits.
    let asked = unsafe { &*opaque.cast::<Cell<u32>>() };
    asked.set(asked.get() + 1);
    0
}

/// xorshift64*, as the engine steps it.
fn successor(mut state: u64) -> u64 {
    state ^= state >> 12;
    state ^= state << 25;
    state ^ (state >> 27)
}

/// The number that `Math.random` computes from a state.
fn unit(state: u64) -> f64 {
    f64::from_bits(0x3ff << 52 | state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 12) - 1.0
}

fn indices<T: Copy>(before: &[T], after: &[T], changed: impl Fn(T, T) -> bool) -> Vec<usize> {
    let pairs = before.iter().zip(after);
    pairs.enumerate().filter(|(_, (x, y))| changed(**x, **y)).map(|(index, _)| index).collect()
}

/// The index that all of them have, if it is the only one in each.
fn agreed(candidates: &[Vec<usize>]) -> Option<usize> {
    let first = candidates.first()?;
    let alone = first.len() == 1 && candidates.iter().all(|other| other == first);
    if alone { first.first().copied() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fields_are_found_in_this_engine() {
        let started = std::time::Instant::now();
        let found = fields();
        println!("found {found:?} in {:?}", started.elapsed());
        assert!(found.random_state.is_some_and(|offset| offset % 8 == 0), "{found:?}");
        assert!(found.interrupt_counter.is_some_and(|offset| offset % 4 == 0), "{found:?}");
    }

    #[test]
    fn doubt_is_no_offset() {
        assert_eq!(agreed(&[vec![3], vec![3]]), Some(3));
        assert_eq!(agreed(&[vec![3], vec![4]]), None);
        assert_eq!(agreed(&[vec![3, 4], vec![3, 4]]), None);
        assert_eq!(agreed(&[vec![], vec![]]), None);
        assert_eq!(agreed(&[]), None);
    }
}
