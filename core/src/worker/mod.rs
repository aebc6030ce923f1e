//! Runs in processes of their own.
#![cfg_attr(not(test), expect(dead_code, unused_imports, reason = "nothing enters a worker yet"))]

mod confine;

pub use confine::{Allocator as WorkerAllocator, Confinement};
