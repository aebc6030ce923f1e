//! The names of a program, for the parameters that the compiler adds.
//!
//! In: the symbols of a program. Out: whether something of a name is declared in a place, and names that the program does
//! not have. Both are read when they are first needed.

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    ops::Range,
};

use oxc_ast::ast::Ident;
use oxc_semantic::Scoping;
use rustc_hash::FxHasher;

/// The names of a program.
#[derive(Default)]
pub(in super::super) struct Names {
    /// For each declaration its name's hash and its place, in order.
    declared: Option<Vec<(u64, u32)>>,
    /// The names that could be mistaken for generated ones.
    taken: Option<HashSet<String>>,
    generated: usize,
}

const GENERATED: &str = "ns_";

impl Names {
    /// Whether something of that name is declared in a place. It may say so without reason.
    pub(in super::super) fn declares(
        &mut self,
        scoping: &Scoping,
        name: &str,
        place: Range<u32>,
    ) -> bool {
        let declared = self.declared.get_or_insert_with(|| {
            let mut all = Vec::with_capacity(scoping.symbols_len());
            for symbol in scoping.symbol_ids() {
                if scoping.symbol_flags(symbol).is_enum_member() {
                    continue;
                }
                let hash = hash(scoping.symbol_name(symbol));
                all.push((hash, scoping.symbol_span(symbol).start));
                let others = scoping.symbol_redeclarations(symbol).iter();
                all.extend(others.map(|other| (hash, other.span.start)));
            }
            all.sort_unstable();
            all
        });
        let hash = hash(name);
        let next = declared.partition_point(|at| *at < (hash, place.start));
        declared.get(next).is_some_and(|(found, at)| *found == hash && *at < place.end)
    }

    /// A name that the program does not have.
    pub(in super::super) fn unused(&mut self, scoping: &Scoping) -> String {
        let taken = self.taken.get_or_insert_with(|| {
            let unresolved = scoping.root_unresolved_references().keys().map(Ident::as_str);
            let names = scoping.symbol_names().chain(unresolved);
            names.filter(|name| name.starts_with(GENERATED)).map(str::to_owned).collect()
        });
        loop {
            self.generated += 1;
            let name = format!("{GENERATED}{}", self.generated);
            if !taken.contains(&name) {
                return name;
            }
        }
    }
}

/// A hash that tells most names apart.
pub(in super::super) fn hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    name.hash(&mut hasher);
    hasher.finish()
}
