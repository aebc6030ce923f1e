//! The engine's C functions, declared so that a request for memory may end in an unwinding.
//!
//! Out: all of `rquickjs_sys`, with new declarations of the functions that allocate, run code or call back. These may
//! unwind, because [`escape`](crate::isolate::memory::escape) leaves the engine that way. All other functions neither
//! allocate nor call anybody.
#![expect(unsafe_code, reason = "declares C functions")]

use std::ffi::{c_char, c_int, c_void};

pub(in crate::isolate) use rquickjs_sys::*;

pub(in crate::isolate) type CFunctionMagic =
    unsafe extern "C-unwind" fn(*mut JSContext, JSValue, c_int, *mut JSValue, c_int) -> JSValue;
pub(in crate::isolate) type CFunctionData = unsafe extern "C-unwind" fn(
    *mut JSContext,
    JSValue,
    c_int,
    *mut JSValue,
    c_int,
    *mut JSValue,
) -> JSValue;
pub(in crate::isolate) type ClassCall = unsafe extern "C-unwind" fn(
    *mut JSContext,
    JSValue,
    JSValue,
    c_int,
    *mut JSValue,
    c_int,
) -> JSValue;
pub(in crate::isolate) type ModuleInit =
    unsafe extern "C-unwind" fn(*mut JSContext, *mut JSModuleDef) -> c_int;
pub(in crate::isolate) type Normalize = unsafe extern "C-unwind" fn(
    *mut JSContext,
    *const c_char,
    *const c_char,
    *mut c_void,
) -> *mut c_char;
pub(in crate::isolate) type Load = unsafe extern "C-unwind" fn(
    *mut JSContext,
    *const c_char,
    *mut c_void,
    JSValue,
) -> *mut JSModuleDef;
pub(in crate::isolate) type CheckAttributes =
    unsafe extern "C-unwind" fn(*mut JSContext, *mut c_void, JSValue) -> c_int;
pub(in crate::isolate) type RejectionTracker =
    unsafe extern "C-unwind" fn(*mut JSContext, JSValue, JSValue, bool, *mut c_void);
pub(in crate::isolate) type InterruptHandler =
    unsafe extern "C-unwind" fn(*mut JSRuntime, *mut c_void) -> c_int;
pub(in crate::isolate) type Allocate =
    unsafe extern "C-unwind" fn(*mut c_void, size_t) -> *mut c_void;
pub(in crate::isolate) type AllocateZeroed =
    unsafe extern "C-unwind" fn(*mut c_void, size_t, size_t) -> *mut c_void;
pub(in crate::isolate) type Reallocate =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, size_t) -> *mut c_void;
pub(in crate::isolate) type PlainAllocate =
    unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void;
pub(in crate::isolate) type PlainAllocateZeroed =
    unsafe extern "C" fn(*mut c_void, size_t, size_t) -> *mut c_void;
pub(in crate::isolate) type PlainReallocate =
    unsafe extern "C" fn(*mut c_void, *mut c_void, size_t) -> *mut c_void;

unsafe extern "C-unwind" {
    pub(in crate::isolate) fn JS_AddIntrinsicBaseObjects(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicDate(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicEval(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicJSON(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicMapSet(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicPromise(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicProxy(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicRegExp(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicTypedArrays(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddIntrinsicWeakRef(ctx: *mut JSContext) -> c_int;
    pub(in crate::isolate) fn JS_AddModuleExport(
        ctx: *mut JSContext,
        m: *mut JSModuleDef,
        name_str: *const c_char,
    ) -> c_int;
    pub(in crate::isolate) fn JS_AtomToString(ctx: *mut JSContext, atom: JSAtom) -> JSValue;
    pub(in crate::isolate) fn JS_Call(
        ctx: *mut JSContext,
        func_obj: JSValue,
        this_obj: JSValue,
        argc: c_int,
        argv: *mut JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_CallConstructor(
        ctx: *mut JSContext,
        func_obj: JSValue,
        argc: c_int,
        argv: *mut JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_CallConstructor2(
        ctx: *mut JSContext,
        func_obj: JSValue,
        new_target: JSValue,
        argc: c_int,
        argv: *mut JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_DefineProperty(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: JSAtom,
        val: JSValue,
        getter: JSValue,
        setter: JSValue,
        flags: c_int,
    ) -> c_int;
    pub(in crate::isolate) fn JS_DefinePropertyValue(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: JSAtom,
        val: JSValue,
        flags: c_int,
    ) -> c_int;
    pub(in crate::isolate) fn JS_DefinePropertyValueUint32(
        ctx: *mut JSContext,
        this_obj: JSValue,
        idx: u32,
        val: JSValue,
        flags: c_int,
    ) -> c_int;
    pub(in crate::isolate) fn JS_DeleteProperty(
        ctx: *mut JSContext,
        obj: JSValue,
        prop: JSAtom,
        flags: c_int,
    ) -> c_int;
    pub(in crate::isolate) fn JS_Eval(
        ctx: *mut JSContext,
        input: *const c_char,
        input_len: size_t,
        filename: *const c_char,
        eval_flags: c_int,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_EvalFunction(ctx: *mut JSContext, fun_obj: JSValue) -> JSValue;
    pub(in crate::isolate) fn JS_ExecutePendingJob(
        rt: *mut JSRuntime,
        pctx: *mut *mut JSContext,
    ) -> c_int;
    pub(in crate::isolate) fn js_free(ctx: *mut JSContext, ptr: *mut c_void);
    pub(in crate::isolate) fn JS_FreeAtom(ctx: *mut JSContext, v: JSAtom);
    pub(in crate::isolate) fn JS_FreeContext(s: *mut JSContext);
    pub(in crate::isolate) fn JS_FreeCString(ctx: *mut JSContext, ptr: *const c_char);
    pub(in crate::isolate) fn JS_FreeCStringUTF16(ctx: *mut JSContext, ptr: *const u16);
    pub(in crate::isolate) fn JS_FreePropertyEnum(
        ctx: *mut JSContext,
        tab: *mut JSPropertyEnum,
        len: u32,
    );
    pub(in crate::isolate) fn JS_FreeValue(ctx: *mut JSContext, v: JSValue);
    pub(in crate::isolate) fn JS_GetImportMeta(ctx: *mut JSContext, m: *mut JSModuleDef)
    -> JSValue;
    pub(in crate::isolate) fn JS_GetLength(
        ctx: *mut JSContext,
        obj: JSValue,
        pres: *mut i64,
    ) -> c_int;
    pub(in crate::isolate) fn JS_GetModuleNamespace(
        ctx: *mut JSContext,
        m: *mut JSModuleDef,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_GetOwnProperty(
        ctx: *mut JSContext,
        desc: *mut JSPropertyDescriptor,
        obj: JSValue,
        prop: JSAtom,
    ) -> c_int;
    pub(in crate::isolate) fn JS_GetOwnPropertyNames(
        ctx: *mut JSContext,
        ptab: *mut *mut JSPropertyEnum,
        plen: *mut u32,
        obj: JSValue,
        flags: c_int,
    ) -> c_int;
    pub(in crate::isolate) fn JS_GetProperty(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: JSAtom,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_GetPropertyStr(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: *const c_char,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_GetPropertyUint32(
        ctx: *mut JSContext,
        this_obj: JSValue,
        idx: u32,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_GetPrototype(ctx: *mut JSContext, val: JSValue) -> JSValue;
    pub(in crate::isolate) fn JS_GetTypedArrayBuffer(
        ctx: *mut JSContext,
        obj: JSValue,
        pbyte_offset: *mut size_t,
        pbyte_length: *mut size_t,
        pbytes_per_element: *mut size_t,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_HasProperty(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: JSAtom,
    ) -> c_int;
    pub(in crate::isolate) fn JS_ParseJSON(
        ctx: *mut JSContext,
        text: *const c_char,
        bytes: size_t,
        filename: *const c_char,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewArrayFrom(
        ctx: *mut JSContext,
        count: c_int,
        values: *const JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewArray(ctx: *mut JSContext) -> JSValue;
    pub(in crate::isolate) fn JS_NewArrayBufferCopy(
        ctx: *mut JSContext,
        buf: *const u8,
        len: size_t,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewAtomLen(
        ctx: *mut JSContext,
        str_: *const c_char,
        len: size_t,
    ) -> JSAtom;
    pub(in crate::isolate) fn JS_NewClass(
        rt: *mut JSRuntime,
        class_id: JSClassID,
        class_def: *const JSClassDef,
    ) -> c_int;
    pub(in crate::isolate) fn JS_NewContextRaw(rt: *mut JSRuntime) -> *mut JSContext;
    pub(in crate::isolate) fn JS_NewDate(ctx: *mut JSContext, epoch_ms: f64) -> JSValue;
    pub(in crate::isolate) fn JS_NewError(ctx: *mut JSContext) -> JSValue;
    pub(in crate::isolate) fn JS_NewObject(ctx: *mut JSContext) -> JSValue;
    pub(in crate::isolate) fn JS_NewObjectClass(
        ctx: *mut JSContext,
        class_id: JSClassID,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewObjectProtoClass(
        ctx: *mut JSContext,
        proto: JSValue,
        class_id: JSClassID,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewPromiseCapability(
        ctx: *mut JSContext,
        resolving_funcs: *mut JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewRuntime2(
        mf: *const JSMallocFunctions,
        opaque: *mut c_void,
    ) -> *mut JSRuntime;
    pub(in crate::isolate) fn JS_NewStringLen(
        ctx: *mut JSContext,
        str1: *const c_char,
        len1: size_t,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewStringUTF16(
        ctx: *mut JSContext,
        buf: *const u16,
        len: size_t,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewTypedArray(
        ctx: *mut JSContext,
        argc: c_int,
        argv: *mut JSValue,
        array_type: JSTypedArrayEnum,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_PreventExtensions(ctx: *mut JSContext, obj: JSValue) -> c_int;
    pub(in crate::isolate) fn JS_PromiseThen(
        ctx: *mut JSContext,
        promise: JSValue,
        on_fulfilled: JSValue,
        on_rejected: JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_ReadObject(
        ctx: *mut JSContext,
        buf: *const u8,
        buf_len: size_t,
        flags: c_int,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_ResolveModule(ctx: *mut JSContext, obj: JSValue) -> c_int;
    pub(in crate::isolate) fn JS_RunGC(rt: *mut JSRuntime);
    pub(in crate::isolate) fn JS_SetConstructor(
        ctx: *mut JSContext,
        func_obj: JSValue,
        proto: JSValue,
    ) -> c_int;
    pub(in crate::isolate) fn JS_SetLength(ctx: *mut JSContext, obj: JSValue, len: i64) -> c_int;
    pub(in crate::isolate) fn JS_SetModuleExport(
        ctx: *mut JSContext,
        m: *mut JSModuleDef,
        export_name: *const c_char,
        val: JSValue,
    ) -> c_int;
    pub(in crate::isolate) fn JS_SetPropertyStr(
        ctx: *mut JSContext,
        this_obj: JSValue,
        prop: *const c_char,
        val: JSValue,
    ) -> c_int;
    pub(in crate::isolate) fn JS_SetPrototype(
        ctx: *mut JSContext,
        obj: JSValue,
        proto_val: JSValue,
    ) -> c_int;
    pub(in crate::isolate) fn js_mallocz_rt(rt: *mut JSRuntime, size: size_t) -> *mut c_void;
    pub(in crate::isolate) fn js_strdup(ctx: *mut JSContext, str_: *const c_char) -> *mut c_char;
    pub(in crate::isolate) fn JS_Throw(ctx: *mut JSContext, obj: JSValue) -> JSValue;
    pub(in crate::isolate) fn JS_ToBool(ctx: *mut JSContext, val: JSValue) -> c_int;
    pub(in crate::isolate) fn JS_ToFloat64(
        ctx: *mut JSContext,
        pres: *mut f64,
        val: JSValue,
    ) -> c_int;
    pub(in crate::isolate) fn JS_ToString(ctx: *mut JSContext, val: JSValue) -> JSValue;
    pub(in crate::isolate) fn JS_ToCStringLen2(
        ctx: *mut JSContext,
        plen: *mut size_t,
        val1: JSValue,
        cesu8: bool,
    ) -> *const c_char;
    pub(in crate::isolate) fn JS_ToCStringLenUTF16(
        ctx: *mut JSContext,
        plen: *mut size_t,
        val1: JSValue,
    ) -> *const u16;
    pub(in crate::isolate) fn JS_ValueToAtom(ctx: *mut JSContext, val: JSValue) -> JSAtom;
    pub(in crate::isolate) fn JS_WriteObject(
        ctx: *mut JSContext,
        psize: *mut size_t,
        obj: JSValue,
        flags: c_int,
    ) -> *mut u8;
    pub(in crate::isolate) fn JS_NewCFunction2(
        ctx: *mut JSContext,
        func: CFunctionMagic,
        name: *const c_char,
        length: c_int,
        cproto: JSCFunctionEnum,
        magic: c_int,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewCFunctionData(
        ctx: *mut JSContext,
        func: CFunctionData,
        length: c_int,
        magic: c_int,
        data_len: c_int,
        data: *mut JSValue,
    ) -> JSValue;
    pub(in crate::isolate) fn JS_NewCModule(
        ctx: *mut JSContext,
        name_str: *const c_char,
        func: Option<ModuleInit>,
    ) -> *mut JSModuleDef;
    pub(in crate::isolate) fn JS_SetHostPromiseRejectionTracker(
        rt: *mut JSRuntime,
        cb: RejectionTracker,
        opaque: *mut c_void,
    );
    pub(in crate::isolate) fn JS_SetInterruptHandler(
        rt: *mut JSRuntime,
        cb: Option<InterruptHandler>,
        opaque: *mut c_void,
    );
    pub(in crate::isolate) fn JS_SetModuleLoaderFunc2(
        rt: *mut JSRuntime,
        module_normalize: Normalize,
        module_loader: Load,
        module_check_attrs: CheckAttributes,
        opaque: *mut c_void,
    );
}
