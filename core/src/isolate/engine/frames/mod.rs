//! The frames of functions that run, while the engine makes an error.
//!
//! In: the engine's list of call sites. Out: each site with its place, and for a function of the sandbox its [`Frame`]:
//! the places around the instruction that failed, and the variables that the function sees. The engine has no functions
//! for this, so `structures` declares those of its source once more. [`probe`] compares them with a program whose variables
//! are known. Where they do not agree, nothing is read through them.

use std::ptr;

use super::{Atom, Cx, Local, Raw, is_object, sys, tag_of};

mod places;
pub(in crate::isolate) mod probe;
mod structures;

use self::places::RawPlace;
pub(in crate::isolate) use self::probe::Layout;
pub(super) use self::structures::AsyncFunction;
use self::structures::{Bytecode, CallSiteData, ErrorObject, FunctionObject, StackFrame};

/// A line and a column from 1, the column in bytes, as the engine counts them.
pub(in crate::isolate) type Place = (u32, u32);

/// A function that runs, as the engine lists it.
pub(in crate::isolate) struct CallSite<'s> {
    data: &'s CallSiteData,
}

impl CallSite<'_> {
    /// The name of the function; `null` without one.
    pub(in crate::isolate) fn name(&self) -> Raw {
        self.data.name
    }

    /// The function.
    pub(in crate::isolate) fn function(&self) -> Raw {
        self.data.function
    }

    /// The name of the file that a function of the sandbox is in.
    pub(in crate::isolate) fn file(&self) -> Raw {
        self.data.file
    }

    /// Whether the function is a builtin.
    pub(in crate::isolate) fn native(&self) -> bool {
        self.data.native
    }

    /// The place that the engine noted last before the call or the failure; `None` for builtins.
    pub(in crate::isolate) fn place(&self) -> Option<Place> {
        let line = u32::try_from(self.data.line).ok().filter(|line| *line > 0)?;
        Some((line, self.data.column.try_into().ok()?))
    }
}

impl Cx {
    /// The sites in the list that the engine hands over while it makes an error, with the list's values.
    pub(in crate::isolate) fn call_sites(self, _layout: Layout, list: Raw) -> Vec<Local> {
        let count = self.length(list).ok().and_then(|count| u32::try_from(count).ok());
        (0..count.unwrap_or(0)).map_while(|index| self.get_index(list, index).ok()).collect()
    }
}

/// The data of an element of that list.
pub(in crate::isolate) fn call_site(_layout: Layout, element: &Local) -> Option<CallSite<'_>> {
    let mut class = 0;
    // SAFETY: any value may be asked.
    let data = unsafe { sys::JS_GetAnyOpaque(element.raw, &raw mut class) };
    // SAFETY: the engine's own list has call sites alone, whose layout `probe` compared; the element keeps it alive.
    let data = unsafe { data.cast::<CallSiteData>().as_ref() }?;
    Some(CallSite { data })
}

/// A function of the sandbox that runs.
pub(in crate::isolate) struct Frame {
    state: *const StackFrame,
    object: *const FunctionObject,
    bytecode: *const Bytecode,
}

/// The places around a failed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) struct Around {
    /// The start of the function.
    pub(in crate::isolate) function: Option<Place>,
    /// The last place that the engine noted up to the instruction.
    pub(in crate::isolate) before: Option<Place>,
    /// The next place that it noted after the instruction.
    pub(in crate::isolate) after: Option<Place>,
}

/// The frames of the functions in the engine's list.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Stack {
    innermost: *const StackFrame,
    /// Whether the list leaves the innermost function out: it is the class whose constructor makes the error.
    pub(in crate::isolate) in_constructor: bool,
}

impl Stack {
    /// The frames of a list that begins with that site.
    ///
    /// # Safety
    /// The engine must be making an error on this thread, in the runtime of `cx`, and must have made this list. The
    /// frames must not be used later.
    pub(in crate::isolate) unsafe fn of(
        cx: Cx,
        layout: Layout,
        first: &CallSite<'_>,
    ) -> Option<Self> {
        // SAFETY: `probe` found the field there; the engine links live frames.
        unsafe {
            let runtime = sys::JS_GetRuntime(cx.0);
            let frame = *runtime.byte_add(layout.frame).cast::<*const StackFrame>();
            let in_constructor = !same(frame.as_ref()?.function, first.function());
            let innermost = if in_constructor { (*frame).previous } else { frame };
            same(innermost.as_ref()?.function, first.function())
                .then_some(Self { innermost, in_constructor })
        }
    }

    /// The first arguments that the innermost function got, if it is a builtin of the same class as `builtin`, which must
    /// be a plain one of the engine: other functions in C leave the arguments of their frames unwritten.
    pub(in crate::isolate) fn given(
        &self,
        cx: Cx,
        first: &CallSite<'_>,
        builtin: Raw,
    ) -> [Option<Local>; 2] {
        let is_plain = super::class_of(first.function()) == super::class_of(builtin);
        if !first.native() || self.in_constructor || !is_plain {
            return [None, None];
        }
        // SAFETY: the engine links live frames. That of a plain builtin begins like any other, and has so many arguments.
        let given = unsafe {
            match self.innermost.as_ref().filter(|frame| same(frame.function, first.function())) {
                Some(frame) => slice(frame.arguments, usize::from(frame.argument_count)),
                None => &[],
            }
        };
        [0, 1].map(|index| given.get(index).map(|value| cx.dup(*value)))
    }

    /// The frame of the `index`th site; `None` for builtins.
    pub(in crate::isolate) fn frame(&self, index: usize, site: &CallSite<'_>) -> Option<Frame> {
        let mut frame = self.innermost;
        // SAFETY: the engine links live frames, and the function of a live frame is alive.
        unsafe {
            for _ in 0..index {
                frame = frame.as_ref()?.previous;
            }
            let function = frame.as_ref()?.function;
            if site.native() || !same(function, site.function()) {
                return None;
            }
            let object = super::address_of(function) as *const FunctionObject;
            Some(Frame { state: frame, object, bytecode: (*object).bytecode })
        }
    }
}

fn same(left: Raw, right: Raw) -> bool {
    is_object(left) && is_object(right) && super::address_of(left) == super::address_of(right)
}

impl Frame {
    fn bytecode(&self) -> &Bytecode {
        // SAFETY: the function is alive, for its frame is.
        unsafe { &*self.bytecode }
    }

    /// Whether the engine noted where in the function it is.
    pub(in crate::isolate) fn has_place(&self) -> bool {
        // SAFETY: the frame lives.
        unsafe { !(*self.state).pc.is_null() }
    }

    /// The function.
    pub(in crate::isolate) fn function(&self) -> Raw {
        // SAFETY: the frame lives.
        unsafe { (*self.state).function }
    }

    /// The name of the file that the function is in.
    pub(in crate::isolate) fn file(&self) -> sys::JSAtom {
        self.bytecode().file
    }

    /// Whether the function is of the extension: nothing else has code without places.
    pub(in crate::isolate) fn is_trusted(&self) -> bool {
        self.file() == sys::JS_ATOM_NULL
    }

    /// The places around the instruction that failed.
    pub(in crate::isolate) fn around(&self) -> Around {
        let bytecode = self.bytecode();
        // SAFETY: the frame lives.
        let pc = unsafe { (*self.state).pc as usize };
        around(bytecode, pc.saturating_sub(bytecode.code as usize + 1))
    }

    /// The value of the only variable of that name that the function sees; `None` where there is none, or several, or no
    /// value yet.
    pub(in crate::isolate) fn variable(&self, cx: Cx, name: &Atom) -> Option<Local> {
        let mut found = None;
        for (other, value) in self.variables() {
            if other == name.id {
                if found.is_some() {
                    return None;
                }
                found = Some(value);
            }
        }
        // SAFETY: the engine's own slot, which holds a reference.
        let value = unsafe { *found? };
        (tag_of(value) != sys::JS_TAG_UNINITIALIZED).then(|| cx.dup(value))
    }

    /// The value of an argument, as it is by now.
    pub(in crate::isolate) fn argument(&self, cx: Cx, index: usize) -> Option<Local> {
        // SAFETY: the frame lives, and has that many arguments.
        let value = unsafe {
            let frame = &*self.state;
            let has = index < usize::from(frame.argument_count) && !frame.arguments.is_null();
            has.then(|| *frame.arguments.add(index))?
        };
        Some(cx.dup(value))
    }

    /// The names of the variables that the function sees.
    pub(in crate::isolate) fn names(&self) -> Vec<u32> {
        self.variables().map(|(name, _)| name).collect()
    }

    fn variables(&self) -> impl Iterator<Item = (u32, *const Raw)> {
        let bytecode = self.bytecode();
        // SAFETY: the engine's counts belong to its tables, and frame and function are alive. A function of a frame
        // that has begun has a cell for each captured variable.
        unsafe {
            let frame = &*self.state;
            let arguments = usize::from(bytecode.argument_count);
            let passed = usize::from(frame.argument_count).min(arguments);
            let defined =
                slice(bytecode.variables, arguments + usize::from(bytecode.variable_count));
            let captured = slice(bytecode.closure, usize::from(bytecode.closure_count));
            let closure = (*self.object).closure;
            let own = defined.iter().enumerate().filter_map(move |(index, variable)| {
                let value = match index.checked_sub(arguments) {
                    Some(index) => frame.variables.add(index),
                    None if index < passed => frame.arguments.add(index),
                    None => return None,
                };
                Some((variable.name, value))
            });
            let cells = captured.iter().enumerate().filter_map(move |(index, variable)| {
                if closure.is_null() {
                    return None;
                }
                let cell = (*closure.add(index)).as_ref()?;
                Some((variable.name, cell.value))
            });
            own.chain(cells).filter(|(_, value)| !value.is_null())
        }
    }
}

/// The places around the instruction at `pc`.
fn around(bytecode: &Bytecode, pc: usize) -> Around {
    let start = (bytecode.line, bytecode.column);
    let place = |(line, column): RawPlace| {
        let line = u32::try_from(line).ok().filter(|line| *line > 0)?;
        Some((line, u32::try_from(column).ok()?))
    };
    // SAFETY: the engine wrote the table.
    let table =
        unsafe { slice(bytecode.places, usize::try_from(bytecode.places_length).unwrap_or(0)) };
    let (before, after) = places::around(table, start, pc);
    Around { function: place(start), before: place(before), after: after.and_then(place) }
}

/// A function of the sandbox that was calling another one, kept for later.
#[derive(Clone)]
pub(in crate::isolate) struct Caller {
    pub(super) function: Local,
    /// The instruction.
    pub(super) pc: usize,
}

impl Caller {
    fn bytecode(&self) -> &Bytecode {
        let object = super::address_of(self.function.raw) as *const FunctionObject;
        // SAFETY: `callers` saw that it is a function with bytecode, and it is kept alive.
        unsafe { &*(*object).bytecode }
    }

    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        Self { function: self.function.image(), pc: self.pc }
    }

    /// The function.
    pub(in crate::isolate) fn function(&self) -> Raw {
        self.function.raw
    }

    /// The name of the file that the function is in.
    pub(in crate::isolate) fn file(&self) -> sys::JSAtom {
        self.bytecode().file
    }

    /// Whether the function is of the extension.
    pub(in crate::isolate) fn is_trusted(&self) -> bool {
        self.file() == sys::JS_ATOM_NULL
    }

    /// Whether the other one is at the same instruction of the same code.
    pub(in crate::isolate) fn is_at(&self, other: &Self) -> bool {
        self.pc == other.pc && ptr::eq(self.bytecode(), other.bytecode())
    }

    /// The last place that the engine noted before the call.
    pub(in crate::isolate) fn place(&self) -> Option<Place> {
        self.around().before
    }

    /// The places around the instruction.
    pub(in crate::isolate) fn around(&self) -> Around {
        around(self.bytecode(), self.pc)
    }
}

/// The functions of the sandbox that run, the innermost first: as many as the engine lists of an error.
pub(in crate::isolate) fn callers(cx: Cx, layout: Layout) -> Vec<Caller> {
    innermost(cx, layout, 10)
}

/// So many functions of the sandbox that run, the innermost first.
pub(in crate::isolate) fn innermost(cx: Cx, layout: Layout, most: usize) -> Vec<Caller> {
    /// Further frames are not looked at: builtins may be between.
    const MOST_FRAMES: usize = 64;
    let mut found = Vec::new();
    // SAFETY: `probe` found the field there, and compared the structures. The engine links live frames.
    unsafe {
        let runtime = sys::JS_GetRuntime(cx.0);
        let mut frame = *runtime.byte_add(layout.frame).cast::<*const StackFrame>();
        for _ in 0..MOST_FRAMES {
            let Some(here) = frame.as_ref() else { break };
            let function = here.function;
            let is_ours = is_object(function)
                && layout.functions.contains(&super::class_of(function))
                && !here.pc.is_null();
            if is_ours {
                let object = super::address_of(function) as *const FunctionObject;
                let code = (*(*object).bytecode).code as usize;
                let pc = (here.pc as usize).saturating_sub(code + 1);
                found.push(Caller { function: cx.dup(function), pc });
            }
            if found.len() == most {
                break;
            }
            frame = here.previous;
        }
    }
    found
}

/// The code of a function of the sandbox, and the values that it has captured.
pub(super) struct Closure {
    /// Whether the function is of the extension.
    pub(super) is_trusted: bool,
    pub(super) captured: Vec<Raw>,
}

/// An async function that waits, as the caller of that for which it waits.
///
/// # Safety
/// The async function must be alive.
pub(super) unsafe fn suspended_at(cx: Cx, function: *const AsyncFunction) -> Option<Caller> {
    // SAFETY: the caller vouches for it; a frame that waits has the instruction behind its `await`.
    unsafe {
        let Frame { state, bytecode, .. } = waiting(&raw const (*function).frame)?;
        let pc = ((*state).pc as usize).saturating_sub((*bytecode).code as usize + 1);
        Some(Caller { function: cx.dup((*state).function), pc })
    }
}

/// The closure of a function, with the first values; `None` if the function has no bytecode.
pub(super) fn closure(layout: Layout, function: Raw) -> Option<Closure> {
    const MOST: usize = 32;
    if !is_object(function) || !layout.functions.contains(&super::class_of(function)) {
        return None;
    }
    let object = super::address_of(function) as *const FunctionObject;
    // SAFETY: `probe` compared the structures. The engine's count belongs to its table, whose cells live as long as the
    // function.
    unsafe {
        let bytecode = &*(*object).bytecode;
        let cells = slice((*object).closure, usize::from(bytecode.closure_count));
        let cells = cells.iter().take(MOST).filter_map(|cell| (*cell).as_ref());
        let values = cells.map(|cell| cell.value);
        let captured = values.filter(|value| !value.is_null()).map(|value| *value).collect();
        Some(Closure { is_trusted: bytecode.file == sys::JS_ATOM_NULL, captured })
    }
}

/// At least so many of the functions that wait are given.
const MOST_SUSPENDED: usize = 10;

/// The last async functions that wait at an `await`, in order of their calls as far as the engine keeps it.
pub(in crate::isolate) fn suspended(cx: Cx, layout: Layout) -> Vec<Frame> {
    /// Further objects are not looked at: that would take time.
    const MOST_OBJECTS: usize = 1 << 20;
    /// The engine's number for them, in the header before each object.
    const ASYNC_FUNCTION: u8 = 4;
    const HEADER: usize = 5;
    let mut found = Vec::new();
    // SAFETY: `probe` compared the structures. The engine links all its objects in a ring, the context among them, and
    // the head of the ring is in the runtime.
    unsafe {
        let runtime = sys::JS_GetRuntime(cx.0) as usize;
        let start = cx.0.cast_const().cast::<AsyncFunction>();
        let mut at = (*start).links[1];
        for _ in 0..MOST_OBJECTS {
            if ptr::eq(at, start) || at.is_null() {
                break;
            }
            let is_head = (at as usize).wrapping_sub(runtime) < layout.frame;
            if !is_head && *at.cast::<u8>().sub(HEADER) & 0x7f == ASYNC_FUNCTION && (*at).active {
                found.extend(waiting(&raw const (*at).frame));
                if found.len() == 2 * MOST_SUSPENDED {
                    found.drain(..MOST_SUSPENDED);
                }
            }
            at = (*at).links[1];
        }
    }
    found
}

/// # Safety
/// The frame must be that of a live async function.
unsafe fn waiting(frame: *const StackFrame) -> Option<Frame> {
    // SAFETY: the caller vouches for it.
    unsafe {
        let function = (*frame).function;
        if !is_object(function) || (*frame).pc.is_null() {
            return None;
        }
        let object = super::address_of(function) as *const FunctionObject;
        Some(Frame { state: frame, object, bytecode: (*object).bytecode })
    }
}

/// # Safety
/// That many elements must be there, unless the pointer is null.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// Whether an error has its stack already.
pub(in crate::isolate) fn has_stack(_layout: Layout, error: Raw) -> bool {
    let object = super::address_of(error) as *const ErrorObject;
    // SAFETY: the caller gives an error, and `probe` compared the structures.
    let stack = unsafe { (*object).stack };
    tag_of(stack) != sys::JS_TAG_UNDEFINED
}

/// Gives an error its stack.
pub(in crate::isolate) fn set_stack(_layout: Layout, error: &Local, stack: Local) {
    let object = super::address_of(error.raw) as *mut ErrorObject;
    // SAFETY: the caller gives an error, and `probe` compared the structures. The field owns its reference.
    unsafe {
        let old = std::mem::replace(&mut (*object).stack, stack.into_raw());
        drop(Local { cx: error.cx, raw: old });
    }
}

/// The properties that an object's own table has room for. Reads no property.
pub(in crate::isolate) fn property_count(_layout: Layout, object: Raw) -> usize {
    if !is_object(object) {
        return 0;
    }
    let object = super::address_of(object) as *const FunctionObject;
    // SAFETY: every object begins alike, and has a shape.
    let shape = unsafe { (*object).shape.as_ref() };
    shape.and_then(|shape| usize::try_from(shape.count).ok()).unwrap_or(0)
}

/// Installs `function` as what the engine calls to make the stack of an error. Must come before the properties of
/// `Error` for it are removed.
pub(in crate::isolate) fn install(
    cx: Cx,
    runtime: *mut sys::JSRuntime,
    error: Raw,
    function: sys::ClassCall,
) -> Option<()> {
    let class = super::callable_class(runtime, function)?;
    // SAFETY: a live context; the engine takes the reference of the object.
    unsafe {
        let object = cx.own(sys::JS_NewObjectClass(cx.0, class)).ok()?;
        let name = c"prepareStackTrace".as_ptr();
        (sys::JS_SetPropertyStr(cx.0, error, name, object.into_raw()) >= 0).then_some(())
    }
}
