//! Tests of a worker's remaining abilities, from inside of real workers.
//!
//! Each item of a confinement is taken alone, with only the items that it needs, and probed: that item then caused each
//! refusal. Without the item the same probe has to succeed, or it would show nothing. Where the machine does not have
//! an item, the account has to say so. All items together are probed for everything that nobody may do.
#![expect(unsafe_code, reason = "does what code that owns its process would do")]

mod inside;
mod probes;
mod stage;

use self::stage::{Outcome, Start, play};
use super::{Confinement, Ended};

const NONE: Confinement = Confinement {
    environment: false,
    descriptors: false,
    privileges: false,
    user: false,
    capabilities: false,
    network: false,
    file_system: false,
    processes: false,
    ipc: false,
    landlock: false,
    system_calls: false,
    resources: false,
};
const USER: Confinement = Confinement { user: true, ..NONE };
const PRIVILEGES: Confinement = Confinement { privileges: true, ..NONE };
const SOCKET: Confinement = Confinement { descriptors: true, ..PRIVILEGES };

const AS_WE_ARE: Start = Start { ordinary: false, refused: false };
const ORDINARY: Start = Start { ordinary: true, refused: false };
const REFUSED: Start = Start { ordinary: false, refused: true };
const ORDINARY_REFUSED: Start = Start { ordinary: true, refused: true };

/// An item, the items that it needs, and the probes that it alone refuses.
type Item = (&'static str, Confinement, Confinement, &'static [&'static str]);

const ITEMS: &[Item] = &[
    ("environment", NONE, Confinement { environment: true, ..NONE }, &["environment", "variables"]),
    ("descriptors", NONE, Confinement { descriptors: true, ..NONE }, &["descriptors"]),
    ("privileges", NONE, PRIVILEGES, &["new_privileges"]),
    ("user", NONE, USER, &["user_namespace"]),
    ("network", USER, Confinement { network: true, ..USER }, &["tcp", "abstract"]),
    ("file_system", USER, Confinement { file_system: true, ..USER }, &["open", "list_root"]),
    ("processes", USER, Confinement { processes: true, ..USER }, &["find_process"]),
    ("ipc", USER, Confinement { ipc: true, ..USER }, &["find_shared"]),
    (
        "system_calls",
        SOCKET,
        Confinement { system_calls: true, ..SOCKET },
        &["open", "pair", "fork", "tcp", "map_code", "map_shared", "make_code", "signal_parent"],
    ),
    (
        "resources",
        NONE,
        Confinement { resources: true, ..NONE },
        &["duplicate", "raise_descriptors", "memory"],
    ),
];

/// Every item, for a process that starts like this.
fn each_item_refuses_by_itself(start: Start) {
    for (item, base, wanted, names) in ITEMS {
        let without = play(start, *base, names);
        if *item == "privileges" && !without.new_privileges {
            // Given up before, as an ordinary user must before the system refuses anything.
            continue;
        }
        for (name, outcome) in &without.outcomes {
            assert_eq!(*outcome, Outcome::Reached, "{name} without {item}, {start:?}");
        }
        let with = play(start, *wanted, names);
        let [had, available] = [with.got, with.available].map(|c| is_in(c, item));
        assert_eq!(had, available, "{item} is had where it can be had, {start:?}");
        for (name, outcome) in &with.outcomes {
            assert_eq!(*outcome != Outcome::Reached, had, "{name}: {outcome:?}, {item}, {start:?}");
        }
    }
    landlock_refuses_by_itself(start);
    capabilities_are_refused(start);
}

fn is_in(confinement: Confinement, item: &str) -> bool {
    confinement.items().into_iter().any(|(name, had)| name == item && had)
}

/// The versions of Landlock know different rights.
fn landlock_refuses_by_itself(start: Start) {
    let version = inside::landlock_version();
    let rights = [(1, "open"), (4, "tcp"), (6, "abstract"), (6, "signal_stage")];
    let names = rights.map(|(_, name)| name);
    let without = play(start, PRIVILEGES, &names);
    let with = play(start, Confinement { landlock: true, ..PRIVILEGES }, &names);
    assert_eq!(with.got.landlock, version > 0, "{start:?}");
    for (place, (since, name)) in rights.into_iter().enumerate() {
        assert_eq!(without.outcomes[place].1, Outcome::Reached, "{name} without, {start:?}");
        let refused = with.outcomes[place].1 != Outcome::Reached;
        assert_eq!(refused, version >= since, "{name} under version {version}, {start:?}");
    }
}

/// Root has some, and so has the owner of a user namespace; others have none to lose.
fn capabilities_are_refused(start: Start) {
    let root = play(start, NONE, &[]).root;
    let base = if root { NONE } else { USER };
    let names: &[&str] = if root {
        &["chroot", "bounding_set", "groups", "setuid"]
    } else {
        &["chroot", "bounding_set"]
    };
    let without = play(start, base, names);
    let with = play(start, Confinement { capabilities: true, ..base }, names);
    assert_eq!(with.got.capabilities, with.available.capabilities, "{start:?}");
    if root || without.got.user {
        let reached = |told: &stage::Told| {
            let reached = told.outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Reached);
            reached.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(reached(&with), [""; 0], "{start:?}");
        // Root in a container may have lost some of them.
        assert!(reached(&without).contains(&"bounding_set".to_owned()), "{start:?}");
    }
    assert_ne!(with.outcomes[0].1, Outcome::Reached, "{start:?}");
}

/// Probes with all items taken, and how their ends are reported.
const HARMLESS: &[(&str, Outcome)] =
    &[("computing", Outcome::Reached), ("limited_memory", Outcome::Reached)];

/// Probes that end a worker at once.
const FORBIDDEN: &[&str] = &[
    "chroot",
    "setuid",
    "pair",
    "signal_parent",
    "signal_first",
    "abort_another",
    "fork",
    "thread",
    "execute",
    "trace",
    "trace_parent",
    "read_other_memory",
    "duplicate",
    "mount",
    "unshare",
    "io_uring",
    "bpf",
    "perf",
    "userfaultfd",
    "memory_file",
    "keyring",
    "personality",
    "receive_descriptors",
    "other_clock",
    "foreign_call",
];

fn nothing_is_left(start: Start) {
    let names: Vec<_> = probes::names().filter(|name| *name != "cpu").collect();
    let told = play(start, Confinement::ALL, &names);
    for ((item, had), (_, available)) in told.got.items().into_iter().zip(told.available.items()) {
        assert_eq!(had, available, "{item}, {start:?}");
    }
    for (name, outcome) in &told.outcomes {
        let expected = HARMLESS.iter().find(|(harmless, _)| harmless == name);
        match (name.as_str(), expected) {
            (_, Some((_, expected))) => assert_eq!(outcome, expected, "{name}, {start:?}"),
            ("abort", _) => assert_eq!(*outcome, ended(Ended::Crashed(libc::SIGABRT)), "{start:?}"),
            ("too_much", _) => assert_eq!(*outcome, ended(Ended::Memory), "{start:?}"),
            // On a kernel without that way it is an invalid instruction.
            ("old_call", _) if told.got.system_calls => {
                let ways = [Ended::ForbiddenCall, Ended::Crashed(libc::SIGSEGV)].map(ended);
                assert!(ways.contains(outcome), "{outcome:?}, {start:?}");
            }
            (name, _) if told.got.system_calls && FORBIDDEN.contains(&name) => {
                assert_eq!(*outcome, ended(Ended::ForbiddenCall), "{name}, {start:?}");
            }
            _ => assert_ne!(*outcome, Outcome::Reached, "{name}, {start:?}"),
        }
    }
}

fn ended(how: Ended) -> Outcome {
    Outcome::Ended(format!("{:?}", Some(how)).replace(' ', ""))
}

#[test]
fn each_item_refuses_by_itself_as_we_are() {
    each_item_refuses_by_itself(AS_WE_ARE);
}

#[test]
fn each_item_refuses_by_itself_to_an_ordinary_user() {
    each_item_refuses_by_itself(ORDINARY);
}

#[test]
fn each_item_refuses_by_itself_where_namespaces_are_refused() {
    each_item_refuses_by_itself(REFUSED);
}

#[test]
fn each_item_refuses_by_itself_to_an_ordinary_user_without_namespaces() {
    each_item_refuses_by_itself(ORDINARY_REFUSED);
}

#[test]
fn nothing_is_left_to_a_worker() {
    for start in [AS_WE_ARE, ORDINARY, REFUSED, ORDINARY_REFUSED] {
        nothing_is_left(start);
    }
}

#[test]
fn time_that_is_used_up_ends_a_worker() {
    let told = play(AS_WE_ARE, Confinement::ALL, &["cpu"]);
    assert_eq!(told.outcomes[0].1, ended(Ended::CpuTime));
}

#[test]
fn a_confinement_crosses_as_bytes() {
    for bits in 0_u16..1 << 12 {
        let read = Confinement::from_bytes(bits.to_le_bytes()).expect("known items");
        assert_eq!(read.to_bytes(), bits.to_le_bytes());
    }
    assert_eq!(Confinement::from_bytes([0, 1 << 4]), None);
    assert_eq!(Confinement::from_bytes(Confinement::ALL.to_bytes()), Some(Confinement::ALL));
    assert!(Confinement::ALL.items().into_iter().all(|(_, had)| had));
}
