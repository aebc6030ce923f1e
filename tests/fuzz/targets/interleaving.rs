//! See `isolane_fuzz::interleaving`.
#![cfg_attr(feature = "libfuzzer", no_main)]

isolane_fuzz::target!(isolane_fuzz::interleaving::check);
