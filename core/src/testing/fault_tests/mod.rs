//! Failures of allocations, of host calls and of this crate itself, and their effect on runs.

mod allocations;
mod corpus;
mod host_calls;
mod messages;
mod promises;
mod stage;

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The given seed, or a different one each time. It is printed, also if the process crashes.
    fn seed() -> u64 {
        use std::{
            hash::{BuildHasher, RandomState},
            io::Write,
        };
        let given = std::env::var("ISOLANE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000);
        writeln!(std::io::stdout(), "seed {seed}").expect("to write");
        seed
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }
}
