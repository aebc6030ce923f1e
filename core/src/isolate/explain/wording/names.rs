//! The words for names that failed.

use super::{
    super::{remedies, values::Values},
    Verdict, list, quoted, with,
};
use crate::{
    data::nearest::misspelled,
    isolate::realm::GLOBALS,
    modules::program::explain::{Declared, Failure},
};

/// A constant was assigned.
pub(super) fn constant(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    declared: bool,
    imported: bool,
) -> Verdict {
    let Failure::Assign(name) = failure else { return Verdict::Possible(None) };
    let detail = if !declared && values.globals().contains(name) {
        "it is a global of this sandbox"
    } else if imported {
        "it is imported"
    } else {
        "it is a constant"
    };
    Verdict::Proven(with(message.to_owned(), Some(detail.to_owned())))
}

/// A name was used before its declaration.
pub(super) fn uninitialized(name: &str, message: &str, declared: Option<&Declared>) -> Verdict {
    match declared {
        Some(Declared::Import(specifier)) => {
            let fact =
                format!("{} has not run yet: the modules import each other", quoted(specifier));
            Verdict::Proven(with(message.to_owned(), Some(fact)))
        }
        Some(Declared::Line(line)) => {
            let fact = format!("it is declared on line {line}");
            Verdict::Proven(with(message.to_owned(), Some(fact)))
        }
        _ if name == "this" => Verdict::Proven(format!("{message}: call super() first")),
        _ => Verdict::Possible(None),
    }
}

/// A name was used that is not declared. `meant` is the declared name that it nearly is.
pub(super) fn absent(
    values: &Values<'_>,
    name: &str,
    message: &str,
    assigned: bool,
    declared: Option<&Declared>,
    meant: Option<&str>,
) -> Verdict {
    let globals = values.globals();
    Verdict::Proven(match declared {
        Some(Declared::Type) => format!("{message} (it is a type)"),
        Some(Declared::Alone) => format!("{message} (it is declared without a value)"),
        Some(Declared::Entity) => {
            let meant = remedies::entity(name).unwrap_or_default();
            format!("{message}; '&{name};' is HTML: write {meant}")
        }
        Some(Declared::Line(line)) => {
            format!("{message} here (it is declared on line {line}, in another block or function)")
        }
        Some(Declared::Import(_)) => return Verdict::Possible(None),
        None if name == "require" => match values.importable() {
            none if none.is_empty() => format!("{message}; there are no modules to import here"),
            known => format!("{message}; use import, which knows: {}", list(&known)),
        },
        None => {
            match (remedies::absent_name(name, &globals), nearest(values, name, meant, &globals)) {
                (Some(clause), _) if clause.starts_with("this sandbox") && !globals.is_empty() => {
                    format!("{message}; {clause}, its globals are: {}", list(&globals))
                }
                (Some(clause), _) => format!("{message}; {clause}"),
                (None, Some(meant)) => format!("{message}; did you mean '{meant}'?"),
                (None, None) if assigned => format!("{message}; declare it: let {name}"),
                (None, None) if !globals.is_empty() => {
                    format!("{message}; the globals of this sandbox are: {}", list(&globals))
                }
                (None, None) => return Verdict::Possible(None),
            }
        }
    })
}

/// The name that a name nearly is: a declared one, a global of the host, or one of the language.
fn nearest(
    values: &Values<'_>,
    name: &str,
    meant: Option<&str>,
    globals: &[String],
) -> Option<String> {
    let declared = values.declared();
    let given = declared.iter().chain(globals).map(String::as_str);
    let known = meant.into_iter().chain(given).chain(["console"]).chain(GLOBALS.iter().copied());
    misspelled(name, known).map(str::to_owned)
}
