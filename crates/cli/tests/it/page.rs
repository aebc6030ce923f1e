//! The examples of `docs/cli.md`: its files are written, its commands run, their outputs compared.

use std::fs;

use tempfile::TempDir;

use crate::program::isolane;

#[test]
fn the_examples_of_the_page_are_true() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = fs::read_to_string(page).expect("the page");
    let folder = TempDir::new().expect("a folder");
    let mut commands = 0;
    // Every second part stands between two fences.
    for fence in page.split("```").skip(1).step_by(2) {
        let (kind, body) = fence.split_once('\n').expect("a body");
        if let Some((_, file)) = kind.split_once(' ') {
            fs::write(folder.path().join(file), body).expect("a file");
            continue;
        }
        // It starts a server.
        if kind == "sh" {
            continue;
        }
        assert_eq!(kind, "console");
        for example in format!("\n{body}").split("\n$ isolane ").skip(1) {
            let (line, expected) = example.split_once('\n').unwrap_or((example, ""));
            let arguments: Vec<&str> = line.split(' ').collect();
            let (_, stdout, stderr) = isolane(folder.path(), &arguments);
            assert_eq!((stdout + &stderr).trim_end(), expected.trim_end(), "{line}");
            commands += 1;
        }
    }
    assert_eq!(commands, 4);
}
