//! See `isolane_fuzz::modules`.
#![cfg_attr(feature = "libfuzzer", no_main)]

isolane_fuzz::target!(isolane_fuzz::modules::check);
