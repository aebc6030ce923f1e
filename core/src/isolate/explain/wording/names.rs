//! The words for names that failed.

use super::{
    super::{remedies, values::Values},
    Verdict, list, with,
};
use crate::{
    data::nearest::misspelled,
    isolate::engine::realm::GLOBALS,
    modules::program::explain::{Declared, Failure},
};

/// A constant was assigned.
pub(super) fn constant(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    imported: bool,
) -> Verdict {
    let Failure::Assign(name) = failure else { return Verdict::Possible(None) };
    let of_the_host = values.globals().contains(name) && !values.sees(name);
    let detail = if of_the_host {
        "it is a global of this sandbox"
    } else if imported {
        "it is imported"
    } else {
        "it is a constant"
    };
    Verdict::Proven(with(message.to_owned(), Some(detail.to_owned())))
}

/// A name was used that is not declared, or not yet.
pub(super) fn absent(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    assigned: bool,
    declared: Option<Declared>,
) -> Verdict {
    let Failure::Name(name) = failure else { return Verdict::Possible(None) };
    if message.ends_with("initialized") {
        return Verdict::Proven(match declared {
            Some(Declared::Line(line)) => {
                with(message.to_owned(), Some(format!("it is declared on line {line}")))
            }
            _ if name == "this" => format!("{message}: call super() first"),
            _ => return Verdict::Possible(None),
        });
    }
    let globals = values.globals();
    Verdict::Proven(match declared {
        Some(Declared::Type) => format!("{message} (it is a type)"),
        Some(Declared::Alone) => format!("{message} (it is declared without a value)"),
        Some(Declared::Line(line)) => {
            format!("{message} here (it is declared on line {line}, in another block or function)")
        }
        None if name == "require" => match values.importable() {
            none if none.is_empty() => format!("{message}; there are no modules to import here"),
            known => format!("{message}; use import, which knows: {}", list(&known)),
        },
        None => match (
            remedies::absent_name(name),
            misspelled(name, known(values, &globals).iter().map(String::as_str)),
        ) {
            (Some(clause), _) if clause.starts_with("this sandbox") && !globals.is_empty() => {
                format!("{message}; {clause}, its globals are: {}", list(&globals))
            }
            (Some(clause), _) => format!("{message}; {clause}"),
            (None, Some(meant)) => format!("{message}; did you mean '{meant}'?"),
            (None, None) if assigned => format!("{message}; declare it: let {name}"),
            (None, None) => return Verdict::Possible(None),
        },
    })
}

/// The names that code may use there.
fn known(values: &Values<'_>, globals: &[String]) -> Vec<String> {
    let ours = ["console"].iter().chain(GLOBALS).map(|name| (*name).to_owned());
    values.visible().into_iter().chain(globals.iter().cloned()).chain(ours).collect()
}
