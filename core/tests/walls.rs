//! The walls between the rooms of the core: who may import whom.
//!
//! ARCHITECTURE.md says it in words; this keeps it. A wall is checked on the text of the sources,
//! on every path that names a crate or a room, in code and not in comments.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A room, by its files' prefix under `src/`, and what no line of code in it may name.
const WALLS: &[(&str, &[&str])] = &[
    // Data knows nobody. What is pure has no `unsafe` in it: there is nothing for Miri to find.
    (
        "value/",
        &[
            "unsafe",
            "rquickjs_sys",
            "oxc_",
            "crate::isolate",
            "crate::compile",
            "crate::link",
            "crate::run",
            "crate::runtime",
            "crate::face",
            "crate::host",
        ],
    ),
    (
        "outcome.rs",
        &[
            "unsafe",
            "rquickjs_sys",
            "oxc_",
            "crate::isolate",
            "crate::compile",
            "crate::run",
            "crate::runtime",
        ],
    ),
    (
        "status_error.rs",
        &["rquickjs_sys", "oxc_", "crate::isolate", "crate::run", "crate::runtime", "unsafe"],
    ),
    ("confinement.rs", &["unsafe", "rquickjs_sys", "oxc_", "crate::"]),
    ("error.rs", &["unsafe", "rquickjs_sys", "oxc_", "crate::"]),
    ("text.rs", &["unsafe", "rquickjs_sys", "oxc_", "crate::"]),
    ("path.rs", &["unsafe", "rquickjs_sys", "oxc_", "crate::"]),
    // So do locks, processes and threads.
    ("sync.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("process.rs", &["rquickjs_sys", "oxc_", "crate::"]),
    ("sanitized.rs", &["rquickjs_sys", "oxc_", "crate::"]),
    ("thread.rs", &["rquickjs_sys", "oxc_", "crate::"]),
    ("stack.rs", &["rquickjs_sys", "oxc_", "crate::run", "crate::runtime", "crate::value"]),
    ("turns.rs", &["rquickjs_sys", "oxc_", "crate::", "unsafe"]),
    (
        "ledger.rs",
        &["unsafe", "rquickjs_sys", "oxc_", "crate::isolate", "crate::run", "crate::runtime"],
    ),
    ("laps.rs", &["rquickjs_sys", "oxc_", "crate::", "unsafe"]),
    ("patience.rs", &["rquickjs_sys", "oxc_", "crate::", "unsafe"]),
    (
        "options.rs",
        &[
            "unsafe",
            "rquickjs_sys",
            "oxc_",
            "crate::isolate",
            "crate::compile",
            "crate::run::",
            "crate::runtime",
        ],
    ),
    ("host.rs", &["unsafe", "rquickjs_sys", "oxc_", "crate::isolate", "crate::compile"]),
    // The compiler knows no engine, the linker neither compiler nor engine.
    (
        "compile/",
        &[
            "unsafe",
            "rquickjs_sys",
            "crate::isolate",
            "crate::link",
            "crate::run",
            "crate::runtime",
            "crate::host",
        ],
    ),
    (
        "link/",
        &[
            "unsafe",
            "rquickjs_sys",
            "oxc_",
            "crate::isolate",
            "crate::run",
            "crate::runtime",
            "crate::host",
        ],
    ),
    // The engine's room knows no compiler, and nothing of what is above it.
    (
        "isolate/",
        &[
            "oxc_",
            "crate::compile",
            "crate::link",
            "crate::run::",
            "crate::runtime",
            "crate::scheduler",
            "crate::cache",
            "crate::execution",
        ],
    ),
    // What is above speaks to the isolate and to no engine.
    ("run.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("runtime.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("scheduler.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("watchdog.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("program.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("cache.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    ("execution.rs", &["rquickjs_sys", "oxc_", "unsafe"]),
    // What is taken from a process has nothing to do with what runs in it.
    ("worker/", &["rquickjs_sys", "oxc_", "crate::run::", "crate::scheduler", "crate::face"]),
    // What reads the bytes of a worker has nothing that they could break.
    ("worker/frame.rs", &["unsafe"]),
    ("worker/protocol.rs", &["unsafe"]),
    ("worker/run.rs", &["unsafe"]),
    ("worker/run/", &["unsafe"]),
    ("worker/link.rs", &["unsafe"]),
    ("worker/driver.rs", &["unsafe"]),
    ("worker/connection.rs", &["unsafe"]),
    ("worker/aside.rs", &["unsafe"]),
    ("worker/attendance.rs", &["unsafe"]),
    ("worker/control.rs", &["unsafe"]),
    ("worker/control/", &["unsafe"]),
    ("worker/readiness.rs", &["unsafe"]),
    ("worker/readiness/", &["unsafe"]),
    ("worker/sockets.rs", &["unsafe"]),
    ("worker/kin/", &["unsafe"]),
    ("worker/confine/", &["crate::"]),
    // The Rust face uses what a binding uses.
    (
        "face/",
        &[
            "rquickjs_sys",
            "oxc_",
            "unsafe",
            "crate::isolate",
            "crate::compile",
            "crate::link",
            "crate::run::",
            "crate::scheduler",
        ],
    ),
];

#[test]
fn every_room_keeps_its_walls() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut breaches = Vec::new();
    for file in sources(&root) {
        let name =
            file.strip_prefix(&root).expect("under src").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&file).expect("a readable source");
        for (room, refused) in WALLS.iter().filter(|(room, _)| name.starts_with(room)) {
            breaches
                .extend(breaches_in(&text, refused).map(|line| format!("{name} ({room}): {line}")));
        }
    }
    assert!(breaches.is_empty(), "walls are broken:\n{}", breaches.join("\n"));
}

#[test]
fn every_wall_stands_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, _) in WALLS {
        assert!(root.join(room).exists(), "no room is called {room}");
    }
}

/// No engine and no compiler in a public signature: what cannot be named cannot be in one.
#[test]
fn whatever_is_public_knows_neither_engine_nor_compiler() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = fs::read_to_string(root.join("lib.rs")).expect("a readable source");
    let public: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub use ").or_else(|| line.strip_prefix("pub mod ")))
        .filter_map(|rest| rest.split([':', ';']).next())
        .collect();
    assert!(public.len() >= 7, "{public:?}");
    for module in public {
        let rooms = [format!("{module}.rs"), format!("{module}/")];
        let wall = WALLS.iter().find(|(room, _)| rooms.iter().any(|name| name == room));
        let refused = wall.map_or(&[][..], |(_, refused)| refused);
        for name in ["rquickjs_sys", "oxc_"] {
            assert!(refused.contains(&name), "no wall keeps {name} out of {module}");
        }
    }
}

#[test]
fn a_breach_is_seen() {
    let text = "use crate::{\n    run::Run,\n};\n// crate::runtime\nuse rquickjs_sys as sys;";
    let found: Vec<_> =
        breaches_in(text, &["rquickjs_sys", "crate::run::", "crate::runtime"]).collect();
    assert_eq!(found, ["crate::run::", "rquickjs_sys"]);
}

/// The refused names that the code mentions, nested `use crate::{…}` written out.
fn breaches_in<'a>(text: &str, refused: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .filter(|line| !line.contains("unsafe_code"))
        .collect::<Vec<_>>()
        .join("\n");
    let flat = flatten(&code);
    let mut found: Vec<(usize, &str)> =
        refused.iter().filter_map(|name| flat.find(name).map(|at| (at, *name))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name)
}

/// `use crate::{a::B, c}` as `crate::a::B, crate::c`.
fn flatten(code: &str) -> String {
    let mut flat = String::new();
    let mut rest = code;
    while let Some(start) = rest.find("crate::{") {
        let (before, inside) = rest.split_at(start);
        flat.push_str(before);
        let inside = &inside["crate::{".len()..];
        let mut depth = 1;
        let end = inside
            .char_indices()
            .find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth == 0
            })
            .map_or(inside.len(), |(at, _)| at);
        let mut nested = 0;
        flat.push_str("crate::");
        for c in inside[..end].chars().filter(|c| !c.is_whitespace()) {
            nested += i32::from(c == '{') - i32::from(c == '}');
            flat.push(c);
            if c == ',' && nested == 0 {
                flat.push_str(" crate::");
            }
        }
        rest = &inside[end..];
    }
    flat + rest
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder");
    entries
        .map(|entry| entry.expect("a readable entry").path())
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}
