//! Items of the confinement without which no program may run.
//!
//! In: their names, and the confinement that a program has got. Out: the first item that no layer keeps.

use isolane::Confinement;

use crate::{ExecutorError, ExecutorErrorKind};

/// The items that are required unless told otherwise: all that can be.
pub(super) const DEFAULT: [&str; 6] =
    ["privileges", "network", "file_system", "system_calls", "processes", "resources"];

/// Names of required items, each of which is known.
#[derive(Clone, Debug)]
pub(super) struct Required(Vec<String>);

impl Required {
    /// # Errors
    /// `bad_input`: there is no such item.
    pub(super) fn parse(names: &[String]) -> Result<Self, ExecutorError> {
        match names.iter().find(|name| !DEFAULT.contains(&name.as_str())) {
            Some(name) => {
                let message =
                    format!("required has no item {name:?}; it has {}", DEFAULT.join(", "));
                Err(ExecutorError::bad_input(message))
            }
            None => Ok(Self(names.to_vec())),
        }
    }

    /// # Errors
    /// `unsupported`: this machine cannot keep a program from something.
    pub(super) fn check(&self, had: Confinement) -> Result<(), ExecutorError> {
        let missing = DEFAULT.into_iter().find(|item| {
            let is_required = self.0.iter().any(|name| name == item);
            // The two that the others stand on.
            (is_required || ["file_system", "processes"].contains(item)) && !is_met(item, had)
        });
        missing.map_or(Ok(()), |item| {
            let act = act(item);
            let message = format!("this machine cannot keep a program {act}; see 'isolane doctor'");
            Err(ExecutorError::new(ExecutorErrorKind::Unsupported, message))
        })
    }
}

/// Whether any layer keeps the item.
fn is_met(item: &str, had: Confinement) -> bool {
    match item {
        // All files that it sees are mounted so that no set-user bit counts.
        "privileges" => had.privileges || had.file_system,
        // No socket can be made.
        "network" => had.network || had.system_calls,
        "file_system" => had.file_system,
        "system_calls" => had.system_calls,
        "processes" => had.processes,
        _ => had.resources,
    }
}

fn act(item: &str) -> &'static str {
    match item {
        "privileges" => "from gaining privileges",
        "network" => "from the network",
        "file_system" => "from the file system",
        "system_calls" => "from other system calls",
        "processes" => "from other processes",
        _ => "within its limits",
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn names(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn message(required: &[&str], change: impl FnOnce(&mut Confinement)) -> Option<String> {
        let mut had = Confinement::ALL;
        change(&mut had);
        let required = Required::parse(&names(required)).expect("known items");
        required.check(had).err().map(|error| error.message().to_owned())
    }

    #[test]
    fn an_item_is_met_if_any_layer_keeps_it() {
        assert_eq!(message(&DEFAULT, |_| ()), None);
        assert_eq!(message(&DEFAULT, |had| had.network = false), None);
        assert_eq!(message(&DEFAULT, |had| had.privileges = false), None);
        let told = message(&DEFAULT, |had| (had.network, had.system_calls) = (false, false));
        let expected = "this machine cannot keep a program from the network; see 'isolane doctor'";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn items_that_are_not_required_may_be_missing_but_two() {
        assert_eq!(message(&["network"], |had| had.system_calls = false), None);
        assert_eq!(message(&[], |had| had.resources = false), None);
        for (item, act) in
            [("file_system", "from the file system"), ("processes", "from other processes")]
        {
            let told = message(&[], |had| match item {
                "file_system" => had.file_system = false,
                _ => had.processes = false,
            });
            assert!(told.expect("it is refused").contains(act));
        }
    }

    #[test]
    fn the_first_item_in_the_order_of_the_list_is_named() {
        let all_missing = |had: &mut Confinement| *had = Confinement::default();
        let told = message(&["resources", "network"], all_missing).expect("it is refused");
        assert!(told.contains("from the network"), "{told}");
        let told = message(&DEFAULT, all_missing).expect("it is refused");
        assert!(told.contains("from gaining privileges"), "{told}");
    }

    #[test]
    fn an_unknown_item_is_misuse() {
        assert!(Required::parse(&names(&["files"])).is_err());
    }
}
