//! Plain data that every room shares: results, errors, positions in values, text.

pub(crate) mod inspect;
pub(crate) mod nearest;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod source;
pub(crate) mod status_error;
pub(crate) mod text;
