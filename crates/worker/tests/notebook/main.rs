//! Kernels of Python in confinement: the tests of notebooks once more, and what is taken from a kernel.
//!
//! On a machine that cannot confine a program these tests say so, and do not run.

#[path = "../../../notebook/tests/it/agents.rs"]
mod agents;
#[path = "../../../notebook/tests/it/calls.rs"]
mod calls;
#[path = "../../../notebook/tests/it/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
mod ends;
#[path = "../../../notebook/tests/it/host.rs"]
mod host;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod stage;
#[path = "../../../notebook/tests/it/support.rs"]
mod support;
#[cfg(target_os = "linux")]
mod taken;
