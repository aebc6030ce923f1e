//! Plain data that every room shares: sources, options, results and their texts.

pub(crate) mod cause;
pub(crate) mod cell;
pub(crate) mod console_line;
pub(crate) mod date;
pub(crate) mod extension;
pub(crate) mod inspect;
pub(crate) mod journal;
pub(crate) mod nearest;
pub(crate) mod option_hints;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod portable;
pub(crate) mod runtime_options;
pub(crate) mod source;
pub(crate) mod status_error;
pub(crate) mod text;
