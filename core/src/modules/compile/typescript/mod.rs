//! TypeScript without its types: blanks take the place of types, and JavaScript that of what produces code.

mod constants;
mod enums;
pub(super) mod erase;
mod exported;
pub(super) mod fate;
pub(super) mod namespaces;
mod produce;
mod properties;
pub(super) mod types;
