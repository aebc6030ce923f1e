//! See `isolane_fuzz::source`.
#![cfg_attr(isolane_sanitized, no_main)]

isolane_fuzz::target!(isolane_fuzz::source::check);
