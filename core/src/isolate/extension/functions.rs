//! Host functions of the extension, by their numbers.
//!
//! In: the number of a host function. Out: the facts that the extension of the process declares of it.

use crate::{
    binding::native::extension_place,
    data::extension::{ExtensionFunction, ExtensionReturns, installed},
};

/// Whether a host function may return a value in the place of a promise.
pub(in crate::isolate) fn may_return_value(number: u32) -> bool {
    returns(number) == Some(ExtensionReturns::Either)
}

/// Whether a host function gives values as texts in JSON.
pub(in crate::isolate) fn gives_json(number: u32) -> bool {
    returns(number) == Some(ExtensionReturns::Json)
}

/// Whether the run is told of lost calls of a host function of the extension.
pub(in crate::isolate) fn is_told(number: u32) -> bool {
    function(number).is_some_and(|native| native.is_told)
}

/// The name of a host function of the extension.
pub(in crate::isolate) fn name_of(number: u32) -> Option<&'static str> {
    function(number).map(|native| native.name)
}

fn returns(number: u32) -> Option<ExtensionReturns> {
    function(number).map(|native| native.returns)
}

fn function(number: u32) -> Option<&'static ExtensionFunction> {
    installed()?.natives.get(extension_place(number)?)
}
