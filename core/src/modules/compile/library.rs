//! The function around a library.
//!
//! In: the edited statements of a library. Out: a script whose value is a function of `exports`, `module` and `require`.
//! A function around that one has the names that the library does not see as its parameters, so that it may declare them
//! itself. The text of the library was parsed on its own, so nothing in it ends these functions.

use oxc_ast::ast::Program;

use super::text::blanks::{Blanks, place};

/// Puts the functions around the statements, whose last token ends at `end`.
pub(super) fn wrap<'t>(
    program: &Program<'_>,
    end: usize,
    hidden: &[String],
    mut blanks: Blanks<'t>,
) -> Blanks<'t> {
    if let Some(hashbang) = &program.hashbang {
        blanks.erase(place(hashbang.span));
    }
    let hidden = hidden.join(",");
    blanks.prepend(&format!("(({hidden})=>function(exports,module,require){{"));
    blanks.insert(end, "})()");
    blanks
}
