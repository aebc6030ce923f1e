//! See `isolane_fuzz::clone`.
#![cfg_attr(feature = "libfuzzer", no_main)]

isolane_fuzz::target!(isolane_fuzz::clone::check);
