//! See `isolane_fuzz::cells`.
#![cfg_attr(feature = "libfuzzer", no_main)]

isolane_fuzz::target!(isolane_fuzz::cells::check);
