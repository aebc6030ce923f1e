//! Lists, signals and descriptors.

use std::{fs, process::Command};

pub(crate) fn kill(process: u32) {
    // It may have ended by itself.
    let _ = Command::new("kill").args(["-9", &process.to_string()]).output();
}

/// The descriptors that this process has.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/dev/fd").expect("a list of descriptors").count()
}

/// Every process, its state and its parent.
#[cfg(not(target_os = "linux"))]
pub(super) fn listed() -> Vec<(u32, char, u32)> {
    let list = Command::new("ps").args(["-axo", "pid=,state=,ppid="]).output();
    let list = String::from_utf8(list.expect("a list of processes").stdout).expect("text");
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let process = words.next()?.parse().ok()?;
        Some((process, words.next()?.chars().next()?, words.next()?.parse().ok()?))
    };
    list.lines().filter_map(read).collect()
}

/// Every process, its state and its parent.
#[cfg(target_os = "linux")]
pub(super) fn listed() -> Vec<(u32, char, u32)> {
    let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
    let read = |name: String| {
        let process: u32 = name.parse().ok()?;
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = text.rsplit(')').next()?.split_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((process, state, fields.next()?.parse().ok()?))
    };
    entries.filter_map(|entry| read(entry.file_name().into_string().ok()?)).collect()
}
