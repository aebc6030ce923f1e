//! The processes of Chromium and its folder: their ends, wanted or not.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use futures::executor::block_on;
use isolane_kit::{Kit, ToolOptions};
use serde_json::json;

use super::{
    server::Server,
    support::{Test, chromium, options, until, value},
};

/// The processes of the Chromium that was given that switch: the pid of each, and whether it is a renderer.
fn processes(mark: &str) -> Vec<(u32, bool)> {
    let all = fs::read_dir("/proc").expect("the processes").flatten();
    let all = all.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // After the name: the state, the parent, the group. Zombies have ended.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let group: u32 = fields.nth(1)?.parse().ok()?;
        (state != "Z").then_some((pid, group, line))
    });
    let all: Vec<_> = all.collect();
    let leader = all.iter().find(|(.., line)| line.contains(mark)).map(|(_, group, _)| *group);
    let folder = all.iter().find(|(.., line)| line.contains(mark)).and_then(|(.., line)| {
        line.split('\0').find_map(|part| part.strip_prefix("--user-data-dir=").map(str::to_owned))
    });
    let is_of_it = |group: u32, line: &str| {
        Some(group) == leader
            || folder.as_ref().is_some_and(|folder| line.contains(folder.as_str()))
    };
    let of_it = all.iter().filter(|(_, group, line)| is_of_it(*group, line));
    of_it.map(|(pid, _, line)| (*pid, line.contains("--type=renderer"))).collect()
}

/// The profile of the Chromium that was given that switch. Not each of its processes has a switch for it.
fn profile(mark: &str) -> PathBuf {
    let mut lines = processes(mark).into_iter().filter_map(|(pid, _)| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    });
    let folder = lines.find_map(|line| {
        line.split('\0').find_map(|part| part.strip_prefix("--user-data-dir=").map(str::to_owned))
    });
    PathBuf::from(folder.expect("a profile"))
}

/// A command that never ends, and tells the server when it has begun.
const NEVER: &str = "browser.evaluate('fetch(\\'/begun\\'); return new Promise(() => {})')";

/// Whether the command is under way; once for each time that it is.
fn is_under_way(server: &Server) -> bool {
    let mut requests = server.requests.lock().expect("the requests");
    let begun = requests.iter().position(|request| request.ends_with("/begun"));
    begun.map(|at| requests.remove(at)).is_some()
}

/// A switch that no other test's Chromium has.
fn mark() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("--isolane-mark={}-{}", process::id(), LAST.fetch_add(1, Ordering::Relaxed))
}

fn kill(pid: u32) {
    let done = process::Command::new("kill").arg("-KILL").arg(pid.to_string()).status();
    assert!(done.expect("kill").success());
}

#[test]
fn nothing_is_left_of_a_chromium_that_is_dropped_or_closed() {
    let mark = mark();
    for how in ["drop", "close", "close in a command", "drop in a command"] {
        let Some(chromium) = chromium(|options| options.args.push(mark.clone())) else { return };
        let server = Server::new();
        let kit = Kit::new(options(&chromium, &server)).expect("a kit");
        value(&kit, "await browser.navigate(args.url)", json!({ "url": server.at("/") }));
        let folder = profile(&mark).parent().expect("its folder").to_owned();
        let before = processes(&mark);
        assert!(before.len() > 2 && folder.is_dir(), "{before:?}");
        let is_in_command = how.ends_with("in a command");
        let execution = is_in_command.then(|| {
            let execution = kit.run_tool(format!("await {NEVER}"), ToolOptions::default());
            until("the command is under way", || is_under_way(&server));
            execution
        });
        if how.starts_with("close") {
            block_on(chromium.close());
            assert!(!folder.exists());
            if let Some(execution) = execution {
                let result = execution.wait().expect("a run");
                assert_eq!(
                    result.error.as_ref().map(|error| error.message.as_str()),
                    Some("the browser is closed")
                );
            }
            assert_eq!(
                value(&kit, "return (await fails(browser.extractText()))[1]", json!({})),
                "the browser is closed"
            );
        } else {
            drop(execution);
            drop(kit);
            drop(chromium);
        }
        // What is left of the kit's runs goes on threads of its own.
        until("its folder goes", || !folder.exists());
        until("its processes end", || {
            before.iter().all(|(pid, _)| {
                let line = fs::read_to_string(format!("/proc/{pid}/stat"));
                line.map_or(true, |line| line.contains(") Z "))
            })
        });
    }
}

#[test]
fn what_crashes_fails_its_call_and_is_replaced() {
    let mark = mark();
    let Some(test) = Test::with(|options| options.args.push(mark.clone()), |_| {}) else { return };
    for (is_page, message) in [(true, "the page crashed"), (false, "the browser is gone")] {
        test.value("await browser.navigate(args.url)");
        let before = profile(&mark);
        let kit = &test.kit;
        thread::scope(|scope| {
            let waits =
                scope.spawn(|| value(kit, &format!("return await fails({NEVER})"), json!({})));
            until("the command is under way", || is_under_way(&test.server));
            let found = processes(&mark);
            let doomed: Vec<_> =
                found.iter().filter(|(_, is_renderer)| *is_renderer == is_page).collect();
            let doomed = if is_page { &doomed[..] } else { &doomed[..1] };
            for (pid, _) in doomed {
                kill(*pid);
            }
            assert_eq!(waits.join().expect("a value"), json!(["BrowserError", message]));
        });
        let tool =
            "return [await browser.extractText(), (await browser.navigate(args.url)).status]";
        assert_eq!(test.value(tool), json!(["", 200]), "{message}");
        assert_eq!(profile(&mark) == before, is_page);
        assert_eq!(before.exists(), is_page);
    }
}

#[test]
fn chromium_has_neither_secrets_of_the_environment_nor_descriptors() {
    let mark = mark();
    let Some(test) = Test::with(|options| options.args.push(mark.clone()), |_| {}) else { return };
    let before = descriptors();
    test.value("await browser.extractText()");
    let (pid, _) = *processes(&mark).first().expect("a process");
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).expect("its environment");
    // Cargo sets it for this process.
    assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!environment.contains("CARGO_MANIFEST_DIR"), "{environment}");
    // The ends of the pipe are for Chromium alone.
    assert_eq!(descriptors(), before);
}

/// The descriptors that a child of this process gets.
fn descriptors() -> String {
    let listed = process::Command::new("ls").arg("/proc/self/fd").output().expect("a listing");
    String::from_utf8_lossy(&listed.stdout).into_owned()
}
