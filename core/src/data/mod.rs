//! Plain data that every room shares: results, errors, positions in values, text.

pub(crate) mod inspect;
pub(crate) mod outcome;
pub(crate) mod status_error;
pub(crate) mod text;
