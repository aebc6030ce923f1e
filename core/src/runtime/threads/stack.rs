//! Threads whose stacks do not stay as large as the deepest run made them.
//!
//! In: the work of a thread. Out: that work, on a thread which can return unused pages of its stack to the system. Code
//! that recurses touches megabytes of a stack, and every thread runs such code some day. Each would then hold the pages
//! of its deepest run for ever.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "gives memory back to the system"))]

use std::{io, marker::PhantomData, thread};

/// The stack of the engine, and as much again for everything around it; and twice that, so that a source of 7 KiB can be
/// compiled on it. A longer one gets a stack of its own.
const STACK_BYTES: usize = 4 * crate::isolate::STACK_LIMIT_BYTES * crate::os::sanitized::FRAMES;

/// The stack of the thread that has it.
pub(crate) struct Stack {
    /// The lowest address that is returned: the rest is never touched, or not this thread's.
    #[cfg(target_os = "linux")]
    lowest: usize,
    of_one_thread: PhantomData<*const ()>,
}

/// Starts a thread.
///
/// # Errors
/// The system has no thread left, or no addresses for its stack.
pub(crate) fn spawn(name: &str, work: impl FnOnce(&Stack) + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || work(&Stack::of_this_thread())).map(drop)
}

#[cfg(target_os = "linux")]
impl Stack {
    /// More than most runs touch, and than any system's page.
    const KEPT_BYTES: usize = 256 << 10;

    fn of_this_thread() -> Self {
        // Some of the stack is above this frame: the system and the language use it.
        let lowest = Self::below(STACK_BYTES / 4 * 3);
        Self { lowest, of_one_thread: PhantomData }
    }

    /// The begin of the page that is about that many bytes below the caller's frame.
    #[inline(never)]
    fn below(bytes: usize) -> usize {
        let here = 0_u8;
        (&raw const here).addr().saturating_sub(bytes) / Self::KEPT_BYTES * Self::KEPT_BYTES
    }

    /// Returns the pages that are deeper than most runs go.
    pub(crate) fn give_back(&self) {
        let bytes = Self::below(Self::KEPT_BYTES).saturating_sub(self.lowest);
        let lowest = std::ptr::without_provenance_mut::<libc::c_void>(self.lowest);
        // SAFETY: by the size of the stack, `lowest` to a good way below this frame is stack of this thread. Nothing
        // there is in use: nobody reads what earlier calls left.
        unsafe { libc::madvise(lowest, bytes, libc::MADV_DONTNEED) };
    }
}

/// Other systems take unused pages back by themselves, or keep them until the thread ends.
#[cfg(not(target_os = "linux"))]
impl Stack {
    fn of_this_thread() -> Self {
        Self { of_one_thread: PhantomData }
    }

    pub(crate) fn give_back(&self) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::testing::backed::backed_bytes;

    /// Touches the stack from here down to that address.
    fn dig(lowest: usize) -> u8 {
        let frame = std::hint::black_box([1_u8; 1024]);
        let deep = (&raw const frame).addr() <= lowest;
        if deep { frame[0] } else { dig(lowest).wrapping_add(frame[1]) }
    }

    #[test]
    fn the_pages_of_a_deep_call_are_returned() {
        let (sender, measured) = mpsc::channel();
        spawn("deep", move |stack| {
            let lowest = stack.lowest + (1 << 20);
            let touched = || backed_bytes(lowest, 4 << 20);
            dig(lowest);
            let before = touched();
            stack.give_back();
            let after = touched();
            // The stack can be used again.
            dig(lowest);
            sender.send((before, after, touched())).expect("the test waits");
        })
        .expect("a thread");
        let (before, after, again) = measured.recv().expect("the thread tells");
        assert!(before > 3 << 20 && after == 0 && again > 3 << 20, "{before} {after} {again}");
    }
}
