//! See `isolane_fuzz::source`.
#![cfg_attr(feature = "libfuzzer", no_main)]

isolane_fuzz::target!(isolane_fuzz::source::check);
