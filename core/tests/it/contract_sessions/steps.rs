//! Acts of the host between and during the cells of a case.
//!
//! In: a step, as the README of the table lists them. Out: nothing, or what differs.

use std::{rc::Rc, time::Duration};

use isolane::{Error, Stats};
use serde_json::{Map, Value as Json};

use super::{
    compare::{compare, compare_some},
    host::{Answer, Line, Origin, SessionNumber},
    js::Js,
    outcome,
    play::Names,
    requests,
    stage::Stage,
    tagged::Values,
};

/// A check that waits for the end of the case.
pub(crate) enum Later {
    Names { question: u32, expected: Json },
    Refused { question: u32, expected: Json },
    Kept { promise: u32, step: Json },
}

/// Carries out a step.
pub(crate) fn take(stage: &mut Stage, names: &mut Names, step: &Json) -> Result<(), String> {
    let session = names.session(stage, step["in"].as_str().unwrap_or("main"))?;
    let (what, said) = step.as_object().and_then(|step| step.iter().next()).expect("a step");
    match what.as_str() {
        "update" => update(stage, session, said, step.get("misuse")),
        "names" => {
            let (question, done) = stage.question();
            stage.sessions[session].handle.names(move |names| done(Answer::Names(names)));
            let check = match step.get("refused") {
                Some(expected) => Later::Refused { question, expected: expected.clone() },
                None => Later::Names { question, expected: said.clone() },
            };
            later(stage, names, step, check)
        }
        "fork" => fork(stage, names, session, step),
        "reset" => {
            let (question, done) = stage.question();
            stage.sessions[session].handle.reset(move |reset| done(Answer::Done(reset)));
            finished(stage, question, "the reset")
        }
        "close" => {
            let (question, done) = stage.question();
            stage.sessions[session].handle.close(move || done(Answer::Done(Ok(()))));
            finished(stage, question, "the close")
        }
        "closeRuntime" => {
            let (question, done) = stage.question();
            stage.runtime.close(move || done(Answer::Done(Ok(()))));
            finished(stage, question, "the close of the runtime")
        }
        "asked" => {
            let key = said.as_str().expect("a key");
            let arrived = |stage: &Stage| stage.asked.get(key).is_some_and(|asked| asked.arrived);
            stage.wait(&format!("the call of ask({key})"), |stage| arrived(stage).then_some(()))
        }
        "answer" => {
            let promise = stage.asked_promise(said.as_str().expect("a key"));
            let outcome = match step.get("error").and_then(Json::as_str) {
                Some(message) => Err(error(message)),
                None => Ok(Values::new(&mut stage.tables).value(&step["with"])),
            };
            stage.settle(promise, outcome);
            Ok(())
        }
        "callKept" => call_kept(stage, names, said, step),
        "stats" => {
            let said = said.as_object().expect("counts").clone();
            let why = format!("stats of {said:?}");
            stage.wait(&why, |stage| stats(&said, &stage.runtime.stats()).ok())
        }
        "turns" => {
            let until = stage.tables.turn + said.as_u64().expect("a count");
            stage.wait("turns", |stage| (stage.tables.turn >= until).then_some(()))
        }
        _ => cell_step(stage, names, step, what, said),
    }
}

/// Carries out a check that was left for the end.
pub(crate) fn finish(stage: &mut Stage, check: Later) -> Result<(), String> {
    match check {
        Later::Names { question, expected } => match stage.answer_to(question, "the names")? {
            Answer::Names(Ok(names)) => outcome::names(&expected, &names),
            Answer::Names(Err(error)) => Err(format!("no names: {error}")),
            _ => unreachable!("the question was for names"),
        },
        Later::Refused { question, expected } => match stage.answer_to(question, "the refusal")? {
            Answer::Names(Err(error)) | Answer::Forked(Err(error)) => {
                outcome::misuse(&expected, &error)
            }
            _ => Err(format!("expected a rejection with {expected}")),
        },
        Later::Kept { promise, step } => {
            let outcome = stage.wait("the outcome of the function", |stage| {
                stage.outcomes.get_mut(&promise).and_then(Option::take)
            })?;
            match (outcome, step.get("rejects")) {
                (Ok(value), None) => compare(&step["gives"], &value, "the result of the function"),
                (Err(thrown), Some(expected)) => outcome::thrown(expected, &thrown),
                (Ok(value), Some(expected)) => {
                    Err(format!("expected a rejection with {expected}, got {value:?}"))
                }
                (Err(thrown), None) => Err(format!("the function rejected with {thrown:?}")),
            }
        }
    }
}

/// The number of a copy when it is there.
pub(crate) fn forked(
    stage: &mut Stage,
    parent: SessionNumber,
    question: u32,
) -> Result<Result<SessionNumber, Error>, String> {
    let Answer::Forked(copy) = stage.answer_to(question, "the copy")? else {
        unreachable!("the question was for a copy")
    };
    let sink = stage.sink(parent);
    Ok(copy.map(|handle| {
        stage.add_session(handle, sink);
        stage.sessions.len() - 1
    }))
}

fn later(stage: &mut Stage, names: &mut Names, step: &Json, check: Later) -> Result<(), String> {
    if step["later"] == true {
        names.later.push(check);
        return Ok(());
    }
    finish(stage, check)
}

fn finished(stage: &mut Stage, question: u32, what: &str) -> Result<(), String> {
    match stage.answer_to(question, what)? {
        Answer::Done(done) => done.map_err(|error| format!("{what}: {error}")),
        _ => unreachable!("the question was for an end"),
    }
}

fn update(
    stage: &mut Stage,
    session: SessionNumber,
    said: &Json,
    misuse: Option<&Json>,
) -> Result<(), String> {
    let request = requests::update(said, &mut stage.tables);
    let updated = request.and_then(|request| stage.sessions[session].handle.update(request));
    match (updated, misuse) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(expected)) => Err(format!("expected misuse {expected}, but it was taken")),
        (Err(error), Some(expected)) => outcome::misuse(expected, &error),
        (Err(error), None) => Err(format!("the update was refused: {error}")),
    }
}

fn fork(
    stage: &mut Stage,
    names: &mut Names,
    session: SessionNumber,
    step: &Json,
) -> Result<(), String> {
    // A copy under way has the number that is free when it is there: forks of a case are made one after another.
    let origin = Origin { session: stage.sessions.len(), cell: None };
    let line = Line::host(&stage.sender, origin);
    let (question, done) = stage.question();
    stage.sessions[session].handle.fork(line, move |copy| done(Answer::Forked(copy)));
    if let Some(expected) = step.get("refused") {
        return later(stage, names, step, Later::Refused { question, expected: expected.clone() });
    }
    let name = step["fork"].as_str().expect("a name");
    names.forks.insert(name.to_owned(), (session, question));
    if step["later"] != true {
        names.session(stage, name)?;
    }
    Ok(())
}

fn call_kept(stage: &mut Stage, names: &mut Names, said: &Json, step: &Json) -> Result<(), String> {
    let kept = stage.tables.kept.clone().ok_or("no function is kept")?;
    let args = said.as_array().expect("arguments");
    let args = args.iter().map(|arg| Values::new(&mut stage.tables).value(arg)).collect();
    let promise = stage.tables.call_back(&Rc::clone(&kept), args, None).host_promise();
    let promise = promise.expect("a promise");
    stage.outcomes.insert(promise, None);
    later(stage, names, step, Later::Kept { promise, step: step.clone() })
}

/// A step that concerns a cell.
fn cell_step(
    stage: &mut Stage,
    names: &Names,
    step: &Json,
    what: &str,
    said: &Json,
) -> Result<(), String> {
    let cell = names.cell(step["cell"].as_str().unwrap_or_default())?;
    match what {
        "terminate" => {
            let reason = Values::new(&mut stage.tables).value(said).as_text();
            stage.cells[cell].handle.terminate(reason.as_deref());
            Ok(())
        }
        "terminateLate" => {
            let settled = |stats: Stats| {
                stats.success + stats.error + stats.memory + stats.terminated + stats.link_error
            };
            while settled(stage.runtime.stats()) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let reason = Values::new(&mut stage.tables).value(said).as_text();
            stage.cells[cell].handle.terminate(reason.as_deref());
            Ok(())
        }
        "reports" => {
            let count = usize::try_from(said.as_u64().expect("a count")).expect("a small count");
            stage.wait(&format!("{count} reports"), |stage| {
                let cell = &stage.cells[cell];
                let settled = cell.result.as_ref().map(|result| result.reports.len());
                let shown = settled.unwrap_or_else(|| cell.handle.reports_since(0).len());
                (shown >= count).then_some(())
            })
        }
        "expectReports" => {
            let cell = &stage.cells[cell];
            let shown = cell.handle.reports_since(0);
            let shown = shown.iter().map(|report| stage.read(cell.session, report));
            let shown = shown.collect::<Result<Vec<_>, _>>()?;
            compare(said, &Js::list(shown), "cell.reports")
        }
        "expectRunning" => {
            let running = stage.cells[cell].handle.running();
            if said.as_bool() == Some(running) {
                Ok(())
            } else {
                Err(format!("running: {running}"))
            }
        }
        _ => Err(format!("unknown step {step}")),
    }
}

fn stats(expected: &Map<String, Json>, got: &Stats) -> Result<(), String> {
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let count = |count: usize| Some(Js::Number(count as f64));
    let got = [
        ("sessions", count(got.sessions)),
        ("computing", count(got.computing)),
        ("parked", count(got.parked)),
        ("queued", count(got.queued)),
    ];
    compare_some(expected, &got, "stats")
}

fn error(message: &str) -> Js {
    let message: Vec<u16> = message.encode_utf16().collect();
    Js::error(isolane::value::ErrorClass::Error, &message, Js::Undefined)
}
