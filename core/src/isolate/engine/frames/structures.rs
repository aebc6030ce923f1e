//! The engine's structures, as its source declares them.

use std::ffi::{c_int, c_void};

use super::super::Raw;

/// `JSCallSiteData`.
#[repr(C)]
pub(super) struct CallSiteData {
    pub(super) file: Raw,
    pub(super) function: Raw,
    pub(super) name: Raw,
    pub(super) native: bool,
    pub(super) constructor: bool,
    pub(super) line: c_int,
    pub(super) column: c_int,
}

/// The beginning of `JSStackFrame`.
#[repr(C)]
pub(super) struct StackFrame {
    pub(super) previous: *const StackFrame,
    pub(super) function: Raw,
    pub(super) arguments: *const Raw,
    pub(super) variables: *const Raw,
    pub(super) references: *const *const Reference,
    /// The instruction after the one that failed.
    pub(super) pc: *const u8,
    pub(super) reference_count: u16,
    pub(super) argument_count: u16,
}

/// The beginning of `JSObject`, of a function with bytecode.
#[repr(C)]
pub(super) struct FunctionObject {
    pub(super) links: [usize; 2],
    pub(super) flags: u64,
    pub(super) shape: *const Shape,
    pub(super) properties: *const c_void,
    pub(super) weak_references: *const c_void,
    pub(super) bytecode: *const Bytecode,
    pub(super) closure: *const *const Reference,
}

/// The beginning of `JSObject`, of an error.
#[repr(C)]
pub(super) struct ErrorObject {
    pub(super) links: [usize; 2],
    pub(super) flags: u64,
    pub(super) shape: *const Shape,
    pub(super) properties: *const c_void,
    pub(super) weak_references: *const c_void,
    pub(super) stack: Raw,
}

/// The beginning of `JSShape`.
#[repr(C)]
pub(super) struct Shape {
    pub(super) links: [usize; 2],
    pub(super) hashed: u8,
    pub(super) hash: u32,
    pub(super) mask: u32,
    pub(super) size: c_int,
    pub(super) count: c_int,
}

/// `JSFunctionBytecode`.
#[repr(C)]
pub(super) struct Bytecode {
    pub(super) links: [usize; 2],
    pub(super) flags: u16,
    pub(super) code: *const u8,
    pub(super) code_length: c_int,
    pub(super) name: u32,
    pub(super) variables: *const Variable,
    pub(super) closure: *const Captured,
    pub(super) argument_count: u16,
    pub(super) variable_count: u16,
    pub(super) defined_argument_count: u16,
    pub(super) stack_size: u16,
    pub(super) reference_count: u16,
    pub(super) closure_count: u16,
    pub(super) constant_count: c_int,
    pub(super) realm: *const c_void,
    pub(super) constants: *const Raw,
    pub(super) file: u32,
    pub(super) line: c_int,
    pub(super) column: c_int,
    pub(super) source_length: c_int,
    pub(super) places_length: c_int,
    pub(super) places: *const u8,
    pub(super) source: *const u8,
}

/// `JSVarDef`.
#[repr(C)]
pub(super) struct Variable {
    pub(super) name: u32,
    pub(super) scope: c_int,
    pub(super) next: c_int,
    pub(super) flags: u8,
    pub(super) reference: u16,
    pub(super) function: c_int,
}

/// `JSClosureVar`.
#[repr(C)]
pub(super) struct Captured {
    pub(super) flags: [u8; 2],
    pub(super) index: u16,
    pub(super) name: u32,
}

/// The beginning of `JSVarRef`.
#[repr(C)]
pub(super) struct Reference {
    pub(super) links: [usize; 2],
    pub(super) flags: [u8; 4],
    pub(super) value: *const Raw,
}

/// `JSAsyncFunctionData`.
#[repr(C)]
pub(in crate::isolate::engine) struct AsyncFunction {
    pub(super) links: [*const Self; 2],
    pub(super) resolving: [Raw; 2],
    pub(super) active: bool,
    pub(super) this: Raw,
    pub(super) argument_count: c_int,
    pub(super) throws: bool,
    pub(super) frame: StackFrame,
}

impl AsyncFunction {
    /// The function that fulfils its promise.
    pub(in crate::isolate::engine) fn resolve(&self) -> Raw {
        self.resolving[0]
    }
}
