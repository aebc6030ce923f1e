//! Names for what a cell's code needs beside its own.
//!
//! In: the text of a cell, and its symbols. Out: a beginning of names that no name in it has. The time is linear.

use std::collections::HashSet;

use oxc_ast::ast::Ident;
use oxc_semantic::Scoping;

const BEGINNING: &str = "$i";

/// The names that are added to one cell.
pub(super) struct Hidden {
    beginning: String,
}

impl Hidden {
    pub(super) fn of(text: &str, scoping: &Scoping) -> Self {
        let mut taken = HashSet::new();
        let mut occurs = false;
        let mut note = |text: &str| {
            for (at, _) in text.match_indices(BEGINNING) {
                occurs = true;
                let rest = text.get(at + BEGINNING.len()..).unwrap_or_default();
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                let number = rest.get(..digits).unwrap_or_default();
                taken.extend(number.parse::<usize>());
            }
        };
        note(text);
        // An escape can spell any character of a name.
        if text.contains("\\u") {
            scoping.symbol_names().for_each(&mut note);
            scoping.root_unresolved_references().keys().map(Ident::as_str).for_each(&mut note);
        }
        let free = (0..=taken.len()).find(|number| !taken.contains(number));
        let beginning = match free {
            Some(number) if occurs => format!("{BEGINNING}{number}_"),
            _ => BEGINNING.to_owned(),
        };
        Self { beginning }
    }

    /// The parameter whose properties are the declared names, with a dot.
    pub(super) fn names(&self) -> String {
        format!("{}p.", self.beginning)
    }

    pub(super) fn parameter(&self) -> String {
        format!("{}p", self.beginning)
    }

    /// The value of the statements so far.
    pub(super) fn completion(&self) -> String {
        format!("{}v", self.beginning)
    }

    /// That value, while a `finally` runs.
    pub(super) fn saved(&self) -> String {
        format!("{}s", self.beginning)
    }

    /// The value of `export default`.
    pub(super) fn default(&self) -> String {
        format!("{}d", self.beginning)
    }

    /// The beginning of the name of a function.
    pub(super) fn function(&self) -> String {
        format!("{}_", self.beginning)
    }

    /// The resource of a `using`.
    pub(super) fn resource(&self, number: usize) -> String {
        format!("{}u{number}", self.beginning)
    }
}
