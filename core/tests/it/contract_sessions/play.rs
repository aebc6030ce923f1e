//! One case, played from its options to its last act.
//!
//! In: a [`Case`]. Out: nothing, or what differs. The README of the table has the acts.

use std::{collections::HashMap, sync::LazyLock};

use isolane::{Error, Runtime};
use serde_json::{Value as Json, json};

use super::{
    host::{Line, SessionNumber},
    outcome,
    parse::{Act, Case, Cell, Work},
    requests,
    stage::Stage,
    steps::{self, Later},
};
use crate::{contract, place};

/// The runtime of cases that have none of their own.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(contract::runtime);

/// The names of a case, for numbers of the stage.
#[derive(Default)]
pub(crate) struct Names {
    sessions: HashMap<String, SessionNumber>,
    cells: HashMap<String, usize>,
    /// Copies that are under way.
    pub(crate) forks: HashMap<String, (SessionNumber, u32)>,
    pub(crate) later: Vec<Later>,
}

/// Plays all acts of a case in their order.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    let runtime = match &case.runtime {
        Some(options) => own_runtime(options)?,
        None => RUNTIME.clone(),
    };
    let mut stage = Stage::new(runtime);
    let opened = open(case, &mut stage);
    if let Some(expected) = &case.misuse {
        return match opened {
            Ok(()) => Err(format!("expected misuse {expected}, but the session is open")),
            Err(error) => outcome::misuse(expected, &error),
        };
    }
    opened.map_err(|error| format!("the session did not open: {error}"))?;
    let mut names = Names::default();
    names.sessions.insert("main".to_owned(), 0);
    let played = case.acts.iter().try_for_each(|act| play(&mut stage, &mut names, act));
    let played = played.and_then(|()| {
        let later = std::mem::take(&mut names.later);
        later.into_iter().try_for_each(|check| steps::finish(&mut stage, check))
    });
    for session in &stage.sessions {
        session.handle.close(|| {});
    }
    if case.runtime.is_some() {
        stage.runtime.close(|| {});
    }
    played
}

/// Whether a case cannot hold: the portable code neither goes back in a session nor copies one in a process.
pub(crate) fn is_skipped(case: &Case) -> bool {
    let copies = |step: &Json| step.get("fork").is_some();
    let forks = |act: &Act| matches!(act, Act::Steps(steps) if steps.iter().any(copies));
    let goes_back = |said: &Json| said.to_string().contains("olledBack");
    let is_undone = |act: &Act| match act {
        Act::Steps(steps) => steps.iter().any(goes_back),
        Act::Cell(cell) => cell.result.as_ref().is_some_and(goes_back),
        Act::Result(_, said) => goes_back(said),
    };
    let undoes = case.heading.contains("undone") || case.acts.iter().any(is_undone);
    let copied = place::is_process() && case.acts.iter().any(forks);
    cfg!(isolane_portable) && (copied || undoes)
}

fn own_runtime(options: &Json) -> Result<Runtime, String> {
    let mut own = place::options();
    for (key, value) in options.as_object().ok_or("the runtime's options are no object")? {
        match key.as_str() {
            "safetyCapMs" => own.safety_cap_ms = value.as_u64(),
            other => return Err(format!("the runner does not know the option {other}")),
        }
    }
    Runtime::new(&own).map_err(|error| error.to_string())
}

fn open(case: &Case, stage: &mut Stage) -> Result<(), Error> {
    let (request, sink) = requests::session(case, &mut stage.tables)?;
    let line = Line::host(&stage.sender, stage.origin(0, false));
    let session = stage.runtime.open_session(request, line)?;
    stage.add_session(session, sink);
    Ok(())
}

fn play(stage: &mut Stage, names: &mut Names, act: &Act) -> Result<(), String> {
    match act {
        Act::Steps(list) => list.iter().try_for_each(|step| steps::take(stage, names, step)),
        Act::Result(name, expected) => {
            let cell = names.cell(name)?;
            expect(stage, cell, expected)
        }
        Act::Cell(cell) => {
            let session = names.session(stage, cell.session())?;
            match (start(stage, session, cell), &cell.misuse) {
                (Ok(_), Some(expected)) => {
                    Err(format!("expected misuse {expected}, but it started"))
                }
                (Err(error), Some(expected)) => outcome::misuse(expected, &error),
                (Err(error), None) => Err(format!("the cell did not start: {error}")),
                (Ok(number), None) => match cell.name() {
                    Some(name) => {
                        names.cells.insert(name.to_owned(), number);
                        Ok(())
                    }
                    None => expect(stage, number, cell.result.as_ref().unwrap_or(&json!({}))),
                },
            }
        }
    }
}

/// Starts a cell and gives its number.
fn start(stage: &mut Stage, session: SessionNumber, cell: &Cell) -> Result<usize, Error> {
    let line = Line::host(&stage.sender, stage.origin(session, true));
    let handle = stage.sessions[session].handle.clone();
    let (running, sink) = match &cell.work {
        Work::Source { text, typescript } => {
            let (request, sink) = requests::cell(cell, text, *typescript, &mut stage.tables)?;
            (handle.run(request, line)?, sink)
        }
        Work::Call { name, args } => {
            let (request, sink) = requests::call(cell, name, args, &mut stage.tables)?;
            (handle.call(request, line)?, sink)
        }
    };
    Ok(stage.add_cell(session, running, sink))
}

/// Waits for a cell and compares its result.
fn expect(stage: &mut Stage, number: usize, expected: &Json) -> Result<(), String> {
    let what = format!("the cell {}, of which {expected} is expected", number + 1);
    stage.wait(&what, |stage| stage.cells[number].result.is_some().then_some(()))?;
    let cell = &stage.cells[number];
    if cell.handle.running() {
        return Err("the handle says that the cell is running".to_owned());
    }
    let got = cell.result.as_ref().expect("it has settled");
    let compared = outcome::result(stage, cell.session, expected, got);
    compared.map_err(|why| format!("cell {}: {why}", number + 1))
}

impl Names {
    pub(crate) fn cell(&self, name: &str) -> Result<usize, String> {
        self.cells.get(name).copied().ok_or_else(|| format!("no cell has the name {name}"))
    }

    /// The session of that name, when it is there.
    pub(crate) fn session(
        &mut self,
        stage: &mut Stage,
        name: &str,
    ) -> Result<SessionNumber, String> {
        if let Some((parent, question)) = self.forks.remove(name) {
            let copy = steps::forked(stage, parent, question)?;
            self.sessions.insert(name.to_owned(), copy.map_err(|error| error.to_string())?);
        }
        self.sessions.get(name).copied().ok_or_else(|| format!("no session has the name {name}"))
    }
}
