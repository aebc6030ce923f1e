//! The names that cells declare.
//!
//! In: the plan of a cell, and what the cell sets on its way. Out: bindings that all cells and their functions see. A
//! name is an entry of the engine's own table of global declarations, which every access reads anew; so the engine
//! itself keeps what the language says of constants and of names without a value. Modules run in a context with a table
//! of their own, which has the host's names alone. An import is live, and such an entry
//! cannot be: it is a property of an object of ours, in the chain behind the global object, which has no entry of that
//! name before it.

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

use std::{collections::HashMap, ffi::c_int, sync::Arc};

use super::{
    declared::{Import, Slots},
    parts::Parts,
    tables::Session,
};
use crate::{
    data::cell::NameKind,
    isolate::{
        engine::{
            Cx, Local, Outcome, Raw, Thrown, address_of,
            exotic::{self, Methods},
            is_object, lexical, sys, tag_of, undefined,
        },
        loader,
        state::State,
        trampoline,
    },
    modules::{compile::Imported, session_program::LinkedCell},
};

impl Parts {
    /// Prepares a realm; `None` if the engine's table is not known.
    pub(in crate::isolate) fn build(cx: Cx, runtime: *mut sys::JSRuntime) -> Option<Self> {
        static BINDER: Methods = Methods::set(set);
        static IMPORTS: Methods = Methods::describe(describe);
        let binder = exotic::class(runtime, &BINDER)?;
        let imports = exotic::class(runtime, &IMPORTS)?;
        let modules = cx.second().ok()?;
        let (entries, module_entries) = (lexical::of(cx)?, lexical::of(modules)?);
        Some(Self { entries, modules, module_entries, binder, imports })
    }
}

/// The binding that the cell has set.
pub(super) enum Bound {
    Name,
    /// Its value, at its end.
    End,
    /// Its value, by a `return`.
    Return,
}

const WRITABLE: u32 = sys::JS_PROP_CONFIGURABLE | sys::JS_PROP_ENUMERABLE | sys::JS_PROP_WRITABLE;
const CONSTANT: u32 = sys::JS_PROP_CONFIGURABLE | sys::JS_PROP_ENUMERABLE;

/// The properties of an entry for a name of that kind.
fn flags_of(kind: NameKind) -> u32 {
    match kind {
        NameKind::Var | NameKind::Let | NameKind::Function | NameKind::Class => WRITABLE,
        NameKind::Const | NameKind::Import | NameKind::Enum | NameKind::Namespace => CONSTANT,
    }
}

/// The index that a cell sets at its end, and the one that it sets where it returns.
const END: u32 = 1;
const RETURN: u32 = 2;

impl State {
    pub(super) fn parts(&self) -> Outcome<Parts> {
        self.realm().session.ok_or(Thrown)
    }

    pub(super) fn session(&self) -> Outcome<&Session> {
        self.session.as_ref().ok_or(Thrown)
    }

    /// Declares the names of a cell. Those that have a value at once have it.
    pub(super) fn declare(&self, cell: &LinkedCell) -> Outcome<Slots> {
        let (cx, session, parts) = (self.realm().cx, self.session()?, self.parts()?);
        let plan = Arc::clone(&cell.compiled.plan);
        let mut slots = Slots { keys: Vec::new(), index: HashMap::new(), plan };
        if slots.plan.names.is_empty() {
            return Ok(slots);
        }
        for (index, name) in slots.plan.names.iter().enumerate() {
            let key = cx.atom(&name.name)?;
            let known = session.declared.borrow().kind(&name.name);
            let stays = name.kind == NameKind::Var
                && matches!(known, Some(NameKind::Var | NameKind::Function));
            if !stays {
                session.imports.borrow_mut().names.remove(&key.id);
                let value = match name.kind {
                    NameKind::Var => undefined(),
                    _ => sys::JS_UNINITIALIZED,
                };
                cx.define(parts.entries, key.id, cx.dup(value), flags_of(name.kind))?;
            }
            self.note_kind(session, &name.name, name.kind);
            slots.index.insert(key.id, index);
            slots.keys.push(key);
        }
        Ok(slots)
    }

    /// Notes the kind of a declaration.
    fn note_kind(&self, session: &Session, name: &str, kind: NameKind) {
        let mut declared = session.declared.borrow_mut();
        let known = declared.kind(name);
        if known.is_none() {
            self.keep(size_of::<(Arc<str>, NameKind)>() + name.len());
        }
        if known != Some(kind) {
            Arc::make_mut(&mut declared).declare(name, kind);
        }
    }

    /// The object through which a cell sets its names.
    pub(super) fn binder(&self) -> Outcome<Local> {
        let null = sys::JS_NULL;
        self.realm().cx.object_of(self.parts()?.binder, null)
    }

    /// Gives a name of the host a value that code cannot change, or takes it away. For cells, names of cells stay.
    pub(super) fn set_global(&self, name: &str, value: Option<&Local>) -> Outcome<()> {
        let (cx, session, parts) = (self.realm().cx, self.session()?, self.parts()?);
        let key = cx.atom(name)?;
        let set = |entries: Raw| match value {
            Some(value) => cx.define(entries, key.id, value.clone(), CONSTANT),
            None => cx.delete_key(entries, key.id),
        };
        if session.declared.borrow().kind(name).is_none() {
            set(parts.entries)?;
        }
        set(parts.module_entries)
    }

    /// The value of a name: `None` if no cell has declared it. Runs no code; throws where it has no value.
    pub(super) fn name_value(&self, name: &str) -> Outcome<Option<Local>> {
        let (cx, session, parts) = (self.realm().cx, self.session()?, self.parts()?);
        if session.declared.borrow().kind(name).is_none() {
            return Ok(None);
        }
        let key = cx.atom(name)?;
        let import = session.imports.borrow();
        if let Some(import) = import.names.get(&key.id) {
            let (namespace, imported) = (import.namespace.clone(), import.imported.id);
            return cx.get(namespace.raw(), imported).map(Some);
        }
        cx.get(parts.entries, key.id).map(Some)
    }

    /// The value of a name that cells or the host have bound, as far as there is one. Runs no code.
    pub(in crate::isolate) fn known_value(&self, name: &str) -> Option<Local> {
        let found = match self.name_value(name) {
            Ok(None) if self.session().ok()?.given.try_borrow().ok()?.contains(name) => {
                let key = self.realm().cx.atom(name).ok()?;
                self.realm().cx.get(self.parts().ok()?.entries, key.id).map(Some)
            }
            found => found,
        };
        match found {
            Ok(value) => value.filter(|value| tag_of(value.raw()) != sys::JS_TAG_UNINITIALIZED),
            Err(Thrown) => {
                drop(self.realm().cx.exception());
                None
            }
        }
    }

    /// The names that the host gave and no cell has declared.
    pub(in crate::isolate) fn given_names(&self) -> Vec<String> {
        let Ok(session) = self.session() else { return Vec::new() };
        let (Ok(given), Ok(declared)) = (session.given.try_borrow(), session.declared.try_borrow())
        else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            given.iter().filter(|name| declared.kind(name).is_none()).cloned().collect();
        names.sort_unstable();
        names
    }

    /// The names that cells have declared, as many as an explanation considers.
    pub(in crate::isolate) fn declared_names(&self) -> Vec<String> {
        const MOST: usize = 1_000;
        let declared = self.session().ok().and_then(|session| session.declared.try_borrow().ok());
        let names = declared.iter().flat_map(|declared| declared.iter());
        names.take(MOST).map(|(name, _)| name.to_owned()).collect()
    }

    /// Binds what a cell sets.
    fn bind(&self, slots: &Slots, key: sys::JSAtom, value: Raw) -> Outcome<Bound> {
        let cx = self.realm().cx;
        let Some(declared) = slots.index.get(&key).and_then(|&at| slots.plan.names.get(at)) else {
            return match cx.array_index(key) {
                Some(END) => Ok(Bound::End),
                Some(RETURN) => Ok(Bound::Return),
                _ => Err(Thrown),
            };
        };
        if declared.kind == NameKind::Function {
            let name = cx.string(&declared.name)?;
            cx.define_str(value, "name", name, sys::JS_PROP_CONFIGURABLE)?;
        }
        let (session, entries) = (self.session()?, self.parts()?.entries);
        let known = session.declared.borrow().kind(&declared.name);
        if known == Some(declared.kind) {
            cx.redefine(entries, key, value)?;
        } else {
            // Another cell has declared the name anew while this one waited. This declaration comes last.
            session.imports.borrow_mut().names.remove(&key);
            cx.define(entries, key, cx.dup(value), flags_of(declared.kind))?;
            self.note_kind(session, &declared.name, declared.kind);
        }
        Ok(Bound::Name)
    }

    /// Binds the imports of a cell, whose modules have been evaluated.
    pub(super) fn bind_imports(&self, cell: &LinkedCell, slots: &Slots) -> Outcome<()> {
        let (cx, entries) = (self.realm().cx, self.parts()?.entries);
        for (name, key) in slots.plan.names.iter().zip(&slots.keys) {
            let Some((request, imported)) = &name.import else { continue };
            let module = cell.imports.iter().find(|(known, _)| known == request);
            let module = module.and_then(|(_, module)| self.loaded_module(module)).ok_or(Thrown)?;
            let namespace = loader::namespace(self, loader::value_of(cx, module).raw())?;
            match imported {
                Imported::Name(imported) => self.bind_import(key.id, namespace.raw(), imported)?,
                Imported::Namespace => cx.redefine(entries, key.id, namespace.raw())?,
            }
        }
        Ok(())
    }

    fn bind_import(&self, key: sys::JSAtom, namespace: Raw, imported: &str) -> Outcome<()> {
        let (cx, session, parts) = (self.realm().cx, self.session()?, self.parts()?);
        let imported = cx.atom(imported)?;
        let global = cx.global()?;
        if cx.own_property(global.raw(), key)?.is_some() || !self.chain_imports(&global)? {
            // Code that reads the name would not come to the object behind.
            let value = cx.get(namespace, imported.id)?;
            return cx.redefine(parts.entries, key, value.raw());
        }
        let import = Import { key: cx.dup_atom(key), namespace: cx.dup(namespace), imported };
        session.imports.borrow_mut().names.insert(key, import);
        cx.delete_key(parts.entries, key)
    }

    /// Puts the object of the imports behind the global object, unless it is there. False if code has forbidden it.
    fn chain_imports(&self, global: &Local) -> Outcome<bool> {
        let (cx, session, parts) = (self.realm().cx, self.session()?, self.parts()?);
        let behind = cx.prototype(global.raw())?;
        let known = session.imports.borrow().object.clone();
        if let Some(object) = &known
            && is_object(behind.raw())
            && address_of(object.raw()) == address_of(behind.raw())
        {
            return Ok(true);
        }
        let object = match known {
            Some(object) => object,
            None => cx.object_of(parts.imports, behind.raw())?,
        };
        let chained = cx
            .prevent_extensions(object.raw())
            .and_then(|()| cx.set_prototype(global.raw(), object.raw()));
        if chained.is_err() {
            drop(cx.exception());
            return Ok(false);
        }
        session.imports.borrow_mut().object = Some(object);
        Ok(true)
    }
}

/// Called by the engine when a cell sets a name.
unsafe extern "C-unwind" fn set(
    ctx: *mut sys::JSContext,
    _object: Raw,
    key: sys::JSAtom,
    value: Raw,
    _receiver: Raw,
    _flags: c_int,
) -> c_int {
    let result = trampoline::enter(ctx, |state| {
        let session = state.session()?;
        let present = session.present.borrow();
        if let Some(present) = &*present {
            let bound = state.bind(&present.slots, key, value)?;
            if !matches!(bound, Bound::Name) {
                present.came_to_end.set(matches!(bound, Bound::End));
                present.has_value.set(true);
                present.value.replace(Some(Cx(ctx).dup(value)));
            }
        }
        Ok(Cx(ctx).dup(undefined()))
    });
    // SAFETY: reads the tag of a plain value.
    if unsafe { sys::JS_IsException(result) } { -1 } else { 1 }
}

/// Called by the engine when it looks for a name that the global object does not have.
unsafe extern "C-unwind" fn describe(
    ctx: *mut sys::JSContext,
    place: *mut sys::JSPropertyDescriptor,
    _object: Raw,
    key: sys::JSAtom,
) -> c_int {
    let mut found = 0;
    let result = trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        if cx == state.parts()?.modules {
            // Modules have none of the names of cells.
            return Ok(cx.dup(undefined()));
        }
        let imports = state.session()?.imports.borrow();
        let Some(import) = imports.names.get(&key) else { return Ok(cx.dup(undefined())) };
        let (namespace, imported) = (import.namespace.clone(), cx.dup_atom(import.imported.id));
        drop(imports);
        found = 1;
        if !place.is_null() {
            let value = cx.get(namespace.raw(), imported.id)?;
            // SAFETY: the engine's own place.
            found = unsafe { exotic::describe_constant(place, value) };
        }
        Ok(cx.dup(undefined()))
    });
    // SAFETY: reads the tag of a plain value.
    if unsafe { sys::JS_IsException(result) } { -1 } else { found }
}
