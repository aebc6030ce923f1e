//! The texts that tell of lost calls.
//!
//! In: places that lost calls, in the order of their first ones. Out: a log for each place in the text of its author,
//! with the number of its calls, and one with the number of the calls elsewhere. The logs are nothing that can end a run:
//! there are none where the limit leaves little room.

use super::losses::{Loss, Losses, Lost, Site};
use crate::{
    data::outcome::{LogLevel, Position},
    isolate::{
        engine::{frames::Caller, is_string},
        exception,
        extension::functions,
        marks::label_of,
        state::State,
    },
    modules::program::{
        self,
        call_site::{Call, Called},
    },
};

/// Bytes of a function's name, and of a file's, that a warning shows.
const LONGEST_NAME: usize = 200;

/// The room that all warnings of a run have to have.
const ROOM_BYTES: usize = 128 << 10;

impl State {
    /// Logs all losses. With `is_cut` there are calls that were not counted.
    pub(super) fn warn_of(&self, losses: Losses, is_cut: bool) {
        let Losses { places: mut lost, more } = losses;
        let has_room = || self.held_and_room_bytes().1 >= ROOM_BYTES;
        if lost.is_empty() || self.must_end() || !has_room() {
            return;
        }
        lost.retain(|lost| !lost.function.as_ref().is_some_and(|at| self.drops_value(lost, at)));
        let names = lost.iter().map(|lost| self.name_of(&lost.site)).collect::<Vec<_>>();
        let places = self.places_of(&lost, &names);
        for ((lost, name), place) in lost.iter().zip(names).zip(places) {
            let number = self.host_function_number(lost.site.function.raw());
            // `sql` is called as `db.sql`.
            let name = number.and_then(functions::name_of).map_or(name, str::to_owned);
            let call = match place {
                Some((file, Position { line, column })) => {
                    format!("{name} ({file}:{line}:{column})")
                }
                None => name,
            };
            let counted = counted(lost.calls, is_cut);
            self.log_text(LogLevel::Warn, &format!("{}{counted}", text_of(lost.loss, &call)));
        }
        if more > 0 {
            let calls = if more == 1 { "call was" } else { "calls were" };
            self.log_text(LogLevel::Warn, &format!("{more} more {calls} not awaited"));
        }
    }

    fn name_of(&self, site: &Site) -> String {
        let name = self.realm().cx.own_data(site.function.raw(), c"name");
        let name = name.filter(|name| is_string(name.raw()));
        let name = name.map(|name| self.excerpt(name.raw(), LONGEST_NAME)).unwrap_or_default();
        exception::shown_name(name.as_bytes())
    }

    /// Whether an async function that is done was called where it is written, by a statement that has no use for its
    /// value: it is no mistake then that nothing awaits it.
    fn drops_value(&self, lost: &Lost, waited: &Caller) -> bool {
        let Ok(linker) = self.linker.try_borrow() else { return false };
        if lost.loss != Loss::FunctionUnawaited {
            return false;
        }
        let Ok(file) = self.realm().cx.atom_text(waited.file()) else { return false };
        let file = file.into_lossy();
        let file = label_of(&file);
        let place = waited.place();
        let place = place.and_then(|(line, column)| linker.original(file, line, column));
        let (_, room_bytes) = self.held_and_room_bytes();
        place.is_some_and(|place| {
            linker.immediate(file, &[place], room_bytes).first().is_some_and(|is_it| *is_it)
        })
    }

    /// The file and the position of each call. Each text is read once.
    fn places_of(&self, lost: &[Lost], names: &[String]) -> Vec<Option<(String, Position)>> {
        let Ok(linker) = self.linker.try_borrow() else { return vec![None; lost.len()] };
        let cx = self.realm().cx;
        let place = |lost: &Lost| {
            let caller = &lost.site.caller;
            let file = cx.atom_text(caller.file()).ok()?.into_lossy();
            let (line, column) = caller.place()?;
            let file = label_of(&file);
            Some((file.to_owned(), linker.original(file, line, column)?))
        };
        let mut places: Vec<Option<(String, Position)>> = lost.iter().map(place).collect();
        let files = places.iter().flatten().map(|(file, _)| file.clone());
        let mut files: Vec<String> = files.collect();
        files.sort_unstable();
        files.dedup();
        let (_, room_bytes) = self.held_and_room_bytes();
        for file in files {
            let mut here: Vec<&mut Position> = Vec::new();
            let mut calls = Vec::new();
            for (place, name) in places.iter_mut().zip(names) {
                if let Some((_, position)) = place.as_mut().filter(|(other, _)| *other == file) {
                    calls.push(Call { place: *position, called: Called::Function(name.clone()) });
                    here.push(position);
                }
            }
            let corrected = linker.calls(&file, &calls, room_bytes);
            for (position, corrected) in here.into_iter().zip(corrected) {
                *position = corrected.unwrap_or(*position);
            }
        }
        let shown = |(file, position): (String, Position)| {
            (exception::shown_name(excerpt(program::shown(&file)).as_bytes()), position)
        };
        places.into_iter().map(|place| place.map(shown)).collect()
    }
}

/// The beginning of a file's name.
fn excerpt(file: &str) -> &str {
    &file[..file.floor_char_boundary(LONGEST_NAME)]
}

/// The number of calls, if there are several.
fn counted(calls: usize, is_cut: bool) -> String {
    match (calls, is_cut) {
        (1, _) => String::new(),
        (calls, false) => format!(" ({calls} calls)"),
        (calls, true) => format!(" (at least {calls} calls)"),
    }
}

fn text_of(loss: Loss, call: &str) -> String {
    match loss {
        Loss::Unanswered => format!("the run ended before {call} was answered; await it"),
        Loss::Unawaited => format!("the promise of {call} was never awaited"),
        Loss::FunctionUnawaited => {
            format!("the promise of the async function that called {call} was never awaited")
        }
        Loss::FunctionUnfinished => {
            format!("the run ended before the async function that called {call} was done; await it")
        }
    }
}
