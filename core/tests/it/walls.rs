//! Walls between the rooms of the core: the rooms that each may name, and the places that may name the engine, the
//! compiler or `unsafe`.
//!
//! The compiler checks the walls of a crate (`crates/confine`). This test checks the others, in the text of the
//! sources: paths in code, without comments and unit tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each room, lowest first, with the rooms that it may name. A room without any is plain data or a thin wrapper.
const ROOMS: &[(&str, &[&str])] = &[
    ("os", &[]),
    ("intl", &["os"]),
    ("value", &["error"]),
    ("data", &["error", "value"]),
    ("binding", &["data", "os", "value"]),
    ("modules", &["binding", "data", "error", "os", "value"]),
    ("isolate", &["binding", "data", "intl", "modules", "os", "testing", "value"]),
    ("protocol", &["binding", "data", "intl", "isolate", "modules", "os", "value"]),
    (
        "runtime",
        &[
            "binding", "data", "error", "intl", "isolate", "modules", "os", "protocol", "testing",
            "value",
        ],
    ),
    (
        "worker",
        &["binding", "data", "intl", "isolate", "modules", "os", "protocol", "runtime", "value"],
    ),
];

/// The files of a room, lowest first, where they have an order: none names one above it.
const FILES: &[(&str, &[&str])] = &[
    (
        "runtime",
        &[
            "options",
            "stats",
            "prepare",
            "record",
            "session",
            "registry",
            "sessions",
            "executor",
            "threads",
            "processes",
        ],
    ),
    (
        "runtime/threads",
        &["stack", "scheduler", "watchdog", "seams", "homes", "resources", "run", "executor"],
    ),
    (
        "runtime/processes",
        &[
            "lost",
            "ledger",
            "dealings",
            "timer",
            "host_polling",
            "zygote",
            "worker_socket",
            "large_frames",
            "connection",
            "workers",
            "run",
            "driver",
            "executor",
        ],
    ),
];

/// The only places that may name a dependency.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("rquickjs_sys", &["isolate/", "testing/"]),
    ("oxc_", &["modules/compile/"]),
    ("isolane_confine", &["lib.rs", "os/", "protocol/", "runtime/", "worker/"]),
];

/// The only places that may contain `unsafe`.
const UNSAFE: &[&str] = &[
    "isolate/",
    "os/",
    "protocol/readiness/epoll.rs",
    "protocol/sockets/",
    "runtime/processes/zygote/",
    "runtime/threads/stack.rs",
    "testing/",
    "worker/inherited.rs",
    "worker/zygote/",
];

#[test]
fn every_room_keeps_its_walls() {
    let mut breaches = Vec::new();
    for (name, code) in sources() {
        let room = name.split('/').next().unwrap_or_default();
        if let Some((_, allowed)) = ROOMS.iter().find(|(known, _)| *known == room) {
            let named = rooms_in(&code);
            let refused =
                named.iter().filter(|other| *other != room && !allowed.contains(&other.as_str()));
            breaches.extend(refused.map(|other| format!("{name} names {other}")));
        }
        for (dependency, places) in DEPENDENCIES {
            if code.contains(dependency) && !places.iter().any(|place| name.starts_with(place)) {
                breaches.push(format!("{name} names {dependency}"));
            }
        }
        if code.contains("unsafe ") && !UNSAFE.iter().any(|place| name.starts_with(place)) {
            breaches.push(format!("{name} is unsafe"));
        }
    }
    assert!(breaches.is_empty(), "walls are broken:\n{}", breaches.join("\n"));
}

#[test]
fn no_file_names_one_above_it() {
    let mut breaches = Vec::new();
    for (name, code) in sources() {
        for (room, order) in FILES {
            let Some(inside) = name.strip_prefix(room).and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            let file = inside.split(['/', '.']).next().unwrap_or_default();
            let above = order.iter().skip_while(|known| **known != file).skip(1);
            let named = above.filter(|other| names_module(&code, other));
            breaches.extend(named.map(|other| format!("{name} names {other}")));
        }
    }
    assert!(breaches.is_empty(), "files have no order:\n{}", breaches.join("\n"));
}

/// Rooms have an order, so no two of them can depend on each other.
#[test]
fn no_room_names_one_above_it() {
    let order: Vec<&str> =
        ["error", "testing"].into_iter().chain(ROOMS.iter().map(|(room, _)| *room)).collect();
    for (at, (room, allowed)) in ROOMS.iter().enumerate() {
        for other in *allowed {
            assert!(order[..at + 2].contains(other), "{room} stands below {other}");
        }
    }
}

#[test]
fn every_wall_stands_somewhere() {
    let places = UNSAFE.iter().chain(DEPENDENCIES.iter().flat_map(|(_, places)| *places));
    for place in places.copied().chain(ROOMS.iter().map(|(room, _)| *room)) {
        assert!(root().join(place).exists(), "there is no {place}");
    }
    for (room, files) in FILES {
        let places = fs::read_dir(root().join(room)).expect("a readable room");
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let there = places.filter_map(|entry| stem(entry.expect("a readable entry").path()));
        let there: BTreeSet<String> =
            there.filter(|name| !["mod", "tests"].contains(&name.as_str())).collect();
        assert_eq!(there, files.iter().map(|&file| file.to_owned()).collect(), "in {room}");
    }
}

#[test]
fn a_breach_is_seen() {
    let code = code_of(
        "use crate::{\n    run::Run,\n    os::{sync::Mutex, time},\n};\n// crate::data\nlet x = crate::value::y;",
    );
    assert_eq!(Vec::from_iter(rooms_in(&code)), ["os", "run", "value"]);
    assert!(names_module(&code, "sync") && names_module(&code, "run"));
    assert!(!names_module(&code, "un") && !names_module(&code, "data"));
}

/// Whether the code has a path through a module of that name.
fn names_module(code: &str, module: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(&format!("{module}::")).any(|(at, _)| !code[..at].ends_with(is_part))
}

/// The modules at the crate's root that the code names.
fn rooms_in(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, name) in code.match_indices("crate::") {
        let rest = &code[at + name.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            rooms.insert(first_word(rest));
            continue;
        };
        let mut depth = 0;
        let mut starts = true;
        for (at, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => starts = true,
                _ if starts && !c.is_whitespace() => {
                    rooms.insert(first_word(&group[at..]));
                    starts = false;
                }
                _ => {}
            }
        }
    }
    rooms.retain(|name| !name.is_empty());
    rooms
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The code of a file, without comments and without its unit tests.
fn code_of(text: &str) -> String {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .filter(|line| !line.contains("unsafe_code"))
        .collect();
    let code = code.join("\n");
    let tests = code.find("#[cfg(test)]\nmod tests {");
    code[..tests.unwrap_or(code.len())].to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The sources of the core by their names under `src`, without files of tests.
pub(crate) fn sources() -> Vec<(String, String)> {
    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a readable folder");
        let paths = entries.map(|entry| entry.expect("a readable entry").path());
        paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }
    let named = files(&root()).into_iter().map(|file| {
        let name =
            file.strip_prefix(root()).expect("under src").to_string_lossy().replace('\\', "/");
        (name, code_of(&fs::read_to_string(&file).expect("a readable source")))
    });
    named.filter(|(name, _)| is_source(name) && !name.contains("test")).collect()
}

fn is_source(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "rs")
}
