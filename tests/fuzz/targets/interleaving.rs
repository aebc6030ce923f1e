//! See `isolane_fuzz::interleaving`.
#![cfg_attr(isolane_sanitized, no_main)]

isolane_fuzz::target!(isolane_fuzz::interleaving::check);
