//! Hints for an option that does not exist.
//!
//! In: the name that a caller wrote, and those that exist. Out: the end of the error: the name that the caller probably
//! meant, the remedy for a wish that has another way, the thing that has an option of that name, or all names.

use super::{
    nearest::nearest,
    options::{OptionSet, Spelling, spell},
};

/// The end of an error for an option that the set does not have.
pub(crate) fn of_set(set: OptionSet, key: &str, spelling: Spelling) -> String {
    let names: Vec<String> =
        set.declarations().iter().map(|option| option.spelled(spelling)).collect();
    let place = if set == OptionSet::Execute { "execute." } else { "" };
    remedy_of(set, key, spelling).unwrap_or_else(|| of(place, key, &names))
}

/// The thing that has an option of exactly that name, where the set has none.
fn owner(set: OptionSet, key: &str, spelling: Spelling) -> Option<String> {
    let of_runtime = (OptionSet::Runtime, "an option of a runtime");
    let owners: &[(OptionSet, &str)] = match set {
        OptionSet::Run => &[of_runtime, (OptionSet::Session, "an option of a session")],
        OptionSet::Session => &[of_runtime, (OptionSet::Cell, "an option of its cells")],
        OptionSet::Cell | OptionSet::Call => {
            &[(OptionSet::Session, "an option of the session"), of_runtime]
        }
        OptionSet::Runtime => &[
            (OptionSet::Run, "an option of each run"),
            (OptionSet::Session, "an option of a session"),
        ],
        OptionSet::Execute | OptionSet::Update => &[],
    };
    let has =
        |set: OptionSet| set.declarations().iter().any(|option| option.spelled(spelling) == key);
    let (_, owner) = owners.iter().find(|(set, _)| has(*set))?;
    Some(format!("'{key}' is {owner}"))
}

/// The remedy for a wish that the set has no option for, or the thing that has that option.
pub(crate) fn remedy_of(set: OptionSet, key: &str, spelling: Spelling) -> Option<String> {
    let remedy = wish(key).and_then(|wish| remedy(set, wish, spelling));
    remedy.or_else(|| owner(set, key, spelling))
}

/// The end of an error for a name that is none of these. `place` is their group with a dot, or empty.
pub(crate) fn of(place: &str, key: &str, names: &[String]) -> String {
    let with_unit = || names.iter().map(String::as_str).find(|name| is_with_unit(name, key));
    match with_unit().or_else(|| nearest(key, names.iter().map(String::as_str))) {
        Some(name) => format!("did you mean '{place}{name}'?"),
        None => format!("valid options are {}", names.join(", ")),
    }
}

/// Whether a name is the key with a unit behind it: `timeout_ms` is `timeout`.
fn is_with_unit(name: &str, key: &str) -> bool {
    let unit = name.strip_prefix(key).map(|rest| rest.trim_start_matches('_'));
    unit.is_some_and(|unit| unit.eq_ignore_ascii_case("ms") || unit.eq_ignore_ascii_case("bytes"))
}

/// A wish that callers have of runs, and that runs have no option for.
#[derive(Clone, Copy)]
enum Wish {
    TimeLimit,
    Signal,
}

/// The wish that an option of that name would be for.
fn wish(key: &str) -> Option<Wish> {
    let letters: String =
        key.chars().take(20).filter(|letter| *letter != '_').collect::<String>().to_lowercase();
    match letters.as_str() {
        "timeout" | "timeoutms" | "timeouts" | "timeoutseconds" | "timelimit" | "timelimitms"
        | "deadline" => Some(Wish::TimeLimit),
        "signal" | "abortsignal" => Some(Wish::Signal),
        _ => None,
    }
}

/// The way to that wish, where the set has no option for it.
fn remedy(set: OptionSet, wish: Wish, spelling: Spelling) -> Option<String> {
    let timeout = spell("timeout_ms", spelling);
    Some(match (set, wish, spelling) {
        (OptionSet::Run, Wish::TimeLimit, Spelling::Camel) => format!(
            "a run has no time limit of its own: call terminate() on its handle, or run a cell of a session, which \
             has '{timeout}'"
        ),
        (OptionSet::Run, Wish::TimeLimit, Spelling::Snake) => format!(
            "a run has no time limit of its own: await it with asyncio.wait_for(), or run a cell of a session, which \
             has '{timeout}'"
        ),
        (OptionSet::Run, Wish::Signal, Spelling::Camel) => {
            "call terminate() on the handle of the run when the \
             signal is aborted, or run a cell of a session, which has 'signal'"
                .to_owned()
        }
        (OptionSet::Run, Wish::Signal, Spelling::Snake) => {
            "call terminate() on the handle of the run, or cancel \
             the task that awaits it"
                .to_owned()
        }
        (OptionSet::Session | OptionSet::Update, Wish::TimeLimit, _) => {
            format!("each cell has a time limit of its own: give '{timeout}' to its run or call")
        }
        (OptionSet::Session | OptionSet::Update, Wish::Signal, Spelling::Camel) => {
            "each cell has a signal of its own: give 'signal' to its run or call".to_owned()
        }
        (OptionSet::Runtime, Wish::TimeLimit, _) => format!(
            "'{}' limits the CPU time of each run, and '{timeout}' of a session's cell its time",
            spell("safety_cap_ms", spelling)
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(set: OptionSet, key: &str) -> [String; 2] {
        [of_set(set, key, Spelling::Camel), of_set(set, key, Spelling::Snake)]
    }

    #[test]
    fn a_time_limit_of_a_run_has_a_remedy_in_each_spelling() {
        for key in ["timeout", "timeoutMs", "timeout_ms", "deadline"] {
            let [camel, snake] = hint(OptionSet::Run, key);
            assert!(camel.ends_with("run a cell of a session, which has 'timeoutMs'"), "{camel}");
            assert!(snake.ends_with("run a cell of a session, which has 'timeout_ms'"), "{snake}");
        }
    }

    #[test]
    fn a_session_and_its_update_name_the_option_of_a_cell() {
        for set in [OptionSet::Session, OptionSet::Update] {
            let said = "each cell has a time limit of its own: give 'timeoutMs' to its run or call";
            assert_eq!(hint(set, "timeoutMs")[0], said);
        }
    }

    #[test]
    fn a_set_that_has_the_option_names_it() {
        for set in [OptionSet::Cell, OptionSet::Call] {
            let hints = hint(set, "timeout");
            assert_eq!(hints, ["did you mean 'timeoutMs'?", "did you mean 'timeout_ms'?"]);
            let hints = hint(set, "abortSignal");
            assert!(hints.iter().all(|hint| !hint.contains("terminate")), "{hints:?}");
        }
    }

    #[test]
    fn an_option_of_another_thing_names_it() {
        let told = |set, key| hint(set, key)[1].clone();
        assert_eq!(
            told(OptionSet::Runtime, "memory_limit_bytes"),
            "'memory_limit_bytes' is an option of each run"
        );
        assert_eq!(told(OptionSet::Run, "isolation"), "'isolation' is an option of a runtime");
        assert_eq!(told(OptionSet::Run, "cells"), "'cells' is an option of a session");
        assert_eq!(told(OptionSet::Session, "filename"), "'filename' is an option of its cells");
        assert_eq!(told(OptionSet::Cell, "globals"), "'globals' is an option of the session");
        // Spelled as in another language it is compared.
        assert!(told(OptionSet::Cell, "memoryLimitBytes").starts_with("valid options are"));
    }

    #[test]
    fn other_names_are_compared() {
        assert_eq!(hint(OptionSet::Run, "memory_limit")[1], "did you mean 'memory_limit_bytes'?");
        let names = ["timers".to_owned(), "timeout_ms".to_owned()];
        assert_eq!(of("", "timeout", &names), "did you mean 'timeout_ms'?");
        assert_eq!(hint(OptionSet::Execute, "arg")[0], "did you mean 'execute.args'?");
    }
}
