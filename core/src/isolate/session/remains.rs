//! Cells of which nothing lives.
//!
//! In: a session at the end of a cell. Out: the same without the texts of cells whose code the engine has freed. Code has
//! the name of its file; so a cell is dead when nothing in the engine has its name.

use crate::isolate::{
    engine::{Thrown, sys},
    marks::marked,
    state::State,
};

impl State {
    /// Forgets such cells, and gives back the bytes that were charged for them.
    pub(super) fn forget_dead_cells(&self) {
        let cx = self.realm().cx;
        let lives = |file: &str| {
            cx.is_name(&marked(file)).unwrap_or_else(|Thrown| {
                drop(cx.exception());
                true
            })
        };
        #[expect(unsafe_code, reason = "calls the engine's collector")]
        // SAFETY: a live runtime, in which no code runs.
        let collect = || unsafe { sys::JS_RunGC(sys::JS_GetRuntime(cx.0)) };
        let (_, room_bytes) = self.held_and_room_bytes();
        let mut linker = self.linker.borrow_mut();
        let Some(program) = linker.session() else { return };
        let freed = program.forget_dead(room_bytes, lives, collect);
        drop(linker);
        self.let_go(freed);
    }
}
