//! The intrinsics of a realm that this crate needs.
//!
//! In: a new realm, as `realm_builder` makes it. Out: values that no sandbox code has touched yet.

use super::originals;
use crate::isolate::{
    engine::Raw, globals::defaults::Defaults, intl::intrinsics, locale::warnings,
};

/// Intrinsics that `instanceof` and cloning need, captured before any code of a run.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Intrinsics {
    pub(in crate::isolate) object_prototype: Raw,
    pub(in crate::isolate) function_prototype: Raw,
    /// Prototypes of the error classes, in the order of `ErrorClass`.
    pub(in crate::isolate) error_prototypes: [Raw; 7],
    pub(in crate::isolate) aggregate_error_prototype: Raw,
    /// The engine's own getter of `stack`, whose text has marks: see `marks`.
    pub(in crate::isolate) error_stack: Raw,
    /// The engine's own functions for the text of a function: see `function_text`.
    pub(in crate::isolate) function_text: originals::FunctionText,
    pub(in crate::isolate) map: Raw,
    pub(in crate::isolate) map_set: Raw,
    pub(in crate::isolate) map_for_each: Raw,
    pub(in crate::isolate) map_size: Raw,
    pub(in crate::isolate) set: Raw,
    pub(in crate::isolate) set_add: Raw,
    pub(in crate::isolate) set_for_each: Raw,
    pub(in crate::isolate) set_size: Raw,
    pub(in crate::isolate) date_get_time: Raw,
    /// The engine's own constructor of dates: see `dates`.
    pub(in crate::isolate) dates: originals::Dates,
    pub(in crate::isolate) promise: Raw,
    pub(in crate::isolate) promise_resolve: Raw,
    pub(in crate::isolate) regexp: Raw,
    pub(in crate::isolate) regexp_source: Raw,
    /// The getters of a RegExp's flags, each with its letter.
    pub(in crate::isolate) regexp_flags: [(char, Raw); 8],
    pub(in crate::isolate) bigint: Raw,
    pub(in crate::isolate) bigint_as_int_n: Raw,
    pub(in crate::isolate) bigint_to_string: Raw,
    pub(in crate::isolate) string_concat: Raw,
    pub(in crate::isolate) string_slice: Raw,
    /// Called for each entry of a Map or Set that is being read.
    pub(in crate::isolate) collector: Raw,
    pub(in crate::isolate) data_view: Raw,
    pub(in crate::isolate) data_view_buffer: Raw,
    pub(in crate::isolate) data_view_byte_offset: Raw,
    pub(in crate::isolate) data_view_byte_length: Raw,
    pub(in crate::isolate) typed_array_byte_length: Raw,
    pub(in crate::isolate) typed_array_length: Raw,
    /// The prototypes of `intl`.
    pub(in crate::isolate) intl: intrinsics::Intrinsics,
    /// The engine's own locale methods: see `locale`.
    pub(in crate::isolate) locale_methods: [Raw; warnings::METHOD_COUNT],
    /// `valueOf` of Number, String, Boolean and BigInt, each with the class of its boxed values.
    pub(in crate::isolate) value_of: [(u32, Raw); 4],
    /// The classes whose objects are plain if their prototype is: plain ones, `arguments` and module namespaces.
    pub(in crate::isolate) plain_classes: [u32; 4],
    pub(in crate::isolate) console: Raw,
    pub(in crate::isolate) report: Raw,
    pub(in crate::isolate) defaults: Defaults,
}

impl Intrinsics {
    /// Every value that is held.
    pub(super) fn all(&self) -> Vec<Raw> {
        let mut all = vec![
            self.object_prototype,
            self.function_prototype,
            self.aggregate_error_prototype,
            self.error_stack,
            self.map,
            self.map_set,
            self.map_for_each,
            self.map_size,
            self.set,
            self.set_add,
            self.set_for_each,
            self.set_size,
            self.date_get_time,
            self.promise,
            self.promise_resolve,
            self.regexp,
            self.regexp_source,
            self.bigint,
            self.bigint_as_int_n,
            self.collector,
            self.bigint_to_string,
            self.string_concat,
            self.string_slice,
            self.data_view,
            self.data_view_buffer,
            self.data_view_byte_offset,
            self.data_view_byte_length,
            self.typed_array_byte_length,
            self.typed_array_length,
            self.console,
            self.report,
        ];
        all.extend(self.error_prototypes);
        all.extend(self.function_text.all());
        all.extend(self.dates.all());
        all.extend(self.intl.all());
        all.extend(self.locale_methods);
        all.extend(self.regexp_flags.map(|(_, getter)| getter));
        all.extend(self.value_of.map(|(_, function)| function));
        all.extend(self.defaults.all());
        all
    }
}
