//! See `isolane_fuzz::clone`.
#![cfg_attr(isolane_sanitized, no_main)]

isolane_fuzz::target!(isolane_fuzz::clone::check);
