//! Items of the confinement without which no program may run.
//!
//! In: their names, and the confinement that a program has got. Out: the first item that no layer keeps.

use crate::Confinement;

/// Items that a caller requires of a program's confinement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required(Vec<&'static str>);

impl Required {
    /// The names of all items that can be required.
    pub const ITEMS: [&'static str; 6] =
        ["privileges", "network", "file_system", "system_calls", "processes", "resources"];

    /// The items with these names.
    ///
    /// # Errors
    /// The place of the first name that is no item's.
    pub fn parse(names: &[impl AsRef<str>]) -> Result<Self, usize> {
        let known = |name: &str| Self::ITEMS.into_iter().find(|item| *item == name);
        let items = names.iter().enumerate();
        items.map(|(at, name)| known(name.as_ref()).ok_or(at)).collect::<Result<_, _>>().map(Self)
    }

    /// All items.
    #[must_use]
    pub fn all() -> Self {
        Self(Self::ITEMS.into())
    }

    /// Whether the item is among them.
    #[must_use]
    pub fn has(&self, item: &str) -> bool {
        self.0.contains(&item)
    }

    /// Compares the confinement that a program has got with these items.
    ///
    /// # Errors
    /// The text that says what this machine cannot keep a program from.
    pub fn check(&self, had: Confinement) -> Result<(), String> {
        self.missing(had).map_or(Ok(()), |text| Err(format!("{text}; see 'isolane doctor'")))
    }

    /// The text that says what this machine cannot keep a program from, if there is such a thing.
    #[must_use]
    pub fn missing(&self, had: Confinement) -> Option<String> {
        let missing = Self::ITEMS.into_iter().find(|item| {
            // The two that the others stand on.
            (self.has(item) || ["file_system", "processes"].contains(item)) && !is_met(item, had)
        });
        missing.map(|item| format!("this machine cannot keep a program {}", act(item)))
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

    const ALL: [&str; 6] = Required::ITEMS;

    fn message(required: &[&str], change: impl FnOnce(&mut Confinement)) -> Option<String> {
        let mut had = Confinement::ALL;
        change(&mut had);
        Required::parse(required).expect("known items").check(had).err()
    }

    #[test]
    fn an_item_is_met_if_any_layer_keeps_it() {
        assert_eq!(message(&ALL, |_| ()), None);
        assert_eq!(message(&ALL, |had| had.network = false), None);
        assert_eq!(message(&ALL, |had| had.privileges = false), None);
        let told = message(&ALL, |had| (had.network, had.system_calls) = (false, false));
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
        let told = message(&ALL, all_missing).expect("it is refused");
        assert!(told.contains("from gaining privileges"), "{told}");
    }

    #[test]
    fn an_unknown_item_is_refused_with_its_place() {
        assert_eq!(Required::parse(&["network", "files"]), Err(1));
    }
}
