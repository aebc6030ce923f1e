//! A small realm for the tests of the memory room, and a way to run a script in it.
#![expect(unsafe_code, reason = "speaks to the engine")]

use super::instance::{Instance, Realm};
use crate::isolate::engine::sys as qjs;
use std::ffi::{CStr, CString};
use std::ptr;

/// A context with all intrinsics that sandboxes have, and `Function`.
#[derive(Clone, Copy)]
pub(crate) struct TestRealm {
    context: *mut qjs::JSContext,
}

impl Realm for TestRealm {
    fn context(&self) -> *mut qjs::JSContext {
        self.context
    }

    unsafe fn free(self, _runtime: *mut qjs::JSRuntime) {
        // SAFETY: the only thing that was built.
        unsafe { qjs::JS_FreeContext(self.context) }
    }
}

/// Uses every kind of object once, so that the image has the things that the engine makes on first use.
const TOUCH: &str = "(() => {
    const o = {};
    [new Map([[o, 1]]), new Set([o]), new WeakMap([[o, 1]]), new WeakSet([o]), new WeakRef(o)];
    new FinalizationRegistry(() => 0).register(o, 1);
    [...(function* () { yield 1 })()].map((x) => [x]).values().map((x) => x).toArray();
    (async function* () { yield 1 })().next();
    (async () => 1)().then(() => 2);
    [...'abc'.matchAll(/b(?<n>c)/g)];
    new DataView(new Uint8Array(8).buffer).getInt8(0);
    JSON.parse(JSON.stringify({ a: [1, 2n < 3n] }));
    new Proxy({}, { get: () => 1 }).x;
    new Date(0).toISOString();
})()";

/// Builds the realm, with a stack limit that fits the threads of the test runner.
pub(crate) fn build(runtime: *mut qjs::JSRuntime) -> Option<TestRealm> {
    // SAFETY: each call gets the result of the one before.
    unsafe {
        let stack_bytes = (256 << 10) * crate::os::sanitized::FRAMES;
        qjs::JS_SetMaxStackSize(runtime, stack_bytes as qjs::size_t);
        let context = qjs::JS_NewContextRaw(runtime);
        if context.is_null() {
            return None;
        }
        qjs::JS_AddIntrinsicBaseObjects(context);
        qjs::JS_AddIntrinsicDate(context);
        qjs::JS_AddIntrinsicEval(context);
        qjs::JS_AddIntrinsicRegExpCompiler(context);
        qjs::JS_AddIntrinsicRegExp(context);
        qjs::JS_AddIntrinsicJSON(context);
        qjs::JS_AddIntrinsicProxy(context);
        qjs::JS_AddIntrinsicMapSet(context);
        qjs::JS_AddIntrinsicTypedArrays(context);
        qjs::JS_AddIntrinsicPromise(context);
        qjs::JS_AddIntrinsicWeakRef(context);
        qjs::JS_FreeValue(context, eval(context, TOUCH, qjs::JS_EVAL_TYPE_GLOBAL));
        let mut of = ptr::null_mut();
        while qjs::JS_ExecutePendingJob(runtime, &raw mut of) > 0 {}
        Some(TestRealm { context })
    }
}

/// The result of a script that left the engine.
pub(crate) const LEFT: &str = "(left)";

/// Runs a script and then all jobs, until the heap says that the run must end. Returns the script's value as text, or
/// `! ` and the thrown value.
pub(crate) fn run(instance: &Instance<TestRealm>, source: &str) -> String {
    run_as(instance, source, qjs::JS_EVAL_TYPE_GLOBAL)
}

/// As `run`, but as a module, which has no value.
pub(crate) fn run_module(instance: &Instance<TestRealm>, source: &str) -> String {
    run_as(instance, source, qjs::JS_EVAL_TYPE_MODULE)
}

fn run_as(instance: &Instance<TestRealm>, source: &str, kind: u32) -> String {
    // SAFETY: entered; every value made here is either freed or left to the restore.
    let outcome = instance.enter(|realm| unsafe {
        let value = eval(realm.context, source, kind);
        let outcome = if qjs::JS_IsException(value) {
            format!("! {}", text(realm.context, qjs::JS_GetException(realm.context)))
        } else {
            text(realm.context, value)
        };
        let mut of = ptr::null_mut();
        while !instance.heap().must_end() && qjs::JS_IsJobPending(instance.runtime()) {
            qjs::JS_ExecutePendingJob(instance.runtime(), &raw mut of);
        }
        outcome
    });
    outcome.unwrap_or_else(|_left| LEFT.to_owned())
}

/// The addresses of the objects in an array, which has that name.
pub(crate) fn addresses(instance: &Instance<TestRealm>, name: &str) -> Vec<usize> {
    // SAFETY: entered; every value made here is freed.
    let addresses = instance.enter(|realm| unsafe {
        let context = realm.context;
        let array = eval(context, name, qjs::JS_EVAL_TYPE_GLOBAL);
        let mut length = 0;
        qjs::JS_GetLength(context, array, &raw mut length);
        let at = |index| {
            let object = qjs::JS_GetPropertyUint32(context, array, index);
            let address = qjs::JS_VALUE_GET_PTR(object).addr();
            qjs::JS_FreeValue(context, object);
            address
        };
        let addresses = (0..u32::try_from(length).expect("a small array")).map(at).collect();
        qjs::JS_FreeValue(context, array);
        addresses
    });
    addresses.unwrap_or_default()
}

unsafe fn eval(context: *mut qjs::JSContext, source: &str, kind: u32) -> qjs::JSValue {
    let source = CString::new(source).expect("no zero bytes in test sources");
    let flags = i32::try_from(kind).expect("a small number");
    // SAFETY: the source ends with a zero byte, and the caller vouches for the context.
    unsafe {
        let length = source.count_bytes() as qjs::size_t;
        qjs::JS_Eval(context, source.as_ptr(), length, c"test".as_ptr(), flags)
    }
}

unsafe fn text(context: *mut qjs::JSContext, value: qjs::JSValue) -> String {
    // SAFETY: the string is copied before it is freed.
    unsafe {
        let string = qjs::JS_ToCStringLen2(context, ptr::null_mut(), value, false);
        let copy = if string.is_null() {
            "(no text)".to_owned()
        } else {
            CStr::from_ptr(string).to_string_lossy().into_owned()
        };
        qjs::JS_FreeCString(context, string);
        qjs::JS_FreeValue(context, value);
        copy
    }
}
