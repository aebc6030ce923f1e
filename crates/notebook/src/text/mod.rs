//! The text of cells: cleaned, kept within bounds, cut, and put into words.
//!
//! In: bytes of streams and displays. Out: the text block of a result. `clean` makes characters of bytes, `screen` lines of
//! characters, `kept` bounds what is held of them, `window` cuts them, `json` shows values, `words` has the fixed texts.

pub(crate) mod clean;
pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod screen;
pub(crate) mod window;
pub(crate) mod words;
