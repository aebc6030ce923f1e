//! The options of a runtime: one declaration of each, from which its field, its name, its check and its default follow.
//!
//! In: options as a binding read them from its caller, or as a program in Rust wrote them. Out: counts with their
//! defaults, or the [`Error`] that the caller deserves. `runtime/options.rs` makes settings of them.

use std::path::PathBuf;

use super::options::{
    OptionDeclaration, OptionKind, OptionSet, Spelling, count, read_count, unknown_option,
    wrong_type,
};
use crate::error::Error;

/// Where the isolates of a runtime live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// On threads of this process.
    #[default]
    Thread,
    /// In processes of their own, one for each run unless the runtime says otherwise. On Linux, macOS and Windows.
    Process,
}

/// The value of an option, from a binding that reads options by their declarations.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// For [`OptionKind::Count`]: any number; [`RuntimeOptions::set`] refuses those that are no count.
    Number(f64),
    /// For [`OptionKind::Choice`]: any text.
    Text(String),
    /// For [`OptionKind::Path`].
    Path(PathBuf),
}

/// Declares [`RuntimeOptions`]. Each count has a name, the type that it has in [`RuntimeCounts`], the least that is
/// valid, and a default.
macro_rules! runtime_options {
    ($($(#[$docs:meta])+ $name:ident: $type:ty, at least $least:literal, default $default:expr;)+) => {
        /// The options of a [`Runtime`](crate::Runtime), as a caller wrote them; `None` takes the default.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct RuntimeOptions {
            /// Where isolates live.
            pub isolation: Isolation,
            $($(#[$docs])+ pub $name: Option<u64>,)+
            /// Under [`Isolation::Process`]: the executable `isolane-worker`. By default the file that the environment
            /// variable `ISOLANE_WORKER` names, or else the executable in `worker_folder`.
            pub worker: Option<PathBuf>,
            /// Where a binding keeps its executable; by default the folder of the running program. For bindings, not
            /// for their callers.
            pub worker_folder: Option<PathBuf>,
            /// How to spell options in errors.
            pub spelling: Spelling,
        }

        impl RuntimeOptions {
            pub(super) const DECLARATIONS: &[OptionDeclaration] = &[
                OptionDeclaration { name: "isolation", kind: OptionKind::Choice(ISOLATIONS) },
                $(OptionDeclaration {
                    name: stringify!($name),
                    kind: OptionKind::Count { least: $least },
                },)+
                OptionDeclaration { name: "worker", kind: OptionKind::Path },
            ];

            /// Sets the option that is declared with that name, for a binding that goes through the declarations.
            ///
            /// # Errors
            /// For a choice that is none, for a number that is no whole one or out of range, and for an option that is
            /// not declared with that kind.
            pub fn set(&mut self, name: &str, value: OptionValue) -> Result<(), Error> {
                match (name, value) {
                    $((stringify!($name), OptionValue::Number(number)) => {
                        let count = read_count(stringify!($name), number, $least, self.spelling)?;
                        self.$name = Some(count);
                    })+
                    ("isolation", OptionValue::Text(text)) => {
                        self.isolation = isolation(&text)?;
                    }
                    ("worker", OptionValue::Path(path)) => self.worker = Some(path),
                    _ => return Err(unknown_option(OptionSet::Runtime, name, self.spelling)),
                }
                Ok(())
            }

            /// Checks all counts.
            pub(crate) fn counts(&self) -> Result<RuntimeCounts, Error> {
                let default = RuntimeCounts::default();
                Ok(RuntimeCounts {
                    $($name: Counted::given_or(
                        count(stringify!($name), self.$name, $least, self.spelling)?,
                        default.$name,
                    ),)+
                })
            }
        }

        /// The counts among the options, checked.
        #[derive(Clone, Debug)]
        pub(crate) struct RuntimeCounts {
            $(pub(crate) $name: $type,)+
        }

        impl Default for RuntimeCounts {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }
    };
}

runtime_options! {
    /// CPU time of one run, in milliseconds; 300,000 by default.
    safety_cap_ms: usize, at least 1, default 300_000;
    /// Isolates that compute at once; 4 per core, at least 8, by default.
    max_concurrent_runs: usize, at least 1, default concurrency();
    /// Runs that may wait for their turn; beyond it a new run is refused. No bound by default.
    max_queued_runs: Option<usize>, at least 0, default None;
    /// Threads that may be lost to builtins that do not return when their run has ended. At that number each new run is
    /// terminated by a safety cap until one returns, and at twice that number so is each run that resumes. 32 by
    /// default.
    max_stuck_threads: usize, at least 1, default 32;
    /// Isolates that are kept pristine ahead of need; by default as many as may compute at once, and at
    /// most 4 per core, or 8.
    ready_isolates: Option<usize>, at least 0, default None;
    /// Bytes of compiled modules that are kept; 32 MiB by default. Processes keep none.
    compile_cache_bytes: usize, at least 0, default 32 << 20;
    /// Runs that a process serves, one after another, before it ends; 1 by default: no process serves two runs.
    runs_per_worker: usize, at least 1, default 1;
    /// For how long processes are kept ready, in milliseconds, while there are no runs; 60,000 by default.
    worker_idle_ms: usize, at least 0, default 60_000;
}

/// 4 per core, at least 8.
pub(crate) fn concurrency() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * cores).max(8)
}

const ISOLATIONS: &[&str] = &["thread", "process"];

fn isolation(text: &str) -> Result<Isolation, Error> {
    match text {
        "thread" => Ok(Isolation::Thread),
        "process" => Ok(Isolation::Process),
        _ => {
            let expected = OptionKind::Choice(ISOLATIONS).choices();
            Err(wrong_type("isolation", &expected, &format!("'{text}'")))
        }
    }
}

/// A count with a default, or one that may be absent.
trait Counted {
    fn given_or(given: Option<usize>, default: Self) -> Self;
}

impl Counted for usize {
    fn given_or(given: Option<usize>, default: Self) -> Self {
        given.unwrap_or(default)
    }
}

impl Counted for Option<usize> {
    fn given_or(given: Option<usize>, default: Self) -> Self {
        given.or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each kind that is valid for any option of that kind.
    fn valid(kind: OptionKind) -> Option<OptionValue> {
        Some(match kind {
            OptionKind::Count { least } => OptionValue::Number(f64::from(least)),
            OptionKind::Choice(choices) => OptionValue::Text((*choices.last()?).to_owned()),
            OptionKind::Path => OptionValue::Path("worker".into()),
            OptionKind::Text | OptionKind::Other => return None,
        })
    }

    #[test]
    fn every_option_that_is_declared_can_be_set() {
        for option in OptionSet::Runtime.declarations() {
            let mut options = RuntimeOptions::default();
            let value = valid(option.kind).expect("a kind that a runtime has");
            options.set(option.name, value).expect("valid");
            assert_ne!(options, RuntimeOptions::default(), "{}", option.name);
            options.counts().expect("valid counts");
        }
    }

    #[test]
    fn a_number_that_is_no_count_is_refused_by_its_name() {
        for option in OptionSet::Runtime.declarations() {
            let OptionKind::Count { least } = option.kind else { continue };
            let mut options =
                RuntimeOptions { spelling: Spelling::Camel, ..RuntimeOptions::default() };
            let name = option.spelled(Spelling::Camel);
            for number in [f64::from(least) - 1.0, f64::from(least) + 0.5, 1e9 + 1.0, f64::NAN] {
                let refused = options.set(option.name, OptionValue::Number(number));
                let message = format!(
                    "{name} must be a whole number from {least} to 1000000000, got {number}"
                );
                assert_eq!(refused.expect_err("no count").message(), message);
            }
            assert_eq!(options.counts().map(drop), Ok(()), "nothing is set");
        }
    }

    #[test]
    fn a_field_out_of_range_is_refused_by_its_name() {
        let refused = |options: RuntimeOptions| options.counts().expect_err("out of range");
        let none = RuntimeOptions { safety_cap_ms: Some(0), ..RuntimeOptions::default() };
        assert_eq!(
            refused(none).message(),
            "safety_cap_ms must be a whole number from 1 to 1000000000, got 0"
        );
        let most = RuntimeOptions { max_queued_runs: Some(u64::MAX), ..RuntimeOptions::default() };
        assert_eq!(
            refused(most).message(),
            "max_queued_runs must be a whole number from 0 to 1000000000, got 18446744073709551615"
        );
    }

    #[test]
    fn what_is_not_declared_cannot_be_set() {
        let mut options = RuntimeOptions::default();
        for (name, value) in [
            ("workers", OptionValue::Number(1.0)),
            ("worker", OptionValue::Number(1.0)),
            ("worker_folder", OptionValue::Path("x".into())),
            ("isolation", OptionValue::Text("vm".to_owned())),
        ] {
            options.set(name, value).expect_err(name);
        }
        assert_eq!(options, RuntimeOptions::default());
    }
}
