//! The probes of a Python dict or set for free places.
//!
//! In: the hashes of the keys, in their order; no value for a hash with a secret. Out: whether the number of probes
//! stays in proportion to the number of keys. A sandbox can choose numbers whose hashes all differ, but whose probes
//! pass most of the earlier numbers. This module makes the same probes as Python, and stops when there are too many.

/// The most steps for each key. Multiples of powers of two, which are common, take some tens of steps each.
const STEPS_PER_KEY: u64 = 128;
/// The most steps for all keys, in addition.
const LEAST_STEPS: u64 = 1 << 16;

const PERTURB_SHIFT: u32 = 5;
/// Adjacent places that a set probes in a row.
const LINEAR_PROBES: usize = 9;
/// Adjacent places that count as one step.
const PLACES_PER_STEP: u64 = 4;
/// The hash of an empty place; Python has no hash -1.
const EMPTY: u64 = u64::MAX;
const LEAST_PLACES: usize = 8;

/// The places of the keys so far.
#[derive(Default)]
pub(super) struct Probes {
    is_set: bool,
    places: Vec<u64>,
    /// The hashes of a dict, in the order in which it inserts them again when it grows.
    entered: Vec<u64>,
    keys: usize,
    /// Whether there was a number among the keys. Before that no probe is counted.
    is_counting: bool,
    steps: u64,
}

impl Probes {
    pub(super) fn new(is_set: bool) -> Self {
        Self { is_set, ..Self::default() }
    }

    /// Takes a key with that hash, or with a secret one if `None`; false if there were too many steps.
    pub(super) fn take(&mut self, hash: Option<u64>) -> bool {
        if !self.is_counting && hash.is_some() {
            self.is_counting = true;
            let before = std::mem::take(&mut self.keys);
            for _ in 0..before {
                self.enter(any_hash(self.keys));
            }
        }
        if self.is_counting {
            self.enter(hash.unwrap_or_else(|| any_hash(self.keys)));
        } else {
            self.keys += 1;
        }
        self.is_within_limit()
    }

    fn is_within_limit(&self) -> bool {
        self.steps <= LEAST_STEPS + STEPS_PER_KEY * self.keys as u64
    }

    fn enter(&mut self, hash: u64) {
        if self.places.is_empty() {
            self.places = vec![EMPTY; LEAST_PLACES];
        }
        self.keys += 1;
        if self.is_set {
            self.put(hash);
            if self.keys * 5 >= (self.places.len() - 1) * 3 {
                let times = if self.keys > 50_000 { 2 } else { 4 };
                self.grow((self.keys * times + 1).next_power_of_two());
            }
            return;
        }
        if self.keys > self.places.len() * 2 / 3 {
            // Python probes for the key before it grows the dict.
            self.steps += self.find(hash).1;
            self.grow(((self.keys - 1) * 3).next_power_of_two());
        }
        self.entered.push(hash);
        self.put(hash);
    }

    fn grow(&mut self, places: usize) {
        let before = std::mem::replace(&mut self.places, vec![EMPTY; places]);
        let entered = std::mem::take(&mut self.entered);
        for &hash in if self.is_set { &before } else { &entered } {
            if hash != EMPTY {
                self.put(hash);
            }
            if !self.is_within_limit() {
                break;
            }
        }
        self.entered = entered;
    }

    fn put(&mut self, hash: u64) {
        let (place, steps) = self.find(hash);
        self.steps += steps;
        self.places[place] = hash;
    }

    /// The place for a hash, and the steps to it. There is always an empty place.
    fn find(&self, hash: u64) -> (usize, u64) {
        let mask = self.places.len() - 1;
        let low = |bits: u64| usize::try_from(bits & mask as u64).unwrap_or_default();
        let (mut at, mut perturb, mut probed) = (low(hash), hash, 0);
        let step = if self.is_set { 1 } else { PLACES_PER_STEP };
        loop {
            let row = if self.is_set && at + LINEAR_PROBES <= mask { LINEAR_PROBES } else { 0 };
            for place in at..=at + row {
                probed += step;
                if self.places[place] == EMPTY {
                    return (place, probed / PLACES_PER_STEP);
                }
            }
            perturb >>= PERTURB_SHIFT;
            at = low((at as u64).wrapping_mul(5).wrapping_add(perturb).wrapping_add(1));
        }
    }
}

/// A pseudorandom hash, in place of one with a secret.
fn any_hash(number: usize) -> u64 {
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 1
}
