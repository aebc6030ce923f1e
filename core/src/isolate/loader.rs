//! Modules on their way into the engine.
//!
//! In: the engine's questions while it links: the meaning of a specifier, and the content of a module. Out: module
//! definitions, from bytecode that the compiler context made or from the values of a bridge. The answers come from the
//! run's [`Linker`](crate::modules::program::Linker), which has checked the static graph before. A dynamic `import()`
//! is checked here, at the call, and its failure is an ordinary rejection. Keeps the contract's "import.meta" and the
//! shape of bridged modules.

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::Arc,
};

use super::{
    engine::{Cx, Local, Outcome, Raw, Thrown, c_string, sys},
    exception,
    link_errors::{import_place, throw_compile_error, throw_link_error},
    marks::{label_of, marked},
    session::code,
    state::{Linking, State},
    trampoline,
};

use crate::{
    data::outcome::ExecutionError,
    modules::{
        program::{Code, Module, Unlinked, shown},
        session_program::LinkedCell,
    },
    testing::step_timer::{Step, lap},
    value::ErrorClass,
};

/// Stands for every import of a text that is being compiled; no file has this name.
const PLACEHOLDER: &CStr = c"\u{1}";

/// Makes the runtime request modules from this file.
pub(super) fn install(runtime: *mut sys::JSRuntime) {
    // SAFETY: a live runtime; the functions find the run's state through the context.
    unsafe {
        let opaque = ptr::null_mut();
        sys::JS_SetModuleLoaderFunc2(runtime, normalize, load, check_attributes, opaque);
    }
}

/// Loads the entry and all its imports; nothing runs yet. So any exception here is a link error, and no later one is.
pub(super) fn load_entry(state: &State) -> Result<Local, Box<ExecutionError>> {
    linking(state, load_static)
}

/// The code of a session's cell, and the modules that it imports.
pub(super) struct Body {
    pub(super) function: Local,
    pub(super) imports: Vec<Local>,
}

/// Loads a cell and the modules that it imports, as [`load_entry`].
pub(super) fn load_cell(state: &State, cell: &LinkedCell) -> Result<Body, Box<ExecutionError>> {
    linking(state, |state| {
        let name = state.linker.borrow().entry().to_owned();
        let cx = state.realm().cx;
        let function = match code::load_script(state, &cell.compiled, &name) {
            Some(function) => function?,
            None => {
                let bytecode = code::module_bytecode(state, &cell.compiled, &name)?;
                function_of(state, &resolved(state, define(cx, &name, &bytecode)?)?)?
            }
        };
        let imports = cell.imports.iter();
        let imports = imports.map(|(_, name)| resolved(state, load_imported(state, name)?));
        Ok(Body { function, imports: imports.collect::<Outcome<_>>()? })
    })
}

/// The function of a module that is a cell's code. Evaluating it runs no code of the sandbox.
fn function_of(state: &State, module: &Local) -> Outcome<Local> {
    let cx = state.realm().cx;
    drop(cx.evaluate(module.clone())?);
    let namespace = namespace(state, module.raw())?;
    let function = cx.get_str(namespace.raw(), c"default")?;
    // The name that it got from its export would be in stacks.
    cx.delete(function.raw(), "name")?;
    Ok(function)
}

/// A module as a value.
pub(super) fn value_of(cx: Cx, module: *mut sys::JSModuleDef) -> Local {
    cx.dup(sys::JS_MKPTR(sys::JS_TAG_MODULE, module.cast()))
}

/// Loads something. The exception of a failure is a link error.
fn linking<T>(
    state: &State,
    load: impl FnOnce(&State) -> Outcome<T>,
) -> Result<T, Box<ExecutionError>> {
    state.linking.replace(Linking::Entry);
    let loaded = load(state);
    let linking = state.linking.take();
    loaded.map_err(|Thrown| {
        let thrown = state.realm().cx.exception();
        match linking {
            Linking::Failed(error) => error,
            _ if state.must_end() => Box::default(),
            _ => Box::new(exception::execution_error(state, thrown.raw())),
        }
    })
}

fn load_static(state: &State) -> Outcome<Local> {
    let name = state.linker.borrow().entry().to_owned();
    let module = load_module(state, state.realm().cx, &name)?;
    resolved(state, module)
}

/// A module with all its imports.
fn resolved(state: &State, module: *mut sys::JSModuleDef) -> Outcome<Local> {
    let cx = state.realm().cx;
    let module = value_of(cx, module);
    cx.resolve(module.raw())?;
    Ok(module)
}

/// The namespace of a module that has been evaluated.
pub(super) fn namespace(state: &State, module: Raw) -> Outcome<Local> {
    let cx = state.realm().cx;
    // SAFETY: a live context and a module value, whose payload is its definition.
    cx.own(unsafe { sys::JS_GetModuleNamespace(cx.0, sys::JS_VALUE_GET_PTR(module).cast()) })
}

unsafe extern "C-unwind" fn normalize(
    ctx: *mut sys::JSContext,
    importer: *const c_char,
    specifier: *const c_char,
    _opaque: *mut c_void,
) -> *mut c_char {
    if is_compiler(ctx) {
        // SAFETY: copies a C string into memory that the engine frees.
        return unsafe { sys::js_strdup(ctx, PLACEHOLDER.as_ptr()) };
    }
    let mut name = ptr::null_mut();
    trampoline::enter(ctx, |state| {
        let longest = state.linker.borrow().longest_specifier_bytes();
        // SAFETY: the engine passes two texts that live as long as the call.
        let (importer, specifier) =
            unsafe { (text(importer, usize::MAX), text(specifier, longest.saturating_add(1))) };
        let importer = label_of(&importer);
        let (held, room) = state.held_and_room_bytes();
        let found = state.linker.borrow_mut().resolve(importer, &specifier, room);
        state.charge_compiled(held);
        match found {
            Ok(found) => {
                if matches!(*state.linking.borrow(), Linking::Idle) {
                    let request = (importer.to_owned(), specifier.into_owned());
                    state.requested.replace(Some(request));
                }
                // SAFETY: copies a C string into memory that the engine frees.
                name = unsafe { sys::js_strdup(ctx, c_string(&marked(&found)).as_ptr()) };
                if name.is_null() { Err(Thrown) } else { Ok(Cx(ctx).dup(sys::JS_UNDEFINED)) }
            }
            Err(Unlinked::Memory(module)) => state.exhaust_by(*module),
            Err(Unlinked::Error(error)) => {
                let place = import_place(state, importer, &specifier, false);
                Err(throw_link_error(state, &error, place))
            }
        }
    });
    name
}

unsafe extern "C-unwind" fn load(
    ctx: *mut sys::JSContext,
    name: *const c_char,
    _opaque: *mut c_void,
    _attributes: Raw,
) -> *mut sys::JSModuleDef {
    if is_compiler(ctx) {
        // SAFETY: a live context and a C string; the module is never linked, so it needs no values.
        return unsafe { sys::JS_NewCModule(ctx, name, None) };
    }
    // SAFETY: the engine passes a text that lives as long as the call.
    let name = unsafe { text(name, usize::MAX) };
    let mut module = ptr::null_mut();
    trampoline::enter(ctx, |state| {
        module = load_imported(state, label_of(&name))?;
        Ok(Cx(ctx).dup(sys::JS_UNDEFINED))
    });
    module
}

/// Checks the attributes of `import(x, { with })`; static imports with attributes are refused before.
unsafe extern "C-unwind" fn check_attributes(
    ctx: *mut sys::JSContext,
    _opaque: *mut c_void,
    attributes: Raw,
) -> c_int {
    if is_compiler(ctx) {
        return 0;
    }
    let result = trampoline::enter(ctx, |state| {
        if Cx(ctx).keys(attributes)?.len() > 0 {
            let message = "Import attributes are not supported";
            return Err(state.throw_error(ErrorClass::TypeError, "TypeError", message));
        }
        Ok(Cx(ctx).dup(sys::JS_UNDEFINED))
    });
    // SAFETY: reads the tag of a plain value.
    if unsafe { sys::JS_IsException(result) } { -1 } else { 0 }
}

/// Whether the engine requests the imports of a text that it only compiles. It requires them resolved even then,
/// although only the specifiers get into the bytecode.
fn is_compiler(ctx: *mut sys::JSContext) -> bool {
    // Only the context in which code runs has a pointer to the run.
    Cx(ctx).opaque().is_null()
}

/// Loads a module that something imports. Those of a session run in a context of their own.
fn load_imported(state: &State, name: &str) -> Outcome<*mut sys::JSModuleDef> {
    let realm = state.realm();
    let Some(parts) = realm.session.filter(|_| state.session.is_some()) else {
        return load_module(state, realm.cx, name);
    };
    if let Some(loaded) = state.loaded_module(name) {
        return Ok(loaded);
    }
    let module = load_module(state, parts.modules(), name)?;
    state.note_module(name, module);
    Ok(module)
}

fn load_module(state: &State, cx: Cx, name: &str) -> Outcome<*mut sys::JSModuleDef> {
    let found = state.linker.borrow().module(name);
    match found {
        Some(Module::Source(code)) => load_source(state, cx, name, &code),
        Some(Module::Bridge { exports, first }) => load_bridge(state, cx, name, &exports, first),
        None => Err(state.throw_error(
            ErrorClass::Error,
            "Error",
            &format!("Cannot find module '{}'", shown(name)),
        )),
    }
}

fn load_source(state: &State, cx: Cx, name: &str, code: &Code) -> Outcome<*mut sys::JSModuleDef> {
    let bytecode = bytecode(state, code, name, sys::JS_EVAL_TYPE_MODULE)?;
    define(cx, name, &bytecode)
}

/// A module of that name, in that context.
fn define(cx: Cx, name: &str, bytecode: &[u8]) -> Outcome<*mut sys::JSModuleDef> {
    // The engine keeps the module in its list; this value is one more reference to it.
    let module = cx.load(bytecode)?;
    // SAFETY: a module value, whose payload is its definition.
    let definition = unsafe { sys::JS_VALUE_GET_PTR(module.raw()) }.cast();
    // SAFETY: a live context and a live module.
    let meta = cx.own(unsafe { sys::JS_GetImportMeta(cx.0, definition) })?;
    let url = cx.string(&format!("sandbox:{}", shown(name)))?;
    cx.define_str(meta.raw(), "url", url, sys::JS_PROP_C_W_E)?;
    Ok(definition)
}

/// The bytecode of a text, compiled once for all runs that use it.
pub(super) fn bytecode(state: &State, code: &Code, name: &str, kind: u32) -> Outcome<Arc<[u8]>> {
    let bytecode = match code.bytecode() {
        Some(bytecode) => bytecode,
        None => compile(state, code, name, kind)?,
    };
    state.keep(bytecode.len());
    Ok(bytecode)
}

fn compile(state: &State, code: &Code, name: &str, kind: u32) -> Outcome<Arc<[u8]>> {
    lap(Step::Loaded);
    let compiler = state.realm().compiler;
    let text_bytes = code.text().len();
    state.keep(text_bytes);
    let compiled = compiler.compile(code.text(), &c_string(&marked(name)), kind);
    state.let_go(text_bytes);
    match compiled {
        Ok(bytecode) => {
            let kept = code.keep_bytecode(bytecode);
            lap(Step::Assembled);
            Ok(kept)
        }
        Err(Thrown) => Err(throw_compile_error(state, name)),
    }
}

fn load_bridge(
    state: &State,
    cx: Cx,
    name: &str,
    exports: &[String],
    first: usize,
) -> Outcome<*mut sys::JSModuleDef> {
    let name = c_string(&marked(name));
    // SAFETY: a live context and a C string.
    let module = unsafe { sys::JS_NewCModule(cx.0, name.as_ptr(), Some(fill_bridge)) };
    if module.is_null() {
        return Err(Thrown);
    }
    for export in exports {
        // SAFETY: a module of ours and a C string.
        if unsafe { sys::JS_AddModuleExport(cx.0, module, c_string(export).as_ptr()) } < 0 {
            return Err(Thrown);
        }
    }
    state.bridges.borrow_mut().push((module.addr(), exports.to_vec(), first));
    Ok(module)
}

/// Gives a bridged module its values, when it is evaluated.
unsafe extern "C-unwind" fn fill_bridge(
    ctx: *mut sys::JSContext,
    module: *mut sys::JSModuleDef,
) -> c_int {
    let result = trampoline::enter(ctx, |state| {
        let bridges = state.bridges.borrow();
        let Some((_, exports, first)) = bridges.iter().find(|(known, ..)| *known == module.addr())
        else {
            return Err(Thrown);
        };
        let inputs = state.inputs.borrow();
        for (export, value) in exports.iter().zip(inputs.iter().skip(*first)) {
            let name = c_string(export);
            // SAFETY: a module of ours; the call takes the reference.
            let code = unsafe {
                sys::JS_SetModuleExport(ctx, module, name.as_ptr(), value.clone().into_raw())
            };
            if code < 0 {
                return Err(Thrown);
            }
        }
        Ok(Cx(ctx).dup(sys::JS_UNDEFINED))
    });
    // SAFETY: reads the tag of a plain value.
    if unsafe { sys::JS_IsException(result) } { -1 } else { 0 }
}

/// At most `most_bytes` of a text, which is copied only where it is not well-formed.
///
/// # Safety
/// `text` is null or a C string that lives as long as the result.
unsafe fn text<'a>(text: *const c_char, most_bytes: usize) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::default();
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    String::from_utf8_lossy(bytes.get(..most_bytes).unwrap_or(bytes))
}
