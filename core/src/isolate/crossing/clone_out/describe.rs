//! The class of an object, read without running any code.
//!
//! In: an object of the sandbox. Out: the class of an error, or the words by which a refusal names the object.

use crate::{
    isolate::{
        engine::{Raw, address_of, class_of, is_object, is_proxy, tag_of},
        state::State,
    },
    value::ErrorClass,
};

pub(super) fn same(left: Raw, right: Raw) -> bool {
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
pub(in crate::isolate) fn describe(state: &State, value: Raw) -> String {
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

/// The name of the function that the prototype of an object names as its constructor.
pub(super) fn constructor_name(state: &State, value: Raw) -> Option<String> {
    let cx = state.realm().cx;
    let prototype =
        cx.prototype(value).ok().filter(|p| is_object(p.raw()) && !is_proxy(p.raw()))?;
    let constructor = cx.own_data(prototype.raw(), c"constructor")?;
    // The name of a Proxy would come from one of its traps.
    let is_plain = cx.is_function(constructor.raw()) && !is_proxy(constructor.raw());
    is_plain.then(|| state.function_name(constructor.raw()))
}
