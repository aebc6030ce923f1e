//! Tests that need a process of their own, because they fork, or leave threads behind that take the time of others.

use std::{env, process::Command};

/// Whether this process was started for the test alone. If not, runs the test in such a process and reports its result.
///
/// `test` is the path of the test in this program. On `false` the caller has nothing left to do.
///
/// # Panics
///
/// If the test failed in its process, or is not there under that name.
pub(crate) fn alone(test: &str) -> bool {
    const ALONE: &str = "ISOLANE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let own = env::current_exe().expect("the path of these tests");
    let child = Command::new(own).args(["--exact", test]).env(ALONE, "1").output();
    let child = child.expect("a process");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
    false
}
