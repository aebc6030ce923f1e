//! Calls of the host that code forgets to await.
//!
//! In: the promises of host calls, when they are answered, and those without an answer at the end of a run. Out: at a
//! successful end, a log of level `warn` for each place that lost some, with their number. A call is lost if its answer can reach nobody: its
//! promise was never awaited or chained, or a chain of functions and promises that begins with it ends at a promise for
//! which nothing waits. The loser of a `Promise.race` is not lost, for that chain ends at a settled promise. Later cells of
//! a session may await what is referred to; so a cell tells only of promises to which nothing else refers.
//!
//! A run without such calls pays for one look at each promise when it is answered.

pub(super) mod losses;
mod warnings;

use self::losses::{Loss, Losses, Lost, Site, Unawaited, Watched, is_same};
use super::{
    crossing::numbered::HostCall,
    engine::{
        Local, Raw,
        frames::{self, Caller},
        reactions::{self, ChainEnd, Layout, Walk},
    },
    extension::functions,
    marks::label_of,
    session::cell,
    state::State,
};

/// The answered promises that are watched at once. Of further ones nothing is told.
const MOST_WATCHED: usize = 64;

/// The call sites among which a call that the extension passes on has the code that made it.
const PASSED_ON_BY: usize = 3;

/// The references of this crate to the promise of a call without an answer: the table's own, and those of the two
/// functions that settle it.
const OF_PENDING_CALL: i32 = 3;
/// The references to the promise of an async function that waits.
const OF_FUNCTION: i32 = 2;

impl Site {
    /// The site of a call of a host function, with its callers, the innermost first. Of a call that a helper of the host
    /// passes on, it is the call of the helper. `None` for calls that the extension makes for itself: its host knows which
    /// of them are lost.
    pub(super) fn new(state: &State, function: &Local, callers: &[Caller]) -> Option<Self> {
        let number = state.host_function_number(function.raw());
        let is_passed_on = number.is_some_and(functions::is_told);
        let own = if is_passed_on { PASSED_ON_BY } else { 1 };
        let at = callers.iter().take(own).position(|caller| !caller.is_trusted())?;
        let callers = &callers[at..];
        let helpers = callers.iter().take_while(|caller| state.is_of_helper(caller)).count();
        let (function, caller) = match (callers[..helpers].last(), callers.get(helpers)) {
            (Some(helper), Some(caller)) => (helper.function(), caller),
            _ => (function.raw(), callers.first()?),
        };
        Some(Self { function: state.realm().cx.dup(function), caller: caller.clone() })
    }
}

impl State {
    /// Watches the promise of a call that is about to get its answer, or that of the function which waits for it, unless
    /// something waits for that in turn.
    pub(super) fn watch_answer(&self, promise: &Local, call: &HostCall) {
        let Some(layout) = reactions::layout() else { return };
        if !reactions::is_handled(layout, promise.raw()) {
            if let Some(site) = call.site(self) {
                self.watch(layout, Watched::of_call(promise.clone(), site, call.made, self));
            }
            return;
        }
        let cx = self.realm().cx;
        let Some((last, function)) = reactions::last_function(cx, layout, promise.raw()) else {
            return;
        };
        if let Some(site) = call.site(self) {
            let watched = Watched::of_call(cx.dup(last), site, call.made, self);
            self.watch(layout, Watched { is_of_function: true, function, ..watched });
        }
    }

    /// Watches the promise of a call that was answered at once.
    pub(super) fn watch_settled(&self, promise: &Local, function: Raw) {
        let cx = self.realm().cx;
        let (Some(layout), Some(frames)) = (reactions::layout(), frames::probe::layout()) else {
            return;
        };
        let callers = frames::innermost(cx, frames, PASSED_ON_BY);
        if let Some(site) = Site::new(self, &cx.dup(function), &callers) {
            let watched = Watched::of_call(promise.clone(), site, self.next_call(), self);
            self.watch(layout, watched);
        }
    }

    /// The number of the next call whose promise may be lost.
    pub(super) fn next_call(&self) -> u32 {
        let number = self.calls_made.get().wrapping_add(1);
        self.calls_made.set(number);
        number
    }

    fn is_of_helper(&self, caller: &Caller) -> bool {
        let Ok(linker) = self.linker.try_borrow() else { return false };
        let file = self.realm().cx.atom_text(caller.file());
        file.is_ok_and(|file| linker.is_of_helpers(label_of(&file.into_lossy())))
    }

    fn watch(&self, layout: Layout, watched: Watched) {
        let promise = watched.promise.raw();
        if self.own_console.get() || reactions::is_told(layout, promise) {
            return;
        }
        if self.unawaited.borrow().watched.len() >= MOST_WATCHED {
            self.look_at_watched(layout);
        }
        let mut unawaited = self.unawaited.borrow_mut();
        if unawaited.watched.iter().any(|known| is_same(known.promise.raw(), promise)) {
            return;
        }
        if unawaited.watched.len() >= MOST_WATCHED {
            unawaited.is_cut = true;
        } else {
            unawaited.watched.push(watched);
            unawaited.is_fresh = true;
        }
    }

    /// Called after each job: lets promises go that are awaited by now, or that nobody can await any more.
    pub(super) fn note_job_done(&self) {
        let is_fresh = std::mem::take(&mut self.unawaited.borrow_mut().is_fresh);
        if is_fresh && let Some(layout) = reactions::layout() {
            self.look_at_watched(layout);
        }
    }

    fn look_at_watched(&self, layout: Layout) {
        // Nothing is borrowed while values of the engine are freed.
        let watched = std::mem::take(&mut self.unawaited.borrow_mut().watched);
        let (mut kept, mut lost) = (Vec::new(), Vec::new());
        for known in watched {
            let promise = known.promise.raw();
            if is_fine(layout, &known) {
                continue;
            }
            if reactions::is_pending(layout, promise) || reactions::references(layout, promise) > 1
            {
                kept.push(known);
            } else {
                lost.push(known.lost());
            }
        }
        let mut losses = std::mem::take(&mut self.unawaited.borrow_mut().lost);
        for lost in lost {
            losses.add(lost);
        }
        let mut unawaited = self.unawaited.borrow_mut();
        unawaited.watched = kept;
        unawaited.lost = losses;
    }

    /// Tells of the calls that are lost now that the run, or a cell, has ended well.
    pub(super) fn warn_of_lost_calls(&self) {
        let none = self.host_promises.borrow().is_empty() && self.unawaited.borrow().is_empty();
        if none || self.own_console.get() || cell::is_held(self) {
            return;
        }
        let Some(layout) = reactions::layout() else { return };
        self.look_at_watched(layout);
        let is_cell = self.session.is_some();
        let Unawaited { watched, lost, is_cut, .. } = self.unawaited.take();
        let is_own = |lost: &Lost| lost.cell == self.cell.get();
        let (own, of_others): (Vec<Lost>, Vec<Lost>) = lost.places.into_iter().partition(is_own);
        let mut lost = Losses { places: own, more: lost.more };
        let mut told = Vec::new();
        for unanswered in self.unanswered(layout, is_cell, &watched, &mut told) {
            lost.add(unanswered);
        }
        if is_cell {
            // Only now, for the chains of several calls may have one end.
            for promise in &told {
                reactions::tell(layout, *promise);
            }
        }
        let mut others = Vec::new();
        for known in watched {
            if known.cell != self.cell.get() {
                others.push(known);
                continue;
            }
            let promise = known.promise.raw();
            let is_pending = reactions::is_pending(layout, promise);
            let own = if is_pending { OF_FUNCTION + 1 } else { 1 };
            let is_abandoned = !is_cell || reactions::references(layout, promise) == own;
            if is_abandoned && !told.iter().any(|told| is_same(*told, promise)) {
                if is_cell {
                    reactions::tell(layout, promise);
                }
                lost.add(known.lost_by(is_pending));
            }
        }
        {
            let mut unawaited = self.unawaited.borrow_mut();
            unawaited.watched = others;
            unawaited.lost.places = of_others;
        }
        lost.places.sort_by_key(|lost| lost.made);
        self.warn_of(lost, is_cut);
    }

    /// The calls without an answer that are lost. Adds the promises at which their chains end.
    fn unanswered(
        &self,
        layout: Layout,
        is_cell: bool,
        watched: &[Watched],
        told: &mut Vec<Raw>,
    ) -> Vec<Lost> {
        let mut walk = Walk::new(self.realm().cx, layout);
        let promises = self.host_promises.borrow();
        let own = promises.values().filter(|promise| promise.cell == self.cell.get());
        let calls = own.filter_map(|known| Some((&known.promise, known.call.as_ref()?)));
        let mut calls: Vec<(&Local, &HostCall)> = calls.collect();
        calls.sort_by_key(|(_, call)| call.made);
        let mut lost = Vec::new();
        for (promise, call) in calls {
            let Some(site) = call.site(self) else { continue };
            let promise = promise.raw();
            let mut ends = walk.ends(promise, OF_PENDING_CALL);
            if is_cell {
                let is_watched = |end: &ChainEnd| {
                    watched.iter().any(|known| is_same(known.promise.raw(), end.promise))
                };
                ends.retain(|end| {
                    end.is_abandoned(layout, i32::from(is_watched(end)))
                        && !reactions::is_told(layout, end.promise)
                });
            }
            if ends.is_empty() {
                continue;
            }
            let is_own = |end: &ChainEnd| is_same(end.promise, promise);
            let loss = if ends.iter().any(is_own) { Loss::Unawaited } else { Loss::Unanswered };
            told.extend(ends.iter().map(|end| end.promise));
            let (made, cell) = (call.made, self.cell.get());
            lost.push(Lost { site, loss, calls: 1, function: None, made, cell });
        }
        lost
    }

    /// Forgets the promises that a cell has left.
    pub(super) fn forget_watched(&self) {
        let cell = self.cell.get();
        let forgotten = {
            let mut unawaited = self.unawaited.borrow_mut();
            let Unawaited { watched, lost: Losses { places: lost, more }, is_cut, .. } =
                &mut *unawaited;
            (*more, *is_cut) = (0, false);
            let watched = watched.extract_if(.., |known| known.cell == cell).collect::<Vec<_>>();
            (watched, lost.extract_if(.., |lost| lost.cell == cell).collect::<Vec<_>>())
        };
        // Frees values of the engine, with nothing borrowed.
        drop(forgotten);
    }
}

impl Watched {
    fn of_call(promise: Local, site: Site, made: u32, state: &State) -> Self {
        let cell = state.cell.get();
        Self { promise, site, is_of_function: false, function: None, made, cell }
    }
}

impl HostCall {
    /// The place of the call, unless the extension made the call for itself.
    pub(super) fn site(&self, state: &State) -> Option<Site> {
        Site::new(state, &self.function, self.callers())
    }
}

/// Whether there is nothing to tell of a promise: something is attached to it, or it is rejected, which is told anyway,
/// or its function has given no value that could be missed.
fn is_fine(layout: Layout, known: &Watched) -> bool {
    let promise = known.promise.raw();
    reactions::is_handled(layout, promise)
        || reactions::is_rejected(layout, promise)
        || (known.is_of_function
            && !reactions::is_pending(layout, promise)
            && reactions::is_without_value(layout, promise))
}
