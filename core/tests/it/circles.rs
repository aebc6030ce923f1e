//! Circles of files: files that need each other, by the paths of their `use` declarations.
//!
//! In: the sources of a room. Out: a failure that names each circle of many files. A parent and its child may need each
//! other, and so may the few files of one topic whose functions call each other. A circle of many files has no bottom:
//! nobody can read one of them without all others.

use std::collections::{BTreeMap, BTreeSet};

use crate::walls::sources;

/// The room that has no large circle.
const ROOM: &str = "isolate";

/// The most files of a circle.
const LARGEST: usize = 3;

/// Each module with the modules that it names.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn few_files_need_each_other() {
    let modules = graph(&sources());
    assert!(modules.len() > 100, "the room has {} files", modules.len());
    let large: Vec<_> = circles(&modules).into_iter().filter(|one| one.len() > LARGEST).collect();
    assert!(large.is_empty(), "circles of more than {LARGEST} files: {large:#?}");
}

#[test]
fn a_circle_is_seen() {
    let source = |name: &str, code: &str| (format!("{ROOM}/{name}"), code.to_owned());
    let mut sources = vec![
        source("mod.rs", "mod one;\npub(crate) use self::one::One;"),
        source("one.rs", "use std::ptr;\nuse super::{\n    two::{self, Two},\n    four,\n};"),
        source("two/mod.rs", "use crate::{data::x, isolate::{two::three::Three as Other}};"),
        source("two/three.rs", "use super::super::four::{Four};"),
        source("four.rs", "use super::two::Two;"),
    ];
    let circle = ["isolate/four", "isolate/two", "isolate/two/three"].map(str::to_owned).to_vec();
    assert_eq!(circles(&graph(&sources)), BTreeSet::from([circle.clone()]));
    sources[3].1 = "use super::super::One;".to_owned();
    let larger = ["isolate", "isolate/four", "isolate/one", "isolate/two", "isolate/two/three"];
    assert_eq!(circles(&graph(&sources)), BTreeSet::from([larger.map(str::to_owned).to_vec()]));
}

fn graph(sources: &[(String, String)]) -> Graph {
    let inside = sources.iter().filter(|(name, _)| name.starts_with(&format!("{ROOM}/")));
    let codes: BTreeMap<String, &str> =
        inside.map(|(name, code)| (module_of(name), code.as_str())).collect();
    let named = |module: &String, code: &str| {
        let all = uses(code).into_iter().filter_map(|path| found(module, &path, &codes));
        all.filter(|other| other != module).collect()
    };
    codes.iter().map(|(module, code)| (module.clone(), named(module, code))).collect()
}

/// The module of a file.
fn module_of(file: &str) -> String {
    let module = file.strip_suffix(".rs").unwrap_or(file);
    module.strip_suffix("/mod").unwrap_or(module).to_owned()
}

/// The paths of all `use` declarations.
fn uses(code: &str) -> Vec<String> {
    let declared = code.match_indices("use ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(char::is_whitespace)
    });
    let trees = declared.filter_map(|(at, word)| code[at + word.len()..].split(';').next());
    trees.flat_map(paths).collect()
}

/// The paths of a tree such as `crate::{one, two::{self, Two}}`.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, group)) = tree.split_once('{') else {
        return vec![tree.split_whitespace().next().unwrap_or_default().to_owned()];
    };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let before = before.trim();
    let parts = parts(group).into_iter().flat_map(paths);
    parts.map(|rest| format!("{before}{rest}")).collect()
}

/// The parts between the commas of a group that are in no group inside it.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The module that a path in another module leads to, or leads into.
fn found(module: &str, path: &str, known: &BTreeMap<String, &str>) -> Option<String> {
    let mut at: Vec<&str> = module.split('/').collect();
    let mut is_rooted = false;
    for part in path.split("::") {
        match part {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ if !is_rooted => return None,
            _ => at.push(part),
        }
        is_rooted = true;
    }
    while !at.is_empty() && !known.contains_key(&at.join("/")) {
        at.pop();
    }
    (!at.is_empty()).then(|| at.join("/"))
}

/// The modules of each circle, in the order of their names: modules that reach each other.
fn circles(modules: &Graph) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        modules.keys().map(|module| (module, reachable(modules, module))).collect();
    let in_circles = reached.iter().filter(|(module, others)| others.contains(*module));
    let circle = |(module, others): (&&String, &BTreeSet<&String>)| {
        let back = others.iter().filter(|other| reached[**other].contains(*module));
        back.map(|other| (*other).clone()).collect()
    };
    in_circles.map(circle).collect()
}

fn reachable<'g>(modules: &'g Graph, from: &str) -> BTreeSet<&'g String> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&String> = modules[from].iter().collect();
    while let Some(module) = left.pop() {
        if seen.insert(module) {
            left.extend(&modules[module]);
        }
    }
    seen
}
