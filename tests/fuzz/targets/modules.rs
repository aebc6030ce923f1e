//! See `isolane_fuzz::modules`.
#![cfg_attr(isolane_sanitized, no_main)]

isolane_fuzz::target!(isolane_fuzz::modules::check);
