//! An exit from the engine at any point of its work.
//!
//! The engine does not survive a failed request for memory: its parser asserts, follows null pointers, or continues
//! with half an object. So no request ever fails. At the limit, or after a request to end the run, the engine's request
//! does not return. Instead the stack is unwound up to [`catch`]: through the engine's frames, which are C and own
//! nothing outside of their heap, and through ours, whose destructors run. The heap stays broken, as it is at that
//! moment, and nobody reads it again: it is restored from its image, or freed block by block.
//!
//! In: [`leave`], on a thread inside of [`catch`]. Out: a [`Left`]. As long as that lives, or the stack is being
//! unwound, nothing on this thread gives a reference back to the engine.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// The payload of the unwinding; outside of this file it is only rethrown.
struct Escape;

/// The engine was left; its heap must not be touched any more.
#[derive(Debug)]
pub(crate) struct Left(());

thread_local! {
    static LEFT: Cell<bool> = const { Cell::new(false) };
}

/// Leaves the engine.
pub(in crate::isolate) fn leave() -> ! {
    LEFT.set(true);
    // Not a panic: no hook is called.
    resume_unwind(Box::new(Escape))
}

/// Runs a function that may leave the engine.
pub(in crate::isolate) fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Left> {
    caught(AssertUnwindSafe(body)).or_else(|thrown| match thrown.downcast::<Escape>() {
        Ok(_) => Err(Left(())),
        Err(panic) => resume_unwind(panic),
    })
}

/// Runs a function that may panic, on the way from the engine into this crate. An unwinding that leaves the engine
/// passes through.
pub(in crate::isolate) fn catch_panic<T>(body: impl FnOnce() -> T) -> std::thread::Result<T> {
    caught(AssertUnwindSafe(body)).map_err(|thrown| match thrown.downcast::<Escape>() {
        Ok(escape) => resume_unwind(escape),
        Err(panic) => panic,
    })
}

fn caught<T>(body: AssertUnwindSafe<impl FnOnce() -> T>) -> std::thread::Result<T> {
    catch_unwind(body)
}

/// Whether the engine was left on this thread, so that none of its memory may be touched.
pub(in crate::isolate) fn has_left() -> bool {
    LEFT.get()
}

/// Runs a function that drops values of the engine whose references do not count any more, because their heap has
/// another content by now. It must not call the engine.
pub(in crate::isolate) fn forgetting<T>(body: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }
    let _before = Before(LEFT.replace(true));
    body()
}

impl Drop for Left {
    fn drop(&mut self) {
        LEFT.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_leaves_is_caught_and_a_panic_is_not() {
        let left = catch(|| catch_panic(|| leave()).is_ok()).expect_err("left");
        assert!(has_left());
        drop(left);
        assert!(!has_left());
        assert!(catch_panic(|| panic!("as the test wants")).is_err());
        assert!(catch_panic(|| catch(|| panic!("as the test wants"))).is_err() && !has_left());
    }
}
