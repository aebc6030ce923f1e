//! The time of each step of a run. Compiled for tests only: elsewhere a lap costs nothing.
//!
//! In: [`lap`]s on the computing thread, each at the end of a step. Out: the time of each step since the lap before it,
//! while `watch` is active.

/// A step of a run, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "some steps are embedder of an isolate: `costs.rs`")
)]
pub(crate) enum Step {
    /// Source to a checked module.
    Compiled,
    /// The graph, every import checked.
    Linked,
    /// A pristine isolate.
    Taken,
    /// Its limit, its interrupts, the state of its run.
    Armed,
    /// The caller's message, read.
    ClonedIn,
    /// The script that declares the globals, run.
    Bound,
    /// Bytecode made by the engine, of scripts and modules that have none yet.
    Assembled,
    /// Bytecode to a module in the realm, its imports resolved.
    Loaded,
    Evaluated,
    /// The export selected and called, and its result awaited.
    Awaited,
    /// The result, written.
    ClonedOut,
    /// The run's data beside the engine is dropped.
    Released,
    /// The image copied back.
    Copied,
    /// The rest of the work until the isolate is ready again.
    Restored,
}

/// A step of this thread's run is over.
#[inline]
pub(crate) fn lap(step: Step) {
    #[cfg(test)]
    watched::lap(step);
    let _ = step;
}

#[cfg(test)]
pub(crate) use self::watched::{Laps, watch};

#[cfg(test)]
mod watched {
    use std::{
        cell::RefCell,
        time::{Duration, Instant},
    };

    use super::Step;

    /// The time of each step, by its number.
    pub(crate) type Laps = [Duration; Step::Restored as usize + 1];

    thread_local! {
        static WATCHED: RefCell<Option<(Instant, Laps)>> = const { RefCell::new(None) };
    }

    /// The time of each step of `body` on this thread.
    pub(crate) fn watch(body: impl FnOnce()) -> Laps {
        WATCHED.set(Some((Instant::now(), Laps::default())));
        body();
        WATCHED.take().map(|(_, laps)| laps).unwrap_or_default()
    }

    pub(super) fn lap(step: Step) {
        WATCHED.with_borrow_mut(|watched| {
            if let Some((since, laps)) = watched {
                let now = Instant::now();
                laps[step as usize] += now - *since;
                *since = now;
            }
        });
    }

    #[test]
    fn a_step_takes_from_the_lap_before_it() {
        let pause = Duration::from_millis(5);
        let began = Instant::now();
        lap(Step::Compiled);
        let laps = watch(|| {
            std::thread::sleep(pause);
            lap(Step::Linked);
            lap(Step::Taken);
            std::thread::sleep(pause);
            lap(Step::Linked);
        });
        assert!(laps[Step::Linked as usize] >= 2 * pause, "{laps:?}");
        assert_eq!(laps[Step::Compiled as usize], Duration::ZERO);
        let all = began.elapsed();
        assert!(laps.iter().sum::<Duration>() <= all, "{laps:?} of {all:?}");
    }
}
